"""Steps of one node: its best operator is applied ahead of time, and undone where it turns out to be ruled out."""

from typing import Any

import numpy as np

from leafwise.kernels.arrays import Array, Int
from leafwise.kernels.atomics import add
from leafwise.kernels.gains import may_test
from leafwise.kernels.jit import bare, inlined
from leafwise.kernels.nodes import (
    MERGE,
    N_STEPS,
    NO_LEAF,
    SPLIT,
    Frontier,
    drop,
    drop_merged,
    free_histogram,
    is_stale,
    link,
    refresh,
    relink,
    unlink,
)


@bare
def _push_step(target: int, frontier: Frontier) -> Any:
    node = frontier.nodes[target]
    number = add(frontier.totals, N_STEPS, np.int64(1))
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


@bare
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
    if one == gone or two == gone or one == gone_too or two == gone_too:
        drop_merged(node, frontier)


@inlined
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


@inlined
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


@inlined
def _merge_is_ready(node: Any, leaves: Array) -> bool:
    """Whether the leaf that the node's best merge makes is there."""
    first = node["merge_leaf"]
    return node["merged"] >= 0 and node["merged_first"] == first and node["merged_second"] == leaves[first]["partner"]


@bare
def is_ready(node: Any, frontier: Frontier) -> bool:
    """Whether what the node's best operator makes is there."""
    if node["best_kind"] == MERGE:
        return _merge_is_ready(node, frontier.leaves)
    leaf = frontier.leaves[node["split_leaf"]]
    return leaf["first_child"] >= 0 and not is_stale(leaf, frontier)


@bare
def apply_best(target: int, frontier: Frontier) -> None:
    """Apply the node's best operator; what it makes is there."""
    if frontier.nodes[target]["best_kind"] == SPLIT:
        _apply_split(frontier.nodes[target]["split_leaf"], frontier)
    else:
        _apply_merge(target, frontier)


@bare
def roll_back(target: int, first: int, frontier: Frontier) -> None:
    """Undo the node's pending steps, the last first, down to the given one; what comes next is not noted here."""
    node = frontier.nodes[target]
    number = -1
    while number != first:
        number = node["last_pending"]
        step = frontier.steps[number]
        for new in range(step["first_new"] + step["n_new"] - 1, step["first_new"] - 1, -1):
            unlink(new, frontier)
        if step["other"] >= 0:
            relink(step["other"], frontier)
            drop(step["first_new"], np.int64(1), frontier)
        relink(step["leaf"], frontier)
        node["last_pending"] = step["previous"]
    if node["last_pending"] >= 0:
        frontier.steps[node["last_pending"]]["next"] = -1
    else:
        node["first_pending"] = -1
    drop_merged(node, frontier)
    node["merges_known"] = 0
    _leaves_changed(target, np.int64(NO_LEAF), np.int64(NO_LEAF), np.int64(-1), frontier)


@bare
def is_ruled_out(step: Any, frontier: Frontier) -> bool:
    """Whether an arc that was committed after the step was applied forbids it."""
    return step["other"] < 0 and not may_test(step["target"], step["variable"], frontier.pricing)


@inlined
def settle_doubts(target: int, frontier: Frontier) -> None:
    """Undo the node's pending steps from the first that is ruled out."""
    frontier.is_doubted[target] = 0
    pending = frontier.nodes[target]["first_pending"]
    while pending >= 0:
        if is_ruled_out(frontier.steps[pending], frontier):
            roll_back(target, pending, frontier)
            return
        pending = frontier.steps[pending]["next"]
