"""The best distinct networks that a search has visited. Knows nodes and decision graphs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.network import Node

Nodes = tuple[Node | None, ...]

_SAME_SCORE = 1e-6  # networks whose log marginal likelihoods differ by more are different, and not compared
_MOST_WALKS = 10_000


class BestNetworks:
    """Up to `most` networks with their log scores, the best first; of those with the same leaves, the best one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.found: list[tuple[Nodes, float]] = []
        self._likelihoods: list[float] = []  # of these networks

    def wants(self, log_score: float) -> bool:
        """Whether a network with this score would be kept if it is new."""
        return len(self.found) < self._most or log_score > self.found[-1][1]

    def offer(self, nodes: Nodes, log_score: float, log_likelihood: float) -> None:
        """Keep the network if it is among the best, and no kept one with the same leaves has as high a score."""
        if not self.wants(log_score):
            return
        for place, (known, score) in enumerate(self.found):
            if abs(log_likelihood - self._likelihoods[place]) < _SAME_SCORE and _say_the_same(nodes, known):
                if score >= log_score - TIE:
                    return
                del self.found[place], self._likelihoods[place]
                break
        place = sum(score >= log_score - TIE for _, score in self.found)
        self.found.insert(place, (nodes, log_score))
        self._likelihoods.insert(place, log_likelihood)
        del self.found[self._most :], self._likelihoods[self._most :]

    def state(self) -> list[Any]:
        """The networks as plain values."""
        pairs = zip(self.found, self._likelihoods, strict=True)
        return [[plain_nodes(nodes), log_score, likelihood] for (nodes, log_score), likelihood in pairs]

    def go_on_from(self, state: Sequence[Any]) -> None:
        """Restore the networks from a saved state."""
        self.found = [(nodes_of(nodes), log_score) for nodes, log_score, _ in state]
        self._likelihoods = [likelihood for _, _, likelihood in state]

    def relative_posteriors(self) -> list[float]:
        """The posterior probability of each network, relative to all that are kept."""
        log_scores = np.array([log_score for _, log_score in self.found])
        odds = np.exp(log_scores - log_scores.max())
        return [float(share) for share in odds / odds.sum()]


def plain_nodes(nodes: Nodes) -> list[Any]:
    """Convert learned nodes to plain values.

    >>> node = Node.learned((), DecisionGraph.single(), np.array([[3, 1]]), np.ones((1, 2)))
    >>> nodes_of(plain_nodes((node, None))) == (node, None)
    True
    """
    return [
        None
        if node is None or node.counts is None or node.exponents is None
        else [node.parents, node.graph.tests, node.graph.children, node.counts.tolist(), node.exponents.tolist()]
        for node in nodes
    ]


def nodes_of(rows: Sequence[Any]) -> Nodes:
    """Convert back what `plain_nodes` returned."""
    return tuple(None if row is None else _node_of(*row) for row in rows)


def _node_of(parents: Any, tests: Any, children: Any, counts: Any, exponents: Any) -> Node:
    graph = DecisionGraph(tuple(tests), tuple(map(tuple, children)))
    return Node.learned(tuple(parents), graph, np.array(counts), np.array(exponents))


def _say_the_same(nodes: Nodes, others: Nodes) -> bool:
    pairs = [(a, b) for a, b in zip(nodes, others, strict=True) if a is not None and b is not None and a is not b]
    return all(same_leaves(a.graph, b.graph) for a, b in pairs)


def same_leaves(one: DecisionGraph, other: DecisionGraph, most_walks: int = _MOST_WALKS) -> bool:
    """Whether two graphs partition the assignments alike; False also if the comparison takes more than these walks.

    >>> same_leaves(DecisionGraph.complete([0, 1], [2, 2]), DecisionGraph.complete([1, 0], [2, 2]))
    True
    """
    if one == other or one.n_leaves != other.n_leaves:
        return one == other
    leaves: tuple[dict[int, int], dict[int, int]] = {}, {}  # by leaf of each graph, that of the other
    stack: list[tuple[int, int, dict[int, frozenset[int]]]] = [(0, 0, {})]
    for _ in range(most_walks):
        if not stack:
            return True
        a, b, box = stack.pop()
        graph, node = (one, a) if one.tests[a] != LEAF else (other, b)
        variable = graph.tests[node]
        if variable == LEAF and (leaves[0].setdefault(a, b) != b or leaves[1].setdefault(b, a) != a):
            return False
        for states, child in graph.arcs(node):
            left = states & box.get(variable, states)
            if left:
                stack.append(
                    (child, b, {**box, variable: left}) if graph is one else (a, child, {**box, variable: left})
                )
    return False
