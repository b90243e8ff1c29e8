"""From the log of a search to decision graphs, and to operators as values."""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels import drawing
from leafwise.kernels.gains import COMPLETE
from leafwise.operators import BinarySplit, CompleteSplit, Merge, Operator

Integers = NDArray[np.int64]
Deletion = tuple[int, int, int]  # after so many steps, a target, a variable


class Drawing:
    """The graphs of all targets after some steps, and the records of their leaves."""

    def __init__(self, drawn: drawing.Drawn) -> None:
        self._drawn = drawn

    def graph(self, target: int) -> DecisionGraph:
        """The target's graph."""
        begin, end = self._drawn.begin[target : target + 2]
        first = self._drawn.first_kids[begin : end + 1]
        kids = self._drawn.kids[first[0] : first[-1]].tolist()
        ends = (first - first[0]).tolist()
        return DecisionGraph(
            tuple(self._drawn.tests[begin:end].tolist()), tuple([tuple(kids[a:b]) for a, b in pairwise(ends)])
        )

    def leaves(self, target: int) -> Integers:
        """The records of its leaves, in their order."""
        begin, end = self._drawn.begin[target : target + 2]
        records: Integers = self._drawn.records[begin:end][self._drawn.tests[begin:end] == LEAF]
        return records


def start_of(graphs: Mapping[int, DecisionGraph], leaves: Mapping[int, list[int]]) -> drawing.Start:
    """Graphs to begin with, whose leaves have these records."""
    n_tests = sum(len(graph.tests) - graph.n_leaves for graph in graphs.values())
    numbers: list[int] = []
    targets: list[int] = []
    tests: list[int] = []
    first_kids: list[int] = []
    kids: list[int] = []
    for target, graph in graphs.items():
        records, test_numbers = iter(leaves[target]), iter(range(len(tests), n_tests))
        own = [n_tests + next(records) if test == LEAF else next(test_numbers) for test in graph.tests]
        for test, row in zip(graph.tests, graph.children, strict=True):
            if test != LEAF:
                tests.append(test)
                first_kids.append(len(kids))
                kids += [own[child] for child in row]
        numbers += own
        targets += [target] * len(own)
    return drawing.Start(*(np.array(part, np.int64) for part in (numbers, targets, tests, first_kids, kids)))


def usual_groups(n_states: int, state: int) -> tuple[int, ...]:
    """The child of each state: its own in a complete split, the first for one state of a binary split."""
    return tuple(range(n_states)) if state == COMPLETE else tuple(int(s != state) for s in range(n_states))


def operator(step: np.void, leaves: list[int], groups: tuple[int, ...]) -> Operator:
    """A logged step as a value; `leaves`: the records of its node's leaves before it, `groups`: each state's child."""
    target, variable, state, gain = int(step["target"]), int(step["variable"]), int(step["state"]), float(step["gain"])
    leaf = leaves.index(step["leaf"])
    if step["other"] >= 0:
        return Merge(target, leaf, leaves.index(step["other"]), gain)
    if state != COMPLETE:
        return BinarySplit(target, leaf, variable, state, len(groups), gain)
    parts = [frozenset(s for s in range(len(groups)) if groups[s] == k) for k in range(step["n_new"])]
    return CompleteSplit(target, leaf, variable, tuple(parts), gain)
