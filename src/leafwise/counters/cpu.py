"""Counting on this machine's cores. Knows the table, the kernels and threads; not what the counts are for."""

from collections import ChainMap
from collections.abc import Callable, Sequence
from ctypes import c_char
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Codes, Integers, Session
from leafwise.data.table import Table
from leafwise.kernels.compiling.jit import ready
from leafwise.kernels.counting import bits, packing, sets
from leafwise.kernels.counting.arrays import Layout, Planes, grown
from leafwise.machine import n_bytes
from leafwise.workers import Workers

_PACKING_NS = 0.1  # per case and plane, and again for rows
_FEW_NS = 2e6  # layouts of at most this cost are made ahead of time; larger ones by all threads, when needed
_MOST_PLANE_STATES = 32  # columns with more states have no planes; their bits are stored twice, as planes and rows
_FEWER_PLANE_STATES, _MANY = 8, 2**27  # limit on states if there are many codes, whose size the bits would exceed
_SETS, _SETS_A_VARIABLE = 8192, 16  # initial number of sets; memory is not touched before it is used
_ROOM = 2**24  # initial bytes of masks, and half as many of lists
_MORE_ROOM = 2**28  # most initial bytes to have _FEW_SETS masks: copying them later takes longer than the search
_FEW_SETS = 4096
_SHARE = 1 / 4  # of the machine's memory, reserved for future lists; only what they take is touched
_FULL = 3 / 4  # if a smaller share of all list entries is in use, lists are compacted before they grow


class CpuCounter:
    """A `LocalCounter` over a table in memory. Its own arrays are made when they are first needed.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> CpuCounter(sample(alarm(), 500, seed=1)).n_cases
    500
    """

    lookahead = 0.7
    overlaps = False

    def __init__(
        self,
        table: Table,
        workers: Workers | None = None,
        unit: float = 1.0,
        shown: NDArray[np.bool_] | None = None,
    ) -> None:
        self.variables, self.n_cases, self.unit = table.variables, table.n_cases, unit
        self._table, self.shown = table, shown
        self._workers = workers or Workers()
        self._laid_out: Callable[[], Planes] | None = None
        self._can_count = False  # whether compiled functions are ready
        self.n_states = table.n_states

    @cached_property
    def _sets(self) -> NDArray[np.void]:
        all_sets = np.zeros(max(_SETS_A_VARIABLE * len(self.variables), _SETS), sets.SET)
        all_sets[EVERYTHING] = (len(self._masks) - 1, self.n_cases, True)
        return all_sets

    @cached_property
    def _masks(self) -> NDArray[np.uint64]:
        n_words = -(-self.n_cases // 64)
        n_masks = max(_ROOM // (8 * n_words), min(_FEW_SETS, _MORE_ROOM // (8 * n_words)))
        masks = np.empty((max(8, min(_SETS, n_masks)), n_words), np.uint64)
        masks[-1] = np.uint64(2**64 - 1)
        masks[-1, -1] >>= np.uint64(64 * n_words - self.n_cases)
        return masks

    @cached_property
    def _free(self) -> Integers:
        return np.arange(len(self._masks))  # stack of the indices of free masks

    @cached_property
    def _lists(self) -> NDArray[np.int32]:
        return self._room_for_lists[: max(_ROOM, self._masks.nbytes) // 8]

    @cached_property
    def _room_for_lists(self) -> NDArray[np.int32]:
        most = min(2 * self.n_cases * len(self.variables), int(_SHARE * n_bytes()) // 4)
        return np.empty(max(most, _ROOM // 8, self._masks.nbytes // 8), np.int32)

    @cached_property
    def _marks(self) -> Integers:
        return np.array([EVERYTHING + 1, len(self._masks) - 1, 0])

    @property
    def local(self) -> "CpuCounter":
        return self

    def session(self) -> "CpuSession":
        return CpuSession(self)

    def name_sets(self, session: Session, all_rows: Sequence[Integers]) -> list[int]:
        assert isinstance(session, CpuSession)
        first = self._place(np.array([len(rows) for rows in all_rows], np.int64))
        names = range(EVERYTHING + 1, EVERYTHING + 1 + len(all_rows))
        for name, rows in zip(names, all_rows, strict=True):
            number = session.numbers[name] = first + name - names[0]
            offset, size, is_mask = self._sets[number].tolist()
            if is_mask:
                bits = np.zeros(64 * self._masks.shape[1], np.bool_)
                bits[rows] = True
                self._masks[offset] = np.packbits(bits, bitorder="little").view(np.uint64)
            else:
                self._lists[offset : offset + size] = rows
        return list(names)

    def take(self, session: Session, names: Integers) -> Integers:
        assert isinstance(session, CpuSession)
        return np.array([session.numbers.pop(name) if name else EVERYTHING for name in names.tolist()], np.int64)

    def copying(self, variables: list[int]) -> "CpuCounter":
        shown = None if self.shown is None else np.concatenate([self.shown, self.shown[variables]])
        return CpuCounter(self._table.copying(variables), self._workers, self.unit, shown)

    def release_numbers(self, gone: Integers) -> None:
        sets.release_sets(gone, self.cases)

    def cut_sets(self, parents: Integers, variables: Integers, n_children: Integers, groups: Integers) -> int:
        """Cut sets by their numbers; return the number of the first child, which the others follow."""
        requests = np.empty(len(parents), sets.CUT)
        requests["parent"], requests["variable"] = parents, variables
        requests["n_states"] = self.n_states[variables]
        requests["group"] = np.cumsum(requests["n_states"]) - requests["n_states"]
        requests["n_children"] = n_children
        requests["first_child"] = np.cumsum(n_children) - n_children
        costs = np.where(self._sets["is_mask"][parents], self._masks.shape[1], self._sets["size"][parents]) + 0.0
        cases, sizes = self.cases, np.empty(int(n_children.sum()), np.int64)
        self._workers.run(lambda begin, end: sets.size_children(requests, groups, begin, end, cases, sizes), costs)
        first = self._place(sizes)
        requests["first_child"] += first
        cases = self.cases
        self._workers.run(lambda begin, end: sets.cut_sets(requests, groups, begin, end, cases), costs)
        return first

    @property
    def next_number(self) -> int:
        """The number of the next set."""
        return int(self._marks[sets.N_SETS])

    def join_sets(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Make unions of disjoint sets, by their numbers; a pair may refer to unions of earlier pairs."""
        begin, known = self.next_number, self._sets["size"]
        sizes: list[int] = []
        for pair in pairs:
            sizes.append(sum(sizes[one - begin] if one >= begin else int(known[one]) for one in pair))
        self._place(np.array(sizes, np.int64))
        sets.join_sets(np.array([(*pair, begin + k) for k, pair in enumerate(pairs)], np.int64), self.cases)

    def count_sets(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        """Return the histograms of sets by their numbers."""
        room = (layout.n_rows[layout.of_target[targets]] + 1) * layout.n_states[targets]
        requests = np.stack([of, targets, np.cumsum(room) - room, np.zeros_like(of), np.full_like(of, -1)], axis=1)
        sizes = np.minimum(self._sets["size"][of], self._masks.shape[1])
        costs = sizes * layout.n_rows[layout.of_target[targets]] * 0.1
        histograms, cases = np.empty(int(room.sum()), np.int32), self.cases
        most_rows = max(self._sets["size"][of], default=0)

        def count(begin: int, end: int) -> None:
            scratch = bits.make_scratch(most_rows, self.n_states, cases.data)
            bits.count_sets(requests, begin, end, histograms, layout, cases, scratch)

        if not self._can_count:
            ready(bits.call(layout, cases))
            self._can_count = True
        self._workers.run(count, costs)
        return histograms

    @property
    def codes(self) -> Codes:
        return self._table.codes

    def prepare(self) -> None:
        if self._laid_out is None:
            self._laid_out = _lay_out(self._table, self._workers)

    @cached_property
    def _data(self) -> Planes:
        self.prepare()
        assert self._laid_out is not None
        return self._laid_out()

    @property
    def no_cases(self) -> sets.Cases:
        return sets.no_cases(self._table.codes)

    @property
    def cases(self) -> sets.Cases:
        return sets.Cases(self._sets, self._masks, self._free, self._lists, self._marks, self.n_cases, self._data)

    def make_room(self, sizes: Integers) -> None:
        """Make space for sets of these sizes where it is short; arrays at least double."""
        is_mask = sizes * 32 >= self.n_cases
        n_masks, n_rows = int(is_mask.sum()), int(sizes[~is_mask].sum())
        used_sets, free_masks, used_rows = self._marks.tolist()
        if used_sets + len(sizes) > len(self._sets):
            self._sets = grown(self._sets, used_sets + len(sizes))
        if n_masks > free_masks:
            old = len(self._masks)
            masks = grown(self._masks, old + n_masks)
            free = grown(self._free, len(masks))
            free[free_masks : free_masks + len(masks) - old] = np.arange(old, len(masks))
            self._masks, self._free = masks, free
            self._marks[sets.N_FREE] += len(masks) - old
        if used_rows + n_rows > len(self._lists):
            in_use = int(self._sets["size"][self._sets["is_mask"] == 0].sum())
            if in_use < _FULL * used_rows:
                sets.close_gaps(self._sets, self._lists, self._marks)
            wanted, room = max(2 * (in_use + n_rows), len(self._lists)), self._room_for_lists
            if wanted > len(room):
                used_rows, room = int(self._marks[sets.N_LISTED]), np.empty(wanted, np.int32)
                room[:used_rows] = self._lists[:used_rows]
            self._lists, self._room_for_lists = room[:wanted], room  # one statement: an interrupt cannot separate them

    def _place(self, sizes: Integers) -> int:
        """Allocate records and memory for new sets of these sizes; return the number of the first."""
        self.make_room(sizes)
        return sets.place_sets(sizes, self.cases)


class CpuSession:
    """Sets of a `CpuCounter` by a search's own names."""

    def __init__(self, counter: CpuCounter) -> None:
        self._counter = counter
        self.numbers = {EVERYTHING: EVERYTHING}

    def cut(self, parents: Integers, variables: Integers, groups: Integers, children: Integers) -> None:
        self.release(children)  # if a request is repeated
        begin = np.cumsum(self._counter.n_states[variables]) - self._counter.n_states[variables]
        n_children = np.maximum.reduceat(groups, begin) + 1
        first = self._counter.cut_sets(self._of(parents), variables, n_children, groups)
        self.numbers.update(zip(children.tolist(), range(first, first + len(children)), strict=True))

    def join(self, first: Integers, second: Integers, unions: Integers) -> None:
        self.release(unions)
        begin = self._counter.next_number
        new = dict(zip(unions.tolist(), range(begin, begin + len(unions)), strict=True))
        known = ChainMap(new, self.numbers)
        pairs = [(known[one], known[two]) for one, two in zip(first.tolist(), second.tolist(), strict=True)]
        if pairs:
            self._counter.join_sets(pairs)
            self.numbers.update(new)

    def count(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        return self._counter.count_sets(self._of(of), targets, layout)

    def release(self, gone: Integers) -> None:
        known = [self.numbers.pop(name) for name in gone.tolist() if name != EVERYTHING and name in self.numbers]
        if known:
            self._counter.release_numbers(np.array(known, np.int64))

    def close(self) -> None:
        self.release(np.array(list(self.numbers), np.int64))

    def _of(self, names: Integers) -> Integers:
        return np.array([self.numbers[name] for name in names.tolist()], np.int64)


def _writable(codes: Codes) -> Codes:
    """Return a writable view of the same memory, since kernels would be compiled again for read-only arrays.

    Kernels do not write to it.
    """
    if codes.flags.writeable:
        return codes
    memory: Any = (c_char * codes.nbytes).from_address(codes.ctypes.data)
    return np.frombuffer(memory, codes.dtype).reshape(codes.shape)


def _lay_out(table: Table, workers: Workers) -> Callable[[], Planes]:
    """Begin to lay out a table for counting, ahead of time if that is quick; calling the result completes it."""
    n_states, n, n_cases = table.n_states, table.n_variables, table.n_cases
    has_planes = n_states <= (_MOST_PLANE_STATES if table.codes.size <= _MANY else _FEWER_PLANE_STATES)
    ends = np.cumsum(np.where(has_planes, n_states - 1, 0))
    first, values = np.where(has_planes, ends - n_states + 1, -1), np.append(0, np.cumsum(n_states))
    n_planes, n_words = int(ends[-1]) if n else 0, -(-n_cases // 64)
    words, width = np.empty((n_planes, n_words), np.uint64), -(-n_planes // 64)
    rows = np.empty((n_cases + 1) * width + packing.SPARE, np.uint64)
    rows[n_cases * width :] = 0
    ones, are_binary = np.empty(n_planes, np.int32), bool((n_states == 2).all())
    counts, usual = np.empty(values[-1], np.int64), np.empty(n, np.int64)
    data = Planes(_writable(table.codes), words, first, rows, width, ones, are_binary, values, counts, usual)
    costs = [_PACKING_NS * n_cases * n_states, np.full(-(-n_words // packing.BLOCK), _PACKING_NS * 512 * n_planes)]

    def pack() -> Planes:
        workers.run(lambda begin, end: packing.pack_columns(begin, end, data), costs[0])
        workers.run(lambda begin, end: packing.pack_rows(begin, end, data), costs[1])
        return data

    return workers.ahead(pack) if sum(of_all.sum() for of_all in costs) <= _FEW_NS else pack
