"""Cases followed through decision graphs: compiled loops over codes and the flat form of graphs.

`codes` is (n_variables, n_cases); `test`, `first`, `child` are the flat form; `root` is the first node of a graph.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part

Codes = NDArray[Any]  # uint8 or uint16
Ints = NDArray[np.int32]
Floats = NDArray[np.float64]

_BLOCK = 4096  # cases that are followed through all graphs together, so that their codes stay in the cache
_FEW_CASES = 1024  # cases that descend a graph level by level together
_FEW = 8  # number of states up to which a linear search is quicker than binary search


class Graph(Protocol):
    """The attributes of a decision graph that `flatten` reads."""

    @property
    def tests(self) -> tuple[int, ...]: ...
    @property
    def children(self) -> tuple[tuple[int, ...], ...]: ...


class FlatGraphs(NamedTuple):
    """Several graphs in one set of arrays, for compiled loops: nodes are numbered consecutively over all graphs."""

    test: Ints  # by node: the tested variable; -1: a leaf
    first: Ints  # a test: index in `child` of its first child; a leaf: its number within the graph
    child: Ints  # child[first[node] + state] is the child for a state
    root: Ints  # by graph: its first node


def flatten(graphs: Iterable[Graph]) -> FlatGraphs:
    """Convert graphs to the flat form, in the given order."""
    test: list[int] = []
    first: list[int] = []
    child: list[int] = []
    root: list[int] = []
    for graph in graphs:
        start, leaf = len(test), 0
        root.append(start)
        test += graph.tests
        for row in graph.children:
            first.append(len(child) if row else leaf)
            leaf += not row
            child += [start + node for node in row]
    return FlatGraphs(*(np.array(column, np.int32) for column in (test, first, child, root)))


@part
def _leaf_of(codes: Codes, test: Ints, first: Ints, child: Ints, root: int, case: int) -> int:
    node = root
    while test[node] >= 0:
        node = child[first[node] + codes[test[node], case]]
    leaf: int = first[node]
    return leaf


@jit
def leaves_of(codes: Codes, test: Ints, first: Ints, child: Ints, root: int) -> Ints:
    """Return the leaf number of every case in the graph that begins at `root`."""
    n_cases = codes.shape[1]
    leaves = np.empty(n_cases, np.int32)
    for case in range(n_cases):
        leaves[case] = _leaf_of(codes, test, first, child, root, case)
    return leaves


@jit
def leaf_counts(
    codes: Codes, test: Ints, first: Ints, child: Ints, root: int, n_leaves: int, target: int, n_states: int
) -> NDArray[np.int64]:
    """Count the target's states among the cases of each leaf: (n_leaves, n_states)."""
    counts = np.zeros((n_leaves, n_states), np.int64)
    for case in range(codes.shape[1]):
        counts[_leaf_of(codes, test, first, child, root, case), codes[target, case]] += 1
    return counts


@jit
def sum_log_probabilities(
    codes: Codes,
    test: Ints,
    first: Ints,
    child: Ints,
    root: Ints,
    target: Ints,
    n_states: Ints,
    start: NDArray[np.int64],
    log_probability: Floats,
) -> Floats:
    """Return for each case the sum over graphs g of the log probability of target[g] in the case's leaf.

    The distributions of all graphs' leaves are concatenated in `log_probability`, those of graph g from start[g] on.
    """
    n_cases = codes.shape[1]
    total = np.zeros(n_cases)
    for begin in range(0, n_cases, _BLOCK):
        end = min(begin + _BLOCK, n_cases)
        for g in range(root.shape[0]):
            for case in range(begin, end):
                leaf = _leaf_of(codes, test, first, child, root[g], case)
                total[case] += log_probability[start[g] + leaf * n_states[g] + codes[target[g], case]]
    return total


@jit
def sum_log_means(
    codes: Codes,
    test: Ints,
    first: Ints,
    child: Ints,
    root: Ints,
    target: Ints,
    n_states: Ints,
    start: NDArray[np.int64],
    probability: Floats,
    weight: Floats,
    seen: NDArray[np.bool_],
) -> Floats:
    """Return for each case the sum over targets of the log of a weighted mean of several graphs' probabilities.

    The weight.shape[0] graphs of a target are adjacent. Graphs that have `seen` a case, (graphs of a target, cases),
    are left out of its mean; if all have, the sum is NaN. `probability` is (concatenated distributions, kinds), and the
    sums are (kinds, cases).
    """
    n_cases, n_kinds, n_graphs = codes.shape[1], probability.shape[1], weight.shape[0]
    total = np.zeros((n_cases, n_kinds))
    mean, whole = np.empty((_BLOCK, n_kinds)), np.empty(_BLOCK)
    for begin in range(0, n_cases, _BLOCK):
        n = min(_BLOCK, n_cases - begin)
        for g in range(target.shape[0]):
            mean[:n] = 0.0
            whole[:n] = 0.0
            for k in range(n_graphs):
                at = g * n_graphs + k
                for here in range(n):
                    case = begin + here
                    if not seen[k, case]:
                        leaf = _leaf_of(codes, test, first, child, root[at], case)
                        whole[here] += weight[k]
                        row = start[at] + leaf * n_states[g] + codes[target[g], case]
                        for kind in range(n_kinds):
                            mean[here, kind] += weight[k] * probability[row, kind]
            for here in range(n):
                for kind in range(n_kinds):
                    total[begin + here, kind] += np.log(mean[here, kind] / whole[here]) if whole[here] > 0 else np.nan
    return total.T


@part
def find_leaves(codes: Codes, test: Ints, first: Ints, child: Ints, root: int, begin: int, leaves: Ints) -> None:
    """Fill `leaves` with the leaf nodes of the cases from `begin` on.

    All cases descend one level, then all that are not at a leaf the next one, so that their memory accesses overlap.
    """
    active = np.empty(leaves.shape[0], np.int32)
    n_active = 0
    for k in range(leaves.shape[0]):
        leaves[k] = root
        active[n_active] = k
        n_active += test[root] >= 0
    while n_active > 0:
        n_left = 0
        for place in range(n_active):
            k = active[place]
            node = child[first[leaves[k]] + codes[test[leaves[k]], begin + k]]
            leaves[k] = node
            active[n_left] = k
            n_left += test[node] >= 0
        n_active = n_left


@part
def state_at(cumulative: Floats, begin: int, n_states: int, uniform: float) -> int:
    """Return the first state whose cumulative probability, from `begin` on, exceeds the number."""
    low = 0
    if n_states <= _FEW:
        for k in range(begin, begin + n_states - 1):
            low += cumulative[k] <= uniform
        return low
    high = n_states - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[begin + middle] > uniform:
            high = middle
        else:
            low = middle + 1
    return low


@jit
def draw(
    codes: Codes, test: Ints, first: Ints, child: Ints, root: int, target: int, cumulative: Floats, uniform: Floats
) -> None:
    """Draw the target's row of codes: the first state whose cumulative probability exceeds the case's uniform number.

    `cumulative` is (n_leaves, n_states) and ends in ones. The tested variables must have their codes already.
    """
    n_cases = codes.shape[1]
    n_states = cumulative.shape[1]
    sums = cumulative.ravel()
    leaves = np.empty(min(_FEW_CASES, n_cases), np.int32)
    for begin in range(0, n_cases, _FEW_CASES):
        here = leaves[: min(_FEW_CASES, n_cases - begin)]
        find_leaves(codes, test, first, child, root, begin, here)
        for k in range(here.shape[0]):
            state = state_at(sums, first[here[k]] * n_states, n_states, uniform[begin + k])
            codes[target, begin + k] = state
