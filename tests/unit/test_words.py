"""What takes few instructions, compiled and not, against what takes many."""

import numba
import numpy as np
import pytest

from leafwise.kernels.compiling.words import lowest, popcount, which_equal

compiled = numba.njit(nogil=True)
WORDS = [1, 2, 2**63, 2**64 - 1, 0b1011000, 0x123456789ABCDEF0]


@compiled
def ones(word):
    return popcount(word)


@compiled
def first(word):
    return lowest(word)


@compiled
def equal(codes, at, code):
    return which_equal(codes, at, code)


@pytest.mark.interpreted
@pytest.mark.parametrize("word", WORDS)
def test_ones_are_counted_and_the_lowest_is_found(word):
    digits = f"{word:b}"[::-1]
    assert (ones(np.uint64(word)), first(np.uint64(word))) == (digits.count("1"), digits.index("1"))


@pytest.mark.interpreted
@pytest.mark.parametrize(("kind", "most"), [(np.uint8, 255), (np.uint16, 65535)])
def test_codes_that_are_equal(kind, most):
    codes = np.random.default_rng(1).choice([0, 1, most], 200).astype(kind)
    for at in (0, 1, 63, 136):
        for code in (0, 1, most, 7):
            expected = sum(int(codes[at + k] == code) << k for k in range(64))
            assert int(equal(codes, at, code)) == expected
