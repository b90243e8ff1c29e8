"""Counting on this machine's cores. Knows the table, the bit kernels and threads, and nothing of what the counts are for."""

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import Integers
from leafwise.kernels import bits
from leafwise.table import Table
from leafwise.workers import Workers

# A column of more states than this is counted by increments only: its planes would outweigh its codes.
_MOST_PLANE_STATES = 8
# A set that holds less than one case in so many is a list of rows; there a list is the smaller of the two.
_CASES_A_LIST_ROW = 32


class CpuCounter:
    """A `Counter` over a table in memory."""

    def __init__(self, table: Table, workers: Workers) -> None:
        self.n_cases = table.n_cases
        self._workers = workers
        self._data = _planes(table)
        self._n_states = np.array([variable.n_states for variable in table.variables])
        n_words = self._data.words.shape[1]
        self._sets = np.zeros(64, bits.SET)
        self._n_sets = 1
        self._masks = np.empty((8, n_words), np.uint64)
        self._free_masks = list(range(7, -1, -1))
        self._lists = np.empty(1024, np.int32)
        self._n_listed = 0
        everything = self._free_masks.pop()
        self._masks[everything] = np.uint64(2**64 - 1)
        self._masks[everything, -1] >>= np.uint64(64 * n_words - self.n_cases)
        self._sets[0] = (everything, self.n_cases, True)

    def cut(
        self, parents: Integers, variables: Integers, n_children: Integers, groups: Integers, sizes: Integers
    ) -> int:
        first = self._place(sizes)
        requests = np.empty(len(parents), bits.CUT)
        requests["parent"] = parents
        requests["variable"] = variables
        requests["n_states"] = self._n_states[variables]
        requests["group"] = np.cumsum(requests["n_states"]) - requests["n_states"]
        requests["n_children"] = n_children
        requests["first_child"] = first + np.cumsum(n_children) - n_children
        costs = np.where(self._sets["is_mask"][parents], self._masks.shape[1], self._sets["size"][parents])
        self._workers.run(
            lambda begin, end: bits.cut_sets(
                requests, groups, begin, end, self._sets, self._masks, self._lists, self._data
            ),
            costs.astype(np.float64),
        )
        return first

    def join(self, first: Integers, second: Integers) -> int:
        new = self._place(self._sets["size"][first] + self._sets["size"][second])
        union = np.arange(new, new + len(first))
        bits.join_sets(np.stack([first, second, union], axis=1), self._sets, self._masks, self._lists)
        return new

    def count(
        self,
        sets: Integers,
        targets: Integers,
        offsets: Integers,
        histograms: NDArray[np.int32],
        layout: bits.Layout,
    ) -> None:
        requests = np.stack([sets, targets, offsets], axis=1)
        sizes = np.minimum(self._sets["size"][sets], self._masks.shape[1])
        costs = sizes * layout.n_rows[layout.of_target[targets]] * 0.1
        self._workers.run(
            lambda begin, end: bits.count_sets(
                requests, begin, end, histograms, layout, self._sets, self._masks, self._lists, self._data
            ),
            costs,
        )

    def release(self, sets: Integers) -> None:
        masks = self._sets["offset"][sets][self._sets["is_mask"][sets] != 0]
        self._free_masks.extend(masks.tolist())
        self._sets["size"][sets] = 0
        self._sets["is_mask"][sets] = False

    def _place(self, sizes: Integers) -> int:
        """Records and room for new sets of these sizes; the number of the first."""
        first = self._n_sets
        self._n_sets += len(sizes)
        if self._n_sets > len(self._sets):
            self._sets = np.concatenate([self._sets, np.zeros(self._n_sets, bits.SET)])
        is_mask = sizes * _CASES_A_LIST_ROW >= self.n_cases
        offsets = np.empty(len(sizes), np.int64)
        offsets[is_mask] = self._place_masks(int(is_mask.sum()))
        listed = np.where(is_mask, 0, sizes)
        offsets[~is_mask] = self._place_rows(int(listed.sum())) + (np.cumsum(listed) - listed)[~is_mask]
        new = self._sets[first : self._n_sets]
        new["offset"], new["size"], new["is_mask"] = offsets, sizes, is_mask
        return first

    def _place_masks(self, n: int) -> list[int]:
        if n > len(self._free_masks):
            old = len(self._masks)
            more = np.empty((max(n, old), self._masks.shape[1]), np.uint64)
            self._masks = np.concatenate([self._masks, more])
            self._free_masks = list(range(len(self._masks) - 1, old - 1, -1)) + self._free_masks
        return [self._free_masks.pop() for _ in range(n)]

    def _place_rows(self, n: int) -> int:
        """Room for n row numbers. When the pool is full the lists still in use move to a new one of twice their size."""
        if self._n_listed + n > len(self._lists):
            used = np.flatnonzero((self._sets["is_mask"] == 0) & (self._sets["size"] > 0))
            used = used[used < self._n_sets]
            total = int(self._sets["size"][used].sum())
            pool = np.empty(max(1024, 2 * (total + n)), np.int32)
            self._n_listed = bits.move_lists(used, self._sets, self._lists, pool)
            self._lists = pool
        start = self._n_listed
        self._n_listed += n
        return start


def _planes(table: Table) -> bits.Planes:
    n_states = np.array([variable.n_states for variable in table.variables])
    n_planes = np.where(n_states <= _MOST_PLANE_STATES, n_states - 1, 0)
    first = np.where(n_states <= _MOST_PLANE_STATES, np.cumsum(n_planes) - n_planes, -1)
    words = np.empty((int(n_planes.sum()), -(-table.n_cases // 64)), np.uint64)
    for variable in np.flatnonzero(n_planes):
        for state in range(1, n_states[variable]):
            bits.pack(table.codes[variable], state, words[first[variable] + state - 1])
    return bits.Planes(table.codes, np.ascontiguousarray(table.codes.T), words, first)
