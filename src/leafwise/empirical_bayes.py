"""Leaves that begin with as many cases as their variable's data ask for. Knows networks and kernels, not searches."""

from collections.abc import Iterator, Sequence

import numpy as np

from leafwise.kernels.leaf_search.weights import log_likelihoods_of
from leafwise.network import Network, Node

TIMES = (1, 2, 4, 8, 16)  # as many cases as in the prior that the search has scored with


def with_fitted_priors(network: Network) -> Network:
    """The same graphs and counts, the leaves of each variable with a prior that is worth as many cases as it takes.

    That is the prior of the search, or one of two, four, eight or sixteen times as many cases. Before the data each of
    the five is as probable as any other; given the cases of all leaves of a variable, the median is taken. Variables
    with own-value tests or tied leaves keep the prior of the search, which is also what the network tells, and scores
    are of.

    >>> from leafwise.decision_graph import DecisionGraph
    >>> from leafwise.table import Variable
    >>> coins = [Node.learned((), DecisionGraph.single(), np.array([n]), np.ones((1, 2))) for n in ([7, 5], [12, 0])]
    >>> names = Variable("fair", ("heads", "tails")), Variable("magic", ("heads", "tails"))
    >>> found = with_fitted_priors(Network(names, tuple(coins), prior="symmetric:2"))
    >>> [node.exponents.tolist() for node in found.nodes], found.prior
    ([[[8.0, 8.0]], [[1.0, 1.0]]], 'symmetric:2')
    """
    tied = {leaf.variable for group in network.ties for leaf in group}

    def make_nodes() -> tuple[Node | None, ...]:
        nodes = list(network.nodes)
        free = [target for target in range(len(nodes)) if target not in tied]
        for target, node in zip(free, _fitted([nodes[target] for target in free]), strict=True):
            nodes[target] = node
        return tuple(nodes)

    about = {"prior": network.prior, "structure_prior": network.structure_prior, "learned": network.learned}
    return Network.with_nodes_later(network.variables, make_nodes, network.ties, **about)


def _fitted(nodes: Sequence[Node | None]) -> Iterator[Node | None]:
    """The nodes, those that hold counts with such a prior."""
    learned = [node for node in nodes if node is not None and node.counts is not None]
    if not learned:
        yield from nodes
        return
    widths = np.repeat([node.n_states for node in learned], [node.n_leaves for node in learned])
    counts, exponents = (
        np.concatenate([np.ravel(getattr(node, name)) for node in learned]).astype(np.float64)
        for name in ("counts", "exponents")
    )
    of_leaves = np.array([log_likelihoods_of(widths, counts, exponents * times) for times in TIMES])
    firsts = np.cumsum([0, *(node.n_leaves for node in learned[:-1])])
    of_nodes = np.add.reduceat(of_leaves, firsts, axis=1)
    shares = np.exp(of_nodes - of_nodes.max(axis=0)).cumsum(axis=0)
    medians = iter((shares < shares[-1] / 2).sum(axis=0).tolist())
    for node in nodes:
        if node is None or node.counts is None or node.exponents is None:
            yield node
        else:
            times = TIMES[next(medians)]
            yield node if times == 1 else node.relearned(node.counts, node.exponents * times)
