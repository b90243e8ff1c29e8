"""Conversion of a search's graph of pieces to a graph that tests its own variable, as in networks.

In the replayed graph, a parted leaf is an OWN node above the graphs of its pieces: the switch, the part, the rest. Here
every leaf of the switch's graph becomes a test of the variable itself, which leads to the graphs of the part and of the
rest; these are shared by all tests of one partition.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.leaf_search.replay import OWN
from leafwise.own_tests import OwnTests

Leaf = tuple[int, int]  # bit masks of the states that it is about, and of a switch's part


def own_tests(
    drawn: DecisionGraph,
    target: int,
    leaves: Mapping[int, Leaf],
    counts: NDArray[np.generic],
    exponents: NDArray[np.float64],
) -> OwnTests:
    """The graph of a target that tests its own variable, with its counts and exponents.

    `leaves` describes each leaf of the replayed graph `drawn`, by its node; counts and exponents have a row for each.
    """
    r, row_of = counts.shape[1], {node: row for row, node in enumerate(drawn.leaves)}
    tests = [target if node in leaves and leaves[node][1] else test for node, test in enumerate(drawn.tests)]
    below = [list(row) for row in drawn.children]  # by node: its child for each state
    states = [leaves[node][0] if node in leaves else 0 for node in range(len(tests))]
    sources = [[row_of[node]] if node in row_of else [] for node in range(len(tests))]  # rows whose sum is its own
    stands_for = list(range(len(tests)))
    for node in reversed([node for node, test in enumerate(drawn.tests) if test == OWN]):
        switch, part, rest = drawn.children[node]
        stands_for[node] = switch
        switches = _leaves_below(switch, drawn)
        chosen = leaves[switches[0]][1]
        if chosen & (chosen - 1) == 0:  # a single state: a leaf with probability one
            part = len(tests)
            tests.append(LEAF)
            below.append([])
            states.append(chosen)
            sources.append([row_of[place] for place in switches])
            stands_for.append(part)
        for place in switches:
            below[place] = [part if chosen >> k & 1 else rest for k in range(r)]
    order = _from_the_root(below, stands_for)
    number = {node: k for k, node in enumerate(order)}
    graph = DecisionGraph(
        tuple(tests[node] for node in order),
        tuple(tuple(number[_resolved(child, stands_for)] for child in below[node]) for node in order),
    )
    held = [node for node in order if tests[node] in (LEAF, target)]
    is_in = np.array([[states[node] >> k & 1 for k in range(r)] for node in held], np.bool_)
    rows = [np.array([array[sources[node]].sum(axis=0) for node in held]) for array in (counts, exponents)]
    return OwnTests.learned(graph, rows[0] * is_in, rows[1] * is_in, target)


def _leaves_below(top: int, drawn: DecisionGraph) -> list[int]:
    seen, todo = {top}, [top]
    while todo:
        new = set(drawn.children[todo.pop()]) - seen
        seen |= new
        todo += new
    return sorted(node for node in seen if drawn.tests[node] == LEAF)


def _resolved(node: int, stands_for: list[int]) -> int:
    while stands_for[node] != node:
        node = stands_for[node]
    return node


def _from_the_root(below: list[list[int]], stands_for: list[int]) -> list[int]:
    """The nodes in topological order: the reverse postorder of a depth-first search from the root."""
    left: dict[int, None] = {}
    todo = [(_resolved(0, stands_for), False)]
    while todo:
        node, is_done = todo.pop()
        if is_done:
            left[node] = None
        elif node not in left:
            todo.append((node, True))
            todo += [(_resolved(child, stands_for), False) for child in dict.fromkeys(below[node])]
    return list(reversed(left))
