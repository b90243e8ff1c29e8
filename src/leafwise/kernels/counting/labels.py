"""Cells packed into bytes as they are read: the place of each cell's value among those seen so far.

255 is a missing cell. Whoever reads Arrow's arrays calls these batch by batch, so nothing wider than a byte stays.
"""

import numpy as np

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.compiling.types import Array

UNKNOWN = 254  # in `places`: a number that has not been seen yet


@part
def _count(cells: Array, counts: Array) -> None:
    """Add how often each code occurs; two tallies, as one would wait for itself where neighbours are alike."""
    other = np.zeros(256, np.int64)
    for k in range(0, cells.shape[0] - 1, 2):
        counts[cells[k]] += 1
        other[cells[k + 1]] += 1
    if cells.shape[0] % 2:
        counts[cells[cells.shape[0] - 1]] += 1
    for code in range(256):
        counts[code] += other[code]


@jit
def pack_numbers(cells: Array, least: int, places: Array, seen: Array, n_seen: int, out: Array, counts: Array) -> int:
    """Pack whole numbers from `least` on: places[number - least], and new ones to `seen`, which has n_seen.

    How many are seen now; -1 where a number is out of range, or there is no room for another one.
    """
    for k in range(cells.shape[0]):
        place = np.int64(cells[k]) - least
        if place < 0 or place >= places.shape[0]:
            return -1
        code = places[place]
        if code == UNKNOWN:
            if n_seen == seen.shape[0]:
                return -1
            seen[n_seen] = cells[k]
            code = places[place] = n_seen
            n_seen += 1
        out[k] = code
    _count(out, counts)
    return n_seen


@jit
def pack_places(cells: Array, codes: Array, out: Array, counts: Array) -> None:
    """Pack places in a dictionary, each as its code; that of place -1 is the last."""
    for k in range(cells.shape[0]):
        out[k] = codes[cells[k]]
    _count(out, counts)


@jit
def recode(cells: Array, codes: Array) -> None:
    """Put another code in the place of each."""
    for k in range(cells.shape[0]):
        cells[k] = codes[cells[k]]
