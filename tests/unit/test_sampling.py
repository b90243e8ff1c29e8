from zlib import crc32

import numpy as np

from leafwise.examples import alarm
from leafwise.inference.sampling import cumulative, sample


def test_a_seed_keeps_its_cases_from_version_to_version():
    assert crc32(sample(alarm(), 500, seed=1).codes.tobytes()) == 1216299251


def test_more_cases_do_not_change_the_first_variable():
    few, many = (sample(alarm(), n, seed=3) for n in (50, 200))
    first = alarm().order()[0]
    assert (few.codes[first] == many.codes[first, :50]).all()


def test_cumulative_probabilities_end_in_ones_and_skip_impossible_states():
    rows = np.array([[0.0, 0.4999999, 0.5, 0.0], [1e-300, 0.0, 3e-300, 0.0], [0.0, 0.0, 0.0, 0.0]])
    sums = cumulative(rows)
    np.testing.assert_allclose(sums[0], [0, 0.4999999 / 0.9999999, 1, 1])
    np.testing.assert_allclose(sums[1], [0.25, 0.25, 1, 1])
    assert (sums[:, -1] == 1).all()
