"""Leaves averaged over all prunings of their graph. Knows networks, structure priors and kernels, not searches."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Table
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.inference.likelihood import check_variables
from leafwise.kernels.parameters.averaging import pruning_averages
from leafwise.network import Network, Node, check_network
from leafwise.priors import Symmetric
from leafwise.scores import candidates
from leafwise.smoothing import complete_cases, counts_of
from leafwise.structure_priors import Choices

GROWTH = "kappa:0.3"  # the structure prior of trees to be averaged, which gives superfluous tests little weight
_LEAST_DOUBT = math.log(0.5)  # the largest log prior probability of a test


def averaged(network: Network, data: Any) -> Network:
    """Average the distribution of each leaf over all prunings of its graph; the graphs stay the same.

    Any test may be pruned, which makes all its cases one leaf. Prunings are weighted by their posterior probability:
    the prior probability of a test is what the structure prior "choices" charges for the tests of the graph, on
    average, and each node has two pseudo-cases spread evenly over the states. The sum over all prunings has a closed
    form, so nothing is sampled or tuned. Where arcs share a leaf, each test is judged as if the other tests that lead
    there were kept. Counts are those of the data; there is no parameter prior to score with (`prior` is None).

    It is meant for trees grown under a weak structure prior: `learn(data, leaves="average")` does both.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> from leafwise.learner import learn
    >>> from leafwise.search.leaf_search import LeafSearch
    >>> cases, new = sample(alarm(), 500, seed=1), sample(alarm(), 2000, seed=2)
    >>> trees = learn(cases, search=LeafSearch("CB"), structure_prior="kappa:0.3")
    >>> [round(float(found.log_probabilities(new).mean()), 2) for found in (trees, averaged(trees, cases))]
    [-11.06, -11.03]
    """
    check_network(network, "averaged")
    if network.ties:
        raise ValueError("the network has ties between leaves, which averages over prunings break: use smoothed")
    table = complete_cases(network, data, "averaged")
    check_variables(network, table)
    nodes = [
        None if node is None else _averaged_node(network, target, node, table)
        for target, node in enumerate(network.nodes)
    ]
    return replace(network, nodes=tuple(nodes), prior=None, learned={**network.learned, "averaged": True})


def averaged_means(network: Network, target: int, node: Node, on_arcs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the distributions of a node's leaves, averaged over all prunings, from the counts on its arcs."""
    if node.own is not None:
        raise ValueError(
            f"{network.names[target]!r} has own-value tests, and an average over prunings is no product of their "
            f"switches and leaves: use smoothed, or learn without the operator O"
        )
    flat = node.flat
    n_children = np.array([len(row) for row in node.graph.children], np.int32)
    exponent = Symmetric().exponent(node.n_states)
    log_go = log_probability_of_test(network, target, node)
    averages = pruning_averages(flat.test, flat.first, flat.child, n_children, on_arcs, exponent, log_go)
    return averages[list(node.graph.leaves)]


def _averaged_node(network: Network, target: int, node: Node, table: Table) -> Node:
    """Return the node with averaged leaves."""
    on_arcs, every = counts_of(node, target, table)
    counts, means = every[list(node.graph.leaves)], averaged_means(network, target, node, on_arcs)
    return Node.with_means(node.parents, node.graph, counts, means)


def log_probability_of_test(network: Network, target: int, node: Node) -> float:
    """Return the log prior probability of a test: the mean charge of "choices" per test, at most log 1/2."""
    n_tests = sum(test != LEAF for test in node.graph.tests)
    if n_tests == 0:
        return _LEAST_DOUBT
    n_candidates = candidates(network, target)
    whole, none = (
        Choices().log_prior(graph, node.n_states, network.variables, n_candidates)
        for graph in (node.graph, DecisionGraph.single())
    )
    return min((whole - none) / n_tests, _LEAST_DOUBT)
