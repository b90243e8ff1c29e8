"""Fallback splits: what a leaf will split on if another node's arc rules out its best variable.

Two nodes that want to test each other cannot both do so. The one with the smaller gain will lose, and leaves made for
its best split would be wasted. It therefore prepares its next best split, while its best split keeps its place in the
order of steps until the conflict is decided.
"""

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Int
from leafwise.kernels.leaf_search.expand import Scratch, has_histogram
from leafwise.kernels.leaf_search.leaf_lists import drop_children_of, drop_fallback
from leafwise.kernels.leaf_search.operators import best_split, choose_split
from leafwise.kernels.leaf_search.splits import copy_split, given_back, may_test, score_splits
from leafwise.kernels.leaf_search.state import FALLBACK, N_SLOTS, TESTED, UNTESTED, State
from leafwise.kernels.scoring.dirichlet import TIE


@inlined
def is_contested(at: Int, state: State) -> bool:
    """Return whether the node of the leaf's best variable is about to test the leaf's own target, and comes first."""
    leaf, variable = state.leaves[at], best_split(at, state)["variable"]
    target = leaf["target"]
    lead = state.next_gains[0, variable] - leaf["gain"]
    comes_first = lead > TIE or (lead >= 0.0 and variable < target)
    is_new = leaf["slot"] == UNTESTED and not state.is_parent[target, variable]
    return is_new and comes_first and state.next_tests[variable] == target


@bare
def slot_to_prepare(at: Int, least: float, state: State, scratch: Scratch) -> Int:
    """Return which other split to prepare for a leaf whose best is contested; -1: none gains `least`, or it is done."""
    leaf, fallback, old = state.leaves[at], state.splits[N_SLOTS * at + FALLBACK], state.splits[N_SLOTS * at + TESTED]
    target, contested, none = leaf["target"], best_split(at, state)["variable"], np.int64(-1)
    node = state.nodes[target]
    if leaf["excluded"] != contested:
        if not has_histogram(leaf, state, scratch):
            return none
        drop_children_of(fallback, state)
        state.scoring.allowed[target, contested] = 0
        score_splits(at, FALLBACK, -1, state, scratch.scoring)
        state.scoring.allowed[target, contested] = 1
        leaf["excluded"] = contested
    back = given_back(leaf, state.scoring)
    gain = fallback["gain"] - node["untested_cost"] + back if fallback["variable"] >= 0 else 0.0
    gain_of_old = old["gain"] - node["tested_cost"] + back if old["variable"] >= 0 else 0.0
    slot, split = np.int64(FALLBACK), fallback
    if gain <= gain_of_old + TIE:
        slot, split, gain = np.int64(TESTED), old, gain_of_old
    if gain <= 0.0 or gain < least or split["first_child"] >= 0:
        return none
    return slot


@bare
def take_fallback(at: Int, state: State) -> bool:
    """Replace the best split by the fallback if only the former has been ruled out; return whether it was replaced."""
    leaf, split, fallback = (
        state.leaves[at],
        state.splits[N_SLOTS * at + UNTESTED],
        state.splits[N_SLOTS * at + FALLBACK],
    )
    target, node = leaf["target"], state.nodes[leaf["target"]]
    is_known = leaf["slot"] == UNTESTED and leaf["excluded"] == split["variable"] >= 0
    if (
        not is_known
        or leaf["max_children"] != node["max_children"]
        or may_test(target, leaf["excluded"], state.scoring)
        or (fallback["variable"] >= 0 and not may_test(target, fallback["variable"], state.scoring))
    ):
        return False
    drop_children_of(split, state)
    copy_split(fallback, split)
    drop_fallback(at, state)
    choose_split(at, node, state)
    return True
