"""The missing cells of many cases drawn again, one after the other, each given all others: Gibbs sampling."""

import math
from typing import NamedTuple

import numpy as np

from leafwise.kernels.holes import Codes, Floats, Longs, Model
from leafwise.kernels.jit import jit, part
from leafwise.kernels.references import refer


class Blankets(NamedTuple):
    """What the cell of a variable depends on besides its own graph: the graphs that test it, one variable's after another."""

    first: Longs
    graph: Longs
    log_probability: Floats  # of all leaves, as in the model


@part
def _leaf(model: Model, case: Longs, g: int) -> int:
    """Where the distribution of the leaf begins that a case reaches in a graph."""
    node = model.root[g]
    while model.test[node] >= 0:
        node = model.child[model.first[node] + case[model.test[node]]]
    return model.first[node]


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
            own, largest = _leaf(model, case, v), -np.inf
            for state in range(n_states):
                case[v] = state
                weight[state] = blankets.log_probability[own + state]
                for k in range(blankets.first[v], blankets.first[v + 1]):
                    g = blankets.graph[k]
                    weight[state] += blankets.log_probability[_leaf(model, case, g) + case[g]]
                largest = max(largest, weight[state])
            total = 0.0
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
