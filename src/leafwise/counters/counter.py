"""The contract between search and whoever holds the rows: a search plans, a counter fills in, counts are integers.

Knows variables and arrays. Counts add over rows, so a counter may hold its data anywhere and in any number of shards.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.counting.sets import Cases
from leafwise.table import Variable

Integers = NDArray[np.int64]
Codes = NDArray[np.uint8 | np.uint16]
EVERYTHING = 0  # the name of the set of all cases


class Session(Protocol):
    """Sets of cases for one search, which names them: a name never comes twice, so a request can be repeated.

    Names count up from 1, and down from -1.

    Requests come in batches, and the result of a batch is there when the call returns.
    """

    def cut(self, parents: Integers, variables: Integers, groups: Integers, children: Integers) -> None:
        """Cut each set by a variable: `groups` holds, request by request, the child that each state's cases go to.

        `children` holds, request by request, the names of the children; each gets the cases of one state at least.
        """

    def join(self, first: Integers, second: Integers, unions: Integers) -> None:
        """The unions of first[r] and second[r], disjoint sets, one request after the other."""

    def count(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        """The histograms of each set in `of`, for its target, one after the other, laid out by `layout`.

        The next call but one may write over them.
        """

    def release(self, gone: Integers) -> None:
        """Forget sets that nobody will ask for again; those that are forgotten already do not matter."""

    def close(self) -> None:
        """Forget all sets; there are no more requests."""


class Counter(Protocol):
    """Holds rows, and opens sessions in which sets of them are cut, joined and counted."""

    variables: tuple[Variable, ...]
    n_cases: int
    unit: float  # cases that one row stands for
    lookahead: float  # nodes run ahead as long as their steps gain this share of the next step's gain: see `Leaves`
    overlaps: bool  # whether it counts while this machine does something else, and a batch may as well come in halves

    @property
    def local(self) -> "LocalCounter | None":
        """Where compiled code finds the rows, if they are in this process's memory; else all goes by batches."""

    def session(self) -> Session:
        """For one search."""

    def copying(self, variables: list[int]) -> "Counter":
        """A counter of the same cases in which these variables follow once more, after all others."""


class LocalCounter(Counter, Protocol):
    """A counter whose sets compiled code cuts, joins and counts on its own, by their numbers in `cases`."""

    shown: NDArray[np.bool_] | None  # [variable, case]: the graph of a variable begins with these; None: with all

    @property
    def codes(self) -> Codes:
        """The rows themselves, codes[variable, case], for a search with a way of its own to count."""

    @property
    def cases(self) -> Cases:
        """All sets and rows as arrays."""

    @property
    def no_cases(self) -> Cases:
        """The same, empty: there at once, to tell what kinds of arrays they are."""

    def prepare(self) -> None:
        """Begin to lay the cases out, as they will be counted soon; there is time for it on another thread."""

    def make_room(self, sizes: Integers) -> None:
        """Room for more sets of these sizes, which compiled code will place."""

    def name_sets(self, session: Session, all_rows: Sequence[Integers]) -> list[int]:
        """The names that a new session gives to sets of these rows, each sorted."""

    def take(self, session: Session, names: Integers) -> Integers:
        """The numbers of sets that a session had made, and now has no longer."""

    def release_numbers(self, gone: Integers) -> None:
        """Forget sets by their numbers."""
