"""The sequential part of greedy search: choose the best operator, apply it, log it, until something must be counted.

Every node of the network keeps a linked list of its leaves, in order of creation. A leaf knows its best split; the
leaves that split would make may already be counted (`first_child`), because the best split of each leaf is known long
before it is chosen. `advance` applies operators as long as everything it needs is there, and returns to be fed else.

Ties (gains closer than TIE) go to splits before merges, the smaller target, the older leaf, then as in `gains`.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.bits import Array
from leafwise.kernels.gains import TIE, Pricing, merge_gain
from leafwise.kernels.jit import jit

NODE = np.dtype(
    [
        ("split_gain", np.float64),  # of the best leaf's best split
        ("merge_gain", np.float64),
        ("head", np.int32),  # the list of leaves
        ("tail", np.int32),
        ("n_leaves", np.int32),
        ("n_parents", np.int32),
        ("split_leaf", np.int32),
        ("merge_leaf", np.int32),  # the older leaf of the best merge; its partner is the other
        ("merged", np.int32),  # the leaf that a merge makes, once it is there; -1 before
        ("merged_first", np.int32),  # ... and of which two
        ("merged_second", np.int32),
        ("merges_known", np.int32),
    ],
    align=True,
)

STEP = np.dtype(
    [
        ("gain", np.float64),
        ("target", np.int32),
        ("leaf", np.int32),
        ("other", np.int32),  # the second leaf of a merge; -1: a split
        ("variable", np.int32),
        ("state", np.int32),
        ("first_new", np.int32),
        ("n_new", np.int32),
        ("new_arc", np.int32),
    ],
    align=True,
)

FINISHED, HUNGRY, FULL, MERGED = range(4)


class Frontier(NamedTuple):
    """All that changes while operators are applied."""

    leaves: Array
    nodes: Array
    targets: Array  # the nodes that are searched
    histograms: Array
    exponents: Array  # the leaves' own exponents; empty for the uniform prior
    ancestors: Array  # ancestors[i] is a row of bits
    is_parent: Array
    steps: Array
    dropped: Array  # leaves that were counted ahead and will not be needed
    totals: Array  # n_steps, n_dropped


class Rules(NamedTuple):
    """What the search may do."""

    merge: bool
    splits_first: bool
    most_parents: int
    most_leaves: int
    stop_at_merge: bool  # come back after each merge, to look for parents that no longer matter


@jit
def _is_stale(leaf: Any, pricing: Pricing) -> bool:
    target = leaf["target"]
    return not pricing.allowed[target, leaf["variable"]] or leaf["room"] != pricing.room[target]


@jit
def _find_partner(leaf: Any, frontier: Frontier, pricing: Pricing) -> None:
    """The best merge of this leaf with a later one of its node."""
    leaf["merge_gain"] = 0.0
    leaf["partner"] = -1
    other = leaf["next"]
    while other >= 0:
        _offer_partner(leaf, other, frontier, pricing)
        other = frontier.leaves[other]["next"]


@jit
def _offer_partner(leaf: Any, other: int, frontier: Frontier, pricing: Pricing) -> None:
    gain = merge_gain(leaf, frontier.leaves[other], frontier.histograms, frontier.exponents, pricing)
    if gain > leaf["merge_gain"] + TIE:
        leaf["merge_gain"] = gain
        leaf["partner"] = other


@jit
def refresh_split(target: int, frontier: Frontier) -> None:
    """The node's best split, from what its leaves know."""
    node = frontier.nodes[target]
    node["split_gain"] = 0.0
    node["split_leaf"] = -1
    at = node["head"]
    while at >= 0:
        leaf = frontier.leaves[at]
        if leaf["gain"] > node["split_gain"] + TIE:
            node["split_gain"] = leaf["gain"]
            node["split_leaf"] = at
        at = leaf["next"]


@jit
def refresh_splits(targets: Array, frontier: Frontier) -> None:
    """The same for many nodes."""
    for k in range(targets.shape[0]):
        refresh_split(targets[k], frontier)


@jit
def _refresh_merge(target: int, gone: int, gone_too: int, first_new: int, frontier: Frontier, pricing: Pricing) -> None:
    """The node's best merge, after two leaves went (-1: none) and those from first_new on came, at the list's end."""
    node = frontier.nodes[target]
    node["merge_gain"] = 0.0
    node["merge_leaf"] = -1
    is_new = False
    at = node["head"]
    while at >= 0:
        leaf = frontier.leaves[at]
        is_new = is_new or at == first_new
        if is_new or not node["merges_known"] or leaf["partner"] == gone or leaf["partner"] == gone_too:
            _find_partner(leaf, frontier, pricing)
        else:
            other = first_new
            while other >= 0:
                _offer_partner(leaf, other, frontier, pricing)
                other = frontier.leaves[other]["next"]
        if leaf["merge_gain"] > node["merge_gain"] + TIE:
            node["merge_gain"] = leaf["merge_gain"]
            node["merge_leaf"] = at
        at = leaf["next"]
    node["merges_known"] = 1


@jit
def _unlink(at: int, frontier: Frontier) -> None:
    leaf = frontier.leaves[at]
    node = frontier.nodes[leaf["target"]]
    if leaf["previous"] >= 0:
        frontier.leaves[leaf["previous"]]["next"] = leaf["next"]
    else:
        node["head"] = leaf["next"]
    if leaf["next"] >= 0:
        frontier.leaves[leaf["next"]]["previous"] = leaf["previous"]
    else:
        node["tail"] = leaf["previous"]
    node["n_leaves"] -= 1


@jit
def link(at: int, frontier: Frontier) -> None:
    """Append a leaf to its node's list."""
    leaf = frontier.leaves[at]
    node = frontier.nodes[leaf["target"]]
    leaf["previous"] = node["tail"]
    leaf["next"] = -1
    if node["tail"] >= 0:
        frontier.leaves[node["tail"]]["next"] = at
    else:
        node["head"] = at
    node["tail"] = at
    node["n_leaves"] += 1


@jit
def _drop(first: int, n: int, frontier: Frontier) -> None:
    for at in range(first, first + n):
        frontier.dropped[frontier.totals[1]] = at
        frontier.totals[1] += 1


@jit
def add_arc(parent: int, child: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """Make the parent an ancestor of the child and all its descendants; none of these may be tested upstream now."""
    n = frontier.nodes.shape[0]
    word, bit = child >> 6, np.uint64(1) << np.uint64(child & 63)
    new = frontier.ancestors[parent].copy()
    new[parent >> 6] |= np.uint64(1) << np.uint64(parent & 63)
    for below in range(n):
        row = frontier.ancestors[below]
        if below != child and row[word] & bit == np.uint64(0):
            continue
        for w in range(row.shape[0]):
            fresh = new[w] & ~row[w]
            row[w] |= new[w]
            for k in range(64):
                if fresh == np.uint64(0):
                    break
                if fresh & np.uint64(1):
                    pricing.allowed[w * 64 + k, below] = 0
                fresh >>= np.uint64(1)
    frontier.is_parent[child, parent] = 1
    frontier.nodes[child]["n_parents"] += 1
    if frontier.nodes[child]["n_parents"] >= rules.most_parents:
        for variable in range(n):
            pricing.allowed[child, variable] &= frontier.is_parent[child, variable]


@jit
def _leaves_changed(
    target: int, gone: int, gone_too: int, first_new: int, frontier: Frontier, pricing: Pricing, rules: Rules
) -> None:
    node = frontier.nodes[target]
    room = max(0, min(rules.most_leaves - node["n_leaves"] + 1, pricing.layout.n_states.max()))
    if room > pricing.room[target]:  # splits ruled out before may be back: no gain is a bound any more
        at = node["head"]
        while at >= 0:
            frontier.leaves[at]["gain"] = np.inf
            at = frontier.leaves[at]["next"]
    pricing.room[target] = room
    refresh_split(target, frontier)
    if rules.merge and (node["merges_known"] or not rules.splits_first):
        _refresh_merge(target, gone, gone_too, first_new, frontier, pricing)
    if node["merged"] >= 0 and (
        node["merged_first"] == gone or node["merged_second"] == gone
        or node["merged_first"] == gone_too or node["merged_second"] == gone_too
    ):
        _drop(node["merged"], 1, frontier)
        node["merged"] = -1


@jit
def _apply_split(at: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    leaf = frontier.leaves[at]
    target, variable = leaf["target"], leaf["variable"]
    step = frontier.steps[frontier.totals[0]]
    step["gain"], step["target"], step["leaf"], step["other"] = leaf["gain"], target, at, -1
    step["variable"], step["state"] = variable, leaf["state"]
    step["first_new"], step["n_new"] = leaf["first_child"], leaf["n_children"]
    step["new_arc"] = not frontier.is_parent[target, variable]
    frontier.totals[0] += 1
    _unlink(at, frontier)
    for child in range(leaf["first_child"], leaf["first_child"] + leaf["n_children"]):
        link(child, frontier)
    if step["new_arc"]:
        add_arc(variable, target, frontier, pricing, rules)
    _leaves_changed(target, at, -2, leaf["first_child"], frontier, pricing, rules)


@jit
def _apply_merge(target: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    node = frontier.nodes[target]
    at, other, new = node["merged_first"], node["merged_second"], node["merged"]
    step = frontier.steps[frontier.totals[0]]
    step["gain"], step["target"], step["leaf"], step["other"] = node["merge_gain"], target, at, other
    step["variable"], step["state"], step["first_new"], step["n_new"], step["new_arc"] = -1, 0, new, 1, 0
    frontier.totals[0] += 1
    for gone in (at, other):
        _unlink(gone, frontier)
        if frontier.leaves[gone]["first_child"] >= 0:
            _drop(frontier.leaves[gone]["first_child"], frontier.leaves[gone]["n_children"], frontier)
    link(new, frontier)
    node["merged"] = -1
    _leaves_changed(target, at, other, new, frontier, pricing, rules)


@jit
def _best_split(frontier: Frontier) -> int:
    best, gain = -1, 0.0
    for k in range(frontier.targets.shape[0]):
        node = frontier.nodes[frontier.targets[k]]
        if node["split_gain"] > gain + TIE:
            best, gain = frontier.targets[k], node["split_gain"]
    return best


@jit
def _best_merge(frontier: Frontier, pricing: Pricing) -> int:
    best, gain = -1, 0.0
    for k in range(frontier.targets.shape[0]):
        node = frontier.nodes[frontier.targets[k]]
        if not node["merges_known"]:
            _refresh_merge(frontier.targets[k], -2, -2, -1, frontier, pricing)
        if node["merge_gain"] > gain + TIE:
            best, gain = frontier.targets[k], node["merge_gain"]
    return best


@jit
def _merge_is_ready(node: Any, leaves: Array) -> bool:
    first = node["merge_leaf"]
    return (
        node["merged"] >= 0 and node["merged_first"] == first and node["merged_second"] == leaves[first]["partner"]
    )


@jit
def advance(n_steps: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> int:
    """Apply best operators until n_steps are logged (FULL), none gains (FINISHED), or counts are missing (HUNGRY)."""
    nodes, leaves = frontier.nodes, frontier.leaves
    while frontier.totals[0] < n_steps and frontier.totals[1] + 2 * pricing.layout.n_states.max() < len(frontier.dropped):
        target = _best_split(frontier)
        if rules.merge and (target < 0 or not rules.splits_first):
            merging = _best_merge(frontier, pricing)
            if merging >= 0 and (target < 0 or nodes[merging]["merge_gain"] > nodes[target]["split_gain"] + TIE):
                if not _merge_is_ready(nodes[merging], leaves):
                    return HUNGRY
                _apply_merge(merging, frontier, pricing, rules)
                if rules.stop_at_merge:
                    return MERGED
                continue
        if target < 0:
            return FINISHED
        at = nodes[target]["split_leaf"]
        if _is_stale(leaves[at], pricing) or leaves[at]["first_child"] < 0:
            return HUNGRY
        _apply_split(at, frontier, pricing, rules)
    return FULL


@jit
def stale_leaves(frontier: Frontier, pricing: Pricing, out: Array) -> int:
    """The leaves whose best split has become impossible, and must be priced again; how many."""
    n = 0
    for k in range(frontier.targets.shape[0]):
        at = frontier.nodes[frontier.targets[k]]["head"]
        while at >= 0:
            leaf = frontier.leaves[at]
            if leaf["gain"] > 0.0 and _is_stale(leaf, pricing):
                out[n] = at
                n += 1
            at = leaf["next"]
    return n


@jit
def splits_to_count(frontier: Frontier, out: Array) -> int:
    """The leaves whose best split gains and whose children are not counted; how many."""
    n = 0
    for k in range(frontier.targets.shape[0]):
        at = frontier.nodes[frontier.targets[k]]["head"]
        while at >= 0:
            leaf = frontier.leaves[at]
            if leaf["gain"] > 0.0 and leaf["first_child"] < 0:
                out[n] = at
                n += 1
            at = leaf["next"]
    return n


@jit
def merges_to_make(frontier: Frontier, splits_first: bool, out: Array) -> int:
    """The nodes whose best operator is a merge that is not made yet; how many."""
    n = 0
    for k in range(frontier.targets.shape[0]):
        target = frontier.targets[k]
        node = frontier.nodes[target]
        if node["merge_leaf"] < 0 or _merge_is_ready(node, frontier.leaves):
            continue
        if node["merge_gain"] > node["split_gain"] + TIE or (splits_first and node["split_gain"] == 0.0):
            out[n] = target
            n += 1
    return n
