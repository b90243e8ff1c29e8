"""Bit planes of columns, one mask for each state but the first: packed, and counted, alone or by classes."""

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import popcount, which_equal
from leafwise.kernels.counting.arrays import Planes


@bare
def pack_state(column: Array, state: int, plane: Array) -> None:
    """Set exactly those bits c of the plane for which case c of the column is in the state; the plane may be longer."""
    n_whole = column.shape[0] // 64
    for word in range(plane.shape[0]):
        plane[word] = which_equal(column, word * 64, state) if word < n_whole else np.uint64(0)
    for case in range(n_whole * 64, column.shape[0]):
        plane[n_whole] |= np.uint64(column[case] == state) << np.uint64(case & 63)


@bare
def count_planes(n_cases: int, planes: Array, out: Array) -> None:
    """Count the cases in each state, from the planes of all states but the first."""
    out[0] = n_cases
    for state in range(1, out.shape[0]):
        n = np.int64(0)
        for word in range(planes.shape[1]):
            n += popcount(planes[state - 1, word])
        out[state] = n
        out[0] -= n


@bare
def split_mask(mask: Array, begin: Int, end: Int, plane: Int, n_classes: Int, words: Array, classes: Array) -> None:
    """Split words begin to end - 1 of a mask by the states of the variable whose planes begin at `plane`, a class each.

    Here and below, the index of a word is made unsigned, since otherwise the loop would not be vectorized.
    """
    for j in range(end - begin):
        word = np.uint64(begin + j)
        classes[0, word] = mask[word]
    for state in range(1, n_classes):
        for j in range(end - begin):
            word = np.uint64(begin + j)
            here = classes[0, word] & words[plane + state - 1, word]
            classes[state, word] = here
            classes[0, word] ^= here


@bare
def count_block(
    n_states: Int,
    plane: Int,
    begin: Int,
    end: Int,
    words: Array,
    n_classes: Int,
    classes: Array,
    out: Array,
    at: Int,
) -> None:
    """Count the cases of each class in each state of the variable whose planes begin at `plane`.

    On entry out[at:] contains the totals of the classes. Two classes are counted for each pass over a plane.
    """
    for state in range(1, n_states):
        own, row = plane + state - 1, at + state * n_classes
        for k in range(0, n_classes - 1, 2):
            n, m = np.int64(0), np.int64(0)
            for j in range(end - begin):
                word = np.uint64(begin + j)
                n += popcount(classes[k, word] & words[own, word])
                m += popcount(classes[k + 1, word] & words[own, word])
            out[row + k], out[row + k + 1] = n, m
            out[at + k] -= n
            out[at + k + 1] -= m
        if n_classes % 2 == 1:
            n, last = np.int64(0), n_classes - 1
            for j in range(end - begin):
                word = np.uint64(begin + j)
                n += popcount(classes[last, word] & words[own, word])
            out[row + last] = n
            out[at + last] -= n


@bare
def _count_codes(column: Array, out: Array) -> None:
    """Count the cases in each state, from the codes."""
    for state in range(out.shape[0]):
        out[state] = 0
    for case in range(column.shape[0]):
        out[column[case]] += 1


@inlined
def planes_of(variable: int, data: Planes) -> Array:
    """Return the variable's planes; an empty array if it has none."""
    first = data.first[variable]
    n_planes = data.values[variable + 1] - data.values[variable] - 1 if first >= 0 else 0
    return data.words[first : first + n_planes]


@inlined
def pack(variable: int, data: Planes) -> None:
    """Fill the planes of a variable, count its states, and find its usual state."""
    column, planes = data.columns[variable], planes_of(variable, data)
    counts = data.counts[data.values[variable] : data.values[variable + 1]]
    for k in range(planes.shape[0]):
        pack_state(column, k + 1, planes[k])
    if data.first[variable] >= 0:
        count_planes(column.shape[0], planes, counts)
    else:
        _count_codes(column, counts)
    data.usual[variable] = np.argmax(counts)


@bare
def mark_unusual(variable: int, out: Array, data: Planes) -> None:
    """Write a mask of the cases that are not in the variable's usual state."""
    column, planes, usual = data.columns[variable], planes_of(variable, data), data.usual[variable]
    for word in range(out.shape[0]):
        begin, bits = word * 64, np.uint64(0)
        n = min(64, column.shape[0] - begin)
        if planes.shape[0] == 0:
            for bit in range(n):
                bits |= np.uint64(column[begin + bit] != usual) << np.uint64(bit)
        elif usual > 0:
            bits = ~planes[usual - 1, word] & (~np.uint64(0) >> np.uint64(64 - n))
        else:
            for plane in range(planes.shape[0]):
                bits |= planes[plane, word]
        out[word] = bits
