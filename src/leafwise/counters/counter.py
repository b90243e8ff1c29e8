"""The contract between search and whoever holds the rows: sets of cases are numbers, answers are integers.

Knows nothing but arrays. Counts add over rows, so a counter may hold its data anywhere and in any number of shards.
Compiled search takes part of this into its own hands, on this machine: `cases` and `codes` give it the arrays.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.arrays import Layout
from leafwise.kernels.sets import Cases

Integers = NDArray[np.int64]
Codes = NDArray[np.uint8 | np.uint16]
EVERYTHING = 0  # the set of all cases, which is never released


class Counter(Protocol):
    """Cuts, joins and counts sets of cases."""

    n_cases: int
    unit: float  # cases that one row stands for

    @property
    def codes(self) -> Codes:
        """The rows themselves, codes[variable, case], for a search with a way of its own to count."""

    @property
    def cases(self) -> Cases:
        """All sets and rows as arrays, for compiled code that cuts, joins and counts on its own."""

    def prepare(self) -> None:
        """Begin to lay the cases out, as they will be counted soon; there is time for it on another thread."""

    def make_room(self, sizes: Integers) -> None:
        """Room for more sets of these sizes, which compiled code will place."""

    def cut(
        self, parents: Integers, variables: Integers, n_children: Integers, groups: Integers, sizes: Integers
    ) -> int:
        """Cut each set by a variable: `groups` holds, request by request, the child that each state's cases go to.

        `sizes` holds, request by request, how many cases each child gets. Returns the number of the first child; the
        others follow it, in the same order.
        """

    def join(self, first: Integers, second: Integers) -> int:
        """The unions of first[r] and second[r], disjoint sets; the number of the first union, the others follow."""

    def count(
        self, of: Integers, targets: Integers, offsets: Integers, histograms: NDArray[np.int32], layout: Layout
    ) -> None:
        """Write the histogram of each set in `of`, for its target, to histograms[offsets[r]:], laid out by `layout`."""

    def copying(self, variables: list[int]) -> "Counter":
        """A counter of the same cases in which these variables follow once more, after all others."""

    def release(self, gone: Integers) -> None:
        """Forget sets that nobody will ask for again."""
