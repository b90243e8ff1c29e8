"""Scores for graphs that test their own variable: of pieces of a distribution, and of parting a leaf into pieces.

A leaf is about some of its target's states, a bit mask (`states`; 0: all). To part it by a mask A makes a *switch* (is
the state in A?), a leaf about A, unless that is a single state, and a leaf about the rest. A switch has A as its
`part`, and two outcomes. Exponents add over the states of an outcome, so parting alone gains nothing
(docs/mathematics.md). It is combined with a split of one of the pieces, whose gain follows from the leaf's histogram.

The counts of a leaf, or of a would-be child, are a *row*: a column for each outcome, and one for each prefix by which
it can be parted. Equation 5 for a row is the sum of that of the switch, the part and the rest.

Equation 5 is convex in the counts, if exponents are constant. The gain of splitting a piece is therefore smallest if
every child gets the same share of everything, and largest if each outcome has a child to itself. With these bounds,
most pieces of most leaves need not be examined further.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.leaf_search.state import (
    BELOW,
    BELOW_OR_MISSING,
    COMPLETE,
    ONE_STATE,
    Scoring,
    State,
)
from leafwise.kernels.scoring.dirichlet import TIE, log_gamma
from leafwise.kernels.scoring.rises import Rises, rise

SWITCH, PART, REST = range(3)  # pieces
MOST_STATES = 62  # of a target whose graph may test itself: masks are signed 64-bit integers


# Rows: the leaf itself, the two sides of a split, the child of each state, and the rest after removing each child.
WHOLE, FIRST, SECOND, CHILDREN = range(4)
_SLACK = 1e-7  # added to bounds: more than rounding errors


class OwnScratch(NamedTuple):
    """Scratch memory of one thread for pieces. Columns are outcomes, then prefixes by which the leaf can be parted."""

    n: Array  # numbers of outcomes, of masks, and of states of the leaf; and whether all candidates have bounds (0/1)
    states: Array  # listed states of the leaf; without cases perhaps only the first
    columns: Array  # switch: the outcome (0 or 1) to which each of them belongs
    masks: Array  # by column: mask by which the leaf can be parted
    sizes: Array  # by column: number of states in the mask
    rises: Array  # by column: row of rises for these states together
    others: Array  # by column: row of rises for all other states together
    of_switch: Array  # by column: Equation 5 for the leaf's switch
    of_part: Array  # by column: Equation 5 for the leaf's part
    most_switch: Array  # by column: upper bound on the gain of splitting the switch
    most_part: Array  # the same for the part
    most_rest: Array  # the same for the rest
    least_outside: Array  # [level, column]: lower bound on the gain of splitting switch and part into 2^level children
    least_inside: Array  # [level, column]: the same for part and rest
    leeways: Array  # by level: how much more than the leaf itself any of its pieces can gain; -1: not known yet
    bounds: Array  # by variable: upper bound on the gain of all splits on it
    split_bounds: Array  # [0: the leaf as it is, 1: its pieces; kind, row of the histogram]: the same for one split
    spreads: Array  # by column: temporary
    counts: Array  # [row, column]
    exponents: Array  # [row, column]
    inside: Array  # [row, column]: sum of the rises of the single states
    totals: Array  # by row: number of cases
    total_exponents: Array  # by row: sum of exponents
    wholes: Array  # by row: rise of the total
    values: Array  # by row: Equation 5
    cost: Array  # one number: the charge for parting the leaf
    no_weights: Array  # empty


@bare
def _level(n_children: Int) -> Int:
    """Return the level whose lower bounds hold for this number of children: the least with 2^level >= n_children."""
    level = np.int64(0)
    while np.int64(1) << level < n_children:
        level += 1
    return level


def make_own_scratch(layout: Layout, is_used: bool) -> OwnScratch:
    """Allocate scratch memory for any leaf; nothing, if it is not used."""
    n_states, n_cells = layout.n_states if is_used else layout.n_states[:0], layout.n_rows.max() if is_used else 0
    most, most_values = max(n_states[n_states <= MOST_STATES], default=0), max(n_states, default=0)
    n_rows, n_levels = CHILDREN + 2 * most_values, 1 + int(most_values).bit_length()
    by_mask, by_row = np.empty((4, 2 * most), np.int64), np.empty((4, n_rows))
    worth, cells, least = np.empty((6, 2 * most)), np.empty((2, n_rows, 2 * most)), np.empty((2, n_levels, 2 * most))
    return OwnScratch(
        np.zeros(4, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        by_mask[0],
        by_mask[1],
        by_mask[2],
        by_mask[3],
        worth[0],
        worth[1],
        worth[2],
        worth[3],
        worth[4],
        least[0],
        least[1],
        np.empty(n_levels),
        np.empty(len(n_states)),
        np.empty((2, BELOW_OR_MISSING + 1, n_cells)),
        worth[5],
        np.empty((n_rows, 2 * most), np.int64),
        cells[0],
        cells[1],
        np.empty(n_rows, np.int64),
        by_row[0],
        by_row[1],
        by_row[2],
        np.empty(1),
        np.empty(0),
    )


@bare
def count_bits(mask: Int) -> Int:
    """Return the number of states in a mask."""
    n = np.int64(0)
    while mask != 0:
        mask &= mask - 1
        n += 1
    return n


@bare
def states_of(leaf: Any, scoring: Scoring) -> Int:
    """Return the mask of states that a leaf is about; its target has at most MOST_STATES."""
    if leaf["states"] != 0:
        return np.int64(leaf["states"])
    return (np.int64(1) << scoring.layout.n_states[leaf["target"]]) - 1


@bare
def _list(leaf: Any, totals: Array, is_even: bool, scoring: Scoring, own: OwnScratch) -> None:
    """List the leaf's outcomes, and the masks by which it can be parted: each state, and prefixes of ordered states.

    If exponents are equal and nothing is ordered, the first state without cases represents all such states.
    """
    states, target = states_of(leaf, scoring), leaf["target"]
    r = scoring.layout.n_states[target]
    n_states = count_bits(states)
    n_ordered = count_bits(states & ((np.int64(1) << scoring.n_ordered[target]) - 1))
    n_prefixes = max(min(n_ordered, n_states - 2) - 1, 0) if leaf["part"] == 0 else 0
    n, has_unseen = np.int64(0), False
    for k in range(r):
        if not states >> k & 1 or (has_unseen and totals[k] == 0):
            continue
        has_unseen |= totals[k] == 0 and is_even and n_prefixes == 0 and leaf["part"] == 0
        own.states[n], own.columns[n], own.masks[n], own.sizes[n] = k, 1 - (leaf["part"] >> k & 1), np.int64(1) << k, 1
        n += 1
    own.n[0], own.n[1], own.n[2] = n, n + n_prefixes if n_states > 2 else 0, n_states
    if leaf["part"] != 0:
        own.n[0], own.n[1] = 2, 0
        own.sizes[0] = count_bits(leaf["part"])
        own.sizes[1] = n_states - own.sizes[0]
    for at in range(n, own.n[1]):
        size = at - n + 2
        own.masks[at] = own.masks[size - 1] | own.masks[at - 1 if size > 2 else 0]
        own.sizes[at] = size
    for at in range(max(own.n[0], own.n[1])):
        own.rises[at] = own.others[at] = 0
        if scoring.multiples.shape[0] > 0:
            own.rises[at] = scoring.multiples[r, own.sizes[at]]
            own.others[at] = scoring.multiples[r, n_states - own.sizes[at]]


@bare
def part_cost(leaf: Any, scoring: Scoring) -> float:
    """Return what the structure prior charges for parting the leaf, by any mask."""
    if not scoring.charges_tests:
        return 0.0
    states = states_of(leaf, scoring)
    n_states = count_bits(states)
    n_ordered = count_bits(states & ((np.int64(1) << scoring.n_ordered[leaf["target"]]) - 1))
    return scoring.shared_cost + math.log(n_states + max(min(n_ordered, n_states - 2) - 1, 0))


@bare
def n_pieces(split: Any) -> Int:
    """Return the number of pieces a split makes before it splits one of them."""
    if split["part"] == 0:
        return np.int64(1)
    return np.int64(2) if split["part"] & (split["part"] - 1) == 0 else np.int64(3)


@bare
def n_kids(split: Any) -> Int:
    """Return the number of children of the piece that is split."""
    return split["n_children"] - n_pieces(split) + 1


@bare
def first_kid(split: Any) -> Int:
    """Return the index of the first of these children among all new leaves, which are in the order of pieces."""
    if split["part"] == 0 or split["piece"] == SWITCH:
        return np.int64(0)
    return np.int64(1) if split["piece"] == PART else n_pieces(split) - 1


@bare
def n_outcomes(leaf: Any, split: Any, scoring: Scoring) -> Int:
    """Return the number of outcomes of the piece that is split."""
    if split["part"] == 0:
        return np.int64(leaf["n_outcomes"])
    if split["piece"] == SWITCH:
        return np.int64(2)
    n = count_bits(split["part"])
    return n if split["piece"] == PART else count_bits(states_of(leaf, scoring)) - n


@bare
def piece_at(number: Int, split: Any) -> Int:
    """Return which piece has this number, among all pieces of a parted leaf."""
    if number == 0:
        return np.int64(SWITCH)
    return np.int64(REST if number == n_pieces(split) - 1 else PART)


@bare
def states_of_piece(piece: Int, leaf: Any, part_: Int, scoring: Scoring) -> Int:
    """Return the mask of states that a piece of a leaf is about."""
    if piece == SWITCH:
        return states_of(leaf, scoring)
    return np.int64(part_) if piece == PART else states_of(leaf, scoring) & ~part_


@bare
def set_piece(new: Any, piece: Int, at: Int, leaf: Any, part_: Int, scoring: Scoring) -> None:
    """Set states, part and outcomes of a new leaf that is a piece of leaf `at`, which is parted."""
    new["states"], new["part"], new["partition"] = states_of_piece(piece, leaf, part_, scoring), 0, -1
    if piece == SWITCH:
        new["part"], new["partition"], new["n_outcomes"] = part_, at, 2
    else:
        new["n_outcomes"] = count_bits(new["states"])


@bare
def inherit(new: Any, leaf: Any) -> None:
    """Copy states, part and outcomes of a leaf to a new one."""
    new["states"], new["part"] = leaf["states"], leaf["part"]
    new["partition"], new["n_outcomes"] = leaf["partition"], leaf["n_outcomes"]


@bare
def _rise(row: Int, exponent: float, count: Int, scoring: Scoring) -> float:
    """Return log Γ(count + a) - log Γ(a); a is that of a row of the tables, or `exponent` if there are none."""
    if scoring.multiples.shape[0] > 0:
        return rise(row, count, scoring.rises)
    if count == 0 or exponent <= 0.0:
        return 0.0
    return log_gamma(count * scoring.rises.unit + exponent) - log_gamma(exponent)


@bare
def _rise_of(n: Int, exponent: float, count: Int, r: Int, scoring: Scoring) -> float:
    """Return the same for an outcome of n states of a target with r."""
    row = scoring.multiples[r, n] if scoring.multiples.shape[0] > 0 else np.int64(0)
    return _rise(row, exponent, count, scoring)


@bare
def _spread(row: Int, count: Int, level: Int, rises: Rises) -> float:
    """Return the sum of the rises of 2^level equal shares of a count, minus the rise of the count."""
    if count == 0:
        return 0.0
    n = np.int64(1) << level
    of_share = log_gamma(rises.exponents[row] + count * rises.unit / n) - rises.log_gammas[row]
    return n * of_share - rise(row, count, rises)


@bare
def _add_up(row: Int, leaf: Any, scoring: Scoring, own: OwnScratch) -> None:
    """Compute everything that follows from the outcomes' counts and exponents in a row."""
    counts, exponents, inside = own.counts[row], own.exponents[row], own.inside[row]
    n_columns, n_states = own.n[0], own.n[2]
    n, size, value, whole = np.int64(0), 0.0, 0.0, np.int64(0)
    if scoring.multiples.shape[0] > 0:
        whole = scoring.multiples[scoring.layout.n_states[leaf["target"]], n_states]
        for k in range(n_columns):
            inside[k] = rise(own.rises[k], counts[k], scoring.rises) if counts[k] > 0 else 0.0
            n, value = n + counts[k], value + inside[k]
    else:
        for k in range(n_columns):
            inside[k] = _rise(own.rises[k], exponents[k], counts[k], scoring)
            n, size, value = n + counts[k], size + exponents[k], value + inside[k]
        if leaf["part"] == 0:
            size += (n_states - n_columns) * exponents[0]
    own.totals[row], own.total_exponents[row] = n, size
    own.wholes[row] = _rise(whole, size, n, scoring)
    own.values[row] = value - own.wholes[row]
    for at in range(n_columns, own.n[1]):
        k, before = at - n_columns + 1, at - 1 if at > n_columns else 0
        counts[at], exponents[at] = counts[before] + counts[k], exponents[before] + exponents[k]
        inside[at] = inside[before] + inside[k]


@bare
def _terms(row: Int, at: Int, scoring: Scoring, own: OwnScratch) -> tuple[float, float]:
    """Return Equation 5 for the switch and for the part of a row that is parted by the mask of column `at`."""
    count, exponent, inside = own.counts[row, at], own.exponents[row, at], own.inside[row, at]
    if scoring.multiples.shape[0] > 0:
        together = inside if own.sizes[at] == 1 else rise(own.rises[at], count, scoring.rises)
        rest = rise(own.others[at], own.totals[row] - count, scoring.rises)
        return together + rest - own.wholes[row], inside - together
    together = inside if own.sizes[at] == 1 else _rise(own.rises[at], exponent, count, scoring)
    left = own.total_exponents[row] - exponent
    return (
        together + _rise(own.others[at], left, own.totals[row] - count, scoring) - own.wholes[row],
        inside - together,
    )


@bare
def _set_bounds(leaf: Any, scoring: Scoring, own: OwnScratch) -> None:
    """Compute Equation 5 of all pieces, and upper bounds on their gains; infinite if exponents depend on the child."""
    n, rises = own.totals[WHOLE], scoring.rises
    for level in range(own.leeways.shape[0]):
        own.leeways[level] = -1.0
    for at in range(own.n[1]):
        of_switch, of_part = _terms(np.int64(WHOLE), at, scoring, own)
        own.of_switch[at], own.of_part[at] = of_switch, of_part
        own.most_switch[at] = own.most_part[at] = own.most_rest[at] = np.inf
        if scoring.multiples.shape[0] == 0:
            continue
        count = own.counts[WHOLE, at]
        whole = scoring.multiples[scoring.layout.n_states[leaf["target"]], own.n[2]]
        own.most_switch[at] = own.wholes[WHOLE] - rise(whole, count, rises) - rise(whole, n - count, rises) + _SLACK
        own.most_part[at] = _SLACK - of_part
        own.most_rest[at] = _SLACK - (own.values[WHOLE] - of_switch - of_part)


@bare
def _bound_level(level: Int, leaf: Any, scoring: Scoring, own: OwnScratch) -> None:
    """Compute lower bounds on the gain of splitting pieces into at most 2^level children, and from these the leeway.

    The gains of all pieces add up to the gain of the leaf.
    """
    n, rises, counts, all_cells, cells = own.totals[WHOLE], scoring.rises, own.counts[WHOLE], 0.0, 0.0
    whole = _spread(scoring.multiples[scoring.layout.n_states[leaf["target"]], own.n[2]], n, level, rises)
    for k in range(own.n[0]):
        own.spreads[k] = _spread(own.rises[k], counts[k], level, rises)
        all_cells += own.spreads[k]
    leeway = 0.0
    for at in range(own.n[1]):
        size, together = own.sizes[at], own.spreads[at]
        if size == 1:
            cells = together
        else:
            cells = own.spreads[size - 1] + (own.spreads[0] if size == 2 else cells)
            together = _spread(own.rises[at], counts[at], level, rises)
        rest = _spread(own.others[at], n - counts[at], level, rises)
        own.least_outside[level, at] = cells + rest - whole - _SLACK
        own.least_inside[level, at] = all_cells - together - rest - _SLACK
        of_others = min(own.least_outside[level, at], own.least_inside[level, at])
        if size > 1:
            of_others = min(of_others, together + all_cells - cells - whole - _SLACK)
        leeway = max(leeway, -of_others)
    own.leeways[level] = leeway


@bare
def begin_pieces(leaf: Any, totals: Array, weights: Array, scoring: Scoring, own: OwnScratch) -> None:
    """Prepare to score a leaf with these counts: list its masks, and compute Equation 5 and bounds for its pieces."""
    r = scoring.layout.n_states[leaf["target"]]
    own.n[0] = own.n[1] = own.n[3] = 0
    if not scoring.own or r < 3 or r > MOST_STATES:
        return
    _list(leaf, totals, weights.shape[0] == 0, scoring, own)
    own.cost[0] = part_cost(leaf, scoring)
    _fill(np.int64(WHOLE), totals, np.int64(0), weights, np.int64(0), leaf["exponent"], leaf, own)
    _add_up(np.int64(WHOLE), leaf, scoring, own)
    _set_bounds(leaf, scoring, own)


class Block(NamedTuple):
    """What is known of the leaf, and of the children that a variable's states would make.

    Their exponents come from tables, from weights in the layout of the histogram, or, under BDeu, from shares.
    """

    variable: Int
    counts: Array  # the histogram
    at: Int  # index of the variable's first cell in it
    totals: Array  # the leaf's own counts
    weights: Array  # prior network: exponents; else empty
    weights_at: Int  # index of the variable's first exponent
    shares: Array  # BDeu: share of all assignments of each state, from first_share on
    first_share: Int
    is_restricted: bool  # whether tests on the way restrict the variable; if not, all states have the same share
    is_bounded: bool  # whether own.split_bounds is set for the variable


@bare
def _fill(
    row: Int, counts: Array, at: Int, weights: Array, weights_at: Int, exponent: float, leaf: Any, own: OwnScratch
) -> None:
    """Set the outcomes of a row, from counts of all states."""
    if leaf["part"] == 0:
        for k in range(own.n[0]):
            own.counts[row, k] = counts[at + own.states[k]]
            own.exponents[row, k] = weights[weights_at + own.states[k]] if weights.shape[0] > 0 else exponent
        return
    for column in range(2):
        own.counts[row, column], own.exponents[row, column] = 0, 0.0
    for k in range(own.n[2]):
        column, state = own.columns[k], own.states[k]
        own.counts[row, column] += counts[at + state]
        own.exponents[row, column] += weights[weights_at + state] if weights.shape[0] > 0 else exponent


@bare
def _fill_child(value: Int, leaf: Any, block: Block, scoring: Scoring, own: OwnScratch) -> None:
    """Set the outcomes of the child that one state would make."""
    r = scoring.layout.n_states[leaf["target"]]
    exponent = leaf["exponent"] / scoring.layout.n_states[block.variable]
    if block.is_restricted:
        exponent = block.shares[block.first_share + value] * scoring.equivalent_sample_size / r
    at, weights_at, row = block.at + value * r, block.weights_at + value * r, CHILDREN + value
    _fill(row, block.counts, at, block.weights, weights_at, exponent, leaf, own)


@bare
def _fill_rest(first: Int, second: Int, leaf: Any, scoring: Scoring, own: OwnScratch) -> None:
    """Set row `second` to what row `first` leaves of the leaf."""
    for k in range(own.n[0]):
        own.counts[second, k] = own.counts[WHOLE, k] - own.counts[first, k]
        own.exponents[second, k] = max(own.exponents[WHOLE, k] - own.exponents[first, k], 0.0)
    _add_up(second, leaf, scoring, own)


@bare
def _take(
    split: Any, gain: float, variable: Int, kind: Int, value: Int, n_children: Int, mask: Int, piece: Int, most: Int
) -> None:
    if gain > split["gain"] + TIE and n_children <= most:
        split["gain"], split["variable"], split["kind"], split["state"] = gain, variable, kind, value
        split["n_children"], split["part"], split["piece"] = n_children, mask, piece


class _Rows(NamedTuple):
    """The children of a split: n rows, from `first` on, `step` apart."""

    first: Int
    step: Int
    n: Int
    n_possible: Int  # number of children that can occur


@bare
def _n_with(at: Int, piece: Int, rows: _Rows, own: OwnScratch) -> Int:
    """Return the number of children with cases of a piece."""
    n = np.int64(0)
    for k in range(rows.n):
        row = rows.first + k * rows.step
        n += own.counts[row, at] > 0 if piece == PART else own.totals[row] > own.counts[row, at]
    return n


@bare
def _offer_pieces(
    split: Any,
    variable: Int,
    kind: Int,
    value: Int,
    rows: _Rows,
    gain: float,
    level: Int,
    most: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> None:
    """Offer the split of every piece into which the leaf can be parted; `gain` is that of the leaf as it is."""
    n_states, fixed, is_quick = own.n[2], -scoring.log_ways[variable] - own.cost[0], scoring.multiples.shape[0] > 0
    per_outcome = (rows.n_possible - 1) * scoring.log_kappa
    for at in range(own.n[1]):
        size, mask, need = own.sizes[at], own.masks[at], split["gain"] - fixed
        most_switch, most_rest = own.most_switch[at], own.most_rest[at]
        if is_quick:
            most_switch = min(most_switch, gain - own.least_inside[level, at])
            most_rest = min(most_rest, gain - own.least_outside[level, at])
        if (
            most_switch + per_outcome <= need
            and most_rest + (n_states - size - 1) * per_outcome <= need
            and (size == 1 or own.most_part[at] + (size - 1) * per_outcome <= need)
        ):
            continue
        of_switch, of_part = -own.of_switch[at], -own.of_part[at]
        for k in range(rows.n):
            row = np.uint64(rows.first + k * rows.step)
            if is_quick:
                count, inside = own.counts[row, at], own.inside[row, at]
                together = inside if size == 1 else rise(own.rises[at], count, scoring.rises)
                of_switch += together + rise(own.others[at], own.totals[row] - count, scoring.rises) - own.wholes[row]
                of_part += inside - together
            else:
                in_switch, in_part = _terms(np.int64(row), at, scoring, own)
                of_switch, of_part = of_switch + in_switch, of_part + in_part
        n_new = rows.n_possible + (1 if size == 1 else 2)
        here = of_switch + per_outcome + fixed
        _take(split, here, variable, kind, value, n_new, mask, np.int64(SWITCH), most)
        here = of_part + (size - 1) * per_outcome + fixed
        if size > 1 and here > split["gain"] and _n_with(at, np.int64(PART), rows, own) > 1:
            _take(split, here, variable, kind, value, n_new, mask, np.int64(PART), most)
        here = gain - of_switch - of_part + (n_states - size - 1) * per_outcome + fixed
        if here > split["gain"] and _n_with(at, np.int64(REST), rows, own) > 1:
            _take(split, here, variable, kind, value, n_new, mask, np.int64(REST), most)


@bare
def _offer(
    split: Any,
    leaf: Any,
    variable: Int,
    kind: Int,
    value: Int,
    rows: _Rows,
    parts: bool,
    most: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> None:
    """Offer the split of the leaf into these children; or, with `parts`, the splits of its pieces."""
    gain, n_seen = -own.values[WHOLE], 0
    for k in range(rows.n):
        gain += own.values[rows.first + k * rows.step]
        n_seen += own.totals[rows.first + k * rows.step] > 0
    if n_seen < 2:
        return
    if parts:
        level = _level(np.int64(n_seen))
        if scoring.multiples.shape[0] > 0 and own.leeways[level] < 0.0:
            _bound_level(level, leaf, scoring, own)
        _offer_pieces(split, variable, kind, value, rows, gain, level, most, scoring, own)
        return
    gain += (rows.n_possible - 1) * (leaf["n_outcomes"] - 1) * scoring.log_kappa - scoring.log_ways[variable]
    _take(split, gain, variable, kind, value, rows.n_possible, np.int64(0), np.int64(0), most)


@bare
def _n_possible(block: Block, n_values: Int, own: OwnScratch) -> Int:
    """Return how many of the variable's states can occur at the leaf."""
    n = np.int64(0)
    for value in range(n_values):
        is_out = block.is_restricted and block.shares[block.first_share + value] <= 0.0
        n += not (is_out or (block.weights.shape[0] > 0 and own.total_exponents[CHILDREN + value] <= 0.0))
    return n


@bare
def _can_win(split: Any, parts: Int, kind: Int, value: Int, block: Block, own: OwnScratch) -> bool:
    """Return whether a split, of the leaf as it is (0) or of its pieces (1), can gain more than the best so far."""
    if not block.is_bounded:
        return True
    row = block.at // block.totals.shape[0] + value
    return bool(own.split_bounds[parts, kind, row] > split["gain"])


@bare
def _score_ordered(
    split: Any, leaf: Any, block: Block, parts: Int, most: Int, scoring: Scoring, own: OwnScratch
) -> None:
    """Offer all splits at a threshold on a variable; missing cells go to either side."""
    n_values, n_ordered = scoring.layout.n_states[block.variable], scoring.n_ordered[block.variable]
    for side in range(1 if n_ordered == n_values else 2):
        kind = np.int64(BELOW_OR_MISSING if side == 1 else BELOW)
        for k in range(own.n[0]):
            own.counts[FIRST, k], own.exponents[FIRST, k] = 0, 0.0
        for value in range(1 - side, n_ordered if n_ordered == n_values or side == 1 else n_ordered + 1):
            child = CHILDREN + (n_values - 1 if value == 0 else value - 1)
            for k in range(own.n[0]):
                own.counts[FIRST, k] += own.counts[child, k]
                own.exponents[FIRST, k] += own.exponents[child, k]
            if value > 0 and _can_win(split, parts, kind, np.int64(value), block, own):
                _add_up(np.int64(FIRST), leaf, scoring, own)
                _fill_rest(np.int64(FIRST), np.int64(SECOND), leaf, scoring, own)
                rows = _Rows(np.int64(FIRST), np.int64(SECOND - FIRST), np.int64(2), np.int64(2))
                _offer(split, leaf, block.variable, kind, np.int64(value), rows, parts == 1, most, scoring, own)


@bare
def _add_up_children(n_values: Int, leaf: Any, scoring: Scoring, own: OwnScratch) -> Int:
    """Compute everything that follows from the children's outcomes; return how many of them have cases."""
    n_seen = np.int64(0)
    for value in range(n_values):
        _add_up(np.int64(CHILDREN + value), leaf, scoring, own)
        n_seen += own.totals[CHILDREN + value] > 0
    return n_seen


@bare
def score_pieces(split: Any, leaf: Any, block: Block, most: Int, scoring: Scoring, own: OwnScratch) -> None:
    """Offer all splits on one variable: of the leaf as it is, and then of the pieces into which it can be parted."""
    variable, n_values, is_added = block.variable, scoring.layout.n_states[block.variable], not block.is_bounded
    for value in range(n_values):
        _fill_child(np.int64(value), leaf, block, scoring, own)
    if is_added and _add_up_children(n_values, leaf, scoring, own) < 2:
        return
    n_possible = _n_possible(block, n_values, own)
    for parts in range(2 if own.n[1] > 0 else 1):
        if scoring.complete and _can_win(split, parts, np.int64(COMPLETE), np.int64(0), block, own):
            if not is_added:
                _add_up_children(n_values, leaf, scoring, own)
                is_added = True
            rows = _Rows(np.int64(CHILDREN), np.int64(1), n_values, n_possible)
            _offer(split, leaf, variable, np.int64(COMPLETE), np.int64(0), rows, parts == 1, most, scoring, own)
        if scoring.binary and not (scoring.complete and n_values == 2):
            for value in range(n_values):
                child, kind = np.int64(CHILDREN + value), np.int64(ONE_STATE)
                if _can_win(split, parts, kind, np.int64(value), block, own):
                    if not is_added:
                        _add_up(child, leaf, scoring, own)
                    if parts == 0 or block.is_bounded:
                        _fill_rest(child, child + n_values, leaf, scoring, own)
                    rows = _Rows(child, n_values, np.int64(2), np.int64(2))
                    _offer(split, leaf, variable, kind, np.int64(value), rows, parts == 1, most, scoring, own)
        if scoring.ordered and scoring.n_ordered[variable] > 2:
            _score_ordered(split, leaf, block, parts, most, scoring, own)


class _Bound(NamedTuple):
    """Bounds on the gains of the splits on one variable."""

    most: float  # upper bound for all splits, of the leaf or of a piece
    sure: float  # gain that some split of the leaf as it is certainly has


@bare
def _score_row(row: Int, of_rest: bool, whole: Int, leaf: Any, scoring: Scoring, own: OwnScratch) -> float:
    """Return Equation 5 for the counts of a row, or for what they leave of the leaf's."""
    n, value, all_counts, counts, cell = np.int64(0), 0.0, own.counts[WHOLE], own.counts[row], own.rises[0]
    if leaf["part"] != 0:
        for k in range(2):
            count = all_counts[k] - counts[k] if of_rest else counts[k]
            n, value = n + count, value + rise(own.rises[k], count, scoring.rises)
        return value - rise(whole, n, scoring.rises)
    values, start, base, length = (
        scoring.rises.values,
        scoring.rises.starts[cell],
        scoring.rises.bases[cell],
        scoring.rises.lengths[cell],
    )
    for k in range(own.n[0]):
        count = all_counts[k] - counts[k] if of_rest else counts[k]
        n += count
        if count < length:
            value += values[np.uint64(start + count)] - base
        else:
            value += rise(cell, count, scoring.rises)
    return value - rise(whole, n, scoring.rises)


@bare
def _with_split(
    bound: _Bound,
    gain: float,
    kind: Int,
    value: Int,
    n_seen: Int,
    n_possible: Int,
    leaf: Any,
    block: Block,
    most: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> _Bound:
    """Return the bound extended by a split with this gain in likelihood, and n_seen children with cases."""
    per_outcome, row = (n_possible - 1) * scoring.log_kappa, block.at // block.totals.shape[0] + value
    gain -= scoring.log_ways[block.variable]
    here, of_pieces = gain + (leaf["n_outcomes"] - 1) * per_outcome, -np.inf
    if own.n[1] > 0:
        level = _level(n_seen)
        if own.leeways[level] < 0.0:
            _bound_level(level, leaf, scoring, own)
        of_pieces = gain + own.leeways[level] + per_outcome - own.cost[0]
    own.split_bounds[0, kind, row], own.split_bounds[1, kind, row] = here + _SLACK, of_pieces
    sure = max(bound.sure, here - _SLACK) if n_possible <= most else bound.sure
    return _Bound(max(bound.most, here + _SLACK, of_pieces), sure)


@bare
def _bound_ordered(
    bound: _Bound, leaf: Any, block: Block, whole: Int, most: Int, scoring: Scoring, own: OwnScratch
) -> _Bound:
    """Return the bound extended by all splits at a threshold."""
    n_values, n_ordered, two = scoring.layout.n_states[block.variable], scoring.n_ordered[block.variable], np.int64(2)
    first, n = np.int64(FIRST), own.totals[WHOLE]
    for side in range(1 if n_ordered == n_values else 2):
        total, kind = np.int64(0), np.int64(BELOW_OR_MISSING if side == 1 else BELOW)
        for k in range(own.n[0]):
            own.counts[FIRST, k] = 0
        for value in range(1 - side, n_ordered if n_ordered == n_values or side == 1 else n_ordered + 1):
            child = CHILDREN + (n_values - 1 if value == 0 else value - 1)
            total += own.totals[child]
            for k in range(own.n[0]):
                own.counts[FIRST, k] += own.counts[child, k]
            gain = -np.inf
            if 0 < total < n:
                gain = _score_row(first, False, whole, leaf, scoring, own)
                gain += _score_row(first, True, whole, leaf, scoring, own)
                gain -= own.values[WHOLE]
            if value > 0:
                place = np.int64(value)
                bound = _with_split(bound, gain, kind, place, two, two, leaf, block, most, scoring, own)
    return bound


@bare
def _count_children(leaf: Any, block: Block, r: Int, n_values: Int, own: OwnScratch) -> Int:
    """Set the outcomes' counts of the children that the variable's states would make; return how many have cases."""
    n_seen = np.int64(0)
    for value in range(n_values):
        row, at, n = CHILDREN + value, block.at + value * r, np.int64(0)
        if leaf["part"] == 0:
            for k in range(own.n[0]):
                own.counts[row, k] = block.counts[at + own.states[k]]
                n += own.counts[row, k]
        else:
            own.counts[row, 0] = own.counts[row, 1] = 0
            for k in range(own.n[2]):
                own.counts[row, own.columns[k]] += block.counts[at + own.states[k]]
            n = own.counts[row, 0] + own.counts[row, 1]
        own.totals[row] = n
        n_seen += n > 0
    return n_seen


@bare
def bound_pieces(leaf: Any, block: Block, most: Int, scoring: Scoring, own: OwnScratch) -> _Bound:
    """Return bounds for all splits on one variable, of the leaf as it is or of its pieces; requires tables."""
    r, n_values = scoring.layout.n_states[leaf["target"]], scoring.layout.n_states[block.variable]
    whole, two, bound = scoring.multiples[r, own.n[2]], np.int64(2), _Bound(-np.inf, -np.inf)
    n_seen = _count_children(leaf, block, r, n_values, own)
    if n_seen < 2:
        return bound
    is_complete = scoring.complete and n_values == 2
    gain = -own.values[WHOLE]
    for value in range(n_values):
        row = np.int64(CHILDREN + value)
        own.split_bounds[:, ONE_STATE, block.at // r + value] = -np.inf
        if own.totals[row] == 0:
            continue
        of_child = _score_row(row, False, whole, leaf, scoring, own)
        gain += of_child
        if scoring.binary and not is_complete:
            here, kind = of_child + _score_row(row, True, whole, leaf, scoring, own), np.int64(ONE_STATE)
            here -= own.values[WHOLE]
            bound = _with_split(bound, here, kind, np.int64(value), two, two, leaf, block, most, scoring, own)
    if scoring.complete:
        n_possible = _n_possible(block, n_values, own) if block.is_restricted else n_values
        kind, zero = np.int64(COMPLETE), np.int64(0)
        bound = _with_split(bound, gain, kind, zero, n_seen, n_possible, leaf, block, most, scoring, own)
    if scoring.ordered and scoring.n_ordered[block.variable] > 2:
        bound = _bound_ordered(bound, leaf, block, whole, most, scoring, own)
    return bound


@bare
def can_merge(first: Any, second: Any) -> bool:
    """Return whether two leaves of a node are about the same states, and pieces of the same partition."""
    return (
        first["states"] == second["states"]
        and first["part"] == second["part"]
        and first["partition"] == second["partition"]
    )


@bare
def score_merged(first: Any, second: Any, state: State) -> float:
    """Return Equation 5 for the union of two leaves about the same states, or switches of the same partition."""
    scoring, counts, given = state.scoring, state.scoring.counts, state.exponents
    r = scoring.layout.n_states[first["target"]]
    # a switch has two outcomes, the part and the rest; otherwise every state is an outcome
    value, total, size, n_states = 0.0, np.int64(0), 0.0, np.int64(0)
    chosen, n_chosen, size_chosen = np.int64(0), np.int64(0), 0.0
    for k in range(r):
        if not first["states"] >> k & 1:
            continue
        exponent = first["exponent"] + second["exponent"]
        if given.shape[0] > 0:
            exponent = given[first["exponents"] + k] + given[second["exponents"] + k]
        count = np.int64(counts[first["counts"] + k]) + np.int64(counts[second["counts"] + k])
        if first["part"] == 0:
            value += _rise_of(np.int64(1), exponent, count, r, scoring)
        elif first["part"] >> k & 1:
            chosen, n_chosen, size_chosen = chosen + 1, n_chosen + count, size_chosen + exponent
        total, size, n_states = total + count, size + exponent, n_states + 1
    if first["part"] != 0:
        value = _rise_of(chosen, size_chosen, n_chosen, r, scoring)
        value += _rise_of(n_states - chosen, size - size_chosen, total - n_chosen, r, scoring)
    return value - _rise_of(n_states, size, total, r, scoring)
