"""Cases with missing cells: their probability, draws of the cells, and expected counts, by one elimination per case.

All cases share one order of elimination, restricted to what a case lacks. Its graphs are followed as far as they test
observed variables; the remainder of each is a factor over the missing variables that it still tests, so a factor
contains only what matters in this case. Factors are multiplied by bucket elimination: a bucket contains those whose
next variable to be eliminated is the same, and sends a message to a later bucket. Going back from the last bucket to
the first, variables are drawn, or beliefs are distributed.

In every factor the next variable to be eliminated is the innermost, so its states are adjacent.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.compiling.words import lowest
from leafwise.kernels.questions.contraction import THIN

Codes = NDArray[Any]  # uint8 or uint16
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

_MOST_DIMS = 24  # of a factor: more would not fit into any memory
_MOST_ORDERED = 64  # most missing variables of a case for which an order of its own is sought
_CHEAP = 2000.0  # number of products up to which the common order is good enough
_SAFE = 1e-290  # products above this do not underflow
_TINY = 5e-324  # the smallest positive number


class Model(NamedTuple):
    """All graphs of a network, and the order of elimination."""

    n_states: Longs
    root: Ints  # by variable: root of its graph; -1: it has none
    test: Ints
    first: Ints  # a test: index in `child` of its first child; a leaf: index in `probability` of its distribution
    child: Ints
    probability: Floats
    rank: Longs  # by variable: its position in the order of elimination
    by_rank: Longs
    order: Longs  # topological order, parents first


class Room(NamedTuple):
    """Scratch memory for one case at a time."""

    arena: Floats  # the numbers of all factors; ends[0] is where the free part begins
    ends: Longs
    case: Longs  # states of the case; those of missing variables are temporary
    missing: NDArray[np.bool_]
    start: Ints  # by graph: the node where it first tests a missing variable, or its leaf
    seen: Longs  # by node, then by variable: stamp of the last traversal that visited it
    stamps: Longs  # one number: stamp of the present traversal
    stack: Ints
    dims: Longs  # (2 n, most): variables of each factor; factor g is graph g, n + v the message of bucket v
    n_dims: Longs
    begin: Longs  # by factor: index in the arena
    least: Floats  # by factor: its smallest positive number; the largest is at most one
    uses: Longs  # by missing variable: number of its factors; later, index of its uniform number, or of its marginal
    follows: Longs  # by factor: the next factor of the same bucket
    bucket: Longs  # by variable: its first factor; -1: none
    clique: Longs  # by variable: index in the arena of its belief
    strides: Longs  # (2 n + 1, most): strides of the factors of a bucket, in the bucket's dimensions
    digit: Longs
    place: Longs
    weight: Floats  # by state
    rank: Longs  # by variable: its position in the order of elimination of this case
    order: Longs  # the ends[1] missing variables that are in a factor, in this order
    near: NDArray[np.uint64]  # by position in the order: bits of the others that share a factor


def new_room(model: Model, n_numbers: int) -> Room:
    """Allocate memory for cases of a network whose factors contain at most n_numbers numbers."""
    n = model.n_states.shape[0]
    longest = max(model.test.shape[0], 1)
    return Room(
        np.empty(n_numbers),
        np.zeros(2, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.bool_),
        np.zeros(n, np.int32),
        np.zeros(longest + n, np.int64),
        np.zeros(1, np.int64),
        np.empty(longest, np.int32),
        np.empty((2 * n, _MOST_DIMS + 1), np.int64),
        np.zeros(2 * n, np.int64),
        np.zeros(2 * n, np.int64),
        np.zeros(2 * n),
        np.zeros(n, np.int64),
        np.zeros(2 * n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.empty((2 * n + 1, _MOST_DIMS + 1), np.int64),
        np.zeros(_MOST_DIMS + 1, np.int64),
        np.zeros(2 * n + 1, np.int64),
        np.zeros(model.n_states.max()),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(4 * _MOST_ORDERED, np.uint64),
    )


@part
def _add_dim(room: Room, factor: int, variable: int) -> bool:
    """Insert a variable among those of a factor, in order of elimination; return False if there are too many."""
    at = room.n_dims[factor]
    if at >= _MOST_DIMS:
        return False
    dims = room.dims[factor]
    while at > 0 and room.rank[dims[at - 1]] < room.rank[variable]:
        dims[at] = dims[at - 1]
        at -= 1
    dims[at] = variable
    room.n_dims[factor] += 1
    return True


@part
def _find_scope(model: Model, room: Room, g: int, stamp: int) -> bool:
    """List the missing variables that graph g still tests, and its own if it is missing; return False if too many."""
    n_nodes = model.test.shape[0]
    room.n_dims[g] = 0
    fine = True
    if room.missing[g]:
        room.seen[n_nodes + g] = stamp
        fine = _add_dim(room, g, g)
    room.stack[0] = room.start[g]
    height = 1
    while height > 0:
        height -= 1
        node = room.stack[height]
        variable = model.test[node]
        if variable < 0:
            continue
        if not room.missing[variable]:
            child = model.child[model.first[node] + room.case[variable]]
            if room.seen[child] != stamp:
                room.seen[child] = stamp
                room.stack[height] = child
                height += 1
            continue
        if room.seen[n_nodes + variable] != stamp:
            room.seen[n_nodes + variable] = stamp
            fine = fine and _add_dim(room, g, variable)
        for k in range(model.first[node], model.first[node] + model.n_states[variable]):
            child = model.child[k]
            if room.seen[child] != stamp:
                room.seen[child] = stamp
                room.stack[height] = child
                height += 1
    return fine


@part
def _enter(model: Model, room: Room, codes: Codes, column: int, stamps: Longs) -> float:
    """Load a case; return the log probability of the cells whose graphs test nothing missing.

    The other graphs get dimensions. NaN if a graph tests too many missing variables.
    """
    n = model.n_states.shape[0]
    for v in range(n):
        room.case[v] = codes[v, column]
        room.missing[v] = room.case[v] >= model.n_states[v]
        room.rank[v] = model.rank[v]
        room.uses[v] = 0
        room.bucket[v] = -1
        room.n_dims[v] = 0
    room.ends[0] = 0
    product, log_total = 1.0, 0.0
    for g in range(n):
        node = model.root[g]
        if node < 0:
            continue
        while model.test[node] >= 0 and not room.missing[model.test[node]]:
            node = model.child[model.first[node] + room.case[model.test[node]]]
        room.start[g] = node
        if model.test[node] < 0 and not room.missing[g]:
            probability = model.probability[model.first[node] + room.case[g]]
            if probability == 0.0:
                return -np.inf
            if product * probability < _SAFE:
                log_total += math.log(product)
                product = 1.0
            product *= probability
        else:
            stamps[0] += 1
            if not _find_scope(model, room, g, stamps[0]):
                return np.nan
            for d in range(room.n_dims[g]):
                room.uses[room.dims[g, d]] += 1
    return log_total + math.log(product)


@part
def _prune(model: Model, room: Room) -> None:
    """Remove the graphs of missing variables that nothing else depends on: they sum to one."""
    for k in range(model.order.shape[0] - 1, -1, -1):
        v = model.order[k]
        if room.missing[v] and room.uses[v] == 1:
            for d in range(room.n_dims[v]):
                room.uses[room.dims[v, d]] -= 1
            room.n_dims[v] = 0


@part
def _fill(model: Model, room: Room, g: int) -> bool:
    """Write the factor of graph g, for every assignment of its variables; return False if memory is short."""
    size, own_stride = 1, 0
    dims, strides = room.dims[g], room.strides[0]
    n_dims = room.n_dims[g]
    for d in range(n_dims - 1, -1, -1):
        strides[d] = size
        if dims[d] == g:
            own_stride = size
        size *= model.n_states[dims[d]]
        room.case[dims[d]] = 0
        if room.ends[0] + size > room.arena.shape[0]:
            return False
    room.begin[g] = at = room.ends[0]
    room.ends[0] += size
    least = 1.0
    while True:
        node = room.start[g]
        while model.test[node] >= 0:
            node = model.child[model.first[node] + room.case[model.test[node]]]
        if own_stride > 0:
            for state in range(model.n_states[g]):
                probability = model.probability[model.first[node] + state]
                room.arena[at + state * own_stride] = probability
                least = probability if 0.0 < probability < least else least
        else:
            probability = model.probability[model.first[node] + room.case[g]]
            room.arena[at] = probability
            least = probability if 0.0 < probability < least else least
        d = n_dims - 1
        while d >= 0:
            v = dims[d]
            if v != g:
                room.case[v] += 1
                at += strides[d]
                if room.case[v] < model.n_states[v]:
                    break
                at -= strides[d] * room.case[v]
                room.case[v] = 0
            d -= 1
        if d < 0:
            room.least[g] = least
            return True


@part
def _enlist(room: Room, factor: int) -> None:
    """Put a factor into the bucket of its next variable to be eliminated."""
    v = room.dims[factor, room.n_dims[factor] - 1]
    room.follows[factor], room.bucket[v] = room.bucket[v], factor


@part
def _unite(model: Model, room: Room, v: int, stamps: Longs) -> int:
    """List the variables of a bucket as the dimensions of its message, v last, and the strides of all its factors.

    Returns the number of factors; -1 if there are too many variables.
    """
    message = model.n_states.shape[0] + v
    n_nodes = model.test.shape[0]
    stamps[0] += 1
    room.n_dims[message] = 0
    n_factors = 0
    factor = room.bucket[v]
    while factor >= 0:
        for d in range(room.n_dims[factor]):
            variable = room.dims[factor, d]
            if room.seen[n_nodes + variable] != stamps[0]:
                room.seen[n_nodes + variable] = stamps[0]
                if not _add_dim(room, message, variable):
                    return -1
        n_factors += 1
        factor = room.follows[factor]
    for d in range(room.n_dims[message]):
        room.digit[d] = 0
    factor = room.bucket[v]
    for k in range(n_factors):
        own, stride = room.n_dims[factor] - 1, 1
        for d in range(room.n_dims[message] - 1, -1, -1):
            variable = room.dims[message, d]
            room.strides[k, d] = 0
            if own >= 0 and room.dims[factor, own] == variable:
                room.strides[k, d] = stride
                stride *= model.n_states[variable]
                own -= 1
        room.place[k] = room.begin[factor]
        factor = room.follows[factor]
    return n_factors


@part
def _next(model: Model, room: Room, message: int, n_factors: int) -> bool:
    """Advance to the next assignment of all variables of a bucket but the last; return False if there is none."""
    d = room.n_dims[message] - 2
    while d >= 0:
        room.digit[d] += 1
        n = model.n_states[room.dims[message, d]]
        if room.digit[d] < n:
            for k in range(n_factors):
                room.place[k] += room.strides[k, d]
            return True
        for k in range(n_factors):
            room.place[k] -= room.strides[k, d] * (n - 1)
        room.digit[d] = 0
        d -= 1
    return False


@part
def _is_safe(room: Room, v: int) -> bool:
    """Return whether no product of numbers of the bucket's factors can underflow."""
    product, factor = 1.0, room.bucket[v]
    while factor >= 0:
        product *= room.least[factor]
        factor = room.follows[factor]
    return product > _SAFE


@part
def _product(room: Room, n_factors: int, last: int, state: int, log_scale: float) -> float:
    """Return the product of all factors at the current assignment, in a state of the bucket's variable.

    With a non-zero log scale it is computed by logs, divided by the scale, and zero only if a factor is.
    """
    if log_scale == 0.0:
        product = 1.0
        for k in range(n_factors):
            product *= room.arena[room.place[k] + state * room.strides[k, last]]
        return product
    log_product = -log_scale
    for k in range(n_factors):
        value = room.arena[room.place[k] + state * room.strides[k, last]]
        if value == 0.0:
            return 0.0
        log_product += math.log(value)
    return max(math.exp(log_product), _TINY)


@part
def _log_scale(model: Model, room: Room, v: int, n_factors: int) -> float:
    """Return the log of the largest product of a bucket; zero if products cannot underflow."""
    if _is_safe(room, v):
        return 0.0
    message = model.n_states.shape[0] + v
    last, largest = room.n_dims[message] - 1, -np.inf
    while True:
        for state in range(model.n_states[v]):
            log_product = 0.0
            for k in range(n_factors):
                value = room.arena[room.place[k] + state * room.strides[k, last]]
                log_product += math.log(value) if value > 0.0 else -np.inf
            largest = max(largest, log_product)
        if not _next(model, room, message, n_factors):
            return largest if largest != 0.0 else _TINY


@part
def _send(model: Model, room: Room, v: int, stamps: Longs) -> float:
    """Compute the message of bucket v, scaled to at most one; return its log scale. NaN: another method is needed."""
    message = model.n_states.shape[0] + v
    n_factors = _unite(model, room, v, stamps)
    if n_factors < 0:
        return np.nan
    size, left = 1, room.arena.shape[0] - room.ends[0]
    for d in range(room.n_dims[message] - 1):
        if size <= left:
            size *= model.n_states[room.dims[message, d]]
    if size > left:
        return np.nan
    log_scale = _log_scale(model, room, v, n_factors)
    if log_scale == -np.inf:
        return np.nan
    begin = room.begin[message] = room.ends[0]
    room.ends[0] += size
    last = room.n_dims[message] - 1
    at, largest, smallest = begin, 0.0, np.inf
    while True:
        total = 0.0
        for state in range(model.n_states[v]):
            total += _product(room, n_factors, last, state, log_scale)
        room.arena[at] = total
        largest = max(largest, total)
        if 0.0 < total < smallest:
            smallest = total
        at += 1
        if not _next(model, room, message, n_factors):
            break
    room.n_dims[message] -= 1  # v, which is summed out
    if largest == 0.0 or smallest < THIN * largest:
        return np.nan
    for at in range(begin, begin + size):
        room.arena[at] /= largest
    room.least[message] = smallest / largest
    return math.log(largest) + log_scale


@part
def _cost(model: Model, room: Room, m: int, greedy: bool) -> float:
    """Return the number of products to eliminate in the given order, or in a greedy one, which is written to `near`.

    The greedy order takes next the variable that makes the smallest product. The first part of `near` is not changed;
    the second is working memory, and the third receives the order.
    """
    near = room.near[_MOST_ORDERED : 2 * _MOST_ORDERED]
    near[:m] = room.near[:m]
    left = np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - m)
    cost = 0.0
    for step in range(m):
        best, least = step, np.inf
        for v in range(m if greedy else 0):
            if left >> np.uint64(v) & np.uint64(1):
                size = _product_of(model, room, near[v] & left, v)
                if size < least:
                    best, least = v, size
        if not greedy:
            least = _product_of(model, room, near[step] & left, step)
        left &= ~(np.uint64(1) << np.uint64(best))
        room.near[2 * _MOST_ORDERED + step] = np.uint64(best)
        others = near[best] & left
        bits = others
        while bits:
            v = lowest(bits)
            bits &= bits - np.uint64(1)
            near[v] |= others & ~(np.uint64(1) << np.uint64(v))
        cost += least
    return cost


@part
def _product_of(model: Model, room: Room, bits: Any, v: int) -> float:
    size = float(model.n_states[room.order[v]])
    while bits:
        size *= model.n_states[room.order[lowest(bits)]]
        bits &= bits - np.uint64(1)
    return size


@part
def _put_in_order(model: Model, room: Room) -> None:
    """List the missing variables that are in a factor, in the common order, or if cheaper in one for this case."""
    n, m = model.n_states.shape[0], 0
    for k in range(n):
        v = model.by_rank[k]
        if room.missing[v] and room.uses[v] > 0:
            room.order[m] = v
            room.rank[v] = m
            m += 1
    room.ends[1] = m
    if m < 4 or m > _MOST_ORDERED:
        return
    room.near[:m] = np.uint64(0)
    for g in range(n):
        together = np.uint64(0)
        for d in range(room.n_dims[g]):
            together |= np.uint64(1) << np.uint64(room.rank[room.dims[g, d]])
        for d in range(room.n_dims[g]):
            v = room.rank[room.dims[g, d]]
            room.near[v] |= together & ~(np.uint64(1) << np.uint64(v))
    cost = _cost(model, room, m, False)
    if cost <= _CHEAP or _cost(model, room, m, True) >= cost:
        return
    for step in range(m):
        room.near[step] = np.uint64(room.order[int(room.near[2 * _MOST_ORDERED + step])])
    for step in range(m):
        room.order[step] = int(room.near[step])
        room.rank[room.order[step]] = step
    for g in range(n):
        for d in range(1, room.n_dims[g]):
            v, at = room.dims[g, d], d
            while at > 0 and room.rank[room.dims[g, at - 1]] < room.rank[v]:
                room.dims[g, at] = room.dims[g, at - 1]
                at -= 1
            room.dims[g, at] = v


@part
def _eliminate(model: Model, room: Room, stamps: Longs) -> float:
    """Sum over all missing variables that are in a factor; return the log of the sum. NaN: another method is needed."""
    n = model.n_states.shape[0]
    _put_in_order(model, room)
    for g in range(n):
        if room.n_dims[g] > 0:
            state = room.case[g]
            if not _fill(model, room, g):
                return np.nan
            room.case[g] = state
            _enlist(room, g)
    log_total = 0.0
    for k in range(room.ends[1]):
        v = room.order[k]
        if room.bucket[v] >= 0:
            log_total += _send(model, room, v, stamps)
            if math.isnan(log_total):
                return np.nan
            if room.n_dims[n + v] > 0:
                _enlist(room, n + v)
    return log_total


@part
def _log_probability(model: Model, room: Room, codes: Codes, column: int, stamps: Longs) -> float:
    """Return the log probability of what a case shows, with missing variables eliminated; NaN if memory is short."""
    value = _enter(model, room, codes, column, stamps)
    if value > -np.inf:
        _prune(model, room)
        value += _eliminate(model, room, stamps)
    return value


@jit
def log_probabilities(flat: Model, made: Room, codes: Codes, out: Floats) -> None:
    """Compute the log probability of what each case shows; NaN if another method is needed."""
    model = refer(flat)
    room = refer(made)
    stamps = room.stamps
    for column in range(codes.shape[1]):
        out[column] = _log_probability(model, room, codes, column, stamps)


@part
def _chosen(weight: Floats, n: int, uniform: float) -> int:
    """Draw a state in proportion to the weights."""
    total = 0.0
    for state in range(n):
        total += weight[state]
    left, last = uniform * total, 0
    for state in range(n):
        if weight[state] > 0:
            last = state
            if left < weight[state]:
                break
            left -= weight[state]
    return last


@part
def _draw(model: Model, room: Room, uniform: Floats) -> None:
    """Draw all missing variables into the case, after `_eliminate`; each has a uniform number."""
    n = model.n_states.shape[0]
    n_before = 0
    for v in range(n):
        room.uses[v] = n_before
        n_before += room.missing[v]
    for k in range(room.ends[1] - 1, -1, -1):
        v = room.order[k]
        factor = room.bucket[v]
        if factor < 0:
            continue
        for state in range(model.n_states[v]):
            room.weight[state] = 1.0
        while factor >= 0:
            at, stride = room.begin[factor], model.n_states[v]
            for d in range(room.n_dims[factor] - 2, -1, -1):  # the last is v
                at += room.case[room.dims[factor, d]] * stride
                stride *= model.n_states[room.dims[factor, d]]
            largest = 0.0
            for state in range(model.n_states[v]):
                room.weight[state] *= room.arena[at + state]
                largest = max(largest, room.weight[state])
            for state in range(model.n_states[v]):
                room.weight[state] /= largest
            factor = room.follows[factor]
        room.case[v] = _chosen(room.weight, model.n_states[v], uniform[room.uses[v]])
    for k in range(n):
        v = model.order[k]
        if room.missing[v] and room.bucket[v] < 0:  # no observed variable depends on it
            node = room.start[v]
            while model.test[node] >= 0:
                node = model.child[model.first[node] + room.case[model.test[node]]]
            begin = model.first[node]
            here = model.probability[begin : begin + model.n_states[v]]
            room.case[v] = _chosen(here, model.n_states[v], uniform[room.uses[v]])


@jit
def draw(flat: Model, made: Room, codes: Codes, uniform: Floats, first: Longs, log_probability: Floats) -> None:
    """Fill the missing cells of each case with states drawn given what it shows, and write its log probability.

    The uniform numbers for a case, one per missing cell, begin at its `first`. Cases whose log is not finite are not
    changed: they are impossible, or (NaN) must be drawn by another method.
    """
    model = refer(flat)
    room = refer(made)
    stamps = room.stamps
    for column in range(codes.shape[1]):
        log_probability[column] = _log_probability(model, room, codes, column, stamps)
        if math.isfinite(log_probability[column]):
            _draw(model, room, uniform[first[column] :])
            for v in range(codes.shape[0]):
                if room.missing[v]:
                    codes[v, column] = room.case[v]


@part
def _believe(model: Model, room: Room, v: int, stamps: Longs) -> None:
    """Compute the belief of the variables of bucket v given all the case shows.

    The memory of its message by now contains the belief of the bucket that received it, divided by the message.
    """
    n_factors = _unite(model, room, v, stamps)
    message = model.n_states.shape[0] + v
    last, n = room.n_dims[message] - 1, model.n_states[v]
    begin = room.clique[v] = room.ends[0]
    arena = room.arena
    log_scale = _log_scale(model, room, v, n_factors)
    at, around, total = begin, room.begin[message], 0.0
    while True:
        for state in range(n):
            arena[at] = arena[around] * _product(room, n_factors, last, state, log_scale)
            total += arena[at]
            at += 1
        around += 1
        if not _next(model, room, message, n_factors):
            break
    room.ends[0] = at
    for place in range(begin, at):
        arena[place] /= total


@part
def _sum_to(model: Model, room: Room, v: int, k: int, factor: int) -> int:
    """Write the belief of bucket v, summed to the variables of its k-th factor, behind the rest; return its size."""
    message = model.n_states.shape[0] + v
    size = 1
    for d in range(room.n_dims[factor]):
        size *= model.n_states[room.dims[factor, d]]
    begin = room.ends[0]
    for at in range(begin, begin + size):
        room.arena[at] = 0.0
    last = room.n_dims[message] - 1
    for d in range(last):
        room.digit[d] = 0
    at, to, stride = room.clique[v], begin, room.strides[k, last]
    while True:
        for state in range(model.n_states[v]):
            room.arena[to + state * stride] += room.arena[at]
            at += 1
        d = last - 1
        while d >= 0:
            room.digit[d] += 1
            n = model.n_states[room.dims[message, d]]
            if room.digit[d] < n:
                to += room.strides[k, d]
                break
            to -= room.strides[k, d] * (n - 1)
            room.digit[d] = 0
            d -= 1
        if d < 0:
            return size


@part
def _share_out(model: Model, room: Room, v: int) -> None:
    """Replace each message that bucket v received by the belief summed to its variables, divided by the message."""
    k, factor = 0, room.bucket[v]
    while factor >= 0:
        if factor >= model.n_states.shape[0]:
            size = _sum_to(model, room, v, k, factor)
            for at in range(size):
                was = room.arena[room.begin[factor] + at]
                room.arena[room.begin[factor] + at] = room.arena[room.ends[0] + at] / was if was > 0 else 0.0
        k += 1
        factor = room.follows[factor]


@part
def _count(model: Model, room: Room, v: int, counts: Floats) -> None:
    """Add the beliefs of the leaf and state of every graph in bucket v to the counts."""
    k, factor = 0, room.bucket[v]
    while factor >= 0:
        if factor < model.n_states.shape[0]:
            shown = room.case[factor]
            size = _sum_to(model, room, v, k, factor)
            for cell in range(size):
                rest = cell
                for d in range(room.n_dims[factor] - 1, -1, -1):
                    variable = room.dims[factor, d]
                    room.case[variable] = rest % model.n_states[variable]
                    rest //= model.n_states[variable]
                node = room.start[factor]
                while model.test[node] >= 0:
                    node = model.child[model.first[node] + room.case[model.test[node]]]
                counts[model.first[node] + room.case[factor]] += room.arena[room.ends[0] + cell]
            room.case[factor] = shown
        k += 1
        factor = room.follows[factor]


@part
def _fits(model: Model, room: Room) -> bool:
    """Return whether the arena has space for the beliefs of all buckets, and for a sum."""
    left, largest = room.arena.shape[0] - room.ends[0], 0
    for v in range(model.n_states.shape[0]):
        if room.bucket[v] >= 0:
            size = model.n_states[v]
            for d in range(room.n_dims[model.n_states.shape[0] + v]):
                size *= model.n_states[room.dims[model.n_states.shape[0] + v, d]]
            left -= size
            largest = max(largest, size)
    return left >= largest


@part
def _go_back(model: Model, room: Room, stamps: Longs, counts: Floats, marginals: Floats, cell: int) -> None:
    """Compute beliefs from the last bucket to the first; add to counts, and to marginals from index `cell` on."""
    n = model.n_states.shape[0]
    if marginals.shape[0] > 0:
        for v in range(n):
            room.uses[v] = cell
            cell += model.n_states[v] if room.missing[v] else 0
    for k in range(room.ends[1] - 1, -1, -1):
        v = room.order[k]
        if room.bucket[v] < 0:
            continue
        _believe(model, room, v, stamps)
        if marginals.shape[0] > 0:
            for at in range(room.ends[0] - room.clique[v]):
                marginals[room.uses[v] + at % model.n_states[v]] += room.arena[room.clique[v] + at]
        if counts.shape[0] > 0:
            _count(model, room, v, counts)
        _share_out(model, room, v)
    for g in range(n):
        if counts.shape[0] > 0 and room.n_dims[g] == 0 and model.root[g] >= 0:
            counts[model.first[room.start[g]] + room.case[g]] += 1.0


@jit
def expect(
    flat: Model, made: Room, codes: Codes, counts: Floats, marginals: Floats, first_cell: Longs, out: Floats
) -> None:
    """Add expected counts of all leaves and marginals of missing cells, and write each case's log probability.

    The marginals of a case, one missing variable after the other, begin at its first_cell. Empty arrays of counts or
    marginals are not filled. Cases whose log is not finite add nothing: they are impossible, or (NaN) need another
    method.
    """
    model = refer(flat)
    room = refer(made)
    stamps = room.stamps
    for column in range(codes.shape[1]):
        out[column] = _enter(model, room, codes, column, stamps)
        if out[column] > -np.inf:
            out[column] += _eliminate(model, room, stamps)
        if math.isfinite(out[column]):
            if _fits(model, room):
                _go_back(model, room, stamps, counts, marginals, first_cell[column])
            else:
                out[column] = np.nan
