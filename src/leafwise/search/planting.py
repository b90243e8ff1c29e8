"""A graph to begin with: its leaves' cases and regions, found by cutting and joining as the graph says."""

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Counter
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.arrays import Layout
from leafwise.regions import Region, bits_of


def sets_of_leaves(
    target: int, graph: DecisionGraph, counter: Counter, layout: Layout, tracks_regions: bool
) -> list[tuple[int, Region]]:
    """The set of cases, and the region, of each leaf of the target's graph; where nobody needs regions, any."""
    pieces: list[list[tuple[int, Region]]] = [[] for _ in graph.tests]
    pieces[0] = [(EVERYTHING, Region.everything())]
    leaves = []
    for node, test in enumerate(graph.tests):
        cases, region = _joined(pieces[node], counter)
        if test == LEAF:
            leaves.append((cases, region))
            continue
        arcs = graph.arcs(node)
        groups = np.empty(int(layout.n_states[test]), np.int64)
        for k, (states, _) in enumerate(arcs):
            groups[sorted(states)] = k
        sizes = np.bincount(groups, _state_counts(target, test, cases, counter, layout), len(arcs)).astype(np.int64)
        first = counter.cut(np.array([cases]), np.array([test]), np.array([len(arcs)]), groups, sizes)
        _release(cases, counter)
        for k, (states, child) in enumerate(arcs):
            part = region.cut(test, bits_of(states), len(groups)) if tracks_regions else region
            pieces[child].append((first + k, part))
    return leaves


def _joined(pieces: list[tuple[int, Region]], counter: Counter) -> tuple[int, Region]:
    cases, region = pieces[0]
    for other, more in pieces[1:]:
        union = counter.join(np.array([cases]), np.array([other]))
        _release(cases, counter)
        _release(other, counter)
        cases, region = union, region.join(more) if region is not more else region
    return cases, region


def _release(cases: int, counter: Counter) -> None:
    if cases != EVERYTHING:
        counter.release(np.array([cases]))


def _state_counts(target: int, variable: int, cases: int, counter: Counter, layout: Layout) -> NDArray[np.int64]:
    """How many of the cases are in each state of the variable, which is one of the target's candidates."""
    which, n_classes = layout.of_target[target], layout.n_states[target]
    cells = np.empty((layout.n_rows[which] + 1) * n_classes, np.int32)
    counter.count(np.array([cases]), np.array([target]), np.zeros(1, np.int64), cells, layout)
    (rows,) = layout.rows(target, [variable])
    counts: NDArray[np.int64] = cells.reshape(-1, n_classes)[rows].sum(axis=1)
    return counts
