"""What takes few instructions, compiled and not, against what takes many."""

import numba
import numpy as np
import pytest

from leafwise.kernels.compiling.words import (
    MOST_ROWS,
    add_eight,
    add_sums,
    lowest,
    one_by_one,
    popcount,
    which_equal,
    without_lowest,
)

compiled = numba.njit(nogil=True)
WORDS = [1, 2, 2**63, 2**64 - 1, 0b1011000, 0x123456789ABCDEF0]


@compiled
def ones(word):
    return popcount(word)


@compiled
def first(word):
    return lowest(word)


@compiled
def others(word):
    return without_lowest(word)


@compiled
def equal(codes, at, code):
    return which_equal(codes, at, code)


@pytest.mark.interpreted
@pytest.mark.parametrize("word", WORDS)
def test_ones_are_counted_and_the_lowest_is_found(word):
    digits = f"{word:b}"[::-1]
    assert (ones(np.uint64(word)), first(np.uint64(word))) == (digits.count("1"), digits.index("1"))
    assert others(np.uint64(word)) == word - (1 << digits.index("1"))


@pytest.mark.interpreted
def test_a_word_without_ones():
    assert (ones(np.uint64(0)), first(np.uint64(0)), others(np.uint64(0))) == (0, 64, 0)


@pytest.mark.interpreted
@pytest.mark.parametrize(("kind", "most"), [(np.uint8, 255), (np.uint16, 65535)])
def test_codes_that_are_equal(kind, most):
    codes = np.random.default_rng(1).choice([0, 1, most], 200).astype(kind)
    for at in (0, 1, 63, 136):
        for code in (0, 1, most, 7):
            expected = sum(int(codes[at + k] == code) << k for k in range(64))
            assert int(equal(codes, at, code)) == expected


@compiled
def add_up(data, rows, width, word, sums, counts):
    for at in range(0, len(rows), 8):
        add_eight(data, rows, at, width, word, sums)
    add_sums(sums, counts, 512)


@pytest.mark.interpreted
@pytest.mark.parametrize(("width", "word"), [(1, 0), (3, 0), (8, 0), (19, 8), (19, 16)])
def test_rows_are_added_up(width, word):
    random = np.random.default_rng(width)
    data = random.integers(0, 2**64, 40 * width + 8, np.uint64)
    data[:width] = 2**64 - 1  # which a sum of eight bits just holds so many times
    rows = np.append(np.zeros(MOST_ROWS - 40, np.int32), random.integers(0, 40, 40, np.int32)).astype(np.int32)
    sums, counts = np.zeros(64, np.uint64), np.zeros(1024, np.int32)
    for _ in range(2):
        add_up(data, rows, width, word, sums, counts)
    words = np.stack([data[row * width + word :][:8] for row in rows])
    expected = 2 * np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").sum(axis=0, dtype=int)
    assert counts.tolist() == [0] * 512 + expected.tolist()
    assert not sums.any()


@compiled
def looked_up(places, values):
    total = 0
    for place in places:
        total += values[place]
        one_by_one()
    return total


@pytest.mark.interpreted
def test_values_are_looked_up_one_by_one():
    places, values = np.array([3, 0, 3, 2] * 50), np.arange(4) * 10
    assert looked_up(places, values) == 50 * 80
    if hasattr(looked_up, "inspect_asm"):
        assert not any("gather" in code for code in looked_up.inspect_asm().values())
