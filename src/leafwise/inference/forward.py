"""Forward sampling: cases drawn in topological order, consistent with the evidence, and weighted by its likelihood."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.parts import Codes, Part
from leafwise.kernels.questions import sampling

_BLOCK = 1 << 16  # random numbers per block, so that they stay in the cache

Floats = NDArray[np.float64]


def draws(part: Part, n: int, random: np.random.Generator, most: int = 4096) -> Iterator[tuple[Codes, Floats]]:
    """Blocks of at most `most` cases of a part, `n` in total, with their log weights."""
    n_free = len(part.free)
    size = max(1, min(most, _BLOCK // n_free))
    for begin in range(0, n, size):
        codes = np.repeat(part.case, min(size, n - begin), axis=1)
        log_weight = np.zeros(codes.shape[1])
        sampling.draw_weighted(codes, part.flat, random.random((n_free, codes.shape[1])), log_weight)
        yield codes, log_weight


def chosen(cases: Codes, log_weights: Floats, random: np.random.Generator, n: int = 1) -> Codes:
    """`n` of the cases, one per column, drawn by weight; at least one weight must be positive."""
    sums = np.exp(log_weights - log_weights.max()).cumsum()
    return cases[:, np.searchsorted(sums, random.random(n) * sums[-1], side="right")]
