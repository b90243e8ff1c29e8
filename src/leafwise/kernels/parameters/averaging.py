"""Distributions of the leaves of a decision graph, averaged over its prunings: compiled loops over its flat form."""

import math

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
_A_TRACE = 1e-9  # cases added to every arc, so that nodes without cases have parents with positive weight


@part
def _log_likelihood(counts: Floats, exponent: float) -> float:
    """Return Equation 5 for the cases of one leaf."""
    total, n = 0.0, 0.0
    for k in range(counts.shape[0]):
        if counts[k] > 0:
            total += math.lgamma(counts[k] + exponent) - math.lgamma(exponent)
            n += counts[k]
    whole = exponent * counts.shape[0]
    return total + math.lgamma(whole) - math.lgamma(whole + n)


@part
def _log_go_on(
    first: Ints,
    child: Ints,
    n_children: Ints,
    test: Ints,
    counts: NDArray[np.int64],
    own: Floats,
    log_p: Floats,
    exponent: float,
    node: int,
) -> float:
    """Return the log probability of a node's cases under its children; of a shared child, only its share of them."""
    total = 0.0
    begin, end = first[node], first[node] + n_children[node]
    for arc in range(begin, end):
        to = child[arc]
        seen = False
        for before in range(begin, arc):
            seen |= child[before] == to
        if seen:
            continue
        sent = np.zeros(counts.shape[1])
        for other in range(arc, end):
            if child[other] == to:
                sent += counts[other]
        n_sent, n_there = sent.sum(), own[to].sum()
        if n_sent == n_there:
            total += log_p[to]
        elif test[to] < 0:
            total += log_p[to] - _log_likelihood(own[to] - sent, exponent)
        else:
            total += log_p[to] * n_sent / n_there
    return total


@jit
def pruning_averages(
    test: Ints,
    first: Ints,
    child: Ints,
    n_children: Ints,
    counts: NDArray[np.int64],
    exponent: float,
    log_go: float,
) -> Floats:
    """Return for each node the distribution at its place, averaged over all prunings by their posterior probability.

    `counts` are those of each arc and, in the last row, of all cases; `log_go` is the log prior probability that a test
    is not pruned. Nodes are in topological order, parents first. Several parents are weighted by the number of cases
    that they send.
    """
    n_nodes, r = test.shape[0], counts.shape[1]
    own = np.zeros((n_nodes, r))
    own[0] = counts[child.shape[0]]
    for arc in range(child.shape[0]):
        own[child[arc]] += counts[arc]
    log_p, stop = np.zeros(n_nodes), np.ones(n_nodes)
    log_stay = math.log1p(-math.exp(log_go))
    for node in range(n_nodes - 1, -1, -1):
        log_p[node] = _log_likelihood(own[node], exponent)
        if test[node] >= 0:
            one = log_stay + log_p[node]
            other = log_go + _log_go_on(first, child, n_children, test, counts, own, log_p, exponent, node)
            log_p[node] = max(one, other) + math.log1p(math.exp(-abs(one - other)))
            stop[node] = math.exp(one - log_p[node])
    average, left, weight = np.zeros((n_nodes, r)), np.zeros(n_nodes), np.zeros(n_nodes)
    left[0] = weight[0] = 1.0
    for node in range(n_nodes):
        average[node] /= weight[node]
        left[node] /= weight[node]
        mean = own[node] + exponent
        average[node] += left[node] * stop[node] * mean / mean.sum()
        if test[node] >= 0:
            for arc in range(first[node], first[node] + n_children[node]):
                n = counts[arc].sum() + _A_TRACE
                weight[child[arc]] += n
                average[child[arc]] += n * average[node]
                left[child[arc]] += n * left[node] * (1 - stop[node])
    return average
