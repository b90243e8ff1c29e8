"""Paths through a decision graph, and its leaf for every assignment: compiled, over the flat form of one graph."""

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Flags = NDArray[np.bool_]


@jit
def paths_of(test: Ints, first: Ints, child: Ints, column: Longs, possible: Flags, most: int) -> Ints:
    """Return a row for each path from the root that some assignment takes: its leaf, and the states it leaves possible.

    After the leaf, a row has one flag for each state of each tested variable; those of variable v begin at column[v].
    Paths are disjoint. If there are more than `most`, the search stops after most + 1.
    """
    leaves = [np.int32(0)]
    leaves.pop()
    found = [possible]
    found.pop()
    nodes = [np.int32(0)]
    rows = [possible]
    while len(nodes) > 0 and len(leaves) <= most:
        node = nodes.pop()
        row = rows.pop()
        if test[node] < 0:
            leaves.append(first[node])
            found.append(row)
            continue
        begin = column[test[node]]
        goals = child[first[node] : first[node] + column[test[node] + 1] - begin]
        for state in range(goals.shape[0] - 1, -1, -1):
            seen = not row[begin + state]
            for other in range(state + 1, goals.shape[0]):
                seen = seen or (row[begin + other] and goals[other] == goals[state])
            if seen:
                continue
            left = row.copy()
            for other in range(goals.shape[0]):
                left[begin + other] = row[begin + other] and goals[other] == goals[state]
            nodes.append(goals[state])
            rows.append(left)
    ways = np.empty((len(found), 1 + possible.shape[0]), np.int32)
    for path in range(len(found)):
        ways[path, 0], ways[path, 1:] = leaves[path], found[path]
    return ways


@jit
def leaf_table(test: Ints, first: Ints, child: Ints, column: Longs, states: Longs, free: Longs, shape: Longs) -> Ints:
    """Return the leaf of every assignment of the free variables, the last varying fastest.

    States that variable v may have (a single one, unless it is free) begin at states[column[v]]; free variable free[k]
    has shape[k] of them.
    """
    leaves = np.empty(shape.prod(), np.int32)
    digit = np.zeros(column.shape[0], np.int64)
    for assignment in range(leaves.shape[0]):
        node = 0
        while test[node] >= 0:
            node = child[first[node] + states[column[test[node]] + digit[test[node]]]]
        leaves[assignment] = first[node]
        k = free.shape[0] - 1
        while k >= 0:
            digit[free[k]] += 1
            if digit[free[k]] < shape[k]:
                break
            digit[free[k]] = 0
            k -= 1
    return leaves
