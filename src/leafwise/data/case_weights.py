"""Case weights: integer weights repeat their cases; for others, rows are repeated, each of a fraction of a case.

Knows tables.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Table, many

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_CELLS = 2**27  # of a table whose rows are repeated, unless it has at most twice as many rows as there are cases
ROWS_A_CASE = 100  # per case of mean weight, if weights must be rounded
_MOST_WEIGHT = 1e15  # in total: beyond that, doubles do not resolve a single case
_LEAST_WEIGHT = 1e-290  # in total: below that, doubles do not resolve the shares of rows


def checked_weights(weights: Any, n_cases: int) -> Floats:
    """The weights as floats, one per case; a ValueError if they are not valid.

    >>> checked_weights([1, 0, 2.5], 3).tolist()
    [1.0, 0.0, 2.5]
    """
    try:
        found: Floats = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"the weights are {type(weights).__name__}, and must be numbers, one for each case, or the name of a "
            f"column: use for example weights='n'"
        ) from None
    if found.shape != (n_cases,):
        raise ValueError(
            f"the weights have the shape {found.shape}, and there are {n_cases:,} cases: give one for each"
        )
    wrong = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if len(wrong):
        raise ValueError(
            f"case {wrong[0] + 1:,} has the weight {found[wrong[0]]:g}, and weights are numbers from 0 on: correct it"
        )
    if not found.any():
        raise ValueError("all weights are zero, so there is no case to learn from: check them")
    if found.sum() > _MOST_WEIGHT:
        raise ValueError(
            f"the weights add up to {found.sum():g} cases, and scores keep their digits up to {_MOST_WEIGHT:g}: divide"
        )
    if found.sum() < _LEAST_WEIGHT:
        raise ValueError(f"the weights add up to {found.sum():g} cases, too few to compute with: multiply them")
    return found


def repeated_rows(weights: Floats, n_variables: int) -> Integers | None:
    """The row numbers, each repeated by its weight; None if weights are not integers, or too large.

    >>> repeated_rows(np.array([1.0, 0.0, 2.0]), 5).tolist()
    [0, 2, 2]
    """
    if (weights % 1).any() or weights.sum() > _most_rows(len(weights), n_variables):
        return None
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64))


def stacked(table: Table, weights: Floats) -> tuple[Table, float]:
    """The table with rows repeated in proportion to their weights, and the number of cases that a row represents.

    A warning tells of cases without a row, because their weights are too small beside the others.

    >>> from leafwise.data.table import Variable
    >>> table, unit = stacked(Table((Variable("x", ("a", "b")),), np.array([[0, 1]], np.uint8)), np.array([0.5, 1.5]))
    >>> table.codes.tolist(), unit
    ([[0, 1, 1, 1]], 0.5)
    """
    multiples, unit = _multiples(weights, _most_rows(table.n_cases, table.n_variables))
    left_out = weights[(multiples == 0) & (weights > 0)]
    if len(left_out):
        warnings.warn(
            f"weights up to {left_out.max():g} round to 0 beside a mean of {weights.mean():g}, which leaves out "
            f"{many(len(left_out), 'case')} of {table.n_cases:,}: give them the weight 0, or a larger one",
            stacklevel=3,
        )
    return Table(table.variables, np.repeat(table.codes, multiples, axis=1)), unit


def _multiples(weights: Floats, most: int) -> tuple[Integers, float]:
    """Weights as integer multiples of a unit: exactly if they are multiples of 1, 1/2, ... or 1/100, else rounded."""
    for parts in range(1, ROWS_A_CASE + 1):
        near = np.rint(weights * parts)
        if near.any() and np.abs(weights * parts - near).max() <= 1e-9:
            whole = near.astype(np.int64)
            divisor = int(np.gcd.reduce(whole))
            if whole.sum() <= most * divisor:
                return whole // divisor, divisor / parts
            break
    rows = np.rint(weights * (min(most, ROWS_A_CASE * len(weights)) / weights.sum())).astype(np.int64)
    return rows, float(weights.sum() / rows.sum())  # preserves the total weight


def _most_rows(n_cases: int, n_variables: int) -> int:
    return max(MOST_CELLS // n_variables, 2 * n_cases)
