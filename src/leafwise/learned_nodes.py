"""The result of a search as arrays: the graphs, parents and leaves of all variables, validated together.

Knows networks, not how they are learned.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.data.table import Variable, count_states
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LearnedGraphs:
    """The decision graphs of all variables, in flat arrays; a variable may have none.

    >>> graphs = LearnedGraphs(*map(np.array, ([0, 3, 3, 4], [1, LEAF, LEAF, LEAF], [0, 2, 2, 2, 2], [1, 2])))
    >>> graphs.made() == {0: DecisionGraph.complete([1], [2, 2]), 2: DecisionGraph.single()}
    True
    >>> graphs.are_valid(np.array([2, 2, 2])), graphs.are_valid(np.array([2, 3, 2]))
    (True, False)
    """

    begin: Integers  # variable v has the nodes from begin[v] to begin[v + 1]
    tests: Integers  # of each node: a variable, or LEAF
    first: Integers  # node k has the children from first[k] to first[k + 1]
    children: Integers  # nodes, numbered from the root of their graph

    @classmethod
    def of(cls, graphs: Mapping[int, DecisionGraph], n_variables: int) -> "LearnedGraphs":
        """Make the arrays from graphs by variable."""
        own = [graphs[variable] for variable in range(n_variables) if variable in graphs]
        sizes = [len(graphs[variable].tests) if variable in graphs else 0 for variable in range(n_variables)]
        rows = [row for graph in own for row in graph.children]
        return cls(
            np.cumsum([0, *sizes]),
            np.array([test for graph in own for test in graph.tests], np.int64),
            np.cumsum([0, *map(len, rows)]),
            np.array([child for row in rows for child in row], np.int64),
        )

    def made(self) -> dict[int, DecisionGraph]:
        """The graphs by variable."""
        begin, tests, first, children = (a.tolist() for a in (self.begin, self.tests, self.first, self.children))
        rows = [tuple(children[a:b]) for a, b in pairwise(first)]
        return {
            variable: DecisionGraph(tuple(tests[a:b]), tuple(rows[a:b]))
            for variable, (a, b) in enumerate(pairwise(begin))
            if a < b
        }

    def graph(self, variable: int) -> DecisionGraph:
        """The graph of one variable, which must have one."""
        begin, end = int(self.begin[variable]), int(self.begin[variable + 1])
        first, tests = self.first[begin : end + 1].tolist(), self.tests[begin:end].tolist()
        children = self.children[first[0] : first[-1]].tolist()
        return DecisionGraph(
            tuple(tests), tuple(tuple(children[a - first[0] : b - first[0]]) for a, b in pairwise(first))
        )

    @cached_property
    def owners(self) -> Integers:
        """The variable of each node."""
        return np.arange(len(self.begin) - 1).repeat(self.begin[1:] - self.begin[:-1])

    @cached_property
    def tested(self) -> Integers:
        """The numbers n_variables * i + j for which the graph of i tests j, sorted."""
        is_test = self.tests >= 0
        return _distinct(self.owners[is_test] * (len(self.begin) - 1) + self.tests[is_test])

    @cached_property
    def owners_of_leaves(self) -> Integers:
        """The variable of each leaf."""
        owners: Integers = self.owners[self.tests == LEAF]
        return owners

    def are_valid(self, n_states: Integers) -> bool:
        """Whether all graphs pass `DecisionGraph.validate`."""
        tests, owners = self.tests, self.owners
        if not ((tests >= LEAF) & (tests < len(n_states))).all():
            return False
        n_children = np.append(n_states, 0)[tests]  # the last entry is for LEAF
        if self.first[0] != 0 or not (self.first[1:] == n_children.cumsum()).all():
            return False
        nodes = np.arange(len(tests))
        sources = nodes.repeat(n_children)
        children = self.begin[owners][sources] + self.children
        if not ((sources < children) & (children < self.begin[1:][owners][sources])).all():
            return False
        is_reached = nodes == self.begin[owners]
        is_reached[children] = True
        return bool(is_reached.all())


def _distinct(numbers: Integers) -> Integers:
    """Sort the numbers in place, and return the distinct ones; ten times as fast as `np.unique`."""
    numbers.sort()
    distinct: Integers = numbers[np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]]
    return distinct


@dataclass(frozen=True, eq=False)
class LearnedNodes:
    """The graphs, arcs and leaves of a network's nodes.

    >>> none = np.zeros(0, np.int64)
    >>> single = LearnedGraphs(np.array([0, 1, 1]), np.array([LEAF]), np.array([0, 0]), none)
    >>> leaves = {2: (np.array([[0, 2]]), np.ones((1, 2)))}
    >>> learned = LearnedNodes(np.array([2, 2]), single, none, np.array([0, 1]), leaves)
    >>> coin, other = learned.made()
    >>> coin.probabilities.tolist(), other, learned.are_sound()
    ([[0.25, 0.75]], None, True)
    """

    n_states: Integers  # of the variables
    graphs: LearnedGraphs
    arcs: Integers  # n_variables * i + j where j is a parent of i, sorted
    ranks: Integers  # of the variables, in a topological order
    leaves: Mapping[int, tuple[Integers, Floats]]  # by number of states: counts and exponents, in order of variables

    def made(self) -> tuple[Node | None, ...]:
        """Make the node of each variable; None for one without a graph."""
        graphs, n_states = self.graphs.made(), self.n_states.tolist()
        all_parents = dag.parents_at(self.arcs, len(n_states))
        nodes: dict[int, Node] = {}
        for r, (counts, exponents) in self.leaves.items():
            own = [variable for variable in graphs if n_states[variable] == r]
            parents = [all_parents[variable] for variable in own]
            some = Node.all_learned(parents, [graphs[variable] for variable in own], counts, exponents)
            nodes.update(zip(own, some, strict=True))
        if len(nodes) < len(graphs):
            raise ValueError(f"{len(graphs)} graphs got leaves for {len(nodes)}: give all numbers of states theirs.")
        return tuple(map(nodes.get, range(len(n_states))))

    def are_sound(self) -> bool:
        """Whether they are the nodes of a valid network."""
        return (
            self._are_ranked() and self.graphs.are_valid(self.n_states) and self._test_parents() and self._fill_leaves()
        )

    def _are_ranked(self) -> bool:
        """Whether the arcs are sorted, and all lead to a higher rank, so that there is no cycle."""
        n = len(self.n_states)
        if not dag.are_places(self.arcs, n):
            return False
        children, parents = np.divmod(self.arcs, n)
        return len(self.ranks) == n and bool((self.ranks[parents] < self.ranks[children]).all())

    def _test_parents(self) -> bool:
        """Whether graphs test only parents."""
        n, tests = len(self.n_states), self.graphs.tests
        if self.arcs is self.graphs.tested:
            return True
        is_parent = np.zeros(n * n, np.bool_)
        is_parent[self.arcs] = True
        return bool(is_parent[(self.graphs.owners * n + tests)[tests != LEAF]].all())

    def _fill_leaves(self) -> bool:
        """Whether every leaf has counts and exponents, with valid values."""
        due = self.n_states[self.graphs.owners_of_leaves]
        return sum(len(counts) for counts, _ in self.leaves.values()) == len(due) and all(
            counts.shape == exponents.shape == (np.count_nonzero(due == r), r)
            and (counts >= 0).all()
            and ((exponents > 0) & (exponents < np.inf)).all()
            for r, (counts, exponents) in self.leaves.items()
        )


def network_of(variables: tuple[Variable, ...], nodes: LearnedNodes, **others: Any) -> Network:
    """The network of these nodes, which are made on first access; an error if they are not valid."""
    if np.array_equal(count_states(variables), nodes.n_states) and nodes.are_sound():
        return Network.with_nodes_later(variables, nodes.made, **others)
    return Network(variables, nodes.made(), **others)  # raises the error
