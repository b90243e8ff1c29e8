"""Intervals with probability 0.95 from few, weighted or no draws.

The sums of weights in a state and in all others are approximately gamma-distributed, and each may lack one draw of the
largest possible weight (Fay & Feuer 1997); their ratio gives the interval. With equal weights it is the interval of
Clopper and Pearson (1934).
"""

import numpy as np
from numpy.typing import NDArray

_Z = 1.959963984540054  # the 0.975 quantile of the normal distribution

Floats = NDArray[np.float64]


def of_weights(inside: Floats, squares: Floats, outside: Floats, other_squares: Floats, one: float | Floats) -> Floats:
    """Lower and upper limits of inside / (inside + outside): sums of weights, each with the sum of squared weights.

    `one`: the largest weight that a draw may have. A state without draws has an upper limit.

    >>> none, three = np.zeros(1), np.full(1, 3.0)
    >>> of_weights(none, none, 100 - none, 100 - none, 1.0).round(3).ravel().tolist()
    [0.0, 0.036]
    >>> of_weights(three, three, 100 - three, 100 - three, 1.0).round(3).ravel().tolist()
    [0.006, 0.085]
    """
    low = _lower(inside, squares, outside + one, other_squares + np.square(one))
    high = 1 - _lower(outside, other_squares, inside + one, squares + np.square(one))
    return np.stack([low, high])


def of_draws(probabilities: Floats, sizes: Floats, least: Floats) -> Floats:
    """Limits of probabilities with given effective sample sizes, if one draw in `least` may have been missed."""
    others = 1 - probabilities
    return of_weights(probabilities, probabilities / sizes, others, others / sizes, 1 / least)


def _lower(sums: Floats, squares: Floats, others: Floats, other_squares: Floats) -> Floats:
    """The lower quantile of X / (X + Y), gamma variables, by the cube roots of Wilson and Hilferty (1931).

    For a single draw it is half of what it should be; otherwise the two differ by at most one percent.
    """
    some = sums > 0
    a = np.where(some, squares, 1.0) / np.where(some, 9 * sums**2, 9.0)
    b = other_squares / (9 * others**2)
    square, middle, constant = (1 - b) ** 2 - _Z**2 * b, (1 - a) * (1 - b), (1 - a) ** 2 - _Z**2 * a
    root = np.maximum(middle - np.sqrt(np.maximum(middle**2 - square * constant, 0)), 0) / square
    odds: Floats = np.where(some, sums / others * root**3, 0.0)
    return odds / (1 + odds)
