"""Conversion of the log of a search to decision graphs, and of its steps to operators."""

from collections.abc import Mapping
from functools import cached_property
from itertools import count

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.leaf_search import replay
from leafwise.kernels.leaf_search.state import COMPLETE, ONE_STATE
from leafwise.learned_nodes import LearnedGraphs
from leafwise.operators import BinarySplit, CompleteSplit, Merge, Operator, OrderedSplit, PartialSplit

Integers = NDArray[np.int64]
_PIECES = ("switch", "part", "rest")
Deletion = tuple[int, int, int]  # number of steps before it, target, variable


class ReplayedGraphs:
    """The graphs of all targets after some steps."""

    def __init__(self, drawn: replay.Replayed, charged: replay.Charged) -> None:
        self._drawn, self.charged = drawn, charged

    @classmethod
    def of(
        cls,
        start: replay.Start,
        steps: NDArray[np.void],
        deletions: list[Deletion],
        n_leaves: int,  # ever made
        regions: NDArray[np.uint64],
        n_states: Integers,
        reduces: bool,
        log_ways: NDArray[np.float64] | None,
    ) -> "ReplayedGraphs":
        """The graphs after these steps; `reduces`: without tests that tell nothing, and with identical ones combined.

        `log_ways`: by variable; if given, what the structure prior charges for is counted, before and after reduction.
        """
        gone = np.array(deletions, np.int64).reshape(-1, 3)
        n_parted, n_kids = int(np.count_nonzero(steps["part"])), np.append(n_states, [replay.N_PIECES, 0])
        most = len(start.numbers) + int(steps["n_new"].sum()) + n_parted
        most_kids = len(start.kids) + int(n_kids[steps["variable"]].sum()) + n_parted * replay.N_PIECES
        begin, first_kids = np.zeros(len(n_states) + 1, np.int64), np.zeros(most + 1, np.int64)
        tests, records, kids = (np.empty(size, np.int64) for size in (most, most, most_kids))
        drawn = replay.Replayed(begin, tests, records, first_kids, kids)
        counts, ways = np.empty((3, 2, len(n_states)), np.int64), np.empty((2, len(n_states)))
        if log_ways is None:
            log_ways, counts, ways = ways[0], counts[:, :0], ways[:0]
        charged = replay.Charged(counts[0], counts[1], ways, counts[2])
        n = replay.replay(start, steps, gone, n_leaves, regions, n_kids, reduces, log_ways, charged, drawn)
        return cls(replay.Replayed(begin, tests[:n], records[:n], first_kids[: n + 1], kids[: first_kids[n]]), charged)

    @cached_property
    def leaves(self) -> Integers:
        """The records of all leaves, graph after graph."""
        leaves: Integers = self._drawn.records[self._drawn.tests == LEAF]
        return leaves

    def records(self, target: int) -> list[int]:
        """The records of the nodes of a target's graph; those of initial tests are negative."""
        begin, end = self._drawn.begin[target : target + 2].tolist()
        records: list[int] = self._drawn.records[begin:end].tolist()
        return records

    @cached_property
    def graphs(self) -> LearnedGraphs:
        """The graphs of the targets."""
        begin, tests, _, first_kids, kids = self._drawn
        return LearnedGraphs(begin, tests, first_kids, kids)


def start_of(graphs: Mapping[int, DecisionGraph], others: Integers) -> replay.Start:
    """Initial graphs, then targets with a single leaf; their leaves are the first records, in the same order."""
    n_tests = sum(len(graph.tests) - graph.n_leaves for graph in graphs.values())
    test_numbers, leaf_numbers = count(0), count(n_tests)
    numbers: list[int] = []
    targets: list[int] = []
    tests: list[int] = []
    kids: list[tuple[int, ...]] = []
    for target, graph in graphs.items():
        own = [next(leaf_numbers if test == LEAF else test_numbers) for test in graph.tests]
        for test, row in zip(graph.tests, graph.children, strict=True):
            if test != LEAF:
                tests.append(test)
                kids.append(tuple(own[child] for child in row))
        numbers += own
        targets += [target] * len(own)
    first_kids = np.cumsum([0, *map(len, kids)])[:-1]
    flat = [kid for row in kids for kid in row]
    begin = next(leaf_numbers)
    return replay.Start(
        np.append(np.array(numbers, np.int64), np.arange(begin, begin + len(others))),
        np.append(np.array(targets, np.int64), others),
        *(np.array(part, np.int64) for part in (tests, first_kids, flat)),
    )


def single_leaves(targets: Integers, records: Integers) -> replay.Start:
    """Targets that begin with a single leaf, each with its record."""
    nothing = np.zeros(0, np.int64)
    return replay.Start(records, targets, nothing, nothing, nothing)


def with_single_leaves(start: replay.Start, targets: Integers, records: Integers) -> replay.Start:
    """The same start, except that these sorted targets begin with a single leaf, each with its record."""
    stay = targets.take(targets.searchsorted(start.targets), mode="clip") != start.targets
    numbers = np.append(start.numbers[stay], len(start.tests) + records)
    return start._replace(numbers=numbers, targets=np.append(start.targets[stay], targets))


def operator(step: np.void, leaves: list[int], groups: tuple[int, ...]) -> Operator:
    """A logged step as an operator; `leaves`: records of its node's leaves before it, `groups`: each state's child."""
    target, variable, gain = int(step["target"]), int(step["variable"]), float(step["gain"])
    leaf, state = leaves.index(step["leaf"]), int(step["state"])
    if step["other"] >= 0:
        return Merge(target, leaf, leaves.index(step["other"]), gain)
    n_groups = max(groups) + 1
    parts = tuple(frozenset(s for s in range(len(groups)) if groups[s] == k) for k in range(n_groups))
    if step["part"]:
        part = frozenset(s for s in range(int(step["part"]).bit_length()) if step["part"] >> s & 1)
        return PartialSplit(target, leaf, variable, part, _PIECES[step["piece"]], parts, gain)
    if step["kind"] == ONE_STATE:
        return BinarySplit(target, leaf, variable, state, len(groups), gain)
    if step["kind"] == COMPLETE:
        return CompleteSplit(target, leaf, variable, parts, gain)
    return OrderedSplit(target, leaf, variable, parts, gain)
