"""Moves away from a decision graph, for a search that is stuck: tests go, merged leaves come apart, leaves are split.

Pure functions from graphs to graphs; what comes out can be reached by splits and merges, and some case can reach each
of its leaves.
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
    """What a perturbation may do to the graph of one node."""

    operators: str  # of the search: C and B say how leaves may be split
    n_states: Sequence[int]
    variables: Sequence[int]  # that may be tested
    most_leaves: int = NO_LIMIT


def perturbed(graph: DecisionGraph, n_moves: int, moves: Moves, random: np.random.Generator) -> DecisionGraph:
    """The graph after some moves drawn at random, each kind as often as the others where all are possible.

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
    cuts = cuttable(graph)
    if not cuts or graph.n_leaves >= moves.most_leaves:
        return _collapse_somewhere(graph, moves, random)
    node, states = cuts[random.integers(len(cuts))]
    return cut(graph, node, states)


def _split_somewhere(graph: DecisionGraph, moves: Moves, random: np.random.Generator) -> DecisionGraph:
    """Split a leaf by any variable, in any way that the search could."""
    if not moves.variables:
        return _collapse_somewhere(graph, moves, random)
    leaf, variable = int(random.integers(graph.n_leaves)), moves.variables[int(random.integers(len(moves.variables)))]
    r, kinds = moves.n_states[variable], moves.operators.replace("M", "")
    state, is_complete = int(random.integers(r)), kinds[random.integers(len(kinds))] == "C"
    groups = [{s} for s in range(r)] if is_complete else [{state}, set(range(r)) - {state}]
    if r < 2 or graph.n_leaves + len(groups) - 1 > moves.most_leaves:
        return _collapse_somewhere(graph, moves, random)
    return graph.split(leaf, variable, groups)


def _collapse_somewhere(graph: DecisionGraph, moves: Moves, random: np.random.Generator) -> DecisionGraph:
    """Collapse a test. Where other tests lead to all leaves below it, that makes one leaf more."""
    tests = [node for node, test in enumerate(graph.tests) if test != LEAF]
    other = collapse(graph, tests[random.integers(len(tests))]) if tests else graph
    return graph if other.n_leaves > moves.most_leaves else other


def collapse(graph: DecisionGraph, node: int) -> DecisionGraph:
    """The graph with a leaf in place of a test and all that only this test leads to.

    >>> collapse(DecisionGraph.complete([0, 1], [2, 2]), 1).tests
    (0, -1, 1, -1, -1)
    """
    tests, children = list(graph.tests), list(graph.children)
    tests[node], children[node] = LEAF, ()
    return DecisionGraph(tuple(tests), tuple(children)).simplified()


def cut(graph: DecisionGraph, node: int, states: frozenset[int]) -> DecisionGraph:
    """The graph with a new, last leaf for these states of a test.

    >>> graph = DecisionGraph.complete([0], [3]).merge(0, 1)
    >>> cut(graph, 0, frozenset({1})).children
    ((2, 3, 1), (), (), ())
    """
    last = len(graph.tests)
    row = tuple([last if state in states else child for state, child in enumerate(graph.children[node])])
    children = (*graph.children[:node], row, *graph.children[node + 1 :], ())
    return DecisionGraph((*graph.tests, LEAF), children)


def cuttable(graph: DecisionGraph) -> list[tuple[int, frozenset[int]]]:
    """All arcs, as a test and its states, into leaves with further arcs; and the single states of arcs with several."""
    arcs = [(node, states, child) for node in range(len(graph.tests)) for states, child in graph.arcs(node)]
    n_arcs = Counter(child for _, _, child in arcs)
    into_leaves = [(node, states, child) for node, states, child in arcs if graph.tests[child] == LEAF]
    whole = [(node, states) for node, states, child in into_leaves if n_arcs[child] > 1]
    single = [(node, frozenset({s})) for node, states, _ in into_leaves if len(states) > 1 for s in sorted(states)]
    return whole + single


def without_impossible_arcs(graph: DecisionGraph) -> DecisionGraph:
    """The graph without arcs that no case can take: these go with the last arc of their test that some case can take.

    To know all ways to a node can take too long. So only a few are followed, and an arc that all of these rule out
    counts as impossible, too: the graph is then another one, but one that can be reached everywhere all the same.

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
