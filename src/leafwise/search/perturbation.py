"""Random moves from a decision graph, to escape local optima: tests collapse, merged leaves separate, leaves are split.

Pure functions from graphs to graphs. The results can be made by the operators of the search, and each of their leaves
can be reached by some assignment.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leafwise.constraints import NO_LIMIT
from leafwise.decision_graph import LEAF, DecisionGraph

_MOST_WAYS = 16


@dataclass(frozen=True)
class Moves:
    """The moves that a perturbation of one node's graph may make."""

    operators: str  # of the search: C, B and I say how leaves may be split, C and M which cuts there are
    n_states: Sequence[int]
    variables: Sequence[int]  # that may be tested
    most_leaves: int = NO_LIMIT
    n_ordered: Sequence[int] = ()  # by variable: its first states that are ordered; (): no variable has any


def perturbed(graph: DecisionGraph, n_moves: int, moves: Moves, random: np.random.Generator) -> DecisionGraph:
    """The graph after `n_moves` random moves, of kinds drawn uniformly; if a move is impossible, a test collapses.

    >>> graph = DecisionGraph.complete([0, 1], [2, 2]).merge(1, 2)
    >>> perturbed(graph, 1, Moves("CM", [2, 2], [0, 1]), np.random.default_rng(6)).n_leaves
    3
    """
    for _ in range(n_moves):
        kind = random.integers(3)
        if kind == 0:
            graph = _cut_somewhere(graph, moves, random)
        elif kind == 1:
            graph = _split_somewhere(graph, moves, random)
        else:
            graph = _collapse_somewhere(graph, moves, random)
        graph = without_impossible_arcs(graph)
    return graph


def _cut_somewhere(graph: DecisionGraph, moves: Moves, random: np.random.Generator) -> DecisionGraph:
    cuts = cuttable(graph, single=set("CM") <= set(moves.operators))
    if not cuts or graph.n_leaves >= moves.most_leaves:
        return _collapse_somewhere(graph, moves, random)
    node, states = cuts[random.integers(len(cuts))]
    return cut(graph, node, states)


def _split_somewhere(graph: DecisionGraph, moves: Moves, random: np.random.Generator) -> DecisionGraph:
    """Split a random leaf by a random variable, with an operator drawn from those that split."""
    if not moves.variables:
        return _collapse_somewhere(graph, moves, random)
    leaf, variable = int(random.integers(graph.n_leaves)), moves.variables[int(random.integers(len(moves.variables)))]
    r, kinds = moves.n_states[variable], moves.operators.replace("M", "")
    state, kind = int(random.integers(r)), kinds[random.integers(len(kinds))]
    thresholds = below_a_state(r, moves.n_ordered[variable]) if moves.n_ordered else []
    if kind == "I" and not thresholds:
        kind = next((other for other in "BC" if other in kinds), "")
    if kind == "I":
        groups = thresholds[random.integers(len(thresholds))]
    else:
        groups = [{s} for s in range(r)] if kind == "C" else [{state}, set(range(r)) - {state}]
    if r < 2 or not kind or graph.n_leaves + len(groups) - 1 > moves.most_leaves:
        return _collapse_somewhere(graph, moves, random)
    return graph.split(leaf, variable, groups)


def below_a_state(n_states: int, n_ordered: int) -> list[list[set[int]]]:
    """All splits at a threshold of more than two ordered states; a last state for missing cells goes to either side.

    >>> below_a_state(3, 3)
    [[{0}, {1, 2}], [{0, 1}, {2}]]
    >>> len(below_a_state(4, 3)), below_a_state(2, 2)
    (5, [])
    """
    if n_ordered <= 2:
        return []
    every = set(range(n_states))
    below = [set(range(state)) for state in range(1, min(n_ordered + 1, n_states))]
    missing = set(range(n_ordered, n_states))
    below += [states | missing for states in below[: n_ordered - 1] if missing]
    return [[states, every - states] for states in below]


def _collapse_somewhere(graph: DecisionGraph, moves: Moves, random: np.random.Generator) -> DecisionGraph:
    """Collapse a random test; this adds a leaf if other tests lead to all leaves below it."""
    tests = [node for node, test in enumerate(graph.tests) if test != LEAF]
    other = collapse(graph, tests[random.integers(len(tests))]) if tests else graph
    return graph if other.n_leaves > moves.most_leaves else other


def collapse(graph: DecisionGraph, node: int) -> DecisionGraph:
    """The graph with a test, and everything that only this test leads to, replaced by a leaf.

    >>> collapse(DecisionGraph.complete([0, 1], [2, 2]), 1).tests
    (0, -1, 1, -1, -1)
    """
    tests, children = list(graph.tests), list(graph.children)
    tests[node], children[node] = LEAF, ()
    return DecisionGraph(tuple(tests), tuple(children)).simplified()


def cut(graph: DecisionGraph, node: int, states: frozenset[int]) -> DecisionGraph:
    """The graph with these states of a test redirected to a new leaf, its last node.

    >>> graph = DecisionGraph.complete([0], [3]).merge(0, 1)
    >>> cut(graph, 0, frozenset({1})).children
    ((2, 3, 1), (), (), ())
    """
    last = len(graph.tests)
    row = tuple([last if state in states else child for state, child in enumerate(graph.children[node])])
    children = (*graph.children[:node], row, *graph.children[node + 1 :], ())
    return DecisionGraph((*graph.tests, LEAF), children)


def cuttable(graph: DecisionGraph, *, single: bool = True) -> list[tuple[int, frozenset[int]]]:
    """Arcs (test, states) into leaves with other incoming arcs; and `single` states of arcs into leaves with several.

    Without single states, each test keeps its groups of states, apart from those that a merge has joined.
    """
    arcs = [(node, states, child) for node in range(len(graph.tests)) for states, child in graph.arcs(node)]
    n_arcs = Counter(child for _, _, child in arcs)
    into_leaves = [(node, states, child) for node, states, child in arcs if graph.tests[child] == LEAF]
    whole = [(node, states) for node, states, child in into_leaves if n_arcs[child] > 1]
    if not single:
        return whole
    return whole + [
        (node, frozenset({s})) for node, states, _ in into_leaves if len(states) > 1 for s in sorted(states)
    ]


def without_impossible_arcs(graph: DecisionGraph) -> DecisionGraph:
    """The graph without arcs that no assignment takes: each is joined with its test's last possible arc.

    Since there may be too many paths to a node, only a few are followed, and an arc that is impossible after all of
    these is removed, too. The graph then represents another function, but all of it can be reached.

    >>> twice = DecisionGraph((0, 0, LEAF, LEAF, LEAF), ((1, 2), (3, 4), (), (), ()))
    >>> without_impossible_arcs(twice).children
    ((2, 1), (), ())
    """
    boxes: list[list[dict[int, frozenset[int]]]] = [[{}], *([] for _ in graph.tests[1:])]
    children = list(graph.children)
    for node, test in enumerate(graph.tests):
        arcs = graph.arcs(node) if boxes[node] else ()
        last, taken = -1, set[int]()
        for states, child in arcs:
            ways = [{**box, test: left} for box in boxes[node] if (left := states & box.get(test, states))]
            if ways:
                boxes[child] = (boxes[child] + ways)[:_MOST_WAYS]
                last, taken = child, taken | {child}
        children[node] = tuple([child if child in taken else last for child in children[node]])
    return DecisionGraph(graph.tests, tuple(children)).simplified()
