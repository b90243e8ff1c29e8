"""Numeric labels, and discretization of numeric columns: cut points, and labels of intervals.

Knows NumPy and nothing else.

A cut point belongs to the bin on its right: "< 2.5", "2.5 to 5" and ">= 5" are the values below 2.5, from 2.5 to below
5, and from 5 on.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isfinite

import numpy as np
from numpy.typing import NDArray

BINNINGS = ("bayes", "quantile", "uniform")


def number(text: str) -> float | int | None:
    """The finite number that a label spells, or None; integers stay exact.

    >>> number("2.50"), number("7"), number("seven"), number("inf")
    (2.5, 7, None, None)
    """
    try:
        value = float(text)
    except ValueError:
        return None
    if "_" in text or not isfinite(value):
        return None
    try:
        return int(text)
    except ValueError:
        return value


def number_label(value: float) -> str:
    """The label of a number: integers without a decimal point, others with the fewest digits that restore them.

    >>> number_label(2.0), number_label(0.1)
    ('2', '0.1')
    """
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def plain_label(text: str) -> str:
    """Normalize a label that is written as Python writes floats: "1.0" becomes "1"; "007" and "1.50" stay.

    >>> plain_label("1.0"), plain_label("007")
    ('1', '007')
    """
    value = float(text)
    return number_label(value) if repr(value) == text else text


def cut_points(
    values: NDArray[np.float64], counts: NDArray[np.int64], n_bins: int, binning: str = "quantile"
) -> tuple[float, ...]:
    """At most n_bins - 1 cut points for distinct values in ascending order, with these counts.

    Equal cut points count once, so heavy ties give fewer bins. A single value has no cut points.

    >>> cut_points(np.array([1.0, 2.0, 3.0, 4.0]), np.array([5, 5, 5, 5]), 2)
    (3.0,)
    >>> cut_points(np.array([0.0, 10.0]), np.array([1, 1]), 4, "uniform")
    (2.5, 5.0, 7.5)
    """
    if len(values) < 2:
        return ()
    cuts = _quantile_cuts(values, counts, n_bins) if binning == "quantile" else _uniform_cuts(values, n_bins)
    return tuple(np.unique(cuts).tolist())


def _quantile_cuts(values: NDArray[np.float64], counts: NDArray[np.int64], n_bins: int) -> NDArray[np.float64]:
    # below[j]: the number of cases below values[j + 1]. Every cut point is an observed value above the smallest one, so
    # no bin is empty. Each quantile is rounded to the nearest such value, and in a tie to the lower one.
    below = np.cumsum(counts)[:-1]
    wanted = np.arange(1, n_bins) * (below[-1] + counts[-1]) / n_bins
    right = np.minimum(np.searchsorted(below, wanted), len(below) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(wanted - below[left] <= below[right] - wanted, left, right)
    cuts: NDArray[np.float64] = values[nearest + 1]
    return cuts


def _uniform_cuts(values: NDArray[np.float64], n_bins: int) -> NDArray[np.float64]:
    # Convex combinations of the two ends, since their difference can overflow. No cut point at the smallest value,
    # below which no case is.
    share = np.arange(1, n_bins) / n_bins
    cuts: NDArray[np.float64] = values[0] * (1 - share) + values[-1] * share
    return np.extract(cuts > values[0], cuts)


def interval_labels(
    cuts: tuple[float, ...], spell: Callable[[Sequence[float]], list[str]] | None = None
) -> tuple[str, ...]:
    """One label per bin, with enough digits to tell cut points apart. `spell`: formats those that are not numbers.

    >>> interval_labels((2.5, 5.0))
    ('< 2.5', '2.5 to 5', '>= 5')
    """
    texts = cut_texts(cuts, spell)
    inner = [f"{low} to {high}" for low, high in pairwise(texts)]
    return (f"< {texts[0]}", *inner, f">= {texts[-1]}")


def cut_texts(cuts: Sequence[float], spell: Callable[[Sequence[float]], list[str]] | None = None) -> list[str]:
    """The cut points as in the labels of the bins."""
    if spell is not None:
        return spell(cuts)
    for digits in range(6, 17):
        texts = [number_label(cut if cut.is_integer() else float(f"{cut:.{digits}g}")) for cut in cuts]
        if len(set(texts)) == len(texts):
            return texts
    return [number_label(cut) for cut in cuts]
