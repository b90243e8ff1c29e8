"""Prices where a graph tests its own variable: of pieces of a distribution, and of parting a leaf into pieces.

A leaf is about some of its target's states, a mask of bits (`states`; 0: all). To part it by a mask A makes a *switch*
(is it in A, or not?), a leaf about A, unless that is a single state, and a leaf about the rest. A switch has A for its
`part`, and two outcomes. Exponents add over the states of an outcome, so parting alone gains nothing
(docs/mathematics.md): it comes with a split of one of the pieces, and what that gains is in the leaf's histogram.

For a vector of counts (those of a would-be child) its *terms* are Equation 5 for the leaf's own outcomes, and then,
part by part, for the switch, for the part and for the rest.
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
    """Where one thread prices pieces."""

    n: Array  # terms that are priced, and masks in `parts`
    parts: Array
    vector: Array  # counts of the target's states in one child,
    exponents: Array  # ... and their exponents, where there is no table for them;
    prefix: Array  # the same below a state of a variable
    prefix_exponents: Array
    whole_exponents: Array  # of the leaf
    rises: Array  # of the states' counts
    before: Array  # terms of the leaf itself,
    after: Array  # ... of all children together,
    here: Array  # ... of one,
    sizes: Array  # ... and how many cases that has in each piece
    n_seen: Array  # children with cases, by piece
    no_weights: Array


@part
def make_own_scratch(scoring: Scoring) -> OwnScratch:
    """Room for any leaf."""
    most = np.int64(0)
    if scoring.own:
        for variable in range(scoring.layout.n_states.shape[0]):
            if scoring.layout.n_states[variable] <= MOST_STATES:
                most = max(most, scoring.layout.n_states[variable])
    n_terms = 1 + 6 * most
    return OwnScratch(
        np.zeros(2, np.int64),
        np.empty(2 * most, np.int64),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most, np.int64),
        np.empty(most),
        np.empty(most),
        np.empty(most),
        np.empty(n_terms),
        np.empty(n_terms),
        np.empty(n_terms),
        np.empty(n_terms, np.int64),
        np.empty(n_terms, np.int64),
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
def list_parts(leaf: Any, scoring: Scoring, parts: Array) -> Int:
    """The masks by which the leaf can be parted: each state, and the first ones of several in order; how many."""
    states, r, n = states_of(leaf, scoring), scoring.layout.n_states[leaf["target"]], np.int64(0)
    n_states = count_bits(states)
    if leaf["part"] != 0 or n_states < 3:
        return n
    for k in range(r):
        if states >> k & 1:
            parts[n] = np.int64(1) << k
            n += 1
    prefix, size = np.int64(0), 0
    for k in range(scoring.n_ordered[leaf["target"]]):
        if states >> k & 1:
            prefix |= np.int64(1) << k
            size += 1
            if 2 <= size <= n_states - 2:
                parts[n] = prefix
                n += 1
    return n


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
def _score_switch(leaf: Any, counts: Array, exponents: Array, r: Int, scoring: Scoring) -> tuple[float, Int]:
    """Equation 5 for the outcomes of a switch, and its cases."""
    n, m, a, size, chosen, others = np.int64(0), np.int64(0), 0.0, 0.0, np.int64(0), np.int64(0)
    for k in range(r):
        if leaf["part"] >> k & 1:
            chosen += 1
            n += counts[k]
            a += exponents[k]
        elif leaf["states"] >> k & 1:
            others += 1
            m += counts[k]
            size += exponents[k]
    value = _rise(chosen, a, n, r, scoring) + _rise(others, size, m, r, scoring)
    return value - _rise(chosen + others, a + size, n + m, r, scoring), n + m


@bare
def _set_terms(leaf: Any, out: Array, scoring: Scoring, own: OwnScratch) -> None:
    """All terms of the vector that is loaded, and how many cases are in each piece."""
    vector, exponents, sizes, rises = own.vector, own.exponents, own.sizes, own.rises
    r, states = scoring.layout.n_states[leaf["target"]], states_of(leaf, scoring)
    if leaf["part"] != 0:
        out[0], sizes[0] = _score_switch(leaf, vector, exponents, r, scoring)
        return
    total, n, size, n_states = 0.0, np.int64(0), 0.0, np.int64(0)
    for k in range(r):
        if states >> k & 1:
            rises[k] = _rise(np.int64(1), exponents[k], vector[k], r, scoring)
            total += rises[k]
            n += vector[k]
            size += exponents[k]
            n_states += 1
    whole = _rise(n_states, size, n, r, scoring)
    out[0], sizes[0] = total - whole, n
    for at in range(own.n[1]):
        part_ = own.parts[at]
        value, m, a, chosen = 0.0, np.int64(0), 0.0, np.int64(0)
        left = part_
        k = 0
        while left != 0:
            if left & 1:
                value += rises[k]
                m += vector[k]
                a += exponents[k]
                chosen += 1
            left >>= 1
            k += 1
        one = value if chosen == 1 else _rise(chosen, a, m, r, scoring)
        two = _rise(n_states - chosen, size - a, n - m, r, scoring)
        term = 1 + 3 * at
        out[term + SWITCH], sizes[term + SWITCH] = one + two - whole, n
        out[term + PART], sizes[term + PART] = value - one, 0 if chosen == 1 else m
        out[term + REST], sizes[term + REST] = total - value - two, n - m


@bare
def begin_pieces(leaf: Any, totals: Array, weights: Array, scoring: Scoring, own: OwnScratch) -> None:
    """Make ready to price a leaf with these counts: its parts, and what its pieces are worth before."""
    r = scoring.layout.n_states[leaf["target"]]
    own.n[0] = own.n[1] = 0
    if not scoring.own or r < 3 or r > MOST_STATES:
        return
    own.n[1] = list_parts(leaf, scoring, own.parts)
    own.n[0] = 1 + 3 * own.n[1]
    for k in range(r):
        own.vector[k] = totals[k]
        own.whole_exponents[k] = weights[k] if weights.shape[0] > 0 else leaf["exponent"]
        own.exponents[k] = own.whole_exponents[k]
    _set_terms(leaf, own.before, scoring, own)


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
    for k in range(r):
        own.vector[k] = block.counts[block.at + value * r + k]
        own.exponents[k] = block.weights[block.weights_at + value * r + k] if block.weights.shape[0] > 0 else exponent


@bare
def _add_child(leaf: Any, is_first: bool, scoring: Scoring, own: OwnScratch) -> None:
    """Add the terms of the vector that is loaded to those of other children."""
    _set_terms(leaf, own.here, scoring, own)
    for term in range(own.n[0]):
        own.after[term] = own.here[term] + (0.0 if is_first else own.after[term])
        own.n_seen[term] = np.int64(own.sizes[term] > 0) + (0 if is_first else own.n_seen[term])


@bare
def _offer_all(
    split: Any,
    leaf: Any,
    variable: Int,
    kind: Int,
    value: Int,
    n: Int,
    first: Int,
    most: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> None:
    """Offer the split of every piece into n children, whose terms were added up: the leaf (first: 0), or pieces (1)."""
    fixed = -scoring.log_ways[variable]
    cost = part_cost(leaf, scoring) if own.n[1] > 0 else 0.0
    n_states = count_bits(states_of(leaf, scoring))
    for term in range(first, own.n[0] if first > 0 else np.int64(1)):
        if own.n_seen[term] < 2:
            continue
        gain, outcomes, n_children, part_ = own.after[term] - own.before[term], leaf["n_outcomes"], n, np.int64(0)
        if term > 0:
            part_ = own.parts[(term - 1) // 3]
            chosen, piece = count_bits(part_), (term - 1) % 3
            n_children += 1 if chosen == 1 else 2
            outcomes = np.int64(2) if piece == SWITCH else chosen if piece == PART else n_states - chosen
            gain -= cost
        gain += (n - 1) * (outcomes - 1) * scoring.log_kappa + fixed
        if gain > split["gain"] + TIE and n_children <= most:
            split["gain"], split["variable"], split["kind"], split["state"] = gain, variable, kind, value
            split["n_children"], split["part"], split["piece"] = n_children, part_, (term - 1) % 3


@bare
def _price_complete(
    split: Any, leaf: Any, block: Block, most: Int, first: Int, scoring: Scoring, own: OwnScratch
) -> bool:
    """Offer the complete split of every piece; whether any split of any piece can tell cases apart."""
    variable = block.variable
    n_values = scoring.layout.n_states[variable]
    n_possible, most_seen = n_values, np.int64(0)
    for value in range(n_values):
        _load(np.int64(value), leaf, block, scoring, own)
        size = 0.0
        for k in range(block.totals.shape[0]):
            size += own.exponents[k]
        if (block.weights.shape[0] > 0 and size <= 0.0) or (
            block.is_restricted and block.shares[block.first_share + value] <= 0.0
        ):
            n_possible -= 1
        _add_child(leaf, value == 0, scoring, own)
    for term in range(own.n[0]):
        most_seen = max(most_seen, own.n_seen[term])
    if scoring.complete:
        _offer_all(split, leaf, variable, np.int64(COMPLETE), np.int64(0), n_possible, first, most, scoring, own)
    return bool(most_seen > 1)


@bare
def _price_two(
    split: Any,
    leaf: Any,
    block: Block,
    kind: Int,
    value: Int,
    most: Int,
    first: Int,
    scoring: Scoring,
    own: OwnScratch,
) -> None:
    """Offer the split of every piece in two: what is loaded, and what that leaves."""
    _add_child(leaf, True, scoring, own)
    for k in range(block.totals.shape[0]):
        own.vector[k] = block.totals[k] - own.vector[k]
        own.exponents[k] = max(own.whole_exponents[k] - own.exponents[k], 0.0)
    _add_child(leaf, False, scoring, own)
    _offer_all(split, leaf, block.variable, kind, value, np.int64(2), first, most, scoring, own)


@bare
def _price_ordered(
    split: Any, leaf: Any, block: Block, most: Int, first: Int, scoring: Scoring, own: OwnScratch
) -> None:
    """Offer all splits of every piece below a state of a variable; missing cells on either side."""
    r, n_values = block.totals.shape[0], scoring.layout.n_states[block.variable]
    n_ordered = scoring.n_ordered[block.variable]
    for side in range(1 if n_ordered == n_values else 2):
        for k in range(r):
            own.prefix[k], own.prefix_exponents[k] = 0, 0.0
        for value in range(1 - side, n_ordered if n_ordered == n_values or side == 1 else n_ordered + 1):
            _load(np.int64(n_values - 1 if value == 0 else value - 1), leaf, block, scoring, own)
            for k in range(r):
                own.prefix[k] += own.vector[k]
                own.prefix_exponents[k] += own.exponents[k]
                own.vector[k], own.exponents[k] = own.prefix[k], own.prefix_exponents[k]
            if value > 0:
                kind = np.int64(BELOW_OR_MISSING if side == 1 else BELOW)
                _price_two(split, leaf, block, kind, np.int64(value), most, first, scoring, own)


@bare
def price_pieces(split: Any, leaf: Any, block: Block, most: Int, scoring: Scoring, own: OwnScratch) -> None:
    """All splits on one variable: of a leaf that is a piece, and then of the pieces that a leaf can be parted into."""
    n_values = scoring.layout.n_states[block.variable]
    for first in range(0 if leaf["states"] != 0 else 1, 2 if own.n[1] > 0 else 1):
        if not _price_complete(split, leaf, block, most, np.int64(first), scoring, own):
            return
        if scoring.binary and not (scoring.complete and n_values == 2):
            for value in range(n_values):
                _load(np.int64(value), leaf, block, scoring, own)
                _price_two(
                    split, leaf, block, np.int64(ONE_STATE), np.int64(value), most, np.int64(first), scoring, own
                )
        if scoring.ordered and scoring.n_ordered[block.variable] > 2:
            _price_ordered(split, leaf, block, most, np.int64(first), scoring, own)


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
