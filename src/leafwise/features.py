"""Features with numbers among them: which columns are cut into bins, how many, and what new numbers count as.

Knows how sources are opened and read.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import cbrt

import numpy as np

from leafwise.binning import interval_labels
from leafwise.columns import open_source
from leafwise.encoding import read
from leafwise.table import Table, Variable

_MOST_BINS = 8  # that "auto" makes


def read_binned(
    source: object, bins: str | int | Mapping[str, int] | None, binning: str = "quantile", missing: str = "error"
) -> Table:
    """Read cases from a frame or an array whose columns of numbers take any number in new cases.

    `bins="auto"` cuts columns with many distinct numbers into about the cube root of the number of cases, 2 to 8 bins;
    `bins=k` into k. With fewer numbers, each is a state, and the cuts lie half-way between them. Columns that hold
    anything else than numbers are read as ever. So are all of them where bins are None or a mapping.

    >>> table = read_binned(np.array([[0.5, 7], [1.5, 7], [2.5, 7], [3.5, 8]]), bins=2)
    >>> [(variable.labels, variable.cuts) for variable in table.variables]
    [(('< 2.5', '>= 2.5'), (2.5,)), (('7', '8'), (7.5,))]
    """
    if bins is None or isinstance(bins, Mapping):
        return read(source, bins=bins, binning=binning, missing=missing)
    opened = open_source(source)
    most = _n_bins(bins, len(opened.cells[0]))
    numbers = {name: n for index, name in enumerate(opened.names) if (n := opened.n_numbers(index)) is not None}
    table = read(source, bins={name: most for name, n in numbers.items() if n > most}, binning=binning, missing=missing)
    variables, codes = list(table.variables), table.codes.copy()
    for index, variable in enumerate(variables):
        if variable.name in numbers and not variable.cuts:
            variables[index], shift = _with_cuts(variable)
            codes[index] += shift
    return Table(tuple(variables), codes)


def _n_bins(bins: str | int, n_cases: int) -> int:
    if bins == "auto":
        return min(max(round(cbrt(n_cases)), 2), _MOST_BINS)
    if isinstance(bins, str):
        raise ValueError(f"bins={bins!r} is not known: use 'auto', a whole number, a mapping {{'name': 8}}, or None")
    return bins


def _with_cuts(variable: Variable) -> tuple[Variable, int]:
    """A variable whose states are numbers, with cuts half-way between them; and by how much its states move up.

    A single number has nothing to lie half-way to: a cut at the number itself leaves room below.
    """
    labels = variable.labels[: variable.n_states - variable.missing]
    values = np.array(labels, dtype=np.float64)
    below, above = values[:-1], values[1:]
    if not len(values) or (below >= above).any():  # no number, or whole numbers too large to be told apart
        return variable, 0
    if len(values) > 1:
        middles = below / 2 + above / 2
        return replace(variable, cuts=tuple(np.where(middles > below, middles, above).tolist())), 0
    cuts = tuple(values.tolist())
    return replace(variable, labels=interval_labels(cuts) + variable.labels[len(labels) :], cuts=cuts), 1
