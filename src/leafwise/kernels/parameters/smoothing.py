"""Smoothing of the leaves of a decision graph by the nodes above them: compiled loops over the graph's flat form."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit

Ints = NDArray[np.int32]
_A_TRACE = 1e-9  # cases added to every arc, so that nodes without cases have parents with positive weight


@jit
def arc_counts(
    codes: NDArray[Any], test: Ints, first: Ints, child: Ints, target: int, n_states: int
) -> NDArray[np.int64]:
    """Count the target's states among the cases that take each arc; in the last row, among all cases."""
    counts = np.zeros((child.shape[0] + 1, n_states), np.int64)
    for case in range(codes.shape[1]):
        state = codes[target, case]
        counts[child.shape[0], state] += 1
        node = 0
        while test[node] >= 0:
            arc = first[node] + codes[test[node], case]
            counts[arc, state] += 1
            node = child[arc]
    return counts


@jit
def shrunken_exponents(
    test: Ints,
    first: Ints,
    child: Ints,
    n_children: Ints,
    counts: NDArray[np.int64],
    strength: float,
    target: int,
    here: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return exponents for all nodes: one for each state, plus `strength` cases distributed as in the nodes above.

    Nodes are in topological order, parents first. Several parents are weighted by the number of cases that they send.
    If the graph also tests the target (otherwise that is -1), `here` is 1 for each state that can reach a node, and
    below such a test the distribution above is restricted to the states of the part.
    """
    n_nodes, n_states = test.shape[0], counts.shape[1]
    exponents = here.copy() if target >= 0 else np.ones((n_nodes, n_states))
    above = np.zeros((n_nodes, n_states))
    weight = np.zeros(n_nodes)
    own = np.zeros((n_nodes, n_states))
    own[0] = counts[child.shape[0]]
    for node in range(n_nodes):
        if node > 0:
            exponents[node] += strength * above[node] / weight[node]
        if test[node] >= 0:
            mean = own[node] + exponents[node]
            mean /= mean.sum()
            for arc in range(first[node], first[node] + n_children[node]):
                n = counts[arc].sum() + _A_TRACE
                weight[child[arc]] += n
                if test[node] == target:
                    part = mean * here[child[arc]]
                    above[child[arc]] += n * part / part.sum()
                else:
                    above[child[arc]] += n * mean
                own[child[arc]] += counts[arc]
    return exponents
