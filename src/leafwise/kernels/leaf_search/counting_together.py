"""One leaf counted by several threads: who counts many cases lets those help who have nothing to do.

The set is cut into parts, and whoever is free counts the next one. One set at a time is counted so; who has another
helps first. Counts are integers, so it does not matter who counted what, and in which order.
"""

from typing import Any

import numpy as np

from leafwise.kernels.compiling.atomics import add, lock, look, rest, swap, unlock
from leafwise.kernels.compiling.jit import bare
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.counting.bits import Scratch, cost_of, count_set, size_of
from leafwise.kernels.counting.sets import length_of
from leafwise.kernels.leaf_search.state import (
    ADDING,
    N_COUNTED,
    N_HELPING,
    N_IDLE,
    N_PARTS,
    NEXT_PART,
    PARTED,
    PARTED_LENGTH,
    PARTED_SET,
    PARTED_TARGET,
    PARTED_TO,
    State,
)

_WORTH_HELP, _WORTH_A_PART = 40_000.0, 20_000.0  # nanoseconds
_PARTS = 4  # for each thread


@bare
def _count_parts(state: State, part: Array, scratch: Scratch) -> int:
    """Count parts of the set that is being counted, if there is one, as long as there are any; how many."""
    shared, cells, n = state.shared, state.pool.cells, 0
    n_parts, layout = look(shared, N_PARTS), state.scoring.layout
    target, length, to = shared[PARTED_TARGET], shared[PARTED_LENGTH], shared[PARTED_TO]
    while n_parts > 0:
        number = add(shared, NEXT_PART, np.int64(1))
        if number >= n_parts:
            break
        begin, end = number * length // n_parts, (number + 1) * length // n_parts
        count_set(shared[PARTED_SET], target, 0, begin, end, part, layout, state.cases, scratch)
        lock(shared, ADDING)
        for cell in range(size_of(target, layout)):
            cells[to + cell] += part[cell]
        unlock(shared, ADDING)
        add(shared, N_COUNTED, np.int64(1))
        n += 1
    return n


@bare
def help_count(state: State, part: Array, scratch: Scratch) -> bool:
    """Help to count a set, if one is being counted; whether there was anything to do."""
    if look(state.shared, N_PARTS) == 0:
        return False
    add(state.shared, N_HELPING, np.int64(1))
    n = _count_parts(state, part, scratch)
    add(state.shared, N_HELPING, np.int64(-1))
    return n > 0


@bare
def count_leaf(leaf: Any, state: State, part: Array, scratch: Scratch) -> float:
    """Count the cases of a leaf, together with those who have nothing to do if that is worth it; nanoseconds, roughly.

    `part` has room for a histogram.
    """
    shared, layout, cases, target = state.shared, state.scoring.layout, state.cases, leaf["target"]
    set_, to, cost = cases.sets[leaf["cases"]], leaf["histogram"], cost_of(leaf["cases"], target, layout, cases)
    n_idle = look(shared, N_IDLE)
    if n_idle == 0 or cost < _WORTH_HELP:
        count_set(leaf["cases"], target, to, 0, -1, state.pool.cells, layout, cases, scratch)
        return cost
    while swap(shared, PARTED, np.int64(1)) != 0:
        if not help_count(state, part, scratch):
            rest()
    for cell in range(size_of(target, layout)):
        state.pool.cells[to + cell] = 0
    shared[PARTED_SET], shared[PARTED_TARGET], shared[PARTED_TO] = leaf["cases"], target, to
    shared[PARTED_LENGTH] = length_of(set_, cases.masks)
    n_parts = min(_PARTS * (n_idle + 1), int(cost / _WORTH_A_PART))
    swap(shared, NEXT_PART, np.int64(0))
    swap(shared, N_COUNTED, np.int64(0))
    swap(shared, N_PARTS, n_parts)  # from now on others may help
    _count_parts(state, part, scratch)
    while look(shared, N_COUNTED) < n_parts:
        rest()
    swap(shared, N_PARTS, np.int64(0))
    while look(shared, N_HELPING) > 0:
        rest()
    unlock(shared, PARTED)
    return cost / (n_idle + 1)
