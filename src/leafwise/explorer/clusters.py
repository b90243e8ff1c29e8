"""Communities of variables, for networks too large to be displayed at once."""

from collections import Counter
from collections.abc import Sequence

_ROUNDS = 20


def clusters(n: int, arcs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Groups with many arcs inside and few between (modularity, by the Louvain method), the largest first.

    Variables without arcs form the last group.

    >>> clusters(7, [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)])
    [[0, 1, 2], [3, 4, 5], [6]]
    """
    linked = sorted({box for arc in arcs for box in arc})
    groups = [[box] for box in linked]
    place = {box: k for k, box in enumerate(linked)}
    weights: list[Counter[int]] = [Counter() for _ in linked]
    for start, end in arcs:
        weights[place[start]][place[end]] += 1
        weights[place[end]][place[start]] += 1
    while True:
        group_of = _moved(weights)
        kept = sorted(set(group_of))
        if len(kept) == len(groups):
            break
        number = {group: k for k, group in enumerate(kept)}
        joined: list[list[int]] = [[] for _ in kept]
        between: list[Counter[int]] = [Counter() for _ in kept]
        for old, group in enumerate(group_of):
            joined[number[group]] += groups[old]
            for other, weight in weights[old].items():
                between[number[group]][number[group_of[other]]] += weight
        groups, weights = joined, between
    groups = sorted(map(sorted, groups), key=lambda group: (-len(group), group))
    alone = sorted(set(range(n)) - set(linked))
    return [*groups, alone] if alone else groups


def _moved(weights: Sequence[Counter[int]]) -> list[int]:
    """The group of each member after repeated moves to the neighbouring group of the largest gain."""
    degree = [sum(row.values()) for row in weights]
    total = sum(degree)
    group_of = list(range(len(weights)))
    size = degree.copy()
    for _ in range(_ROUNDS):
        moved = False
        for k, row in enumerate(weights):
            own = group_of[k]
            size[own] -= degree[k]
            into: Counter[int] = Counter()
            for other, weight in row.items():
                if other != k:
                    into[group_of[other]] += weight
            into.setdefault(own, 0)
            best = max(sorted(into), key=lambda group: (into[group] - size[group] * degree[k] / total, group == own))
            size[best] += degree[k]
            group_of[k] = best
            moved = moved or best != own
        if not moved:
            break
    return group_of
