"""A table by rows: what is not usual about each case, listed when a table is laid out, and counting by these lists.

In sparse data a case has few unusual values, and counting a set takes time in proportion to these.
"""

from typing import Any

import numpy as np

from leafwise.kernels.arrays import Array, Int, Planes
from leafwise.kernels.jit import bare, inlined, jit
from leafwise.kernels.planes import planes_of
from leafwise.kernels.sets import Cases, list_bits, rows_of
from leafwise.kernels.words import lowest, popcount

BLOCK = 8  # words of planes that are turned into rows in one go: a cache line


@bare
def _mark_unusual(column: Array, usual: int, planes: Array, first: Int, out: Array) -> None:
    """Write the words from the first on of a mask of the cases that are not in the usual state."""
    n_cases, n_planes = column.shape[0], planes.shape[0]
    for k in range(out.shape[0]):
        begin, bits = (first + k) * 64, np.uint64(0)
        n = min(64, n_cases - begin)
        if n_planes == 0:
            for bit in range(n):
                bits |= np.uint64(column[begin + bit] != usual) << np.uint64(bit)
        elif usual > 0:
            bits = ~planes[usual - 1, first + k] & (~np.uint64(0) >> np.uint64(64 - n))
        else:
            for plane in range(n_planes):
                bits |= planes[plane, first + k]
        out[k] = bits


@jit
def count_listed(begin: int, end: int, n_listed: Array, data: Planes) -> None:
    """For each of some blocks, how many values its cases will list."""
    marks, n_words = np.empty(BLOCK, np.uint64), data.words.shape[1]
    for block in range(begin, end):
        first, n = block * BLOCK, np.int64(0)
        words = marks[: min(BLOCK, n_words - first)]
        for variable in range(data.columns.shape[0]):
            _mark_unusual(data.columns[variable], data.usual[variable], planes_of(variable, data), first, words)
            for k in range(words.shape[0]):
                n += popcount(words[k])
        n_listed[block] = n


@jit
def list_values(begin: int, end: int, at: Array, data: Planes) -> None:
    """List the values of the cases of some blocks, each block's from at[block] to at[block + 1]."""
    most, n_words, n_cases = 0, data.words.shape[1], data.columns.shape[1]
    for block in range(begin, end):
        most = max(most, at[block + 1] - at[block])
    marks, ends = np.empty(BLOCK, np.uint64), np.empty(BLOCK * 64, np.int64)
    found, cases = np.empty(most, data.listed.dtype), np.empty(most, np.uint16)
    for block in range(begin, end):
        first, n = block * BLOCK, 0
        words = marks[: min(BLOCK, n_words - first)]
        ends[:] = 0
        for variable in range(data.columns.shape[0]):
            column, value = data.columns[variable, first * 64 :], data.values[variable]
            _mark_unusual(data.columns[variable], data.usual[variable], planes_of(variable, data), first, words)
            for k in range(words.shape[0]):
                bits = words[k]
                while bits != np.uint64(0):
                    case = k * 64 + lowest(bits)
                    found[n], cases[n] = value + np.int64(column[case]), case
                    ends[case] += 1
                    n += 1
                    bits &= bits - np.uint64(1)
        here = at[block]
        for case in range(min(BLOCK * 64, n_cases - first * 64)):
            data.begin[first * 64 + case] = here
            here += ends[case]
            ends[case] = here - ends[case]
        for k in range(n):
            data.listed[ends[cases[k]]] = found[k]
            ends[cases[k]] += 1


@bare
def unusual_cases(variable: int, data: Planes) -> int:
    """How many cases are not in the variable's usual state."""
    return data.columns.shape[1] - data.counts[data.values[variable] + data.usual[variable]]


@bare
def place_values(variables: Array, bases: Array, n_states: Array, values: Array, places: Array) -> None:
    """Note the row of each value in histograms that cover these variables; -1: none."""
    for value in range(places.shape[0]):
        places[value] = -1
    for entry in range(variables.shape[0]):
        for state in range(n_states[variables[entry]]):
            places[values[variables[entry]] + state] = bases[entry] + state


@inlined
def _rows_to_count(set_: Any, target: int, cases: Cases, marks: Array, rows: Array) -> int:
    """The set's rows; of all cases, only those whose target is not usual, as the others follow by subtraction."""
    if set_["size"] < cases.n_cases:
        return rows_of(set_, cases.masks, cases.lists, rows)
    data = cases.data
    _mark_unusual(data.columns[target], data.usual[target], planes_of(target, data), np.int64(0), marks)
    list_bits(marks, rows, np.int64(0))
    return unusual_cases(target, data)


@bare
def _add_usual(variables: Array, bases: Array, n_states: Array, usual: Array, totals: Array, out: Array) -> None:
    """The counts of the candidates' usual states, by subtraction."""
    n_classes = totals.shape[0]
    zeros, ones = totals[0], totals[n_classes - 1]
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        at, usual_at = bases[entry] * n_classes, (bases[entry] + usual[variable]) * n_classes
        if n_classes == 2 and n_states[variable] == 2:
            other = 2 * at + 2 - usual_at
            out[usual_at], out[usual_at + 1] = zeros - out[other], ones - out[other + 1]
            continue
        for k in range(n_classes):
            n = totals[k]
            out[usual_at + k] = 0
            for state in range(n_states[variable]):
                n -= out[at + state * n_classes + k]
            out[usual_at + k] = n


@bare
def _add_usual_class(
    usual: int, variables: Array, bases: Array, values: Array, counts: Array, n_classes: int, out: Array
) -> None:
    """The counts of the target's usual state, by subtraction from those of all cases."""
    for entry in range(variables.shape[0]):
        at = bases[entry] * n_classes
        for value in range(values[variables[entry]], values[variables[entry] + 1]):
            if n_classes == 2:
                out[at + usual] = counts[value] - out[at + 1 - usual]
                at += 2
                continue
            n = counts[value]
            for k in range(n_classes):
                n -= out[at + k]
            out[at + usual] += n
            at += n_classes


@bare
def _increment(rows: Array, own: Array, begin: Array, listed: Array, places: Array, totals: Array, out: Array) -> None:
    """One increment for each value that is listed for each row."""
    n_classes = totals.shape[0]
    for k in range(rows.shape[0]):
        row = rows[k]
        state = np.int64(own[row])
        totals[state] += 1
        for at in range(begin[row], begin[row + 1]):
            place = places[listed[at]]
            if place >= 0:
                out[place * n_classes + state] += 1


@bare
def count_rows(
    set_: Any,
    target: int,
    variables: Array,
    bases: Array,
    n_states: Array,
    cases: Cases,
    marks: Array,
    rows: Array,
    places: Array,
    out: Array,
    totals: Array,
) -> None:
    """One histogram, by rows."""
    data = cases.data
    for cell in range(out.shape[0]):
        out[cell] = 0
    n = _rows_to_count(set_, target, cases, marks, rows)
    _increment(rows[:n], data.columns[target], data.begin, data.listed, places, totals, out)
    if n < set_["size"]:
        usual = data.usual[target]
        totals[usual] = set_["size"] - n
        _add_usual_class(usual, variables, bases, data.values, data.counts, totals.shape[0], out)
    _add_usual(variables, bases, n_states, data.usual, totals, out)
