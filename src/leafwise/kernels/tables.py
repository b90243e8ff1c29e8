"""Complete tables: splitting every parent configuration of a node alike, and the prices of arcs.

A node's table is kept as its *configurations*: the states of its parents that occur in the data, one record each, with
the digits of the states in `code` (the parent added last varies fastest). Adding an arc splits all of them by the new
parent; since every exponent in a table is the same, a table's log marginal likelihood is a sum of terms that depend on
one count each, and these are remembered while they are being summed.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.arrays import Array, Int, Layout
from leafwise.kernels.jit import jit, part

CONFIGURATION = np.dtype(
    [
        ("code", np.int64),
        ("size", np.int64),  # cases
        ("cases", np.int64),  # the counter's set
        ("histogram", np.int64),  # its number among those the node keeps, or -1
        ("origin", np.int64),  # the configuration it was split from
        ("less", np.int64),  # the sibling whose histogram is the origin's less this one's and others', or -1
    ],
    align=True,
)
# Places in Split.totals: how many configurations there are, how many of them are in each list, and histograms kept.
N_AFTER, N_CUTS, N_PARTS, N_COPIED, N_COUNTED, N_SMALL, N_PRICED, N_KEPT = range(8)

_LEAST_KEPT = 16  # cases: smaller configurations are counted anew as quickly as they are kept, if room is short
_REMEMBERED = 256  # terms of counts below this are computed once


@part
def log_gamma(x: float) -> float:
    """Stirling's series where it is exact to the last digits; it takes one logarithm."""
    if x < 16.0:
        return math.lgamma(x)
    y = 1.0 / (x * x)
    series = 1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + series / x


@part
def _term(count: Int, exponent: float, log_gamma_0: float, known: Array) -> float:
    """log Γ(count + exponent) - log Γ(exponent)."""
    if count >= known.shape[0]:
        return log_gamma(count + exponent) - log_gamma_0
    value = known[count]
    if value != value:
        value = log_gamma(count + exponent) - log_gamma_0
        known[count] = value
    return value


class Prices(NamedTuple):
    """What is known of all nodes, and what it depends on; arrays of gains are by [child, parent]."""

    layout: Layout
    kind: Array  # variables of the same number of states are of one kind
    kind_states: Array  # ... and that number
    exponent: Array  # for each target: that of a cell when there is one row
    divides: bool  # whether that is divided evenly among rows
    log_kappa: float
    additions: Array
    deletions: Array
    bounds: Array  # no addition to a node gains more
    log_likelihood: Array
    n_rows: Array  # of each table: all parent configurations, observed or not


@part
def _set_exponents(target: int, n_rows: Int, prices: Prices, pair: Array, logs: Array) -> None:
    """The exponent of a cell, and their sum over a row, in a table of so many rows; and log Γ of both."""
    pair[0] = prices.exponent[target] / n_rows if prices.divides else prices.exponent[target]
    pair[1] = pair[0] * prices.layout.n_states[target]
    logs[0] = log_gamma(pair[0])
    logs[1] = log_gamma(pair[1])


@part
def _forget(known: Array) -> None:
    for c in range(known.shape[1]):
        known[0, c] = np.nan
        known[1, c] = np.nan


@part
def _log_likelihood(counts: Array, begin: Int, n_classes: int, pair: Array, logs: Array, known: Array) -> float:
    """Equation 5 for one row; `pair` and `logs` as set by _set_exponents."""
    n, value = np.int64(0), 0.0
    for k in range(begin, begin + n_classes):
        count = np.int64(counts[k])
        if count > 0:
            value += _term(count, pair[0], logs[0], known[0])
            n += count
    return value - _term(n, pair[1], logs[1], known[1]) if n > 0 else 0.0


@jit
def price_additions(begin: int, end: int, where: Array, cells: Array, target: int, prices: Prices, sums: Array) -> None:
    """Add to sums[e], for candidates begin to end, the log likelihood of these configurations when split by each.

    Every candidate's sum is taken in the order of the configurations, whoever does it.
    """
    layout = prices.layout
    which = layout.of_target[target]
    first = layout.start[which]
    n_classes = layout.n_states[target]
    n_kinds = prices.kind_states.shape[0]
    pairs, logs, known = np.empty((n_kinds, 2)), np.empty((n_kinds, 2)), np.empty((n_kinds, 2, _REMEMBERED))
    for k in range(n_kinds):
        _set_exponents(target, prices.n_rows[target] * prices.kind_states[k], prices, pairs[k], logs[k])
        _forget(known[k])
    for c in range(where.shape[0]):
        for entry in range(begin, end):
            variable = layout.variables[first + entry]
            k = prices.kind[variable]
            at = where[c] + layout.bases[first + entry] * n_classes
            value = 0.0
            for state in range(layout.n_states[variable]):
                value += _log_likelihood(cells, at + state * n_classes, n_classes, pairs[k], logs[k], known[k])
            sums[entry] += value


@part
def _slot(key: int, keys: Array) -> int:
    """Where the key is, or where it goes: a hash table with open addresses, a power of two of them."""
    mask = keys.shape[0] - 1
    at = (key * 2654435761 >> 16) & mask  # a key has few more than 20 bits, so nothing overflows
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) & mask
    return at


@part
def _merge_rows(configurations: Array, counts: Array, stride: Int, radix: Int, keys: Array, merged: Array) -> None:
    """Add up the counts of configurations whose codes differ in one digit only."""
    n, n_classes = counts.shape
    for k in range(keys.shape[0]):
        keys[k] = -1
    for c in range(n):
        code = configurations[c]["code"]
        key = code // (stride * radix) * stride + code % stride
        at = _slot(key, keys)
        if keys[at] < 0:
            keys[at] = key
            for k in range(n_classes):
                merged[at * n_classes + k] = 0
        for k in range(n_classes):
            merged[at * n_classes + k] += counts[c, k]


@part
def _settle_additions(target: int, n_single: int, prices: Prices, sums: Array) -> None:
    """What all additions gain; a row with a single case has the same log likelihood however it is split."""
    layout = prices.layout
    begin = layout.start[layout.of_target[target]]
    n_classes, n_rows = layout.n_states[target], prices.n_rows[target]
    now = prices.log_likelihood[target] + n_single * math.log(n_classes)
    prices.bounds[target] = -np.inf
    for entry in range(sums.shape[0]):
        variable = layout.variables[begin + entry]
        if variable == target:
            continue
        more = n_rows * (layout.n_states[variable] - 1) * (n_classes - 1)
        gain = sums[entry] - now + more * prices.log_kappa
        prices.additions[target, variable] = gain
        prices.bounds[target] = max(prices.bounds[target], gain)


@jit
def settle(
    target: int, parents: Array, configurations: Array, counts: Array, is_full: bool, prices: Prices, sums: Array
) -> None:
    """All gains of a node from its counts, and from `sums` unless it is full; its log likelihood.

    `parents` are in the order of the codes' digits, the slowest first. The last turn of the loop deletes nothing.
    """
    n, n_classes = counts.shape
    n_slots = 2
    while n_slots < 2 * n:
        n_slots *= 2
    keys, merged = np.empty(n_slots, np.int64), np.empty(n_slots * n_classes, np.int64)
    pair, logs, known = np.empty(2), np.empty(2), np.empty((2, _REMEMBERED))
    values = np.empty(parents.shape[0] + 1)
    n_rows, stride = prices.n_rows[target], np.int64(1)
    for p in range(parents.shape[0], -1, -1):
        radix = prices.layout.n_states[parents[p]] if p < parents.shape[0] else np.int64(1)
        _merge_rows(configurations, counts, stride, radix, keys, merged)
        _set_exponents(target, n_rows // radix, prices, pair, logs)
        _forget(known)
        values[p] = n_rows // radix * (n_classes - 1) * prices.log_kappa
        for at in range(n_slots):
            if keys[at] >= 0:
                values[p] += _log_likelihood(merged, at * n_classes, n_classes, pair, logs, known)
        stride *= radix
    now = values[parents.shape[0]]
    for p in range(parents.shape[0]):
        prices.deletions[target, parents[p]] = values[p] - now
    prices.log_likelihood[target] = now - n_rows * (n_classes - 1) * prices.log_kappa
    if is_full:
        prices.bounds[target] = -np.inf
        return
    n_single = 0
    for c in range(n):
        n_single += configurations[c]["size"] == 1
    _settle_additions(target, n_single, prices, sums)


class Split(NamedTuple):
    """What becomes of a node's configurations when all of them are split by a variable."""

    after: Array
    counts: Array  # of the target in each
    cuts: Array  # the sets of cases to be cut,
    n_parts: Array  # into how many parts each,
    groups: Array  # which part each state goes to,
    sizes: Array  # and how many cases each part gets
    parts: Array  # which of `after` these parts are; the others take over all cases of their origin
    copied: Array  # which of `after` begin with the histogram of their origin,
    counted: Array  # which are to be counted, and kept,
    small: Array  # or forgotten,
    priced: Array  # and where the histograms that are kept begin, if they are to be priced
    totals: Array


def make_split(n: int, n_states: int, n_classes: int, n_cases: int) -> Split:
    """Room for the split of n configurations by a variable."""
    most = min(n * n_states, n_cases)
    sizes, parts, copied, counted, small, priced = np.empty((6, most), np.int64)
    return Split(
        np.empty(most, CONFIGURATION),
        np.empty((most, n_classes), np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty((n + 1) * n_states, np.int64),
        sizes,
        parts,
        copied,
        counted,
        small,
        priced,
        np.zeros(8, np.int64),
    )


@part
def _divide(before: Array, cross: Array, n_states: int, split: Split) -> None:
    """The configurations after the split, and the cuts that it takes."""
    n_classes = split.counts.shape[1]
    totals = split.totals
    for c in range(before.shape[0]):
        first = totals[N_AFTER]
        for state in range(n_states):
            size, at = 0, state * n_classes
            for k in range(n_classes):
                size += cross[c, at + k]
            n = totals[N_AFTER]
            split.groups[totals[N_CUTS] * n_states + state] = n - first if size > 0 else 0
            if size > 0:
                new = split.after[n]
                new["code"], new["size"] = before[c]["code"] * n_states + state, size
                new["origin"], new["cases"] = c, before[c]["cases"]
                for k in range(n_classes):
                    split.counts[n, k] = cross[c, at + k]
                totals[N_AFTER] += 1
        if totals[N_AFTER] - first > 1:
            for child in range(first, totals[N_AFTER]):
                split.parts[totals[N_PARTS]] = child
                split.sizes[totals[N_PARTS]] = split.after[child]["size"]
                totals[N_PARTS] += 1
            split.cuts[totals[N_CUTS]] = before[c]["cases"]
            split.n_parts[totals[N_CUTS]] = totals[N_AFTER] - first
            totals[N_CUTS] += 1


@part
def _place(new: Any, least: Int, most_kept: int, n_cells: int, split: Split) -> bool:
    """Whether there is room to keep a histogram for the configuration, and it is large enough to deserve it."""
    number = split.totals[N_KEPT]
    if new["size"] < least or number >= most_kept:
        return False
    new["histogram"] = number
    split.totals[N_KEPT] += 1
    if new["size"] > 1:
        split.priced[split.totals[N_PRICED]] = number * n_cells
        split.totals[N_PRICED] += 1
    return True


@part
def _note(item: int, items: Array, which: Int, totals: Array) -> None:
    items[totals[which]] = item
    totals[which] += 1


@part
def _find_sources(before: Array, n_cells: int, most_kept: int, split: Split) -> None:
    """Where each configuration gets its histogram from: for the largest of siblings by subtraction, if possible."""
    after, n = split.after, split.totals[N_AFTER]
    n_large = 0
    for c in range(n):
        n_large += after[c]["size"] > 1
    least = np.int64(1 if n_large <= most_kept else _LEAST_KEPT)
    first = 0
    while first < n:
        origin = before[after[first]["origin"]]
        end, largest = first, first
        while end < n and after[end]["origin"] == after[first]["origin"]:
            after[end]["histogram"] = after[end]["less"] = -1
            if after[end]["size"] > after[largest]["size"]:
                largest = end
            end += 1
        copies = origin["histogram"] >= 0 and after[largest]["size"] > 1
        if copies:
            copies = _place(after[largest], least, most_kept, n_cells, split)
        for c in range(first, end):
            if copies and c == largest:
                _note(c, split.copied, np.int64(N_COPIED), split.totals)
            elif copies or after[c]["size"] > 1:
                after[c]["less"] = largest if copies else -1
                if _place(after[c], least, most_kept, n_cells, split):
                    _note(c, split.counted, np.int64(N_COUNTED), split.totals)
                else:
                    _note(c, split.small, np.int64(N_SMALL), split.totals)
        first = end


@jit
def plan_split(before: Array, cross: Array, n_states: int, n_cells: int, most_kept: int, split: Split) -> None:
    """Plan to split every configuration by a variable.

    `cross` holds, in a row for each, the target's counts for each state of the variable.
    """
    _divide(before, cross, n_states, split)
    _find_sources(before, n_cells, most_kept, split)


@jit
def subtract(which: Array, where: Array, cells: Array, after: Array, kept: Array) -> None:
    """Take the histograms of these configurations away from what their siblings copied."""
    for k in range(which.shape[0]):
        sibling = after[which[k]]["less"]
        if sibling >= 0:
            own, at = kept[after[sibling]["histogram"]], where[k]
            for c in range(kept.shape[1]):
                own[c] -= cells[at + c]
