"""Decision graphs: which leaf (which distribution) an assignment of the parents reaches.

Complete tables, decision trees and decision graphs are one type. Knows only numpy; a variable and a state are integers.

          0: tests x                  tests    = (x, y, LEAF, LEAF, LEAF)
         /          \\                 children = ((1, 2), (3, 4), (), (), ())
     1: tests y    2: leaf 0
      /       \\
  3: leaf 1   4: leaf 2

Two invariants hold for every graph: a child has a larger index than its parents, and every node is reached from node 0.
Leaves are numbered in node order, which is the order of their creation: a split or a merge puts its new leaves last.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAF = -1


@dataclass(frozen=True, slots=True)
class DecisionGraph:
    """A rooted graph of tests, whose arcs are labelled with sets of states, ending in leaves.

    >>> graph = DecisionGraph.single().split(0, 3, [{0}, {1, 2}])
    >>> graph.leaf_of([0, 0, 0, 2])
    1
    """

    tests: tuple[int, ...]  # a node's tested variable, or LEAF
    children: tuple[tuple[int, ...], ...]  # a node's child for each state of its tested variable; () for a leaf

    @classmethod
    def single(cls) -> "DecisionGraph":
        """The graph of one leaf: no parent matters."""
        return cls((LEAF,), ((),))

    @classmethod
    def complete(cls, variables: Sequence[int], n_states: Sequence[int]) -> "DecisionGraph":
        """The complete tree whose every level splits the next of `variables`; `n_states` counts those of each variable.

        Leaf numbers read the states of `variables` as digits, the last variable varying fastest.

        >>> DecisionGraph.complete([0, 1], [2, 3]).n_leaves
        6
        """
        tests: list[int] = []
        children: list[tuple[int, ...]] = []
        width = 1
        for variable in variables:
            first = len(tests) + width
            r = n_states[variable]
            tests += [variable] * width
            children += [tuple(range(first + k * r, first + (k + 1) * r)) for k in range(width)]
            width *= r
        return cls((*tests, *[LEAF] * width), (*children, *[()] * width))

    @property
    def leaves(self) -> tuple[int, ...]:
        """The nodes that are leaves: leaf number k is node `leaves[k]`."""
        return tuple(node for node, test in enumerate(self.tests) if test == LEAF)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return self.tests.count(LEAF)

    @property
    def tested(self) -> tuple[int, ...]:
        """The variables tested anywhere, sorted."""
        return tuple(sorted(set(self.tests) - {LEAF}))

    def n_parameters(self, n_states_of_target: int) -> int:
        """How many free parameters the leaves hold for a target with so many states."""
        return self.n_leaves * (n_states_of_target - 1)

    def arcs(self, node: int) -> tuple[tuple[frozenset[int], int], ...]:
        """The arcs out of a node: (states, child), ordered by smallest state.

        >>> DecisionGraph.single().split(0, 3, [{1}, {0, 2}]).arcs(0)
        ((frozenset({0, 2}), 2), (frozenset({1}), 1))
        """
        states_of: dict[int, list[int]] = {}
        for state, child in enumerate(self.children[node]):
            states_of.setdefault(child, []).append(state)
        return tuple((frozenset(states), child) for child, states in states_of.items())

    def split(self, leaf: int, variable: int, groups: Sequence[Iterable[int]]) -> "DecisionGraph":
        """Replace a leaf by a test with one new leaf for each group of states; the new leaves come last, in group order.

        The groups share out the states 0, 1, ... of the variable. Which of these states are possible at the leaf is
        the caller's affair.
        """
        node = self._leaf_node(leaf)
        tests, children = list(self.tests), list(self.children)
        group_of = _group_of_state(groups)
        tests[node] = variable
        children[node] = tuple(len(tests) + group for group in group_of)
        n_groups = max(group_of) + 1
        return DecisionGraph((*tests, *[LEAF] * n_groups), (*children, *[()] * n_groups))

    def merge(self, leaf: int, other: int) -> "DecisionGraph":
        """Make two leaves one; the merged leaf is the new last leaf, the others move up.

        >>> graph = DecisionGraph.complete([0, 1], [2, 2]).merge(1, 2)
        >>> [graph.leaf_of([x, y]) for x in (0, 1) for y in (0, 1)]
        [0, 2, 2, 1]
        """
        merged = {self._leaf_node(leaf), self._leaf_node(other)}
        if len(merged) < 2:
            raise ValueError(f"merge got leaf {leaf} twice, and it takes two different leaves: name another leaf.")
        last = len(self.tests)
        children = [tuple(last if child in merged else child for child in row) for row in self.children]
        return _reachable([*self.tests, LEAF], [*children, ()], 0)

    def leaf_of(self, case: Sequence[int]) -> int:
        """The number of the leaf that a case (a state for each variable) reaches."""
        node = 0
        while (variable := self.tests[node]) != LEAF:
            node = self.children[node][case[variable]]
        return self.tests[:node].count(LEAF)

    def paths(self, leaf: int) -> tuple[dict[int, frozenset[int]], ...]:
        """The ways from the root to a leaf: for each, the states it leaves to each tested variable.

        Paths that no case can take (a variable has no state left) are left out. The paths of all leaves are disjoint
        and cover every assignment.

        >>> DecisionGraph.complete([0], [2]).paths(1)
        ({0: frozenset({1})},)
        """
        goal = self._leaf_node(leaf)
        reach = self._leaves_below()
        found: list[dict[int, frozenset[int]]] = []
        stack: list[tuple[int, dict[int, frozenset[int]]]] = [(0, {})]
        while stack:
            node, box = stack.pop()
            if node == goal:
                found.append(box)
            for states, child in reversed(self.arcs(node)):
                variable = self.tests[node]
                left = states & box.get(variable, states)
                if left and reach[child] >> goal & 1:
                    stack.append((child, {**box, variable: left}))
        return tuple(found)

    def simplified(self) -> "DecisionGraph":
        """The same map from assignments to leaves with fewer tests: leaf k stays leaf k, and none is lost or merged.

        A test whose outcomes all lead to one place goes, and identical sub-graphs become one. Tests that are decided
        by earlier tests on every path stay.

        >>> graph = DecisionGraph.complete([0, 1], [2, 2]).merge(0, 1)
        >>> graph.simplified().tests, graph.simplified().children
        ((0, 1, -1, -1, -1), ((4, 1), (2, 3), (), (), ()))
        """
        # Going from the last node to the first meets children before parents, and of identical nodes the one with the
        # largest index first. As that one stands for all, every child keeps a larger index than its parents.
        stands = list(range(len(self.tests)))
        children: list[tuple[int, ...]] = list(self.children)
        known: dict[tuple[int, tuple[int, ...]], int] = {}
        for node in reversed(range(len(self.tests))):
            if self.tests[node] == LEAF:
                continue
            row = children[node] = tuple(stands[child] for child in self.children[node])
            stands[node] = row[0] if len(set(row)) == 1 else known.setdefault((self.tests[node], row), node)
        return _reachable(self.tests, children, stands[0])

    def relevant_parents(self, n_states: Sequence[int]) -> tuple[int, ...]:
        """The tested variables that can change the leaf of some assignment: exactly these, sorted.

        >>> DecisionGraph.complete([0, 1], [2, 2]).merge(0, 1).merge(0, 1).relevant_parents([2, 2])
        (0,)
        """
        twins = _Twins(self, self._leaves_below(), _variables_below(self))
        return tuple(variable for variable in self.tested if _matters(twins, variable, n_states))

    def without(self, variable: int, n_states: Sequence[int]) -> "DecisionGraph":
        """The same map without the tests of an irrelevant variable; a ValueError when the variable matters.

        Leaves that some case reaches all stay, in order; leaves that no case can reach may go.
        """
        if variable in self.tested:
            twins = _Twins(self, self._leaves_below(), _variables_below(self))
            if _matters(twins, variable, n_states):
                raise ValueError(
                    f"variable {variable} changes the leaf of some case, and only variables outside "
                    f"relevant_parents can be dropped: keep it, or merge its leaves first."
                )
        # The variable does not matter, so its state 0 may speak for all its states.
        stands = list(range(len(self.tests)))
        children: list[tuple[int, ...]] = list(self.children)
        for node in reversed(range(len(self.tests))):
            row = children[node] = tuple(stands[child] for child in self.children[node])
            if self.tests[node] == variable:
                stands[node] = row[0]
        return _reachable(self.tests, children, stands[0])

    def validate(self, n_states: Sequence[int]) -> None:
        """Raise a ValueError unless this is a decision graph over variables with these numbers of states."""
        if len(self.tests) != len(self.children) or not self.tests:
            raise ValueError(f"the graph has {len(self.tests)} tests and {len(self.children)} rows of children: pair them.")
        reached = {0}
        for node, (test, row) in enumerate(zip(self.tests, self.children, strict=True)):
            if node not in reached:
                raise ValueError(f"no arc leads to node {node}, and every node but the root needs one: leave it out.")
            if test != LEAF and not 0 <= test < len(n_states):
                raise ValueError(f"node {node} tests variable {test}, outside 0..{len(n_states) - 1}: name a variable.")
            expected = 0 if test == LEAF else n_states[test]
            if len(row) != expected:
                raise ValueError(f"node {node} has {len(row)} children where {expected} are due: give each state one.")
            for child in row:
                if not node < child < len(self.tests):
                    raise ValueError(
                        f"an arc leads from node {node} to node {child}, and only nodes {node + 1} to "
                        f"{len(self.tests) - 1} may follow: order the nodes from the root down."
                    )
            reached.update(row)

    def _leaf_node(self, leaf: int) -> int:
        leaves = self.leaves
        if not 0 <= leaf < len(leaves):
            raise ValueError(f"there is no leaf {leaf} among leaves 0 to {len(leaves) - 1}: name one of these.")
        return leaves[leaf]

    def _leaves_below(self) -> list[int]:
        """For each node the leaves it leads to, as the bits (by node index) of an integer."""
        reach = [0] * len(self.tests)
        for node in reversed(range(len(self.tests))):
            if self.tests[node] == LEAF:
                reach[node] = 1 << node
            for child in set(self.children[node]):
                reach[node] |= reach[child]
        return reach


class FlatGraphs(NamedTuple):
    """Several graphs in one set of arrays, for compiled loops: nodes of all graphs are numbered through."""

    test: NDArray[np.int32]  # a node's tested variable, or LEAF
    first: NDArray[np.int32]  # a test: where its children begin in `child`; a leaf: its number in its own graph
    child: NDArray[np.int32]  # children[first[node] + state] is where a state leads
    root: NDArray[np.int32]  # the first node of each graph


def flatten(graphs: Iterable[DecisionGraph]) -> FlatGraphs:
    """Put graphs into the flat form, in the given order."""
    test: list[int] = []
    first: list[int] = []
    child: list[int] = []
    root: list[int] = []
    for graph in graphs:
        start, leaf = len(test), 0
        root.append(start)
        test += graph.tests
        for row in graph.children:
            first.append(len(child) if row else leaf)
            leaf += not row
            child += [start + node for node in row]
    return FlatGraphs(*(np.array(column, np.int32) for column in (test, first, child, root)))


def _group_of_state(groups: Sequence[Iterable[int]]) -> list[int]:
    """The group of each state, when the groups are at least two and share out the states 0, 1, ..."""
    group_of = {state: number for number, group in enumerate(groups) for state in group}
    sizes = [len(set(group)) for group in groups]
    if len(groups) < 2 or 0 in sizes or sum(sizes) != len(group_of) or set(group_of) != set(range(len(group_of))):
        raise ValueError(
            f"the groups {[sorted(group) for group in groups]} do not share out the states 0, 1, ...: "
            f"give two or more groups that hold each state once."
        )
    return [group_of[state] for state in range(len(group_of))]


def _reachable(tests: Sequence[int], children: Sequence[tuple[int, ...]], root: int) -> DecisionGraph:
    """The graph below a root: its nodes in their order, numbered anew."""
    kept = {root}
    for node in range(root, len(tests)):
        if node in kept:
            kept.update(children[node])
    order = sorted(kept)
    number = {node: k for k, node in enumerate(order)}
    return DecisionGraph(
        tuple(tests[node] for node in order),
        tuple(tuple(number[child] for child in children[node]) for node in order),
    )


class _Twins(NamedTuple):
    """What the walk of `_differ` looks up: the graph, and the leaves and the tested variables below each node."""

    graph: DecisionGraph
    leaves: list[int]
    variables: list[frozenset[int]]


def _variables_below(graph: DecisionGraph) -> list[frozenset[int]]:
    below: list[frozenset[int]] = [frozenset()] * len(graph.tests)
    for node in reversed(range(len(graph.tests))):
        if graph.tests[node] != LEAF:
            below[node] = frozenset({graph.tests[node]}).union(*(below[child] for child in graph.children[node]))
    return below


def _matters(twins: _Twins, variable: int, n_states: Sequence[int]) -> bool:
    """Whether two states of the variable send some assignment to different leaves.

    States that every test of the variable treats alike are one; as equality is transitive, neighbours suffice.
    """
    graph = twins.graph
    rows = [graph.children[node] for node, test in enumerate(graph.tests) if test == variable]
    unlike = list({tuple(row[state] for row in rows): state for state in range(n_states[variable])}.values())
    return any(_differ(twins, variable, s, t) for s, t in zip(unlike, unlike[1:], strict=False))


def _differ(twins: _Twins, variable: int, s: int, t: int) -> bool:
    """Walk the graph twice at once, with variable = s and variable = t, the other variables being the same in both.

    A step moves the twin that is higher up, or both when they stand at one node; `box` holds the states left to the
    other variables, and forgets those that are not tested below, so that equal positions are visited once.
    """
    graph, leaves, variables = twins
    stack: list[tuple[int, int, dict[int, frozenset[int]]]] = [(0, 0, {})]
    visited: set[tuple[int, int, frozenset[tuple[int, frozenset[int]]]]] = set()
    while stack:
        a, b, box = stack.pop()
        if not leaves[a] & leaves[b]:
            return True
        same_leaf = leaves[a] == leaves[b] and leaves[a].bit_count() == 1
        if same_leaf or (a == b and variable not in variables[a]):
            continue
        box = {u: states for u, states in box.items() if u in variables[a] or u in variables[b]}
        position = (a, b, frozenset(box.items()))
        if position in visited:
            continue
        visited.add(position)
        node = min(node for node in (a, b) if graph.tests[node] != LEAF)
        tested = graph.tests[node]
        if tested == variable:
            row = graph.children[node]
            stack.append((row[s] if a == node else a, row[t] if b == node else b, box))
            continue
        for states, child in graph.arcs(node):
            left = states & box.get(tested, states)
            if left:
                moved = (child if a == node else a, child if b == node else b)
                stack.append((*moved, {**box, tested: left}))
    return False
