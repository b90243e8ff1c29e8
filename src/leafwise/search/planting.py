"""Graphs to begin with: where their leaves are, which tests lead to them, and their cases."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import EVERYTHING, Session
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.leaf_search.replay import OWN
from leafwise.regions import Box, Region, bits_of

Integers = NDArray[np.int64]

_FIRST_NAME = 2**40  # of sets that are there before the search begins; it names its own by the numbers of leaves


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


def planted_sets(graphs: Mapping[int, DecisionGraph], session: Session, n_states: Integers) -> list[int]:
    """The name of the set of cases of each leaf of the graphs, found by cutting and joining as each graph says."""
    names = count(_FIRST_NAME)
    return [name for graph in graphs.values() for name in _sets_of_leaves(graph, session, n_states, names)]


def _sets_of_leaves(graph: DecisionGraph, session: Session, n_states: Integers, names: Iterator[int]) -> list[int]:
    pieces: list[list[int]] = [[] for _ in graph.tests]
    pieces[0] = [EVERYTHING]
    leaves = []
    for node, test in enumerate(graph.tests):
        cases = _joined(pieces[node], session, names)
        if test == LEAF:
            leaves.append(cases)
            continue
        arcs = graph.arcs(node)
        if test == OWN:
            for _, below in arcs:
                pieces[below].append(next(names))
                nothing = np.zeros(int(n_states[0]), np.int64)
                session.cut(np.array([cases]), np.array([0]), nothing, np.array(pieces[below][-1:]))
            session.release(np.array([cases]))
            continue
        groups, children = np.empty(int(n_states[test]), np.int64), [next(names) for _ in arcs]
        for k, ((states, below), child) in enumerate(zip(arcs, children, strict=True)):
            groups[sorted(states)] = k
            pieces[below].append(child)
        session.cut(np.array([cases]), np.array([test]), groups, np.array(children))
        session.release(np.array([cases]))
    return leaves


def _joined(pieces: list[int], session: Session, names: Iterator[int]) -> int:
    cases = pieces[0]
    for other in pieces[1:]:
        union = next(names)
        session.join(np.array([cases]), np.array([other]), np.array([union]))
        session.release(np.array([cases, other]))
        cases = union
    return cases
