"""Where histograms live: one array of counts, pieces of which are handed out and taken back by size."""

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels import children
from leafwise.kernels.arrays import Layout, grown

Integers = NDArray[np.int64]


class Histograms:
    """A pool of histograms, all laid out by one `Layout`."""

    def __init__(self, layout: Layout) -> None:
        sizes = (layout.n_rows[layout.of_target] + 1) * layout.n_states
        self._sizes, self._size_class = np.unique(sizes, return_inverse=True)
        self._heads = np.full(len(self._sizes), -1)
        self._used = 0
        self.cells = np.empty(0, np.int32)

    def add_leaves(self, targets: Integers, cases: int, first: int, records: NDArray[np.void]) -> None:
        """Fill new records, with room for a histogram each, for leaves that hold the sets from `cases` on."""
        self._used = children.add_leaves(
            targets, cases, first, records, self._size_class, self._sizes, self._heads, self._used
        )
        if self._used > len(self.cells):
            self.cells = grown(self.cells, self._used)

    def give_back(self, gone: Integers, records: NDArray[np.void]) -> Integers:
        """The histograms of these leaves are not needed any more; the sets of cases they held."""
        cases = np.empty(len(gone), np.int64)
        children.give_back(gone, records, self._size_class, self._heads, cases)
        return cases


def make_layout(allowed: NDArray[np.uint8], n_states: Integers, targets: Integers) -> Layout:
    """The layout that covers, for each target, the variables it may ever test. Equal needs share one."""
    share = bool(n_states.max() <= 256)  # a shared layout has room for the target itself, which must then be small
    of_target = np.zeros(len(n_states), np.int64)
    known: dict[bytes, int] = {}
    rows: list[Integers] = []
    for target in targets.tolist():
        row = allowed[target].copy()
        row[target] = share
        which = known.setdefault(row.tobytes(), len(rows))
        if which == len(rows):
            rows.append(np.flatnonzero(row))
        of_target[target] = which
    n_rows = np.array([int(n_states[row].sum()) for row in rows])
    bases = [np.cumsum(n_states[row]) - n_states[row] for row in rows]
    start = np.cumsum([0, *map(len, rows)])
    return Layout(of_target, start, np.concatenate(rows), np.concatenate(bases), n_rows, n_states)
