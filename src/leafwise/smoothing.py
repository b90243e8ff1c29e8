"""Leaves smoothed towards the nodes above them. Knows networks, inference and kernels, not how networks are learned."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import read
from leafwise.data.new_data import without_sums
from leafwise.data.table import Table
from leafwise.inference.likelihood import check_variables
from leafwise.kernels.parameters.smoothing import arc_counts, shrunken_exponents
from leafwise.kernels.questions.routes import FlatGraphs, flatten
from leafwise.network import Network, Node, check_network
from leafwise.tied_leaves import Rows, weighted_exponents, with_rows


def smoothed(network: Network, data: Any, strength: float) -> Network:
    """The same graphs, with each leaf shrunk towards the distribution of the node from which it was split.

    From the root down, the exponents of a node are one for each state, as in the uniform prior, plus `strength` cases
    distributed as in the node above; its distribution is the posterior mean. This improves leaves with few cases, most
    of all in graphs without merges. Counts are those of the data. As the exponents depend on the data, there is no
    parameter prior to score with: `prior` is None. Below an own-value test, the distribution above is restricted to
    the states of the part; the exponents of tied leaves are averaged, weighted by their cases.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> from leafwise.learner import learn
    >>> from leafwise.search.leaf_search import LeafSearch
    >>> cases = sample(alarm(), 500, seed=1)
    >>> network = learn(cases, target="HRBP", search=LeafSearch("B"), prior="uniform", structure_prior="kappa:0.027")
    >>> network.nodes[8].probabilities[1].round(2).tolist()
    [0.08, 0.88, 0.04]
    >>> smoothed(network, cases, 16).nodes[8].probabilities[1].round(2).tolist()
    [0.06, 0.57, 0.37]
    """
    check_network(network, "smoothed")
    return smoothings(network, complete_cases(network, data, "smoothed"), [strength])[0]


def complete_cases(network: Network, data: Any, asker: str) -> Table:
    """The cases of a Table or of what `read` accepts; an error if a cell is missing, or a hidden cause not shown."""
    with without_sums("use stacked, which infers them"):
        table = read(data, variables=network.variables)
    if any(found.hidden and found.missing for found in table.variables):
        raise ValueError(
            f"the network has hidden causes, and {asker} needs cases in which all variables are observed: use stacked"
        )
    return table


def smoothings(network: Network, table: Table, strengths: Sequence[float]) -> list[Network]:
    """`smoothed` for several strengths; the cases are counted once."""
    check_variables(network, table)
    for strength in strengths:
        if not 0 <= strength < math.inf:
            raise ValueError(f"the strength is {strength}, and it is a number of cases: give 0 or more")
    targets = [target for target, node in enumerate(network.nodes) if node is not None]
    rows = [_smoothed_rows(network, target, table, strengths) for target in targets]
    return [
        with_rows(network, dict(zip(targets, every, strict=True)), weighted_exponents, prior=None)
        for every in zip(*rows, strict=True)
    ]


def _smoothed_rows(network: Network, target: int, table: Table, strengths: Sequence[float]) -> list[Rows]:
    node = network.nodes[target]
    assert node is not None
    on_arcs, counts = counts_of(node, target, table)
    places = list(node.places)
    return [(counts[places], exponents) for exponents in _exponents(node, on_arcs, strengths)]


def smoothed_means(node: Node, on_arcs: NDArray[np.int64], strengths: Sequence[float]) -> list[NDArray[np.float64]]:
    """The smoothed distributions of a node for several strengths, from the counts on its arcs."""
    counts = node_counts(node, on_arcs)[list(node.places)]
    return [(counts + own) / (counts + own).sum(axis=1, keepdims=True) for own in _exponents(node, on_arcs, strengths)]


def _exponents(node: Node, on_arcs: NDArray[np.int64], strengths: Sequence[float]) -> list[NDArray[np.float64]]:
    """The exponents of each distribution, for several strengths."""
    test, first, child, _ = _flat(node)
    n_children = np.array([len(row) for row in node.whole_graph.children], np.int32)
    target, here = -1, np.ones((1, 1))
    if node.own is not None:
        target, here = node.own.target, np.zeros((len(node.own.graph.tests), node.n_states))
        for place, states in enumerate(node.own.states):
            here[place, list(states)] = 1.0
    every = [shrunken_exponents(test, first, child, n_children, on_arcs, s, target, here) for s in strengths]
    places = list(node.places)
    return [exponents[places] for exponents in every]


def counts_of(node: Node, target: int, table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The counts of the target's states on each arc of its graph, and last among all cases; and in each node."""
    test, first, child, _ = _flat(node)
    on_arcs = arc_counts(table.codes, test, first, child, target, node.n_states)
    return on_arcs, node_counts(node, on_arcs)


def _flat(node: Node) -> FlatGraphs:
    return node.flat if node.own is None else flatten([node.own.graph])


def node_counts(node: Node, on_arcs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The counts of the target's states in each node of a graph, from those on its arcs."""
    counts = np.zeros((len(node.whole_graph.tests), node.n_states), np.int64)
    counts[0] = on_arcs[-1]
    np.add.at(counts, _flat(node).child, on_arcs[:-1])
    return counts
