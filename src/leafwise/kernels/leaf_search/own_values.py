"""Prices where a graph tests its own variable: of pieces of a distribution, and of parting a leaf into pieces.

A leaf is about some of its target's states, a mask of bits (`states`; 0: all). To part it by a mask A makes a *switch*
(is it in A, or not?), a leaf about A, unless that is a single state, and a leaf about the rest. A switch has A for its
`part`, and two outcomes. Exponents add over the states of an outcome, so parting alone gains nothing
(docs/mathematics.md): it comes with a split of one of the pieces, and what that gains is in the leaf's histogram.

Of the counts of a would-be child its *terms* are Equation 5 for the leaf's own outcomes, and, part by part, for the
switch and for the part. What is left of the first is that of the rest, as the three add up to it.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.leaf_search.state import (
    BELOW,
    BELOW_OR_MISSING,
    COMPLETE,
    ONE_STATE,
    Scoring,
    State,
)
from leafwise.kernels.scoring.dirichlet import TIE, log_gamma
from leafwise.kernels.scoring.rises import rise

SWITCH, PART, REST = range(3)  # pieces
MOST_STATES = 62  # of a target whose graph may test itself: masks are whole numbers


class OwnScratch(NamedTuple):
    """Where one thread prices pieces. Counts and exponents are those of the states that a leaf is about, in order."""

    n: Array  # how many these are, and by how many masks the leaf can be parted: each state, and then prefixes
    states: Array
    masks: Array
    is_chosen: Array  # of a switch: whether they are in its part
    counts: Array  # of one child, or of several together
    exponents: Array
    prefix: Array  # below a state of a variable
    prefix_exponents: Array
    whole: Array  # of the leaf
    whole_exponents: Array
    rises: Array  # of the states' counts
    before: Array  # terms of the leaf itself: its own, those of switches, those of parts
    after: Array  # ... of all children together
    n_seen: Array  # children with cases: of the leaf, of the rests, of the parts
    cost: Array  # of parting
    no_weights: Array


@part
def make_own_scratch(scoring: Scoring) -> OwnScratch:
    """Room for any leaf."""
    most = np.int64(0)
    if scoring.own:
        for variable in range(scoring.layout.n_states.shape[0]):
            if scoring.layout.n_states[variable] <= MOST_STATES:
                most = max(most, scoring.layout.n_states[variable])
    n_terms = 1 + 4 * most
    return OwnScratch(
        np.zeros(2, np.int64),
        np.empty(most, np.int64),
        np.empty(2 * most, np.int64),
        np.empty(most, np.bool_),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most),
        np.empty(n_terms),
        np.empty(n_terms),
        np.empty(n_terms, np.int64),
        np.empty(1),
        np.empty(0),
    )


@bare
def count_bits(mask: Int) -> Int:
    """How many states a mask has."""
    n = np.int64(0)
    while mask != 0:
        mask &= mask - 1
        n += 1
    return n


@bare
def states_of(leaf: Any, scoring: Scoring) -> Int:
    """The states that a leaf is about, as a mask; of a target that has not too many."""
    if leaf["states"] != 0:
        return np.int64(leaf["states"])
    return (np.int64(1) << scoring.layout.n_states[leaf["target"]]) - 1


@bare
def _list_masks(leaf: Any, scoring: Scoring, own: OwnScratch) -> None:
    """The leaf's states, and the masks by which it can be parted: each state, and the first several in order."""
    states, target = states_of(leaf, scoring), leaf["target"]
    n, n_ordered, n_masks = np.int64(0), np.int64(0), np.int64(0)
    for k in range(scoring.layout.n_states[target]):
        if states >> k & 1:
            own.states[n], own.is_chosen[n], own.masks[n] = k, leaf["part"] >> k & 1, np.int64(1) << k
            n += 1
            n_ordered += k < scoring.n_ordered[target]
    if leaf["part"] == 0 and n > 2:
        n_masks, prefix = n, own.masks[0]
        for size in range(2, min(n_ordered, n - 2) + 1):
            prefix |= own.masks[size - 1]
            own.masks[n_masks] = prefix
            n_masks += 1
    own.n[0], own.n[1] = n, n_masks


@bare
def part_cost(leaf: Any, scoring: Scoring) -> float:
    """What the structure prior charges for parting the leaf, whatever the part."""
    if not scoring.charges_tests:
        return 0.0
    states = states_of(leaf, scoring)
    n_states = count_bits(states)
    n_ordered = count_bits(states & ((np.int64(1) << scoring.n_ordered[leaf["target"]]) - 1))
    return scoring.shared_cost + math.log(n_states + max(min(n_ordered, n_states - 2) - 1, 0))


@bare
def n_pieces(split: Any) -> Int:
    """How many pieces a split makes before it splits one of them."""
    if split["part"] == 0:
        return np.int64(1)
    return np.int64(2) if split["part"] & (split["part"] - 1) == 0 else np.int64(3)


@bare
def n_kids(split: Any) -> Int:
    """How many children the piece gets that is split."""
    return split["n_children"] - n_pieces(split) + 1


@bare
def first_kid(split: Any) -> Int:
    """Where these begin among all new leaves: pieces are in order."""
    if split["part"] == 0 or split["piece"] == SWITCH:
        return np.int64(0)
    return np.int64(1) if split["piece"] == PART else n_pieces(split) - 1


@bare
def n_outcomes(leaf: Any, split: Any, scoring: Scoring) -> Int:
    """Of the piece of a leaf that is split."""
    if split["part"] == 0:
        return np.int64(leaf["n_outcomes"])
    if split["piece"] == SWITCH:
        return np.int64(2)
    n = count_bits(split["part"])
    return n if split["piece"] == PART else count_bits(states_of(leaf, scoring)) - n


@bare
def set_piece(new: Any, piece: Int, at: Int, leaf: Any, part_: Int, scoring: Scoring) -> None:
    """What a new leaf is about that is a piece of another, which was parted."""
    states = states_of(leaf, scoring)
    new["states"], new["part"], new["partition"] = states, 0, -1
    if piece == SWITCH:
        new["part"], new["partition"], new["n_outcomes"] = part_, at, 2
        return
    new["states"] = part_ if piece == PART else states & ~part_
    new["n_outcomes"] = count_bits(new["states"])


@bare
def inherit(new: Any, leaf: Any) -> None:
    """A new leaf is about the same as another."""
    new["states"], new["part"] = leaf["states"], leaf["part"]
    new["partition"], new["n_outcomes"] = leaf["partition"], leaf["n_outcomes"]


@bare
def _rise(n: Int, exponent: float, count: Int, r: Int, scoring: Scoring) -> float:
    """log Γ(count + a) - log Γ(a) for an outcome of n states of a target with r: a is in a table, or is given."""
    if scoring.multiples.shape[0] > 0:
        return rise(scoring.multiples[r, n], count, scoring.rises)
    if count == 0 or exponent <= 0.0:
        return 0.0
    return log_gamma(count * scoring.rises.unit + exponent) - log_gamma(exponent)


@bare
def _add_switch(is_first: bool, r: Int, scoring: Scoring, own: OwnScratch) -> None:
    """Add the term of a switch for the counts that are loaded."""
    n, m, a, b, chosen = np.int64(0), np.int64(0), 0.0, 0.0, np.int64(0)
    for k in range(own.n[0]):
        if own.is_chosen[k]:
            n, a, chosen = n + own.counts[k], a + own.exponents[k], chosen + 1
        else:
            m, b = m + own.counts[k], b + own.exponents[k]
    value = _rise(chosen, a, n, r, scoring) + _rise(own.n[0] - chosen, b, m, r, scoring)
    value -= _rise(own.n[0], a + b, n + m, r, scoring)
    own.after[0] = value if is_first else own.after[0] + value
    own.n_seen[0] = np.int64(n + m > 0) + (0 if is_first else own.n_seen[0])


@bare
def _add_terms(leaf: Any, is_first: bool, scoring: Scoring, own: OwnScratch) -> None:
    """Add the terms for the counts that are loaded to those of other children."""
    r, n_states, n_masks = scoring.layout.n_states[leaf["target"]], own.n[0], own.n[1]
    counts, exponents, rises, after, n_seen = own.counts, own.exponents, own.rises, own.after, own.n_seen
    if leaf["part"] != 0:
        _add_switch(is_first, r, scoring, own)
        return
    if is_first:
        for term in range(1 + 2 * n_masks):
            after[term], n_seen[term] = 0.0, 0
    total, n, size = 0.0, np.int64(0), 0.0
    for k in range(n_states):
        rises[k] = _rise(np.int64(1), exponents[k], counts[k], r, scoring)
        total += rises[k]
        n += counts[k]
        size += exponents[k]
    if n == 0:
        return
    whole = _rise(n_states, size, n, r, scoring)
    after[0] += total - whole
    n_seen[0] += 1
    if n_masks == 0:
        return
    has_tables = scoring.multiples.shape[0] > 0
    row = scoring.multiples[r, n_states - 1] if has_tables else np.int64(0)
    for k in range(n_states):
        left = n - counts[k]
        rest = rise(row, left, scoring.rises) if has_tables else 0.0
        if not has_tables:
            rest = _rise(n_states - 1, size - exponents[k], left, r, scoring)
        after[1 + k] += rises[k] + rest - whole
        n_seen[1 + k] += left > 0
    value, m, a = rises[0], counts[0], exponents[0]
    for at in range(n_states, n_masks):
        chosen = at - n_states + 2
        value, m, a = value + rises[chosen - 1], m + counts[chosen - 1], a + exponents[chosen - 1]
        one = _rise(chosen, a, m, r, scoring)
        after[1 + at] += one + _rise(n_states - chosen, size - a, n - m, r, scoring) - whole
        after[1 + n_masks + at] += value - one
        n_seen[1 + at] += n - m > 0
        n_seen[1 + n_masks + at] += m > 0


@bare
def begin_pieces(leaf: Any, totals: Array, weights: Array, scoring: Scoring, own: OwnScratch) -> None:
    """Make ready to price a leaf with these counts: its parts, and what its pieces are worth before."""
    r = scoring.layout.n_states[leaf["target"]]
    own.n[0] = own.n[1] = 0
    if not scoring.own or r < 3 or r > MOST_STATES:
        return
    _list_masks(leaf, scoring, own)
    own.cost[0] = part_cost(leaf, scoring)
    for k in range(own.n[0]):
        state = own.states[k]
        own.whole[k] = own.counts[k] = totals[state]
        own.whole_exponents[k] = weights[state] if weights.shape[0] > 0 else leaf["exponent"]
        own.exponents[k] = own.whole_exponents[k]
    _add_terms(leaf, True, scoring, own)
    for term in range(1 + 2 * own.n[1]):
        own.before[term] = own.after[term]


class Block(NamedTuple):
    """What is known of the children that a variable's states would make, and of the leaf.

    Their exponents come from tables, from weights in the layout of the histogram, or, under BDeu, from shares.
    """

    variable: Int
    counts: Array  # the histogram,
    at: Int  # ... where the variable's rows begin in it,
    totals: Array  # ... and the leaf's own
    weights: Array
    weights_at: Int
    shares: Array  # of all assignments, for each state,
    first_share: Int
    is_restricted: bool  # ... if tests on the way restrict the variable; else it is the same for all


@bare
def _load(value: Int, leaf: Any, block: Block, scoring: Scoring, own: OwnScratch) -> None:
    """The counts and exponents of the child that one state would make."""
    r, n_values = scoring.layout.n_states[leaf["target"]], scoring.layout.n_states[block.variable]
    exponent = leaf["exponent"] / n_values
    if block.is_restricted:
        exponent = block.shares[block.first_share + value] * scoring.equivalent_sample_size / r
    for k in range(own.n[0]):
        at = value * r + own.states[k]
        own.counts[k] = block.counts[block.at + at]
        own.exponents[k] = block.weights[block.weights_at + at] if block.weights.shape[0] > 0 else exponent


@bare
def _take(
    split: Any, gain: float, variable: Int, kind: Int, value: Int, n_children: Int, mask: Int, piece: Int, most: Int
) -> None:
    if gain > split["gain"] + TIE and n_children <= most:
        split["gain"], split["variable"], split["kind"], split["state"] = gain, variable, kind, value
        split["n_children"], split["part"], split["piece"] = n_children, mask, piece


@bare
def _offer_leaf(
    split: Any,
    leaf: Any,
    variable: Int,
    kind: Int,
    value: Int,
    n: Int,
    most: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> None:
    """Offer the split of the leaf as it is into n children, whose terms were added up."""
    if own.n_seen[0] > 1:
        gain = own.after[0] - own.before[0] - scoring.log_ways[variable]
        gain += (n - 1) * (leaf["n_outcomes"] - 1) * scoring.log_kappa
        _take(split, gain, variable, kind, value, n, np.int64(0), np.int64(0), most)


@bare
def _offer_pieces(
    split: Any, variable: Int, kind: Int, value: Int, n: Int, most: Int, scoring: Scoring, own: OwnScratch
) -> None:
    """Offer the split of every piece that the leaf can be parted into."""
    n_states, n_masks, before, after = own.n[0], own.n[1], own.before, own.after
    fixed, per_outcome = -scoring.log_ways[variable] - own.cost[0], (n - 1) * scoring.log_kappa
    gain = after[0] - before[0]
    for at in range(n_masks):
        chosen = 1 if at < n_states else at - n_states + 2
        of_switch, of_part = after[1 + at] - before[1 + at], 0.0
        n_new = n + (1 if chosen == 1 else 2)
        if own.n_seen[0] > 1:
            here = of_switch + per_outcome + fixed
            _take(split, here, variable, kind, value, n_new, own.masks[at], np.int64(SWITCH), most)
        if chosen > 1:
            of_part = after[1 + n_masks + at] - before[1 + n_masks + at]
            if own.n_seen[1 + n_masks + at] > 1:
                here = of_part + (chosen - 1) * per_outcome + fixed
                _take(split, here, variable, kind, value, n_new, own.masks[at], np.int64(PART), most)
        if own.n_seen[1 + at] > 1:
            here = gain - of_switch - of_part + (n_states - chosen - 1) * per_outcome + fixed
            _take(split, here, variable, kind, value, n_new, own.masks[at], np.int64(REST), most)


@bare
def _offer(
    split: Any,
    leaf: Any,
    variable: Int,
    kind: Int,
    value: Int,
    n: Int,
    parts: bool,
    most: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> None:
    if parts:
        _offer_pieces(split, variable, kind, value, n, most, scoring, own)
    else:
        _offer_leaf(split, leaf, variable, kind, value, n, most, scoring, own)


@bare
def _price_complete(
    split: Any, leaf: Any, block: Block, parts: bool, most: Int, scoring: Scoring, own: OwnScratch
) -> bool:
    """Offer complete splits; whether any split on the variable can tell cases apart."""
    variable = block.variable
    n_values = scoring.layout.n_states[variable]
    n_possible = n_values
    for value in range(n_values):
        _load(np.int64(value), leaf, block, scoring, own)
        size = 0.0
        for k in range(own.n[0]):
            size += own.exponents[k]
        if (block.weights.shape[0] > 0 and size <= 0.0) or (
            block.is_restricted and block.shares[block.first_share + value] <= 0.0
        ):
            n_possible -= 1
        _add_terms(leaf, value == 0, scoring, own)
    if scoring.complete:
        kind = np.int64(COMPLETE)
        _offer(split, leaf, variable, kind, np.int64(0), n_possible, parts, most, scoring, own)
    return bool(own.n_seen[0] > 1)


@bare
def _price_two(
    split: Any,
    leaf: Any,
    block: Block,
    kind: Int,
    value: Int,
    parts: bool,
    most: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> None:
    """Offer splits in two: what is loaded, and what that leaves."""
    _add_terms(leaf, True, scoring, own)
    for k in range(own.n[0]):
        own.counts[k] = own.whole[k] - own.counts[k]
        own.exponents[k] = max(own.whole_exponents[k] - own.exponents[k], 0.0)
    _add_terms(leaf, False, scoring, own)
    _offer(split, leaf, block.variable, kind, value, np.int64(2), parts, most, scoring, own)


@bare
def _price_ordered(
    split: Any, leaf: Any, block: Block, parts: bool, most: Int, scoring: Scoring, own: OwnScratch
) -> None:
    """Offer all splits below a state of a variable; missing cells on either side."""
    n_values, n_ordered = scoring.layout.n_states[block.variable], scoring.n_ordered[block.variable]
    for side in range(1 if n_ordered == n_values else 2):
        for k in range(own.n[0]):
            own.prefix[k], own.prefix_exponents[k] = 0, 0.0
        for value in range(1 - side, n_ordered if n_ordered == n_values or side == 1 else n_ordered + 1):
            _load(np.int64(n_values - 1 if value == 0 else value - 1), leaf, block, scoring, own)
            for k in range(own.n[0]):
                own.prefix[k] += own.counts[k]
                own.prefix_exponents[k] += own.exponents[k]
                own.counts[k], own.exponents[k] = own.prefix[k], own.prefix_exponents[k]
            if value > 0:
                kind = np.int64(BELOW_OR_MISSING if side == 1 else BELOW)
                _price_two(split, leaf, block, kind, np.int64(value), parts, most, scoring, own)


@bare
def price_pieces(split: Any, leaf: Any, block: Block, most: Int, scoring: Scoring, own: OwnScratch) -> None:
    """All splits on one variable: of a leaf that is a piece, and then of the pieces that a leaf can be parted into."""
    n_values = scoring.layout.n_states[block.variable]
    for parts in range(0 if leaf["states"] != 0 else 1, 2 if own.n[1] > 0 else 1):
        if not _price_complete(split, leaf, block, parts == 1, most, scoring, own):
            return
        if scoring.binary and not (scoring.complete and n_values == 2):
            kind = np.int64(ONE_STATE)
            for value in range(n_values):
                _load(np.int64(value), leaf, block, scoring, own)
                _price_two(split, leaf, block, kind, np.int64(value), parts == 1, most, scoring, own)
        if scoring.ordered and scoring.n_ordered[block.variable] > 2:
            _price_ordered(split, leaf, block, parts == 1, most, scoring, own)


@bare
def can_merge(first: Any, second: Any) -> bool:
    """Whether two leaves of a node are about the same."""
    return (
        first["states"] == second["states"]
        and first["part"] == second["part"]
        and first["partition"] == second["partition"]
    )


@bare
def score_merged(first: Any, second: Any, state: State) -> float:
    """Equation 5 for the union of two leaves that are about the same: some states, or a part of them."""
    scoring, counts, given = state.scoring, state.scoring.counts, state.exponents
    r = scoring.layout.n_states[first["target"]]
    # two outcomes: of a switch the part and the rest; of a leaf about states each is one of its own
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
            value += _rise(np.int64(1), exponent, count, r, scoring)
        elif first["part"] >> k & 1:
            chosen, n_chosen, size_chosen = chosen + 1, n_chosen + count, size_chosen + exponent
        total, size, n_states = total + count, size + exponent, n_states + 1
    if first["part"] != 0:
        value = _rise(chosen, size_chosen, n_chosen, r, scoring)
        value += _rise(n_states - chosen, size - size_chosen, total - n_chosen, r, scoring)
    return value - _rise(n_states, size, total, r, scoring)
