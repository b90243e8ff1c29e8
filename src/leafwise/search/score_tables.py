"""Everything that gains depend on besides counts: priors, and tables of log gamma functions for compiled code."""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import Counter
from leafwise.data.table import Variable
from leafwise.kernels.leaf_search.own_values import MOST_STATES
from leafwise.kernels.scoring import rises
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu, ParameterPrior
from leafwise.structure_priors import Costs, StructurePrior, log_ways, n_ordered

Integers = NDArray[np.int64]

_ALIKE = 64  # cases, to multiples of which tables are rounded up
_SHORTER = 2**14  # most counts in tables for several states together


class ScoreTables(NamedTuple):
    """What gains depend on in a search, and in others with fewer targets or candidates."""

    prior: ParameterPrior
    costs: Costs
    n_states: Integers
    rises: "_Rises"
    per_variable: tuple[Integers, Integers, NDArray[np.float64]]

    @classmethod
    def of(
        cls,
        prior: ParameterPrior,
        structure_prior: StructurePrior,
        variables: tuple[Variable, ...],
        n_states: Integers,
        counter: Counter,
        with_pieces: bool,
    ) -> "ScoreTables":
        costs = structure_prior.costs
        rises = _rises(prior, n_states, counter.n_cases, counter.unit, with_pieces)
        return cls(prior, costs, n_states, rises, _per_variable(variables, n_states, costs.tests))


class _Rises:
    """Tables of rises for compiled code, and their rows, under priors whose exponents are the same for all leaves."""

    def __init__(self, table: rises.Rises, cells: Integers, totals: Integers, multiples: Integers) -> None:
        self.rises, self.cells, self.totals, self.multiples = table, cells, totals, multiples


def _rises(prior: ParameterPrior, n_states: Integers, n_cases: int, unit: float, with_pieces: bool) -> _Rises:
    """The tables, and by number of states of a target, the rows for a cell and for a leaf's total.

    With pieces, also the rows for several states together, up to all.
    """
    most = max(int(n_states.max()), 2)
    cells, totals = np.zeros(most + 1, np.int64), np.zeros(most + 1, np.int64)
    if isinstance(prior, Bdeu | PriorNetwork):
        return _Rises(_table((1.0,), 1, 0, unit), cells, totals, np.zeros((0, 0), np.int64))
    rows: dict[float, int] = {}
    for r in sorted(set(n_states.tolist())):
        exponent = prior.exponent(r)
        cells[r] = rows.setdefault(exponent, len(rows))
        totals[r] = rows.setdefault(exponent * r, len(rows))
    n_rows, multiples = len(rows), np.zeros((most + 1, most + 1) if with_pieces else (0, 0), np.int64)
    for r in set(n_states[(n_states > 2) & (n_states <= MOST_STATES)].tolist()) if with_pieces else ():
        multiples[r, 1 : r + 1] = [rows.setdefault(prior.exponent(r) * n, len(rows)) for n in range(1, r + 1)]
    alike = -(-n_cases // _ALIKE) * _ALIKE  # so that similar numbers of cases share a table
    return _Rises(_table(tuple(rows), n_rows, alike, unit), cells, totals, multiples)


@lru_cache(1)
def _table(exponents: tuple[float, ...], n_long: int, n_cases: int, unit: float) -> rises.Rises:
    """The tables, cached for the next search; the first `n_long` exponents are used most, and get longer ones."""
    length = min(n_cases, rises.MOST) + 1 if n_cases else 0
    short, shorter = exponents[n_long:], min(length, _SHORTER)
    exponents = exponents[:n_long]
    alike = [exponent % 1 if unit == 1.0 else exponent for exponent in exponents]  # equal ones share a table
    least = {key: min(e for e, other in zip(exponents, alike, strict=True) if other == key) for key in alike}
    shifts = [round(exponent - least[key]) for exponent, key in zip(exponents, alike, strict=True)]
    sizes = {key: length + max(s for s, other in zip(shifts, alike, strict=True) if other == key) for key in least}
    begin = dict(zip(sizes, np.cumsum([0, *sizes.values()]).tolist(), strict=False))
    n_values = sum(sizes.values())
    values = np.empty(n_values + len(short) * shorter)
    for key, first in least.items():
        rises.fill(first, unit, values[begin[key] : begin[key] + sizes[key]])
    starts = [begin[key] + shift for key, shift in zip(alike, shifts, strict=True)]
    for number, exponent in enumerate(short):
        starts.append(n_values + number * shorter)
        rises.fill(exponent, unit, values[starts[-1] : starts[-1] + shorter])
    return rises.Rises(
        values,
        np.array(starts, np.int64),
        np.array([length] * n_long + [shorter] * len(short)),
        values[starts] if length else np.zeros(len(starts)),
        np.array(exponents + short),
        np.array([math.lgamma(exponent) for exponent in exponents + short]),
        unit,
    )


def _per_variable(
    variables: tuple[Variable, ...], n_states: Integers, charges_ways: bool
) -> tuple[Integers, Integers, NDArray[np.float64]]:
    """By variable: index of its number of states among the distinct ones, number of ordered states, and log ways."""
    arities: Integers = np.unique(n_states, return_inverse=True)[1]
    ordered, ways = np.zeros(len(variables), np.int64), np.zeros(len(variables))
    for k in np.flatnonzero(n_states > 2).tolist():  # with two states, neither matters
        ordered[k] = n_ordered(variables[k])
        ways[k] = log_ways(variables[k]) if charges_ways else 0.0
    return arities.astype(np.int64), ordered, ways
