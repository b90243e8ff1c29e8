"""Decision graphs: maps from assignments of the parents to leaves (distributions).

Complete tables, decision trees and decision graphs are one type. Pure Python; variables and states are integers.

          0: tests x                  tests    = (x, y, LEAF, LEAF, LEAF)
         /          \\                 children = ((1, 2), (3, 4), (), (), ())
     1: tests y    2: leaf 0
      /       \\
  3: leaf 1   4: leaf 2

Every graph has two invariants: a child has a larger index than its parents, and every node is reachable from node 0.
Leaves are numbered in node order, which is the order of their creation: splits and merges append their new leaves.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

LEAF = -1
_N_WITNESSES = 100


@dataclass(frozen=True, slots=True)
class DecisionGraph:
    """A rooted acyclic graph of tests, whose arcs are labelled with sets of states, and of leaves.

    >>> graph = DecisionGraph.single().split(0, 3, [{0}, {1, 2}])
    >>> graph.leaf_of([0, 0, 0, 2])
    1
    """

    tests: tuple[int, ...]  # by node: the tested variable, or LEAF
    children: tuple[tuple[int, ...], ...]  # by node: the child for each state of the tested variable; () for a leaf

    @classmethod
    def single(cls) -> "DecisionGraph":
        """The graph of a single leaf, which tests nothing."""
        return cls((LEAF,), ((),))

    @classmethod
    def complete(cls, variables: Sequence[int], n_states: Sequence[int]) -> "DecisionGraph":
        """The complete tree whose levels test `variables`, in this order; `n_states` is indexed by variable.

        Leaf numbers have the states of `variables` as digits, the last variable varying fastest.

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

    @classmethod
    def choice(cls, variable: int, graphs: "Sequence[DecisionGraph]") -> "DecisionGraph":
        """A test of a variable, followed by one graph for each of its states; leaves are numbered graph by graph.

        >>> DecisionGraph.choice(7, [DecisionGraph.single(), DecisionGraph.complete([0], [2])]).leaf_of([1] * 8)
        2
        """
        tests: list[int] = [variable]
        children: list[tuple[int, ...]] = []
        begins: list[int] = []
        for graph in graphs:
            begin = len(tests)
            begins.append(begin)
            tests += graph.tests
            children += [tuple(begin + child for child in row) for row in graph.children]
        return cls(tuple(tests), (tuple(begins), *children))

    @property
    def leaves(self) -> tuple[int, ...]:
        """The nodes that are leaves: leaf k is node `leaves[k]`."""
        return tuple(node for node, test in enumerate(self.tests) if test == LEAF)

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return self.tests.count(LEAF)

    @property
    def n_tests(self) -> int:
        """The number of tests."""
        return len(self.tests) - self.n_leaves

    @property
    def tested(self) -> tuple[int, ...]:
        """The variables tested anywhere, sorted."""
        return tuple(sorted(set(self.tests) - {LEAF}))

    def n_parameters(self, n_states_of_target: int) -> int:
        """The number of free parameters in the leaves, given the target's number of states."""
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
        """Replace a leaf by a test with one new leaf for each group of states; these come last, in group order.

        The groups partition the states 0, 1, ... of the variable, possible at the leaf or not.
        """
        node = self._leaf_node(leaf)
        tests, children = list(self.tests), list(self.children)
        group_of = _group_of_state(groups)
        tests[node] = variable
        children[node] = tuple(len(tests) + group for group in group_of)
        n_groups = max(group_of) + 1
        return DecisionGraph((*tests, *[LEAF] * n_groups), (*children, *[()] * n_groups))

    def merge(self, leaf: int, other: int) -> "DecisionGraph":
        """Merge two leaves; the merged leaf becomes the last one, and the others are renumbered in order.

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
        """The number of the leaf that a case (one state per variable) reaches."""
        node = 0
        while (variable := self.tests[node]) != LEAF:
            node = self.children[node][case[variable]]
        return self.tests[:node].count(LEAF)

    def paths(self, leaf: int) -> tuple[dict[int, frozenset[int]], ...]:
        """The paths from the root to a leaf: for each, the possible states of each tested variable.

        Paths that no case can take (a variable has no possible state) are omitted. The paths of all leaves are disjoint
        and cover every assignment.

        >>> DecisionGraph.complete([0], [2]).paths(1)
        ({0: frozenset({1})},)
        """
        return self.paths_to(self._leaf_node(leaf))

    def paths_to(self, goal: int) -> tuple[dict[int, frozenset[int]], ...]:
        """The paths from the root to any node, as by `paths`."""
        leads = [False] * len(self.tests)
        for node in range(goal, -1, -1):
            leads[node] = node == goal or any(leads[child] for child in self.children[node])
        found: list[dict[int, frozenset[int]]] = []
        stack: list[tuple[int, dict[int, frozenset[int]]]] = [(0, {})]
        while stack:
            node, box = stack.pop()
            if node == goal:
                found.append(box)
            for states, child in reversed(self.arcs(node)):
                variable = self.tests[node]
                left = states & box.get(variable, states)
                if left and leads[child]:
                    stack.append((child, {**box, variable: left}))
        return tuple(found)

    def simplified(self) -> "DecisionGraph":
        """The same map from assignments to leaves with fewer tests: leaf k stays leaf k, and none is lost or merged.

        Tests whose outcomes all lead to one node are removed, and identical subgraphs are shared. Tests that are
        decided by earlier tests on every path stay.

        >>> graph = DecisionGraph.complete([0, 1], [2, 2]).merge(0, 1)
        >>> graph.simplified().tests, graph.simplified().children
        ((0, 1, -1, -1, -1), ((4, 1), (2, 3), (), (), ()))
        """
        # In reverse order, children come before parents, and of identical nodes the one with the largest index first.
        # This one represents all, so every child keeps a larger index than its parents.
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
        """Exactly the variables that can change the leaf of some assignment, sorted.

        >>> DecisionGraph.complete([0, 1], [2, 2]).merge(0, 1).merge(0, 1).relevant_parents([2, 2])
        (0,)
        """
        matter = _witnessed(self, n_states)
        unclear = [variable for variable in self.tested if variable not in matter]
        if unclear:
            shared = _Shared(self)
            matter.update(variable for variable in unclear if _matters(shared, variable, n_states))
        return tuple(sorted(matter))

    def matters(self, variable: int, n_states: Sequence[int]) -> bool:
        """Return whether the leaf of some assignment depends on the state of the variable."""
        return variable in self.tested and _matters(_Shared(self), variable, n_states)

    def without(self, variable: int, n_states: Sequence[int]) -> "DecisionGraph":
        """The same map without tests of an irrelevant variable; a ValueError if the variable is relevant.

        Leaves that some case reaches all stay, in order; unreachable leaves may be lost.
        """
        if self.matters(variable, n_states):
            raise ValueError(
                f"variable {variable} changes the leaf of some case, and only variables outside "
                f"relevant_parents can be dropped: keep it, or merge its leaves first."
            )
        # The variable is irrelevant, so its state 0 can represent all its states.
        stands = list(range(len(self.tests)))
        children: list[tuple[int, ...]] = list(self.children)
        for node in reversed(range(len(self.tests))):
            row = children[node] = tuple(stands[child] for child in self.children[node])
            if self.tests[node] == variable:
                stands[node] = row[0]
        return _reachable(self.tests, children, stands[0])

    def given(self, states: Mapping[int, int]) -> "DecisionGraph":
        """The graph given the states of some variables, without tests of these and without unreachable nodes.

        >>> DecisionGraph.complete([0, 1], [2, 2]).given({0: 1}).tests
        (1, -1, -1)
        """
        stands = list(range(len(self.tests)))
        children: list[tuple[int, ...]] = list(self.children)
        for node in reversed(range(len(self.tests))):
            row = children[node] = tuple(stands[child] for child in self.children[node])
            if self.tests[node] in states:
                stands[node] = row[states[self.tests[node]]]
        return _reachable(self.tests, children, stands[0])

    def renumbered(self, number: Callable[[int], int]) -> "DecisionGraph":
        """The same graph with its variables renumbered."""
        return DecisionGraph(tuple(test if test == LEAF else number(test) for test in self.tests), self.children)

    def validate(self, n_states: Sequence[int]) -> None:
        """Raise a ValueError unless this is a decision graph over variables with these numbers of states."""
        if len(self.tests) != len(self.children) or not self.tests:
            raise ValueError(
                f"the graph has {len(self.tests)} tests and {len(self.children)} rows of children: pair them."
            )
        last = len(self.tests) - 1
        for node, (test, row) in enumerate(zip(self.tests, self.children, strict=True)):
            if test == LEAF and not row:
                continue
            if test != LEAF and not 0 <= test < len(n_states):
                raise ValueError(f"node {node} tests variable {test}, outside 0..{len(n_states) - 1}: name a variable.")
            expected = 0 if test == LEAF else n_states[test]
            if len(row) != expected:
                raise ValueError(f"node {node} has {len(row)} children where {expected} are due: give each state one.")
            for child in row:
                if not node < child <= last:
                    raise ValueError(
                        f"an arc leads from node {node} to node {child}, and only nodes {node + 1} to {last} may "
                        f"follow: order the nodes from the root down."
                    )
        alone = set(range(1, len(self.tests))).difference(*self.children)
        if alone:
            node = min(alone)
            raise ValueError(f"no arc leads to node {node}, and every node but the root needs one: leave it out.")

    def _leaf_node(self, leaf: int) -> int:
        leaves = self.leaves
        if not 0 <= leaf < len(leaves):
            raise ValueError(f"there is no leaf {leaf} among leaves 0 to {len(leaves) - 1}: name one of these.")
        return leaves[leaf]


def _group_of_state(groups: Sequence[Iterable[int]]) -> list[int]:
    """The group of each state; a ValueError unless at least two nonempty groups partition the states 0, 1, ..."""
    group_of = {state: number for number, group in enumerate(groups) for state in group}
    sizes = [len(set(group)) for group in groups]
    if len(groups) < 2 or 0 in sizes or sum(sizes) != len(group_of) or set(group_of) != set(range(len(group_of))):
        raise ValueError(
            f"the groups {[sorted(group) for group in groups]} do not share out the states 0, 1, ...: "
            f"give two or more groups that hold each state once."
        )
    return [group_of[state] for state in range(len(group_of))]


def _reachable(tests: Sequence[int], children: Sequence[tuple[int, ...]], root: int) -> DecisionGraph:
    """The subgraph below a root: its nodes in the same order, renumbered."""
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


def _witnessed(graph: DecisionGraph, n_states: Sequence[int]) -> set[int]:
    """Variables found to be relevant in random cases: most of the relevant ones, at little cost."""
    random = Random(0)
    matter: set[int] = set()
    tested = graph.tested
    for _ in range(_N_WITNESSES):
        case = {variable: random.randrange(n_states[variable]) for variable in tested}
        end, on_path = _walk(graph, case)
        for variable in on_path - matter:
            others = ({**case, variable: state} for state in range(n_states[variable]) if state != case[variable])
            if any(_walk(graph, other)[0] != end for other in others):
                matter.add(variable)
        if len(matter) == len(tested):
            break
    return matter


def _walk(graph: DecisionGraph, case: Mapping[int, int]) -> tuple[int, set[int]]:
    """The leaf (as a node) that a case reaches, and the variables tested on the way."""
    node, on_path = 0, set()
    while (variable := graph.tests[node]) != LEAF:
        on_path.add(variable)
        node = graph.children[node][case[variable]]
    return node, on_path


class _Shared:
    """Subgraphs stored once each (hash consing): identical ones have the same number.

    A number is larger than those of its children, and a test whose outcomes are all the same is replaced by these.
    """

    def __init__(self, graph: DecisionGraph) -> None:
        self.tests: list[int] = []
        self.children: list[tuple[int, ...]] = []
        self.leaves: list[int] = []  # the leaves below, as a bit mask
        self.variables: list[int] = []  # the variables tested here and below, as a bit mask
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}
        self._fixed: dict[tuple[int, int, int], int] = {}
        number: dict[int, int] = {}
        for node in reversed(range(len(graph.tests))):
            if graph.tests[node] == LEAF:
                number[node] = self._add(LEAF, (), 1 << node, 0)
            else:
                number[node] = self._test(graph.tests[node], tuple(number[child] for child in graph.children[node]))
        self.root = number[0]

    def _add(self, test: int, children: tuple[int, ...], leaves: int, variables: int) -> int:
        self.tests.append(test)
        self.children.append(children)
        self.leaves.append(leaves)
        self.variables.append(variables)
        return len(self.tests) - 1

    def _test(self, variable: int, children: tuple[int, ...]) -> int:
        below = set(children)
        if len(below) == 1:
            return children[0]
        number = self._known.get((variable, children))
        if number is None:
            leaves, variables = 0, 1 << variable
            for child in below:
                leaves |= self.leaves[child]
                variables |= self.variables[child]
            number = self._known[variable, children] = self._add(variable, children, leaves, variables)
        return number

    def fix(self, top: int, variable: int, state: int) -> int:
        """The subgraph with the variable fixed at a state, and no longer tested."""
        fixed = self._fixed
        stack = [top]
        while stack:
            node = stack[-1]
            if (node, variable, state) in fixed:
                stack.pop()
                continue
            row = self.children[node]
            if not self.variables[node] >> variable & 1:
                result: int | None = node
            elif self.tests[node] == variable:
                result = fixed.get((row[state], variable, state))
                stack += [row[state]] if result is None else []
            else:
                waiting = [child for child in set(row) if (child, variable, state) not in fixed]
                stack += waiting
                result = None
                if not waiting:
                    result = self._test(self.tests[node], tuple(fixed[child, variable, state] for child in row))
            if result is not None:
                fixed[node, variable, state] = result
        return fixed[top, variable, state]


def _matters(shared: _Shared, variable: int, n_states: Sequence[int]) -> bool:
    """Return whether two states of the variable lead some assignment to different leaves."""
    held = sorted({shared.fix(shared.root, variable, state) for state in range(n_states[variable])})
    return any(_differ(shared, one, other, n_states) for one, other in pairwise(held))


def _differ(shared: _Shared, one: int, other: int, n_states: Sequence[int]) -> bool:
    """Return whether some assignment reaches different leaves in two subgraphs.

    The first tested variable is fixed at each of its states, in both, until they are identical or share no leaf, so
    impossible paths do not count. The problem is NP-hard: this can take exponential time, but rarely does.
    """
    stack = [(one, other)]
    visited: set[tuple[int, int]] = set()
    while stack:
        pair = stack.pop()
        one, other = pair
        if one == other or pair in visited:
            continue
        if not shared.leaves[one] & shared.leaves[other]:
            return True
        visited.add(pair)
        variable = shared.tests[one] if shared.tests[one] != LEAF else shared.tests[other]
        stack += {
            (shared.fix(one, variable, state), shared.fix(other, variable, state))
            for state in range(n_states[variable])
        }
    return False
