"""Leaves split by all states of the parents, each a mixture of estimates. Knows networks and inference, not searches.

A decision graph has only the tests that the data clearly support. For prediction, weaker evidence helps as well:
within a leaf, the states of all parents are slightly informative. So there are several estimates for each assignment
of the parents, from coarse to fine, and their weights maximise the leave-one-out likelihood (stacking, Wolpert 1992).
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import read
from leafwise.data.table import code_type
from leafwise.decision_graph import DecisionGraph
from leafwise.inference.completion import DRAWS, Completions
from leafwise.kernels.questions import routes
from leafwise.network import Network, Node, check_network
from leafwise.priors import Symmetric

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_CELLS = 2**18  # most probabilities of a node; one that would have more keeps its leaves
_STRENGTHS = (1.0, 4.0, 16.0)  # cases that a coarser estimate is worth in a finer one
_MOST_STEPS, _ENOUGH = 200, 1e-6  # steps of EM for the weights; least gain in nats per case
_ROUNDS, _GAIN = 10, 1e-4  # rounds of EM for missing cells; least gain in nats per case


def stacked(network: Network, data: Any, seed: int = 1) -> Network:
    """The same parents, with a distribution for each of their assignments: a mixture of estimates from coarse to fine.

    The estimates are that of the leaf, and those of the assignment's own cases plus a few that are distributed
    uniformly, as in all cases, or as in the leaf. The weights of a variable's estimates maximise the leave-one-out
    likelihood. No hyperparameter is tuned, and there is no parameter prior to score with (`prior` is None). Missing
    cells are inferred by EM, starting from the network; in rows that are too large for that, by draws with a `seed`. A
    node that would have more than 262,144 probabilities keeps its leaves, as do those with ties or own-value tests.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> from leafwise.learner import learn
    >>> cases, new = sample(alarm(), 500, seed=1), sample(alarm(), 2000, seed=2)
    >>> network = learn(cases)
    >>> [round(float(found.log_probabilities(new).mean()), 2) for found in (network, stacked(network, cases))]
    [-10.97, -10.94]
    """
    check_network(network, "stacked")
    table = read(data, variables=network.variables, missing="infer")
    nodes, leaves_of = list(network.nodes), {}
    tied = {tied.variable for group in network.ties for tied in group}
    for target, node in enumerate(network.nodes):
        if node is not None and target not in tied and _fits(network, node):
            leaves_of[target], nodes[target] = _parted(network, node)
    found = replace(network, nodes=tuple(nodes), prior=None, learned={**network.learned, "stacked": True})
    completions = Completions(network.variables, table.codes, seed)
    last = -math.inf
    for _ in range(_ROUNDS):
        counts, log_likelihood = completions.expected_counts(found)
        for target, leaf_of in leaves_of.items():
            nodes[target] = _relearned(nodes[target], counts[target], leaf_of)
        found = replace(found, nodes=tuple(nodes))
        if not completions.n_missing or log_likelihood - last <= _GAIN * table.n_cases:
            break
        if math.isnan(log_likelihood):  # some rows are completed by draws, which are repeated with the new network
            completions.draw(found, DRAWS)
        last = log_likelihood
    sizes = {"leaves": found.n_leaves, "parameters": found.n_parameters, "tests": found.n_tests}
    return replace(found, learned={**found.learned, **sizes})


def _fits(network: Network, node: Node) -> bool:
    n_cells = math.prod(network.variables[parent].n_states for parent in node.parents)
    return node.own is None and len(node.parents) > 0 and n_cells * node.n_states <= _MOST_CELLS


def _parted(network: Network, node: Node) -> tuple[Ints, Node]:
    """The leaf of each assignment of the parents, and an equivalent node with a leaf for each assignment."""
    n_states = [variable.n_states for variable in network.variables]
    shape = [n_states[parent] for parent in node.parents]
    codes = np.zeros((len(n_states), math.prod(shape)), code_type(network.variables))
    codes[list(node.parents)] = np.indices(shape).reshape(len(shape), -1)
    leaf_of = routes.leaves_of(codes, *node.flat[:3], 0).astype(np.int64)
    graph = DecisionGraph.complete(node.parents, n_states)
    return leaf_of, Node(node.parents, graph, node.probabilities[leaf_of])


def _relearned(node: Node | None, counts: Floats | None, leaf_of: Ints) -> Node:
    """The node with stacked estimates from these counts."""
    assert node is not None
    assert counts is not None
    return Node.with_means(node.parents, node.graph, counts, stacked_means(counts, leaf_of))


def stacked_means(counts: Floats, leaf_of: Ints) -> Floats:
    """The stacked distributions of cells (assignments of the parents) from their counts and their leaves.

    >>> stacked_means(np.array([[8.0, 2.0], [1.0, 9.0]]), np.array([0, 0])).round(2).tolist()
    [[0.72, 0.28], [0.2, 0.8]]
    """
    cells, states = np.nonzero(counts)
    cases = counts[cells, states]
    every_one = slice(None)  # leave-one-out: no estimate saw the case that it predicts
    estimates = np.log(_estimates(counts, leaf_of, cells, states, np.minimum(cases, 1.0)))
    weights = em_weights([(every_one, logs) for logs in estimates], len(cases), cases, _ENOUGH)
    every, each = (places.ravel() for places in np.indices(counts.shape))
    means: Floats = weights @ _estimates(counts, leaf_of, every, each, np.zeros(counts.size))
    return means.reshape(counts.shape)


def _estimates(counts: Floats, leaf_of: Ints, cells: Ints, states: Ints, left_out: Floats) -> Floats:
    """The probabilities of states in cells by each estimate, with `left_out` cases of these removed from the counts."""
    r = counts.shape[1]
    in_leaf = np.zeros((int(leaf_of.max()) + 1, r))
    np.add.at(in_leaf, leaf_of, counts)

    def share(n: Floats, size: Floats, center: Floats | float, strength: float) -> Floats:
        return (n - left_out + strength * center) / (size - left_out + strength)

    even, prior, leaves = 1 / r, r * Symmetric().exponent(r), leaf_of[cells]
    overall = share(counts.sum(axis=0)[states], counts.sum(keepdims=True)[0], even, prior)
    leaf = share(in_leaf[leaves, states], in_leaf.sum(axis=1)[leaves], even, prior)
    own, size = counts[cells, states], counts.sum(axis=1)[cells]
    fine = [share(own, size, center, strength) for center in (even, overall, leaf) for strength in _STRENGTHS]
    return np.array([leaf, *fine])


def em_weights(
    unseen: Sequence[tuple[NDArray[np.int64] | slice, Floats]],
    n_cases: int,
    counts: Floats | None = None,
    enough: float = 1e-7,
) -> Floats:
    """The weights of a mixture that maximise the likelihood of the cases, each under the members that did not see it.

    `unseen`: for each member the cases it did not see (a slice: all), and their log probabilities. The probability of
    a case is the weighted mean over those members; every step of the algorithm (EM, with a tangent for the sums of
    weights in denominators) increases the likelihood. Weights begin equal, and stay so if nothing distinguishes
    members. `counts`: the multiplicity of each case, by default one. `enough`: the least gain of a step, per case.

    >>> both = np.arange(4)
    >>> em_weights([(both, np.log([0.9, 0.9, 0.9, 0.1])), (both, np.log([0.1, 0.1, 0.1, 0.9]))], 4).round(2)
    array([0.81, 0.19])
    """
    n = len(unseen)
    weights = np.full(n, 1 / n)
    counts = np.ones(n_cases) if counts is None else counts
    largest = np.full(n_cases, -np.inf)
    for cases, logs in unseen:
        largest[cases] = np.maximum(largest[cases], logs)
    if not np.isfinite(largest).any():
        return weights
    largest[~np.isfinite(largest)] = 0.0
    shares = [np.exp(logs - largest[cases]) for cases, logs in unseen]
    together = np.array(shares) if all(isinstance(cases, slice) for cases, _ in unseen) else None  # as one matrix
    before = -np.inf
    for _ in range(_MOST_STEPS):
        if together is not None:
            top, below = weights @ together, np.full(n_cases, weights.sum())
        else:
            top, below = np.zeros(n_cases), np.zeros(n_cases)
            for weight, share, (cases, _logs) in zip(weights, shares, unseen, strict=True):
                top[cases] += weight * share
                below[cases] += weight
        known = (below > 0) & (top > 0)
        value = float(counts[known] @ np.log(top[known] / below[known]) / counts[known].sum())
        if value - before < enough:
            break
        before = value
        with np.errstate(divide="ignore"):
            up, down = np.where(known, counts / top, 0.0), np.where(known, counts / below, 0.0)
        if together is not None:
            weights = weights * (together @ up) / down.sum()
        else:
            for k, (share, (cases, _logs)) in enumerate(zip(shares, unseen, strict=True)):
                if (total := float(down[cases].sum())) > 0:
                    weights[k] *= float((share * up[cases]).sum()) / total
        weights /= weights.sum()
    return weights
