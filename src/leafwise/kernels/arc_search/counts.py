"""Counting for complete tables: cases packed into bit planes, sets of cases cut by a variable, histograms.

A set of cases is a bit mask or, if it is small, a sorted list of row numbers. Its `place` is a row of `masks`, or
-1 - k for a list that begins at lists[k]. A histogram cell is an AND of two masks and a popcount; small sets, and
variables with many states, are counted row by row if that is cheaper. If there are very many configurations, a whole
table with each candidate is counted in one pass over all cases instead.
"""

import numpy as np

from leafwise.kernels.arc_search.node_cache import Candidates, Memory, Scratch, TableData
from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.counting.planes import count_block, count_planes, pack_state, split_mask
from leafwise.kernels.counting.sets import list_bits
from leafwise.kernels.scoring import dirichlet

# Nanoseconds: a plane costs a fixed part and a part per word, a row one increment (benchmarks/crossing.py).
PLANE_COST, WORD_COST, ROW_COST = 3.0, 0.09, 1.6
TABLE_COST = 0.6  # per case, if a whole table is counted
_SPARSE = 32  # a set of fewer than one case in this many is a list: a row number takes 32 bits, a mask one bit per case


@bare
def pack(data: TableData) -> None:
    """Write the bit planes: bit c of one is set if case c is in its state."""
    for variable in range(data.columns.shape[0]):
        first = data.variables[variable]["plane"]
        for state in range(1, data.variables[variable]["n_states"] if first >= 0 else 1):
            pack_state(data.columns[variable], state, data.words[first + state - 1])


@bare
def count_states(variable: Int, data: TableData, out: Array, at: Int) -> None:
    """Count the cases in each state of a variable, into out[at:]."""
    own, constants = data.variables[variable], data.constants[0]
    n_states, plane = own["n_states"], own["plane"]
    if plane >= 0:
        count_planes(constants["n_cases"], data.words[plane : plane + n_states - 1], out[at : at + n_states])
        return
    for state in range(n_states):
        out[at + state] = 0
    for case in range(constants["n_cases"]):
        code = data.codes[case * constants["by_case"] + variable * constants["by_variable"]]
        out[at + np.int64(code)] += 1


@bare
def is_sparse(size: Int, n_cases: Int) -> bool:
    """Return whether a set of this size is a list."""
    return bool(size * _SPARSE < n_cases)


@inlined
def rows_of(place: Int, size: Int, masks: Array, lists: Array, rows: Array) -> Array:
    """Return the row numbers of a set; those of a mask are written to `rows`."""
    if place < 0:
        return lists[-1 - place : -1 - place + size]
    list_bits(masks[place], rows, np.int64(0))
    return rows[:size]


@bare
def _cut_mask(mask: Array, first: Int, places: Array, words: Array, masks: Array, lists: Array, buffer: Array) -> None:
    n_words = mask.shape[0]
    for state in range(places.shape[0]):
        if places[state] == 0:
            continue
        out = masks[places[state]] if places[state] > 0 else buffer
        if state > 0:
            for word in range(n_words):
                out[word] = mask[word] & words[first + state - 1, word]
        else:
            for word in range(n_words):
                out[word] = mask[word]
            for other in range(first, first + places.shape[0] - 1):
                for word in range(n_words):
                    out[word] &= ~words[other, word]
        if places[state] < 0:
            list_bits(out, lists, -1 - places[state])


@bare
def cut(
    place: Int,
    size: Int,
    variable: Int,
    places: Array,
    masks: Array,
    lists: Array,
    data: TableData,
    scratch: Scratch,
) -> None:
    """Cut a set by the states of a variable; places[state] is the place of each part, 0 if the state does not occur."""
    plane, constants = data.variables[variable]["plane"], data.constants[0]
    if place >= 0 and plane >= 0:
        _cut_mask(masks[place], plane, places, data.words, masks, lists, scratch.classes[0])
        return
    rows, fill = rows_of(place, size, masks, lists, scratch.rows), scratch.states[2]
    for state in range(places.shape[0]):
        fill[state] = 0
        if places[state] > 0:
            for word in range(masks.shape[1]):
                masks[places[state], word] = np.uint64(0)
    for k in range(size):
        row = np.int64(rows[k])
        code = np.int64(data.codes[row * constants["by_case"] + variable * constants["by_variable"]])
        if places[code] > 0:
            masks[places[code], row >> 6] |= np.uint64(1) << np.uint64(row & 63)
        else:
            lists[-1 - places[code] + fill[code]] = row
            fill[code] += 1


@inlined
def _as_mask(place: Int, size: Int, masks: Array, lists: Array, spare: Array) -> Array:
    """Return a set as a mask; a list is converted into the spare one."""
    if place >= 0:
        return masks[place]
    for word in range(spare.shape[0]):
        spare[word] = np.uint64(0)
    for k in range(-1 - place, -1 - place + size):
        row = np.int64(lists[k])
        spare[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    return spare


@bare
def add_rows(
    rows: Array, target: Int, variables: Array, starts: Array, step: Int, data: TableData, out: Array, at: Int
) -> None:
    """Add `step` to the cell of each row in the block of each variable."""
    n_classes, codes = data.variables[target]["n_states"], data.codes
    by_case, by_variable = data.constants[0]["by_case"], data.constants[0]["by_variable"]
    for k in range(rows.shape[0]):
        begin = np.int64(rows[k]) * by_case
        shift = at + np.int64(codes[begin + target * by_variable])
        for c in range(variables.shape[0]):
            code = np.int64(codes[np.uint64(begin + variables[c] * by_variable)])
            out[np.uint64(starts[c] + code * n_classes + shift)] += step


@bare
def count_rows(
    place: Int,
    size: Int,
    target: Int,
    candidates: Candidates,
    most: Int,
    memory: Memory,
    data: TableData,
    scratch: Scratch,
    out: Array,
    at: Int,
) -> None:
    """Count the blocks that `count` leaves out: of variables with more than `most` states, or without planes."""
    left, n = scratch.left, 0
    for c in range(candidates.variables.shape[0]):
        if candidates.n_states[c] > most or data.variables[candidates.variables[c]]["plane"] < 0:
            left[0, n], left[1, n] = candidates.variables[c], candidates.starts[c]
            n += 1
    rows = rows_of(place, size, memory.masks, memory.lists, scratch.rows)
    add_rows(rows, target, left[0, :n], left[1, :n], np.int64(1), data, out, at)


@bare
def set_keys(parents: Array, target: Int, n_states: Int, data: TableData, keys: Array) -> None:
    """Set the cell of each case in the table with a candidate of n_states states, as if it were in the first of them.

    Cells are indexed by [target's state, candidate's state, row], where a row is a parent configuration.
    """
    for case in range(keys.shape[0]):
        keys[case] = data.columns[target, case] * np.uint32(n_states)
    for parent in parents:
        column, radix = data.columns[parent], np.uint32(data.variables[parent]["n_states"])
        for case in range(keys.shape[0]):
            keys[case] = keys[case] * radix + np.uint32(column[case])


@bare
def count_table(keys: Array, column: Array, n_rows: Int, table: Array, score_of: Array) -> Int:
    """Count a table by the keys and a candidate's column, with n_rows rows per state; return the score of its cells.

    Scores are looked up for each cell or, if there are fewer cases than cells, for each case.
    """
    by_state, score = np.uint64(n_rows), np.int64(0)
    for cell in range(table.shape[0]):
        table[cell] = 0
    if table.shape[0] <= keys.shape[0]:
        for case in range(keys.shape[0]):
            table[np.uint64(keys[case]) + np.uint64(column[case]) * by_state] += 1
        return dirichlet.total_score(table, score_of)
    for case in range(keys.shape[0]):
        place = np.uint64(keys[case]) + np.uint64(column[case]) * by_state
        count = np.uint64(table[place])
        table[place] = count + np.uint64(1)
        score += score_of[count + np.uint64(1)] - score_of[count]
    return score


@bare
def add_classes(table: Array, totals: Array) -> None:
    """Count the cases in each row of a table, by summing over the target's states, its slowest index."""
    n = totals.shape[0]
    for row in range(n):
        totals[row] = 0
    for first in range(0, table.shape[0], n):
        of_class = table[first : first + n]
        for row in range(n):
            totals[row] += of_class[row]


@bare
def count(
    place: Int,
    size: Int,
    target: Int,
    candidates: Candidates,
    totals: Int,
    masks: Array,
    lists: Array,
    data: TableData,
    classes: Array,
    cells: Array,
    out: Array,
    at: Int,
    first: Int,
) -> Int:
    """Count the histogram of a set into out[at:], from cell `first` on, except for the blocks left to `count_rows`.

    These are of variables without planes, or with more states than the number returned. The target's counts in the set
    are in cells[totals:]; `classes` is scratch memory for at least as many masks as the target has states.
    """
    variables, words = data.variables, data.words
    plane, n_classes, n_words = variables[target]["plane"], variables[target]["n_states"], words.shape[1]
    histogram = out[at + first : at + variables[target]["n_cells"]]
    for k in range(histogram.shape[0]):
        histogram[k] = 0
    most = np.int64(1 + ROW_COST * size / (n_classes * (PLANE_COST + WORD_COST * n_words)))
    if plane < 0 or most < 2:
        return np.int64(0)
    begin, mask = np.int64(0), _as_mask(place, size, masks, lists, classes[0])
    split_mask(mask, begin, n_words, plane, n_classes, words, classes)
    for c in range(candidates.variables.shape[0]):
        plane, n_states = variables[candidates.variables[c]]["plane"], candidates.n_states[c]
        if plane >= 0 and n_states <= most:
            to = at + candidates.starts[c]
            for k in range(n_classes):
                out[to + k] = cells[totals + k]
            count_block(n_states, plane, begin, n_words, words, n_classes, classes, out, to)
    return most
