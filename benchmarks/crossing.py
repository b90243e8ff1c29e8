"""Where counting by planes and counting by rows cross: the constants of leafwise.kernels.bits.

Counting a set by planes costs, for each plane of each candidate and each state of the target, a fixed part and a part
for each word; by rows, one increment for each row and candidate. The same kernel is compiled twice more here, once with
each way forced, and timed on sets of many sizes. The counts of both must be those of the kernel that chooses itself.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import FunctionType
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, best_of, check, main
from leafwise.counters.cpu import CpuCounter
from leafwise.kernels import bits
from leafwise.search.histograms import make_layout
from leafwise.table import Table, Variable
from leafwise.workers import Workers

N_CANDIDATES = 100
CASES = (1_000, 3_000, 10_000, 30_000, 100_000)
STATES = (2, 4)
REPEATS = 5
_ENOUGH = 2e-3  # seconds for one measurement


def forced(most_plane_states: int) -> Callable[..., None]:
    """bits.count_sets, but planes serve variables of up to so many states, whatever that costs.

    It must not be kept on disk, where it would take the place of the real one.
    """
    compiled = numba.njit(nogil=True)
    names = dict(vars(bits))
    names["_most_plane_states"] = compiled(lambda _n_cases, _n_classes, _n_words: most_plane_states)
    names["count_set"] = compiled(FunctionType(bits.count_set.py_func.__code__, names))
    return compiled(FunctionType(bits.count_sets.py_func.__code__, names))


@dataclass(frozen=True)
class Sets:
    """A table, cut at random into sets of many sizes, and all that a counting kernel is called with."""

    n_cases: int
    n_states: int
    sizes: list[int]
    first: int  # the number of the first set
    histogram: NDArray[np.int32]
    arguments: tuple[Any, ...]


def random_sets(n_cases: int, n_states: int) -> Sets:
    """Half of the cases, a quarter, an eighth, ...; the last variable says which set a case is in."""
    random = np.random.default_rng(1)
    sizes = [n_cases >> k for k in range(1, 20) if n_cases >> k >= 4]
    sizes.append(n_cases - sum(sizes))
    codes = random.integers(0, n_states, (N_CANDIDATES + 2, n_cases)).astype(np.uint8)
    codes[-1] = random.permutation(np.repeat(np.arange(len(sizes)), sizes))
    variables = [Variable(f"x{i}", tuple(map(str, range(n_states)))) for i in range(N_CANDIDATES + 1)]
    which = Variable("set", tuple(map(str, range(len(sizes)))))
    counter = CpuCounter(Table((*variables, which), codes), Workers(1))
    one, last = np.array([0]), np.array([N_CANDIDATES + 1])
    first = counter.cut(one, last, np.array([len(sizes)]), np.arange(len(sizes)), np.array(sizes))
    allowed = np.zeros((N_CANDIDATES + 2, N_CANDIDATES + 2), np.uint8)
    allowed[0, 1:-1] = 1
    layout = make_layout(allowed, counter._n_states, np.array([0]))
    histogram = np.zeros((int(layout.n_rows[0]) + 1) * n_states, np.int32)
    return Sets(n_cases, n_states, sizes[:-1], first, histogram, (histogram, layout, counter.cases))


def seconds_and_counts(kernel: Callable[..., None], sets: Sets, which: int) -> tuple[float, NDArray[np.int32]]:
    """The time of one count of one set, as the best of several batches."""
    kernel(np.array([[sets.first + which, 0, 0]]), 0, 1, *sets.arguments)
    once, _ = best_of(3, lambda: kernel(np.array([[sets.first + which, 0, 0]]), 0, 1, *sets.arguments))
    n = 1 + int(_ENOUGH / once)
    requests = np.array([[sets.first + which, 0, 0]] * n)
    seconds, _ = best_of(REPEATS, partial(kernel, requests, 0, n, *sets.arguments))
    return seconds / n, sets.histogram.copy()


@dataclass(frozen=True)
class Line:
    """One set: seconds by planes, by rows, and as the library chooses."""

    n_cases: int
    n_states: int
    size: int
    planes: float
    rows: float
    chosen: float

    @property
    def n_words(self) -> int:
        return -(-self.n_cases // 64)


def lines(kernels: list[Callable[..., None]]) -> Iterator[Line]:
    """Every size of every table, counted in all three ways."""
    for n_states in STATES:
        for n_cases in CASES:
            sets = random_sets(n_cases, n_states)
            for which, size in enumerate(sets.sizes):
                (planes, one), (rows, two), (chosen, three) = (seconds_and_counts(k, sets, which) for k in kernels)
                check(bool((one == two).all() and (two == three).all()), f"counts differ for {size} of {n_cases} cases")
                check(int(one[-n_states:].sum()) == size, f"{one[-n_states:]} are not {size} cases")
                yield Line(n_cases, n_states, size, planes, rows, chosen)


def fit(measured: list[Line]) -> tuple[float, float, float]:
    """Nanoseconds: the fixed part of a plane, a word of it, and an increment."""
    n_planes = np.array([line.n_states * (line.n_states - 1) * N_CANDIDATES for line in measured])
    planes = np.array([line.planes for line in measured]) * 1e9 / n_planes
    words = np.array([line.n_words for line in measured])
    weight = 1 / planes  # relative errors count
    design = np.stack([np.ones(len(words)), words], axis=1)
    fixed, word = np.linalg.lstsq(design * weight[:, None], planes * weight)[0]
    increments = [line.rows * 1e9 / (line.size * N_CANDIDATES) for line in measured if line.size >= 32]
    return float(fixed), float(word), float(np.median(increments))


def crossing(group: list[Line]) -> float:
    """The size of a set at which both ways cost the same, between the two sizes measured around it."""
    ordered = sorted(group, key=lambda line: line.size)
    lead = [np.log(line.rows / line.planes) for line in ordered]  # rises with the size
    return float(np.exp(np.interp(0, lead, [np.log(line.size) for line in ordered])))


def crossing_in_use(n_states: int, n_words: int) -> float:
    """The smallest set that the library counts by planes."""
    n_planes = n_states * (n_states - 1)
    return max(1, n_planes * (bits._PLANE_COST + bits._WORD_COST * n_words) / bits._ROW_COST)


def measure() -> Iterator[Report]:
    """Where the two ways cross, then the constants that fit the times beside those in use."""
    measured = list(lines([forced(255), forced(0), bits.count_sets]))
    rows = []
    for n_states in STATES:
        for n_cases in CASES:
            group = [line for line in measured if (line.n_cases, line.n_states) == (n_cases, n_states)]
            planes = np.median([line.planes for line in group]) * 1e6
            increment = np.median([line.rows / line.size for line in group if line.size >= 32]) * 1e9 / N_CANDIDATES
            worst = max(line.chosen / min(line.planes, line.rows) for line in group)
            at = (crossing(group), crossing_in_use(n_states, group[0].n_words))
            row = [f"{n_cases:,}", str(n_states), f"{planes:.1f}", f"{increment:.2f}"]
            rows.append([*row, *(f"{size:,.0f}" for size in at), f"{worst:.2f}"])
    heads = ["cases", "states", "by planes µs", "an increment ns", "cross at", "in use", "worst chosen / cheaper"]
    title = f"Counting {N_CANDIDATES} candidates for sets of 4 to half of the cases; best of {REPEATS}"
    yield Report(title, heads, rows)
    yield constants(measured)


def constants(measured: list[Line]) -> Report:
    """What the constants should be by these measurements, and what the present ones cost."""
    rows = [["in use", *(f"{value:.3f}" for value in (bits._PLANE_COST, bits._WORD_COST, bits._ROW_COST))]]
    for n_states in STATES:
        found = fit([line for line in measured if line.n_states == n_states])
        rows.append([f"fitted, {n_states} states", *(f"{value:.3f}" for value in found)])
    chosen = sum(line.chosen for line in measured) / sum(min(line.planes, line.rows) for line in measured)
    logs = [np.log(line.chosen / min(line.planes, line.rows)) for line in measured]
    remark = (
        f"All sets together take {chosen:.2f} times what the cheaper way would take for each; "
        f"the geometric mean of the ratios is {np.exp(np.mean(logs)):.2f}."
    )
    return Report("Nanoseconds", ["", "a plane", "a word of it", "an increment"], rows, [remark])


if __name__ == "__main__":
    main(measure, __doc__)
