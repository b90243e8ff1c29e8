"""Cases drawn from above, parents first, in line with the evidence and weighted by how probable they make it.

Knows parts and kernels.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.parts import Codes, Part
from leafwise.kernels.questions import sampling

_BLOCK = 1 << 16  # numbers drawn at a time, so that they stay in the cache

Floats = NDArray[np.float64]


def draws(part: Part, n: int, random: np.random.Generator, most: int = 4096) -> Iterator[tuple[Codes, Floats]]:
    """Blocks of cases of a part, n in all and at most so many in each, and their log weights."""
    n_free = len(part.free)
    size = max(1, min(most, _BLOCK // n_free))
    for begin in range(0, n, size):
        codes = np.repeat(part.case, min(size, n - begin), axis=1)
        log_weight = np.zeros(codes.shape[1])
        sampling.draw_weighted(codes, part.flat, random.random((n_free, codes.shape[1])), log_weight)
        yield codes, log_weight


def chosen(cases: Codes, log_weights: Floats, random: np.random.Generator, n: int = 1) -> Codes:
    """Some of the cases, one a column, each drawn by weight; at least one has a weight above zero."""
    sums = np.exp(log_weights - log_weights.max()).cumsum()
    return cases[:, np.searchsorted(sums, random.random(n) * sums[-1], side="right")]
