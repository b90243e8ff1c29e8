"""Columns as bit planes: one mask for each state but the first; packed, and counted."""

import numpy as np

from leafwise.kernels.arrays import Array, Planes
from leafwise.kernels.jit import bare, inlined, jit
from leafwise.kernels.words import popcount


@bare
def pack_state(column: Array, state: int, plane: Array) -> None:
    """Set bit c of the plane where case c of the column is in the state."""
    for word in range(plane.shape[0]):
        bits = np.uint64(0)
        first = word * 64
        for bit in range(min(64, column.shape[0] - first)):
            if column[first + bit] == state:
                bits |= np.uint64(1) << np.uint64(bit)
        plane[word] = bits


@bare
def count_planes(n_cases: int, planes: Array, out: Array) -> None:
    """How many cases are in each state, by the planes of all states but the first."""
    out[0] = n_cases
    for state in range(1, out.shape[0]):
        n = np.int64(0)
        for word in range(planes.shape[1]):
            n += popcount(planes[state - 1, word])
        out[state] = n
        out[0] -= n


@bare
def _count_codes(column: Array, out: Array) -> None:
    """The same, case by case."""
    for state in range(out.shape[0]):
        out[state] = 0
    for case in range(column.shape[0]):
        out[column[case]] += 1


@inlined
def planes_of(variable: int, data: Planes) -> Array:
    """The variable's planes, if it has any."""
    first = data.first[variable]
    n_planes = data.values[variable + 1] - data.values[variable] - 1 if first >= 0 else 0
    return data.words[first : first + n_planes]


@jit
def pack(begin: int, end: int, data: Planes) -> None:
    """Fill the planes of the variables from one to another, and count their states."""
    for variable in range(begin, end):
        planes = planes_of(variable, data)
        for k in range(planes.shape[0]):
            pack_state(data.columns[variable], k + 1, planes[k])
        counts = data.counts[data.values[variable] : data.values[variable + 1]]
        if data.first[variable] >= 0:
            count_planes(data.columns.shape[1], planes, counts)
        else:
            _count_codes(data.columns[variable], counts)
        data.usual[variable] = np.argmax(counts)
