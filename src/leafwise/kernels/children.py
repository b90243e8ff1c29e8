"""What operators make: which states go to which new leaf, how many cases each gets, and its histogram by arithmetic.

After a split only the smaller children are counted; the largest is the parent less the others. After a merge
histograms add.
"""

import numpy as np

from leafwise.kernels.bits import Array, Layout
from leafwise.kernels.gains import COMPLETE
from leafwise.kernels.jit import jit


@jit
def plan_splits(
    batch: Array, leaves: Array, histograms: Array, layout: Layout, possible: Array, groups: Array, sizes: Array
) -> None:
    """For each leaf's best split: the child of every state, and the cases of every child, one split after the other.

    `possible`, if not empty, flags for the same states in the same order which can occur; the others, which no case can
    have, go with the last child.
    """
    at, first = 0, 0
    for b in range(batch.shape[0]):
        leaf = leaves[batch[b]]
        variable, target = leaf["variable"], leaf["target"]
        n_states, n_classes, n_children = layout.n_states[variable], layout.n_states[target], leaf["n_children"]
        block = leaf["histogram"] + _base(variable, target, layout) * n_classes
        sizes[first : first + n_children] = 0
        child = 0
        for state in range(n_states):
            if leaf["state"] != COMPLETE:
                group = 0 if state == leaf["state"] else 1
            elif possible.shape[0] == 0 or possible[at + state]:
                group = child
                child += 1
            else:
                group = n_children - 1
            groups[at + state] = group
            for k in range(n_classes):
                sizes[first + group] += histograms[block + state * n_classes + k]
        at += n_states
        first += n_children


@jit
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
def to_count(batch: Array, leaves: Array, sizes: Array, out: Array) -> int:
    """The children to count, as positions among all new ones: not the largest of a split, and none without cases."""
    n, first = 0, 0
    for b in range(batch.shape[0]):
        n_children = leaves[batch[b]]["n_children"]
        largest = first + np.argmax(sizes[first : first + n_children])
        for child in range(first, first + n_children):
            if child != largest and sizes[child] > 0:
                out[n] = child
                n += 1
        first += n_children
    return n


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
        largest = first + np.argmax(sizes[skip : skip + n_children])
        rest = histograms[leaves[largest]["histogram"] : leaves[largest]["histogram"] + size]
        rest[:] = histograms[parent["histogram"] : parent["histogram"] + size]
        for child in range(first, first + n_children):
            if child != largest:
                own = histograms[leaves[child]["histogram"] : leaves[child]["histogram"] + size]
                if sizes[skip + child - first] == 0:
                    own[:] = 0
                else:
                    rest -= own


@jit
def add_histograms(pairs: Array, leaves: Array, histograms: Array, layout: Layout) -> None:
    """For each row (leaf, other, merged): the sum."""
    for p in range(pairs.shape[0]):
        one, two, both = leaves[pairs[p, 0]], leaves[pairs[p, 1]], leaves[pairs[p, 2]]
        target = one["target"]
        for k in range((layout.n_rows[layout.of_target[target]] + 1) * layout.n_states[target]):
            histograms[both["histogram"] + k] = histograms[one["histogram"] + k] + histograms[two["histogram"] + k]
