"""Counting by rows, which list what is not usual about each case.

In sparse data a case has few unusual values, and counting a set takes time in proportion to these.
"""

from typing import Any

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.counting.arrays import Planes
from leafwise.kernels.counting.planes import mark_unusual
from leafwise.kernels.counting.sets import Cases, list_bits, rows_of


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
    mark_unusual(target, np.int64(0), marks, data)
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
