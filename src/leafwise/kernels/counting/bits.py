"""Counting by bits: a cell of a histogram is an AND of two bit masks and a popcount.

Sets with few cases are counted by rows instead if that is cheaper, and so are variables with many states.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, jit, separate
from leafwise.kernels.compiling.references import Packed, refer
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import popcount
from leafwise.kernels.counting.arrays import Layout, Planes
from leafwise.kernels.counting.planes import count_block, split_mask
from leafwise.kernels.counting.rows import (
    RowScratch,
    count_column,
    count_rows,
    make_row_scratch,
    unusual_cases,
    unusual_rows,
)
from leafwise.kernels.counting.sets import Cases, length_of, mask_of_part, rows_of_part

# Nanoseconds (benchmarks/crossing.py). By planes, each plane and state of the target costs a fixed part and a part per
# word. By rows, it costs a fixed part for writing, and each row a fixed part and a part per 512 bits.
_PLANE_COST, _WORD_COST = 3.0, 0.065
_WRITING_COST, _ROW_COST, _CHUNK_COST = 1.7, 2.0, 2.7
_LONG = 64  # words: planes of at least this length are counted four at a time


@inlined
def _count_classes(begin: Int, end: Int, classes: Array, totals: Array) -> None:
    for state in range(totals.shape[0]):
        n = 0
        for j in range(end - begin):
            word = np.uint64(begin + j)
            n += popcount(classes[state, word])
        totals[state] = n


@bare
def _count_four(classes: Array, words: Array, begin: Int, end: Int, plane: int, out: Array, at: int) -> None:
    """For a binary target, count state 1 of four binary variables whose planes and blocks are contiguous."""
    a, b, c, d = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    e, f, g, h = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for j in range(end - begin):
        word = np.uint64(begin + j)
        zero, one = classes[0, word], classes[1, word]
        a += popcount(zero & words[plane, word])
        b += popcount(one & words[plane, word])
        c += popcount(zero & words[plane + 1, word])
        d += popcount(one & words[plane + 1, word])
        e += popcount(zero & words[plane + 2, word])
        f += popcount(one & words[plane + 2, word])
        g += popcount(zero & words[plane + 3, word])
        h += popcount(one & words[plane + 3, word])
    out[at + 2], out[at + 3], out[at + 6], out[at + 7] = a, b, c, d
    out[at + 10], out[at + 11], out[at + 14], out[at + 15] = e, f, g, h


@bare
def _are_four(variables: Array, entry: int, n_words: Int, layout_states: Array, first: Array) -> bool:
    """Return whether the next four variables are binary and adjacent, with planes that are long enough."""
    if n_words < _LONG or entry + 4 > variables.shape[0] or variables[entry + 3] != variables[entry] + 3:
        return False
    for variable in range(variables[entry], variables[entry] + 4):
        if layout_states[variable] != 2 or first[variable] < 0:
            return False
    return True


@bare
def _count_binary(
    variables: Array,
    bases: Array,
    layout_states: Array,
    words: Array,
    begin: Int,
    end: Int,
    first: Array,
    classes: Array,
    totals: Array,
    out: Array,
) -> None:
    """For a binary target, count the blocks of all variables that have planes."""
    entry = 0
    while entry < variables.shape[0]:
        if _are_four(variables, entry, end - begin, layout_states, first):
            at = bases[entry] * 2
            _count_four(classes, words, begin, end, first[variables[entry]], out, at)
            for k in range(at, at + 16, 4):
                out[k], out[k + 1] = totals[0] - out[k + 2], totals[1] - out[k + 3]
            entry += 4
            continue
        variable = variables[entry]
        n_states = layout_states[variable]
        if first[variable] >= 0:
            at = bases[entry] * 2
            left_zeros, left_ones = totals[0], totals[1]
            for state in range(1, n_states):
                plane = first[variable] + state - 1
                zero, one = np.int64(0), np.int64(0)
                for j in range(end - begin):
                    word = np.uint64(begin + j)
                    zero += popcount(classes[0, word] & words[plane, word])
                    one += popcount(classes[1, word] & words[plane, word])
                out[at + 2 * state] = zero
                out[at + 2 * state + 1] = one
                left_zeros -= zero
                left_ones -= one
            out[at] = left_zeros
            out[at + 1] = left_ones
        entry += 1


@bare
def _count_many(
    variables: Array,
    bases: Array,
    layout_states: Array,
    words: Array,
    begin: Int,
    end: Int,
    first: Array,
    classes: Array,
    totals: Array,
    out: Array,
) -> None:
    """For a target of any number of states, count the blocks of all variables that have planes."""
    n_classes = totals.shape[0]
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        if first[variable] >= 0:
            at = bases[entry] * n_classes
            for k in range(n_classes):
                out[at + k] = totals[k]
            count_block(layout_states[variable], first[variable], begin, end, words, n_classes, classes, out, at)


class Scratch(NamedTuple):
    """Scratch memory of one thread for counting."""

    classes: Array  # masks: one for each state of a target, and one more
    by_rows: RowScratch


def make_scratch(most_rows: int, n_states: Array, data: Planes) -> Scratch:
    """Allocate scratch memory for sets of at most most_rows cases, for any target."""
    return Scratch(
        np.empty((n_states[data.first >= 0].max(initial=2) + 1, data.words.shape[1]), np.uint64),
        make_row_scratch(most_rows, n_states.max(initial=0), data.width),
    )


@inlined
def _by_planes(size: float, n_words: Int, n_variables: int, n_classes: int, data: Planes) -> bool:
    """Return whether planes are the cheaper way to count `size` cases in n_words words, for this many variables."""
    n_planes = data.words.shape[0] * n_variables / data.first.shape[0]
    by_planes = _PLANE_COST + _WORD_COST * n_words - _WRITING_COST
    return n_planes * n_classes * by_planes < size * (_ROW_COST + _CHUNK_COST * -(-data.width // 8))


@bare
def size_of(target: int, layout: Layout) -> int:
    """Return the number of cells of a histogram of the target."""
    return (layout.n_rows[layout.of_target[target]] + 1) * layout.n_states[target]


@separate
def count_set(
    number: int,
    target: int,
    at: int,
    begin: int,
    end: int,
    cells: Array,
    layout: Layout,
    cases: Cases,
    scratch: Scratch,
) -> None:
    """Count the histogram of a set into cells[at:], by planes if these are cheaper, otherwise by rows.

    Only a part of the set is counted: words begin to end - 1 of its mask, or these rows of its list. If `end` is -1,
    all of it is.
    """
    data, set_, out = cases.data, cases.sets[number], cells[at : at + size_of(target, layout)]
    n_classes, is_whole = layout.n_states[target], end < 0
    which = layout.of_target[target]
    variables = layout.variables[layout.start[which] : layout.start[which + 1]]
    bases = layout.bases[layout.start[which] : layout.start[which + 1]]
    own, totals, by_rows = data.columns[target], out[layout.n_rows[which] * n_classes :], scratch.by_rows
    length = length_of(set_, cases.masks)
    stop, is_all = length if is_whole else np.int64(end), is_whole and set_["size"] == cases.n_cases
    first, last = (np.int64(begin), stop) if set_["is_mask"] else (np.int64(0), np.int64(data.words.shape[1]))
    size = np.float64(unusual_cases(target, data)) if is_all else set_["size"] * (stop - begin) / max(length, 1)
    if data.first[target] < 0 or not _by_planes(size, last - first, variables.shape[0], n_classes, data):
        if is_all:
            n = unusual_rows(target, cases, scratch.classes[0], by_rows.rows)
        else:
            n = rows_of_part(set_, begin, stop, cases.masks, cases.lists, by_rows.rows)
        n_usual = set_["size"] - n if is_all else np.int64(0)
        count_rows(n, n_usual, target, variables, bases, data, by_rows, out, totals)
        return
    classes = scratch.classes
    mask = mask_of_part(set_, begin, stop, cases.masks, cases.lists, classes[n_classes])
    split_mask(mask, first, last, data.first[target], n_classes, data.words, classes)
    _count_classes(first, last, classes, totals)
    if n_classes == 2:
        _count_binary(variables, bases, layout.n_states, data.words, first, last, data.first, classes, totals, out)
    else:
        _count_many(variables, bases, layout.n_states, data.words, first, last, data.first, classes, totals, out)
    n = np.int64(0)
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        if data.first[variable] < 0:
            if n == 0:
                n = rows_of_part(set_, begin, stop, cases.masks, cases.lists, by_rows.rows)
            block = out[bases[entry] * n_classes : (bases[entry] + layout.n_states[variable]) * n_classes]
            count_column(by_rows.rows[:n], data.columns[variable], own, n_classes, block)


@bare
def cost_of(number: int, target: int, layout: Layout, cases: Cases) -> float:
    """Return the estimated nanoseconds to count a set."""
    data, by_rows = cases.data, cases.sets[number]["size"] * (_ROW_COST + _CHUNK_COST * -(-cases.data.width // 8))
    return size_of(target, layout) + min(by_rows, _WORD_COST * size_of(target, layout) * data.words.shape[1])


def call(layout: Layout, cases: Cases) -> tuple[Any, ...]:
    """Return an example call of `count_set`, to have it compiled (`ready`)."""
    scratch = make_scratch(0, layout.n_states, cases.data)
    return count_set, 0, 0, 0, 0, 0, np.empty(0, np.int32), Packed(layout), Packed(cases), Packed(scratch)


@jit
def count_sets(
    requests: Array, first: int, last: int, histograms: Array, layout: Layout, cases: Cases, scratch: Scratch
) -> None:
    """Count the histograms of requests first to last - 1: rows (set, target, offset, begin, end) as in `count_set`."""
    layout, cases, scratch = refer(layout), refer(cases), refer(scratch)
    for r in range(first, last):
        row = requests[r]
        count_set(row[0], row[1], row[2], row[3], row[4], histograms, layout, cases, scratch)
