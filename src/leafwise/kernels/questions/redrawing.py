"""The missing cells of many cases drawn again, one after the other, each given all others: Gibbs sampling."""

import math
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.questions.holes import Codes, Floats, Longs, Model


class Blankets(NamedTuple):
    """What a cell depends on besides the graph of its own variable: the graphs that test it."""

    first: Longs  # where those of each variable begin in
    graph: Longs
    log_probability: Floats  # of all leaves, as in the model


@part
def _follow(model: Model, case: Longs, node: int, until: int) -> int:
    """The leaf that a case reaches from a node on, or the first test of a variable."""
    while model.test[node] >= 0 and model.test[node] != until:
        node = model.child[model.first[node] + case[model.test[node]]]
    return node


@part
def _weigh(model: Model, blankets: Blankets, case: Longs, v: int, weight: Floats) -> None:
    """The log weight of each state of a variable given all others, up to what they have in common."""
    n_states = model.n_states[v]
    own = model.first[_follow(model, case, model.root[v], -1)]
    for state in range(n_states):
        weight[state] = blankets.log_probability[own + state]
    for k in range(blankets.first[v], blankets.first[v + 1]):
        g = blankets.graph[k]
        node = _follow(model, case, model.root[g], v)
        if model.test[node] != v:  # the case comes to a leaf whatever the variable is
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
    """Draw once more, in `codes`, every cell that is missing in `shown`.

    The numbers from 0 to 1 of a case begin at its first; the distributions drawn from are added to `shares`, those of
    a case from its first share on, unless there is no room at all.
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
