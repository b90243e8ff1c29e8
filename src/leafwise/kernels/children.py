"""What operators make: which states go to which new leaf, how many cases each gets, and its histogram by arithmetic.

After a split only the smaller children are counted; the largest is the parent less the others. After a merge
histograms add.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.arrays import Array, Layout
from leafwise.kernels.gains import COMPLETE
from leafwise.kernels.jit import jit, part


@jit
def measure_splits(batch: Array, leaves: Array, layout: Layout) -> tuple[int, int]:
    """How many states the variables of the leaves' best splits have in all, and how many children there will be."""
    n_states, n_children = 0, 0
    for b in range(batch.shape[0]):
        n_states += layout.n_states[leaves[batch[b]]["variable"]]
        n_children += leaves[batch[b]]["n_children"]
    return n_states, n_children


class Plan(NamedTuple):
    """Splits to be made, one after the other."""

    cases: Array  # for each split: the set to cut,
    variables: Array  # the variable to cut it by,
    n_children: Array
    groups: Array  # for each state of each variable: the child it goes to
    sizes: Array  # for each child: how many cases it gets,
    targets: Array
    to_count: Array  # ... and, of the children, those to count: not the largest of a split, and none without cases


def make_plan(n_splits: int, n_states: int, n_children: int) -> Plan:
    """Room for a plan."""
    return Plan(*(np.empty(n, np.int64) for n in (n_splits, n_splits, n_splits, n_states, *[n_children] * 3)))


@jit
def plan_splits(batch: Array, leaves: Array, histograms: Array, layout: Layout, possible: Array, plan: Plan) -> int:
    """Fill the plan with each leaf's best split; how many children are to be counted.

    `possible`, if not empty, flags for the same states in the same order which can occur; the others, which no case can
    have, go with the last child.
    """
    at, first, n_to_count = 0, 0, 0
    for b in range(batch.shape[0]):
        leaf = leaves[batch[b]]
        n_children = leaf["n_children"]
        plan.cases[b], plan.variables[b], plan.n_children[b] = leaf["cases"], leaf["variable"], n_children
        n_states = layout.n_states[leaf["variable"]]
        flags = possible[at : at + n_states] if possible.shape[0] > 0 else possible
        _plan_split(
            leaf, histograms, layout, flags, plan.groups[at : at + n_states], plan.sizes[first : first + n_children]
        )
        largest = _largest(plan.sizes, first, n_children)
        for child in range(first, first + n_children):
            plan.targets[child] = leaf["target"]
            if child != largest and plan.sizes[child] > 0:
                plan.to_count[n_to_count] = child
                n_to_count += 1
        at += n_states
        first += n_children
    return n_to_count


@part
def _plan_split(leaf: Any, histograms: Array, layout: Layout, possible: Array, groups: Array, sizes: Array) -> None:
    n_classes = layout.n_states[leaf["target"]]
    block = leaf["histogram"] + _base(leaf["variable"], leaf["target"], layout) * n_classes
    for k in range(sizes.shape[0]):
        sizes[k] = 0
    child = 0
    for state in range(groups.shape[0]):
        if leaf["state"] != COMPLETE:
            groups[state] = 0 if state == leaf["state"] else 1
        elif possible.shape[0] == 0 or possible[state]:
            groups[state] = child
            child += 1
        else:
            groups[state] = sizes.shape[0] - 1
        for k in range(n_classes):
            sizes[groups[state]] += histograms[block + state * n_classes + k]


class Pool(NamedTuple):
    """Where histograms, and the target's counts of each leaf, live."""

    cells: Array
    free: Array  # for each size, where the first free histogram is; -1: none. It holds where the next one is
    sizes: Array
    used: Array  # so many cells, so many counts


@part
def _take(which: int, pool: Pool) -> int:
    at = pool.free[which]
    if at < 0:
        pool.used[0] += pool.sizes[which]
        return pool.used[0] - pool.sizes[which]
    pool.free[which] = np.int64(pool.cells[at]) << 31 | np.int64(pool.cells[at + 1])
    return at


@jit
def add_leaves(targets: Array, cases: int, first: int, leaves: Array, nodes: Array, pool: Pool) -> None:
    """Records for new leaves that hold the sets from `cases` on, with places for a histogram and counts each."""
    for k in range(targets.shape[0]):
        leaf = leaves[first + k]
        leaf["target"], leaf["cases"] = targets[k], cases + k
        leaf["first_child"] = leaf["partner"] = -1
        leaf["histogram"] = _take(nodes[targets[k]]["size_class"], pool)
        leaf["counts"] = pool.used[1]
        pool.used[1] += nodes[targets[k]]["n_states"]


@jit
def take_histograms(batch: Array, leaves: Array, nodes: Array, pool: Pool) -> None:
    """New places for the histograms of leaves whose own were given back."""
    for b in range(batch.shape[0]):
        leaf = leaves[batch[b]]
        leaf["histogram"] = _take(nodes[leaf["target"]]["size_class"], pool)


@part
def _largest(sizes: Array, first: int, n: int) -> int:
    """The place of the largest of n sizes from the first on; the earliest of equal ones."""
    largest = first
    for k in range(first + 1, first + n):
        if sizes[k] > sizes[largest]:
            largest = k
    return largest


@part
def _base(variable: int, target: int, layout: Layout) -> int:
    which = layout.of_target[target]
    begin, end = layout.start[which], layout.start[which + 1]
    while end - begin > 1:
        middle = (begin + end) // 2
        if layout.variables[middle] <= variable:
            begin = middle
        else:
            end = middle
    return layout.bases[begin]


@jit
def derive_children(
    batch: Array, begin: int, end: int, leaves: Array, sizes: Array, histograms: Array, layout: Layout
) -> None:
    """The histograms that were not counted: zeros where there are no cases, else parent less siblings."""
    for b in range(begin, end):
        parent = leaves[batch[b]]
        first, n_children = parent["first_child"], parent["n_children"]
        target = parent["target"]
        size = (layout.n_rows[layout.of_target[target]] + 1) * layout.n_states[target]
        skip = first - leaves[batch[0]]["first_child"]
        largest = first + _largest(sizes, skip, n_children) - skip
        rest, own = leaves[largest]["histogram"], parent["histogram"]
        for k in range(size):
            histograms[rest + k] = histograms[own + k]
        for child in range(first, first + n_children):
            own = leaves[child]["histogram"]
            if sizes[skip + child - first] == 0:
                for k in range(size):
                    histograms[own + k] = 0
            elif child != largest:
                for k in range(size):
                    histograms[rest + k] -= histograms[own + k]


@jit
def add_histograms(pairs: Array, leaves: Array, histograms: Array, layout: Layout) -> None:
    """For each row (leaf, other, merged): the sum."""
    for p in range(pairs.shape[0]):
        one, two, both = leaves[pairs[p, 0]], leaves[pairs[p, 1]], leaves[pairs[p, 2]]
        target = one["target"]
        for k in range((layout.n_rows[layout.of_target[target]] + 1) * layout.n_states[target]):
            histograms[both["histogram"] + k] = histograms[one["histogram"] + k] + histograms[two["histogram"] + k]
