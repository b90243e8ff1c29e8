"""Empirical Bayes: how many cases the prior of a variable's leaves is worth. Knows networks and kernels, not searches.

`with_fitted_priors` uses the cases in the leaves, which is fast, and gives the same with every counter. But the tests
of a large graph were selected for pure leaves, and in-sample cases cannot tell these from truly pure ones. Classifiers
of a single graph therefore use held-out cases (`cross_validated`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import log

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Table
from leafwise.inference.completion import counts_in_leaves
from leafwise.kernels.leaf_search.weights import log_likelihoods_of
from leafwise.network import Network, Node

TIMES = (1, 2, 4, 8, 16)  # candidates: multiples of the cases in the prior that the search scored with
TIMES_OF_A_TARGET = (*TIMES, 32, 64)
_ROUNDS = 20  # of fixed-point iteration over variables
N_FOLDS = 3
LOG_DOUBLED = log(2)  # the least gain for each doubling, or halving, of the in-sample estimate


def with_fitted_priors(network: Network) -> Network:
    """Fit the number of cases that the prior of each variable's leaves is worth; graphs and counts stay the same.

    Candidates are the prior of the search, and two, four, eight or sixteen times as many cases. Their prior
    probabilities for a variable come from the other variables: proportional to one plus the sum of the others'
    posterior probabilities. The median of a variable's posterior, given the cases in all its leaves, is taken.
    Variables with own-value tests or tied leaves keep the prior of the search, which also remains the network's
    `prior`, used for scores.

    >>> from leafwise.decision_graph import DecisionGraph
    >>> from leafwise.data.table import Variable
    >>> coins = [Node.learned((), DecisionGraph.single(), np.array([n]), np.ones((1, 2))) for n in ([7, 5], [12, 0])]
    >>> names = Variable("fair", ("heads", "tails")), Variable("magic", ("heads", "tails"))
    >>> found = with_fitted_priors(Network(names, tuple(coins), prior="symmetric:2"))
    >>> [node.exponents.tolist() for node in found.nodes], found.prior
    ([[[4.0, 4.0]], [[1.0, 1.0]]], 'symmetric:2')
    """
    tied = {leaf.variable for group in network.ties for leaf in group}

    def make_nodes() -> tuple[Node | None, ...]:
        nodes = list(network.nodes)
        free = [target for target in range(len(nodes)) if target not in tied]
        for target, node in zip(free, _fitted([nodes[target] for target in free]), strict=True):
            nodes[target] = node
        return tuple(nodes)

    about = {"prior": network.prior, "structure_prior": network.structure_prior}
    learned = vars(network).get("learned") or (lambda: network.learned)  # which keeps the network
    return Network.with_nodes_later(network.variables, make_nodes, network.ties, learned, **about)


def _fitted(nodes: Sequence[Node | None]) -> Iterator[Node | None]:
    """Yield the nodes, with fitted priors if they have counts."""
    learned = {k: node for k, node in enumerate(nodes) if node is not None and node.exponents is not None}
    times = dict(zip(learned, _medians(list(learned.values())), strict=True))
    for k, node in enumerate(nodes):
        yield _with_prior_of(learned[k], times[k]) if k in learned else node


def _medians(learned: Sequence[Node]) -> list[int]:
    """The posterior median of the multiple of the search's prior, for each node."""
    if not learned:
        return []
    n_leaves, n_states = np.array([node.probabilities.shape for node in learned]).T
    widths = n_states.repeat(n_leaves)
    counts, exponents = (
        np.concatenate([getattr(node, name) for node in learned], axis=None).astype(np.float64)
        for name in ("counts", "exponents")
    )
    of_leaves = np.array([log_likelihoods_of(widths, counts, exponents * times) for times in TIMES])
    of_nodes = np.add.reduceat(of_leaves, n_leaves.cumsum() - n_leaves, axis=1)
    likelihoods = np.exp(of_nodes - of_nodes.max(axis=0))
    shares = likelihoods / likelihoods.sum(axis=0)
    for _ in range(_ROUNDS):
        shares = likelihoods * (1 + shares.sum(axis=1, keepdims=True) - shares)  # prior: one, and the other nodes
        shares /= shares.sum(axis=0)
    return [TIMES[median] for median in (shares.cumsum(axis=0) < 0.5).sum(axis=0)]


def _with_prior_of(node: Node, times: int) -> Node:
    """The node with a prior worth `times` as many cases."""
    if times == 1 or node.counts is None or node.exponents is None:
        return node
    return node.relearned(node.counts, node.exponents * times)


def folds(table: Table, target: int) -> Iterator[tuple[Table, Table]]:
    """Split the cases for threefold cross-validation, stratified by the target: yield training and held-out cases.

    The folds do not depend on the order of the cases.

    >>> from leafwise.data.table import Variable
    >>> table = Table((Variable("x", ("a", "b")),), np.array([[0, 1, 0, 1, 0, 0]], np.uint8))
    >>> [held_back.codes.tolist() for _, held_back in folds(table, 0)]
    [[[0, 0]], [[0, 1]], [[0, 1]]]
    """
    order = np.lexsort(table.codes)
    order = order[np.random.default_rng(1).permutation(len(order))]  # sorted cases can be periodic
    order = order[np.argsort(table.codes[target, order], kind="stable")]
    fold = np.arange(len(order)) % N_FOLDS
    for k in range(N_FOLDS):
        learned, held_back = (table.codes.take(order[which], axis=1) for which in (fold != k, fold == k))
        yield Table(table.variables, learned), Table(table.variables, held_back)


def cross_validated(network: Network, target: int, found: Iterable[tuple[Network, Table]]) -> int:
    """Select, by held-out cases, how many times the prior of the search that of a target's leaves is worth.

    `found`: networks of the same search on training cases, each with its held-out cases. The candidates are 1, 2, 4 to
    64. The prior probability of each is half that of its neighbour nearer to the in-sample estimate (as in
    `with_fitted_priors`); the one with the largest posterior probability is selected.

    >>> from leafwise.decision_graph import DecisionGraph
    >>> from leafwise.data.table import Variable
    >>> coin = Variable("coin", ("heads", "tails"))
    >>> node = Node.learned((), DecisionGraph.single(), np.array([[9, 0]]), np.ones((1, 2)))
    >>> network = Network((coin,), (node,), prior="symmetric:2")
    >>> tossed = Table((coin,), np.array([[0, 1] * 10], np.uint8))
    >>> cross_validated(network, 0, []), cross_validated(network, 0, [(network, tossed)])
    (1, 16)
    """
    node = network.nodes[target]
    assert node is not None
    distance = np.abs(np.arange(len(TIMES_OF_A_TARGET)) - TIMES_OF_A_TARGET.index(_medians([node])[0]))
    logs = -LOG_DOUBLED * distance
    for other, held_back in found:
        logs += _log_likelihoods(other.nodes[target], target, held_back)
    return TIMES_OF_A_TARGET[int(logs.argmax())]


def _log_likelihoods(node: Node | None, target: int, cases: Table) -> NDArray[np.float64]:
    """The log likelihoods of a target's states in cases, for each multiple of a node's prior."""
    assert node is not None
    counts = counts_in_leaves(node, target, cases.codes)
    probabilities = (_with_prior_of(node, times).probabilities for times in TIMES_OF_A_TARGET)
    return np.array([float((counts * np.log(own)).sum()) for own in probabilities])


def with_prior_of_target(network: Network, target: int, times: int) -> Network:
    """The same network, with a prior worth `times` as many cases in its target's leaves."""
    nodes = list(network.nodes)
    node = nodes[target]
    assert node is not None
    nodes[target] = _with_prior_of(node, times)
    return replace(network, nodes=tuple(nodes))
