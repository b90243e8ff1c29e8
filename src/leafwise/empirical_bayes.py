"""Leaves that begin with as many cases as their variable's data ask for. Knows networks and kernels, not searches.

`with_fitted_priors` asks the cases in the leaves, which is quick, and the same whoever counted. But the tests of a
large graph were chosen for pure leaves, which its own cases cannot tell from leaves that are pure. So a classifier of
one graph asks cases that were held back (`cross_validated`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import log

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.completion import counts_in_leaves
from leafwise.kernels.leaf_search.weights import log_likelihoods_of
from leafwise.network import Network, Node
from leafwise.table import Table

TIMES = (1, 2, 4, 8, 16)  # as many cases as in the prior that the search has scored with
TIMES_OF_A_TARGET = (*TIMES, 32, 64)
_ROUNDS = 20  # of variables that hear of each other
N_FOLDS = 3
LOG_DOUBLED = log(2)  # what each doubling, or halving, of what the cases in the leaves ask for must gain


def with_fitted_priors(network: Network) -> Network:
    """The same graphs and counts, the leaves of each variable with a prior that is worth as many cases as it takes.

    That is the prior of the search, or one of two, four, eight or sixteen times as many cases. How probable each of the
    five is for a variable, before its own cases, the others tell: as if each of the five had been seen once, and then
    as often as it is right for them. Given the cases of all leaves of the variable, the median is taken. Variables with
    own-value tests or tied leaves keep the prior of the search, which is also what the network tells, and scores are
    of.

    >>> from leafwise.decision_graph import DecisionGraph
    >>> from leafwise.table import Variable
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
    """The nodes, those that hold counts with such a prior."""
    learned = {k: node for k, node in enumerate(nodes) if node is not None and node.exponents is not None}
    times = dict(zip(learned, _medians(list(learned.values())), strict=True))
    for k, node in enumerate(nodes):
        yield _with_prior_of(learned[k], times[k]) if k in learned else node


def _medians(learned: Sequence[Node]) -> list[int]:
    """How many times the prior of the search each node's own is worth."""
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
        shares = likelihoods * (1 + shares.sum(axis=1, keepdims=True) - shares)  # one more of each, and all the others
        shares /= shares.sum(axis=0)
    return [TIMES[median] for median in (shares.cumsum(axis=0) < 0.5).sum(axis=0)]


def _with_prior_of(node: Node, times: int) -> Node:
    """The node with a prior that is worth so many times as many cases."""
    if times == 1 or node.counts is None or node.exponents is None:
        return node
    return node.relearned(node.counts, node.exponents * times)


def folds(table: Table, target: int) -> Iterator[tuple[Table, Table]]:
    """Cases to learn from, and cases held back: three times, so that each is held back once.

    Each state of the target is spread evenly over the folds. The same cases in another order make the same ones.

    >>> from leafwise.table import Variable
    >>> table = Table((Variable("x", ("a", "b")),), np.array([[0, 1, 0, 1, 0, 0]], np.uint8))
    >>> [held_back.codes.tolist() for _, held_back in folds(table, 0)]
    [[[0, 0]], [[0, 1]], [[0, 1]]]
    """
    order = np.lexsort(table.codes)
    order = order[np.random.default_rng(1).permutation(len(order))]  # tables of all combinations have their own rhythm
    order = order[np.argsort(table.codes[target, order], kind="stable")]
    fold = np.arange(len(order)) % N_FOLDS
    for k in range(N_FOLDS):
        learned, held_back = (table.codes.take(order[which], axis=1) for which in (fold != k, fold == k))
        yield Table(table.variables, learned), Table(table.variables, held_back)


def cross_validated(network: Network, target: int, found: Iterable[tuple[Network, Table]]) -> int:
    """How many times the prior of the search that of a target's leaves is worth, by cases that were held back.

    `found`: networks of the same search, from a part of the cases, and the cases held back from it. The number is one
    of 1, 2, 4 ... 64. Before these cases are seen, each is half as probable as the next one that is nearer to what the
    network's own cases ask for (`with_fitted_priors`); given them, the most probable is taken.

    >>> from leafwise.decision_graph import DecisionGraph
    >>> from leafwise.table import Variable
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
    """Of a target's states in cases, by a node with a prior of each worth."""
    assert node is not None
    counts = counts_in_leaves(node, target, cases.codes)
    probabilities = (_with_prior_of(node, times).probabilities for times in TIMES_OF_A_TARGET)
    return np.array([float((counts * np.log(own)).sum()) for own in probabilities])


def with_prior_of_target(network: Network, target: int, times: int) -> Network:
    """The same network, its target's leaves with a prior that is worth so many times as many cases."""
    nodes = list(network.nodes)
    node = nodes[target]
    assert node is not None
    nodes[target] = _with_prior_of(node, times)
    return replace(network, nodes=tuple(nodes))
