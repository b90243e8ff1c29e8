"""Sets of cases: placed in memory, cut by a variable's states, joined.

A set is one record of `sets`: either a bit mask (a row of `masks`, one bit per case) or, if it contains few cases, a
list of row numbers (a slice of `lists`).
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import lowest, popcount, without_lowest
from leafwise.kernels.counting.arrays import Planes

SET = np.dtype([("offset", np.int64), ("size", np.int64), ("is_mask", np.int64)], align=True)
CUT = np.dtype(
    [(name, np.int64) for name in ("parent", "variable", "n_states", "group", "first_child", "n_children")], align=True
)
N_SETS, N_FREE, N_LISTED = range(3)  # indices in `marks`: sets so far, free masks, row numbers in lists


class Cases(NamedTuple):
    """All sets of cases, and the data."""

    sets: Array  # of SET
    masks: Array  # (n_masks, n_words)
    free: Array  # stack of the indices of free masks
    lists: Array  # row numbers
    marks: Array  # N_SETS, N_FREE, N_LISTED
    n_cases: int
    data: Planes


def no_cases(codes: Array) -> Cases:
    """Return arrays of the same types without cases, for rows that are elsewhere and for compilation ahead of time."""
    nothing, none = np.zeros(0, np.int64), np.full(len(codes), -1)
    words = np.zeros((0, 0), np.uint64)
    columns: Array = np.zeros((len(codes), 0), codes.dtype)
    data = Planes(columns, words, none, np.zeros(0, np.uint64), 0, np.zeros(0, np.int32), False, nothing, nothing, none)
    return Cases(np.zeros(0, SET), words, nothing, np.zeros(0, np.int32), nothing, 0, data)


@bare
def takes_mask(size: int, n_cases: int) -> bool:
    """Return whether a mask (one bit per case) takes no more memory than a list (32 bits per case of the set)."""
    return size * 32 >= n_cases


@bare
def place(sizes: Array, n: Int, cases: Cases) -> int:
    """Allocate records and memory for n new sets of these sizes; return the first, or -1 if memory is short."""
    marks = cases.marks
    n_masks, n_rows = 0, 0
    for k in range(n):
        if takes_mask(sizes[k], cases.n_cases):
            n_masks += 1
        else:
            n_rows += sizes[k]
    first = marks[N_SETS]
    if first + n > cases.sets.shape[0] or n_masks > marks[N_FREE] or marks[N_LISTED] + n_rows > cases.lists.shape[0]:
        return -1
    for k in range(n):
        set_ = cases.sets[first + k]
        set_["size"] = sizes[k]
        set_["is_mask"] = takes_mask(sizes[k], cases.n_cases)
        if set_["is_mask"]:
            marks[N_FREE] -= 1
            set_["offset"] = cases.free[marks[N_FREE]]
        else:
            set_["offset"] = marks[N_LISTED]
            marks[N_LISTED] += sizes[k]
    marks[N_SETS] += n
    return first


@jit
def place_sets(sizes: Array, cases: Cases) -> int:
    """Call `place` for all of these sizes."""
    return place(sizes, sizes.shape[0], refer(cases))


@bare
def release(which: int, cases: Cases) -> None:
    """Release the mask of a set; the memory of lists is reclaimed by `close_gaps`."""
    set_ = cases.sets[which]
    if set_["is_mask"]:
        cases.free[cases.marks[N_FREE]] = set_["offset"]
        cases.marks[N_FREE] += 1
    set_["is_mask"] = 0
    set_["size"] = 0


@jit
def release_sets(gone: Array, cases: Cases) -> None:
    """Release these sets."""
    cases = refer(cases)
    for k in range(gone.shape[0]):
        release(gone[k], cases)


@jit
def close_gaps(sets: Array, lists: Array, marks: Array) -> None:
    """Compact the lists in use; the lists of later sets are at larger offsets."""
    n = 0
    for k in range(marks[N_SETS]):
        set_ = sets[k]
        if not set_["is_mask"]:
            if set_["offset"] > n:
                for row in range(set_["size"]):
                    lists[n + row] = lists[set_["offset"] + row]
            set_["offset"] = n
            n += set_["size"]
    marks[N_LISTED] = n


@inlined
def _list_word(bits: Any, word: Int, out: Array, at: Int, end: Int) -> Int:
    """Write the row numbers of one word of a mask to out[at:]; return their end.

    While there is enough space before `end`, they are written in groups of four, even if there are fewer, to avoid
    unpredictable branches. The next word overwrites what is wrong.
    """
    last = at + popcount(bits)
    if last + 4 > end:
        while at < last:
            out[np.uint64(at)] = word * 64 + lowest(bits)
            bits = without_lowest(bits)
            at += 1
        return last
    while True:
        for k in range(4):
            out[np.uint64(at + k)] = word * 64 + lowest(bits)
            bits = without_lowest(bits)
        at += 4
        if at >= last:
            return last


@bare
def list_bits(mask: Array, out: Array, at: Int) -> None:
    """Write the row numbers of a mask to out[at:]."""
    end = at
    for word in range(mask.shape[0]):
        end += popcount(mask[word])
    for word in range(mask.shape[0]):
        at = _list_word(mask[word], word, out, at, end)


@bare
def length_of(set_: Any, masks: Array) -> Int:
    """Return the length of a set for the purpose of parts: words of its mask, or rows of its list."""
    return np.int64(masks.shape[1]) if set_["is_mask"] else np.int64(set_["size"])


@bare
def rows_of_part(set_: Any, begin: Int, end: Int, masks: Array, lists: Array, out: Array) -> Int:
    """Write the row numbers of a part of a set to `out`; return how many."""
    if set_["is_mask"]:
        mask, at = masks[set_["offset"]], np.int64(0)
        for k in range(end - begin):
            at = np.int64(_list_word(mask[np.uint64(begin + k)], begin + k, out, at, out.shape[0]))
        return at
    rows = lists[set_["offset"] + begin : set_["offset"] + end]
    for k in range(rows.shape[0]):
        out[k] = rows[k]
    return np.int64(rows.shape[0])


@bare
def rows_of(set_: Any, masks: Array, lists: Array, out: Array) -> Int:
    """Write the row numbers of a set to `out`; return how many."""
    return rows_of_part(set_, np.int64(0), length_of(set_, masks), masks, lists, out)


@bare
def _add_rows(lists: Array, begin: Int, n: Int, mask: Array) -> None:
    for k in range(begin, begin + n):
        mask[lists[k] >> 6] |= np.uint64(1) << np.uint64(lists[k] & 63)


@bare
def _cut_by_plane(parent: Array, plane: Array, flip: Any, child_set: Any, masks: Array, lists: Array) -> None:
    """Write the cases of a mask that are in a plane or, with all bits of `flip` set, that are not."""
    if child_set["is_mask"]:
        mask = masks[child_set["offset"]]
        for word in range(parent.shape[0]):
            mask[word] = parent[word] & (plane[word] ^ flip)
        return
    at, end = child_set["offset"], child_set["offset"] + child_set["size"]
    for word in range(parent.shape[0]):
        at = _list_word(parent[word] & (plane[word] ^ flip), word, lists, at, end)


@bare
def _cut_by_planes(
    parent: Array, words: Array, first: int, group: Array, child: int, child_set: Any, masks: Array, lists: Array
) -> None:
    """Write the cases of a mask whose state is in the child's group, given the planes of states other than 0.

    If the group contains state 0, these are the cases whose state is in no other group.
    """
    complement = group[0] == child
    flip = ~np.uint64(0) if complement else np.uint64(0)
    n_planes, last = 0, 0
    for state in range(1, group.shape[0]):
        if (group[state] == child) != complement:
            n_planes, last = n_planes + 1, state
    if n_planes == 1:
        _cut_by_plane(parent, words[first + last - 1], flip, child_set, masks, lists)
        return
    is_mask, at, end = child_set["is_mask"], child_set["offset"], child_set["offset"] + child_set["size"]
    for word in range(parent.shape[0]):
        taken = flip
        for state in range(1, group.shape[0]):
            if (group[state] == child) != complement:
                taken ^= words[first + state - 1, word]
        if is_mask:
            masks[at, word] = parent[word] & taken
        else:
            at = _list_word(parent[word] & taken, word, lists, at, end)


@bare
def _cut_by_rows(
    rows: Array, column: Array, group: Array, children: Array, masks: Array, lists: Array, fill: Array
) -> None:
    for child in range(children.shape[0]):
        fill[child] = children[child]["offset"]
        if children[child]["is_mask"]:
            for word in range(masks.shape[1]):
                masks[children[child]["offset"], word] = np.uint64(0)
    for k in range(rows.shape[0]):
        row = rows[k]
        child = group[column[row]]
        if children[child]["is_mask"]:
            masks[fill[child], row >> 6] |= np.uint64(1) << np.uint64(row & 63)
        else:
            lists[fill[child]] = row
            fill[child] += 1


@bare
def _cut_in_two(rows: Array, column: Array, group: Array, first: int, second: int, lists: Array) -> None:
    """Distribute the rows of a list to two lists; branch-free, since the destination of a row is unpredictable."""
    for k in range(rows.shape[0]):
        which = group[column[np.uint32(rows[k])]]
        lists[np.uint64(second if which else first)] = rows[k]
        second += which
        first += 1 - which


@bare
def cut(parent: Any, variable: int, group: Array, children: Array, cases: Cases, buffer: Array, fill: Array) -> None:
    """Cut a set by the groups of a variable's states into sets that were placed."""
    data, lists = cases.data, cases.lists
    if parent["is_mask"] and data.first[variable] >= 0:
        for child in range(children.shape[0]):
            _cut_by_planes(
                cases.masks[parent["offset"]],
                data.words,
                data.first[variable],
                group,
                child,
                children[child],
                cases.masks,
                lists,
            )
        return
    rows, column = lists[parent["offset"] : parent["offset"] + parent["size"]], data.columns[variable]
    if parent["is_mask"]:
        rows = buffer[: rows_of(parent, cases.masks, lists, buffer)]
    elif children.shape[0] == 2:  # subsets of a list are lists
        _cut_in_two(rows, column, group, children[0]["offset"], children[1]["offset"], lists)
        return
    _cut_by_rows(rows, column, group, children, cases.masks, lists, fill)


@bare
def cut_some(
    parent: Any,
    target: int,
    states: Int,
    variable: int,
    group: Array,
    children: Array,
    cases: Cases,
    buffer: Array,
    fill: Array,
) -> None:
    """Cut the cases of a set whose target is in one of `states`, a bit mask, in the same way."""
    column, n = cases.data.columns[target], np.int64(0)
    for k in range(rows_of(parent, cases.masks, cases.lists, buffer)):
        buffer[n] = buffer[k]
        n += states >> np.int64(column[buffer[k]]) & 1
    _cut_by_rows(buffer[:n], cases.data.columns[variable], group, children, cases.masks, cases.lists, fill)


@bare
def copy(source: Any, to: Any, cases: Cases) -> None:
    """Copy the cases of a set to another that was placed."""
    if source["is_mask"]:
        for word in range(cases.masks.shape[1]):
            cases.masks[to["offset"], word] = cases.masks[source["offset"], word]
    else:
        for k in range(source["size"]):
            cases.lists[to["offset"] + k] = cases.lists[source["offset"] + k]


@bare
def _count_states(parent: Any, variable: int, states: Array, cases: Cases, buffer: Array) -> None:
    """Count the cases of a set in each state of a variable."""
    data = cases.data
    for state in range(states.shape[0]):
        states[state] = 0
    if parent["is_mask"] and data.first[variable] >= 0:
        mask = cases.masks[parent["offset"]]
        states[0] = parent["size"]
        for state in range(1, states.shape[0]):
            plane = data.first[variable] + state - 1
            for word in range(mask.shape[0]):
                states[state] += popcount(mask[word] & data.words[plane, word])
            states[0] -= states[state]
    else:
        for k in range(rows_of(parent, cases.masks, cases.lists, buffer)):
            states[data.columns[variable][buffer[k]]] += 1


@jit
def size_children(requests: Array, groups: Array, begin: int, end: int, cases: Cases, sizes: Array) -> None:
    """Count the cases that each child of requested cuts begin to end - 1 gets, into sizes[first_child:]."""
    cases = refer(cases)
    most_rows, most_states = 0, 0
    for r in range(begin, end):
        most_rows = max(most_rows, cases.sets[requests[r]["parent"]]["size"])
        most_states = max(most_states, requests[r]["n_states"])
    buffer, states = np.empty(most_rows, np.int32), np.empty(most_states, np.int64)
    for r in range(begin, end):
        request = requests[r]
        own = states[: request["n_states"]]
        _count_states(cases.sets[request["parent"]], request["variable"], own, cases, buffer)
        for k in range(request["n_children"]):
            sizes[request["first_child"] + k] = 0
        for state in range(own.shape[0]):
            sizes[request["first_child"] + groups[request["group"] + state]] += own[state]


@jit
def cut_sets(requests: Array, groups: Array, begin: int, end: int, cases: Cases) -> None:
    """Carry out requested cuts begin to end - 1."""
    cases = refer(cases)
    most_rows, most_children = 0, 0
    for r in range(begin, end):
        most_rows = max(most_rows, cases.sets[requests[r]["parent"]]["size"])
        most_children = max(most_children, requests[r]["n_children"])
    buffer, fill = np.empty(most_rows, np.int32), np.empty(most_children, np.int64)
    for r in range(begin, end):
        request = requests[r]
        group = groups[request["group"] : request["group"] + request["n_states"]]
        children = cases.sets[request["first_child"] : request["first_child"] + request["n_children"]]
        cut(cases.sets[request["parent"]], request["variable"], group, children, cases, buffer, fill)


@bare
def join(one: Any, two: Any, union: Any, cases: Cases) -> None:
    """Write the union of two disjoint sets to a set that was placed."""
    if not union["is_mask"]:  # then neither are the two
        at = union["offset"]
        for set_ in (one, two):
            for k in range(set_["size"]):
                cases.lists[at + k] = cases.lists[set_["offset"] + k]
            at += set_["size"]
        return
    mask = cases.masks[union["offset"]]
    if one["is_mask"] and two["is_mask"]:
        first, second = cases.masks[one["offset"]], cases.masks[two["offset"]]
        for word in range(mask.shape[0]):
            mask[word] = first[word] | second[word]
        return
    for word in range(mask.shape[0]):
        mask[word] = np.uint64(0)
    for set_ in (one, two):
        if set_["is_mask"]:
            for word in range(mask.shape[0]):
                mask[word] |= cases.masks[set_["offset"], word]
        else:
            _add_rows(cases.lists, set_["offset"], set_["size"], mask)


@jit
def join_sets(pairs: Array, cases: Cases) -> None:
    """Write the union of two disjoint sets for each row (one, two, union)."""
    cases = refer(cases)
    for p in range(pairs.shape[0]):
        join(cases.sets[pairs[p, 0]], cases.sets[pairs[p, 1]], cases.sets[pairs[p, 2]], cases)


@inlined
def mask_of_part(set_: Any, begin: Int, end: Int, masks: Array, lists: Array, spare: Array) -> Array:
    """Return a mask that is valid for a part of a set; part of a list is written to the spare mask."""
    if set_["is_mask"]:
        return masks[set_["offset"]]
    for word in range(spare.shape[0]):
        spare[word] = np.uint64(0)
    _add_rows(lists, set_["offset"] + begin, end - begin, spare)
    return spare
