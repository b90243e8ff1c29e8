"""Have chains forgotten where they began? R-hat and effective sizes of ranks, after Vehtari et al. (2021).

Arrays are (chains, draws, cells). Knows nothing else.
"""

from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

_NEGLIGIBLE, _DIGITS = 1e-24, 12  # a variance that may be rounding
_MOST_CELLS = 1000
_AT_ONCE = 1 << 20  # numbers

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixing:
    """What tells most against chains: the largest R-hat, the smallest sizes of bulk and tail."""

    r_hat: float = 1.0
    bulk_size: float = np.inf
    tail_size: float = np.inf

    @classmethod
    def of(cls, values: Floats) -> "Mixing":
        """That of all cells, or of those that vary most."""
        values = values[:, :, np.argsort(-values.var(axis=(0, 1)), kind="stable")[:_MOST_CELLS]].round(_DIGITS)
        return cls(*(float(worst) for worst in (r_hat(values).max(), bulk_size(values).min(), tail_size(values).min())))

    def worse(self, other: "Mixing") -> "Mixing":
        """The worse of both."""
        sizes = min(self.bulk_size, other.bulk_size), min(self.tail_size, other.tail_size)
        return Mixing(max(self.r_hat, other.r_hat), *sizes)


def r_hat(values: Floats) -> Floats:
    """For each cell how much more all draws vary than those of a chain, by rank: 1 where chains agree.

    >>> alike = np.random.default_rng(1).random((4, 100, 1))
    >>> bool(r_hat(alike)[0] < 1.02), bool(r_hat(alike + np.arange(4)[:, None, None])[0] > 2)
    (True, True)
    """
    folded = abs(values - np.median(values, axis=(0, 1)))
    return np.maximum(_ratio(_scores(_split(values))), _ratio(_scores(_split(folded))))


def bulk_size(values: Floats) -> Floats:
    """How many independent draws tell as much of where the bulk of the values is."""
    return effective_size(_scores(_split(values)))


def tail_size(values: Floats) -> Floats:
    """The same of the 5 and the 95 percent quantile: the smaller of both."""
    ends = np.quantile(values, [0.05, 0.95], axis=(0, 1))
    below, above = (effective_size(_split((values <= end).astype(np.float64))) for end in ends)
    return np.minimum(below, above)


def variance_of_mean(values: Floats) -> Floats:
    """How far the mean of all draws is off, squared; 0 where they are all alike."""
    n_shares = -(-values.size // _AT_ONCE)
    return np.concatenate([_variance_of_mean(share) for share in np.array_split(_split(values), n_shares, axis=2)])


def _variance_of_mean(values: Floats) -> Floats:
    total = _variances(values)[1]
    return np.where(total <= _NEGLIGIBLE, 0.0, total / effective_size(values))


def effective_size(values: Floats) -> Floats:
    """How many independent draws have a mean as certain; as many as there are where all values are alike.

    Correlations within chains are summed up to where a pair of them is negative, and never rise (Geyer 1992).
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
    """Each chain as two, its first half and its second: so that a drift shows as chains that differ."""
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, values.shape[1] - half :]])


def _variances(values: Floats) -> tuple[Floats, Floats]:
    """The mean variance within chains, and that of all draws."""
    n_draws = values.shape[1]
    within = values.var(axis=1, ddof=1).mean(axis=0)
    return within, within * (n_draws - 1) / n_draws + values.mean(axis=1).var(axis=0, ddof=1)


def _ratio(values: Floats) -> Floats:
    within, total = _variances(values)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(total <= _NEGLIGIBLE, 1.0, np.sqrt(total / within))


def _scores(values: Floats) -> Floats:
    """Ranks over all chains, as quantiles of the normal distribution; equal values have equal ranks."""
    table = _normal_scores(values.shape[0] * values.shape[1])
    out = np.empty(values.shape)
    for cell in range(values.shape[2]):
        _, place, counts = np.unique(values[:, :, cell], return_inverse=True, return_counts=True)
        out[:, :, cell] = table[2 * counts.cumsum() - counts - 1][place.reshape(values.shape[:2])]
    return out


@cache
def _normal_scores(n: int) -> Floats:
    """For the ranks 1, 1.5, 2, ..., n."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((1 + k / 2 - 0.375) / (n + 0.25)) for k in range(2 * n - 1)])
