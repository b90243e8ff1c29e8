"""Initial graphs of a search: the regions of their leaves, the tests that lead to them, and their sets of cases."""

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
    """Names for sets made before a search begins: -1, -2, ...; the search names its own by the numbers of leaves."""
    return count(-1, -1)


class InitialLeaves(NamedTuple):
    """The leaves of some graphs, graph after graph, then those of targets with a single leaf."""

    targets: Integers
    words: NDArray[np.uint64]  # regions of the leaves, to be stored from index 1 on
    arcs: Integers  # lists of tests that lead to the leaves
    places: Integers  # by leaf: index of its region, numbers of boxes and words, index in `arcs`, number of tests

    @classmethod
    def of(
        cls,
        graphs: Mapping[int, DecisionGraph],
        others: Integers,
        n_states: Integers,
        with_regions: bool,
        known: Sequence[Sequence[int]] = (),
    ) -> "InitialLeaves":
        """Collect everything but the cases of the leaves; without regions, all share that of all assignments.

        `known`: the regions of all leaves of the graphs, if known, each as its number of boxes, then its words.
        """
        targets: list[int] = []
        words: list[int] = []
        arcs: list[int] = []
        places: list[tuple[int, ...]] = []
        regions = known
        if with_regions and not known:
            regions = [own for graph in graphs.values() for own in _region_words(graph, n_states)]
        number = -sum(len(graph.tests) - graph.n_leaves for graph in graphs.values())  # of the first test
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
    """The sorted numbers of the tests that lead to each leaf."""
    above: dict[int, list[int]] = {node: [] for node in graph.leaves}
    for number, row in zip(numbers, graph.children, strict=True):
        for child in set(row) & above.keys():
            above[child].append(number)
    return [sorted(tests) for tests in above.values()]


def _region_words(graph: DecisionGraph, n_states: Integers) -> list[list[int]]:
    """The region of each leaf: its number of boxes, then their words."""
    regions = {0: Region.everything()}
    for node, test in enumerate(graph.tests):
        for states, child in graph.arcs(node):
            part = regions[node].cut(test, bits_of(states), int(n_states[test]))
            regions[child] = regions[child].join(part) if child in regions else part
    boxes = [regions[node].boxes for node in graph.leaves]
    return [[len(own), *(word for box in own for word in _box_words(box, n_states))] for own in boxes]


def _box_words(box: Box, n_states: Integers) -> list[int]:
    """A box in the format of `kernels/leaf_search/regions`."""
    words = [len(box)]
    for variable in sorted(box):
        n = -(-int(n_states[variable]) // 64)
        words += [variable, *((box[variable] >> 64 * k) & (2**64 - 1) for k in range(n))]
    return words


def read_region(words: NDArray[np.uint64], at: int, n_boxes: int, n_states: Integers) -> Region:
    """The region of `n_boxes` boxes that begins at index `at`."""
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
    """Make the sets of cases of all leaves, by cutting and joining along the graphs, and return their names.

    This is done level by level for all graphs at once; a node's level is the length of the longest path to it. `roots`:
    the names of the sets at the roots, by default all cases; they are consumed.
    """
    all_graphs = list(graphs.values())
    pieces: list[list[list[int]]] = [[[] for _ in graph.tests] for graph in all_graphs]  # by node: sets to join
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
    """Replace the sets in each list by their union."""
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
    """Cut the set of each node by its test, and append the parts to the lists of its children."""
    requests: list[tuple[int, int]] = []  # set and variable
    groups: list[int] = []
    children: list[int] = []
    for graph, node, pieces in nodes:
        (cases,), test = pieces[node], graph.tests[node]
        arcs = graph.arcs(node)
        if test == OWN:  # all pieces of a parted leaf get all its cases
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
