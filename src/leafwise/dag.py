"""Directed graphs as one list of parents per node: order, cycles, ancestors, equivalence. Knows only numpy."""

import heapq
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray


def topological_order(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The nodes in topological order, parents first; among the nodes that are ready, the smallest comes first.

    >>> topological_order([[2], [], [1]])
    (1, 2, 0)
    """
    children: list[list[int]] = [[] for _ in parents]
    waits = [len(set(row)) for row in parents]
    for node, row in enumerate(parents):
        for parent in set(row):
            children[parent].append(node)
    ready = [node for node, count in enumerate(waits) if count == 0]
    order: list[int] = []
    while ready:
        node = heapq.heappop(ready)
        order.append(node)
        for child in children[node]:
            waits[child] -= 1
            if waits[child] == 0:
                heapq.heappush(ready, child)
    if len(order) < len(parents):
        arrows = " → ".join(map(str, find_cycle(parents)))
        raise ValueError(f"the arcs {arrows} form a cycle, and a network has none: leave one of them out.")
    return tuple(order)


def parent_lists(is_parent: NDArray[np.uint8]) -> list[tuple[int, ...]]:
    """The parents of each node, from a matrix whose element [i, j] says whether j is a parent of i.

    >>> parent_lists(np.array([[0, 0], [1, 0]], np.uint8))
    [(), (0,)]
    """
    return parents_at(arc_places(is_parent), len(is_parent))


def arc_places(is_parent: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The flat indices of the arcs in such a matrix: n * i + j if j is a parent of i.

    >>> arc_places(np.array([[0, 0], [1, 0]], np.uint8))
    array([2])
    """
    places: NDArray[np.int64] = np.ascontiguousarray(is_parent).view(np.bool_).ravel().nonzero()[0]
    return places


def parents_at(places: NDArray[np.int64], n: int) -> list[tuple[int, ...]]:
    """The parents of each of n nodes, from the sorted flat indices of the arcs.

    >>> parents_at(np.array([2]), 2)
    [(), (0,)]
    """
    if not are_places(places, n):
        raise ValueError(f"the places {places} of arcs are not sorted, or outside 0..{n * n - 1}: correct them.")
    ends = places.searchsorted(np.arange(0, n * n + 1, n)).tolist() if n else [0]
    parents = (places % n).tolist()
    return [tuple(parents[begin:end]) for begin, end in pairwise(ends)]


def are_places(places: NDArray[np.int64], n: int) -> bool:
    """Return whether these are sorted, distinct flat indices of arcs among n nodes.

    >>> are_places(np.array([1, 2]), 2), are_places(np.array([2, 1]), 2)
    (True, False)
    """
    return not len(places) or bool(places[0] >= 0 and places[-1] < n * n and (places[:-1] < places[1:]).all())


def find_cycle(parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """A cycle, in the direction of its arcs and with its smallest node first and last; () if there is none.

    >>> find_cycle([[1], [2], [0]])
    (0, 2, 1, 0)
    """
    state = [0] * len(parents)  # 0: unvisited, 1: on the trail, 2: leads to no cycle
    for start in range(len(parents)):
        trail = [start] if parents[start] and state[start] == 0 else []
        pending = [iter(parents[start])] if trail else []
        while trail:
            state[trail[-1]] = 1
            for parent in pending[-1]:
                if state[parent] == 1:
                    cycle = trail[trail.index(parent) :][::-1]
                    turn = cycle.index(min(cycle))
                    return (*cycle[turn:], *cycle[:turn], cycle[turn])
                if state[parent] == 0:
                    trail.append(parent)
                    pending.append(iter(parents[parent]))
                    break
            else:
                state[trail.pop()] = 2
                pending.pop()
    return ()


def ancestor_matrix(parents: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """The matrix whose element [i, j] says whether j is an ancestor of i.

    >>> ancestor_matrix([[], [0], [1]]).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    """
    ancestors = np.zeros((len(parents), len(parents)), np.bool_)
    for node in topological_order(parents):
        for parent in parents[node]:
            ancestors[node] |= ancestors[parent]
            ancestors[node, parent] = True
    return ancestors


def equivalence_class(parents: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """The arcs common to all Markov equivalent DAGs (the CPDAG), as a matrix: [i, j] stands for i → j.

    A reversible arc is present in both directions. (V-structures, then the rules of Meek, 1995.)

    >>> equivalence_class([[], [0], [1]]).sum(), equivalence_class([[], [0, 2], []]).sum()
    (np.int64(4), np.int64(2))
    """
    n = len(parents)
    linked = np.zeros((n, n), np.bool_)
    for child, row in enumerate(parents):
        linked[list(row), child] = True
    linked |= linked.T
    directed = np.zeros((n, n), np.bool_)
    for child, row in enumerate(parents):
        for parent in row:
            directed[parent, child] = any(other != parent and not linked[parent, other] for other in row)
    while True:
        either = linked & ~directed & ~directed.T
        new = [(i, j) for i, j in np.argwhere(either).tolist() if _is_compelled(i, j, linked, directed, either)]
        if not new:
            return linked & ~directed.T
        for i, j in new:
            directed[i, j] = True


def _is_compelled(
    i: int, j: int, linked: NDArray[np.bool_], directed: NDArray[np.bool_], either: NDArray[np.bool_]
) -> bool:
    """Return whether i - j must be i → j, to avoid a new v-structure or a cycle (Meek's rules 1 to 3)."""
    if bool((directed[:, i] & ~linked[:, j] & (np.arange(len(linked)) != j)).any()):
        return True
    if bool((directed[i] & directed[:, j]).any()):
        return True
    through = np.flatnonzero(either[i] & directed[:, j])
    return any(not linked[a, b] for a in through for b in through if a < b)


def structural_hamming_distance(one: Sequence[Sequence[int]], other: Sequence[Sequence[int]]) -> int:
    """The number of pairs of nodes in which the equivalence classes of two DAGs differ: no arc, one way, both ways.

    >>> structural_hamming_distance([[], [0], [1]], [[1], [2], []]), structural_hamming_distance([[], [0]], [[], []])
    (0, 1)
    """
    a, b = equivalence_class(one), equivalence_class(other)
    differs = (a != b) | (a.T != b.T)
    return int(np.triu(differs).sum())
