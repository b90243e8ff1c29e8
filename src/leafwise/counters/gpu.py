"""Counting on a GPU, by CuPy. Knows the table and the contract of counters; the kernels are in `gpu_kernels`.

Bit planes, rows and sets of cases live on the device; histograms come back. A set is a mask, or, when it holds few
cases, a list of row numbers, as on this machine's cores.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Integers
from leafwise.errors import AdvisedError
from leafwise.kernels.counting.arrays import Layout
from leafwise.table import Table

_SPARE = 2**30  # bytes that are left to the device's other users
_FIRST_LISTS = 2**22  # rows
_MOST_CELLS = 2**28  # of histograms at a time


@dataclass(frozen=True, slots=True)
class _Set:
    """A set of cases: a row of the masks, or a slice of the lists."""

    is_mask: bool
    at: int
    size: int


class GpuCounter:
    """A `Counter` over a table that is copied to a GPU."""

    lookahead = 0.03  # a batch costs little more than one request
    local = None

    def __init__(self, table: Table, unit: float = 1.0) -> None:
        self.variables, self.n_cases, self.unit, self._table = table.variables, table.n_cases, unit, table
        self.cupy = _cupy()
        self.n_states = table.n_states
        self.n_words = -(-table.n_cases // 64)
        self._check_room()

    @property
    def n_bytes(self) -> int:
        """What the table takes on the device."""
        n_planes = int((self.n_states - 1).sum())
        return n_planes * self.n_words * 8 + 2 * self._table.codes.nbytes

    def session(self) -> "GpuSession":
        return GpuSession(self)

    def copying(self, variables: list[int]) -> "GpuCounter":
        return GpuCounter(self._table.copying(variables), self.unit)

    @cached_property
    def first(self) -> Any:
        """The plane of state 1 of each variable."""
        return self.cupy.asarray(np.cumsum(self.n_states - 1) - (self.n_states - 1))

    @cached_property
    def states(self) -> Any:
        """The number of states of each variable, on the device."""
        return self.cupy.asarray(self.n_states)

    @cached_property
    def data(self) -> tuple[Any, Any]:
        """Bit planes, and codes row by row."""
        from leafwise.counters import gpu_kernels as kernels

        cp = self.cupy
        columns = cp.asarray(self._table.codes)
        variables = np.repeat(np.arange(len(self.n_states)), self.n_states - 1)
        states = np.concatenate([np.arange(1, r) for r in self.n_states.tolist()] or [np.zeros(0, np.int64)])
        planes = cp.empty((max(1, len(variables)), self.n_words), np.uint64)
        blocks = -(-self.n_words // kernels.THREADS)
        for begin in range(0, len(variables), 2**15):
            some = slice(begin, begin + 2**15)
            kernels.pack(
                (blocks, len(variables[some])),
                (kernels.THREADS,),
                (
                    columns,
                    cp.asarray(variables[some]),
                    cp.asarray(states[some]),
                    np.int64(self.n_cases),
                    np.int64(self.n_words),
                    planes[some],
                ),
            )
        return planes, cp.ascontiguousarray(columns.T)

    def _check_room(self) -> None:
        free, _ = self.cupy.cuda.runtime.memGetInfo()
        wanted = self.n_bytes + _SPARE
        if wanted > free:
            raise AdvisedError(
                f"the table takes {self.n_bytes / 1e9:.1f} GB on the GPU and {_SPARE / 1e9:.1f} GB more for sets of "
                f"cases, and {free / 1e9:.1f} GB are free: use fewer variables, cases or states, or ",
                ("device", "cpu"),
            )


class GpuSession:
    """Sets of a `GpuCounter` by a search's own names."""

    def __init__(self, counter: GpuCounter) -> None:
        from leafwise.counters import gpu_kernels

        self._kernels, self._counter, self._cp = gpu_kernels, counter, counter.cupy
        cp, n_words = self._cp, counter.n_words
        n_masks = max(16, min(4096, 2**28 // (8 * n_words)))
        self._masks = cp.empty((n_masks, n_words), np.uint64)
        self._masks[0] = np.uint64(2**64 - 1)
        if counter.n_cases % 64:
            self._masks[0, -1] = np.uint64((1 << counter.n_cases % 64) - 1)
        self._free = list(range(n_masks - 1, 0, -1))
        self._lists, self._n_listed = cp.empty(_FIRST_LISTS, np.int32), 0
        self._sets = {EVERYTHING: _Set(True, 0, counter.n_cases)}

    def cut(self, parents: Integers, variables: Integers, groups: Integers, children: Integers) -> None:
        self.release(children)
        r = self._counter.n_states[variables]
        at = np.cumsum(r) - r
        n_children = np.maximum.reduceat(groups, at) + 1
        firsts = np.cumsum(n_children) - n_children
        is_mask = np.array([self._sets[name].is_mask for name in parents.tolist()])
        for these, cut in ((is_mask, self._cut_masks), (~is_mask, self._cut_lists)):
            if these.any():
                which = [slice(f, f + n) for f, n in zip(firsts[these], n_children[these], strict=True)]
                names = np.concatenate([children[part] for part in which])
                cut(parents[these].tolist(), variables[these], groups, at[these], n_children[these], names)

    def join(self, first: Integers, second: Integers, unions: Integers) -> None:
        self.release(unions)
        depths: dict[int, int] = {}  # a union may be joined again in the same batch
        for one, two, union in zip(first.tolist(), second.tolist(), unions.tolist(), strict=True):
            depths[union] = 1 + max(depths.get(one, -1), depths.get(two, -1))
        of_union = np.array([depths[union] for union in unions.tolist()])
        for depth in range(max(depths.values(), default=-1) + 1):
            pairs, names = np.stack([first, second])[:, of_union == depth], unions[of_union == depth]
            sizes = np.array([sum(self._sets[name].size for name in pair) for pair in pairs.T.tolist()])
            is_mask = np.array([self._takes_mask(size) for size in sizes.tolist()])
            for these, join in ((is_mask, self._join_as_masks), (~is_mask, self._join_as_lists)):
                if these.any():
                    join(pairs[:, these], sizes[these], names[these].tolist())

    def _join_as_masks(self, pairs: Integers, sizes: Integers, unions: list[int]) -> None:
        cp, kernels, n_words = self._cp, self._kernels, self._counter.n_words
        slots = self._slots(len(unions))
        sets = [[self._sets[name] for name in row] for row in pairs.tolist()]
        masks = [np.array([set_.at if set_.is_mask else -1 for set_ in row], np.int64) for row in sets]
        given = [cp.asarray(part) for part in (*masks, slots)]
        threads = (kernels.THREADS,)
        grid = (len(unions), -(-n_words // kernels.THREADS))
        kernels.unite(grid, threads, (*given, np.int64(n_words), self._masks))
        lists = [
            (set_.at, set_.size, slot)
            for row in sets
            for set_, slot in zip(row, slots.tolist(), strict=True)
            if not set_.is_mask and set_.size
        ]
        if lists:
            parts = [cp.asarray(np.array(part, np.int64)) for part in zip(*lists, strict=True)]
            grid = (len(lists), -(-max(size for _, size, _ in lists) // kernels.THREADS))
            kernels.mark(grid, threads, (*parts, self._lists, self._masks))
        for name, slot, size in zip(unions, slots.tolist(), sizes.tolist(), strict=True):
            self._sets[name] = _Set(True, slot, size)

    def _join_as_lists(self, pairs: Integers, sizes: Integers, unions: list[int]) -> None:
        begins = self._list_room(sizes.tolist())
        one, two = ([self._sets[name] for name in row] for row in pairs.tolist())  # they may have moved
        goals = [*begins, *(begin + set_.size for begin, set_ in zip(begins, one, strict=True))]
        self._move([*one, *two], np.array(goals, np.int64), self._lists)
        for name, begin, size in zip(unions, begins, sizes.tolist(), strict=True):
            self._sets[name] = _Set(False, begin, size)

    def _move(self, sets: list[_Set], goals: Integers, lists: Any) -> None:
        """Copy lists to where they shall begin in these."""
        lengths = np.array([set_.size for set_ in sets], np.int64)
        if lengths.any():
            begins = np.array([set_.at for set_ in sets], np.int64)
            given = [self._cp.asarray(part) for part in (begins, goals, lengths)]
            threads = self._kernels.THREADS
            self._kernels.move_lists(
                (len(sets), -(-int(lengths.max()) // threads)), (threads,), (*given, self._lists, lists)
            )

    def count(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        room = (layout.n_rows[layout.of_target[targets]] + 1) * layout.n_states[targets]
        ends = np.cumsum(room)
        out = np.empty(int(ends[-1]), np.int32)
        begin = 0
        while begin < len(of):
            done = int(ends[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(ends, done + _MOST_CELLS, "right")))
            counts = self._count(of[begin:end], targets[begin:end], ends[begin:end] - room[begin:end] - done, layout)
            counts.get(out=out[done : int(ends[end - 1])])
            begin = end
        return out

    def release(self, gone: Integers) -> None:
        for name in gone.tolist():
            if name != EVERYTHING and (set_ := self._sets.pop(name, None)) is not None and set_.is_mask:
                self._free.append(set_.at)

    def close(self) -> None:
        self._sets.clear()
        self._masks = self._lists = None

    def _takes_mask(self, size: int) -> bool:
        return size * 32 >= self._counter.n_cases

    def _count(self, of: Integers, targets: Integers, offsets: Integers, layout: Layout) -> Any:
        """Histograms of sets, on the device."""
        cp = self._cp
        sets = [self._sets[name] for name in of.tolist()]
        n_cells = int(offsets[-1] + (layout.n_rows[layout.of_target[targets[-1]]] + 1) * layout.n_states[targets[-1]])
        out = cp.zeros(n_cells, np.int32)
        which, is_mask = layout.of_target[targets], np.array([set_.is_mask for set_ in sets])
        for number in np.unique(which).tolist():
            entries = slice(int(layout.start[number]), int(layout.start[number + 1]))
            variables, bases = cp.asarray(layout.variables[entries]), cp.asarray(layout.bases[entries])
            n_rows = np.int64(layout.n_rows[number])
            for kind, count in ((True, self._count_masks), (False, self._count_lists)):
                some = np.flatnonzero((which == number) & (is_mask == kind))
                if len(some):
                    at, sizes = (np.array([getattr(sets[k], f) for k in some], np.int64) for f in ("at", "size"))
                    given = [cp.asarray(part) for part in (at, sizes, targets[some], offsets[some])]
                    count(given, variables, bases, n_rows, int(sizes.max()), out)
        return out

    def _count_masks(self, given: list[Any], variables: Any, bases: Any, n_rows: Any, _size: int, out: Any) -> None:
        kernels, counter, (planes, _) = self._kernels, self._counter, self._counter.data
        (slots, sizes, targets, offsets), n, n_entries = given, len(given[0]), len(variables)
        n_words, threads = np.int64(counter.n_words), (kernels.THREADS,)
        common = (counter.states, counter.first, self._masks, planes, n_words)
        if n_entries:
            entries = (slots, targets, offsets, variables, bases)
            kernels.count_masks(
                (n, -(-n_entries // kernels.WARPS)), threads, (*entries, *common, np.int64(n_entries), out)
            )
        kernels.count_totals((n,), (32,), (slots, sizes, targets, offsets, *common, n_rows, out))
        if n_entries:
            arguments = (targets, offsets, variables, bases, counter.states, np.int64(n_entries), n_rows, out)
            kernels.subtract((n, -(-n_entries // kernels.THREADS)), threads, arguments)

    def _count_lists(self, given: list[Any], variables: Any, bases: Any, n_rows: Any, size: int, out: Any) -> None:
        kernels, (_, rows) = self._kernels, self._counter.data
        (begins, sizes, targets, offsets), n_entries = given, len(variables)
        arguments = (begins, sizes, targets, offsets, variables, bases, self._counter.states, self._lists, rows)
        grid = (len(begins), -(-(n_entries + 1) // kernels.THREADS), max(1, -(-size // kernels.CHUNK)))
        kernels.count_lists(grid, (kernels.THREADS,), (*arguments, np.int64(n_entries), n_rows, out))

    def _cut_masks(
        self,
        parents: list[int],
        variables: Integers,
        groups: Integers,
        at: Integers,
        n_children: Integers,
        names: Integers,
    ) -> None:
        """Children of masks: masks at first, then lists where these are small."""
        cp, kernels, counter = self._cp, self._kernels, self._counter
        which = np.concatenate([np.arange(n) for n in n_children])
        slots = self._slots(len(names))
        sizes = cp.zeros(len(names), np.int32)
        owners = np.repeat(np.arange(len(parents)), n_children)
        blocks = -(-counter.n_words // kernels.THREADS)
        given = [
            np.array([self._sets[name].at for name in parents], np.int64)[owners],
            variables[owners],
            which,
            groups,
            at[owners],
            slots,
        ]
        arguments = (*(cp.asarray(part) for part in given), counter.states, counter.first, self._masks, counter.data[0])
        kernels.cut_masks((len(names), blocks), (kernels.THREADS,), (*arguments, np.int64(counter.n_words), sizes))
        found = sizes.get().astype(np.int64)
        small = np.flatnonzero(found * 32 < counter.n_cases)
        for k in np.flatnonzero(found * 32 >= counter.n_cases).tolist():
            self._sets[int(names[k])] = _Set(True, int(slots[k]), int(found[k]))
        if len(small):
            begins = self._list_room(found[small].tolist())
            given = [slots[small], np.array(begins, np.int64)]
            fill = cp.zeros(len(small), np.int32)
            arguments = (*(cp.asarray(part) for part in given), self._masks, np.int64(counter.n_words), fill)
            kernels.list_masks((len(small), blocks), (kernels.THREADS,), (*arguments, self._lists))
            for k, begin in zip(small.tolist(), begins, strict=True):
                self._sets[int(names[k])] = _Set(False, begin, int(found[k]))
                self._free.append(int(slots[k]))

    def _cut_lists(
        self,
        parents: list[int],
        variables: Integers,
        groups: Integers,
        at: Integers,
        n_children: Integers,
        names: Integers,
    ) -> None:
        """Children of lists are lists."""
        cp, kernels, counter = self._cp, self._kernels, self._counter
        firsts = np.cumsum(n_children) - n_children

        def run(is_counting: int, begins: Any, fill: Any) -> None:
            now = [self._sets[name] for name in parents]  # they may have moved
            given = [np.array([getattr(set_, field) for set_ in now], np.int64) for field in ("at", "size")]
            parts = [cp.asarray(part) for part in (*given, variables, groups, at, firsts)]
            grid = (len(now), max(1, -(-int(given[1].max()) // kernels.THREADS)))
            rows = counter.data[1]
            kernels.cut_lists(
                grid, (kernels.THREADS,), (*parts, self._lists, rows, np.int64(is_counting), begins, fill)
            )

        sizes = cp.zeros(len(names), np.int32)
        run(1, cp.zeros(1, np.int64), sizes)
        found = sizes.get().tolist()
        begins = self._list_room(found)
        run(0, cp.asarray(np.array(begins, np.int64)), cp.zeros(len(names), np.int32))
        for name, begin, size in zip(names.tolist(), begins, found, strict=True):
            self._sets[name] = _Set(False, begin, size)

    def _slots(self, n: int) -> Integers:
        """Room for so many masks."""
        if n > len(self._free):
            old = len(self._masks)
            masks = self._cp.empty((max(2 * old, old + n), self._counter.n_words), np.uint64)
            masks[:old] = self._masks
            self._masks = masks
            self._free = [*range(len(masks) - 1, old - 1, -1), *self._free]
        slots = [self._free.pop() for _ in range(n)]
        return np.array(slots, np.int64)

    def _list_room(self, sizes: Iterable[int]) -> list[int]:
        """Where lists of these sizes begin; all others may move."""
        total = int(sum(sizes := list(sizes)))
        if self._n_listed + total > len(self._lists):
            names = [name for name, set_ in self._sets.items() if not set_.is_mask]
            live = [self._sets[name] for name in names]
            in_use = sum(set_.size for set_ in live)
            lists = self._cp.empty(max(len(self._lists), 2 * (in_use + total)), np.int32)
            if in_use:
                lengths = np.array([set_.size for set_ in live], np.int64)
                new = np.cumsum(lengths) - lengths
                self._move(live, new, lists)
                for name, set_, begin in zip(names, live, new.tolist(), strict=True):
                    self._sets[name] = _Set(False, begin, set_.size)
            self._lists, self._n_listed = lists, in_use
        begins = [self._n_listed + before for before in np.cumsum([0, *sizes])[:-1].tolist()]
        self._n_listed += total
        return begins


def _cupy() -> Any:
    """CuPy, if it is there and finds a GPU."""
    try:
        import cupy
    except ModuleNotFoundError:
        raise AdvisedError(
            "counting on a GPU needs the package CuPy, which is not installed: pip install 'leafwise[gpu]', or use ",
            ("device", "cpu"),
        ) from None
    try:
        n_devices = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError:
        n_devices = 0
    if not n_devices:
        raise AdvisedError("no GPU was found: use ", ("device", "cpu"))
    return cupy
