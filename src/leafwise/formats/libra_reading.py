"""Parsing of Libra's BN text: a Network, or an error that says where it is wrong and what was expected.

A distribution is a product of factors: trees, or features, each a weight with conditions, +v1_0 (is) or -v1_0 (is not),
under which it applies. A single tree that tests the variable itself last remains a tree; everything else becomes a
table. Rows that do not sum to one are divided by their sum, as factors are only defined up to a constant.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.formats.bif_text import Cursor, brief
from leafwise.formats.tables import Room, fitted, leaves_of, table_node
from leafwise.network import Network, Node

_VARIABLE = re.compile(r"v([0-9]{1,9})")
_CONDITION = re.compile(r"([-+]?)v([0-9]{1,9})_([0-9]{1,9})")
_NUMBER = re.compile(r"[-+]?+(?:[0-9]++\.?+[0-9]*+(?:[eE][-+]?+[0-9]++)?+|inf)")

_Condition = tuple[bool, int, int]  # whether it must hold, a variable, a state
_Feature = tuple[float, tuple[_Condition, ...]]


@dataclass(frozen=True)
class _Tree:
    """A tree in the order of its text: tests[k] is a variable or LEAF; at a LEAF, weights[k] applies."""

    tests: list[int]
    states: list[int]
    yes: list[int]
    no: list[int]
    weights: list[float]

    @property
    def depth(self) -> int:
        """The largest number of tests on a path."""
        below = [0] * len(self.tests)
        for place in reversed(range(len(below))):
            if self.tests[place] != LEAF:
                below[place] = 1 + max(below[self.yes[place]], below[self.no[place]])
        return below[0]


def read_network(text: str, room: Room) -> Network:
    """The network of a Libra BN text."""
    cursor = Cursor(text)
    n_states = _read_schema(cursor, room)
    cursor.expect("{", "write BN { v0 { … } … }")
    nodes: list[Node | None] = [None] * len(n_states)
    places = [0] * len(n_states)
    while not cursor.takes("}"):
        name = cursor.word("a variable such as v0, or '}'")
        found = _VARIABLE.fullmatch(name)
        if found is None or int(found[1]) >= len(n_states) or nodes[int(found[1])] is not None:
            cursor.fail(
                f"{brief(name)} came where one of v0 to v{len(n_states) - 1} is expected, each once: correct it.",
                cursor.began,
            )
        index = int(found[1])
        places[index] = cursor.began
        nodes[index] = _read_node(cursor, index, n_states, room)
    if None in nodes:
        cursor.fail(f"v{nodes.index(None)} has no distribution, and each variable takes one: add it.", 0)
    cycle = dag.find_cycle([node.parents for node in nodes if node is not None])
    if cycle:
        arrows = " → ".join(f"v{index}" for index in cycle)
        cursor.fail(f"the arcs {arrows} form a cycle, and a network has none: leave one of them out.", places[cycle[0]])
    variables = (Variable(f"v{index}", tuple(map(str, range(count)))) for index, count in enumerate(n_states))
    return Network(tuple(variables), tuple(nodes))


def _read_schema(cursor: Cursor, room: Room) -> list[int]:
    n_states: list[int] = []
    while (word := cursor.word("a number of states, or 'BN'")) != "BN":
        if not (word.isascii() and word.isdecimal() and len(word) < 6 and int(word) > 0):
            cursor.fail(f"{brief(word)} came where a number of states, or 'BN', is expected: correct it.", cursor.began)
        n_states.append(int(word))
        room.take(n_states[-1], cursor.fail_here)  # each state has a label
        cursor.takes(",")
    if not n_states:
        cursor.fail("'BN' came where the numbers of states are expected: write them before it.", cursor.began)
    return n_states


def _read_node(cursor: Cursor, index: int, n_states: list[int], room: Room) -> Node:
    cursor.expect("{", f"write the factors of v{index} between {{ and }}")
    place = cursor.began
    features: list[_Feature] = []
    trees: list[_Tree] = []
    while not cursor.takes("}"):
        kind = cursor.word("'tree', 'features', 'table', a weight or '}'")
        if kind in ("tree", "features", "table"):
            cursor.expect("{", f"write the {kind} between {{ and }}")
            if kind == "tree":
                trees.append(_read_tree(cursor, n_states))
                cursor.expect("}", "close the tree")
            else:
                while not cursor.takes("}"):
                    features.append(_read_feature(cursor, cursor.word("a weight or '}'"), n_states))
        else:
            features.append(_read_feature(cursor, kind, n_states))

    def take(n: int) -> None:
        room.take(n, lambda problem: cursor.fail(problem, place))

    if len(trees) == 1 and not features:
        found = _as_tree(trees[0], index, n_states, take)
        if found is not None:
            graph, logs = found
            return Node(graph.tested, graph, _distributions(cursor, logs, place))
    factors = _Factors(features, trees, index, n_states, take)
    rows = _distributions(cursor, factors.logs(), place)
    return table_node(factors.parents, rows, n_states)


def _read_feature(cursor: Cursor, word: str, n_states: list[int]) -> _Feature:
    if not _NUMBER.fullmatch(word) or float(word) == math.inf:
        cursor.fail(f"{brief(word)} came where a weight is expected: write a number.", cursor.began)
    conditions = []
    while cursor.ahead("+v") or cursor.ahead("-v"):
        sense, variable, state = _read_condition(cursor, n_states)
        conditions.append((sense != "-", variable, state))
    return float(word), tuple(conditions)


def _read_condition(cursor: Cursor, n_states: list[int]) -> tuple[str, int, int]:
    word = cursor.word("a condition such as v1_0")
    found = _CONDITION.fullmatch(word)
    if found is None or int(found[2]) >= len(n_states) or int(found[3]) >= n_states[int(found[2])]:
        cursor.fail(
            f"{brief(word)} came where a variable and its state, such as v1_0, are expected: correct it.", cursor.began
        )
    return found[1], int(found[2]), int(found[3])


def _read_tree(cursor: Cursor, n_states: list[int]) -> _Tree:
    """Parse nested (vI_S yes no) without recursion; `open_tests` are those that lack branches."""
    tree = _Tree([], [], [], [], [])
    open_tests: list[int] = []
    while True:
        number = len(tree.tests)
        if open_tests:
            branches = tree.yes if tree.yes[open_tests[-1]] < 0 else tree.no
            branches[open_tests[-1]] = number
        variable, state, weight = LEAF, 0, 0.0
        if cursor.takes("("):
            _, variable, state = _read_condition(cursor, n_states)
            open_tests.append(number)
        else:
            weight = _read_feature(cursor, cursor.word("'(' or a weight"), n_states)[0]
        for values, value in ((tree.tests, variable), (tree.states, state), (tree.yes, -1), (tree.no, -1)):
            values.append(value)
        tree.weights.append(weight)
        while open_tests and tree.no[open_tests[-1]] >= 0 and variable == LEAF:
            cursor.expect(")", "give a test two branches")
            open_tests.pop()
        if not open_tests:
            return tree


def _as_tree(
    tree: _Tree, index: int, n_states: list[int], take: Callable[[int], None]
) -> tuple[DecisionGraph, NDArray[np.float64]] | None:
    """The tests of parents, and rows of logs from own-value tests on; None if parents are tested below these."""
    within = [False] * len(tree.tests)  # whether only the variable itself is tested from here down
    for place in reversed(range(len(within))):
        below = tree.tests[place] == LEAF or (within[tree.yes[place]] and within[tree.no[place]])
        within[place] = below and tree.tests[place] in (LEAF, index)
    waiting, tests = [0], list[int]()
    children: list[tuple[int, ...]] = []
    rows: list[list[float]] = []
    for place in waiting:  # grows during the loop
        if within[place]:
            tests.append(LEAF)
            children.append(())
            take(n_states[index])
            rows.append(_weights(tree, place, n_states[index]))
        elif tree.tests[place] == index:
            return None
        else:
            yes, no, variable = len(waiting), len(waiting) + 1, tree.tests[place]
            waiting += [tree.yes[place], tree.no[place]]
            tests.append(variable)
            take(n_states[variable])
            row = [no] * n_states[variable]
            row[tree.states[place]] = yes
            if len(row) == 1:
                waiting.pop()
            children.append(tuple(row))
    return DecisionGraph(tuple(tests), tuple(children)), np.array(rows)


def _weights(tree: _Tree, place: int, n_states: int) -> list[float]:
    """The weight of each state below a place where only the variable itself is tested, one state per test."""
    weights: dict[int, float] = {}
    while tree.tests[place] != LEAF:
        state, turn = tree.states[place], tree.yes[place]
        while tree.tests[turn] != LEAF:
            turn = tree.yes[turn] if tree.states[turn] == state else tree.no[turn]
        weights.setdefault(state, tree.weights[turn])
        place = tree.no[place]
    return [weights.get(state, tree.weights[place]) for state in range(n_states)]


@dataclass(frozen=True)
class _Factors:
    """The factors of one distribution, to be multiplied."""

    features: list[_Feature]
    trees: list[_Tree]
    index: int
    n_states: list[int]
    take: Callable[[int], None]

    @cached_property
    def parents(self) -> list[int]:
        used = {variable for _, conditions in self.features for _, variable, _ in conditions}
        return sorted(used.union(*(tree.tests for tree in self.trees)) - {self.index, LEAF})

    def logs(self) -> NDArray[np.float64]:
        """The log of their product, one row per assignment of the parents."""
        size = {variable: self.n_states[variable] for variable in (*self.parents, self.index)}
        n_cells = math.prod(size.values())
        self.take(n_cells)
        every = {variable: np.ones(count, np.bool_) for variable, count in size.items() if count > 1}  # limits the axes
        logs = np.zeros([len(states) for states in every.values()])
        for weight, conditions in self.features:
            held: dict[int, NDArray[np.bool_]] = {}
            for sense, variable, state in conditions:
                holds = (np.arange(size[variable]) == state) == sense
                held[variable] = held.get(variable, holds) & holds
            touched = n_cells // math.prod(map(len, held.values())) * math.prod(int(row.sum()) for row in held.values())
            self.take(touched)
            if touched:
                logs[np.ix_(*({**every, **held}[variable] for variable in every))] += weight
        for tree in self.trees:
            self.take(n_cells * (1 + tree.depth // 16))
            logs += _values(tree, size, self.take).reshape(logs.shape)
        return logs.reshape(-1, self.n_states[self.index])


def _values(tree: _Tree, size: dict[int, int], take: Callable[[int], None]) -> NDArray[np.float64]:
    """The value of a tree for each assignment."""
    take(sum(size[test] for test in tree.tests if test != LEAF))
    children = [
        () if test == LEAF else tuple(yes if each == state else no for each in range(size[test]))
        for test, state, yes, no in zip(tree.tests, tree.states, tree.yes, tree.no, strict=True)
    ]
    weights = np.array([weight for weight, test in zip(tree.weights, tree.tests, strict=True) if test == LEAF])
    values: NDArray[np.float64] = weights[leaves_of(DecisionGraph(tuple(tree.tests), tuple(children)), size)]
    return values


def _distributions(cursor: Cursor, logs: NDArray[np.float64], place: int) -> NDArray[np.float64]:
    """Rows of log weights as distributions."""
    top = logs.max(axis=1, keepdims=True)
    if np.isneginf(top).any():
        cursor.fail(
            "all states have the probability 0 for some states of the parents, where one needs more: correct it.", place
        )
    with np.errstate(over="ignore"):
        weights = np.exp(logs - top)
    rows = fitted(np.exp(np.minimum(logs, 1.0)))
    return np.where(np.isnan(rows), weights / weights.sum(axis=1, keepdims=True), rows)
