"""Gains of the splits of a leaf, from its histogram: the difference of Equation 5, and the structure prior.

Ties: candidates are visited in the order variable, complete, one state by state, below a state by state; a later one
wins only by gaining more than TIE over the best so far. Variables that the node's graph already tests come first.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, separate
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import lowest
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.leaf_search.own_values import (
    WHOLE,
    Block,
    OwnScratch,
    begin_pieces,
    bound_pieces,
    make_own_scratch,
    score_pieces,
)
from leafwise.kernels.leaf_search.regions import RegionScratch, find_shares, forget_tested, make_region_scratch
from leafwise.kernels.leaf_search.state import (
    BELOW,
    BELOW_OR_MISSING,
    COMPLETE,
    FALLBACK,
    N_SLOTS,
    ONE_STATE,
    TESTED,
    UNTESTED,
    Scoring,
    State,
)
from leafwise.kernels.scoring.dirichlet import TIE, log_gamma
from leafwise.kernels.scoring.rises import Rises, rise

_TABLE = 1024  # maximum length of a table of rises under BDeu
_FEW, _A_LOOK = 16, 1  # minimum length, and length per state that may be looked up: filling a table takes time
# BDeu: the last rows of a thread's own rises. They follow four rows for each number of states of a candidate.
_OWN_CELL, _OWN_TOTAL, _CELL, _TOTAL, _REST_CELL, _REST_TOTAL = range(6)
N_OWN_ROWS = 6
_NONE, _ALL = -1, -2  # in place of a variable: see score_parted


class ScoringScratch(NamedTuple):
    """Scratch memory of one thread for scoring leaves."""

    rises: Rises  # BDeu: of the leaf and its would-be children; else empty
    region: RegionScratch
    prefix: Array  # the target's counts in a candidate's states below a threshold
    sizes: Array  # by state of a candidate: number of cases
    scores: Array  # by state of a candidate: Equation 5
    own: OwnScratch


def make_scoring_scratch(scoring: Scoring, parts: bool) -> ScoringScratch:
    """Allocate scratch memory to score any leaf, and its pieces if leaves may be parted."""
    n_states = scoring.layout.n_states
    n_rows = 4 * (scoring.arities.max() + 1) + N_OWN_ROWS if scoring.equivalent_sample_size > 0.0 else 0
    rises = Rises(
        np.empty(n_rows * _TABLE),
        np.arange(n_rows) * _TABLE,
        np.zeros(n_rows, np.int64),
        np.zeros(n_rows),
        np.empty(n_rows),
        np.empty(n_rows),
        scoring.rises.unit,
    )
    prefix, sizes = np.empty((2, n_states.max()), np.int64)
    scores, own = np.empty(n_states.max()), make_own_scratch(scoring.layout, parts)
    return ScoringScratch(rises, make_region_scratch(n_states), prefix, sizes, scores, own)


@bare
def may_test(target: int, variable: int, scoring: Scoring) -> bool:
    """Return whether the target's graph may test the variable now."""
    is_below = scoring.descendants[target, variable >> 6] >> np.uint64(variable & 63) & np.uint64(1)
    return scoring.allowed[target, variable] != 0 and is_below == np.uint64(0)


@bare
def is_tested(target: int, variable: int, tested: Array) -> bool:
    """Return whether the target's graph tests the variable."""
    return tested[target, variable >> 6] >> np.uint64(variable & 63) & np.uint64(1) != np.uint64(0)


@bare
def child_of(state: Int, kind: Int, split_state: Int, n_states: Int) -> Int:
    """Return the child to which a split sends a state; a complete split sends every state to its own."""
    if kind == COMPLETE:
        return state
    if kind == ONE_STATE:
        return np.int64(state != split_state)
    return np.int64(state >= split_state and not (kind == BELOW_OR_MISSING and state == n_states - 1))


@bare
def _set_row(row: Int, exponent: float, length: Int, rises: Rises) -> None:
    """Set the exponent of a row, and fill its table up to this length."""
    rises.exponents[row], rises.log_gammas[row], rises.lengths[row] = exponent, log_gamma(exponent), length
    value, start = 0.0, rises.starts[row]
    for count in range(length):
        if rises.unit != 1.0:
            value = log_gamma(count * rises.unit + exponent) - rises.log_gammas[row]
        rises.values[start + count] = value
        value += math.log(exponent + count)


@bare
def _log_likelihood(counts: Array, at: Int, n_classes: Int, n: Int, cell: Any, total: Any, rises: Rises) -> float:
    """Return Equation 5 for the n_classes counts from `at` on, whose sum is n."""
    value = 0.0
    if n < rises.lengths[cell]:
        values, start, base = rises.values, rises.starts[cell], rises.bases[cell]
        for k in range(at, at + n_classes):
            value += values[np.uint64(start + counts[k])] - base
    else:
        for k in range(at, at + n_classes):
            value += rise(cell, counts[k], rises)
    return value - rise(total, n, rises)


@bare
def _log_likelihood_of_rest(
    counts: Array, at: Int, totals: Array, n: Int, cell: Int, total: Int, rises: Rises
) -> float:
    """Return Equation 5 for the totals minus the counts from `at` on; n is the sum of the differences."""
    value = 0.0
    if n < rises.lengths[cell]:
        values, start, base = rises.values, rises.starts[cell], rises.bases[cell]
        for k in range(totals.shape[0]):
            value += values[np.uint64(start + totals[k] - counts[at + k])] - base
    else:
        for k in range(totals.shape[0]):
            value += rise(cell, np.int64(totals[k]) - counts[at + k], rises)
    return value - rise(total, n, rises)


@bare
def _total(counts: Array, at: Int, n_classes: Int) -> Int:
    n = np.int64(0)
    for k in range(n_classes):
        n += counts[at + k]
    return n


@bare
def offer(split: Any, gain: float, variable: Int, kind: Int, state: Int, n_children: Int, most: Int) -> None:
    """Replace the best split so far by this one, if it gains more and has at most `most` children."""
    if gain > split["gain"] + TIE and n_children <= most:
        split["gain"], split["variable"], split["kind"] = gain, variable, kind
        split["state"], split["part"], split["n_children"] = state, 0, n_children


@bare
def _gain_of_two(before: float, a: Int, b: Int, c: Int, d: Int, cell: Array, total: Array) -> float:
    """Return the gain of splitting a leaf of a binary target into two with counts (a, b) and (c, d)."""
    i, j, k, m = np.uint64(a), np.uint64(b), np.uint64(c), np.uint64(d)  # unsigned indices are quicker: no wraparound
    return (cell[i] + cell[j] - total[i + j]) + (cell[k] + cell[m] - total[k + m]) - before


@inlined
def _set_rises(leaf: Any, n: Int, scoring: Scoring, rises: Rises) -> None:
    """Under BDeu, set the rows of the leaf and of children whose exponents depend only on numbers of states."""
    n_states, r = scoring.layout.n_states, scoring.layout.n_states[leaf["target"]]
    last, own, lengths = rises.lengths.shape[0] - N_OWN_ROWS, leaf["exponent"], rises.lengths
    _set_row(last + _OWN_CELL, own, np.int64(0), rises)
    _set_row(last + _OWN_TOTAL, own * r, np.int64(0), rises)
    for row in range(last):
        lengths[row] = 0
    for variable in range(n_states.shape[0]):
        lengths[4 * scoring.arities[variable]] += n_states[variable]
    for variable in range(n_states.shape[0]):
        row, states = 4 * scoring.arities[variable], n_states[variable]
        if lengths[row + 1] == 0:
            length = min(n + 1, np.int64(_TABLE), max(np.int64(_FEW), _A_LOOK * lengths[row]))
            of_totals = length if states == 2 else min(length, np.int64(_FEW))  # fewer lookups than for cells
            _set_row(row, own / states, length, rises)
            _set_row(row + 1, own / states * r, of_totals, rises)
            if states > 2:
                _set_row(row + 2, own - own / states, length, rises)
                _set_row(row + 3, (own - own / states) * r, of_totals, rises)


@bare
def _set_part(exponent: float, own: float, r: Int, rises: Rises) -> None:
    """Set the rows of one child with this exponent and of the rest; `own` is the leaf's exponent."""
    last = rises.lengths.shape[0] - N_OWN_ROWS
    _set_row(last + _CELL, exponent, np.int64(0), rises)
    _set_row(last + _TOTAL, exponent * r, np.int64(0), rises)
    _set_row(last + _REST_CELL, max(own - exponent, 1e-300), np.int64(0), rises)
    _set_row(last + _REST_TOTAL, max(own - exponent, 1e-300) * r, np.int64(0), rises)


class _Candidate(NamedTuple):
    """A variable that a leaf may test."""

    variable: Int
    at: Int  # index of its block in the histogram
    n_states: Int
    is_restricted: bool  # whether tests on the way to the leaf restrict it
    first: Int  # if so, index of the shares of its states
    cell: Int  # row of rises for the cells of one state's child
    total: Int  # row for that child's total
    rest_cell: Int  # row for the cells of the rest
    rest_total: Int  # row for the rest's total


@bare
def _score_ordered(
    split: Any,
    leaf: Any,
    candidate: _Candidate,
    counts: Array,
    totals: Array,
    n: Int,
    extra: float,
    most: Int,
    scoring: Scoring,
    rises: Rises,
    scratch: ScoringScratch,
) -> None:
    """Offer all splits at a threshold on one ordered variable; missing cells go to either side."""
    n_classes, variable, r = totals.shape[0], candidate.variable, candidate.n_states
    n_ordered, prefix, shares = scoring.n_ordered[variable], scratch.prefix, scratch.region.shares
    cell, total, rest_cell, rest_total = candidate.cell, candidate.total, candidate.rest_cell, candidate.rest_total
    for side in range(1 if n_ordered == r else 2):
        exponent, n_below = 0.0, scratch.sizes[r - 1] if side == 1 else np.int64(0)
        for k in range(n_classes):
            prefix[k] = counts[candidate.at + (r - 1) * n_classes + k] if side == 1 else 0
        if side == 1:
            exponent = shares[candidate.first + r - 1] if candidate.is_restricted else 1.0 / r
        for state in range(1, n_ordered if n_ordered == r or side == 1 else n_ordered + 1):
            here = candidate.at + (state - 1) * n_classes
            for k in range(n_classes):
                prefix[k] += counts[here + k]
            n_below += scratch.sizes[state - 1]
            exponent += shares[candidate.first + state - 1] if candidate.is_restricted else 1.0 / r
            if not 0 < n_below < n:
                continue
            if scoring.equivalent_sample_size > 0.0:
                own, last = leaf["exponent"], rises.lengths.shape[0] - N_OWN_ROWS
                of_part = (
                    exponent * scoring.equivalent_sample_size / n_classes if candidate.is_restricted else own * exponent
                )
                _set_part(of_part, own, n_classes, rises)
                cell, total, rest_cell, rest_total = last + _CELL, last + _TOTAL, last + _REST_CELL, last + _REST_TOTAL
            after = _log_likelihood(prefix, np.int64(0), n_classes, n_below, cell, total, rises)
            after += _log_likelihood_of_rest(prefix, np.int64(0), totals, n - n_below, rest_cell, rest_total, rises)
            kind = np.int64(BELOW_OR_MISSING if side == 1 else BELOW)
            offer(split, after - leaf["log_likelihood"] + extra, variable, kind, np.int64(state), np.int64(2), most)


@bare
def _score_variable(
    split: Any,
    leaf: Any,
    candidate: _Candidate,
    counts: Array,
    totals: Array,
    most: Int,
    scoring: Scoring,
    rises: Rises,
    scratch: ScoringScratch,
) -> None:
    """Offer all splits on one variable."""
    n_classes, at, r = totals.shape[0], candidate.at, candidate.n_states
    shares, first, last = scratch.region.shares, candidate.first, rises.lengths.shape[0] - N_OWN_ROWS
    of_all, n = scoring.equivalent_sample_size, _total(totals, np.int64(0), n_classes)
    by_share = of_all > 0.0 and candidate.is_restricted
    per_child = (n_classes - 1) * scoring.log_kappa
    fixed = -scoring.log_ways[candidate.variable]
    n_seen, n_possible, sizes, scores = np.int64(0), r, scratch.sizes, scratch.scores
    for state in range(r):
        sizes[state] = _total(counts, at + state * n_classes, n_classes)
        n_seen += np.int64(sizes[state] > 0)
        if candidate.is_restricted and shares[first + state] <= 0.0:
            n_possible -= 1
    if n_seen < 2:
        return
    cell, total, rest_cell, rest_total = candidate.cell, candidate.total, candidate.rest_cell, candidate.rest_total
    if by_share:
        cell, total, rest_cell, rest_total = last + _CELL, last + _TOTAL, last + _REST_CELL, last + _REST_TOTAL
    after = 0.0
    for state in range(r):
        scores[state] = 0.0
        if sizes[state] > 0:
            if by_share:
                _set_part(of_all * shares[first + state] / n_classes, leaf["exponent"], n_classes, rises)
            scores[state] = _log_likelihood(counts, at + state * n_classes, n_classes, sizes[state], cell, total, rises)
        after += scores[state]
    if scoring.complete:
        gain = after - leaf["log_likelihood"] + (n_possible - 1) * per_child + fixed
        offer(split, gain, candidate.variable, np.int64(COMPLETE), np.int64(0), n_possible, most)
    if scoring.binary and not (scoring.complete and r == 2):
        for state in range(r):
            if 0 < sizes[state] < n:
                if by_share:
                    _set_part(of_all * shares[first + state] / n_classes, leaf["exponent"], n_classes, rises)
                here, left = at + state * n_classes, n - sizes[state]
                after = scores[state] + _log_likelihood_of_rest(
                    counts, here, totals, left, rest_cell, rest_total, rises
                )
                gain = after - leaf["log_likelihood"] + per_child + fixed
                offer(split, gain, candidate.variable, np.int64(ONE_STATE), state, np.int64(2), most)
    if scoring.ordered and scoring.n_ordered[candidate.variable] > 2:
        _score_ordered(split, leaf, candidate, counts, totals, n, per_child + fixed, most, scoring, rises, scratch)


@bare
def base_of(variable: int, target: int, layout: Layout) -> int:
    """Return the row (one per state) at which the variable's block begins in histograms of the target."""
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
def histogram_of(leaf: Any, state: State) -> Array:
    """Return a view of the leaf's histogram, whose last row contains its totals."""
    layout = state.scoring.layout
    target = leaf["target"]
    size = (layout.n_rows[layout.of_target[target]] + 1) * layout.n_states[target]
    return state.pool.cells[leaf["histogram"] : leaf["histogram"] + size]


@bare
def _candidate(variable: Int, base: Int, leaf: Any, scoring: Scoring, scratch: ScoringScratch) -> _Candidate:
    target = leaf["target"]
    n_classes, n_states = scoring.layout.n_states[target], scoring.layout.n_states[variable]
    restricted = scratch.region.is_tested[variable] != 0
    first = scratch.region.places[variable]
    if scoring.equivalent_sample_size > 0.0:
        row = 4 * scoring.arities[variable]
        rest = row if n_states == 2 else row + 2
        return _Candidate(variable, base * n_classes, n_states, restricted, first, row, row + 1, rest, rest + 1)
    cell, total = scoring.cell_rises[n_classes], scoring.total_rises[n_classes]
    return _Candidate(variable, base * n_classes, n_states, restricted, first, cell, total, cell, total)


@inlined
def _totals_of(target: Int, counts: Array, layout: Layout) -> Array:
    """Return the last row of a histogram, the target's counts."""
    return counts[layout.n_rows[layout.of_target[target]] * layout.n_states[target] :]


@bare
def _block(variable: Int, base: Int, counts: Array, totals: Array, scoring: Scoring, scratch: ScoringScratch) -> Block:
    return Block(
        variable,
        counts,
        base * totals.shape[0],
        totals,
        scratch.own.no_weights,
        np.int64(0),
        scratch.region.shares,
        scratch.region.places[variable],
        scratch.region.is_tested[variable] != 0,
        scoring.multiples.shape[0] > 0,
    )


@inlined
def _bound_candidates(
    leaf: Any, counts: Array, totals: Array, most: Int, state: State, scratch: ScoringScratch
) -> None:
    """Compute upper bounds for the splits on each candidate, including pieces; -inf if another surely wins."""
    scoring, layout, target, bounds = state.scoring, state.scoring.layout, leaf["target"], scratch.own.bounds
    which, sure, sure_of_tested = layout.of_target[target], -np.inf, -np.inf
    for entry in range(layout.start[which], layout.start[which + 1]):
        variable = layout.variables[entry]
        bounds[variable] = -np.inf
        if may_test(target, variable, scoring):
            block = _block(variable, layout.bases[entry], counts, totals, scoring, scratch)
            found = bound_pieces(leaf, block, most, scoring, scratch.own)
            bounds[variable] = found.most
            if is_tested(target, variable, state.tested):
                sure_of_tested = max(sure_of_tested, found.sure)
            else:
                sure = max(sure, found.sure)
    for entry in range(layout.start[which], layout.start[which + 1]):
        variable = layout.variables[entry]
        if bounds[variable] < (sure_of_tested if is_tested(target, variable, state.tested) else sure):
            bounds[variable] = -np.inf
    scratch.own.n[3] = 1


@separate
def score_parted(
    at: Int, slot: Int, variable: Int, base: Int, most: Int, state: State, scratch: ScoringScratch
) -> None:
    """Offer splits on one variable, of the leaf and of the pieces into which it can be parted.

    With `variable` _NONE, only prepare the scratch memory for the leaf; with _ALL, compute bounds for all candidates.
    This is a separate function since few searches part leaves, and the others need not wait for its compilation.
    """
    leaf, counts, own, scoring = state.leaves[at], histogram_of(state.leaves[at], state), scratch.own, state.scoring
    totals, has_tables = _totals_of(leaf["target"], counts, scoring.layout), scoring.multiples.shape[0] > 0
    if variable == _NONE:
        begin_pieces(leaf, totals, own.no_weights, scoring, own)
    elif variable == _ALL and has_tables:
        _bound_candidates(leaf, counts, totals, most, state, scratch)
    elif variable >= 0:
        block, split = _block(variable, base, counts, totals, scoring, scratch), state.splits[N_SLOTS * at + slot]
        if has_tables and own.n[3] == 0:
            own.bounds[variable] = bound_pieces(leaf, block, most, scoring, own).most
        if not has_tables or own.bounds[variable] > split["gain"]:
            score_pieces(split, leaf, block, most, scoring, own)


@inlined
def _begin_parted(at: Int, state: State, scratch: ScoringScratch) -> None:
    scratch.own.n[0] = 0
    if state.scoring.own:
        score_parted(at, 0, _NONE, 0, 0, state, scratch)


@bare
def _score_candidate(
    at: Int,
    slot: Int,
    variable: Int,
    base: Int,
    counts: Array,
    totals: Array,
    most: Int,
    state: State,
    rises: Rises,
    scratch: ScoringScratch,
) -> None:
    """Offer all splits on one variable, of the leaf as it is and of the pieces into which it can be parted."""
    if scratch.own.n[0] > 0:
        score_parted(at, slot, variable, base, most, state, scratch)
    else:
        leaf, split = state.leaves[at], state.splits[N_SLOTS * at + slot]
        candidate = _candidate(variable, base, leaf, state.scoring, scratch)
        _score_variable(split, leaf, candidate, counts, totals, most, state.scoring, rises, scratch)


@inlined
def _set_log_likelihood(leaf: Any, totals: Array, scoring: Scoring, scratch: ScoringScratch) -> None:
    """Store the leaf's counts and its log marginal likelihood."""
    n_classes, n = totals.shape[0], _total(totals, np.int64(0), totals.shape[0])
    for k in range(n_classes):
        scoring.counts[leaf["counts"] + k] = totals[k]
    if leaf["states"] != 0:
        leaf["log_likelihood"] = scratch.own.values[WHOLE]
        if scoring.equivalent_sample_size > 0.0:
            _set_rises(leaf, n, scoring, scratch.rises)
    elif scoring.equivalent_sample_size > 0.0:
        rises, last = scratch.rises, scratch.rises.lengths.shape[0] - N_OWN_ROWS
        _set_rises(leaf, n, scoring, rises)
        leaf["log_likelihood"] = _log_likelihood(
            totals, np.int64(0), n_classes, n, last + _OWN_CELL, last + _OWN_TOTAL, rises
        )
    else:
        row, row_of_total = scoring.cell_rises[n_classes], scoring.total_rises[n_classes]
        leaf["log_likelihood"] = _log_likelihood(totals, np.int64(0), n_classes, n, row, row_of_total, scoring.rises)


@bare
def clear_split(split: Any, threshold: float) -> None:
    """Reset a split: none is known that gains more than the threshold."""
    split["gain"], split["variable"], split["part"], split["n_children"] = threshold, -1, 0, 0
    split["first_child"] = split["possible"] = -1


@bare
def copy_split(source: Any, to: Any) -> None:
    """Move a split, with the children that were made ahead for it."""
    to["gain"], to["variable"], to["kind"], to["state"] = (
        source["gain"],
        source["variable"],
        source["kind"],
        source["state"],
    )
    to["part"], to["piece"] = source["part"], source["piece"]
    to["n_children"], to["first_child"], to["possible"] = (
        source["n_children"],
        source["first_child"],
        source["possible"],
    )
    source["first_child"] = -1


@bare
def given_back(leaf: Any, scoring: Scoring) -> float:
    """Return what the structure prior refunds when a shared leaf is split: its arcs then lead to a test."""
    return scoring.shared_cost * max(leaf["n_tests"] - 1, 0)


@inlined
def threshold_of(leaf: Any, node: Any, scoring: Scoring) -> float:
    """Return the gain below which no split on an untested variable matters, now or once its graph tests it."""
    return (node["untested_cost"] if leaf["n_tests"] == 0 else node["later_cost"]) - given_back(leaf, scoring)


@inlined
def threshold_of_tested(leaf: Any, node: Any, scoring: Scoring) -> float:
    """Return the gain that a split on a tested variable must exceed to matter."""
    return node["tested_cost"] - given_back(leaf, scoring)


@inlined
def _find_restrictions(leaf: Any, state: State, scratch: ScoringScratch) -> Int:
    """Determine which variables the tests on the way to the leaf restrict; return their number."""
    if not state.rules.tracks_regions or leaf["region"] == 0:
        return np.int64(0)
    n_states = state.scoring.layout.n_states
    return find_shares(state.regions, leaf["region"], leaf["n_boxes"], n_states, scratch.region)


@inlined
def _rows_of_two(target: Int, scoring: Scoring) -> Int:
    """Under BDeu, return the row of rises for the children of a binary variable; -1 if no candidate is binary."""
    layout, which = scoring.layout, scoring.layout.of_target[target]
    for entry in range(layout.start[which], layout.start[which + 1]):
        if layout.n_states[layout.variables[entry]] == 2:
            return 4 * scoring.arities[layout.variables[entry]]
    return np.int64(-1)


class _Pair(NamedTuple):
    """What is needed to score splits of a binary target on binary variables, if the tables cover all counts."""

    is_on: bool
    before: float  # subtracted from the children's scores: the leaf's, the parameters' prior and offsets of the tables
    zeros: Int  # the leaf's counts
    ones: Int
    cell: Array  # table of rises for a cell
    total: Array  # and for a total


@inlined
def _pair_of(leaf: Any, totals: Array, scoring: Scoring, rises: Rises) -> _Pair:
    row, row_of_total = scoring.cell_rises[2], scoring.total_rises[2]
    if scoring.equivalent_sample_size > 0.0:
        row = _rows_of_two(leaf["target"], scoring)
        row_of_total = row + 1
    zeros, ones = np.int64(totals[0]), np.int64(totals[-1])
    is_on = totals.shape[0] == 2 and row >= 0 and (scoring.complete or scoring.binary)
    is_on = is_on and zeros + ones < min(rises.lengths[row], rises.lengths[row_of_total])
    before = leaf["log_likelihood"] - scoring.log_kappa + 4.0 * rises.bases[row] - 2.0 * rises.bases[row_of_total]
    cell, total = rises.values[rises.starts[row] :], rises.values[rises.starts[row_of_total] :]
    return _Pair(is_on, before, zeros, ones, cell, total)


@bare
def _fewest(split: Any, few: Int, most: Int, pair: "_Pair") -> Int:
    """Return a bound, from `few` to `most`: splits with a side smaller than this gain no more than the best so far.

    For a side of a given size the gain is convex in the target's counts, so its maximum is at one of their extremes.
    """
    zeros, ones = pair.zeros, pair.ones
    while few < most and 2 * few <= zeros + ones:
        low, high = max(np.int64(0), few - ones), min(few, zeros)
        gain = _gain_of_two(pair.before, zeros - low, ones - (few - low), low, few - low, pair.cell, pair.total)
        other = _gain_of_two(pair.before, zeros - high, ones - (few - high), high, few - high, pair.cell, pair.total)
        if max(gain, other) > split["gain"]:
            return few
        few += 1
    return few


@bare
def _next_candidate(
    entry: Int, end: Int, few: Int, n: Int, n_rows: Int, layout: Layout, counts: Array, is_restricted: Array
) -> Int:
    """Return the next candidate of a binary target that is not a pair, or has at least `few` cases on either side.

    A pair is an unrestricted binary variable. Blocks are contiguous, so that of a pair ends two rows further on.
    """
    bases = layout.bases
    base = bases[np.uint64(entry)]
    while entry < end:
        after = bases[np.uint64(entry + 1)] if entry + 1 < end else n_rows
        if after - base != 2 or (is_restricted.shape[0] > 0 and is_restricted[layout.variables[entry]] != 0):
            break
        size = counts[np.uint64(2 * base + 2)] + counts[np.uint64(2 * base + 3)]
        if few <= size <= n - few:
            break
        entry, base = entry + 1, after
    return entry


@inlined
def _is_pair(variable: Int, pair: _Pair, scoring: Scoring, scratch: ScoringScratch) -> bool:
    return pair.is_on and scoring.layout.n_states[variable] == 2 and scratch.region.is_tested[variable] == 0


@bare
def _score_pair(split: Any, variable: Int, here: Int, pair: _Pair, counts: Array, most: Int, is_complete: bool) -> bool:
    """Offer the split of a binary target on a binary variable; return whether it is now the best."""
    zeros, ones = pair.zeros, pair.ones
    c, d = np.int64(counts[here + 2]), np.int64(counts[here + 3])
    if not 0 < c + d < zeros + ones:
        return False
    gain = _gain_of_two(pair.before, zeros - c, ones - d, c, d, pair.cell, pair.total)
    if gain <= split["gain"] + TIE:
        return False
    offer(split, gain, variable, np.int64(COMPLETE if is_complete else ONE_STATE), np.int64(0), np.int64(2), most)
    return True


@bare
def _which_may_gain(first: Int, few: Int, n: Int, counts: Array) -> Any:
    """Return as a word which of 64 binary candidates from `first` on have at least `few` of n cases on either side."""
    word, at = np.uint64(0), 4 * first
    for k in range(min(np.int64(64), (counts.shape[0] - at) // 4)):
        size = counts[np.uint64(at + 4 * k + 2)] + counts[np.uint64(at + 4 * k + 3)]
        word |= np.uint64((size >= few) & (size <= n - few)) << np.uint64(k)
    return word


@inlined
def _score_pairs(
    at: Int, split: Any, few: Int, most_few: Int, pair: _Pair, counts: Array, most: Int, state: State
) -> None:
    """Offer the splits on all variables that the node's graph does not test, if all variables are binary.

    Whether a variable may be tested is checked last, since few splits gain more than the best so far.
    """
    target, scoring, n = state.leaves[at]["target"], state.scoring, pair.zeros + pair.ones
    zeros, ones, best = pair.zeros, pair.ones, split["gain"] + TIE
    for first in range(0, scoring.layout.n_states.shape[0], 64):
        left = _which_may_gain(np.int64(first), few, n, counts)
        while left != np.uint64(0):
            variable = first + lowest(left)
            left &= left - np.uint64(1)
            here = np.uint64(4 * variable)
            c, d = np.int64(counts[here + np.uint64(2)]), np.int64(counts[here + np.uint64(3)])
            gain = _gain_of_two(pair.before, zeros - c, ones - d, c, d, pair.cell, pair.total)
            if gain > best and may_test(target, variable, scoring) and not is_tested(target, variable, state.tested):
                kind = np.int64(COMPLETE if scoring.complete else ONE_STATE)
                offer(split, gain, variable, kind, np.int64(0), np.int64(2), most)
                few, best = _fewest(split, few, most_few, pair), split["gain"] + TIE


@inlined
def _score_tested(
    at: Int, pair: _Pair, counts: Array, totals: Array, most: Int, state: State, rises: Rises, scratch: ScoringScratch
) -> None:
    """Offer the splits on all variables that the node's graph tests."""
    leaf, split = state.leaves[at], state.splits[N_SLOTS * at + TESTED]
    target, scoring, layout = leaf["target"], state.scoring, state.scoring.layout
    row = state.tested[target]
    for word in range(row.shape[0]):
        left = row[word]
        while left != np.uint64(0):
            variable = word * 64 + lowest(left)
            left &= left - np.uint64(1)
            base = base_of(variable, target, layout)
            if not may_test(target, variable, scoring):
                continue
            if _is_pair(variable, pair, scoring, scratch):
                _score_pair(split, variable, 2 * base, pair, counts, most, scoring.complete)
            else:
                _score_candidate(at, np.int64(TESTED), variable, base, counts, totals, most, state, rises, scratch)


@inlined
def _can_gain(split: Any, leaf: Any) -> bool:
    """Return whether any split can gain more than the best so far: no child's likelihood exceeds 1."""
    return -leaf["log_likelihood"] > split["gain"]


@bare
def gains_nothing(at: Int, state: State) -> bool:
    """Return whether it is known without a histogram that no split of the leaf can gain; if so, store that result.

    If leaves wait for the host, all of them are scored.
    """
    leaf, node = state.leaves[at], state.nodes[state.leaves[at]["target"]]
    tested, untested = state.splits[N_SLOTS * at + TESTED], state.splits[N_SLOTS * at + UNTESTED]
    threshold, threshold_tested = (
        threshold_of(leaf, node, state.scoring),
        threshold_of_tested(leaf, node, state.scoring),
    )
    least = min(threshold, threshold_tested if node["n_tested"] > 0 else np.inf)
    if state.rules.weighs or state.rules.remote or -leaf["log_likelihood"] > least:
        return False
    clear_split(tested, threshold_tested)
    clear_split(untested, threshold)
    leaf["max_children"], leaf["version"] = node["max_children"], node["version"]
    return True


@inlined
def _score_all(at: Int, slot: Int, state: State, scratch: ScoringScratch) -> None:
    """Find the best splits of a leaf, on tested variables and on others; with `slot` FALLBACK, only the latter."""
    leaf, scoring = state.leaves[at], state.scoring
    target, layout = leaf["target"], scoring.layout
    node, which = state.nodes[target], layout.of_target[target]
    counts, most = histogram_of(leaf, state), node["max_children"]
    totals = _totals_of(target, counts, layout)
    _begin_parted(at, state, scratch)
    _set_log_likelihood(leaf, totals, scoring, scratch)
    n_restricted = _find_restrictions(leaf, state, scratch)
    rises = scratch.rises if scoring.equivalent_sample_size > 0.0 else scoring.rises
    pair = _pair_of(leaf, totals, scoring, rises)
    threshold, threshold_tested = threshold_of(leaf, node, scoring), threshold_of_tested(leaf, node, scoring)
    least = min(threshold, threshold_tested) if slot != FALLBACK else threshold
    if scratch.own.n[0] > 0 and -leaf["log_likelihood"] > least:
        score_parted(at, 0, _ALL, 0, most, state, scratch)
    if slot != FALLBACK:
        leaf["max_children"], leaf["version"] = most, node["version"]
        clear_split(state.splits[N_SLOTS * at + TESTED], threshold_tested)
        if node["n_tested"] > 0 and _can_gain(state.splits[N_SLOTS * at + TESTED], leaf):
            _score_tested(at, pair, counts, totals, most, state, rises, scratch)
    split = state.splits[N_SLOTS * at + slot]
    clear_split(split, threshold)
    few: Int = np.int64(1)
    if not _can_gain(split, leaf):
        forget_tested(n_restricted, scratch.region)
        return
    entry, end, n = layout.start[which], layout.start[which + 1], pair.zeros + pair.ones
    is_tested_above = scratch.region.is_tested
    is_restricted = is_tested_above[: is_tested_above.shape[0] if n_restricted > 0 else 0]
    most_few = (end - entry) // 8  # limits the search for `few`, which costs time
    if pair.is_on:
        few = _fewest(split, few, most_few, pair)
        if scoring.has_all_pairs and n_restricted == 0:  # nothing for forget_tested to do
            _score_pairs(at, split, few, most_few, pair, counts[: 4 * (end - entry)], most, state)
            return
    while entry < end:
        if pair.is_on:
            entry = _next_candidate(entry, end, few, n, layout.n_rows[which], layout, counts, is_restricted)
            if entry == end:
                break
        variable, base = layout.variables[entry], layout.bases[entry]
        entry += 1
        if not may_test(target, variable, scoring) or is_tested(target, variable, state.tested):
            continue
        if not _is_pair(variable, pair, scoring, scratch):
            _score_candidate(at, slot, variable, base, counts, totals, most, state, rises, scratch)
        elif _score_pair(split, variable, 2 * base, pair, counts, most, scoring.complete):
            few = _fewest(split, few, most_few, pair)
    forget_tested(n_restricted, scratch.region)


@inlined
def _score_one(at: Int, variable: Any, state: State, scratch: ScoringScratch) -> None:
    """Offer the splits of a leaf on one variable that the node's graph now tests."""
    leaf, scoring = state.leaves[at], state.scoring
    target, layout = leaf["target"], scoring.layout
    counts, most = histogram_of(leaf, state), leaf["max_children"]
    totals = _totals_of(target, counts, layout)
    _begin_parted(at, state, scratch)
    if scoring.equivalent_sample_size > 0.0:
        _set_rises(leaf, _total(totals, np.int64(0), totals.shape[0]), scoring, scratch.rises)
    n_restricted = _find_restrictions(leaf, state, scratch)
    rises = scratch.rises if scoring.equivalent_sample_size > 0.0 else scoring.rises
    base, split = base_of(variable, target, layout), state.splits[N_SLOTS * at + TESTED]
    known = split["gain"]
    if variable < split["variable"]:  # then it wins ties
        split["gain"] -= 2.0 * TIE
    _score_candidate(at, np.int64(TESTED), variable, base, counts, totals, most, state, rises, scratch)
    if split["variable"] != variable:
        split["gain"] = known
    forget_tested(n_restricted, scratch.region)


@separate
def score_splits(at: Int, slot: Int, variable: Int, state: State, scratch: ScoringScratch) -> None:
    """Find the best splits of a leaf, on tested variables and on others; with `slot` FALLBACK, only the latter.

    With `slot` TESTED, only offer those on `variable`, which the node's graph now tests.
    """
    if slot == TESTED:
        _score_one(at, variable, state, scratch)
    else:
        _score_all(at, slot, state, scratch)
