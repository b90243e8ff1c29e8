"""Cooperative counting of one leaf by several threads: idle threads help those that count many cases.

The set is divided into parts, and every participating thread takes the next one. At most N_OFFERS sets at a time are
counted this way; further ones are counted by one thread alone. Counts are integers, so the result does not depend on
which thread counted which part, or in which order.
"""

from typing import Any

import numpy as np

from leafwise.kernels.compiling.atomics import atomic_add, atomic_exchange, atomic_load, lock, unlock, yield_thread
from leafwise.kernels.compiling.jit import bare
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.counting.bits import Scratch, cost_of, count_set, size_of
from leafwise.kernels.counting.sets import length_of
from leafwise.kernels.leaf_search.state import (
    ADDING,
    N_COUNTED,
    N_HELPING,
    N_IDLE,
    N_OFFERS,
    N_PARTS,
    NEXT_PART,
    OFFER,
    OFFERS,
    PARTED_LENGTH,
    PARTED_SET,
    PARTED_TARGET,
    PARTED_TO,
    TAKEN,
    State,
)

_WORTH_HELP, _WORTH_A_PART = 40_000.0, 20_000.0  # least cost of a set to be shared, and of a part, in nanoseconds
_PARTS = 4  # parts per thread


@bare
def _count_parts(offer: int, state: State, part: Array, scratch: Scratch) -> int:
    """Count parts of the set that is offered at `offer`, as long as there are any; return how many were counted.

    Each part is counted into `part`, the caller's own memory, and added to the histogram under a lock.
    """
    shared, cells, n = state.shared, state.pool.cells, 0
    n_parts, layout = atomic_load(shared, offer + N_PARTS), state.scoring.layout
    target, length, to = shared[offer + PARTED_TARGET], shared[offer + PARTED_LENGTH], shared[offer + PARTED_TO]
    while n_parts > 0:
        number = atomic_add(shared, offer + NEXT_PART, np.int64(1))
        if number >= n_parts:
            break
        begin, end = number * length // n_parts, (number + 1) * length // n_parts
        count_set(shared[offer + PARTED_SET], target, 0, begin, end, part, layout, state.cases, scratch)
        lock(shared, offer + ADDING)
        for cell in range(size_of(target, layout)):
            cells[to + cell] += part[cell]
        unlock(shared, offer + ADDING)
        atomic_add(shared, offer + N_COUNTED, np.int64(1))
        n += 1
    return n


@bare
def help_count(state: State, part: Array, scratch: Scratch) -> bool:
    """Help to count all sets that are on offer; return whether there was anything to do."""
    shared, n = state.shared, 0
    for offer in range(OFFERS, OFFERS + N_OFFERS * OFFER, OFFER):
        if atomic_load(shared, offer + N_PARTS) > 0:
            atomic_add(shared, offer + N_HELPING, np.int64(1))
            n += _count_parts(offer, state, part, scratch)
            atomic_add(shared, offer + N_HELPING, np.int64(-1))
    return n > 0


@bare
def _take_offer(shared: Array) -> int:
    """Reserve a free place to offer a set, which the caller must unlock; return its index, or -1 if all are taken."""
    for offer in range(OFFERS, OFFERS + N_OFFERS * OFFER, OFFER):
        if atomic_exchange(shared, offer + TAKEN, np.int64(1)) == 0:
            return offer
    return -1


@bare
def count_leaf(leaf: Any, state: State, part: Array, scratch: Scratch) -> float:
    """Count the cases of a leaf, together with idle threads if that is worthwhile; return the estimated nanoseconds.

    `part` is scratch memory for one histogram.
    """
    shared, layout, cases, target = state.shared, state.scoring.layout, state.cases, leaf["target"]
    set_, to, cost = cases.sets[leaf["cases"]], leaf["histogram"], cost_of(leaf["cases"], target, layout, cases)
    n_idle = atomic_load(shared, N_IDLE)
    offer = _take_offer(shared) if n_idle > 0 and cost >= _WORTH_HELP else -1
    if offer < 0:
        count_set(leaf["cases"], target, to, 0, -1, state.pool.cells, layout, cases, scratch)
        return cost
    for cell in range(size_of(target, layout)):
        state.pool.cells[to + cell] = 0
    shared[offer + PARTED_SET], shared[offer + PARTED_TARGET], shared[offer + PARTED_TO] = leaf["cases"], target, to
    shared[offer + PARTED_LENGTH] = length_of(set_, cases.masks)
    n_parts = min(_PARTS * (n_idle + 1), int(cost / _WORTH_A_PART))
    atomic_exchange(shared, offer + NEXT_PART, np.int64(0))
    atomic_exchange(shared, offer + N_COUNTED, np.int64(0))
    atomic_exchange(shared, offer + N_PARTS, n_parts)  # releases the fields above to other threads
    _count_parts(offer, state, part, scratch)
    while atomic_load(shared, offer + N_COUNTED) < n_parts:
        yield_thread()
    atomic_exchange(shared, offer + N_PARTS, np.int64(0))
    while atomic_load(shared, offer + N_HELPING) > 0:
        yield_thread()
    unlock(shared, offer + TAKEN)
    return cost / (n_idle + 1)
