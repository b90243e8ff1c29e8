"""Convergence of chains: R-hat and effective sample sizes of ranks, after Vehtari et al. (2021).

Arrays have the shape (chains, draws, cells).
"""

from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_NEGLIGIBLE, _DIGITS = 1e-24, 12  # a variance that may be a rounding error; digits kept
_MOST_CELLS = 1000
_AT_ONCE = 1 << 20  # numbers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixing:
    """The worst diagnostics of chains: the largest R-hat and the smallest effective sizes of bulk and tail."""

    r_hat: float = 1.0
    bulk_size: float = np.inf
    tail_size: float = np.inf

    @classmethod
    def of(cls, values: Floats) -> "Mixing":
        """The worst over all cells, or over those that vary most if there are many."""
        values = values[:, :, np.argsort(-values.var(axis=(0, 1)), kind="stable")[:_MOST_CELLS]].round(_DIGITS)
        return cls(*(float(worst) for worst in (r_hat(values).max(), bulk_size(values).min(), tail_size(values).min())))

    def worse(self, other: "Mixing") -> "Mixing":
        """The worse of both, for each diagnostic."""
        sizes = min(self.bulk_size, other.bulk_size), min(self.tail_size, other.tail_size)
        return Mixing(max(self.r_hat, other.r_hat), *sizes)


def r_hat(values: Floats) -> Floats:
    """The rank-normalized R-hat of each cell: 1 where chains agree.

    >>> alike = np.random.default_rng(1).random((4, 100, 1))
    >>> bool(r_hat(alike)[0] < 1.02), bool(r_hat(alike + np.arange(4)[:, None, None])[0] > 2)
    (True, True)
    """
    folded = abs(values - np.median(values, axis=(0, 1)))
    return np.maximum(_ratio(_scores(_split(values))), _ratio(_scores(_split(folded))))


def bulk_size(values: Floats) -> Floats:
    """The effective sample size of each cell's bulk."""
    return effective_size(_scores(_split(values)))


def tail_size(values: Floats) -> Floats:
    """The effective sample size of each cell's tails: the smaller one of its 5 and 95 percent quantiles."""
    ends = np.quantile(values, [0.05, 0.95], axis=(0, 1))
    below, above = (effective_size(_split((values <= end).astype(np.float64))) for end in ends)
    return np.minimum(below, above)


def variance_of_mean(values: Floats) -> Floats:
    """The variance of the mean over all draws, for each cell; 0 if all values are equal."""
    n_shares = -(-values.size // _AT_ONCE)
    return np.concatenate([_variance_of_mean(share) for share in np.array_split(_split(values), n_shares, axis=2)])


def _variance_of_mean(values: Floats) -> Floats:
    total = _variances(values)[1]
    return np.where(total <= _NEGLIGIBLE, 0.0, total / effective_size(values))


def effective_size(values: Floats) -> Floats:
    """The effective sample size for the mean of each cell; the number of draws if all values are equal.

    Autocorrelations are summed in pairs up to the first negative pair, and made non-increasing (Geyer 1992).
    """
    n_chains, n_draws, n_cells = values.shape
    n = n_chains * n_draws
    within, total = _variances(values)
    alike = total <= _NEGLIGIBLE
    length = 1 << (2 * n_draws - 1).bit_length()
    spectrum = np.fft.rfft(values - values.mean(axis=1, keepdims=True), length, axis=1)
    covariance = np.fft.irfft(abs(spectrum) ** 2, length, axis=1)[:, :n_draws].mean(axis=0) / n_draws
    correlation = 1 - (within - covariance) / np.where(alike, 1, total)
    correlation[0] = 1
    pairs = correlation[: n_draws // 2 * 2].reshape(-1, 2, n_cells).sum(axis=1)
    pairs[np.logical_or.accumulate(pairs < 0, axis=0)] = 0
    time = 2 * np.minimum.accumulate(pairs, axis=0).sum(axis=0) - 1
    return np.where(alike, float(n), n / np.maximum(time, 1 / np.log10(n)))


def _split(values: Floats) -> Floats:
    """Each chain as two, its first and its second half, so that a drift shows as a difference between chains."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])


def _variances(values: Floats) -> tuple[Floats, Floats]:
    """The mean variance within chains, and the variance of all draws."""
    n_draws = values.shape[1]
    within = values.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (n_draws - 1) / n_draws + values.mean(axis=1).var(axis=0, ddof=1)


def _ratio(values: Floats) -> Floats:
    within, total = _variances(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total <= _NEGLIGIBLE, 1.0, np.sqrt(total / within))


def _scores(values: Floats) -> Floats:
    """Ranks over all chains as normal quantiles; equal values have equal ranks."""
    table = _normal_scores(values.shape[0] * values.shape[1])
    out = np.empty(values.shape)
    for cell in range(values.shape[2]):
        _, place, counts = np.unique(values[:, :, cell], return_inverse=True, return_counts=True)
        out[:, :, cell] = table[2 * counts.cumsum() - counts - 1][place.reshape(values.shape[:2])]
    return out


@cache
def _normal_scores(n: int) -> Floats:
    """Normal quantiles of the ranks 1, 1.5, 2, ..., n."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((1 + k / 2 - 0.375) / (n + 0.25)) for k in range(2 * n - 1)])
