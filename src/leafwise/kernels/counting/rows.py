"""Counting by rows of bits: eight rows at a time are added, in 512 bit positions at once.

A set takes a few nanoseconds per case and 512 planes, however many of these have the case's bit set.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import MOST_ROWS, add_eight, add_sums
from leafwise.kernels.counting.arrays import Planes
from leafwise.kernels.counting.planes import mark_unusual
from leafwise.kernels.counting.sets import Cases, list_bits


class RowScratch(NamedTuple):
    """Scratch memory of one thread for counting by rows."""

    rows: Array  # row numbers of a set
    by_state: Array  # the same, sorted by the target's state; each state is padded to a multiple of eight
    ends: Array  # by state: index of its end
    sums: Array  # bit-sliced sums of the rows so far (words.py)
    counts: Array  # (2, bits): number of ones of each bit, for two states


def make_row_scratch(most_rows: int, most_states: int, width: int) -> RowScratch:
    """Allocate scratch memory for sets of at most most_rows cases and targets of at most most_states states."""
    return RowScratch(
        np.empty(most_rows, np.int32),
        np.empty(most_rows + 8 * most_states, np.int32),
        np.empty(most_states, np.int64),
        np.zeros(64, np.uint64),
        np.empty((2, -(-width // 8) * 512), np.int32),
    )


@bare
def unusual_cases(variable: int, data: Planes) -> int:
    """Return the number of cases that are not in the variable's usual state."""
    return data.columns.shape[1] - data.counts[data.values[variable] + data.usual[variable]]


@bare
def unusual_rows(variable: int, cases: Cases, marks: Array, rows: Array) -> Int:
    """List the cases that are not in the variable's usual state; return their number."""
    mark_unusual(variable, marks, cases.data)
    list_bits(marks, rows, np.int64(0))
    return np.int64(unusual_cases(variable, cases.data))


@bare
def count_states(rows: Array, own: Array, totals: Array) -> None:
    """Count the rows in each state of a column."""
    for k in range(totals.shape[0]):
        totals[k] = 0
    if totals.shape[0] == 2:
        n = np.int64(0)
        for k in range(rows.shape[0]):
            n += np.int64(own[rows[k]])
        totals[0], totals[1] = rows.shape[0] - n, n
        return
    for k in range(rows.shape[0]):
        totals[np.int64(own[rows[k]])] += 1


@inlined
def _padded(n: Any) -> Int:
    """Return n rounded up to a multiple of eight."""
    return -(-np.int64(n) // 8) * 8


@bare
def _sort_by_state(rows: Array, own: Array, totals: Array, none: Int, out: Array, ends: Array) -> None:
    """Sort the rows by the states of a column, whose counts are `totals`, and pad each state to a multiple of eight."""
    at = np.int64(0)
    for state in range(totals.shape[0]):
        ends[state] = at
        at += _padded(totals[state])
        for k in range(max(ends[state], at - 8), at):
            out[k] = none
    if totals.shape[0] == 2:
        first, second = ends[0], ends[1]
        for k in range(rows.shape[0]):
            is_second = np.int64(own[rows[k]])
            out[np.uint64(second if is_second else first)] = rows[k]
            second += is_second
            first += 1 - is_second
        return
    for k in range(rows.shape[0]):
        its = np.int64(own[rows[k]])
        out[ends[its]] = rows[k]
        ends[its] += 1


@bare
def _add_up(rows: Array, width: int, data: Array, sums: Array, counts: Array) -> None:
    """Count in how many of these rows each bit is set; the number of rows is a multiple of eight."""
    for bit in range(counts.shape[0]):
        counts[bit] = 0
    for chunk in range(-(-width // 8)):
        for begin in range(0, rows.shape[0], MOST_ROWS):
            for at in range(begin, min(begin + MOST_ROWS, rows.shape[0]), 8):
                add_eight(data, rows, at, width, 8 * chunk, sums)
            add_sums(sums, counts, 512 * chunk)


@bare
def _write_state(
    state: Int, n: Int, variables: Array, bases: Array, data: Planes, counts: Array, n_classes: Int, out: Array
) -> None:
    """Write the counts of one state of the target, which has n cases, to the blocks of candidates with planes."""
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        first, at, left = data.first[variable], bases[entry] * n_classes + state, n
        if first >= 0:
            for k in range(1, data.values[variable + 1] - data.values[variable]):
                out[at + k * n_classes] = counts[first + k - 1]
                left -= counts[first + k - 1]
            out[at] = left


@bare
def _write_binary(variables: Array, counts: Array, totals: Array, out: Array) -> None:
    """Write the counts of both states of the target, if all variables are binary: bits and blocks have one order."""
    zeros, ones = totals[0], totals[1]
    for entry in range(variables.shape[0]):
        zero, one = counts[0, variables[entry]], counts[1, variables[entry]]
        out[4 * entry], out[4 * entry + 1] = zeros - zero, ones - one
        out[4 * entry + 2], out[4 * entry + 3] = zero, one


@bare
def count_column(rows: Array, column: Array, own: Array, n_classes: int, out: Array) -> None:
    """Count one candidate's block, with one increment per row."""
    for cell in range(out.shape[0]):
        out[cell] = 0
    for k in range(rows.shape[0]):
        out[np.int64(column[rows[k]]) * n_classes + np.int64(own[rows[k]])] += 1


@bare
def _count_columns(
    rows: Array, target: int, usual: Int, variables: Array, bases: Array, data: Planes, n_classes: int, out: Array
) -> None:
    """Count the blocks of candidates without planes. Counts of a usual state (-1: none) follow by subtraction."""
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        if data.first[variable] < 0:
            at, counts = bases[entry] * n_classes, data.counts[data.values[variable] : data.values[variable + 1]]
            block = out[at : at + counts.shape[0] * n_classes]
            count_column(rows, data.columns[variable], data.columns[target], n_classes, block)
            for cell in range(0, block.shape[0] if usual >= 0 else 0, n_classes):
                n = counts[cell // n_classes]
                for k in range(n_classes):
                    n -= block[cell + k]
                block[cell + usual] = n


@bare
def _count_binary(
    begin: Int, usual: Int, n_usual: Int, variables: Array, data: Planes, scratch: RowScratch, out: Array, totals: Array
) -> None:
    """Count the histogram if all variables are binary; rows in state 1 of the target are listed from `begin` on."""
    counts, ends = scratch.counts, (begin, begin + _padded(totals[1]))
    for state in range(2):
        if state != usual:
            some = scratch.by_state[begin * state : ends[state]]
            _add_up(some, data.width, data.rows, scratch.sums, counts[state])
    if usual >= 0:
        totals[usual] = n_usual
        for bit in range(data.ones.shape[0]):
            counts[usual, bit] = data.ones[bit] - counts[1 - usual, bit]
    _write_binary(variables, counts, totals, out)


@bare
def count_rows(
    n: Int,
    n_usual: Int,
    target: int,
    variables: Array,
    bases: Array,
    data: Planes,
    scratch: RowScratch,
    out: Array,
    totals: Array,
) -> None:
    """Count the histogram of the n rows listed in the scratch memory, and of n_usual cases in the target's usual state.

    If n_usual > 0, these must be all such cases of the table; their counts follow by subtraction from those of all
    cases.
    """
    rows, own, n_classes, counts = scratch.rows[:n], data.columns[target], totals.shape[0], scratch.counts
    usual = data.usual[target] if n_usual > 0 else np.int64(-1)
    count_states(rows, own, totals)
    _sort_by_state(rows, own, totals, np.int64(own.shape[0]), scratch.by_state, scratch.ends)
    if data.are_binary:
        _count_binary(_padded(totals[0]), usual, n_usual, variables, data, scratch, out, totals)
        return
    begin: Int = np.int64(0)
    for bit in range(data.ones.shape[0] if usual >= 0 else 0):
        counts[1, bit] = data.ones[bit]
    for state in range(n_classes):
        end = begin + _padded(totals[state])
        if state != usual:
            _add_up(scratch.by_state[begin:end], data.width, data.rows, scratch.sums, counts[0])
            _write_state(np.int64(state), np.int64(totals[state]), variables, bases, data, counts[0], n_classes, out)
            for bit in range(data.ones.shape[0] if usual >= 0 else 0):
                counts[1, bit] -= counts[0, bit]
        begin = end
    if usual >= 0:
        totals[usual] = n_usual
        _write_state(usual, n_usual, variables, bases, data, counts[1], n_classes, out)
    _count_columns(rows, target, usual, variables, bases, data, n_classes, out)
