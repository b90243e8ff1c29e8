"""Cut points towards what is learned: of all ways to cut a column of numbers, the one that is most probable.

Knows NumPy and `binning`. The model is that of Boullé (MODL, 2006) with the score that networks are learned by: the
numbers lie in m small parts, each way to join neighbouring parts into I bins has the prior probability 1 / m for I,
times one by the number of ways to make I bins, and in each bin another column has a distribution of its own, all
distributions being equally probable beforehand. The best way is found exactly, by dynamic programming.

The parts hold equally many cases, and there are at most 64: finer ones were tried, and predict new cases less well.

Which other column? The target, where one is learned; else the three that the numbers tell most about. Where they tell
about none, there is nothing to cut towards, and bins hold equally many cases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cbrt

import numpy as np
from numpy.typing import NDArray

from leafwise.binning import cut_points

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_PARTS = 64
_MOST_BINS = 16  # unless more are asked for: nobody reads more
_MOST_STATES = 64  # of another column: rarer ones count as one
_MOST_RELATED = 3
_MOST_ROWS = 100_000  # to see which columns are related
_MOST_WORK = 1e10  # multiplications for the same
_AT_ONCE = 32  # columns
_LEAST_CASES = 4  # for each state of a column, on average, that others are cut towards


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column of numbers: the distinct ones, rising, and where each case's is among them, -1 if it is missing."""

    values: Floats
    places: Integers

    def counts(self) -> Integers:
        """How often each number occurs."""
        return np.bincount(self.places[self.places >= 0], minlength=len(self.values))

    def parts(self, cuts: Sequence[float]) -> Integers:
        """The part of each case, those without a number being in one more."""
        part = np.append(np.searchsorted(cuts, self.values, side="right"), len(cuts) + 1)
        return part[self.places]


@dataclass(frozen=True, eq=False)
class States:
    """What another column says of each case: 0 to n - 1."""

    codes: Integers
    n: int


def default_bins(n_cases: int, most: int = 8) -> int:
    """How many equal parts so many cases allow: about the cube root of their number.

    >>> default_bins(20), default_bins(200), default_bins(10**6)
    (3, 6, 8)
    """
    return min(max(round(cbrt(n_cases)), 2), most)


def best_bins(histograms: Sequence[Integers], most: int | None = None) -> list[int]:
    """Where to cut m parts into bins, as places from 1 to m - 1; `most`: at most so many bins.

    Each histogram has a row for each part, and counts another column's states in it. What they say is added up.

    >>> best_bins([np.array([[9, 0], [8, 1], [9, 1], [0, 9], [1, 8]])])
    [3]
    """
    m = len(histograms[0])
    factorials = _log_factorials(max(int(counts.sum()) + counts.shape[1] for counts in histograms) + m)
    costs = np.sum([_costs(counts, factorials) for counts in histograms], axis=0)
    best: Floats = costs[0]  # of the parts up to each place, in one bin; then in two, and so on
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
    """Minus the log marginal likelihood of the states in parts i to j - 1, for every i < j; elsewhere infinite."""
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
    """The best cut points of a column towards others; quarters where they tell nothing of each other.

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
    """Where numbers may be cut: between all of them, or between equal parts, where one that comes often counts less."""
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
    """Another column's states, the rarest of very many as one.

    >>> few_states(np.array([0, 1, 1]), 2).n
    2
    """
    if n <= _MOST_STATES:
        return States(codes, n)
    rank = np.empty(n, np.int64)
    rank[np.argsort(-np.bincount(codes, minlength=n), kind="stable")] = np.arange(n)
    return States(np.minimum(rank, _MOST_STATES - 1)[codes], _MOST_STATES)


def related(columns: Sequence[States], which: Sequence[int]) -> list[list[int]]:
    """For some of the columns, the others that they tell most about, best first: at most three, perhaps none.

    What a column tells of another is how much more probable its states make the other's, as two nodes of a network.
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
    """All rows, or as many as keep the work small; the same ones every time."""
    most = int(min(_MOST_ROWS, max(1000.0, _MOST_WORK / (n_own * n_all)), max(1000.0, 2**26 / n_all)))
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(1).choice(n, most, replace=False))
