"""Sets of cases: placed, cut by a variable's states, joined.

A set is one record of `sets`: either a bit mask (a row of `masks`, one bit a case) or, when it holds few cases, a
sorted list of row numbers (a slice of `lists`).
"""

from typing import Any

import numpy as np

from leafwise.kernels.arrays import Array, Planes
from leafwise.kernels.jit import jit, part
from leafwise.kernels.words import lowest

SET = np.dtype([("offset", np.int64), ("size", np.int64), ("is_mask", np.int64)], align=True)
CUT = np.dtype(
    [(name, np.int64) for name in ("parent", "variable", "n_states", "group", "first_child", "n_children")], align=True
)
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


@part
def rows_of(set_: Any, masks: Array, lists: Array, out: Array) -> int:
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


@part
def _add_rows(lists: Array, begin: int, n: int, mask: Array) -> None:
    for k in range(begin, begin + n):
        mask[lists[k] >> 6] |= np.uint64(1) << np.uint64(lists[k] & 63)


@part
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


@part
def _cut_by_rows(rows: Array, column: Array, group: Array, children: Array, masks: Array, lists: Array) -> None:
    fill = np.zeros(children.shape[0], np.int64)
    for child in range(children.shape[0]):
        if children[child]["is_mask"]:
            for word in range(masks.shape[1]):
                masks[children[child]["offset"], word] = np.uint64(0)
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
            n = rows_of(parent, masks, lists, buffer)
            children = sets[request["first_child"] : request["first_child"] + request["n_children"]]
            _cut_by_rows(buffer[:n], data.columns[variable], group, children, masks, lists)


@part
def _join_lists(one: Any, two: Any, at: int, lists: Array) -> None:
    """Merge two sorted lists; both are lists, as the sum of them is."""
    a, b = one["offset"], two["offset"]
    end_a, end_b = a + one["size"], b + two["size"]
    for k in range(at, at + one["size"] + two["size"]):
        if b >= end_b or (a < end_a and lists[a] < lists[b]):
            lists[k] = lists[a]
            a += 1
        else:
            lists[k] = lists[b]
            b += 1


@jit
def join_sets(pairs: Array, sets: Array, masks: Array, lists: Array) -> None:
    """For each row (a, b, union): the union of two disjoint sets, whose record is already placed."""
    for p in range(pairs.shape[0]):
        union = sets[pairs[p, 2]]
        if not union["is_mask"]:
            _join_lists(sets[pairs[p, 0]], sets[pairs[p, 1]], union["offset"], lists)
            continue
        mask = masks[union["offset"]]
        for word in range(mask.shape[0]):
            mask[word] = np.uint64(0)
        for side in range(2):
            set_ = sets[pairs[p, side]]
            if set_["is_mask"]:
                for word in range(mask.shape[0]):
                    mask[word] |= masks[set_["offset"], word]
            else:
                _add_rows(lists, set_["offset"], set_["size"], mask)


@part
def mask_of(set_: Any, masks: Array, lists: Array, spare: Array) -> Array:
    """The set as a mask; a list is written to the spare one."""
    if set_["is_mask"]:
        return masks[set_["offset"]]
    for word in range(spare.shape[0]):
        spare[word] = np.uint64(0)
    _add_rows(lists, set_["offset"], set_["size"], spare)
    return spare
