"""Counting on a GPU, by CuPy. Knows the table and the interface of counters; the kernels are in `gpu_kernels`.

Bit planes, rows and sets of cases are stored on the device; histograms are copied back. A set is a mask or, if it
contains few cases, a list of row numbers, as on the CPU. A union is not computed until it is cut or counted, which most
never are; until then it refers to its parts.
"""

import logging
import warnings
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Integers
from leafwise.data.table import Table
from leafwise.errors import AdvisedError
from leafwise.kernels.counting.arrays import Layout, grown

_SPARE = 2**30  # bytes that are left to other users of the device
_LARGE = 2**30  # bytes of a table; if larger, arrays of sets have more than _ROOM bytes from the beginning
_ROOM = 2**31  # bytes: for larger arrays CuPy compiles other kernels, which must not happen during a search
_FIRST_ROOM = 2**24  # initial bytes of lists for smaller tables; of masks 16 times as many
_FIRST_NAMES = 2**14  # initial number of names
_MOST_CELLS = 2**28  # of histograms that are counted together
_MOST_BLOCKS = 65_535  # of a grid, in its second and third dimension; a block takes at least SUMMED rows of a list
_UNKNOWN, _MASK, _LIST, _UNION = range(4)  # kinds of sets
_Entries = tuple[Any, Any, Any]  # arrays of a layout, on the device: see `_layout`


class GpuCounter:
    """A `Counter` over a table that is copied to a GPU."""

    lookahead = 0.3  # a smaller value makes hardly fewer batches
    overlaps = True
    local = None

    def __init__(self, table: Table, unit: float = 1.0) -> None:
        self.variables, self.n_cases, self.unit, self._table = table.variables, table.n_cases, unit, table
        self.cupy = _cupy()
        self.device = self.cupy.cuda.get_device_id()
        self.n_states = table.n_states
        self.n_words = -(-table.n_cases // 64)
        self.n_octets = -(-table.codes[:, :1].nbytes // 8)  # groups of eight bytes per row
        self.is_binary = bool((table.n_states == 2).all()) and table.codes.itemsize == 1
        few = table.n_cases // (8 if self.is_binary else 32)
        self.most_listed = min(few, _MOST_BLOCKS * _kernels().SUMMED)  # most cases of a set that is a list
        self._check_room()

    @property
    def n_bytes(self) -> int:
        """Bytes that the table takes on the device."""
        n_planes = int((self.n_states - 1).sum())
        return n_planes * self.n_words * 8 + self._table.codes.nbytes + self.n_cases * self.n_octets * 8

    def session(self) -> "GpuSession":
        return GpuSession(self)

    def copying(self, variables: list[int]) -> "GpuCounter":
        return GpuCounter(self._table.copying(variables), self.unit)

    @cached_property
    def first(self) -> Any:
        """The plane of state 1 of each variable, on the device."""
        return self.cupy.asarray(np.cumsum(self.n_states - 1) - (self.n_states - 1))

    @cached_property
    def states(self) -> Any:
        """The number of states of each variable, on the device."""
        return self.cupy.asarray(self.n_states)

    @cached_property
    def data(self) -> tuple[Any, Any]:
        """Bit planes, and codes row by row, on the device."""
        cp, kernels = self.cupy, _kernels()
        columns = cp.asarray(self._table.codes)
        variables = np.repeat(np.arange(len(self.n_states)), self.n_states - 1)
        states = np.concatenate([np.arange(1, r) for r in self.n_states.tolist()] or [np.zeros(0, np.int64)])
        planes = cp.empty((max(1, len(variables)), self.n_words), np.uint64)
        rows = cp.zeros((self.n_cases, self.n_octets * 8 // columns.itemsize), columns.dtype)
        rows[:, : len(columns)] = columns.T
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
        return planes, rows

    def _check_room(self) -> None:
        """Refuse a table that does not fit; otherwise determine what it takes, and what is left for sets of cases."""
        free, _ = self.cupy.cuda.runtime.memGetInfo()
        wanted = self.n_bytes + _SPARE
        self.is_large = self.n_bytes > _LARGE and wanted + 5 * _ROOM < free  # a search may have two sessions
        if wanted > free:
            raise AdvisedError(
                f"the table takes {self.n_bytes / 1e9:.1f} GB on the GPU and {_SPARE / 1e9:.1f} GB more for sets of "
                f"cases, and {free / 1e9:.1f} GB are free: use fewer variables, cases or states, or ",
                ("device", "cpu"),
            )
        self.room = (
            f"the table takes {self.n_bytes / 1e9:.1f} GB on the GPU, and {(free - wanted) / 1e9:.1f} GB are left"
        )
        logging.getLogger(__name__).info("%s for sets of cases.", self.room)

    def empty(self, shape: Any, kind: type) -> Any:
        """Allocate memory on the device for sets of cases."""
        try:
            return self.cupy.empty(shape, kind)
        except self.cupy.cuda.memory.OutOfMemoryError:
            raise AdvisedError(
                f"the GPU's memory is full of sets of cases ({self.room}): use fewer variables or cases, or ",
                ("device", "cpu"),
            ) from None


class GpuSession:
    """Sets of a `GpuCounter` by a search's own names."""

    def __init__(self, counter: GpuCounter) -> None:
        self._kernels, self._counter, self._cp = _kernels(), counter, counter.cupy
        n_words = counter.n_words
        n_masks = _ROOM // (8 * n_words) + 1 if counter.is_large else max(16, min(4096, _FIRST_ROOM * 2 // n_words))
        self._masks = counter.empty((n_masks, n_words), np.uint64)
        self._masks[0] = np.uint64(2**64 - 1)
        if counter.n_cases % 64:
            self._masks[0, -1] = np.uint64((1 << counter.n_cases % 64) - 1)
        self._free = list(range(n_masks - 1, 0, -1))
        self._lists = counter.empty(_ROOM // 4 + 1 if counter.is_large else _FIRST_ROOM // 4, np.int32)
        self._n_listed = 0
        # By index (see `_places`): kind of a set, its row in the masks or offset in the lists, its size, the number of
        # unions that refer to it, and whether it was released, so that only these need it.
        self._kind, self._is_released = np.zeros(_FIRST_NAMES, np.uint8), np.zeros(_FIRST_NAMES, np.bool_)
        self._at, self._size, self._n_holders = np.zeros((3, _FIRST_NAMES), np.int64)
        self._kind[EVERYTHING], self._size[EVERYTHING] = _MASK, counter.n_cases
        self._parts: dict[int, tuple[int, int]] = {}  # by union
        self._laid_out: Layout | None = None  # the layout of which `_layouts` contains parts
        self._layouts: dict[int, _Entries] = {}
        self._buffers = [self._pinned(0), self._pinned(0)]  # for the counts of the last two calls

    def cut(self, parents: Integers, variables: Integers, groups: Integers, children: Integers) -> None:
        parents, children = _places(parents), _places(children)
        self._begin(children)
        self._make_unions(parents)
        r = self._counter.n_states[variables]
        at = np.cumsum(r) - r
        n_children = np.maximum.reduceat(groups, at) + 1
        owners = np.arange(len(parents)).repeat(n_children)
        which = np.arange(len(owners)) - (np.cumsum(n_children) - n_children)[owners]  # child of its parent
        is_mask = self._kind[parents] == _MASK
        for these, cut in ((is_mask, self._cut_masks), (~is_mask, self._cut_lists)):
            if these.any():
                some = these[owners]
                cut(parents, variables, groups, at, owners[some], which[some], children[some])

    def join(self, first: Integers, second: Integers, unions: Integers) -> None:
        first, second, unions = _places(first), _places(second), _places(unions)
        self._begin(unions)
        for one, two, union in zip(first.tolist(), second.tolist(), unions.tolist(), strict=True):
            self._size[union] = self._size[one] + self._size[two]  # a part may be a union of this batch
            self._parts[union] = one, two
        np.add.at(self._n_holders, np.concatenate([first, second]), 1)
        self._kind[unions] = _UNION

    def count(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        if not len(of):
            return np.empty(0, np.int32)
        of, room = _places(of), (layout.n_rows[layout.of_target[targets]] + 1) * layout.n_states[targets]
        ends = np.cumsum(room)
        self._buffers.reverse()
        if ends[-1] > len(self._buffers[0]):
            self._buffers[0] = self._pinned(max(int(ends[-1]), 2 * len(self._buffers[0])))
        begin, found = 0, self._buffers[0][: int(ends[-1])]
        with self._cp.cuda.Device(self._counter.device):  # the current device belongs to a thread
            self._make_unions(of)
            while begin < len(of):
                done = int(ends[begin - 1]) if begin else 0
                end = max(begin + 1, int(np.searchsorted(ends, done + _MOST_CELLS, "right")))
                places, n_cells = (ends - room)[begin:end] - done, int(ends[end - 1]) - done
                counts = self._count(of[begin:end], targets[begin:end], places, n_cells, layout)
                counts.get(out=found[done : done + n_cells])
                begin = end
        return found

    def release(self, gone: Integers) -> None:
        self._forget(_places(gone))

    def _forget(self, gone: Integers) -> None:
        """Release sets, and those that only they referred to."""
        names = np.unique(gone[(gone != EVERYTHING) & (gone < len(self._kind))])
        while len(names):
            self._is_released[names] = True
            names = names[self._n_holders[names] == 0]
            kind = self._kind[names]
            self._kind[names] = _UNKNOWN
            self._free += self._at[names[kind == _MASK]].tolist()
            names = self._let_go(names[kind == _UNION])

    def close(self) -> None:
        self._kind[:] = _UNKNOWN
        self._masks = self._lists = None
        self._buffers = []

    def _begin(self, names: Integers) -> None:
        """Release sets of these names, left by a request that is repeated, and make space for them."""
        self._forget(names)
        if (most := int(names.max(initial=0)) + 1) > len(self._kind):
            for field in ("_is_released", "_at", "_size", "_n_holders", "_kind"):  # the last one tells the length
                setattr(self, field, grown(getattr(self, field), most))
        self._is_released[names] = False

    def _let_go(self, unions: Integers) -> Integers:
        """Remove unions' references to their parts; return the parts that are no longer needed."""
        parts = np.array([part for union in unions.tolist() for part in self._parts.pop(union)], np.int64)
        np.subtract.at(self._n_holders, parts, 1)
        parts = np.unique(parts)
        gone: Integers = parts[self._is_released[parts] & (self._n_holders[parts] == 0)]
        return gone

    def _make_unions(self, names: Integers) -> None:
        """Compute those of these sets that are unions."""
        unions = np.unique(names[self._kind[names] == _UNION])
        if not len(unions):
            return
        parts, owners = [], []
        for owner, union in enumerate(unions.tolist()):
            waiting = [union]
            while waiting:
                name = waiting.pop()
                if self._kind[name] == _UNION:
                    waiting += self._parts[name]
                elif self._size[name]:
                    parts.append(name)
                    owners.append(owner)
        given, of_union = np.array(parts, np.int64), np.array(owners, np.int64)
        takes_mask = self._size[unions] > self._counter.most_listed
        for these, join in ((takes_mask, self._join_as_masks), (~takes_mask, self._join_as_lists)):
            if these.any():
                some = these[of_union]
                join(unions[these], given[some], (np.cumsum(these) - 1)[of_union[some]])
        self._kind[unions] = np.where(takes_mask, _MASK, _LIST)
        self._forget(self._let_go(unions))

    def _join_as_masks(self, unions: Integers, parts: Integers, owners: Integers) -> None:
        kernels, n_words = self._kernels, self._counter.n_words
        slots = self._slots(len(unions))
        is_mask = self._kind[parts] == _MASK
        begins = np.searchsorted(owners[is_mask], np.arange(len(unions) + 1))
        given = self._given(begins, self._at[parts[is_mask]], slots)
        grid, threads = (len(unions), -(-n_words // kernels.THREADS)), (kernels.THREADS,)
        kernels.unite(grid, threads, (*given, np.int64(n_words), self._masks))
        lists = parts[~is_mask]
        if len(lists):
            sizes = self._size[lists]
            given = self._given(self._at[lists], sizes, slots[owners[~is_mask]])
            grid = (len(lists), -(-int(sizes.max()) // kernels.THREADS))
            kernels.mark(grid, threads, (*given, self._lists, self._masks))
        self._at[unions] = slots

    def _join_as_lists(self, unions: Integers, parts: Integers, owners: Integers) -> None:
        begins, sizes = self._list_room(self._size[unions]), self._size[parts]
        before = np.cumsum(sizes) - sizes
        first = np.searchsorted(owners, owners)  # first part of the same union
        self._move(parts, begins[owners] + before - before[first], self._lists)
        self._at[unions] = begins

    def _move(self, sets: Integers, goals: Integers, lists: Any) -> None:
        """Copy lists of sets to these offsets of `lists`."""
        lengths = self._size[sets]
        if lengths.any():
            threads = self._kernels.THREADS
            grid = (len(sets), -(-int(lengths.max()) // threads))
            given = self._given(self._at[sets], goals, lengths)
            self._kernels.move_lists(grid, (threads,), (*given, self._lists, lists))

    def _given(self, *parts: Integers) -> list[Any]:
        """Copy these arrays to the device, in one transfer."""
        ends = np.cumsum([len(part) for part in parts]).tolist()
        whole = self._cp.asarray(np.concatenate(parts))
        return [whole[end - len(part) : end] for part, end in zip(parts, ends, strict=True)]

    def _pinned(self, n: int) -> NDArray[np.int32]:
        """Allocate pinned memory for counts, which the device can write to directly."""
        from cupyx import empty_pinned

        room: NDArray[np.int32] = empty_pinned(max(n, 1), np.int32)
        return room

    def _count(self, of: Integers, targets: Integers, offsets: Integers, n_cells: int, layout: Layout) -> Any:
        """Count histograms of sets, on the device."""
        out = self._cp.zeros(n_cells, np.int32)
        which, is_mask = layout.of_target[targets], self._kind[of] == _MASK
        binary = self._counter.is_binary
        masks = self._count_binary_masks if binary else self._count_masks
        lists = self._count_binary_lists if binary else self._count_lists
        for number in np.unique(which).tolist():
            n_rows = np.int64(layout.n_rows[number])
            for kind, count in ((True, masks), (False, lists)):
                some = np.flatnonzero((which == number) & (is_mask == kind))
                if len(some):
                    sizes = self._size[of[some]]
                    given = self._given(self._at[of[some]], sizes, targets[some], offsets[some])
                    count(given, self._layout(number, layout), n_rows, int(sizes.max()), out)
        return out

    def _layout(self, number: int, layout: Layout) -> _Entries:
        """Return on the device a layout's variables, their bases, and the bases of all variables (-1: none)."""
        if layout is not self._laid_out:
            self._laid_out, self._layouts = layout, {}
        if number not in self._layouts:
            entries = slice(int(layout.start[number]), int(layout.start[number + 1]))
            of_variable = np.full(len(layout.n_states), -1)
            of_variable[layout.variables[entries]] = layout.bases[entries]
            arrays = layout.variables[entries], layout.bases[entries], of_variable
            self._layouts[number] = tuple(map(self._cp.asarray, arrays))
        return self._layouts[number]

    def _count_binary_masks(self, given: list[Any], layout: _Entries, n_rows: Any, _: int, out: Any) -> None:
        kernels, counter, n = self._kernels, self._counter, len(given[0])
        n_groups = -(-len(counter.n_states) // kernels.PLANES)
        common = (layout[2], self._masks, counter.data[0], np.int64(counter.n_words), n_rows, out)
        grid = (n, -(-n_groups // kernels.WARPS))
        kernels.count_binary_masks(grid, (kernels.THREADS,), (*given, np.int64(len(counter.n_states)), *common))
        self._subtract(given, layout, n_rows, out)

    def _count_masks(self, given: list[Any], layout: _Entries, n_rows: Any, _: int, out: Any) -> None:
        kernels, counter, (planes, _rows) = self._kernels, self._counter, self._counter.data
        (slots, sizes, targets, offsets), n, (variables, bases, _all) = given, len(given[0]), layout
        n_entries, n_words = len(variables), np.int64(counter.n_words)
        common = (counter.states, counter.first, self._masks, planes, n_words)
        if n_entries:
            entries = (slots, targets, offsets, variables, bases)
            grid = (n, -(-n_entries // kernels.WARPS))
            kernels.count_masks(grid, (kernels.THREADS,), (*entries, *common, np.int64(n_entries), out))
        kernels.count_totals((n,), (32,), (slots, sizes, targets, offsets, *common, n_rows, out))
        self._subtract(given, layout, n_rows, out)

    def _subtract(self, given: list[Any], layout: _Entries, n_rows: Any, out: Any) -> None:
        """Compute the rows of first states by subtraction."""
        kernels, (variables, bases, _all), n = self._kernels, layout, len(given[0])
        if len(variables):
            arguments = (*given[2:], variables, bases, self._counter.states, np.int64(len(variables)), n_rows, out)
            kernels.subtract((n, -(-len(variables) // kernels.THREADS)), (kernels.THREADS,), arguments)

    def _count_binary_lists(self, given: list[Any], layout: _Entries, n_rows: Any, size: int, out: Any) -> None:
        kernels, counter, rows, n = self._kernels, self._counter, self._counter.data[1], len(given[0])
        threads = min(kernels.THREADS, -(-counter.n_octets // 32) * 32)
        grid = (n, max(1, -(-size // kernels.SUMMED)), -(-counter.n_octets // threads))
        sizes = np.int64(len(counter.n_states)), np.int64(counter.n_octets), n_rows
        octets = rows.view(np.uint64)
        kernels.count_binary_lists(grid, (threads,), (*given, layout[2], self._lists, rows, octets, *sizes, out))
        self._subtract(given, layout, n_rows, out)

    def _count_lists(self, given: list[Any], layout: _Entries, n_rows: Any, size: int, out: Any) -> None:
        kernels, rows, (variables, bases, _all) = self._kernels, self._counter.data[1], layout
        arguments = (*given, variables, bases, self._counter.states, self._lists, rows)
        n_entries = len(variables)
        grid = (len(given[0]), -(-(n_entries + 1) // kernels.THREADS), max(1, -(-size // kernels.CHUNK)))
        kernels.count_lists(grid, (kernels.THREADS,), (*arguments, np.int64(n_entries), n_rows, out))

    def _cut_masks(
        self,
        parents: Integers,
        variables: Integers,
        groups: Integers,
        at: Integers,
        owners: Integers,
        which: Integers,
        names: Integers,
    ) -> None:
        """Cut masks: children are masks at first; small ones are then converted to lists."""
        cp, kernels, counter = self._cp, self._kernels, self._counter
        slots, sizes = self._slots(len(names)), cp.zeros(len(names), np.int32)
        grid, threads = (len(names), -(-counter.n_words // kernels.THREADS)), (kernels.THREADS,)
        given = self._given(self._at[parents[owners]], variables[owners], which, groups, at[owners], slots)
        common = (counter.states, counter.first, self._masks, counter.data[0], np.int64(counter.n_words))
        kernels.cut_masks(grid, threads, (*given, *common, sizes))
        found = sizes.get().astype(np.int64)
        is_small = found <= counter.most_listed
        self._kind[names], self._at[names], self._size[names] = np.where(is_small, _UNKNOWN, _MASK), slots, found
        if is_small.any():
            small = names[is_small]
            begins = self._list_room(found[is_small])
            given = self._given(slots[is_small], begins)
            fill = cp.zeros(len(small), np.int32)
            grid = (len(small), grid[1])
            kernels.list_masks(grid, threads, (*given, self._masks, np.int64(counter.n_words), fill, self._lists))
            self._kind[small], self._at[small] = _LIST, begins
            self._free += slots[is_small].tolist()

    def _cut_lists(
        self,
        parents: Integers,
        variables: Integers,
        groups: Integers,
        at: Integers,
        owners: Integers,
        which: Integers,
        names: Integers,
    ) -> None:
        """Cut lists; children are lists."""
        cp, kernels = self._cp, self._kernels
        cuts = np.unique(owners)
        firsts, own = np.flatnonzero(which == 0), parents[cuts]
        rows, largest = self._counter.data[1], int(self._size[own].max())
        grid = (len(own), max(1, -(-largest // kernels.THREADS)))

        def run(is_counting: int, begins: Integers, fill: Any) -> None:
            lists = self._at[own], self._size[own]  # read again, since lists may have moved
            *given, goals = self._given(*lists, variables[cuts], groups, at[cuts], firsts, begins)
            arguments = (*given, self._lists, rows, np.int64(is_counting), goals, fill)
            kernels.cut_lists(grid, (kernels.THREADS,), arguments)

        sizes = cp.zeros(len(names), np.int32)
        run(1, np.zeros(1, np.int64), sizes)
        found = sizes.get().astype(np.int64)
        begins = self._list_room(found)
        run(0, begins, cp.zeros(len(names), np.int32))
        self._kind[names], self._at[names], self._size[names] = _LIST, begins, found

    def _slots(self, n: int) -> Integers:
        """Allocate n masks."""
        if n > len(self._free):
            old = len(self._masks)
            masks = self._counter.empty((max(2 * old, old + n), self._counter.n_words), np.uint64)
            masks[:old] = self._masks
            self._masks = masks
            self._free = [*range(len(masks) - 1, old - 1, -1), *self._free]
        slots, self._free = self._free[-n:], self._free[:-n]
        return np.array(slots, np.int64)

    def _list_room(self, sizes: Integers) -> Integers:
        """Allocate lists of these sizes and return their offsets; all other lists may move."""
        ends = np.cumsum(sizes)
        if self._n_listed + int(ends[-1]) > len(self._lists):
            live = np.flatnonzero(self._kind == _LIST)
            goals = np.cumsum(self._size[live]) - self._size[live]
            in_use = int(self._size[live].sum())
            lists = self._counter.empty(max(len(self._lists), 2 * (in_use + int(ends[-1]))), np.int32)
            if in_use:
                self._move(live, goals, lists)
                self._at[live] = goals
            self._lists, self._n_listed = lists, in_use
        begins: Integers = self._n_listed + ends - sizes
        self._n_listed += int(ends[-1])
        return begins


def _places(names: Integers) -> Integers:
    """Return the array indices of sets: names above zero and below it alternate."""
    places: Integers = np.where(names < 0, -2 * names - 1, 2 * names)
    return places


def _kernels() -> Any:
    """Import the kernels, without CuPy's warning that its compiler is experimental."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "cupyx.jit.rawkernel is experimental", FutureWarning)
        from leafwise.counters import gpu_kernels
    return gpu_kernels


def _cupy() -> Any:
    """Import CuPy, if it is installed and finds a GPU."""
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
