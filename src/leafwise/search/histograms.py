"""Where histograms live: one array of counts, pieces of which are handed out and taken back by size."""

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.bits import Layout

_MOST_CELLS = 2**29  # 2 GiB of counts for one histogram: beyond that two columns have too many states to be crossed


class Histograms:
    """A pool of histograms, all laid out by one `Layout`."""

    def __init__(self, layout: Layout) -> None:
        self._sizes = (layout.n_rows[layout.of_target] + 1) * layout.n_states
        self._free: dict[int, list[int]] = {}
        self._used = 0
        self.cells = np.empty(0, np.int32)

    def take(self, targets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Room for one histogram for each of the targets: where each begins."""
        offsets = np.empty(len(targets), np.int64)
        sizes = self._sizes[targets]
        for size in np.unique(sizes).tolist():
            wanted = np.flatnonzero(sizes == size)
            free = self._free.setdefault(size, [])
            n_old = min(len(free), len(wanted))
            offsets[wanted[:n_old]] = free[len(free) - n_old :]
            del free[len(free) - n_old :]
            n_new = len(wanted) - n_old
            offsets[wanted[n_old:]] = self._used + size * np.arange(n_new)
            self._used += size * n_new
        if self._used > len(self.cells):
            self.cells = np.concatenate([self.cells, np.empty(max(self._used, 2 * len(self.cells)) - len(self.cells), np.int32)])
        return offsets

    def give_back(self, targets: NDArray[np.int64], offsets: NDArray[np.int64]) -> None:
        """These are not needed any more."""
        for size, offset in zip(self._sizes[targets].tolist(), offsets.tolist(), strict=True):
            self._free[size].append(offset)


def make_layout(allowed: NDArray[np.uint8], n_states: NDArray[np.int64], targets: NDArray[np.int64]) -> Layout:
    """The layout that covers, for each target, the variables it may ever test. Equal needs share one."""
    share = bool(n_states.max() <= 256)  # a shared layout has room for the target itself, which must then be small
    of_target = np.zeros(len(n_states), np.int64)
    known: dict[bytes, int] = {}
    rows = []
    for target in targets.tolist():
        row = allowed[target].copy()
        row[target] = share
        which = known.setdefault(row.tobytes(), len(rows))
        if which == len(rows):
            rows.append(np.flatnonzero(row))
        of_target[target] = which
    n_rows = np.array([int(n_states[row].sum()) for row in rows])
    cells = n_rows[of_target] * n_states
    largest = targets[np.argmax(cells[targets])]
    if cells[largest] > _MOST_CELLS:
        raise ValueError(f"a table of {cells[largest]} cells would be needed to cross variable {largest}, more than {_MOST_CELLS}")
    bases = [np.cumsum(n_states[row]) - n_states[row] for row in rows]
    start = np.cumsum([0, *map(len, rows)])
    return Layout(of_target, start, np.concatenate(rows), np.concatenate(bases), n_rows, n_states)
