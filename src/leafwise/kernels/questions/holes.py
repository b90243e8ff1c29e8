"""Cases with missing cells: their probability, the cells drawn, and expected counts; one elimination a case, compiled.

All cases share one order of elimination, restricted to what a case lacks. Its graphs are followed as far as they test
what the case shows; from there on each is a factor over the missing variables that it still tests, so a factor has only
what matters in this case. Factors are multiplied bucket by bucket: a bucket holds those whose next variable to go is
the same, and makes a message to a later bucket. Going back, from the last bucket to the first, variables are drawn, or
beliefs are shared out.

In every factor the next variable to go comes last, so its states lie side by side.
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

_MOST_DIMS = 24  # of a factor: more would not fit any memory
_MOST_ORDERED = 64  # missing variables of a case that an order of its own is looked for
_CHEAP = 2000.0  # products of an order that is good enough as it is
_SAFE = 1e-290  # products above it are not too small for a number
_TINY = 5e-324  # the smallest number above zero


class Model(NamedTuple):
    """All graphs of a network, and in which order to eliminate."""

    n_states: Longs
    root: Ints  # of each variable's graph; -1: it has none
    test: Ints
    first: Ints  # a test: where its children begin in `child`; a leaf: where its distribution begins in `probability`
    child: Ints
    probability: Floats
    rank: Longs  # of each variable in the order of elimination
    by_rank: Longs
    order: Longs  # parents first


class Room(NamedTuple):
    """What one case needs: used again for the next."""

    arena: Floats  # the numbers of all factors; `ends` says where the free part begins
    ends: Longs
    case: Longs  # the states of a case; those of missing variables come and go
    missing: NDArray[np.bool_]
    start: Ints  # for each graph, where it first tests a missing variable, or its leaf
    seen: Longs  # for each node, and each variable: when it was last met,
    stamps: Longs  # ... by the number of things that were looked for so far
    stack: Ints
    dims: Longs  # (2 n, most): the variables of each factor; factor n + v is the message of bucket v
    n_dims: Longs
    begin: Longs  # where a factor's numbers begin
    least: Floats  # the smallest of them above zero; the largest is one at most
    uses: Longs  # how many factors a missing variable is in; later, which number is its own or where its marginal goes
    follows: Longs  # the next factor of the same bucket
    bucket: Longs  # of each variable: the first of its factors, -1: none
    clique: Longs  # of each variable: where its belief begins
    strides: Longs  # (2 n, most): of the factors of a bucket, in the bucket's dimensions
    digit: Longs
    place: Longs
    weight: Floats  # of each state
    rank: Longs  # of each variable in the order of elimination of this case
    order: Longs  # the missing variables that are in a factor, in this order; ends[1] says how many
    near: NDArray[np.uint64]  # of each of them: which others share a factor, as bits


def new_room(model: Model, n_numbers: int) -> Room:
    """Room for cases of a network whose factors hold so many numbers at most."""
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
    """Put a variable among those of a factor, the next to go last; false if there are too many."""
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
    """List the missing variables that graph g still tests, and its own if it is missing; false if they are too many."""
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
    """Take in a case: the log probability of what it shows for sure. Graphs that test what is missing have dimensions.

    NaN if some graph tests too many missing variables.
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
    """Take out the graphs of missing variables that nothing else depends on: they sum to one."""
    for k in range(model.order.shape[0] - 1, -1, -1):
        v = model.order[k]
        if room.missing[v] and room.uses[v] == 1:
            for d in range(room.n_dims[v]):
                room.uses[room.dims[v, d]] -= 1
            room.n_dims[v] = 0


@part
def _fill(model: Model, room: Room, g: int) -> bool:
    """Write the factor of graph g, for every assignment of its variables; false if there is no room."""
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
    """Put a factor into the bucket of its next variable to go."""
    v = room.dims[factor, room.n_dims[factor] - 1]
    room.follows[factor], room.bucket[v] = room.bucket[v], factor


@part
def _unite(model: Model, room: Room, v: int, stamps: Longs) -> int:
    """List the variables of a bucket in the dimensions of its message, v last, and the strides of all its factors.

    How many factors there are; -1 if there are too many variables.
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
    """Move on to the next assignment of all variables of a bucket but the last; false after the last of them."""
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
    """Whether no product of numbers of the bucket's factors can be too small."""
    product, factor = 1.0, room.bucket[v]
    while factor >= 0:
        product *= room.least[factor]
        factor = room.follows[factor]
    return product > _SAFE


@part
def _product(room: Room, n_factors: int, last: int, state: int, log_scale: float) -> float:
    """The product of all factors where they are, in a state of the bucket's variable.

    With a log scale other than zero it is found by logs, divided by the scale, and zero only where a factor is.
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
    """The log of the largest product of a bucket; zero where products are safe without."""
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
    """Make the message of bucket v, near one; the log of what it is to be multiplied by. NaN: do it another way."""
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
    room.n_dims[message] -= 1  # v, which is gone
    if largest == 0.0 or smallest < THIN * largest:
        return np.nan
    for at in range(begin, begin + size):
        room.arena[at] /= largest
    room.least[message] = smallest / largest
    return math.log(largest) + log_scale


@part
def _cost(model: Model, room: Room, m: int, greedy: bool) -> float:
    """How many products it takes to eliminate in the order there is, or, greedily, in one that is written in its place.

    The greedy one takes next what makes the smallest product. The first part of `near` stays, and is copied to begin.
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
    """List the missing variables that are in a factor in the order of all cases, or if cheaper of this case's own."""
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
    """Sum over all missing variables that are in a factor: the log of the sum. NaN: it has to be done another way."""
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
    """That of what a case shows, whose other variables are eliminated; NaN where there is no room for that."""
    value = _enter(model, room, codes, column, stamps)
    if value > -np.inf:
        _prune(model, room)
        value += _eliminate(model, room, stamps)
    return value


@jit
def log_probabilities(flat: Model, made: Room, codes: Codes, out: Floats) -> None:
    """The log probability of what each case shows; NaN where it has to be found another way."""
    model = refer(flat)
    room = refer(made)
    stamps = room.stamps
    for column in range(codes.shape[1]):
        out[column] = _log_probability(model, room, codes, column, stamps)


@part
def _chosen(weight: Floats, n: int, uniform: float) -> int:
    """A state, in proportion to the weights."""
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
    """Draw all missing variables into the case, after `_eliminate`; each has a number from 0 to 1."""
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
        if room.missing[v] and room.bucket[v] < 0:  # nothing that the case shows depends on it
            node = room.start[v]
            while model.test[node] >= 0:
                node = model.child[model.first[node] + room.case[model.test[node]]]
            begin = model.first[node]
            here = model.probability[begin : begin + model.n_states[v]]
            room.case[v] = _chosen(here, model.n_states[v], uniform[room.uses[v]])


@jit
def draw(flat: Model, made: Room, codes: Codes, uniform: Floats, first: Longs, log_probability: Floats) -> None:
    """Fill the missing cells of each case with states drawn given what it shows, and write its log probability.

    The numbers from 0 to 1 for a case, one a missing cell, begin at its first.
    Cases whose log is not finite are left as they are: they are impossible, or NaN: to be drawn another way.
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
    """Write what is believed of the variables of bucket v together, given all the case shows.

    Its message, which a later bucket took, holds by now what that bucket believes divided by the message itself.
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
    """Write the belief of bucket v summed to the variables of its k-th factor, behind all else; how many numbers."""
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
    """Make of each message that bucket v took what is around it: the belief summed to its variables, divided by it."""
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
    """Add what is believed of the leaf and the state of every graph in bucket v."""
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
    """Whether there is room for the beliefs of all buckets, and for a sum."""
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
    """From the last bucket to the first: beliefs, shared out. Adds to counts, and to marginals from a cell on."""
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
    """Add the expected counts of all leaves and the marginals of missing cells, and write each case's log probability.

    The marginals of a case, one missing variable after the other, begin at its first cell. Counts or marginals of no
    length are not asked for. Cases whose log is not finite add nothing: they are impossible, or NaN: to be done another
    way.
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
