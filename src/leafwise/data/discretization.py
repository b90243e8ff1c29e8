"""Supervised discretization: the most probable cut points of a numeric column with respect to other columns.

Knows NumPy and `binning`. The model is that of Boullé (MODL, 2006) with the score that networks are learned by. The
numbers lie in m elementary intervals (parts). The number I of bins is uniform on 1 to m, and given I all ways to join
neighbouring parts into I bins are equally probable. In each bin, another column has a distribution of its own, with a
uniform prior over distributions. The optimum is found exactly, by dynamic programming.

There are at most 64 parts, of equal frequency: finer ones were tried, and predict new cases less well.

The other column is the target, if one is learned, else the three columns that depend most on the numbers. If none
does, bins have equal frequency.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cbrt

import numpy as np
from numpy.typing import NDArray

from leafwise.data.binning import cut_points

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_PARTS = 64
_MOST_BINS = 16  # unless more are requested: no more are readable
_MOST_STATES = 64  # of another column: the rarest ones are pooled
_MOST_RELATED = 3
_MOST_ROWS = 100_000  # from which related columns are found
_MOST_WORK = 1e10  # multiplications to find them
_AT_ONCE = 32  # columns
_LEAST_CASES = 4  # per state, on average, of a column with respect to which others are cut


@dataclass(frozen=True, eq=False)
class Numbers:
    """A numeric column: distinct values in ascending order, and the index of each case's value, -1 if missing."""

    values: Floats
    places: Integers

    def counts(self) -> Integers:
        """The number of cases with each value."""
        return np.bincount(self.places[self.places >= 0], minlength=len(self.values))

    def parts(self, cuts: Sequence[float]) -> Integers:
        """The interval between cut points of each case; an additional last one is that of missing values."""
        part = np.append(np.searchsorted(cuts, self.values, side="right"), len(cuts) + 1)
        return part[self.places]


@dataclass(frozen=True, eq=False)
class States:
    """The states of another column by case, as codes from 0 to n - 1."""

    codes: Integers
    n: int


def default_bins(n_cases: int, most: int = 8) -> int:
    """The number of equal-frequency bins for `n_cases`: about its cube root, from 2 to `most`.

    >>> default_bins(20), default_bins(200), default_bins(10**6)
    (3, 6, 8)
    """
    return min(max(round(cbrt(n_cases)), 2), most)


def best_bins(histograms: Sequence[Integers], most: int | None = None) -> list[int]:
    """The most probable cuts of m parts into at most `most` bins, as places from 1 to m - 1.

    Each histogram has a row per part, with the counts of another column's states. Log likelihoods are summed.

    >>> best_bins([np.array([[9, 0], [8, 1], [9, 1], [0, 9], [1, 8]])])
    [3]
    """
    m = len(histograms[0])
    factorials = _log_factorials(max(int(counts.sum()) + counts.shape[1] for counts in histograms) + m)
    costs = np.sum([_costs(counts, factorials) for counts in histograms], axis=0)
    best: Floats = costs[0]  # the least cost of the parts before each place in one bin; then in two, and so on
    back: list[NDArray[np.intp]] = []
    totals = [best[m]]
    for _ in range(1, min(m, most or m)):
        sums = best[:, None] + costs
        back.append(sums.argmin(axis=0))
        best = sums[back[-1], np.arange(m + 1)]
        totals.append(best[m])
    cut = np.arange(len(totals))
    ways = factorials[m - 1] - factorials[cut] - factorials[m - 1 - cut]
    chosen = int((np.array(totals) + ways).argmin())
    cuts = [m]
    for step in reversed(back[:chosen]):
        cuts.append(int(step[cuts[-1]]))
    return cuts[:0:-1]


def _costs(counts: Integers, factorials: Floats) -> Floats:
    """Minus the log marginal likelihood of the states in parts i to j - 1, for every i < j; infinite elsewhere."""
    m, n_states = counts.shape
    below = np.concatenate([np.zeros((1, n_states), np.int64), np.cumsum(counts, axis=0)])
    low, high = np.triu_indices(m + 1, 1)
    inside = below[high] - below[low]
    costs = np.full((m + 1, m + 1), np.inf)
    costs[low, high] = (
        factorials[inside.sum(axis=1) + n_states - 1] - factorials[n_states - 1] - factorials[inside].sum(axis=1)
    )
    return costs


def _log_factorials(n: int) -> Floats:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])


def cuts_towards(numbers: Numbers, others: Sequence[States], most: int | None = None) -> tuple[float, ...]:
    """The most probable cut points with respect to other columns; if there are none, up to four equal-frequency bins.

    >>> cuts_towards(Numbers(np.arange(40.0), np.arange(40)), [States(np.repeat([0, 1], [11, 29]), 2)])
    (11.0,)
    """
    counts = numbers.counts()
    parts = _parts(numbers.values, counts)
    if not parts:
        return ()
    cuts = _best_cuts(numbers, parts, others, most) if others else ()
    return cuts or cut_points(numbers.values, counts, default_bins(int(counts.sum()), min(4, most or 4)))


def _parts(values: Floats, counts: Integers) -> tuple[float, ...]:
    """Candidate cut points: between all values or, if these are many, between parts of about equal frequency."""
    if len(values) <= _MOST_PARTS:
        return tuple(values[1:].tolist())
    return cut_points(values, np.minimum(counts, -(-counts.sum() // _MOST_PARTS)), _MOST_PARTS)


def _best_cuts(
    numbers: Numbers, parts: Sequence[float], others: Sequence[States], most: int | None
) -> tuple[float, ...]:
    known = numbers.places >= 0
    part = numbers.parts(parts)[known]
    histograms = [_histogram(part, len(parts) + 1, other, known) for other in others]
    return tuple(parts[cut - 1] for cut in best_bins(histograms, most or _MOST_BINS))


def _histogram(part: Integers, n_parts: int, other: States, known: NDArray[np.bool_]) -> Integers:
    size = n_parts * other.n
    return np.bincount(part * other.n + other.codes[known], minlength=size).reshape(n_parts, other.n)


def few_states(codes: Integers, n: int) -> States:
    """A column's states, of which the rarest are pooled if there are many.

    >>> few_states(np.array([0, 1, 1]), 2).n
    2
    """
    if n <= _MOST_STATES:
        return States(codes, n)
    rank = np.empty(n, np.int64)
    rank[np.argsort(-np.bincount(codes, minlength=n), kind="stable")] = np.arange(n)
    return States(np.minimum(rank, _MOST_STATES - 1)[codes], _MOST_STATES)


def related(columns: Sequence[States], which: Sequence[int]) -> list[list[int]]:
    """For some of the columns, the others that depend most on them, best first: at most three, possibly none.

    Dependence is the gain in log marginal likelihood of the other column, as a child of the first.
    """
    if not which:
        return []
    n_states = np.array([column.n for column in columns])
    first = np.cumsum(n_states) - n_states
    n_own, n_all = int(n_states[list(which)].sum()), int(n_states.sum())
    rows = _some_rows(len(columns[0].codes), n_own, n_all)
    is_state = np.zeros((len(rows), n_all), np.float32)
    for column, begin in zip(columns, first, strict=True):
        is_state[np.arange(len(rows)), begin + column.codes[rows]] = 1
    factorials = _log_factorials(len(rows) + int(n_states.max()))
    totals = is_state.sum(axis=0).astype(np.int64)
    rest = factorials[n_states - 1]
    alone = np.add.reduceat(factorials[totals], first) - factorials[len(rows) + n_states - 1] + rest
    found = []
    for begin in range(0, len(which), _AT_ONCE):
        some = list(which[begin : begin + _AT_ONCE])
        places = np.concatenate([np.arange(first[one], first[one] + n_states[one]) for one in some])
        cells = factorials[(is_state[:, places].T @ is_state).astype(np.int64)]  # float32 holds such counts exactly
        begins = np.cumsum(n_states[some]) - n_states[some]
        given = np.add.reduceat(np.add.reduceat(cells, begins), first, axis=1)
        given -= np.add.reduceat(factorials[totals[places][:, None] + n_states - 1] - rest, begins)
        for one, gains in zip(some, given - alone, strict=True):
            gains[one] = 0.0
            gains[_LEAST_CASES * n_states > len(rows)] = 0.0
            order = np.argsort(-gains, kind="stable")[:_MOST_RELATED]
            found.append([int(other) for other in order if gains[other] > 0])
    return found


def _some_rows(n: int, n_own: int, n_all: int) -> Integers:
    """All rows, or a fixed random sample that limits the work."""
    most = int(min(_MOST_ROWS, max(1000.0, _MOST_WORK / (n_own * n_all)), max(1000.0, 2**26 / n_all)))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(1).choice(n, most, replace=False))
