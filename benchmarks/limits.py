"""The machine's limits, and how much of them the counting kernel reaches, in one run.

A *pair* is one AND of two 64-bit words and the popcount of the result: the unit of counting by bits. The limits are the
best of three loops, which load each word of a plane for one or two masks, over planes that fit in a cache or in none;
the bandwidth is that of summing a large array. All on one thread. The kernel's requests are the root histograms of a
search: all cases, every target, every candidate.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.crossing import forced
from benchmarks.report import Report, best_of, check, main
from leafwise.counters.cpu import CpuCounter
from leafwise.data.table import Table, Variable
from leafwise.kernels.compiling.jit import ready
from leafwise.kernels.compiling.words import popcount
from leafwise.kernels.counting import bits
from leafwise.search.histograms import make_layout
from leafwise.workers import Workers

REPEATS = 25
LARGE = 256 * 2**20  # bytes: eight times a last cache of 32 MB
PLACES = {"L1": 16 * 2**10, "L2": 2**19, "L3": 2**23, "memory": LARGE}  # bytes of planes
ROOM = {"L1": 2**14, "L2": 2**20, "L3": 2**25}  # the largest planes taken to be in each; others: memory
N_WORDS = 512  # of a plane
PAIRS = 5e7  # per measurement
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
    """Count every plane under two masks at once: each of its words is loaded once for two pairs."""
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


@compiled
def two_masks_four_planes(masks: Words, planes: Words, counts: NDArray[np.int64], rounds: int) -> None:
    """Four planes under two masks at once: six words are loaded for eight pairs."""
    for _ in range(rounds):
        for p in range(0, planes.shape[0], 4):
            a, b, c, d = planes[p], planes[p + 1], planes[p + 2], planes[p + 3]
            n0, n1, n2, n3 = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
            m0, m1, m2, m3 = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
            for word in range(planes.shape[1]):
                zero, one = masks[0, word], masks[1, word]
                n0 += popcount(zero & a[word])
                m0 += popcount(one & a[word])
                n1 += popcount(zero & b[word])
                m1 += popcount(one & b[word])
                n2 += popcount(zero & c[word])
                m2 += popcount(one & c[word])
                n3 += popcount(zero & d[word])
                m3 += popcount(one & d[word])
            counts[p] += n0 + m0
            counts[p + 1] += n1 + m1
            counts[p + 2] += n2 + m2
            counts[p + 3] += n3 + m3


LOOPS: dict[Callable[..., None], int] = {one_mask: 1, two_masks: 2, two_masks_four_planes: 2}


def pairs_a_second(n_bytes: int) -> list[float]:
    """Pairs per second of each loop, over planes of `n_bytes` in total."""
    random = np.random.default_rng(1)
    planes = random.integers(0, 2**63, (n_bytes // 8 // N_WORDS, N_WORDS)).astype(np.uint64)
    masks = random.integers(0, 2**63, (2, N_WORDS)).astype(np.uint64)
    counts = np.zeros(len(planes), np.int64)
    rates = []
    for loop, n_masks in LOOPS.items():
        counts[:] = 0
        loop(masks, planes, counts, 1)
        expected = sum(np.bitwise_count(planes & masks[k]).sum(axis=1, dtype=np.int64) for k in range(n_masks))
        check(bool((counts == expected).all()), f"{loop} counts wrongly")
        rounds = max(1, round(PAIRS / planes.size))
        seconds, _ = best_of(REPEATS, partial(loop, masks, planes, counts, rounds))
        rates.append(rounds * planes.size * n_masks / seconds)
    return rates


def bytes_a_second() -> float:
    """How fast a large array is read."""
    words = np.ones(LARGE // 8, np.uint64)
    check(added(words) == len(words), "the sum of ones is wrong")
    return LARGE / best_of(REPEATS, partial(added, words))[0]


@dataclass(frozen=True)
class Request:
    """The root histograms of a table: the size of its planes, and the speed of counting."""

    size: str
    plane_bytes: int
    n_words: int  # per plane
    rate: float  # pairs per second
    as_chosen: float  # speed-up if the library may choose how to count


def root_histograms(cases: Table, by_planes: Callable[..., None]) -> Request:
    """Count all cases, for every target with every other variable, with the library's kernel."""
    n = cases.n_variables
    counter = CpuCounter(cases, Workers(1))
    layout = make_layout(1 - np.eye(n, dtype=np.uint8), counter.n_states, np.arange(n))
    sizes = (layout.n_rows[layout.of_target] + 1) * counter.n_states
    offsets = np.cumsum(sizes) - sizes
    histograms = np.zeros(int(sizes.sum()), np.int32)
    requests = np.stack([np.zeros(n, np.int64), np.arange(n), offsets], axis=1)
    planes = counter.cases.data
    scratch = bits.make_scratch(cases.n_cases, counter.n_states, planes)
    ready(bits.call(layout, counter.cases))
    seconds = []
    for kernel in (by_planes, bits.count_sets):
        histograms[:] = 0
        seconds.append(best_of(REPEATS, partial(kernel, requests, 0, n, histograms, layout, counter.cases, scratch))[0])
        check_counts(cases, histograms, offsets)
    pairs = 2 * n * (n - 1) * planes.words.shape[1]
    size = f"{cases.n_cases:,} × {n}"
    return Request(size, planes.words.nbytes, planes.words.shape[1], pairs / seconds[0], seconds[0] / seconds[1])


def check_counts(cases: Table, histograms: NDArray[np.int32], offsets: Any) -> None:
    """Check for some targets the cells where candidate and target are both 1."""
    both = 4 * np.arange(cases.n_variables) + 3
    for target in (0, cases.n_variables // 2, cases.n_variables - 1):
        others = np.arange(cases.n_variables) != target
        together = np.array([np.count_nonzero(column & cases.codes[target]) for column in cases.codes])
        right = histograms[offsets[target] + both][others] == together[others]
        check(bool(right.all()), f"variable {target} is counted wrongly")


def machine_limits() -> tuple[Report, dict[str, float]]:
    """The limits as a table, and the most pairs per second for planes in each place."""
    rates = {place: pairs_a_second(n_bytes) for place, n_bytes in PLACES.items()}
    rows = [[f"planes in {place}", *(f"{rate / 1e9:.1f}" for rate in found)] for place, found in rates.items()]
    heads = ["billion pairs / s", "one mask", "two masks", "two masks, four planes"]
    remark = f"Reading memory: {bytes_a_second() / 1e9:.1f} GB/s."
    title = f"Limits of the machine, one thread, best of {REPEATS}: AND + popcount of 64-bit words"
    return Report(title, heads, rows, [remark]), {place: max(found) for place, found in rates.items()}


def tables() -> Iterator[tuple[str, Table]]:
    """Tables of many shapes; the planes of the last fit in no cache."""
    for name in ("plants", "kosarek", "msweb", "ad"):
        yield name, data.table(name)
    yield "binary chain", data.binary_chain(200, 100_000)
    codes = np.random.default_rng(1).integers(0, 2, (96, 4_000_000), np.uint8)
    yield "coins", Table(tuple(Variable(f"x{i}", ("0", "1")) for i in range(96)), codes)


def measure() -> Iterator[Report]:
    """The limits, then the kernel beside them."""
    data.path("plants")
    limits, rates = machine_limits()
    yield limits
    rows, by_planes = [], forced(True)
    for name, cases in tables():
        found = root_histograms(cases, by_planes)
        place = next((place for place, most in ROOM.items() if found.plane_bytes <= most), "memory")
        row = [name, found.size, f"{found.plane_bytes / 1e6:.2f}", f"{found.n_words:,}", f"{found.rate / 1e9:.1f}"]
        rows.append([*row, place, f"{100 * found.rate / rates[place]:.0f} %", f"{found.as_chosen:.1f}"])
    heads = [
        "data",
        "size",
        "planes MB",
        "words a plane",
        "billion pairs / s",
        "planes are in",
        "of the limit there",
        "chosen: times faster",
    ]
    title = f"Root histograms by planes, one thread, best of {REPEATS}; counts checked"
    yield Report(title, heads, rows)


if __name__ == "__main__":
    main(measure, __doc__)
