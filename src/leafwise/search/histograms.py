"""Where histograms live: one array of counts, pieces of which are handed out and taken back by size."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.counting.arrays import Layout, grown
from leafwise.kernels.leaf_search.state import Pool
from leafwise.machine import n_bytes

Integers = NDArray[np.int64]


_ROOM = 3 * 2**20  # cells, 12 MB, to begin with: memory is not touched before it is used
# The C library keeps what was given back for the next search, up to twice as much as the largest block below 32 MB that
# ever was. Without this one a search may find its memory gone, and touch it anew: up to a tenth of its time.
np.empty(2**25 - 2**16, np.uint8)
_PLENTY = 2**24  # cells, 64 MB: beyond that, histograms that may not be needed again are given back,
_TOO_MANY = 2**29  # ... and beyond that, 2 GB, all of them, once they are scored; up to four times as many where the
# table has more cells, since to count again takes longer there
_TIMES, _TIMES_IF_LARGE = 16, 256  # as much room as the first of them take: to copy gigabytes into more takes seconds,
_SHARE = 1 / 4  # ... but no more of the machine's memory


class Histograms:
    """A pool of histograms, all laid out by one `Layout`, and of the target's counts in each leaf."""

    def __init__(self, layout: Layout, nodes: NDArray[np.void], n_cases: int) -> None:
        self._too_many = _TOO_MANY * min(max(1, n_cases * len(nodes) // 2**29), 4)
        self._used = np.zeros(2, np.int64)
        self.cells = np.zeros(0, np.int32)
        self.counts = np.zeros(0, np.int64)
        self._begin(layout, nodes)

    def _begin(self, layout: Layout, nodes: NDArray[np.void]) -> None:
        sizes = np.maximum((layout.n_rows[layout.of_target] + 1) * layout.n_states, 2)  # a free one holds a link
        self._sizes, nodes["size_class"] = np.unique(sizes, return_inverse=True)
        self._free = np.full(len(self._sizes), -1)

    def with_layout(self, layout: Layout, nodes: NDArray[np.void], n_cells: int | None = None) -> "Histograms":
        """A pool that goes on behind what is here, or behind so many cells; it has none that are free.

        Histograms that are here may be given back to it if its own of the same target are no larger.
        """
        new = copy(self)
        new._used = self._used.copy()
        new._used[0] = new._used[0] if n_cells is None else n_cells
        new._begin(layout, nodes)
        return new

    @property
    def are_plenty(self) -> bool:
        return int(self._used[0]) > _PLENTY

    @property
    def pool(self) -> Pool:
        return Pool(self.cells, self._free, self._sizes, self._used, _PLENTY, self._too_many)

    def make_room(self, n_cells: int, n_counts: int) -> None:
        """Room for so many more, where it is short; what grows at least doubles."""
        if self._used[0] + n_cells > len(self.cells):
            times = _TIMES_IF_LARGE if self._too_many > _TOO_MANY else _TIMES
            most = int(_SHARE * n_bytes()) // self.cells.itemsize
            first = 0 if len(self.cells) else min(times * n_cells, most)
            self.cells = grown(self.cells, max(int(self._used[0]) + 2 * n_cells, first, _ROOM), np.empty)
        if self._used[1] + n_counts > len(self.counts):
            self.counts = grown(self.counts, max(int(self._used[1]) + 2 * n_counts, _ROOM // 64), np.empty)


def make_layout(allowed: NDArray[np.uint8], n_states: Integers, targets: Integers) -> Layout:
    """The layout that covers, for each target, the variables it may ever test. Equal needs share one."""
    share, n = bool(n_states.max() <= 256), len(n_states)  # a shared one has room for the target, which must be small
    if share and len(targets) == n and np.count_nonzero(allowed) - np.count_nonzero(allowed.diagonal()) == n * (n - 1):
        begins = np.cumsum(n_states) - n_states  # all that follows, in a fraction of the time
        one, n_rows = np.zeros(n, np.int64), np.array([n_states.sum()])
        return Layout(one, np.array([0, n]), np.arange(n), begins, n_rows, n_states)
    needs = allowed[targets]
    needs[np.arange(len(targets)), targets] = share
    packed = np.packbits(needs, axis=1)
    keys = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    known: dict[bytes, int] = {}
    same = [known.setdefault(key, k) for k, key in enumerate(keys)]  # the first with the same needs
    firsts = list(known.values())
    which, variables = map(np.ascontiguousarray, needs[firsts].nonzero())
    sizes, start = n_states[variables], np.searchsorted(which, np.arange(len(firsts) + 1))
    bases = np.cumsum(sizes) - sizes
    of_target = np.zeros(len(n_states), np.int64)
    of_target[targets] = np.searchsorted(firsts, same)
    n_rows = np.diff(np.append(bases, sizes.sum())[start])
    return Layout(of_target, start, variables, bases - (np.cumsum(n_rows) - n_rows)[which], n_rows, n_states)
