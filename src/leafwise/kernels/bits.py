"""Counting by bits: sets of cases as bit masks or row lists, columns as bit planes, histograms as AND + popcount.

A *set of cases* is one record of `sets`: either a bit mask (a row of `masks`, one bit a case) or, when it holds few
cases, a sorted list of row numbers (a slice of `lists`). A column with few states is kept as *planes*: one bit mask for
each state but the first, whose counts follow by subtraction. The code matrix is there twice: by columns for cutting
sets, by rows for counting small sets, where each case touches one stretch of memory.

A *histogram* of a target lies flat in `histograms`: for each candidate variable (`Layout`) one row of the target's
counts for each state, and after them one row with the totals.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.jit import jit
from leafwise.kernels.words import lowest, popcount

Array = NDArray[Any]

SET = np.dtype([("offset", np.int64), ("size", np.int64), ("is_mask", np.int64)], align=True)

# Nanoseconds, measured (benchmarks/crossing.py): a plane costs a fixed part and a part for each word, a row one increment.
_PLANE_COST, _WORD_COST, _ROW_COST = 3.5, 0.095, 1.6


class Layout(NamedTuple):
    """Which variables a histogram covers, and where: targets with the same candidates share a layout."""

    of_target: Array  # the layout of each target
    start: Array  # layout l covers entries start[l] to start[l + 1] of the next two
    variables: Array
    bases: Array  # the row, counted in states, at which the variable's block begins
    n_rows: Array  # for each layout: all states of its variables
    n_states: Array  # for each variable of the table


class Planes(NamedTuple):
    """The data of a table, laid out for counting."""

    columns: Array  # codes, (n_variables, n_cases)
    rows: Array  # codes, (n_cases, n_variables)
    words: Array  # bit planes, (n_planes, n_words) uint64
    first: Array  # the plane of state 1 of each variable, or -1 where a variable has none


N_SETS, N_FREE, N_LISTED = range(3)  # places in `marks`: sets so far, masks that are free, rows in lists


@jit
def place_sets(sizes: Array, n_cases: int, sets: Array, free: Array, lists: Array, marks: Array) -> bool:
    """Records, and room for their cases, for new sets of these sizes. Where room is short, nothing is done: False.

    A set is a list when that takes less memory than a mask: a row number takes 32 bits, a mask one bit a case.
    """
    n_masks, n_rows = 0, 0
    for k in range(sizes.shape[0]):
        if sizes[k] * 32 >= n_cases:
            n_masks += 1
        else:
            n_rows += sizes[k]
    if (
        marks[N_SETS] + sizes.shape[0] > sets.shape[0]
        or n_masks > marks[N_FREE]
        or marks[N_LISTED] + n_rows > lists.shape[0]
    ):
        return False
    for k in range(sizes.shape[0]):
        set_ = sets[marks[N_SETS]]
        marks[N_SETS] += 1
        set_["size"] = sizes[k]
        set_["is_mask"] = sizes[k] * 32 >= n_cases
        if set_["is_mask"]:
            marks[N_FREE] -= 1
            set_["offset"] = free[marks[N_FREE]]
        else:
            set_["offset"] = marks[N_LISTED]
            marks[N_LISTED] += sizes[k]
    return True


@jit
def release_sets(gone: Array, sets: Array, free: Array, marks: Array) -> None:
    """Take back the masks of these sets; rows of lists come free when the lists move."""
    for k in range(gone.shape[0]):
        set_ = sets[gone[k]]
        if set_["is_mask"]:
            free[marks[N_FREE]] = set_["offset"]
            marks[N_FREE] += 1
        set_["is_mask"] = 0
        set_["size"] = 0


@jit
def move_lists(sets: Array, lists: Array, pool: Array, marks: Array) -> None:
    """Copy the lists in use to a new pool, one behind the other."""
    n = 0
    for k in range(marks[N_SETS]):
        set_ = sets[k]
        if not set_["is_mask"]:
            for row in range(set_["size"]):
                pool[n + row] = lists[set_["offset"] + row]
            set_["offset"] = n
            n += set_["size"]
    marks[N_LISTED] = n


@jit
def pack(column: Array, state: int, plane: Array) -> None:
    """Set bit c of the plane where case c of the column is in the state."""
    for word in range(plane.shape[0]):
        bits = np.uint64(0)
        first = word * 64
        for bit in range(min(64, column.shape[0] - first)):
            if column[first + bit] == state:
                bits |= np.uint64(1) << np.uint64(bit)
        plane[word] = bits


@jit
def _rows_of(set_: Any, masks: Array, lists: Array, out: Array) -> int:
    """Write the row numbers of a set to `out`; how many."""
    n = 0
    if set_["is_mask"]:
        mask = masks[set_["offset"]]
        for word in range(mask.shape[0]):
            bits = mask[word]
            while bits != np.uint64(0):
                out[n] = word * 64 + lowest(bits)
                bits &= bits - np.uint64(1)
                n += 1
    else:
        for k in range(set_["size"]):
            out[k] = lists[set_["offset"] + k]
        n = set_["size"]
    return n


@jit
def _add_rows(rows: Array, mask: Array) -> None:
    for k in range(rows.shape[0]):
        mask[rows[k] >> 6] |= np.uint64(1) << np.uint64(rows[k] & 63)


@jit
def _cut_by_planes(
    parent: Array, words: Array, first: int, group: Array, child: int, child_set: Any, masks: Array, lists: Array
) -> None:
    """The cases of a mask whose state is in the child's group, by planes: those of the others when state 0 is in it."""
    complement = group[0] == child
    is_mask = child_set["is_mask"]
    offset = child_set["offset"]
    n = 0
    for word in range(parent.shape[0]):
        taken = np.uint64(0)
        for state in range(1, group.shape[0]):
            if (group[state] == child) != complement:
                taken |= words[first + state - 1, word]
        bits = parent[word] & (~taken if complement else taken)
        if is_mask:
            masks[offset, word] = bits
        else:
            while bits != np.uint64(0):
                lists[offset + n] = word * 64 + lowest(bits)
                bits &= bits - np.uint64(1)
                n += 1


@jit
def _cut_by_rows(
    rows: Array, column: Array, group: Array, children: Array, masks: Array, lists: Array
) -> None:
    fill = np.zeros(children.shape[0], np.int64)
    for child in range(children.shape[0]):
        if children[child]["is_mask"]:
            masks[children[child]["offset"]] = np.uint64(0)
    for k in range(rows.shape[0]):
        row = rows[k]
        child = group[column[row]]
        offset = children[child]["offset"]
        if children[child]["is_mask"]:
            masks[offset, row >> 6] |= np.uint64(1) << np.uint64(row & 63)
        else:
            lists[offset + fill[child]] = row
            fill[child] += 1


@jit
def cut_sets(
    requests: Array, groups: Array, begin: int, end: int, sets: Array, masks: Array, lists: Array, data: Planes
) -> None:
    """Cut each requested set by the groups of a variable's states into child sets, whose records are already placed."""
    buffer = np.empty(0, np.int32)
    for r in range(begin, end):
        request = requests[r]
        parent = sets[request["parent"]]
        group = groups[request["group"] : request["group"] + request["n_states"]]
        variable = request["variable"]
        if parent["is_mask"] and data.first[variable] >= 0:
            for child in range(request["n_children"]):
                child_set = sets[request["first_child"] + child]
                _cut_by_planes(
                    masks[parent["offset"]], data.words, data.first[variable], group, child, child_set, masks, lists
                )
        else:
            if buffer.shape[0] < parent["size"]:
                buffer = np.empty(parent["size"], np.int32)
            n = _rows_of(parent, masks, lists, buffer)
            children = sets[request["first_child"] : request["first_child"] + request["n_children"]]
            _cut_by_rows(buffer[:n], data.columns[variable], group, children, masks, lists)


CUT = np.dtype(
    [(name, np.int64) for name in ("parent", "variable", "n_states", "group", "first_child", "n_children")], align=True
)


@jit
def join_sets(pairs: Array, sets: Array, masks: Array, lists: Array) -> None:
    """For each row (a, b, union): the union of two disjoint sets, whose record is already placed."""
    for p in range(pairs.shape[0]):
        union = sets[pairs[p, 2]]
        if not union["is_mask"]:
            n = _rows_of(sets[pairs[p, 0]], masks, lists, lists[union["offset"] :])
            _rows_of(sets[pairs[p, 1]], masks, lists, lists[union["offset"] + n :])
            lists[union["offset"] : union["offset"] + union["size"]].sort()
            continue
        mask = masks[union["offset"]]
        mask[:] = np.uint64(0)
        for part in range(2):
            set_ = sets[pairs[p, part]]
            if set_["is_mask"]:
                mask |= masks[set_["offset"]]
            else:
                _add_rows(lists[set_["offset"] : set_["offset"] + set_["size"]], mask)


@jit
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


@jit
def _count_binary(
    variables: Array, bases: Array, most_states: int, layout_states: Array, words: Array, first: Array, classes: Array,
    totals: Array, out: Array,
) -> None:
    """For a binary target: the blocks of all variables that are counted by planes."""
    zeros, ones = totals[0], totals[1]
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        n_states = layout_states[variable]
        if n_states > most_states or first[variable] < 0:
            continue
        at = bases[entry] * 2
        left_zeros, left_ones = zeros, ones
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


@jit
def _count_many(
    variables: Array, bases: Array, most_states: int, layout_states: Array, words: Array, first: Array, classes: Array,
    totals: Array, out: Array,
) -> None:
    """The same for a target of any number of states."""
    n_classes = totals.shape[0]
    for entry in range(variables.shape[0]):
        variable = variables[entry]
        n_states = layout_states[variable]
        if n_states > most_states or first[variable] < 0:
            continue
        at = bases[entry] * n_classes
        for k in range(n_classes):
            left = totals[k]
            for state in range(1, n_states):
                plane = first[variable] + state - 1
                n = np.int64(0)
                for word in range(words.shape[1]):
                    n += popcount(classes[k, word] & words[plane, word])
                out[at + state * n_classes + k] = n
                left -= n
            out[at + k] = left


@jit
def _count_rows(
    rows: Array, codes: Array, target: int, candidates: Array, starts: Array, n_classes: int, out: Array
) -> None:
    """One increment for each row and candidate."""
    for k in range(rows.shape[0]):
        row = rows[k]
        shift = np.int64(codes[row, target])
        for c in range(candidates.shape[0]):
            out[starts[c] + np.int64(codes[row, candidates[c]]) * n_classes + shift] += 1


@jit
def _left_to_rows(
    target: int, variables: Array, bases: Array, most_states: int, layout_states: Array, first: Array, out: Array,
    candidates: Array, starts: Array,
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


@jit
def _most_plane_states(n_cases: int, n_classes: int, n_words: int) -> int:
    """Up to how many states of a variable planes are the cheaper way to count so many cases."""
    return 1 + int(_ROW_COST * n_cases / (n_classes * (_PLANE_COST + _WORD_COST * n_words)))


@jit
def _count_set(
    set_: Any, target: int, out: Array, layout: Layout, masks: Array, lists: Array, data: Planes, scratch: Any
) -> None:
    """One histogram, by planes where these are cheaper, else in one pass over the rows."""
    classes, rows, candidates, starts = scratch
    n_classes = layout.n_states[target]
    which = layout.of_target[target]
    variables = layout.variables[layout.start[which] : layout.start[which + 1]]
    bases = layout.bases[layout.start[which] : layout.start[which + 1]]
    totals = out[layout.n_rows[which] * n_classes :]
    most = _most_plane_states(set_["size"], n_classes, data.words.shape[1])
    if data.first[target] < 0 or most < 2:
        most = 0
    else:
        mask = _mask_of(set_, masks, lists, classes[n_classes])
        _class_masks(mask, target, data.words, data.first, classes, totals)
        if n_classes == 2:
            _count_binary(variables, bases, most, layout.n_states, data.words, data.first, classes, totals, out)
        else:
            _count_many(variables, bases, most, layout.n_states, data.words, data.first, classes, totals, out)
    n_left = _left_to_rows(target, variables, bases, most, layout.n_states, data.first, out, candidates, starts)
    if n_left > 0 or most == 0:
        n = _rows_of(set_, masks, lists, rows)
        _count_rows(rows[:n], data.rows, target, candidates[:n_left], starts[:n_left], n_classes, out)
        if most == 0:
            totals[:] = 0
            for k in range(n):
                totals[data.rows[rows[k], target]] += 1


@jit
def _mask_of(set_: Any, masks: Array, lists: Array, spare: Array) -> Array:
    if set_["is_mask"]:
        return masks[set_["offset"]]
    spare[:] = np.uint64(0)
    _add_rows(lists[set_["offset"] : set_["offset"] + set_["size"]], spare)
    return spare


@jit
def count_sets(
    requests: Array,
    begin: int,
    end: int,
    histograms: Array,
    layout: Layout,
    sets: Array,
    masks: Array,
    lists: Array,
    data: Planes,
) -> None:
    """For each requested row (set, target, offset): the histogram of the set's cases."""
    most_rows, most_classes = 0, 2
    for r in range(begin, end):
        most_rows = max(most_rows, sets[requests[r, 0]]["size"])
        if data.first[requests[r, 1]] >= 0:
            most_classes = max(most_classes, layout.n_states[requests[r, 1]])
    classes = np.empty((most_classes + 1, data.words.shape[1]), np.uint64)
    rows = np.empty(most_rows, np.int32)
    candidates = np.empty(layout.n_states.shape[0], np.int64)
    starts = np.empty(layout.n_states.shape[0], np.int64)
    for r in range(begin, end):
        target = requests[r, 1]
        size = (layout.n_rows[layout.of_target[target]] + 1) * layout.n_states[target]
        out = histograms[requests[r, 2] : requests[r, 2] + size]
        _count_set(
            sets[requests[r, 0]], target, out, layout, masks, lists, data, (classes, rows, candidates, starts)
        )
