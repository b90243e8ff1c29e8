"""Complete tables: the prices of arcs. Every exponent in a table is the same."""

import math
from typing import NamedTuple

import numpy as np

from leafwise.kernels.arrays import Array, Int, Layout
from leafwise.kernels.jit import jit, part

_SMALL = 16  # counts below this: gamma functions are products, and one logarithm is taken of many


@part
def log_gamma(x: float) -> float:
    """Stirling's series where it is exact to the last digits; it takes one logarithm and one division."""
    if x < 16.0:
        return math.lgamma(x)
    z = 1.0 / x
    y = z * z
    series = 1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + series * z


class Prices(NamedTuple):
    """What gains depend on besides counts."""

    layout: Layout
    kind: Array  # variables of the same number of states are of one kind
    kind_states: Array  # ... and that number
    exponent: Array  # for each target: that of a cell when there is one row
    divides: bool  # whether that is divided evenly among rows
    log_kappa: float


class Book(NamedTuple):
    """What is known of nodes with certain parents, a row for each; gains are by the other end of the arc."""

    additions: Array
    deletions: Array
    bounds: Array  # no addition gains more
    log_likelihood: Array
    n_rows: Array  # of the table: all parent configurations, observed or not


class Exponents(NamedTuple):
    """Those of one cell, and of a row, in tables of some sizes; arrays are by [size, cell or row]."""

    value: Array
    log_gamma: Array  # log Γ(exponent)
    rise: Array  # Γ(count + exponent) / Γ(exponent), for small counts


@part
def _make_exponents(n: int) -> Exponents:
    return Exponents(np.empty((n, 2)), np.empty((n, 2)), np.ones((n, 2, _SMALL)))


@part
def _set_exponents(size: Int, target: int, n_rows: Int, prices: Prices, exponents: Exponents) -> None:
    """Those for a table of so many rows."""
    cell = prices.exponent[target] / n_rows if prices.divides else prices.exponent[target]
    for k in range(2):
        value = cell * prices.layout.n_states[target] if k else cell
        exponents.value[size, k], exponents.log_gamma[size, k] = value, log_gamma(value)
        for count in range(1, _SMALL):
            exponents.rise[size, k, count] = exponents.rise[size, k, count - 1] * (value + (count - 1))


@part
def _log_likelihood(counts: Array, begin: Int, n_rows: Int, n_classes: Int, size: Int, exponents: Exponents) -> float:
    """Equation 5 for rows that follow each other, in a table of that size."""
    value, ratio, at = 0.0, 1.0, begin
    for _ in range(n_rows):
        n = np.int64(0)
        for k in range(at, at + n_classes):
            count = np.int64(counts[k])
            n += count
            if count < _SMALL:
                ratio *= exponents.rise[size, 0, count]
            else:
                value += log_gamma(count + exponents.value[size, 0]) - exponents.log_gamma[size, 0]
            if not 1e-200 < ratio < 1e200:
                value += math.log(ratio)
                ratio = 1.0
        if n < _SMALL:
            ratio /= exponents.rise[size, 1, n]
        else:
            value -= log_gamma(n + exponents.value[size, 1]) - exponents.log_gamma[size, 1]
        at += n_classes
    return value + math.log(ratio)


@jit
def price_additions(target: int, n_rows: int, where: Array, cells: Array, prices: Prices, sums: Array) -> None:
    """Add to sums[e], for each candidate, the log likelihood of these configurations when split by it.

    `where` says where their histograms begin in `cells`, `n_rows` how many rows the table has now.
    """
    layout = prices.layout
    first, n_classes = layout.start[layout.of_target[target]], layout.n_states[target]
    n_kinds = prices.kind_states.shape[0]
    exponents = _make_exponents(n_kinds)
    for k in range(n_kinds):
        _set_exponents(k, target, n_rows * prices.kind_states[k], prices, exponents)
    for c in range(where.shape[0]):
        for entry in range(sums.shape[0]):
            variable = layout.variables[first + entry]
            k = prices.kind[variable]
            at = where[c] + layout.bases[first + entry] * n_classes
            sums[entry] += _log_likelihood(cells, at, layout.n_states[variable], n_classes, k, exponents)


@part
def _slot(key: Int, keys: Array) -> Int:
    """Where the key is, or where it goes: a hash table with open addresses."""
    at = key % keys.shape[0]
    while keys[at] >= 0 and keys[at] != key:
        at = (at + 1) % keys.shape[0]
    return at


@part
def _merge_rows(configurations: Array, counts: Array, stride: Int, radix: Int, keys: Array, merged: Array) -> None:
    """Add up the counts of configurations whose codes differ in one digit only."""
    n, n_classes = counts.shape
    keys[:] = -1
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
def _settle_additions(target: int, number: int, n_single: int, prices: Prices, book: Book, sums: Array) -> None:
    """What all additions gain; a row with a single case has the same log likelihood however it is split."""
    layout = prices.layout
    begin = layout.start[layout.of_target[target]]
    n_classes, n_rows = layout.n_states[target], book.n_rows[number]
    now = book.log_likelihood[number] + n_single * math.log(n_classes)
    for entry in range(sums.shape[0]):
        variable = layout.variables[begin + entry]
        if variable == target:
            continue
        more = n_rows * (layout.n_states[variable] - 1) * (n_classes - 1)
        gain = sums[entry] - now + more * prices.log_kappa
        book.additions[number, variable] = gain
        book.bounds[number] = max(book.bounds[number], gain)


@part
def _settle_deletions(
    target: int, number: int, parents: Array, configurations: Array, counts: Array, prices: Prices, book: Book
) -> None:
    """What all deletions gain; the last turn of the loop deletes nothing."""
    n, n_classes = counts.shape
    keys, merged = np.empty(2 * n + 1, np.int64), np.empty((2 * n + 1) * n_classes, np.int64)
    exponents, one = _make_exponents(1), np.int64(1)
    values = np.empty(parents.shape[0] + 1)
    n_rows, stride = book.n_rows[number], np.int64(1)
    for p in range(parents.shape[0], -1, -1):
        radix = prices.layout.n_states[parents[p]] if p < parents.shape[0] else np.int64(1)
        _merge_rows(configurations, counts, stride, radix, keys, merged)
        _set_exponents(one - 1, target, n_rows // radix, prices, exponents)
        values[p] = n_rows // radix * (n_classes - 1) * prices.log_kappa
        for at in range(keys.shape[0]):
            if keys[at] >= 0:
                values[p] += _log_likelihood(merged, at * n_classes, one, np.int64(n_classes), one - 1, exponents)
        stride *= radix
    now = values[parents.shape[0]]
    for p in range(parents.shape[0]):
        book.deletions[number, parents[p]] = values[p] - now
    book.log_likelihood[number] = now - n_rows * (n_classes - 1) * prices.log_kappa


@jit
def settle(
    target: int,
    number: int,
    parents: Array,
    configurations: Array,
    counts: Array,
    where: Array,
    cells: Array,
    prices: Prices,
    book: Book,
    sums: Array,
) -> None:
    """Write a row of the book: all gains of a node; `sums` holds what is known of additions, or is empty.

    `parents` are in the order of the codes' digits, the slowest first; `where` and `cells` as in price_additions.
    """
    book.additions[number, :] = -np.inf
    book.deletions[number, :] = -np.inf
    book.bounds[number] = -np.inf
    book.n_rows[number] = 1
    for p in range(parents.shape[0]):
        book.n_rows[number] *= prices.layout.n_states[parents[p]]
    _settle_deletions(target, number, parents, configurations, counts, prices, book)
    if sums.shape[0] > 0:
        price_additions(target, book.n_rows[number], where, cells, prices, sums)
        _settle_additions(target, number, (configurations["size"] == 1).sum(), prices, book, sums)


@jit
def exchange(
    row: int, child: int, parent: int, turned: int, alone: int, alone_parent: int, prices: Prices, book: Book
) -> None:
    """Write the row of a child with one parent, from that of the parent with the child as its parent.

    `turned` is that row; `alone` and `alone_parent` are those of both without parents. Under a prior that is fair to
    both directions, three variables that are all linked have one score, whatever the order: so gains add up.
    """
    n_states = prices.layout.n_states
    more = (n_states[parent] - 1) * (n_states[child] - 1)
    book.additions[row, :] = -np.inf
    book.deletions[row, :] = -np.inf
    book.bounds[row] = -np.inf
    book.n_rows[row] = n_states[parent]
    book.deletions[row, parent] = -book.additions[alone, parent]
    book.log_likelihood[row] = book.log_likelihood[alone] + book.additions[alone, parent] - more * prices.log_kappa
    for other in range(n_states.shape[0]):
        if other != child and other != parent:
            gain = book.additions[turned, other] + book.additions[alone, other] - book.additions[alone_parent, other]
            book.additions[row, other] = gain
            book.bounds[row] = max(book.bounds[row], gain)
