"""Memory for histograms: a pool in one array, with a free list for each size."""

from copy import copy

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.counting.arrays import Layout, grown
from leafwise.kernels.leaf_search.state import Pool
from leafwise.machine import n_bytes

Integers = NDArray[np.int64]


_ROOM = 3 * 2**20  # initial cells, 12 MB: pages are not touched before they are used
# The C library keeps freed memory for the next search, up to twice the size of the largest block below 32 MB that was
# ever freed. Without this block, a search may have to touch its memory anew, which takes up to a tenth of its time.
np.empty(2**25 - 2**16, np.uint8)
_PLENTY = 2**24  # cells, 64 MB, beyond which histograms that may not be needed again are released
_TOO_MANY = 2**29  # cells, 2 GB, beyond which all histograms are released once scored; up to four times as many if the
# table is large, since recounting then takes longer
_TIMES, _TIMES_IF_LARGE = 16, 256  # initial cells per cell of the first request, as copying gigabytes takes seconds,
_SHARE = 1 / 4  # ... but at most this share of the machine's memory


class Histograms:
    """A pool of histograms with one `Layout`, and of the target's counts in each leaf."""

    def __init__(self, layout: Layout, nodes: NDArray[np.void], n_cases: int) -> None:
        self._too_many = _TOO_MANY * min(max(1, n_cases * len(nodes) // 2**29), 4)
        self._used = np.zeros(2, np.int64)
        self.cells = np.zeros(0, np.int32)
        self.counts = np.zeros(0, np.int64)
        self._begin(layout, nodes)

    def _begin(self, layout: Layout, nodes: NDArray[np.void]) -> None:
        sizes = np.maximum((layout.n_rows[layout.of_target] + 1) * layout.n_states, 2)  # a free one contains a link
        self._sizes, nodes["size_class"] = np.unique(sizes, return_inverse=True)
        self._free = np.full(len(self._sizes), -1)

    def with_layout(self, layout: Layout, nodes: NDArray[np.void], n_cells: int | None = None) -> "Histograms":
        """A pool with another layout that continues after this one, or after its first `n_cells` cells.

        Its free lists are empty. Histograms of this pool may be released to it if its own of that target are no larger.
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
        """Make space for this many more cells and counts; arrays that are too small at least double."""
        if self._used[0] + n_cells > len(self.cells):
            times = _TIMES_IF_LARGE if self._too_many > _TOO_MANY else _TIMES
            most = int(_SHARE * n_bytes()) // self.cells.itemsize
            first = 0 if len(self.cells) else min(times * n_cells, most)
            self.cells = grown(self.cells, max(int(self._used[0]) + 2 * n_cells, first, _ROOM), np.empty)
        if self._used[1] + n_counts > len(self.counts):
            self.counts = grown(self.counts, max(int(self._used[1]) + 2 * n_counts, _ROOM // 64), np.empty)


def make_layout(allowed: NDArray[np.uint8], n_states: Integers, targets: Integers) -> Layout:
    """The layout that covers, for each target, the variables that it may test; targets with the same ones share it."""
    share, n = bool(n_states.max() <= 256), len(n_states)  # a shared layout includes the targets, which must be small
    if share and len(targets) == n and np.count_nonzero(allowed) - np.count_nonzero(allowed.diagonal()) == n * (n - 1):
        begins = np.cumsum(n_states) - n_states  # the same as below, in a fraction of the time
        one, n_rows = np.zeros(n, np.int64), np.array([n_states.sum()])
        return Layout(one, np.array([0, n]), np.arange(n), begins, n_rows, n_states)
    needs = allowed[targets]
    needs[np.arange(len(targets)), targets] = share
    packed = np.packbits(needs, axis=1)
    keys = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    known: dict[bytes, int] = {}
    same = [known.setdefault(key, k) for k, key in enumerate(keys)]  # the first with the same variables
    firsts = list(known.values())
    which, variables = map(np.ascontiguousarray, needs[firsts].nonzero())
    sizes, start = n_states[variables], np.searchsorted(which, np.arange(len(firsts) + 1))
    bases = np.cumsum(sizes) - sizes
    of_target = np.zeros(len(n_states), np.int64)
    of_target[targets] = np.searchsorted(firsts, same)
    n_rows = np.diff(np.append(bases, sizes.sum())[start])
    return Layout(of_target, start, variables, bases - (np.cumsum(n_rows) - n_rows)[which], n_rows, n_states)
