"""What operators make: the new leaves of a node, with their cases, their histograms and their prices.

After a split only the smaller children are counted; the largest is the parent less the others. After a merge histograms
add. Several threads make leaves at the same time, each for other nodes: what they take from is behind a lock.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels import bits
from leafwise.kernels.arrays import Array, Int, Layout
from leafwise.kernels.atomics import lock, swap, unlock
from leafwise.kernels.bits import count_set, size_of
from leafwise.kernels.gains import COMPLETE, price_by_table
from leafwise.kernels.jit import bare, inlined, jit, part
from leafwise.kernels.nodes import (
    N_LEAVES,
    N_STALE,
    POOL,
    SHORT,
    Frontier,
    Pool,
    drop_children,
    drop_merged,
    free_if_spent,
    link,
    next_free,
)
from leafwise.kernels.references import refer
from leafwise.kernels.sets import cut, join, place

WANTED_LEAVES, WANTED_CELLS, WANTED_COUNTS, FIRST_WANTED_SET = range(4)  # places in Frontier.wanted; then sizes of sets


class Scratch(NamedTuple):
    """Where one thread works."""

    counting: bits.Scratch
    groups: Array  # for each state of a split's variable: the child it goes to
    sizes: Array  # for each child: how many cases it gets
    fill: Array  # for each child: how many it has so far
    possible: Array  # empty: all states are
    spent: Array  # nanoseconds, roughly


@part
def make_scratch(frontier: Frontier) -> Scratch:
    """Room for all that one thread may have to do."""
    layout, cases = frontier.pricing.layout, frontier.cases
    most_states, most_classes = 2, 2
    for variable in range(layout.n_states.shape[0]):
        most_states = max(most_states, layout.n_states[variable])
        if cases.data.first[variable] >= 0:
            most_classes = max(most_classes, layout.n_states[variable])
    return Scratch(
        bits.make_scratch(most_classes, cases.n_cases, cases),
        np.empty(most_states, np.int64),
        np.empty(most_states, np.int64),
        np.empty(most_states, np.int64),
        np.empty(0, np.uint8),
        np.zeros(1),
    )


@bare
def _take_histogram(which: int, pool: Pool) -> int:
    at = pool.free[which]
    if at < 0:
        pool.used[0] += pool.sizes[which]
        return pool.used[0] - pool.sizes[which]
    pool.free[which] = next_free(at, pool.cells)
    return at


@bare
def _has_histograms(which: int, n: Int, pool: Pool) -> bool:
    at = pool.free[which]
    while n > 0 and at >= 0:
        at = next_free(at, pool.cells)
        n -= 1
    return pool.used[0] + n * pool.sizes[which] <= pool.cells.shape[0]


@bare
def _ask_for_room(n: Int, n_cells: int, n_counts: int, sizes: Array, frontier: Frontier) -> None:
    wanted = frontier.wanted
    wanted[WANTED_LEAVES], wanted[WANTED_CELLS], wanted[WANTED_COUNTS] = n, n_cells, n_counts
    for k in range(n):
        wanted[FIRST_WANTED_SET + k] = sizes[k]
    swap(frontier.crew, SHORT, np.int64(1))


@bare
def _add_leaf(target: int, cases: int, frontier: Frontier) -> None:
    """A record for a leaf that holds this set, and is not counted yet; there is room."""
    leaf = frontier.leaves[frontier.totals[N_LEAVES]]
    frontier.totals[N_LEAVES] += 1
    leaf["target"], leaf["cases"] = target, cases
    leaf["first_child"] = leaf["second_child"] = leaf["without"] = leaf["partner"] = leaf["groups"] = -1
    leaf["histogram"] = leaf["variable"] = leaf["room"] = -1
    leaf["gain"] = np.inf
    leaf["counts"] = frontier.pool.used[1]
    frontier.pool.used[1] += frontier.nodes[target]["n_states"]


@jit
def plant(targets: Array, cases: Array, frontier: Frontier) -> None:
    """Records for the leaves that a search begins with, which hold these sets; there is room. All are yet to price."""
    frontier = refer(frontier)
    for k in range(targets.shape[0]):
        _add_leaf(targets[k], cases[k], frontier)
        link(k, frontier)


@bare
def _add_leaves(target: int, n: Int, sizes: Array, frontier: Frontier) -> int:
    """Records for n new leaves of these sizes, and room for their cases; the first, or -1: room is short."""
    lock(frontier.crew, POOL)
    pool, node = frontier.pool, frontier.nodes[target]
    which, n_counts = node["size_class"], n * node["n_states"]
    first, cases = frontier.totals[N_LEAVES], -1
    if (
        first + n <= frontier.leaves.shape[0]
        and pool.used[1] + n_counts <= frontier.pricing.counts.shape[0]
        and _has_histograms(which, n, pool)
    ):
        cases = place(sizes, n, frontier.cases)
    if cases >= 0:
        for k in range(n):
            _add_leaf(target, cases + k, frontier)
            frontier.leaves[first + k]["histogram"] = _take_histogram(which, pool)
    else:
        _ask_for_room(n, n * pool.sizes[which], n_counts, sizes, frontier)
        first = -1
    unlock(frontier.crew, POOL)
    return first


@inlined
def _histogram(leaf: Any, frontier: Frontier) -> Array:
    return frontier.pool.cells[leaf["histogram"] : leaf["histogram"] + size_of(leaf["target"], frontier.pricing.layout)]


@bare
def _count(leaf: Any, frontier: Frontier, scratch: Scratch) -> None:
    layout, cases = frontier.pricing.layout, frontier.cases
    set_ = cases.sets[leaf["cases"]]
    out = _histogram(leaf, frontier)
    count_set(set_, leaf["target"], out, layout, cases, scratch.counting)
    scratch.spent[0] += 0.05 * out.shape[0] * min(set_["size"], cases.data.words.shape[1])


@bare
def has_histogram(leaf: Any, frontier: Frontier, scratch: Scratch) -> bool:
    """Count the leaf if it was not, or its histogram was given back. False: room is short."""
    if leaf["histogram"] < 0:
        lock(frontier.crew, POOL)
        which = frontier.nodes[leaf["target"]]["size_class"]
        if _has_histograms(which, 1, frontier.pool):
            leaf["histogram"] = _take_histogram(which, frontier.pool)
        else:
            _ask_for_room(0, frontier.pool.sizes[which], 0, scratch.sizes, frontier)
        unlock(frontier.crew, POOL)
        if leaf["histogram"] < 0:
            return False
        _count(leaf, frontier, scratch)
    return True


@bare
def _wait(which: Int, what: int, frontier: Frontier) -> None:
    """Something new waits for weights."""
    lock(frontier.crew, POOL)
    frontier.made[which, frontier.totals[N_STALE + which]] = what
    frontier.totals[N_STALE + which] += 1
    unlock(frontier.crew, POOL)


@bare
def _price(leaf: Any, frontier: Frontier, scratch: Scratch) -> None:
    price_by_table(leaf, frontier.pool.cells, scratch.possible, frontier.pricing)
    scratch.spent[0] += 4.0 * size_of(leaf["target"], frontier.pricing.layout)
    free_if_spent(leaf, frontier)


@inlined
def price_again(at: int, frontier: Frontier, scratch: Scratch) -> None:
    """Find the best split of a leaf that is there, or let it wait for weights; unless room is short."""
    leaf = frontier.leaves[at]
    drop_children(leaf, frontier)
    if not has_histogram(leaf, frontier, scratch):
        return
    if frontier.rules.weighs:
        _wait(np.int64(0), at, frontier)
    else:
        _price(leaf, frontier, scratch)


@inlined
def _plan_split(leaf: Any, frontier: Frontier, scratch: Scratch) -> int:
    """Which state goes to which child, and how many cases each child gets; how many states there are."""
    layout = frontier.pricing.layout
    n_classes, n_states = layout.n_states[leaf["target"]], layout.n_states[leaf["variable"]]
    block = leaf["histogram"] + _base(leaf["variable"], leaf["target"], layout) * n_classes
    for k in range(leaf["n_children"]):
        scratch.sizes[k] = 0
    for state in range(n_states):
        if leaf["state"] != COMPLETE:
            group = np.int64(state != leaf["state"])
        elif leaf["groups"] < 0:
            group = np.int64(state)
        else:
            group = frontier.groups[leaf["groups"] + state]
        scratch.groups[state] = group
        for k in range(n_classes):
            scratch.sizes[group] += frontier.pool.cells[block + state * n_classes + k]
    return n_states


@inlined
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


@inlined
def _count_children(parent: Any, first: int, frontier: Frontier, scratch: Scratch) -> None:
    """The smaller children by counting, the largest (the earliest of equal ones) by subtraction."""
    n, sizes = parent["n_children"], scratch.sizes
    largest = 0
    for k in range(1, n):
        if sizes[k] > sizes[largest]:
            largest = k
    rest, whole = _histogram(frontier.leaves[first + largest], frontier), _histogram(parent, frontier)
    for cell in range(rest.shape[0]):
        rest[cell] = whole[cell]
    for k in range(n):
        if k != largest:
            part_of_it = _histogram(frontier.leaves[first + k], frontier)
            if sizes[k] == 0:
                for cell in range(rest.shape[0]):
                    part_of_it[cell] = 0
            else:
                _count(frontier.leaves[first + k], frontier, scratch)
                for cell in range(rest.shape[0]):
                    rest[cell] -= part_of_it[cell]


@inlined
def make_children(at: int, frontier: Frontier, scratch: Scratch) -> None:
    """The leaves that the leaf's best split makes, priced or waiting for weights; unless room is short."""
    leaf, cases = frontier.leaves[at], frontier.cases
    if not has_histogram(leaf, frontier, scratch):
        return
    n_states, n = _plan_split(leaf, frontier, scratch), leaf["n_children"]
    first = _add_leaves(leaf["target"], n, scratch.sizes, frontier)
    if first < 0:
        return
    sets = frontier.leaves[first]["cases"]
    cut(
        cases.sets[leaf["cases"]],
        leaf["variable"],
        scratch.groups[:n_states],
        cases.sets[sets : sets + n],
        cases,
        scratch.counting.rows,
        scratch.fill,
    )
    _count_children(leaf, first, frontier, scratch)
    leaf["first_child"] = first
    if frontier.rules.weighs:
        _wait(np.int64(1), at, frontier)
    else:
        for child in range(first, first + n):
            _price(frontier.leaves[child], frontier, scratch)


@inlined
def make_merged(target: int, frontier: Frontier, scratch: Scratch) -> bool:
    """The leaf that the node's best merge makes. False: not yet, since room is short or it waits for weights."""
    node, cases = frontier.nodes[target], frontier.cases
    first = node["merge_leaf"]
    second = frontier.leaves[first]["partner"]
    one, two = frontier.leaves[first], frontier.leaves[second]
    drop_merged(node, frontier)
    scratch.sizes[0] = cases.sets[one["cases"]]["size"] + cases.sets[two["cases"]]["size"]
    new = _add_leaves(target, np.int64(1), scratch.sizes, frontier)
    if new < 0:
        return False
    merged = frontier.leaves[new]
    join(cases.sets[one["cases"]], cases.sets[two["cases"]], cases.sets[merged["cases"]], cases)
    if one["histogram"] >= 0 and two["histogram"] >= 0:
        both, a, b = _histogram(merged, frontier), _histogram(one, frontier), _histogram(two, frontier)
        for cell in range(both.shape[0]):
            both[cell] = a[cell] + b[cell]
    else:
        _count(merged, frontier, scratch)
    node["merged"], node["merged_first"], node["merged_second"] = new, first, second
    if frontier.rules.weighs:
        _wait(np.int64(2), target, frontier)
        return False
    _price(merged, frontier, scratch)
    return True
