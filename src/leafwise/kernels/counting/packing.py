"""Packing of a table for counting: bit planes, and their transposition into rows.

Planes are by variable and rows by case, so 64 planes at a time are transposed: bit c of word v becomes bit v of word c.
"""

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.counting.arrays import Planes
from leafwise.kernels.counting.planes import pack

BLOCK = 8  # words of a plane that are transposed together: a cache line
SPARE = 8  # words behind the last row, since rows are read in chunks of this many words


@inlined
def _deal(words: Array, shift: np.uint64, mask: np.uint64, out: Array) -> None:
    """Interleave the first and the second half of 64 words, exchanging bits between the words of each pair."""
    for k in range(32):
        low, high = words[k], words[k + 32]
        out[2 * k] = low & mask | (high & mask) << shift
        out[2 * k + 1] = low >> shift & mask | high & ~mask


@bare
def _turn(words: Array, other: Array) -> None:
    """Transpose a 64 x 64 bit matrix in place; `other` is scratch memory."""
    _deal(words, np.uint64(32), np.uint64(0x00000000FFFFFFFF), other)
    _deal(other, np.uint64(16), np.uint64(0x0000FFFF0000FFFF), words)
    _deal(words, np.uint64(8), np.uint64(0x00FF00FF00FF00FF), other)
    _deal(other, np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F), words)
    _deal(words, np.uint64(2), np.uint64(0x3333333333333333), other)
    _deal(other, np.uint64(1), np.uint64(0x5555555555555555), words)


@jit
def pack_columns(begin: int, end: int, data: Planes) -> None:
    """Fill the planes of variables begin to end - 1, and count the cases in each state."""
    for variable in range(begin, end):
        pack(variable, data)
        first, values = data.first[variable], data.values[variable]
        for state in range(1, data.values[variable + 1] - values if first >= 0 else 0):
            data.ones[first + state - 1] = data.counts[values + state]


@jit
def pack_rows(begin: int, end: int, data: Planes) -> None:
    """Fill the rows of the cases in blocks begin to end - 1, from the planes."""
    words, rows, width, n_cases = data.words, data.rows, data.width, data.columns.shape[1]
    square, room = np.empty(64, np.uint64), np.empty(64, np.uint64)
    for block in range(begin, end):
        for group in range(width):
            n_planes = min(64, words.shape[0] - 64 * group)
            for word in range(block * BLOCK, min((block + 1) * BLOCK, words.shape[1])):
                for k in range(64):
                    square[k] = words[64 * group + k, word] if k < n_planes else np.uint64(0)
                _turn(square, room)
                for case in range(64 * word, min(64 * word + 64, n_cases)):
                    rows[case * width + group] = square[case & 63]
