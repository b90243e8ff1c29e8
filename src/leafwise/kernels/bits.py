"""Counting by bits: a histogram's cell is an AND of two bit masks and a popcount.

Sets with few cases, and variables with many states, are counted by increments instead, whichever is the cheaper.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.arrays import Array, Layout, Planes
from leafwise.kernels.jit import bare, inlined, jit, part
from leafwise.kernels.sets import Cases, mask_of, rows_of
from leafwise.kernels.words import popcount

# Nanoseconds: a plane costs a fixed part and a part for each word, a row one increment (benchmarks/crossing.py).
_PLANE_COST, _WORD_COST, _ROW_COST = 3.5, 0.095, 1.6
_LONG = 64  # words: planes at least so long are counted four at a time


@bare
def pack_state(column: Array, state: int, plane: Array) -> None:
    """Set bit c of the plane where case c of the column is in the state."""
    for word in range(plane.shape[0]):
        bits = np.uint64(0)
        first = word * 64
        for bit in range(min(64, column.shape[0] - first)):
            if column[first + bit] == state:
                bits |= np.uint64(1) << np.uint64(bit)
        plane[word] = bits


@jit
def pack(begin: int, end: int, n_states: Array, data: Planes) -> None:
    """Fill the planes of the variables from one to another."""
    for variable in range(begin, end):
        if data.first[variable] >= 0:
            for state in range(1, n_states[variable]):
                pack_state(data.columns[variable], state, data.words[data.first[variable] + state - 1])


@inlined
def _class_masks(mask: Array, target: int, words: Array, first: Array, classes: Array, totals: Array) -> None:
    """Split the mask by the target's states, one row of `classes` each, and count each part."""
    for word in range(mask.shape[0]):
        classes[0, word] = mask[word]
    for state in range(1, totals.shape[0]):
        plane = first[target] + state - 1
        for word in range(mask.shape[0]):
            classes[state, word] = mask[word] & words[plane, word]
            classes[0, word] &= ~words[plane, word]
    for state in range(totals.shape[0]):
        n = 0
        for word in range(mask.shape[0]):
            n += popcount(classes[state, word])
        totals[state] = n


@bare
def _count_four(classes: Array, words: Array, plane: int, out: Array, at: int) -> None:
    """For a binary target: state 1 of four binary variables at a time, whose planes and blocks follow each other."""
    a, b, c, d = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    e, f, g, h = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for word in range(words.shape[1]):
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
def _are_four(variables: Array, entry: int, n_words: int, layout_states: Array, first: Array) -> bool:
    """Whether the next four variables are binary and follow each other, and their planes are long enough."""
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
    most_states: int,
    layout_states: Array,
    words: Array,
    first: Array,
    classes: Array,
    totals: Array,
    out: Array,
) -> None:
    """For a binary target: the blocks of all variables that are counted by planes."""
    entry = 0
    while entry < variables.shape[0]:
        if _are_four(variables, entry, words.shape[1], layout_states, first):
            at = bases[entry] * 2
            _count_four(classes, words, first[variables[entry]], out, at)
            for k in range(at, at + 16, 4):
                out[k], out[k + 1] = totals[0] - out[k + 2], totals[1] - out[k + 3]
            entry += 4
            continue
        variable = variables[entry]
        n_states = layout_states[variable]
        if n_states <= most_states and first[variable] >= 0:
            at = bases[entry] * 2
            left_zeros, left_ones = totals[0], totals[1]
            for state in range(1, n_states):
                plane = first[variable] + state - 1
                zero, one = np.int64(0), np.int64(0)
                for word in range(words.shape[1]):
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
    most_states: int,
    layout_states: Array,
    words: Array,
    first: Array,
    classes: Array,
    totals: Array,
    out: Array,
) -> None:
    """The same for a target of any number of states: two of these at a time, as each plane is read."""
    n_classes = totals.shape[0]
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        n_states = layout_states[variable]
        if n_states > most_states or first[variable] < 0:
            continue
        at = bases[entry] * n_classes
        for k in range(n_classes):
            out[at + k] = totals[k]
        for state in range(1, n_states):
            plane, row = first[variable] + state - 1, at + state * n_classes
            for k in range(0, n_classes - 1, 2):
                n, m = np.int64(0), np.int64(0)
                for word in range(words.shape[1]):
                    n += popcount(classes[k, word] & words[plane, word])
                    m += popcount(classes[k + 1, word] & words[plane, word])
                out[row + k], out[row + k + 1] = n, m
                out[at + k] -= n
                out[at + k + 1] -= m
            if n_classes % 2 == 1:
                n = np.int64(0)
                for word in range(words.shape[1]):
                    n += popcount(classes[n_classes - 1, word] & words[plane, word])
                out[row + n_classes - 1] = n
                out[at + n_classes - 1] -= n


@inlined
def _count_rows(
    rows: Array, codes: Array, target: int, candidates: Array, starts: Array, n_classes: int, out: Array
) -> None:
    """One increment for each row and candidate."""
    for k in range(rows.shape[0]):
        row = rows[k]
        shift = np.int64(codes[row, target])
        for c in range(candidates.shape[0]):
            out[starts[c] + np.int64(codes[row, candidates[c]]) * n_classes + shift] += 1


@inlined
def _left_to_rows(
    target: int,
    variables: Array,
    bases: Array,
    most_states: int,
    layout_states: Array,
    first: Array,
    out: Array,
    candidates: Array,
    starts: Array,
) -> int:
    """The candidates that planes do not serve: their blocks are cleared and their places noted; how many."""
    n_classes = layout_states[target]
    n = 0
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        n_states = layout_states[variable]
        if variable == target or n_states > most_states or first[variable] < 0:
            at = bases[entry] * n_classes
            for cell in range(at, at + n_states * n_classes):
                out[cell] = 0
            if variable != target:
                candidates[n] = variable
                starts[n] = at
                n += 1
    return n


@inlined
def _most_plane_states(n_cases: int, n_classes: int, n_words: int) -> int:
    """Up to how many states of a variable planes are the cheaper way to count so many cases."""
    return 1 + int(_ROW_COST * n_cases / (n_classes * (_PLANE_COST + _WORD_COST * n_words)))


class Scratch(NamedTuple):
    """Where one thread counts."""

    classes: Array  # masks, one for each state of a target, and one more
    rows: Array
    candidates: Array
    starts: Array


@part
def make_scratch(most_classes: int, most_rows: int, layout: Layout, cases: Cases) -> Scratch:
    """Room to count sets of so many cases, for targets of so many states."""
    return Scratch(
        np.empty((most_classes + 1, cases.data.words.shape[1]), np.uint64),
        np.empty(most_rows, np.int32),
        np.empty(layout.n_states.shape[0], np.int64),
        np.empty(layout.n_states.shape[0], np.int64),
    )


@bare
def count_set(set_: Any, target: int, out: Array, layout: Layout, cases: Cases, scratch: Scratch) -> None:
    """One histogram, by planes where these are cheaper, else in one pass over the rows."""
    data = cases.data
    n_classes = layout.n_states[target]
    which = layout.of_target[target]
    variables = layout.variables[layout.start[which] : layout.start[which + 1]]
    bases = layout.bases[layout.start[which] : layout.start[which + 1]]
    totals = out[layout.n_rows[which] * n_classes :]
    most = _most_plane_states(set_["size"], n_classes, data.words.shape[1])
    if data.first[target] < 0 or most < 2:
        most = 0
    else:
        classes = scratch.classes
        mask = mask_of(set_, cases.masks, cases.lists, classes[n_classes])
        _class_masks(mask, target, data.words, data.first, classes, totals)
        if n_classes == 2:
            _count_binary(variables, bases, most, layout.n_states, data.words, data.first, classes, totals, out)
        else:
            _count_many(variables, bases, most, layout.n_states, data.words, data.first, classes, totals, out)
    candidates, starts = scratch.candidates, scratch.starts
    n_left = _left_to_rows(target, variables, bases, most, layout.n_states, data.first, out, candidates, starts)
    if n_left > 0 or most == 0:
        n = rows_of(set_, cases.masks, cases.lists, scratch.rows)
        rows = scratch.rows[:n]
        _count_rows(rows, data.rows, target, candidates[:n_left], starts[:n_left], n_classes, out)
        if most == 0:
            for k in range(n_classes):
                totals[k] = 0
            for k in range(n):
                totals[data.rows[rows[k], target]] += 1


@bare
def size_of(target: int, layout: Layout) -> int:
    """How many cells a histogram of the target has."""
    return (layout.n_rows[layout.of_target[target]] + 1) * layout.n_states[target]


@jit
def count_sets(requests: Array, begin: int, end: int, histograms: Array, layout: Layout, cases: Cases) -> None:
    """For each requested row (set, target, offset): the histogram of the set's cases."""
    most_rows, most_classes = 0, 2
    for r in range(begin, end):
        most_rows = max(most_rows, cases.sets[requests[r, 0]]["size"])
        if cases.data.first[requests[r, 1]] >= 0:
            most_classes = max(most_classes, layout.n_states[requests[r, 1]])
    scratch = make_scratch(most_classes, most_rows, layout, cases)
    for r in range(begin, end):
        target = requests[r, 1]
        out = histograms[requests[r, 2] : requests[r, 2] + size_of(target, layout)]
        count_set(cases.sets[requests[r, 0]], target, out, layout, cases, scratch)
