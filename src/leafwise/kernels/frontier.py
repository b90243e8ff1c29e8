"""The sequential part of greedy search: every node runs ahead on its own, and the best next steps are committed in order.

Every node of the network keeps a linked list of its leaves, in order of creation. A leaf knows its best split; the
leaves that split makes may already be counted (`first_child`). What a node does next depends on other nodes in one way
only: an arc elsewhere can rule out a variable. So a node may apply its own best operators ahead of time. These steps are
*pending*; `commit` takes, again and again, the pending step with the largest gain of all nodes, which is exactly the
sequential search. Where a committed arc rules out the variable of a pending split, the node is rolled back to before it.

Ties (gains closer than TIE) go to splits before merges, the smaller target, the older leaf, then as in `gains`.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.bits import Array
from leafwise.kernels.gains import TIE, Pricing, merge_gain
from leafwise.kernels.jit import jit
from leafwise.kernels.words import lowest

NODE = np.dtype(
    [
        ("split_gain", np.float64),  # of the best leaf's best split
        ("merge_gain", np.float64),
        ("best_gain", np.float64),  # of the best operator, of either kind
        ("best_kind", np.int32),
        ("head", np.int32),  # the list of leaves
        ("tail", np.int32),
        ("n_leaves", np.int32),
        ("n_committed_leaves", np.int32),
        ("n_parents", np.int32),
        ("split_leaf", np.int32),
        ("merge_leaf", np.int32),  # the older leaf of the best merge; its partner is the other
        ("merged", np.int32),  # the leaf that a merge makes, once it is there; -1 before
        ("merged_first", np.int32),  # ... and of which two
        ("merged_second", np.int32),
        ("merges_known", np.int32),
        ("first_pending", np.int32),  # steps that are applied and not committed, a linked list
        ("last_pending", np.int32),
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
        ("previous", np.int32),  # among the pending steps of its node
        ("next", np.int32),
    ],
    align=True,
)

FINISHED, HUNGRY, FULL, MERGED = range(4)
N_COMMITTED, N_STEPS, N_DROPPED = range(3)  # places in Frontier.totals
NOTHING, SPLIT, MERGE = range(3)


class Frontier(NamedTuple):
    """All that changes while operators are applied."""

    leaves: Array
    nodes: Array
    targets: Array  # the nodes that are searched
    histograms: Array
    exponents: Array  # the leaves' own exponents; empty for the uniform prior
    ancestors: Array  # ancestors[i] is a row of bits
    is_parent: Array
    steps: Array  # all steps, pending ones among them, in the order they were applied
    committed: Array  # the numbers of those that are committed, in order
    dropped: Array  # leaves that will not be needed again
    totals: Array


class Rules(NamedTuple):
    """What the search may do."""

    merge: bool
    splits_first: bool
    most_parents: int
    most_leaves: int
    runs_ahead: bool  # false where what a node may do depends on its own size
    stop_at_merge: bool  # come back after each merge, to look for parents that no longer matter


@jit
def is_stale(leaf: Any, pricing: Pricing) -> bool:
    """Whether the leaf's best split, which gains, is not allowed any more; its gain is then an upper bound."""
    target = leaf["target"]
    return not pricing.allowed[target, leaf["variable"]] or leaf["room"] != pricing.room[target]


@jit
def _offer_partner(leaf: Any, other: int, frontier: Frontier, pricing: Pricing) -> None:
    gain = merge_gain(leaf, frontier.leaves[other], frontier.histograms, frontier.exponents, pricing)
    if gain > leaf["merge_gain"] + TIE:
        leaf["merge_gain"] = gain
        leaf["partner"] = other


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
def _refresh_split(target: int, frontier: Frontier) -> None:
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
def _refresh_best(target: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """The node's best operator; with splits first, a merge only where no split gains."""
    node = frontier.nodes[target]
    node["best_kind"], node["best_gain"] = NOTHING, 0.0
    if node["split_leaf"] >= 0:
        node["best_kind"], node["best_gain"] = SPLIT, node["split_gain"]
        if rules.splits_first:
            return
    if rules.merge:
        if not node["merges_known"]:
            _refresh_merge(target, -2, -2, -1, frontier, pricing)
        if node["merge_gain"] > node["best_gain"] + TIE:
            node["best_kind"], node["best_gain"] = MERGE, node["merge_gain"]


@jit
def refresh_nodes(frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """All nodes' best splits and best operators, after leaves were priced."""
    for k in range(frontier.targets.shape[0]):
        _refresh_split(frontier.targets[k], frontier)
        _refresh_best(frontier.targets[k], frontier, pricing, rules)


@jit
def _refresh_merge(target: int, gone: int, gone_too: int, first_new: int, frontier: Frontier, pricing: Pricing) -> None:
    """The node's best merge, after two leaves went (-2: none) and those from first_new on came, at the list's end."""
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
def _relink(at: int, frontier: Frontier) -> None:
    """Undo `_unlink`: the leaf still knows its neighbours, provided that later changes were undone before."""
    leaf = frontier.leaves[at]
    node = frontier.nodes[leaf["target"]]
    if leaf["previous"] >= 0:
        frontier.leaves[leaf["previous"]]["next"] = at
    else:
        node["head"] = at
    if leaf["next"] >= 0:
        frontier.leaves[leaf["next"]]["previous"] = at
    else:
        node["tail"] = at
    node["n_leaves"] += 1


@jit
def link(at: int, frontier: Frontier) -> None:
    """Append a leaf to its node's list."""
    leaf = frontier.leaves[at]
    leaf["previous"] = frontier.nodes[leaf["target"]]["tail"]
    leaf["next"] = -1
    _relink(at, frontier)


@jit
def drop(at: int, n: int, frontier: Frontier) -> None:
    """Give up n leaves from this one on, and all that was counted ahead below them."""
    begin = frontier.totals[N_DROPPED]
    end = begin
    for leaf in range(at, at + n):
        frontier.dropped[end] = leaf
        end += 1
    while begin < end:
        leaf = frontier.leaves[frontier.dropped[begin]]
        if leaf["first_child"] >= 0:
            for child in range(leaf["first_child"], leaf["first_child"] + leaf["n_children"]):
                frontier.dropped[end] = child
                end += 1
        begin += 1
    frontier.totals[N_DROPPED] = end


@jit
def _push_step(target: int, frontier: Frontier) -> Any:
    node = frontier.nodes[target]
    number = frontier.totals[N_STEPS]
    frontier.totals[N_STEPS] += 1
    step = frontier.steps[number]
    step["target"] = target
    step["previous"] = node["last_pending"]
    step["next"] = -1
    if node["last_pending"] >= 0:
        frontier.steps[node["last_pending"]]["next"] = number
    else:
        node["first_pending"] = number
    node["last_pending"] = number
    return step


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
    _refresh_split(target, frontier)
    if rules.merge and (node["merges_known"] or not rules.splits_first):
        _refresh_merge(target, gone, gone_too, first_new, frontier, pricing)
    _refresh_best(target, frontier, pricing, rules)
    one, two = node["merged_first"], node["merged_second"]
    if node["merged"] >= 0 and (one == gone or two == gone or one == gone_too or two == gone_too):
        drop(node["merged"], 1, frontier)
        node["merged"] = -1


@jit
def _apply_split(at: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    leaf = frontier.leaves[at]
    step = _push_step(leaf["target"], frontier)
    step["gain"], step["leaf"], step["other"] = leaf["gain"], at, -1
    step["variable"], step["state"] = leaf["variable"], leaf["state"]
    step["first_new"], step["n_new"] = leaf["first_child"], leaf["n_children"]
    _unlink(at, frontier)
    for child in range(leaf["first_child"], leaf["first_child"] + leaf["n_children"]):
        link(child, frontier)
    _leaves_changed(leaf["target"], at, -2, leaf["first_child"], frontier, pricing, rules)


@jit
def _apply_merge(target: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    node = frontier.nodes[target]
    at, other, new = node["merged_first"], node["merged_second"], node["merged"]
    step = _push_step(target, frontier)
    step["gain"], step["leaf"], step["other"] = node["merge_gain"], at, other
    step["variable"], step["state"], step["first_new"], step["n_new"] = -1, 0, new, 1
    _unlink(at, frontier)
    _unlink(other, frontier)
    link(new, frontier)
    node["merged"] = -1
    _leaves_changed(target, at, other, new, frontier, pricing, rules)


@jit
def merge_is_ready(node: Any, leaves: Array) -> bool:
    """Whether the leaf that the node's best merge makes is there."""
    first = node["merge_leaf"]
    return node["merged"] >= 0 and node["merged_first"] == first and node["merged_second"] == leaves[first]["partner"]


@jit
def _run_node(target: int, least: float, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """Apply the node's best operators, as long as what they make is there and they gain `least`."""
    node = frontier.nodes[target]
    while frontier.totals[N_STEPS] < frontier.steps.shape[0] and (rules.runs_ahead or node["first_pending"] < 0):
        if node["best_kind"] == NOTHING or node["best_gain"] < least:
            return
        if node["best_kind"] == SPLIT:
            leaf = frontier.leaves[node["split_leaf"]]
            if leaf["first_child"] < 0 or is_stale(leaf, pricing):
                return
            _apply_split(node["split_leaf"], frontier, pricing, rules)
        else:
            if not merge_is_ready(node, frontier.leaves):
                return
            _apply_merge(target, frontier, pricing, rules)


@jit
def _roll_back(target: int, first: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """Undo the node's pending steps, the last first, down to the given one."""
    node = frontier.nodes[target]
    number = -1
    while number != first:
        number = node["last_pending"]
        step = frontier.steps[number]
        for new in range(step["first_new"] + step["n_new"] - 1, step["first_new"] - 1, -1):
            _unlink(new, frontier)
        if step["other"] >= 0:
            _relink(step["other"], frontier)
            drop(step["first_new"], 1, frontier)
        _relink(step["leaf"], frontier)
        node["last_pending"] = step["previous"]
    if node["last_pending"] >= 0:
        frontier.steps[node["last_pending"]]["next"] = -1
    else:
        node["first_pending"] = -1
    if node["merged"] >= 0:
        drop(node["merged"], 1, frontier)
        node["merged"] = -1
    node["merges_known"] = 0
    _leaves_changed(target, -2, -2, -1, frontier, pricing, rules)


@jit
def roll_back(target: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """Undo all pending steps of a node."""
    if frontier.nodes[target]["first_pending"] >= 0:
        _roll_back(target, frontier.nodes[target]["first_pending"], frontier, pricing, rules)


@jit
def drop_children(batch: Array, frontier: Frontier) -> None:
    """Give up what was counted ahead for these leaves."""
    for b in range(batch.shape[0]):
        leaf = frontier.leaves[batch[b]]
        if leaf["first_child"] >= 0:
            drop(leaf["first_child"], leaf["n_children"], frontier)
            leaf["first_child"] = -1


@jit
def _forbid(target: int, variable: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """The target's graph may not test the variable from now on."""
    pricing.allowed[target, variable] = 0
    pending = frontier.nodes[target]["first_pending"]
    while pending >= 0:
        if frontier.steps[pending]["variable"] == variable:
            _roll_back(target, pending, frontier, pricing, rules)
            return
        pending = frontier.steps[pending]["next"]


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
            while fresh != np.uint64(0):
                _forbid(w * 64 + lowest(fresh), below, frontier, pricing, rules)
                fresh &= fresh - np.uint64(1)
    frontier.is_parent[child, parent] = 1
    frontier.nodes[child]["n_parents"] += 1
    if frontier.nodes[child]["n_parents"] >= rules.most_parents:
        for variable in range(n):
            pricing.allowed[child, variable] &= frontier.is_parent[child, variable]


@jit
def _commit(target: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> None:
    """The node's first pending step is now a step of the search."""
    node = frontier.nodes[target]
    number = node["first_pending"]
    step = frontier.steps[number]
    frontier.committed[frontier.totals[N_COMMITTED]] = number
    frontier.totals[N_COMMITTED] += 1
    node["first_pending"] = step["next"]
    if step["next"] >= 0:
        frontier.steps[step["next"]]["previous"] = -1
    else:
        node["last_pending"] = -1
    node["n_committed_leaves"] += step["n_new"] - 1 - (step["other"] >= 0)
    if step["other"] >= 0:
        step["new_arc"] = 0
        drop(step["leaf"], 1, frontier)
        drop(step["other"], 1, frontier)
        return
    frontier.leaves[step["leaf"]]["first_child"] = -1  # the children live on
    drop(step["leaf"], 1, frontier)
    step["new_arc"] = not frontier.is_parent[target, step["variable"]]
    if step["new_arc"]:
        add_arc(step["variable"], target, frontier, pricing, rules)


@jit
def _best_next(nodes: Array, targets: Array, steps: Array, splits_first: bool) -> tuple[int, float]:
    """The node whose next step (pending, or else its best operator) is the best of all, and its gain; -1 if none gains."""
    split, split_gain, merge, gain_of_merge = -1, 0.0, -1, 0.0
    for k in range(targets.shape[0]):
        node = nodes[targets[k]]
        pending = node["first_pending"]
        if pending >= 0:
            gain = steps[pending]["gain"]
            is_merge = steps[pending]["other"] >= 0
        else:
            gain = node["best_gain"]
            is_merge = node["best_kind"] == MERGE
        if not is_merge and gain > split_gain + TIE:
            split, split_gain = targets[k], gain
        elif is_merge and gain > gain_of_merge + TIE:
            merge, gain_of_merge = targets[k], gain
    if merge >= 0 and (split < 0 or (not splits_first and gain_of_merge > split_gain + TIE)):
        return merge, gain_of_merge
    return split, split_gain


@jit
def commit(n_steps: int, frontier: Frontier, pricing: Pricing, rules: Rules) -> int:
    """Commit best steps until there are n_steps (FULL), none gains (FINISHED), or counts are missing (HUNGRY)."""
    while frontier.totals[N_COMMITTED] < n_steps:
        target, gain = _best_next(frontier.nodes, frontier.targets, frontier.steps, rules.splits_first)
        if target < 0:
            return FINISHED
        node = frontier.nodes[target]
        if node["first_pending"] < 0:
            _run_node(target, gain, frontier, pricing, rules)
            if node["first_pending"] < 0:
                return HUNGRY
        is_merge = frontier.steps[node["first_pending"]]["other"] >= 0
        _commit(target, frontier, pricing, rules)
        if is_merge and rules.stop_at_merge:
            return MERGED
    return FULL


@jit
def look_ahead(
    share: float, out: Array, frontier: Frontier, pricing: Pricing, rules: Rules
) -> tuple[int, int, int]:
    """Let nodes run ahead, and say what they need to run on, where operators gain a share of what the next step does.

    `out` has three rows: leaves to price again, leaves whose best split is to be counted, nodes whose best merge is to
    be made. Returns how many of each. A split of a leaf that may be merged before its turn comes is not counted ahead.
    """
    least = share * _best_next(frontier.nodes, frontier.targets, frontier.steps, rules.splits_first)[1]
    n_stale, n_split, n_merge = 0, 0, 0
    for k in range(frontier.targets.shape[0]):
        target = frontier.targets[k]
        node = frontier.nodes[target]
        if node["best_kind"] == NOTHING or node["best_gain"] < least:
            continue
        _run_node(target, least, frontier, pricing, rules)
        if node["best_kind"] == MERGE and node["best_gain"] >= least:
            if not merge_is_ready(node, frontier.leaves):
                out[2, n_merge] = target
                n_merge += 1
        at = node["head"]
        while at >= 0 and node["best_kind"] == SPLIT:
            leaf = frontier.leaves[at]
            if leaf["gain"] > 0.0 and leaf["gain"] >= least:
                if is_stale(leaf, pricing):
                    out[0, n_stale] = at
                    n_stale += 1
                elif leaf["first_child"] < 0 and (at == node["split_leaf"] or not rules.merge):
                    out[1, n_split] = at
                    n_split += 1
            at = leaf["next"]
    return n_stale, n_split, n_merge
