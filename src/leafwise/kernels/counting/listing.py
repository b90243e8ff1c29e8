"""A table laid out for counting: its planes are packed, and what is not usual about each case is listed.

Planes are by variables and lists by cases, so 64 planes at a time are turned: bit c of word v becomes bit v of word c.
"""

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, jit, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import lowest, popcount
from leafwise.kernels.counting.arrays import Planes
from leafwise.kernels.counting.planes import mark_unusual, pack, planes_of

# A column of more states than this is counted by increments only: its planes would outweigh its codes.
MOST_PLANE_STATES = 8
BLOCK = 8  # words of planes that are turned into rows in one go: a cache line


@inlined
def _deal(words: Array, shift: np.uint64, mask: np.uint64, out: Array) -> None:
    """Deal the first and the second half of 64 words out in turns, exchanging parts of each pair."""
    for k in range(32):
        low, high = words[k], words[k + 32]
        out[2 * k] = low & mask | (high & mask) << shift
        out[2 * k + 1] = low >> shift & mask | high & ~mask


@bare
def _turn(words: Array, other: Array) -> None:
    """Exchange rows and columns of 64 words."""
    _deal(words, np.uint64(32), np.uint64(0x00000000FFFFFFFF), other)
    _deal(other, np.uint64(16), np.uint64(0x0000FFFF0000FFFF), words)
    _deal(words, np.uint64(8), np.uint64(0x00FF00FF00FF00FF), other)
    _deal(other, np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F), words)
    _deal(words, np.uint64(2), np.uint64(0x3333333333333333), other)
    _deal(other, np.uint64(1), np.uint64(0x5555555555555555), words)


@bare
def _add_unusual(variable: int, n_unusual: Array, data: Planes) -> None:
    """Add, for each block, in how many of its cases the variable is not as usual."""
    column, planes, usual = data.columns[variable], planes_of(variable, data), data.usual[variable]
    n_cases = column.shape[0]
    for block in range(n_unusual.shape[0]):
        first, end = block * BLOCK * 64, min((block + 1) * BLOCK * 64, n_cases)
        if planes.shape[0] == 0:
            for case in range(first, end):
                n_unusual[block] += column[case] != usual
            continue
        n_unusual[block] += end - first if usual > 0 else 0
        for plane in range(planes.shape[0]):
            if usual == 0 or plane == usual - 1:
                n = np.int64(0)
                for word in range(block * BLOCK, min((block + 1) * BLOCK, planes.shape[1])):
                    n += popcount(planes[plane, word])
                n_unusual[block] += n if usual == 0 else -n


@bare
def _list_case(case: Int, at: Int, turned: Array, others: Array, data: Planes) -> Int:
    """List one case's values from `at` on; where they end."""
    for group in range(turned.shape[0]):
        bits = turned[group, case & 63]
        while bits != np.uint64(0):
            variable = group * 64 + lowest(bits)
            value = others[variable]
            data.listed[at] = value if value >= 0 else data.values[variable] + np.int64(data.columns[variable, case])
            at += 1
            bits &= bits - np.uint64(1)
    return at


@part
def _list_values(begin: Int, end: Int, at: Array, squares: Array, data: Planes) -> None:
    n, n_words, n_cases = data.columns.shape[0], data.words.shape[1], data.columns.shape[1]
    marks = np.zeros((-(-n // 64) * 64, BLOCK), np.uint64)
    turned, room, others = np.empty((-(-n // 64), 64), np.uint64), np.empty(64, np.uint64), np.empty(n, np.int64)
    for variable in range(n):  # of two states there is one other than the usual
        is_binary = data.values[variable + 1] - data.values[variable] == 2
        others[variable] = data.values[variable] + 1 - data.usual[variable] if is_binary else -1
    for block in range(begin, end):
        first, here, squares[block] = block * BLOCK, at[block], 0
        n_here = min(BLOCK, n_words - first)
        for variable in range(n):
            mark_unusual(variable, np.int64(first), marks[variable, :n_here], data)
        for word in range(first, first + n_here):
            for group in range(turned.shape[0]):
                for k in range(64):
                    turned[group, k] = marks[group * 64 + k, word - first]
                _turn(turned[group], room)
            for case in range(word * 64, min(word * 64 + 64, n_cases)):
                data.begin[case] = here
                here = _list_case(case, here, turned, others, data)
                squares[block] += (here - data.begin[case]) ** 2


@jit
def list_values(begin: int, end: int, at: Array, squares: Array, data: Planes) -> None:
    """List the values of the cases of some blocks, each from at[block] on; and the sum of the squares of how many."""
    _list_values(begin, end, at, squares, data)


@jit
def lay_out(n_states: Array, lists: bool, at: Array, squares: Array, data: Planes) -> int:
    """Fill in all of the table but the lists, and these if asked for; how many values they hold."""
    n, n_planes = data.columns.shape[0], 0
    data.values[0] = 0
    for variable in range(n):
        data.values[variable + 1] = data.values[variable] + n_states[variable]
        data.first[variable] = n_planes if n_states[variable] <= MOST_PLANE_STATES else -1
        n_planes += n_states[variable] - 1 if data.first[variable] >= 0 else 0
    for variable in range(n):
        pack(variable, data)
        _add_unusual(variable, at[1:], data)
    n_blocks = squares.shape[0]
    for block in range(n_blocks):
        at[block + 1] += at[block]
    data.begin[data.columns.shape[1]] = at[n_blocks]
    if lists:
        _list_values(np.int64(0), n_blocks, at, squares, data)
    return int(at[n_blocks])
