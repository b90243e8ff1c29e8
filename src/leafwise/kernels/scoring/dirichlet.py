"""Log marginal likelihoods of complete tables, from counts. Every exponent in a table is the same.

The sum of log gamma functions over many cells with one exponent needs few logarithms. For small counts the functions
are products, of which one logarithm is taken at the end. For larger ones they are Taylor series around the integer next
to count plus exponent: coefficients are summed over the cells, and multiplied by powers of the distance once. If a
table is counted as a whole, the contribution of each count is looked up as an integer multiple of a small unit, so that
sums do not depend on the order.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import one_by_one

TIE = 1e-9  # gains that differ by less are equal
_FEW = 64  # below this: products; above, a series of six terms is exact to the last digits
_MANY = 2048  # from here on: Stirling's series
_MANY_CLASSES = 6  # from here on, rows with few cases are treated separately, as most of their cells are empty


class Exponents(NamedTuple):
    """Exponents of one cell, and of a row, in tables of some sizes; arrays are indexed by [size, cell or row].

    They are cached: `set_exponents` does nothing if they are already set.
    """

    value: Array
    whole: Array  # the nearest integer
    log_gamma: Array  # log Γ(exponent)
    rise: Array  # Γ(count + exponent) / Γ(exponent), for small counts


class CountScores(NamedTuple):
    """What counts contribute to the score in tables of one size, as integer multiples of a unit.

    The contribution of a count n is log Γ(n + exponent) - log Γ(exponent) - n log exponent: in excess of n single
    cases. It is 0 for 0 and 1.
    """

    of: Array  # [cell or row, count]
    n: Array  # [cell or row]: number of counts that are filled in
    exponents: Array  # of a cell, and of a row
    unit: Array  # one number: the unit, a power of two


@cache
def series() -> Array:
    """Return the coefficients of the Taylor series of log gamma around integers, (_MANY, 6).

    The second is ψ(n), the k-th after it (-1)^k ζ(k, n) / k. Hurwitz's zeta function is a sum from n on, whose tail
    beyond the table is given by the Euler-Maclaurin formula.
    """
    n, last = np.arange(1.0, _MANY), float(_MANY)
    table = np.zeros((_MANY, 6))
    table[1:, 0] = [math.lgamma(x) for x in n]
    rest = math.log(last) - 1 / (2 * last) - 1 / (12 * last**2)
    table[1:, 1] = rest - np.cumsum((1 / n)[::-1])[::-1]
    for k in range(2, 6):
        rest = last ** (1 - k) / (k - 1) + last**-k / 2 + k * last ** (-k - 1) / 12
        table[1:, k] = (-1) ** k / k * (rest + np.cumsum((n**-k)[::-1])[::-1])
    return table


@bare
def log_gamma(x: float) -> float:
    """Return log Γ(x), from 16 on by Stirling's series, which is exact there to the last digits.

    The series needs one logarithm and one division.
    """
    if x < 16.0:
        return math.lgamma(x)
    z = 1.0 / x
    y = z * z
    rest = 1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + rest * z


@part
def make_exponents(n: Int) -> Exponents:
    """Allocate exponents for tables of n sizes."""
    return Exponents(np.zeros((n, 2)), np.empty((n, 2), np.int64), np.empty((n, 2)), np.empty((n, 2, _FEW)))


@bare
def set_exponents(size: Int, n_classes: Int, cell: float, to: Exponents) -> None:
    """Set the exponents for a table with exponent `cell` in every cell."""
    row, of_cell, of_row = cell * n_classes, 1.0, 1.0
    if to.value[size, 0] == cell and to.value[size, 1] == row:
        return
    for k in range(2):
        value = row if k else cell
        to.value[size, k], to.whole[size, k] = value, np.int64(min(value, 2.0 * _MANY) + 0.5)
        to.log_gamma[size, k] = log_gamma(value)
    for count in range(_FEW):  # interleaved, since each product depends on the one before
        to.rise[size, 0, count], to.rise[size, 1, count] = of_cell, of_row
        of_cell *= cell + count
        of_row *= row + count


@bare
def _polynomial(a: float, b: float, c: float, d: float, e: float, f: float, x: float) -> float:
    return a + x * (b + x * (c + x * (d + x * (e + x * f))))


@bare
def _small(n_classes: Int, cell: float, near_row: np.uint64) -> np.uint64:
    """Return the number of cases below which a row's product cannot underflow; 0: rows are not treated separately.

    Its factors are at least the exponent, and there are few.
    """
    is_safe = n_classes >= _MANY_CLASSES and near_row < np.uint64(_FEW) and cell ** min(n_classes, _FEW) > 1e-100
    return np.uint64(_FEW) - near_row if is_safe else np.uint64(0)


@bare
def _total(cells: Array, at: np.uint64, n_classes: Int) -> np.uint64:
    total = np.uint64(0)
    for k in range(at, at + np.uint64(n_classes)):
        total += np.uint64(cells[k])
    return total


@bare
def _likelihood(cells: Array, at: np.uint64, n_classes: Int, rise: Array, rise_row: Array) -> float:
    """Return the likelihood of a row of small counts, most of which may be zero."""
    total, product = _total(cells, at, n_classes), 1.0
    for k in range(at, at + np.uint64(n_classes if total > 0 else 0)):
        product *= rise[np.uint64(cells[k])]
    return product / rise_row[total]


@bare
def add_log_likelihoods(
    where: Array,
    starts: Array,
    n_rows: Array,
    n_classes: Int,
    cells: Array,
    first: Int,
    sizes: Array,
    exponents: Exponents,
    series: Array,
    sums: Array,
) -> None:
    """Add Equation 5 to each sums[s], for n_rows[s] contiguous rows of `cells` from where[c] + starts[s] on, for all c.

    The exponents are those of a table of size first + sizes[s]. Negative entries of `where` are skipped.
    """
    few, many = np.uint64(_FEW), np.uint64(_MANY)  # unsigned indices are quicker: no wraparound
    for s in range(starts.shape[0]):
        size, value, ratio, small = first + sizes[s], 0.0, 1.0, 1.0
        cell, row = exponents.value[size, 0], exponents.value[size, 1]
        rise, rise_row = exponents.rise[size, 0], exponents.rise[size, 1]
        near, near_row = np.uint64(exponents.whole[size, 0]), np.uint64(exponents.whole[size, 1])
        a0, a1, a2, a3, a4, a5, n_cells = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0
        b0, b1, b2, b3, b4, b5, n_near = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0
        n_small = _small(n_classes, cell, near_row)
        for c in range(where.shape[0]):
            at = np.uint64(where[c] + starts[s])
            for _ in range(n_rows[s] if where[c] >= 0 else 0):
                if n_small > 0 and _total(cells, at, n_classes) < n_small:
                    small *= _likelihood(cells, at, n_classes, rise, rise_row)
                    at += np.uint64(n_classes)
                    if not 1e-100 < small < 1e100:
                        value, small = value + math.log(small), 1.0
                    continue
                total = np.uint64(0)
                for _ in range(n_classes):
                    count = np.uint64(cells[at])
                    total, at = total + count, at + np.uint64(1)
                    m = count + near
                    if m < few:
                        ratio *= rise[count]
                        if not 1e-200 < ratio < 1e200:
                            value, ratio = value + math.log(ratio), 1.0
                    elif m < many:
                        a0 += series[m, 0]
                        a1 += series[m, 1]
                        a2 += series[m, 2]
                        a3 += series[m, 3]
                        a4 += series[m, 4]
                        a5 += series[m, 5]
                        n_cells += 1
                    else:
                        value += log_gamma(count + cell) - exponents.log_gamma[size, 0]
                m = total + near_row
                if m < few:
                    ratio /= rise_row[total]
                elif m < many:
                    b0 += series[m, 0]
                    b1 += series[m, 1]
                    b2 += series[m, 2]
                    b3 += series[m, 3]
                    b4 += series[m, 4]
                    b5 += series[m, 5]
                    n_near += 1
                else:
                    value -= log_gamma(total + row) - exponents.log_gamma[size, 1]
        value += _polynomial(a0, a1, a2, a3, a4, a5, cell - near) - n_cells * exponents.log_gamma[size, 0]
        value -= _polynomial(b0, b1, b2, b3, b4, b5, row - near_row) - n_near * exponents.log_gamma[size, 1]
        sums[s] += value + math.log(ratio) + (math.log(small) if n_small > 0 else 0.0)


@part
def make_count_scores(n_cases: Int) -> CountScores:
    """Allocate scores for all counts up to n_cases."""
    return CountScores(np.empty((2, n_cases + 1), np.int64), np.zeros(2, np.int64), np.zeros(2), np.zeros(1))


@bare
def _quick_log_gamma(x: float, series: Array) -> float:
    near = np.int64(min(x, 2.0 * _MANY) + 0.5)
    if near < _FEW or near >= _MANY:
        return log_gamma(x)
    a, b, c, d, e, f = (
        series[near, 0],
        series[near, 1],
        series[near, 2],
        series[near, 3],
        series[near, 4],
        series[near, 5],
    )
    return _polynomial(a, b, c, d, e, f, x - near)


@bare
def set_count_scores(
    cell: float, row: float, most_in_cell: Int, most_in_row: Int, series: Array, to: CountScores
) -> None:
    """Fill in the scores of counts up to these, in a table with these exponents of a cell and of a row."""
    if to.exponents[0] != cell or to.exponents[1] != row:
        n_cases = to.of.shape[1]
        most = n_cases * (1.0 + abs(math.log(cell)) + abs(math.log(row)) + math.log(row + n_cases))  # bounds all sums
        to.exponents[0], to.exponents[1], to.unit[0] = cell, row, 2.0 ** (math.ceil(math.log2(most)) - 63)
        to.n[0] = to.n[1] = 0
    for k in range(2):
        exponent, end = to.exponents[k], 1 + (most_in_row if k else most_in_cell)
        nothing, single = log_gamma(exponent), math.log(exponent)
        for count in range(to.n[k], end):
            more = _quick_log_gamma(count + exponent, series) - nothing - count * single
            to.of[k, count] = np.int64(np.rint(more / to.unit[0])) if count > 1 else np.int64(0)
        to.n[k] = max(to.n[k], end)


@bare
def total_score(counts: Array, of: Array) -> Int:
    """Return the sum of the scores of all these counts."""
    total = np.int64(0)
    for k in range(counts.shape[0]):
        total += of[np.uint64(counts[k])]
        one_by_one()
    return total
