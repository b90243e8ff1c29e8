"""Gains from histograms: what Equation 5, times Equation 6, gains by each split of a leaf and by each merge of two.

Two ways to price the same thing. With the uniform prior every exponent is one and all gamma functions are factorials of
counts: a table. With a prior network each cell of the histogram has its own exponent, laid out like the histogram; an
exponent of zero marks states that cannot occur together with the leaf's paths.

Ties: candidates are visited in the order variable, complete before binary, state; a later one wins only by gaining more
than TIE over the best so far.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.arrays import Array, Int, Layout
from leafwise.kernels.jit import bare, jit, part
from leafwise.kernels.references import refer

TIE = 1e-9
COMPLETE = -1  # in the place of a binary split's state

LEAF = np.dtype(
    [
        ("log_likelihood", np.float64),  # log marginal likelihood of the leaf's cases
        (
            "gain",
            np.float64,
        ),  # of the best split, 0 if none gains; an upper bound where that split is not allowed now, inf: yet to price
        ("merge_gain", np.float64),  # of the best merge with a later leaf of the node
        ("histogram", np.int64),  # where it begins; -1: it is yet to count, or was dropped and is counted when needed
        ("counts", np.int64),  # where the target's counts begin
        ("exponents", np.int64),  # where the leaf's own exponents begin
        ("cases", np.int64),  # the counter's set
        ("target", np.int64),
        ("variable", np.int64),
        ("state", np.int64),
        ("n_children", np.int64),
        ("room", np.int64),  # the most children a split could have when the leaf was priced
        ("first_child", np.int64),  # the leaves its best split makes, once they are there; -1 before
        ("groups", np.int64),  # where it says which state goes to which of them; -1: as usual
        ("without", np.int64),  # a second choice, should this variable be ruled out; -1: none is known
        ("second_gain", np.float64),
        ("second_variable", np.int64),
        ("second_state", np.int64),
        ("second_n_children", np.int64),
        ("second_child", np.int64),  # the first leaf that the second choice makes, once they are there
        ("partner", np.int64),
        ("previous", np.int64),
        ("next", np.int64),
    ],
    align=True,
)


class Pricing(NamedTuple):
    """What prices depend on besides the counts."""

    layout: Layout
    allowed: Array  # allowed[target, variable]: may the target's graph test the variable, as long as there is no cycle?
    descendants: Array  # descendants[target] is a row of bits: what it may not test, or there were one
    nodes: Array  # whose `room` limits the children of a split
    counts: Array  # the target's counts in each leaf
    log_factorial: Array
    log_kappa: float
    complete: bool
    binary: bool


@jit
def log_factorials(n: int) -> Array:
    """log 0!, log 1!, ... log n!."""
    table = np.empty(n + 1)
    for k in range(n + 1):
        table[k] = math.lgamma(k + 1.0)
    return table


@part
def _log_likelihood(counts: Array, exponents: Array) -> float:
    """Equation 5 for one leaf. Zero exponents belong to impossible states and do not count."""
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


@bare
def _by_table(counts: Array, begin: Int, end: Int, log_factorial: Array) -> float:
    n, value = 0, 0.0
    for k in range(begin, end):
        n += counts[k]
        value += log_factorial[counts[k]]
    return value + log_factorial[end - begin - 1] - log_factorial[n + end - begin - 1]


@bare
def _rest_by_table(counts: Array, at: int, totals: Array, log_factorial: Array) -> float:
    n, value = 0, 0.0
    for k in range(totals.shape[0]):
        count = totals[k] - counts[at + k]
        n += count
        value += log_factorial[count]
    return value + log_factorial[totals.shape[0] - 1] - log_factorial[n + totals.shape[0] - 1]


@bare
def _total(counts: Array, at: Int, n_classes: int) -> int:
    n = 0
    for k in range(n_classes):
        n += counts[at + k]
    return n


@bare
def _settle(leaf: Any, log_likelihood: float, totals: Array, pricing: Pricing) -> None:
    for k in range(totals.shape[0]):
        pricing.counts[leaf["counts"] + k] = totals[k]
    leaf["log_likelihood"] = log_likelihood
    leaf["gain"] = 0.0
    leaf["variable"] = -1
    leaf["state"] = 0
    leaf["n_children"] = 0
    leaf["room"] = pricing.nodes[leaf["target"]]["room"]


@bare
def _offer(leaf: Any, gain: float, variable: int, state: Int, n_children: Int) -> None:
    if gain > leaf["gain"] + TIE and n_children <= leaf["room"]:
        leaf["gain"] = gain
        leaf["variable"] = variable
        leaf["state"] = state
        leaf["n_children"] = n_children


@bare
def may_test(target: int, variable: int, pricing: Pricing) -> bool:
    """Whether the target's graph may test the variable now."""
    is_below = pricing.descendants[target, variable >> 6] >> np.uint64(variable & 63) & np.uint64(1)
    return pricing.allowed[target, variable] != 0 and is_below == np.uint64(0)


@bare
def _gain_of_two(leaf: Any, a: int, b: int, c: int, d: int, pricing: Pricing) -> float:
    """What splitting a leaf of a binary target in two gains, which get these counts."""
    log_factorial = pricing.log_factorial
    after = (log_factorial[a] + log_factorial[b] - log_factorial[a + b + 1]) + (
        log_factorial[c] + log_factorial[d] - log_factorial[c + d + 1]
    )
    gain: float = after - leaf["log_likelihood"] + pricing.log_kappa
    return gain


@bare
def _fewest(leaf: Any, few: int, most: int, zeros: int, ones: int, pricing: Pricing) -> int:
    """A number of cases, from `few` to `most`: a split of which one side has fewer gains no more than the best so far.

    For a side of a given size the gain is convex in the target's counts, so it is largest at one of their ends.
    """
    while few < most and 2 * few <= zeros + ones:
        low, high = max(0, few - ones), min(few, zeros)
        gain = _gain_of_two(leaf, zeros - low, ones - (few - low), low, few - low, pricing)
        other = _gain_of_two(leaf, zeros - high, ones - (few - high), high, few - high, pricing)
        if max(gain, other) > leaf["gain"]:
            return few
        few += 1
    return few


@bare
def _price_variable(
    leaf: Any, counts: Array, at: int, variable: int, pricing: Pricing, totals: Array, possible: Array
) -> None:
    """All splits on one variable, uniform prior. `possible` flags the states that occur with the leaf's paths."""
    n_classes = totals.shape[0]
    n_states = pricing.layout.n_states[variable]
    n = _total(totals, np.int64(0), n_classes)
    penalty = (n_classes - 1) * pricing.log_kappa
    n_seen, n_possible, after = 0, 0, 0.0
    for state in range(n_states):
        here = at + state * n_classes
        n_seen += _total(counts, here, n_classes) > 0
        n_possible += possible.shape[0] == 0 or possible[at // n_classes + state]
        after += _by_table(counts, here, here + n_classes, pricing.log_factorial)
    if n_seen < 2:
        return
    if pricing.complete:
        _offer(
            leaf, after - leaf["log_likelihood"] + (n_possible - 1) * penalty, variable, np.int64(COMPLETE), n_possible
        )
    if pricing.binary:
        for state in range(n_states):
            here = at + state * n_classes
            if 0 < _total(counts, here, n_classes) < n:
                one = _by_table(counts, here, here + n_classes, pricing.log_factorial)
                rest = _rest_by_table(counts, here, totals, pricing.log_factorial)
                _offer(leaf, one + rest - leaf["log_likelihood"] + penalty, variable, state, np.int64(2))


@bare
def price_by_table(leaf: Any, histograms: Array, possible: Array, pricing: Pricing) -> None:
    """The leaf's best split under the uniform prior; `possible` is empty where all states are."""
    layout = pricing.layout
    target = leaf["target"]
    which = layout.of_target[target]
    n_classes = layout.n_states[target]
    size = layout.n_rows[which] * n_classes
    counts = histograms[leaf["histogram"] : leaf["histogram"] + size + n_classes]
    totals = counts[size:]
    _settle(leaf, _by_table(totals, np.int64(0), n_classes, pricing.log_factorial), totals, pricing)
    begin, end = layout.start[which], layout.start[which + 1]
    zeros, ones, few, most = totals[0], totals[n_classes - 1], 1, (end - begin) // 8  # looking costs time, too
    if n_classes == 2:
        few = _fewest(leaf, few, most, zeros, ones, pricing)
    for entry in range(begin, end):
        variable = layout.variables[entry]
        here = layout.bases[entry] * n_classes
        if n_classes == 2 and layout.n_states[variable] == 2:
            c, d = counts[here + 2], counts[here + 3]
            if few <= c + d <= zeros + ones - few and may_test(target, variable, pricing):
                gain = _gain_of_two(leaf, zeros - c, ones - d, c, d, pricing)
                if gain > leaf["gain"] + TIE:
                    _offer(leaf, gain, variable, np.int64(COMPLETE if pricing.complete else 0), np.int64(2))
                    few = _fewest(leaf, few, most, zeros, ones, pricing)
        elif may_test(target, variable, pricing):
            _price_variable(leaf, counts, here, variable, pricing, totals, possible)


@jit
def price_all_by_table(
    batch: Array, begin: int, end: int, leaves: Array, histograms: Array, possible: Array, at: Array, pricing: Pricing
) -> None:
    """The best split of each leaf in the batch, under the uniform prior; what is possible begins at at[b] for each."""
    pricing = refer(pricing)
    for b in range(begin, end):
        price_by_table(leaves[batch[b]], histograms, possible[at[b] : at[b + 1]], pricing)


@part
def _price_exponents(
    leaf: Any, counts: Array, weights: Array, at: int, variable: int, pricing: Pricing, n_classes: int
) -> None:
    """All splits on one variable; the last n_classes entries of counts and weights are the leaf's totals."""
    n_states = pricing.layout.n_states[variable]
    totals, own = counts[counts.shape[0] - n_classes :], weights[weights.shape[0] - n_classes :]
    n = _total(totals, np.int64(0), n_classes)
    penalty = (n_classes - 1) * pricing.log_kappa
    n_seen, n_possible, after = 0, 0, 0.0
    for state in range(n_states):
        here = at + state * n_classes
        n_seen += _total(counts, here, n_classes) > 0
        n_possible += _total(weights, here, n_classes) > 0.0
        after += _log_likelihood(counts[here : here + n_classes], weights[here : here + n_classes])
    if n_seen < 2:
        return
    if pricing.complete:
        _offer(
            leaf, after - leaf["log_likelihood"] + (n_possible - 1) * penalty, variable, np.int64(COMPLETE), n_possible
        )
    if pricing.binary:
        for state in range(n_states):
            here = at + state * n_classes
            if 0 < _total(counts, here, n_classes) < n:
                count, weight = counts[here : here + n_classes], weights[here : here + n_classes]
                gain = _log_likelihood(count, weight) + _log_likelihood(totals - count, own - weight)
                _offer(leaf, gain - leaf["log_likelihood"] + penalty, variable, state, np.int64(2))


@jit
def price_all_by_exponents(
    batch: Array, begin: int, end: int, leaves: Array, histograms: Array, weights: Array, at: Array, pricing: Pricing
) -> None:
    """The best split of each leaf in the batch; weights[at[b]:at[b + 1]] are the exponents of its histogram's cells."""
    pricing = refer(pricing)
    layout = pricing.layout
    for b in range(begin, end):
        leaf = leaves[batch[b]]
        target = leaf["target"]
        which = layout.of_target[target]
        n_classes = layout.n_states[target]
        size = layout.n_rows[which] * n_classes
        counts = histograms[leaf["histogram"] : leaf["histogram"] + size + n_classes]
        cells = weights[at[b] : at[b + 1]]
        _settle(leaf, _log_likelihood(counts[size:], cells[size:]), counts[size:], pricing)
        for entry in range(layout.start[which], layout.start[which + 1]):
            variable = layout.variables[entry]
            if may_test(target, variable, pricing):
                _price_exponents(leaf, counts, cells, layout.bases[entry] * n_classes, variable, pricing, n_classes)


@bare
def merge_gain(
    first: Any,
    second: Any,
    n_classes: int,
    counts: Array,
    exponents: Array,
    log_factorial: Array,
    log_kappa: float,
) -> float:
    """What merging two leaves of a node gains; `exponents` is empty for the uniform prior."""
    one, two = first["counts"], second["counts"]
    if exponents.shape[0] == 0:
        n, after = 0, 0.0
        for k in range(n_classes):
            count = counts[one + k] + counts[two + k]
            n += count
            after += log_factorial[count]
        after += log_factorial[n_classes - 1] - log_factorial[n + n_classes - 1]
    else:
        a, b = first["exponents"], second["exponents"]
        n, total, after = 0, 0.0, 0.0
        for k in range(n_classes):
            count, exponent = counts[one + k] + counts[two + k], exponents[a + k] + exponents[b + k]
            n += count
            total += exponent
            after += math.lgamma(count + exponent) - math.lgamma(exponent)
        after += math.lgamma(total) - math.lgamma(n + total)
    return after - first["log_likelihood"] - second["log_likelihood"] - (n_classes - 1) * log_kappa


@jit
def log_likelihoods(counts: Array, exponents: Array) -> Array:
    """Equation 5 for many leaves, one row each."""
    out = np.empty(counts.shape[0])
    for row in range(counts.shape[0]):
        out[row] = _log_likelihood(counts[row], exponents[row])
    return out
