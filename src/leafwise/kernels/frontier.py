"""The sequential part of greedy search: nodes run ahead on their own, and the best next steps are committed in order.

What a node does next depends on other nodes in one way only: an arc elsewhere can rule out a variable. So a node may
apply its own best operators ahead of time. These steps are *pending*; `advance` commits, again and again, the pending
step with the largest gain of all nodes, which is exactly the sequential search. Where a committed arc rules out the
variable of a pending split, the node is rolled back to before it.

Ties (gains closer than TIE) go to splits before merges, the smaller target, the older leaf, then as in `gains`.
"""

from typing import Any

import numpy as np

from leafwise.kernels.arrays import Array, Int
from leafwise.kernels.gains import TIE
from leafwise.kernels.jit import jit, part
from leafwise.kernels.nodes import (
    FINISHED,
    FULL,
    HUNGRY,
    MERGE,
    MERGED,
    N_COMMITTED,
    N_STEPS,
    NO_LEAF,
    NOTHING,
    SPLIT,
    Frontier,
    drop,
    free_histogram,
    is_stale,
    link,
    refresh,
    refresh_all,
    relink,
    unlink,
)
from leafwise.kernels.words import lowest


@part
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


@part
def _leaves_changed(target: int, gone: Int, gone_too: Int, first_new: Int, frontier: Frontier) -> None:
    node = frontier.nodes[target]
    room = max(0, min(frontier.rules.most_leaves - node["n_leaves"] + 1, frontier.rules.most_children))
    node["room"] = room
    if frontier.rules.limits_leaves:
        at = node["head"]
        while at >= 0:
            leaf = frontier.leaves[at]
            if leaf["room"] < room:  # priced when there was less room: its gain is no upper bound
                leaf["gain"] = np.inf
            at = leaf["next"]
    refresh(target, gone, gone_too, first_new, frontier)
    one, two = node["merged_first"], node["merged_second"]
    if node["merged"] >= 0 and (one == gone or two == gone or one == gone_too or two == gone_too):
        drop(node["merged"], 1, frontier)
        node["merged"] = -1


@part
def _apply_split(at: int, frontier: Frontier) -> None:
    leaf = frontier.leaves[at]
    step = _push_step(leaf["target"], frontier)
    step["gain"], step["leaf"], step["other"] = leaf["gain"], at, -1
    step["variable"], step["state"] = leaf["variable"], leaf["state"]
    step["first_new"], step["n_new"] = leaf["first_child"], leaf["n_children"]
    unlink(at, frontier)
    free_histogram(leaf, frontier)
    for child in range(leaf["first_child"], leaf["first_child"] + leaf["n_children"]):
        link(child, frontier)
    _leaves_changed(leaf["target"], at, np.int64(NO_LEAF), leaf["first_child"], frontier)


@part
def _apply_merge(target: int, frontier: Frontier) -> None:
    node = frontier.nodes[target]
    at, other, new = node["merged_first"], node["merged_second"], node["merged"]
    step = _push_step(target, frontier)
    step["gain"], step["leaf"], step["other"] = node["merge_gain"], at, other
    step["variable"], step["state"], step["first_new"], step["n_new"] = -1, 0, new, 1
    for gone in (at, other):
        unlink(gone, frontier)
        free_histogram(frontier.leaves[gone], frontier)
    link(new, frontier)
    node["merged"] = -1
    _leaves_changed(target, at, other, new, frontier)


@part
def _merge_is_ready(node: Any, leaves: Array) -> bool:
    """Whether the leaf that the node's best merge makes is there."""
    first = node["merge_leaf"]
    return node["merged"] >= 0 and node["merged_first"] == first and node["merged_second"] == leaves[first]["partner"]


@part
def _run_node(target: int, least: float, frontier: Frontier) -> None:
    """Apply the node's best operators, as long as what they make is there and they gain `least`."""
    node = frontier.nodes[target]
    while frontier.totals[N_STEPS] < frontier.steps.shape[0] and (
        frontier.rules.runs_ahead or node["first_pending"] < 0
    ):
        if node["best_kind"] == NOTHING or node["best_gain"] < least:
            return
        if node["best_kind"] == SPLIT:
            leaf = frontier.leaves[node["split_leaf"]]
            if leaf["first_child"] < 0 or is_stale(leaf, frontier):
                return
            _apply_split(node["split_leaf"], frontier)
        else:
            if not _merge_is_ready(node, frontier.leaves):
                return
            _apply_merge(target, frontier)


@part
def _roll_back(target: int, first: int, frontier: Frontier) -> None:
    """Undo the node's pending steps, the last first, down to the given one."""
    node = frontier.nodes[target]
    number = -1
    while number != first:
        number = node["last_pending"]
        step = frontier.steps[number]
        for new in range(step["first_new"] + step["n_new"] - 1, step["first_new"] - 1, -1):
            unlink(new, frontier)
        if step["other"] >= 0:
            relink(step["other"], frontier)
            drop(step["first_new"], 1, frontier)
        relink(step["leaf"], frontier)
        node["last_pending"] = step["previous"]
    if node["last_pending"] >= 0:
        frontier.steps[node["last_pending"]]["next"] = -1
    else:
        node["first_pending"] = -1
    if node["merged"] >= 0:
        drop(node["merged"], 1, frontier)
        node["merged"] = -1
    node["merges_known"] = 0
    _leaves_changed(target, np.int64(NO_LEAF), np.int64(NO_LEAF), np.int64(-1), frontier)


@jit
def add_arcs(arcs: Array, frontier: Frontier) -> None:
    """Put arcs (rows of parent, child) in place that a search begins with."""
    for k in range(arcs.shape[0]):
        _add_arc(arcs[k, 0], arcs[k, 1], frontier)


@jit
def roll_back(target: int, frontier: Frontier) -> None:
    """Undo all pending steps of a node."""
    if frontier.nodes[target]["first_pending"] >= 0:
        _roll_back(target, frontier.nodes[target]["first_pending"], frontier)


@part
def _forbid(target: int, variable: int, frontier: Frontier) -> None:
    """The target's graph may not test the variable from now on."""
    frontier.allowed[target, variable] = 0
    pending = frontier.nodes[target]["first_pending"]
    while pending >= 0:
        if frontier.steps[pending]["variable"] == variable:
            _roll_back(target, pending, frontier)
            return
        pending = frontier.steps[pending]["next"]


@part
def _add_arc(parent: int, child: int, frontier: Frontier) -> None:
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
                _forbid(w * 64 + lowest(fresh), below, frontier)
                fresh &= fresh - np.uint64(1)
    frontier.is_parent[child, parent] = 1
    frontier.nodes[child]["n_parents"] += 1
    if frontier.nodes[child]["n_parents"] >= frontier.rules.most_parents:
        for variable in range(n):
            frontier.allowed[child, variable] &= frontier.is_parent[child, variable]


@part
def _commit(target: int, frontier: Frontier) -> None:
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
        _add_arc(step["variable"], target, frontier)


@part
def _best_next(nodes: Array, targets: Array, steps: Array, splits_first: bool) -> tuple[int, float]:
    """The node whose next step (pending, or else its best operator) is the best, and its gain; -1 if none gains."""
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


@part
def _commit_all(n_steps: int, frontier: Frontier) -> int:
    """Commit best steps until there are n_steps (FULL), none gains (FINISHED), or the best is not pending (HUNGRY)."""
    while frontier.totals[N_COMMITTED] < n_steps:
        target, _ = _best_next(frontier.nodes, frontier.targets, frontier.steps, frontier.rules.splits_first)
        if target < 0:
            return FINISHED
        node = frontier.nodes[target]
        if node["first_pending"] < 0:
            return HUNGRY
        is_merge = frontier.steps[node["first_pending"]]["other"] >= 0
        _commit(target, frontier)
        if is_merge and frontier.rules.stop_at_merge:
            return MERGED
    return FULL


@part
def _look_ahead(share: float, out: Array, frontier: Frontier) -> tuple[int, int, int]:
    """Let nodes run ahead, and say what they need to run on, where operators gain a share of what the next step does.

    A split of a leaf that may be merged before its turn comes is not counted ahead.
    """
    least = share * _best_next(frontier.nodes, frontier.targets, frontier.steps, frontier.rules.splits_first)[1]
    n_stale, n_split, n_merge = 0, 0, 0
    for k in range(frontier.targets.shape[0]):
        target = frontier.targets[k]
        node = frontier.nodes[target]
        if node["best_kind"] == NOTHING or node["best_gain"] < least:
            continue
        _run_node(target, least, frontier)
        if node["best_kind"] == MERGE and node["best_gain"] >= least and not _merge_is_ready(node, frontier.leaves):
            out[2, n_merge] = target
            n_merge += 1
        at = node["head"] if node["best_kind"] == SPLIT else -1
        while at >= 0:
            leaf = frontier.leaves[at]
            if leaf["gain"] > 0.0 and leaf["gain"] >= least:
                if is_stale(leaf, frontier):
                    out[0, n_stale] = at
                    n_stale += 1
                elif leaf["first_child"] < 0 and (at == node["split_leaf"] or not frontier.rules.merge):
                    out[1, n_split] = at
                    n_split += 1
            at = leaf["next"]
    return n_stale, n_split, n_merge


@jit
def advance(n_steps: int, share: float, priced: bool, out: Array, frontier: Frontier) -> tuple[int, int, int, int]:
    """Commit steps until there are n_steps (FULL), none gains (FINISHED), or something must be counted first (HUNGRY).

    With HUNGRY come the numbers of entries in the three rows of `out`: leaves to price again, leaves whose best split
    is to be counted, nodes whose best merge is to be made. `priced`: leaves were priced since the last call.
    """
    if priced:
        refresh_all(frontier)
    while True:
        status = _commit_all(n_steps, frontier)
        if status != HUNGRY:
            return status, 0, 0, 0
        n_stale, n_split, n_merge = _look_ahead(share, out, frontier)
        target, _ = _best_next(frontier.nodes, frontier.targets, frontier.steps, frontier.rules.splits_first)
        if frontier.nodes[target]["first_pending"] < 0:
            return HUNGRY, n_stale, n_split, n_merge
