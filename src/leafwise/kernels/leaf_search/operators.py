"""Best operators of each node, given what its leaves store: splits, and merges of two leaves."""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.leaf_search.own_values import can_merge, score_merged
from leafwise.kernels.leaf_search.splits import given_back, is_tested, may_test
from leafwise.kernels.leaf_search.state import (
    BLOCK,
    MERGE_STEP,
    N_SLOTS,
    NO_LEAF,
    NOTHING,
    SPLIT_STEP,
    TESTED,
    UNTESTED,
    Scoring,
    State,
)
from leafwise.kernels.scoring.dirichlet import TIE, log_gamma
from leafwise.kernels.scoring.rises import Row, rise_in, row_at


@bare
def best_split(at: Int, state: State) -> Any:
    """Return the leaf's best split."""
    return state.splits[N_SLOTS * at + state.leaves[at]["slot"]]


@bare
def is_stale(at: Int, state: State) -> bool:
    """Return whether the leaf, which gains, is unscored or its split is ruled out; its gain is an upper bound then."""
    leaf = state.leaves[at]
    target = leaf["target"]
    if leaf["max_children"] != state.nodes[target]["max_children"]:
        return True
    variable = best_split(at, state)["variable"]
    if leaf["slot"] == TESTED:
        return False
    return not may_test(target, variable, state.scoring) or is_tested(target, variable, state.tested)


@bare
def choose_split(at: Int, node: Any, state: State) -> None:
    """Set the leaf's gain and slot to the better of its two splits, net of what the node charges for each."""
    leaf = state.leaves[at]
    if leaf["max_children"] < 0:
        return
    leaf["gain"], leaf["slot"] = 0.0, UNTESTED
    back = given_back(leaf, state.scoring)
    for slot in range(UNTESTED + 1):
        split = state.splits[N_SLOTS * at + slot]
        if split["variable"] >= 0:
            gain = split["gain"] - (node["tested_cost"] if slot == TESTED else node["untested_cost"]) + back
            if gain > leaf["gain"] + TIE:
                leaf["gain"], leaf["slot"] = gain, slot


@bare
def _shared_tests(first: Any, second: Any, arcs: Array) -> Int:
    """Count the tests that lead to both leaves."""
    if first["n_tests"] == 1 and second["n_tests"] == 1:
        return np.int64(first["test"] == second["test"])
    a, b, n = 0, 0, np.int64(0)
    while a < first["n_tests"] and b < second["n_tests"]:
        one = first["test"] if first["n_tests"] == 1 else arcs[first["tests"] + a]
        two = second["test"] if second["n_tests"] == 1 else arcs[second["tests"] + b]
        n += one == two
        a += one <= two
        b += two <= one
    return n


@bare
def merge_prior(first: Any, second: Any, state: State) -> float:
    """Return the gain in the structure prior from merging two leaves: fewer parameters, but arcs to a shared leaf."""
    scoring = state.scoring
    value = -(first["n_outcomes"] - 1) * scoring.log_kappa
    if scoring.shared_cost != 0.0:
        value -= scoring.shared_cost * (1 - _shared_tests(first, second, state.arcs))
    return value


class _Merging(NamedTuple):
    """What all merges of a node's leaves have in common."""

    n_classes: Int
    has_own_exponents: bool  # exponents differ from leaf to leaf
    cell: Row  # log rising factorials of a cell
    whole: Row  # and of a leaf's total


@inlined
def _merging(target: Int, state: State) -> _Merging:
    scoring, n_classes = state.scoring, state.nodes[target]["n_states"]
    return _Merging(
        n_classes,
        state.exponents.shape[0] > 0 or scoring.equivalent_sample_size > 0.0,
        row_at(scoring.cell_rises[n_classes], scoring.rises),
        row_at(scoring.total_rises[n_classes], scoring.rises),
    )


@bare
def _score_with_own_exponents(first: Any, second: Any, n_classes: Int, scoring: Scoring, exponents: Array) -> float:
    """Return Equation 5 for the union of two leaves whose exponents add up."""
    one, two, counts, n, value = first["counts"], second["counts"], scoring.counts, np.int64(0), 0.0
    a, b, total = first["exponents"], second["exponents"], 0.0
    exponent = first["exponent"] + second["exponent"]
    for k in range(n_classes):
        if exponents.shape[0] > 0:
            exponent = exponents[a + k] + exponents[b + k]
        count = counts[one + k] + counts[two + k]
        n += count
        total += exponent
        if count > 0:
            value += log_gamma(count * scoring.rises.unit + exponent) - log_gamma(exponent)
    return value + log_gamma(total) - log_gamma(n * scoring.rises.unit + total)


@inlined
def _score_merged(first: Any, second: Any, merging: _Merging, scoring: Scoring) -> float:
    """Return Equation 5 for the union of two leaves."""
    one, two, counts, n, value = first["counts"], second["counts"], scoring.counts, np.int64(0), 0.0
    for k in range(merging.n_classes):
        count = counts[one + k] + counts[two + k]
        n += count
        value += rise_in(merging.cell, count, scoring.rises)
    return value - rise_in(merging.whole, n, scoring.rises)


@inlined
def _offer_partners(leaf: Any, first: Int, merging: _Merging, state: State) -> None:
    """Update the leaf's best merge with those among the leaves from `first` on that gain more."""
    scoring, at = state.scoring, first
    while at >= 0:
        other = state.leaves[at]
        if can_merge(leaf, other):
            if leaf["states"] != 0:
                gain = score_merged(leaf, other, state)
            elif merging.has_own_exponents:
                gain = _score_with_own_exponents(leaf, other, merging.n_classes, scoring, state.exponents)
            else:
                gain = _score_merged(leaf, other, merging, scoring)
            most = gain - leaf["log_likelihood"] - other["log_likelihood"]
            most -= (leaf["n_outcomes"] - 1) * scoring.log_kappa
            most += scoring.shared_cost * (min(leaf["n_tests"], other["n_tests"]) - 1)
            if most > leaf["merge_gain"]:  # upper bound: as if all tests that lead to one leaf led to both
                gain += merge_prior(leaf, other, state) - leaf["log_likelihood"] - other["log_likelihood"]
                if gain > leaf["merge_gain"] + TIE:
                    leaf["merge_gain"], leaf["partner"] = gain, at
        at = other["next"]


@bare
def _find_partner(leaf: Any, merging: _Merging, state: State) -> None:
    """Find the leaf's best merge with a later leaf of its node."""
    leaf["merge_gain"], leaf["partner"] = 0.0, -1
    _offer_partners(leaf, leaf["next"], merging, state)


@bare
def _refresh_split(target: int, state: State) -> None:
    """Update the node's best split from its leaves."""
    node = state.nodes[target]
    node["split_gain"] = 0.0
    node["split_leaf"] = -1
    charges = state.scoring.charges_tests or state.scoring.charges_parents
    at = node["head"]
    while at >= 0:
        leaf = state.leaves[at]
        if charges:
            choose_split(at, node, state)
        if leaf["gain"] > node["split_gain"] + TIE:
            node["split_gain"] = leaf["gain"]
            node["split_leaf"] = at
        at = leaf["next"]


@bare
def _refresh_merge(target: int, gone: Int, gone_too: Int, first_new: Int, state: State) -> None:
    """Update the node's best merge after its list of leaves changed.

    `gone` and `gone_too` were removed (NO_LEAF: none), and the leaves from `first_new` on were appended. The gain of a
    merge with a partner that is gone is an upper bound on that with any other, so a new partner is sought only if this
    bound exceeds the node's best merge so far.
    """
    node, merging = state.nodes[target], _merging(target, state)
    node["merge_gain"] = 0.0
    node["merge_leaf"] = -1
    is_new = False
    at = node["head"]
    while at >= 0:
        leaf = state.leaves[at]
        is_new = is_new or at == first_new
        if is_new or not node["merges_known"]:
            _find_partner(leaf, merging, state)
        else:
            if leaf["partner"] == gone or leaf["partner"] == gone_too:
                leaf["partner"] = NO_LEAF
            _offer_partners(leaf, first_new, merging, state)
            if leaf["partner"] == NO_LEAF and leaf["merge_gain"] > node["merge_gain"]:
                _find_partner(leaf, merging, state)
        if leaf["partner"] != NO_LEAF and leaf["merge_gain"] > node["merge_gain"] + TIE:
            node["merge_gain"] = leaf["merge_gain"]
            node["merge_leaf"] = at
        at = leaf["next"]
    node["merges_known"] = 1


@bare
def refresh(target: int, gone: Int, gone_too: Int, first_new: Int, state: State) -> None:
    """Update the node's best operators after its leaves changed; with splits first, a merge only if no split gains."""
    node = state.nodes[target]
    rules = state.rules
    _refresh_split(target, state)
    if node["split_gain"] == np.inf:  # some leaf is unscored, perhaps even uncounted
        node["merges_known"] = 0
    elif rules.merge and (node["merges_known"] or not rules.splits_first or node["split_leaf"] < 0):
        _refresh_merge(target, gone, gone_too, first_new, state)
    node["best_kind"], node["best_gain"] = NOTHING, 0.0
    if node["split_leaf"] >= 0:
        node["best_kind"], node["best_gain"] = SPLIT_STEP, node["split_gain"]
        if rules.splits_first:
            return
    if rules.merge and node["merge_gain"] > node["best_gain"] + TIE:
        node["best_kind"], node["best_gain"] = MERGE_STEP, node["merge_gain"]


@bare
def refresh_node(target: int, state: State) -> None:
    """Update the node's best operators after gains changed."""
    refresh(target, np.int64(NO_LEAF), np.int64(NO_LEAF), np.int64(-1), state)


@bare
def note_next(target: int, state: State) -> None:
    """Publish the gain of the node's next step: its first pending step, or else its best operator."""
    node = state.nodes[target]
    gain, is_merge, test = node["best_gain"], node["best_kind"] == MERGE_STEP, np.int64(-1)
    if node["first_pending"] >= 0:
        step = state.steps[node["first_pending"]]
        gain, is_merge, test = step["gain"], step["other"] >= 0, step["variable"]
    elif node["split_leaf"] >= 0:
        test = best_split(node["split_leaf"], state)["variable"]
    state.next_tests[target] = test
    state.next_gains[0, target] = 0.0 if is_merge else gain
    state.next_gains[1, target] = gain if is_merge else 0.0


@bare
def note_most(target: int, state: State) -> None:
    """Update the maxima of the node's block, after its next gain changed."""
    block = target // BLOCK
    for kind in range(2):
        most = 0.0
        for other in range(block * BLOCK, min(block * BLOCK + BLOCK, state.nodes.shape[0])):
            most = max(most, state.next_gains[kind, other])
        state.most_gains[kind, block] = most


@bare
def refresh_all(state: State) -> None:
    """Update and publish the best operators of all nodes, after leaves were scored."""
    for k in range(state.targets.shape[0]):
        refresh_node(state.targets[k], state)
        note_next(state.targets[k], state)
        note_most(state.targets[k], state)


@bare
def _best_of(gains: Array, most: Array) -> tuple[int, float]:
    """Return the node whose next step gains most (the first of a tie) and its gain; node -1 if none gains."""
    best, best_gain = -1, 0.0
    for block in range(most.shape[0]):
        if most[block] > best_gain + TIE:
            for target in range(block * BLOCK, min(block * BLOCK + BLOCK, gains.shape[0])):
                if gains[target] > best_gain + TIE:
                    best, best_gain = target, gains[target]
    return best, best_gain


@bare
def best_next(state: State) -> tuple[int, float]:
    """Return the node whose next step, split or merge, is the best of all, and its gain; node -1 if none gains."""
    split, gain = _best_of(state.next_gains[0], state.most_gains[0])
    if split >= 0 and state.rules.splits_first:
        return split, gain
    merge, gain_of_merge = _best_of(state.next_gains[1], state.most_gains[1])
    if merge >= 0 and (split < 0 or gain_of_merge > gain + TIE):
        return merge, gain_of_merge
    return split, gain
