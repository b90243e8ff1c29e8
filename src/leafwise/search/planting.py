"""Graphs to begin with: where their leaves are, which tests lead to them, and their cases."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Counter
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.arrays import Layout
from leafwise.regions import Box, Region, bits_of

Integers = NDArray[np.int64]


class Planted(NamedTuple):
    """The leaves of some graphs, one behind the other, and then targets with a leaf alone."""

    targets: Integers
    words: NDArray[np.uint64]  # the regions of the leaves, which begin after a first word
    arcs: Integers  # tests that lead to the leaves
    places: Integers  # a row for each leaf: region, boxes, words, and where its tests begin, and how many they are

    @classmethod
    def of(
        cls,
        graphs: Mapping[int, DecisionGraph],
        others: Integers,
        n_states: Integers,
        with_regions: bool,
        known: Sequence[Sequence[int]] = (),
    ) -> "Planted":
        """All that is known of the leaves without looking at cases; where nobody needs regions, everything is one.

        `known`: the regions of all leaves of the graphs, each as its number of boxes and its words.
        """
        targets: list[int] = []
        words: list[int] = []
        arcs: list[int] = []
        places: list[tuple[int, ...]] = []
        regions = known
        if with_regions and not known:
            regions = [own for graph in graphs.values() for own in _region_words(graph, n_states)]
        number = -sum(len(graph.tests) - graph.n_leaves for graph in graphs.values())  # that of the first test
        for target, graph in graphs.items():
            numbers = iter(range(number, 0))
            above = tests_above(graph, [next(numbers) if row else 0 for row in graph.children])
            number += len(graph.tests) - graph.n_leaves
            for tests in above:
                n_boxes, *own = regions[len(targets)] if with_regions else (1,)
                place = (1 + len(words), n_boxes, len(own)) if with_regions else (0, 1, 1)
                places.append((*place, len(arcs), len(tests)))
                words += own
                arcs += tests
                targets.append(target)
        places += [(0, 1, 1, 0, 0)] * len(others)
        return cls(
            np.append(np.array(targets, np.int64), others),
            np.array(words, np.uint64),
            np.array(arcs, np.int64),
            np.array(places, np.int64).reshape(-1, 5),
        )


def tests_above(graph: DecisionGraph, numbers: Sequence[int]) -> list[list[int]]:
    """For each leaf: the numbers of the tests that lead to it, sorted."""
    above: dict[int, list[int]] = {node: [] for node in graph.leaves}
    for number, row in zip(numbers, graph.children, strict=True):
        for child in set(row) & above.keys():
            above[child].append(number)
    return [sorted(tests) for tests in above.values()]


def _region_words(graph: DecisionGraph, n_states: Integers) -> list[list[int]]:
    """Where each leaf is: how many boxes, and their words."""
    regions = {0: Region.everything()}
    for node, test in enumerate(graph.tests):
        for states, child in graph.arcs(node):
            part = regions[node].cut(test, bits_of(states), int(n_states[test]))
            regions[child] = regions[child].join(part) if child in regions else part
    boxes = [regions[node].boxes for node in graph.leaves]
    return [[len(own), *(word for box in own for word in _box_words(box, n_states))] for own in boxes]


def _box_words(box: Box, n_states: Integers) -> list[int]:
    """A box as `kernels/leaf_search/regions` has it."""
    words = [len(box)]
    for variable in sorted(box):
        n = -(-int(n_states[variable]) // 64)
        words += [variable, *((box[variable] >> 64 * k) & (2**64 - 1) for k in range(n))]
    return words


def read_region(words: NDArray[np.uint64], at: int, n_boxes: int, n_states: Integers) -> Region:
    """The region that begins there."""
    boxes = []
    for _ in range(n_boxes):
        box, n_entries, at = {}, int(words[at]), at + 1
        for _ in range(n_entries):
            variable = int(words[at])
            n = -(-int(n_states[variable]) // 64)
            box[variable] = int.from_bytes(words[at + 1 : at + 1 + n].tobytes(), "little")
            at += 1 + n
        boxes.append(box)
    return Region(tuple(boxes))


def planted_leaves(graphs: Mapping[int, DecisionGraph], counter: Counter, layout: Layout) -> list[int]:
    """The set of cases of each leaf of the graphs, found by cutting and joining as each graph says."""
    return [cases for target, graph in graphs.items() for cases in _sets_of_leaves(target, graph, counter, layout)]


def _sets_of_leaves(target: int, graph: DecisionGraph, counter: Counter, layout: Layout) -> list[int]:
    pieces: list[list[int]] = [[] for _ in graph.tests]
    pieces[0] = [EVERYTHING]
    leaves = []
    for node, test in enumerate(graph.tests):
        cases = _joined(pieces[node], counter)
        if test == LEAF:
            leaves.append(cases)
            continue
        arcs = graph.arcs(node)
        groups = np.empty(int(layout.n_states[test]), np.int64)
        for k, (states, _) in enumerate(arcs):
            groups[sorted(states)] = k
        sizes = np.bincount(groups, _state_counts(target, test, cases, counter, layout), len(arcs)).astype(np.int64)
        first = counter.cut(np.array([cases]), np.array([test]), np.array([len(arcs)]), groups, sizes)
        _release(cases, counter)
        for k, (_, child) in enumerate(arcs):
            pieces[child].append(first + k)
    return leaves


def _joined(pieces: list[int], counter: Counter) -> int:
    cases = pieces[0]
    for other in pieces[1:]:
        union = counter.join(np.array([cases]), np.array([other]))
        _release(cases, counter)
        _release(other, counter)
        cases = union
    return cases


def _release(cases: int, counter: Counter) -> None:
    if cases != EVERYTHING:
        counter.release(np.array([cases]))


def _state_counts(target: int, variable: int, cases: int, counter: Counter, layout: Layout) -> Integers:
    """How many of the cases are in each state of the variable, which is one of the target's candidates."""
    which, n_classes = layout.of_target[target], layout.n_states[target]
    cells = np.empty((layout.n_rows[which] + 1) * n_classes, np.int32)
    counter.count(np.array([cases]), np.array([target]), np.zeros(1, np.int64), cells, layout)
    (rows,) = layout.rows(target, [variable])
    counts: Integers = cells.reshape(-1, n_classes)[rows].sum(axis=1)
    return counts
