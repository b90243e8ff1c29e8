"""Scores under a prior network: the exponents of a leaf and of its would-be children come from the host.

They are laid out like the leaf's histogram, whose last row is the leaf itself. Zero marks what cannot occur.
"""

import math
from typing import Any

import numpy as np

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.leaf_search.expand import Scratch
from leafwise.kernels.leaf_search.operators import choose_split
from leafwise.kernels.leaf_search.own_values import WHOLE, Block, begin_pieces, score_pieces
from leafwise.kernels.leaf_search.splits import (
    clear_split,
    histogram_of,
    is_tested,
    may_test,
    offer,
    threshold_of,
    threshold_of_tested,
)
from leafwise.kernels.leaf_search.state import (
    BELOW,
    BELOW_OR_MISSING,
    COMPLETE,
    N_SLOTS,
    ONE_STATE,
    TESTED,
    UNTESTED,
    State,
)


@part
def log_likelihood(counts: Array, exponents: Array) -> float:
    """Return Equation 5 for one leaf. Zero exponents belong to impossible states and do not count."""
    total_count, total_exponent, value = 0.0, 0.0, 0.0
    for k in range(counts.shape[0]):
        if exponents[k] > 0.0:
            total_count += counts[k]
            total_exponent += exponents[k]
            if counts[k] > 0:
                value += math.lgamma(counts[k] + exponents[k]) - math.lgamma(exponents[k])
    if total_count == 0.0:
        return 0.0
    return value + math.lgamma(total_exponent) - math.lgamma(total_count + total_exponent)


@jit
def log_likelihoods(counts: Array, exponents: Array) -> Array:
    """Return Equation 5 for many leaves, one row each."""
    out = np.empty(counts.shape[0])
    for row in range(counts.shape[0]):
        out[row] = log_likelihood(counts[row], exponents[row])
    return out


@jit
def log_likelihoods_of(widths: Array, counts: Array, exponents: Array) -> Array:
    """Return Equation 5 for leaves with `widths` states each, stored one after the other."""
    out, begin = np.empty(widths.shape[0]), 0
    for leaf in range(widths.shape[0]):
        end = begin + widths[leaf]
        out[leaf] = log_likelihood(counts[begin:end], exponents[begin:end])
        begin = end
    return out


@part
def _two(gain: float, chosen: Array, cells: Array, weights: Array, n_classes: int) -> float:
    """Return `gain` plus Equation 5 for the chosen states and for the others; -inf if one of them has no cases.

    Both are summed: with weighted cases, the difference from the leaf would not be exactly 0 where there are none.
    """
    counts, exponents = np.zeros((2, n_classes)), np.zeros((2, n_classes))
    for state in range(chosen.shape[0]):
        side = np.int64(chosen[state])
        for k in range(n_classes):
            counts[side, k] += cells[state * n_classes + k]
            exponents[side, k] += weights[state * n_classes + k]
    if counts[0].sum() == 0 or counts[1].sum() == 0:
        return -np.inf
    return gain + log_likelihood(counts[1], exponents[1]) + log_likelihood(counts[0], exponents[0])


@part
def _score_variable(
    split: Any,
    leaf: Any,
    variable: int,
    cells: Array,
    weights: Array,
    n_classes: int,
    most: int,
    state: State,
) -> None:
    """Offer all splits on one variable, from its blocks of the histogram and of the weights."""
    scoring = state.scoring
    r, before = scoring.layout.n_states[variable], leaf["log_likelihood"] + scoring.log_ways[variable]
    per_child = (n_classes - 1) * scoring.log_kappa
    n_seen, n_possible, after = 0, 0, 0.0
    for value in range(r):
        here = slice(value * n_classes, (value + 1) * n_classes)
        n_seen += cells[here].sum() > 0
        n_possible += weights[here].sum() > 0.0
        after += log_likelihood(cells[here], weights[here])
    if n_seen < 2:
        return
    if scoring.complete:
        gain = after - before + (n_possible - 1) * per_child
        offer(split, gain, variable, np.int64(COMPLETE), np.int64(0), n_possible, most)
    chosen, two = np.zeros(r, np.bool_), np.int64(2)
    if scoring.binary:
        for value in range(r):
            chosen[:], chosen[value] = False, True
            gain = _two(per_child - before, chosen, cells, weights, n_classes)
            offer(split, gain, variable, np.int64(ONE_STATE), np.int64(value), two, most)
    n_ordered = scoring.n_ordered[variable]
    if scoring.ordered and n_ordered > 2:
        for side in range(1 if n_ordered == r else 2):
            chosen[:], chosen[r - 1] = False, side == 1
            for value in range(1, n_ordered if n_ordered == r or side == 1 else n_ordered + 1):
                chosen[value - 1] = True
                gain = _two(per_child - before, chosen, cells, weights, n_classes)
                kind = np.int64(BELOW_OR_MISSING if side == 1 else BELOW)
                offer(split, gain, variable, kind, np.int64(value), two, most)


@jit
def score_by_weights(
    batch: Array, begin: int, end: int, weights: Array, starts: Array, state: State, scratch: Scratch
) -> None:
    """Find the best splits of leaves batch[begin:end]; the weights of batch[b] begin at starts[b]."""
    state = refer(state)
    layout, pieces = state.scoring.layout, refer(scratch).scoring.own
    for b in range(begin, end):
        at = batch[b]
        leaf = state.leaves[at]
        target = leaf["target"]
        node, which, n_classes = state.nodes[target], layout.of_target[target], layout.n_states[target]
        size = layout.n_rows[which] * n_classes
        cells = weights[starts[b] : starts[b + 1]]
        counts = histogram_of(leaf, state) * state.scoring.rises.unit
        totals, own = counts[size:], cells[size:]
        for k in range(n_classes):
            state.scoring.counts[leaf["counts"] + k] = state.pool.cells[leaf["histogram"] + size + k]
        histogram = histogram_of(leaf, state)
        begin_pieces(leaf, histogram[size:], own, state.scoring, pieces)
        leaf["log_likelihood"] = log_likelihood(totals, own) if leaf["states"] == 0 else pieces.values[WHOLE]
        leaf["max_children"], leaf["version"] = node["max_children"], node["version"]
        for slot in range(N_SLOTS):
            scoring = state.scoring
            threshold, tested = threshold_of(leaf, node, scoring), threshold_of_tested(leaf, node, scoring)
            clear_split(state.splits[N_SLOTS * at + slot], tested if slot == TESTED else threshold)
        for entry in range(layout.start[which], layout.start[which + 1]):
            variable = layout.variables[entry]
            if may_test(target, variable, state.scoring):
                slot = TESTED if is_tested(target, variable, state.tested) else UNTESTED
                first = layout.bases[entry] * n_classes
                last = first + layout.n_states[variable] * n_classes
                split = state.splits[N_SLOTS * at + slot]
                if pieces.n[0] == 0:
                    _score_variable(
                        split,
                        leaf,
                        variable,
                        counts[first:last],
                        cells[first:last],
                        n_classes,
                        node["max_children"],
                        state,
                    )
                else:
                    block = Block(
                        variable,
                        histogram,
                        first,
                        histogram[size:],
                        cells,
                        first,
                        pieces.no_weights,
                        np.int64(0),
                        False,
                        False,
                    )
                    score_pieces(split, leaf, block, node["max_children"], state.scoring, pieces)
        choose_split(at, node, state)
