"""Gibbs sampling of the missing cells of many cases: each is redrawn in turn, given all others."""

import math
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.questions.holes import Codes, Floats, Longs, Model


class Blankets(NamedTuple):
    """What a cell depends on besides the graph of its own variable: the graphs that test it."""

    first: Longs  # by variable, and one more: index in `graph` of the first graph that tests it
    graph: Longs
    log_probability: Floats  # logs of the probabilities of all leaves, in the layout of the model


@part
def _follow(model: Model, case: Longs, node: int, until: int) -> int:
    """Return the leaf that a case reaches from a node, or the first test of variable `until` on the way."""
    while model.test[node] >= 0 and model.test[node] != until:
        node = model.child[model.first[node] + case[model.test[node]]]
    return node


@part
def _weigh(model: Model, blankets: Blankets, case: Longs, v: int, weight: Floats) -> None:
    """Compute the log weight of each state of a variable given all others, up to a common constant."""
    n_states = model.n_states[v]
    own = model.first[_follow(model, case, model.root[v], -1)]
    for state in range(n_states):
        weight[state] = blankets.log_probability[own + state]
    for k in range(blankets.first[v], blankets.first[v + 1]):
        g = blankets.graph[k]
        node = _follow(model, case, model.root[g], v)
        if model.test[node] != v:  # the case reaches a leaf without testing the variable
            continue
        for state in range(n_states):
            case[v] = state
            leaf = _follow(model, case, model.child[model.first[node] + state], -1)
            weight[state] += blankets.log_probability[model.first[leaf] + case[g]]


@jit
def redraw(
    flat: Model,
    blankets: Blankets,
    shown: Codes,
    codes: Codes,
    uniform: Floats,
    first: Longs,
    shares: Floats,
    first_share: Longs,
) -> None:
    """Redraw in `codes` every cell that is missing in `shown`.

    The uniform numbers for a case begin at its `first`. If `shares` is not empty, the distributions drawn from are
    added to it, those of a case from its `first_share` on.
    """
    model = refer(flat)
    n = model.n_states.shape[0]
    case, weight = np.zeros(n, np.int64), np.zeros(model.n_states.max())
    for column in range(codes.shape[1]):
        for v in range(n):
            case[v] = codes[v, column]
        cell, share = first[column], first_share[column]
        for v in range(n):
            n_states = model.n_states[v]
            if shown[v, column] < n_states:
                continue
            _weigh(model, blankets, case, v, weight)
            largest, total = weight[:n_states].max(), 0.0
            for state in range(n_states):
                weight[state] = math.exp(weight[state] - largest) if largest > -np.inf else 1.0
                total += weight[state]
            rest, chosen = uniform[cell] * total, n_states - 1
            for state in range(n_states):
                rest -= weight[state]
                if rest < 0.0:
                    chosen = state
                    break
            case[v] = codes[v, column] = chosen
            cell += 1
            if shares.shape[0] > 0:
                for state in range(n_states):
                    shares[share + state] += weight[state] / total
                share += n_states
