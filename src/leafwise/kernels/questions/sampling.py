"""Sampling from decision graphs with evidence: compiled loops over the flat form of a part of a network.

Random numbers are arguments, so that the same numbers give the same cases.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.questions.routes import Codes, Floats, Ints, find_leaves, state_at

_TINY = 1e-100  # products below this are scaled up before they vanish


class FlatPart(NamedTuple):
    """Graphs with the distributions of their leaves, each multiplied by its variable's evidence; parents come first.

    Variables are numbered like their graphs.
    """

    n_states: Ints  # by variable
    known: NDArray[np.bool_]  # by variable: whether the evidence leaves it one state
    root: Ints  # by graph: its first node
    test: Ints  # by node: the variable it tests (never a known one); -1: a leaf
    first: Ints  # a test: index of its first child; a leaf: index of its distribution in the two arrays after `child`
    child: Ints
    probability: Floats
    cumulative: Floats
    log_norm: Floats  # by node: log of the sum of a leaf's distribution


@part
def _leaf(codes: Codes, flat: FlatPart, node: int) -> int:
    while flat.test[node] >= 0:
        node = flat.child[flat.first[node] + codes[flat.test[node], 0]]
    return node


@jit
def draw_weighted(codes: Codes, flat: FlatPart, uniform: Floats, log_weight: Floats) -> None:
    """Fill the rows of all variables that are not known, and add to each case's log weight the norms of its leaves.

    `uniform` has a row for each of these variables; the rows of known ones must contain their states.
    """
    row = 0
    leaves = np.empty(codes.shape[1], np.int32)
    for g in range(flat.root.shape[0]):
        find_leaves(codes, flat.test, flat.first, flat.child, flat.root[g], 0, leaves)
        for case in range(codes.shape[1]):
            log_weight[case] += flat.log_norm[leaves[case]]
        if not flat.known[g]:
            for case in range(codes.shape[1]):
                begin = flat.first[leaves[case]]
                codes[g, case] = state_at(flat.cumulative, begin, flat.n_states[g], uniform[row, case])
            row += 1


@jit
def tally(rows: Codes, first: NDArray[np.int64], weight: Floats, sums: Floats) -> None:
    """Add each case's weight to a cell for each row of states: the cells of row t begin at first[t]."""
    for t in range(rows.shape[0]):
        for case in range(rows.shape[1]):
            sums[first[t] + rows[t, case]] += weight[case]


class Blankets(NamedTuple):
    """The variables to redraw, each with the graphs that test it, as a list of (variable, graph) pairs."""

    variable: Ints
    begin: Ints  # pairs begin[k] to begin[k + 1] - 1 are those of variable[k]
    graph: Ints  # of each pair
    pair: Ints  # for each node that is a test, the pair of its graph and the variable it tests
    cell: Ints  # index of the sums of the distributions that variable[k] is drawn from; -1: not summed
    joint: Ints  # variables whose joint states are counted


# While variables change, `at` contains for each pair the first node on the path to the graph's current leaf that tests
# the variable, or -1. Redrawing a variable thus visits only graphs in which it matters, and these only from that node
# down.


@part
def _enter(codes: Codes, flat: FlatPart, pair: Ints, at: Ints, node: int) -> int:
    """Follow the case from a node to its leaf, and record first tests in `at`; return the leaf."""
    while flat.test[node] >= 0:
        if at[pair[node]] < 0:
            at[pair[node]] = node
        node = flat.child[flat.first[node] + codes[flat.test[node], 0]]
    return node


@part
def _leave(codes: Codes, flat: FlatPart, pair: Ints, at: Ints, node: int) -> None:
    """Undo `_enter`."""
    while flat.test[node] >= 0:
        if at[pair[node]] == node:
            at[pair[node]] = -1
        node = flat.child[flat.first[node] + codes[flat.test[node], 0]]


@part
def _multiply(weights: Floats, codes: Codes, flat: FlatPart, graph: int, node: int, leaf: int) -> None:
    """Multiply the weight of each state of the variable that a node tests by the probability of the graph's own state.

    `leaf` is the leaf for the present state. Weights that become tiny are divided by _TINY; row 1 counts how often.
    """
    variable = flat.test[node]
    present = codes[variable, 0]
    for state in range(flat.n_states[variable]):
        if weights[0, state] > 0:
            codes[variable, 0] = state
            end = leaf if state == present else _leaf(codes, flat, flat.child[flat.first[node] + state])
            weights[0, state] *= flat.probability[flat.first[end] + codes[graph, 0]]
            while 0 < weights[0, state] < _TINY:
                weights[0, state] /= _TINY
                weights[1, state] += 1
    codes[variable, 0] = present


@part
def _chosen(weights: Floats, n_states: int, threshold: float) -> int:
    """Return the state at which the cumulative weight exceeds the threshold; its weight is positive."""
    state = -1
    total = 0.0
    for k in range(n_states):
        if weights[k] > 0:
            state = k
            total += weights[k]
            if total > threshold:
                break
    return state


@part
def _weigh(weights: Floats, codes: Codes, flat: FlatPart, blankets: Blankets, at: Ints, leaf: Ints, k: int) -> float:
    """Compute the weights of all states of variable[k] given all other variables; return their sum."""
    variable = blankets.variable[k]
    begin = flat.first[leaf[variable]]
    n_states = flat.n_states[variable]
    for state in range(n_states):
        weights[0, state] = flat.probability[begin + state]
        weights[1, state] = 0
    for j in range(blankets.begin[k], blankets.begin[k + 1]):
        if at[j] >= 0:
            _multiply(weights, codes, flat, blankets.graph[j], at[j], leaf[blankets.graph[j]])
    least = np.inf
    for state in range(n_states):
        if weights[0, state] > 0:
            least = min(least, weights[1, state])
    total = 0.0
    for state in range(n_states):
        weights[0, state] *= _TINY ** (weights[1, state] - least) if weights[0, state] > 0 else 1.0
        total += weights[0, state]
    if total == 0:  # all products underflowed: keep the state
        weights[0, codes[variable, 0]] = total = 1.0
    return total


@part
def _redraw(
    codes: Codes, flat: FlatPart, blankets: Blankets, at: Ints, leaf: Ints, weights: Floats, k: int, uniform: float
) -> float:
    """Redraw variable[k] given all others; return the sum of the weights, which remain in `weights`."""
    total = _weigh(weights, codes, flat, blankets, at, leaf, k)
    variable = blankets.variable[k]
    present = codes[variable, 0]
    state = _chosen(weights[0], flat.n_states[variable], uniform * total)
    if state != present:
        for j in range(blankets.begin[k], blankets.begin[k + 1]):
            node = at[j]
            if node >= 0:
                codes[variable, 0] = present
                _leave(codes, flat, blankets.pair, at, node)
                codes[variable, 0] = state
                leaf[blankets.graph[j]] = _enter(codes, flat, blankets.pair, at, node)
        codes[variable, 0] = state
    return total


@part
def _settle(codes: Codes, flat: FlatPart, blankets: Blankets, at: Ints, leaf: Ints) -> float:
    """Follow the case through all graphs; return its log weight."""
    at[:] = -1
    log_weight = 0.0
    for g in range(flat.root.shape[0]):
        leaf[g] = _enter(codes, flat, blankets.pair, at, flat.root[g])
        log_weight += flat.log_norm[leaf[g]]
    return log_weight


@part
def _offer(fresh: Floats, log_weight: float, uniform: float) -> int:
    """Return the index of one of several fresh cases, or -1 for the present one, drawn by weight."""
    largest = max(log_weight, fresh.max())
    present = np.exp(log_weight - largest)
    threshold = uniform * (present + np.exp(fresh - largest).sum()) - present
    chosen = -1
    for k in range(fresh.shape[0]):
        if threshold < 0:
            break
        share = np.exp(fresh[k] - largest)
        if share > 0:
            chosen = k
            threshold -= share
    return chosen


@jit
def sweep(
    codes: Codes,
    flat: FlatPart,
    blankets: Blankets,
    uniform: Floats,
    fresh: Codes,
    fresh_log_weight: Floats,
    place: NDArray[np.int64],
    sums: Floats,
    log_weight: Floats,
) -> int:
    """Update a case, (n_variables, 1), once for each row of `uniform`; return how often it was replaced as a whole.

    First it may be replaced by a fresh case; fresh cases are divided evenly among sweeps. Then each variable is drawn
    given all others. Row place[s] of `sums` receives the distributions drawn from, or the joint state of
    `blankets.joint`.
    """
    at = np.empty(blankets.graph.shape[0], np.int32)
    leaf = np.empty(flat.root.shape[0], np.int32)
    _settle(codes, flat, blankets, at, leaf)
    weights = np.empty((2, flat.n_states.max()))
    n_fresh = fresh.shape[1] // uniform.shape[0]
    n_variables = blankets.variable.shape[0]
    n_replaced = 0
    for s in range(uniform.shape[0]):
        present = 0.0
        for g in range(leaf.shape[0]):
            present += flat.log_norm[leaf[g]]
        if n_fresh > 0:
            begin = s * n_fresh
            offered = _offer(fresh_log_weight[begin : begin + n_fresh], present, uniform[s, n_variables])
            if offered >= 0:
                codes[:, 0] = fresh[:, begin + offered]
                present = _settle(codes, flat, blankets, at, leaf)
                n_replaced += 1
        log_weight[s] = present
        for k in range(n_variables):
            total = _redraw(codes, flat, blankets, at, leaf, weights, k, uniform[s, k])
            if blankets.cell[k] >= 0:
                for state in range(flat.n_states[blankets.variable[k]]):
                    sums[place[s], blankets.cell[k] + state] += weights[0, state] / total
        if blankets.joint.shape[0] > 0:
            cell = 0
            for t in range(blankets.joint.shape[0]):
                cell = cell * flat.n_states[blankets.joint[t]] + codes[blankets.joint[t], 0]
            sums[place[s], cell] += 1
    return n_replaced
