"""What tells whether chains have mixed."""

import numpy as np
import pytest
from scipy import stats

from leafwise.inference.convergence import Mixing, bulk_size, effective_size, r_hat, tail_size, variance_of_mean


def chains(correlation, n_chains=8, n_draws=1000, n_cells=3, seed=1):
    """Each value is a share of the one before and noise, and has the variance 1."""
    random = np.random.default_rng(seed)
    values = np.empty((n_chains, n_draws, n_cells))
    values[:, 0] = random.standard_normal((n_chains, n_cells))
    for k in range(1, n_draws):
        noise = random.standard_normal((n_chains, n_cells))
        values[:, k] = correlation * values[:, k - 1] + (1 - correlation**2) ** 0.5 * noise
    return values


@pytest.mark.parametrize("correlation", [-0.3, 0.0, 0.5, 0.9])
def test_sizes_are_those_of_known_correlations(correlation):
    values = chains(correlation)
    expected = 8000 * (1 - correlation) / (1 + correlation)
    for size in (effective_size(values), bulk_size(values)):
        assert size == pytest.approx(np.full(3, expected), rel=0.25)
    assert variance_of_mean(values) == pytest.approx(1 / size, rel=0.3)
    assert (tail_size(values) > expected / 4).all()
    assert (r_hat(values) < (1.01 if correlation < 0.9 else 1.03)).all()


def test_r_hat_by_hand():
    """As Vehtari et al. write it: halves of chains, normal scores of ranks, and the same of distances to the median."""
    random = np.random.default_rng(3)
    values = random.standard_normal((4, 10, 1)) + 0.3 * np.arange(4)[:, None, None]
    values[0, :3] = 1.0  # ties
    ratios = []
    for own in (values[:, :, 0], abs(values - np.median(values))[:, :, 0]):
        halves = np.concatenate([own[:, :5], own[:, 5:]])
        ranks = stats.rankdata(halves).reshape(halves.shape)
        scores = stats.norm.ppf((ranks - 0.375) / (ranks.size + 0.25))
        within = scores.var(axis=1, ddof=1).mean()
        total = 4 / 5 * within + scores.mean(axis=1).var(ddof=1)
        ratios.append((total / within) ** 0.5)
    assert r_hat(values)[0] == pytest.approx(max(ratios))


def test_chains_that_differ_in_place_or_spread_or_drift():
    values = chains(0.0)
    assert (r_hat(values + (np.arange(8) == 3)[:, None, None]) > 1.01).all()
    assert (r_hat(values * (1 + (np.arange(8) == 3))[:, None, None]) > 1.01).all()
    assert (r_hat(values + np.linspace(0, 1, 1000)[:, None]) > 1.01).all()
    assert (bulk_size(values + 5 * np.arange(8)[:, None, None]) < 20).all()


def test_values_that_never_change_tell_nothing():
    assert Mixing.of(np.full((4, 10, 2), 0.3)) == Mixing(1.0, 40.0, 40.0)
    stuck = np.repeat(np.arange(4.0), 10).reshape(4, 10, 1)
    assert r_hat(stuck)[0] == np.inf
    assert variance_of_mean(np.zeros((4, 10, 2))).tolist() == [0, 0]


def test_rounding_is_not_disagreement():
    values = np.full((4, 100, 1), 0.3)
    values[0] += 1e-16
    assert Mixing.of(values).r_hat == 1
