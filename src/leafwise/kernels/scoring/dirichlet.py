"""Complete tables: log marginal likelihoods from counts. Every exponent in a table is the same.

A sum of log gamma functions over many cells of one exponent takes no logarithms. For small counts they are products, of
which one logarithm is taken in the end. For others they are Taylor series around the whole number next to count plus
exponent, whose coefficients are added up over the cells and multiplied by powers of the distance once. Where a table is
counted as a whole, what each count adds to the score is looked up, in whole numbers of a small unit: they add up to the
same in any order.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.compiling.words import one_by_one

TIE = 1e-9  # gains that are closer are the same
_FEW = 64  # below this: products; from here on a series of six terms is exact to the last digits
_MANY = 2048  # from here on: Stirling's series
_MANY_CLASSES = 6  # from here on: rows of few cases apart, as many of their cells are empty


class Exponents(NamedTuple):
    """Those of one cell, and of a row, in tables of some sizes; arrays are by [size, cell or row]. They stay as set."""

    value: Array
    whole: Array  # the whole number next to it
    log_gamma: Array  # log Γ(exponent)
    rise: Array  # Γ(count + exponent) / Γ(exponent), for small counts


class CountScores(NamedTuple):
    """What counts add to the score in tables of one size, in whole units: more than as many single cases apart.

    Of a count this is log Γ(count + exponent) / Γ(exponent) less as many times log exponent, and nothing for 0 and 1.
    """

    of: Array  # by [cell or row, count]
    n: Array  # how many counts are there, by [cell or row]
    exponents: Array  # of a cell, and of a row
    unit: Array


@cache
def series() -> Array:
    """Coefficients of the Taylor series of log gamma around whole numbers.

    The second is ψ(n), the k-th after it (-1)^k ζ(k, n) / k, Hurwitz's zeta function, which is a sum from n on; what
    lies beyond the table is given by Euler and Maclaurin.
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
    """Stirling's series where it is exact to the last digits; it takes one logarithm and one division."""
    if x < 16.0:
        return math.lgamma(x)
    z = 1.0 / x
    y = z * z
    rest = 1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))
    return (x - 0.5) * math.log(x) - x + 0.9189385332046727 + rest * z


@part
def make_exponents(n: Int) -> Exponents:
    """Room for tables of so many sizes."""
    return Exponents(np.zeros((n, 2)), np.empty((n, 2), np.int64), np.empty((n, 2)), np.empty((n, 2, _FEW)))


@bare
def set_exponents(size: Int, n_classes: Int, cell: float, to: Exponents) -> None:
    """Those for a table with this exponent in every cell."""
    row, of_cell, of_row = cell * n_classes, 1.0, 1.0
    if to.value[size, 0] == cell and to.value[size, 1] == row:
        return
    for k in range(2):
        value = row if k else cell
        to.value[size, k], to.whole[size, k] = value, np.int64(min(value, 2.0 * _MANY) + 0.5)
        to.log_gamma[size, k] = log_gamma(value)
    for count in range(_FEW):  # side by side, as one product waits for the one before
        to.rise[size, 0, count], to.rise[size, 1, count] = of_cell, of_row
        of_cell *= cell + count
        of_row *= row + count


@bare
def _polynomial(a: float, b: float, c: float, d: float, e: float, f: float, x: float) -> float:
    return a + x * (b + x * (c + x * (d + x * (e + x * f))))


@bare
def _small(n_classes: Int, cell: float, near_row: np.uint64) -> np.uint64:
    """How many cases make a row's product safe: its factors are at least these exponents, and those of all are few."""
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
    """That of a row of small counts, of which most may be none."""
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
    """Add Equation 5 to each of `sums`: for rows that follow each other in `cells`, from all where[...] + starts[c] on.

    There are n_rows[c] of them, in a table of size first + sizes[c]. Where where[...] is negative there are none.
    """
    few, many = np.uint64(_FEW), np.uint64(_MANY)  # what cannot be negative is quicker to look up
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
    """Room for all counts of so many cases."""
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
    """Those of counts up to these, in a table with these exponents of a cell and of a row."""
    if to.exponents[0] != cell or to.exponents[1] != row:
        n_cases = to.of.shape[1]
        most = n_cases * (1.0 + abs(math.log(cell)) + abs(math.log(row)) + math.log(row + n_cases))  # of all together
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
    """What all of these counts add to the score."""
    total = np.int64(0)
    for k in range(counts.shape[0]):
        total += of[np.uint64(counts[k])]
        one_by_one()
    return total
