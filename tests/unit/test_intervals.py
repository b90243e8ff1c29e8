"""Intervals against the exact ones of Clopper and Pearson, and their coverage where weights differ."""

import numpy as np
import pytest
from scipy import stats

from leafwise.inference.intervals import of_draws, of_weights


@pytest.mark.parametrize("n", [10, 1000, 100_000])
@pytest.mark.parametrize("hits", [0, 2, 3, 9])
def test_with_equal_weights_they_are_those_of_clopper_and_pearson(n, hits):
    inside, outside = np.array([float(hits)]), np.array([float(n - hits)])
    low, high = of_weights(inside, inside, outside, outside, 1.0)[:, 0]
    assert high == pytest.approx(stats.beta.ppf(0.975, hits + 1, n - hits), rel=0.01)
    assert low == pytest.approx(stats.beta.ppf(0.025, hits, n - hits + 1) if hits else 0, rel=0.08)
    assert of_draws(inside / n, np.array([float(n)]), np.array([float(n)]))[:, 0] == pytest.approx([low, high])


def test_the_lower_limit_of_one_hit_is_on_the_safe_side():
    low, _ = of_weights(np.ones(1), np.ones(1), np.full(1, 99.0), np.full(1, 99.0), 1.0)
    assert 0.4 < low[0] / stats.beta.ppf(0.025, 1, 100) < 1


@pytest.mark.parametrize("rate", [0.5, 2.0, 30.0])
def test_they_hold_for_weighted_draws(rate):
    """Weights from 0 to 20, most of them small: the sum over a Poisson number of them has a known mean."""
    random = np.random.default_rng(1)
    held = []
    for _ in range(2000):
        inside, outside = (20 * random.random(random.poisson(size)) ** 4 for size in (rate, 500))
        sums = [np.array([part]) for part in (inside.sum(), (inside**2).sum(), outside.sum(), (outside**2).sum())]
        low, high = of_weights(*sums, 20.0)[:, 0]
        held.append(low <= rate / (rate + 500) <= high)
    assert np.mean(held) >= 0.94


def test_all_and_nothing():
    none, all_ = np.zeros(1), np.full(1, 50.0)
    assert of_weights(none, none, all_, all_, 1.0)[0, 0] == 0
    assert of_weights(all_, all_, none, none, 1.0)[1, 0] == 1
    assert of_weights(none, none, all_, all_, 1e130)[:, 0] == pytest.approx([0, 1])
