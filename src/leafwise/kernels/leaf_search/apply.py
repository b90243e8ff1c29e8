"""Steps of one node: apply its best operator ahead of time, and roll back if it turns out to be ruled out.

The structure prior charges tests by how many variables the graph already tests, so every split changes the gains of all
other splits of the node: by one amount for all that test a tested variable, and by another for all that do not. A
variable that is tested for the first time moves from the second group to the first.
"""

import math
from typing import Any

import numpy as np

from leafwise.kernels.compiling.atomics import atomic_add
from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.leaf_search.expand import Scratch
from leafwise.kernels.leaf_search.leaf_lists import (
    drop,
    drop_children_of,
    drop_fallback,
    drop_merged,
    forget_all_scores,
    forget_scores,
    free_histogram,
    link,
    relink,
    unlink,
)
from leafwise.kernels.leaf_search.operators import best_split, is_stale, merge_prior, refresh
from leafwise.kernels.leaf_search.own_values import n_kids, n_outcomes, part_cost
from leafwise.kernels.leaf_search.splits import copy_split, given_back, is_tested, may_test, score_splits
from leafwise.kernels.leaf_search.state import (
    MERGE_STEP,
    N_SLOTS,
    N_STEPS,
    NO_LEAF,
    SPLIT_STEP,
    TESTED,
    UNTESTED,
    Scoring,
    State,
)
from leafwise.kernels.scoring.dirichlet import TIE


@bare
def _push_step(target: int, state: State) -> Any:
    node = state.nodes[target]
    number = atomic_add(state.totals, N_STEPS, np.int64(1))
    step = state.steps[number]
    step["target"] = target
    step["previous"] = node["last_pending"]
    step["next"] = -1
    if node["last_pending"] >= 0:
        state.steps[node["last_pending"]]["next"] = number
    else:
        node["first_pending"] = number
    node["last_pending"] = number
    return step


@bare
def set_costs(node: Any, scoring: Scoring) -> None:
    """Compute what the structure prior charges for the next test of the node's graph (docs/structure-prior.md)."""
    n, p, tests = node["n_candidates"], node["n_tested"], node["n_tests"]
    node["tested_cost"] = node["untested_cost"] = node["later_cost"] = 0.0
    if scoring.charges_parents and p < n:
        node["untested_cost"] = math.log((p + 3) / (p + 1)) + math.log((n - p) / (p + 1))
    if scoring.charges_tests:
        log_p = math.log(p) if p > 0 else 0.0
        node["tested_cost"] += log_p
        node["later_cost"] += math.log(p + 1)
        node["untested_cost"] += (tests + 1) * math.log(p + 1) - tests * log_p
    node["later_cost"] = min(node["later_cost"], node["untested_cost"])


@bare
def _reset_costs(target: int, state: State) -> None:
    """Recompute costs after a change; if tests of untested variables became cheaper than assumed, unscore all leaves.

    The last candidates are cheap, since few sets leave out only one or two variables.
    """
    node = state.nodes[target]
    expected = node["later_cost"]
    set_costs(node, state.scoring)
    if node["untested_cost"] < expected:
        node["version"] += 1
        forget_all_scores(target, state)


@bare
def _leaves_changed(target: int, gone: Int, gone_too: Int, first_new: Int, state: State) -> None:
    node = state.nodes[target]
    most = max(0, min(state.rules.most_leaves - node["n_leaves"] + 1, state.rules.most_children))
    node["max_children"] = most
    if state.rules.limits_leaves:
        at = node["head"]
        while at >= 0:
            leaf = state.leaves[at]
            if leaf["max_children"] < most:  # scored under a tighter limit: its gain is no upper bound
                leaf["gain"], leaf["max_children"] = np.inf, -1
            at = leaf["next"]
    refresh(target, gone, gone_too, first_new, state)
    one, two = node["merged_first"], node["merged_second"]
    if one == gone or two == gone or one == gone_too or two == gone_too:
        drop_merged(node, state)


@bare
def _offer_tested(at: Int, variable: int, state: State, scratch: Scratch) -> None:
    """Reconsider a leaf's best split on tested variables, after its graph has tested `variable` for the first time.

    A split on it gains at most what the best split on an untested variable gained. A tie goes to the smaller variable,
    as if both had been scored at once.
    """
    leaf, old, new = state.leaves[at], state.splits[N_SLOTS * at + TESTED], state.splits[N_SLOTS * at + UNTESTED]
    drop_fallback(at, state)
    least = old["gain"] + (TIE if variable > old["variable"] else -TIE)
    if leaf["max_children"] < 0 or new["variable"] < 0 or new["gain"] <= least:
        return
    if new["variable"] == variable:
        drop_children_of(old, state)
        copy_split(new, old)
    elif leaf["histogram"] >= 0 and not state.rules.weighs:
        before = old["variable"], old["kind"], old["state"], old["part"], old["piece"]
        first, n = old["first_child"], old["n_children"]
        score_splits(at, TESTED, variable, state, scratch.scoring)
        if before != (old["variable"], old["kind"], old["state"], old["part"], old["piece"]) and first >= 0:
            drop(first, n, state)
            old["first_child"] = -1
    else:
        forget_scores(at, state)


@inlined
def _note_test(target: int, variable: int, state: State, scratch: Scratch) -> bool:
    """Count a new test of the node's graph; return whether it is the first test of its variable."""
    node, scoring = state.nodes[target], state.scoring
    is_first = False
    node["n_tests"] += 1
    if scoring.charges_parents or scoring.charges_tests:
        is_first = not is_tested(target, variable, state.tested)
        if is_first:
            state.tested[target, variable >> 6] |= np.uint64(1) << np.uint64(variable & 63)
            node["n_tested"] += 1
            node["version"] += 1
            at = node["head"]
            while at >= 0:
                if state.leaves[at]["version"] == node["version"] - 1:
                    _offer_tested(at, variable, state, scratch)
                    state.leaves[at]["version"] = node["version"]
                elif state.leaves[at]["max_children"] >= 0:
                    forget_scores(at, state)
                at = state.leaves[at]["next"]
        _reset_costs(target, state)
    return is_first


@bare
def _free_histogram(leaf: Any, state: State) -> None:
    """Release the histogram of a removed leaf, unless recounting it after a rollback would take a round."""
    if not state.rules.remote or state.pool.used[0] > state.pool.too_many:
        free_histogram(leaf, state)


@bare
def _apply_split(at: Int, state: State, scratch: Scratch) -> None:
    leaf, split = state.leaves[at], best_split(at, state)
    target = leaf["target"]
    node = state.nodes[target]
    cost = (node["tested_cost"] if leaf["slot"] == TESTED else node["untested_cost"]) - given_back(leaf, state.scoring)
    step = _push_step(target, state)
    step["gain"], step["leaf"], step["other"] = leaf["gain"], at, -1
    step["variable"], step["kind"], step["state"] = split["variable"], split["kind"], split["state"]
    step["part"], step["piece"] = split["part"], split["piece"]
    step["first_new"], step["n_new"], step["possible"] = split["first_child"], split["n_children"], split["possible"]
    per_child = (n_outcomes(leaf, split, state.scoring) - 1) * state.scoring.log_kappa
    if split["part"] != 0:
        cost += part_cost(leaf, state.scoring)
    step["log_prior"] = (n_kids(split) - 1) * per_child - state.scoring.log_ways[split["variable"]] - cost
    unlink(at, state)
    _free_histogram(leaf, state)
    for child in range(split["first_child"], split["first_child"] + split["n_children"]):
        link(child, state)
    step["is_first_test"] = _note_test(target, split["variable"], state, scratch)
    for child in range(split["first_child"], split["first_child"] + split["n_children"]):
        if state.leaves[child]["version"] != node["version"]:
            forget_scores(child, state)
    _leaves_changed(target, at, np.int64(NO_LEAF), split["first_child"], state)


@inlined
def _apply_merge(target: int, state: State) -> None:
    node = state.nodes[target]
    at, other, new = node["merged_first"], node["merged_second"], node["merged"]
    step = _push_step(target, state)
    step["gain"], step["leaf"], step["other"] = node["merge_gain"], at, other
    step["variable"], step["kind"], step["state"], step["part"], step["possible"] = -1, 0, 0, 0, -1
    step["first_new"], step["n_new"], step["is_first_test"] = new, 1, 0
    step["log_prior"] = merge_prior(state.leaves[at], state.leaves[other], state)
    for gone in (at, other):
        unlink(gone, state)
        _free_histogram(state.leaves[gone], state)
    link(new, state)
    node["merged"] = -1
    if state.leaves[new]["version"] != node["version"]:
        forget_scores(new, state)
    _leaves_changed(target, at, other, new, state)


@inlined
def _merge_is_ready(node: Any, leaves: Array) -> bool:
    """Return whether the union of the node's best merge has been made."""
    first = node["merge_leaf"]
    return node["merged"] >= 0 and node["merged_first"] == first and node["merged_second"] == leaves[first]["partner"]


@bare
def is_ready(node: Any, state: State) -> bool:
    """Return whether the new leaves of the node's best operator have been made."""
    if node["best_kind"] == MERGE_STEP:
        return _merge_is_ready(node, state.leaves)
    at = node["split_leaf"]
    return (
        state.leaves[at]["max_children"] >= 0 and best_split(at, state)["first_child"] >= 0 and not is_stale(at, state)
    )


@bare
def apply_best(target: int, state: State, scratch: Scratch) -> None:
    """Apply the node's best operator, whose new leaves have been made."""
    if state.nodes[target]["best_kind"] == SPLIT_STEP:
        _apply_split(state.nodes[target]["split_leaf"], state, scratch)
    else:
        _apply_merge(target, state)


@bare
def roll_back(target: int, first: int, state: State) -> None:
    """Undo the node's pending steps in reverse order, down to and including `first`; `next_gains` is not updated."""
    node = state.nodes[target]
    number, n_tested = -1, node["n_tested"]
    while number != first:
        number = node["last_pending"]
        step = state.steps[number]
        for new in range(step["first_new"] + step["n_new"] - 1, step["first_new"] - 1, -1):
            unlink(new, state)
        if step["other"] >= 0:
            relink(step["other"], state)
            drop(step["first_new"], np.int64(1), state)
        else:
            node["n_tests"] -= 1
            if step["is_first_test"]:
                variable = step["variable"]
                state.tested[target, variable >> 6] ^= np.uint64(1) << np.uint64(variable & 63)
                node["n_tested"] -= 1
        relink(step["leaf"], state)
        node["last_pending"] = step["previous"]
    if node["last_pending"] >= 0:
        state.steps[node["last_pending"]]["next"] = -1
    else:
        node["first_pending"] = -1
    drop_merged(node, state)
    node["merges_known"] = 0
    if node["n_tested"] < n_tested:  # leaves were scored while more variables were tested
        node["version"] += 1
        forget_all_scores(target, state)
    _reset_costs(target, state)
    _leaves_changed(target, np.int64(NO_LEAF), np.int64(NO_LEAF), np.int64(-1), state)


@bare
def is_ruled_out(step: Any, state: State) -> bool:
    """Return whether an arc that was committed after the step was applied forbids it."""
    return step["other"] < 0 and not may_test(step["target"], step["variable"], state.scoring)


@inlined
def roll_back_invalid(target: int, state: State) -> None:
    """Roll back the node's pending steps from the first one that is ruled out."""
    state.may_be_invalid[target] = 0
    pending = state.nodes[target]["first_pending"]
    while pending >= 0:
        if is_ruled_out(state.steps[pending], state):
            roll_back(target, pending, state)
            return
        pending = state.steps[pending]["next"]
