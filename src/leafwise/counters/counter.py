"""The interface between search and rows: a search plans, a counter fills in, counts are integers.

Knows variables and arrays. Counts add over rows, so a counter may hold its data anywhere and in any number of shards.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Variable
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.counting.sets import Cases

Integers = NDArray[np.int64]
Codes = NDArray[np.uint8 | np.uint16]
EVERYTHING = 0  # name of the set of all cases


class Session(Protocol):
    """Sets of cases of one search, which names them; no name is reused, so a request can be repeated.

    Names count up from 1, and down from -1. Requests come in batches, and a batch is complete when the call returns.
    """

    def cut(self, parents: Integers, variables: Integers, groups: Integers, children: Integers) -> None:
        """Cut each set by a variable: `groups` lists, request by request, the child to which each state's cases go.

        `children` lists, request by request, the names of the children; each gets the cases of at least one state.
        """

    def join(self, first: Integers, second: Integers, unions: Integers) -> None:
        """Make the unions of first[r] and second[r], which are disjoint, in order; unions may themselves be joined."""

    def count(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        """Return the histograms of each set in `of`, for its target, concatenated, with this layout.

        They may be overwritten by the next call but one.
        """

    def release(self, gone: Integers) -> None:
        """Release sets that will not be requested again; sets that are already released are ignored."""

    def close(self) -> None:
        """Release all sets; no more requests follow."""


class Counter(Protocol):
    """Holds rows, and opens sessions in which sets of them are cut, joined and counted."""

    variables: tuple[Variable, ...]
    n_cases: int
    unit: float  # cases that one row represents
    lookahead: float  # nodes run ahead as long as their steps gain this fraction of the next step's gain: see `Leaves`
    overlaps: bool  # whether it counts while this machine does something else, so that a batch is better halved

    @property
    def local(self) -> "LocalCounter | None":
        """The counter whose arrays compiled code accesses, if the rows are in this process's memory; otherwise None."""

    def session(self) -> Session:
        """Open a session for one search."""

    def copying(self, variables: list[int]) -> "Counter":
        """Return a counter of the same cases in which copies of these variables follow all others."""


class LocalCounter(Counter, Protocol):
    """A counter whose sets compiled code cuts, joins and counts by itself, by their numbers in `cases`."""

    shown: NDArray[np.bool_] | None  # [variable, case]: the cases with which its graph begins; None: all

    @property
    def codes(self) -> Codes:
        """The rows themselves, codes[variable, case], for searches that do their own counting."""

    @property
    def cases(self) -> Cases:
        """All sets and rows as arrays."""

    @property
    def no_cases(self) -> Cases:
        """Empty arrays of the same types, available immediately, for compilation."""

    def prepare(self) -> None:
        """Begin to lay out the cases for counting, on another thread if there is time."""

    def make_room(self, sizes: Integers) -> None:
        """Make space for more sets of these sizes, which compiled code will place."""

    def name_sets(self, session: Session, all_rows: Sequence[Integers]) -> list[int]:
        """Make sets of these rows, each sorted, and return the names that a new session gives to them."""

    def take(self, session: Session, names: Integers) -> Integers:
        """Return the numbers of sets that a session has made, and remove them from it."""

    def release_numbers(self, gone: Integers) -> None:
        """Release sets by their numbers."""
