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


def initial_names() -> Iterator[int]:
    """Those of sets that are there before a search begins: -1, -2, ...; it names its own by the numbers of leaves."""
    return count(-1, -1)


class InitialLeaves(NamedTuple):
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
    ) -> "InitialLeaves":
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
        alone = np.tile(np.array([0, 1, 1, 0, 0]), (len(others), 1))
        return cls(
            np.append(np.array(targets, np.int64), others),
            np.array(words, np.uint64),
            np.array(arcs, np.int64),
            np.append(np.array(places, np.int64).reshape(-1, 5), alone, axis=0),
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


def initial_sets(
    graphs: Mapping[int, DecisionGraph],
    session: Session,
    n_states: Integers,
    names: Iterator[int],
    roots: Sequence[int] = (),
) -> list[int]:
    """The name of the set of cases of each leaf of the graphs, found by cutting and joining as the graphs say.

    Level by level, all graphs at once: a node is as far down as the longest way to it. `roots`: the names of the sets
    that the graphs are about, all cases unless given; they are used up.
    """
    all_graphs = list(graphs.values())
    pieces: list[list[list[int]]] = [[[] for _ in graph.tests] for graph in all_graphs]  # sets to join, at each node
    levels: dict[int, list[tuple[int, int]]] = {}
    for k, graph in enumerate(all_graphs):
        pieces[k][0] = [roots[k] if roots else EVERYTHING]
        depths = [0] * len(graph.tests)
        for node, row in enumerate(graph.children):
            levels.setdefault(depths[node], []).append((k, node))
            for child in row:
                depths[child] = max(depths[child], depths[node] + 1)
    for _, nodes in sorted(levels.items()):
        _join([pieces[k][node] for k, node in nodes], session, names)
        _cut([(all_graphs[k], node, pieces[k]) for k, node in nodes], session, n_states, names)
    return [pieces[k][node][0] for k, graph in enumerate(all_graphs) for node in graph.leaves]


def _join(all_pieces: list[list[int]], session: Session, names: Iterator[int]) -> None:
    """Let each of these lists be one set: the union of its sets."""
    while todo := [pieces for pieces in all_pieces if len(pieces) > 1]:
        two = np.array([(pieces.pop(), pieces.pop()) for pieces in todo])
        unions = [next(names) for _ in todo]
        session.join(two[:, 0].copy(), two[:, 1].copy(), np.array(unions))
        session.release(two.ravel())
        for pieces, union in zip(todo, unions, strict=True):
            pieces.append(union)


def _cut(
    nodes: list[tuple[DecisionGraph, int, list[list[int]]]], session: Session, n_states: Integers, names: Iterator[int]
) -> None:
    """Cut the sets of these nodes, which are one each, as their tests say, and hand the parts on to their children."""
    requests: list[tuple[int, int]] = []  # set and variable
    groups: list[int] = []
    children: list[int] = []
    for graph, node, pieces in nodes:
        (cases,), test = pieces[node], graph.tests[node]
        arcs = graph.arcs(node)
        if test == OWN:  # all pieces of a leaf that is parted have all its cases
            requests += [(cases, 0)] * len(arcs)
            groups += [0] * (len(arcs) * int(n_states[0]))
        elif test != LEAF:
            numbers = {child: k for k, (_, child) in enumerate(arcs)}
            requests.append((cases, test))
            groups += [numbers[child] for child in graph.children[node]]
        for _, child in arcs:
            children.append(next(names))
            pieces[child].append(children[-1])
    if requests:
        sets, variables = np.array(requests).T.copy()
        session.cut(sets, variables, np.array(groups), np.array(children))
        session.release(np.unique(sets))
