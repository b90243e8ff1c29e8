"""The crossover of counting by planes and by rows: the constants of leafwise.kernels.counting.bits.

Counting a set by planes costs, for each plane of each candidate and each state of the target, a fixed part and a part
per word; by rows, a fixed part for each plane and each state of the target, and for each row a fixed part and a part
per 512 of its bits. The same kernel is compiled twice more here, once with each method forced, and timed on sets of
many sizes: all sets of a table in turn, as in a search, so that no set is in a cache because it was just counted. The
counts of both must be those of the kernel that chooses itself. Compiling them requires LEAFWISE_PLAIN_NUMBA=1.
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
from leafwise.data.table import Table, Variable
from leafwise.kernels.compiling.jit import ready
from leafwise.kernels.counting import bits
from leafwise.search.histograms import make_layout
from leafwise.workers import Workers

N_CANDIDATES = 200
CASES = (2_000, 20_000, 100_000, 500_000)
SIZES = (8, 32, 128, 512, 2048, 8192, 32768)
KINDS = {"2 states": 2, "4 states": 4, "12 states": 12}
MOST_SETS = 100
REPEATS = 7


def forced(is_by_planes: bool) -> Callable[..., None]:
    """bits.count_sets, but always by planes, or always by rows, whatever the cost.

    It must not be cached on disk, where it would replace the real one.
    """
    compiled = numba.njit(nogil=True)
    names = dict(vars(bits))
    names["_by_planes"] = compiled(lambda _size, _n_words, _n_variables, _n_classes, _data: is_by_planes)
    for name, function in (("count_set", bits.count_set), ("count_sets", bits.count_sets.py_func)):
        names[name] = compiled(FunctionType(function.__code__, names))
    kernel: Callable[..., None] = names["count_sets"]
    return kernel


@dataclass(frozen=True)
class Sets:
    """A table cut at random into sets of one size, with all arguments of a counting kernel."""

    n_sets: int
    n_words: int
    n_chunks: int  # of 512 bits, per row
    histograms: NDArray[np.int32]
    arguments: tuple[Any, ...]


def random_sets(n_cases: int, kind: str, size: int) -> Sets:
    """Sets of one size; the last variable is the set of a case, and the remaining cases form one more."""
    random = np.random.default_rng(1)
    n_states = KINDS[kind]
    n_sets = min(MOST_SETS, n_cases // size)
    codes = random.integers(0, n_states, (N_CANDIDATES + 2, n_cases), np.uint8)
    sizes = [*[size] * n_sets, n_cases - n_sets * size]
    codes[-1] = random.permutation(np.repeat(np.arange(n_sets + 1), sizes))
    variables = [Variable(f"x{i}", tuple(map(str, range(n_states)))) for i in range(N_CANDIDATES + 1)]
    which = Variable("set", tuple(map(str, range(n_sets + 1))))
    counter = CpuCounter(Table((*variables, which), codes), Workers(1))
    one, last = np.array([0]), np.array([N_CANDIDATES + 1])
    first = counter.cut_sets(one, last, np.array([n_sets + 1]), np.arange(n_sets + 1))
    allowed = np.zeros((N_CANDIDATES + 2, N_CANDIDATES + 2), np.uint8)
    allowed[0, 1:-1] = 1
    layout = make_layout(allowed, counter.n_states, np.array([0]))
    n_cells = (int(layout.n_rows[0]) + 1) * n_states
    requests = np.array([[first + k, 0, k * n_cells, 0, -1] for k in range(n_sets)])
    histograms = np.zeros(n_sets * n_cells, np.int32)
    scratch = bits.make_scratch(size, counter.n_states, counter.cases.data)
    arguments = (requests, 0, n_sets, histograms, layout, counter.cases, scratch)
    ready(bits.call(layout, counter.cases))
    data = counter.cases.data
    return Sets(n_sets, data.words.shape[1], -(-data.width // 8), histograms, arguments)


def seconds_and_counts(kernel: Callable[..., None], sets: Sets) -> tuple[float, NDArray[np.int32]]:
    """The time per set, with all sets counted in turn; the best of several rounds."""
    kernel(*sets.arguments)
    seconds, _ = best_of(REPEATS, partial(kernel, *sets.arguments))
    return seconds / sets.n_sets, sets.histograms.copy()


@dataclass(frozen=True)
class Line:
    """Sets of one size: seconds by planes, by rows, and with the library's choice."""

    n_cases: int
    kind: str
    size: int
    n_words: int
    n_chunks: int
    planes: float
    rows: float
    chosen: float


def lines(kernels: list[Callable[..., None]]) -> Iterator[Line]:
    """All set sizes of all tables, counted in all three ways."""
    for kind, n_states in KINDS.items():
        for n_cases in CASES:
            for size in SIZES:
                if 2 * size <= n_cases:
                    sets = random_sets(n_cases, kind, size)
                    (planes, one), (rows, two), (chosen, three) = (seconds_and_counts(k, sets) for k in kernels)
                    where = f"{kind}, {size} of {n_cases} cases"
                    check(bool((one == two).all() and (two == three).all()), f"counts differ for {where}")
                    check(int(one[-n_states:].sum()) == size, f"not all are counted for {where}")
                    yield Line(n_cases, kind, size, sets.n_words, sets.n_chunks, planes, rows, chosen)


def fit(measured: list[Line]) -> list[float]:
    """Nanoseconds: by planes, per plane and per word; by rows, per plane, per row and per 512 bits of it."""
    states = np.array([KINDS[line.kind] for line in measured])
    size, chunks = np.array([line.size for line in measured]), np.array([line.n_chunks for line in measured])
    n_planes = N_CANDIDATES * (states - 1) * states
    planes = np.stack([n_planes, n_planes * [line.n_words for line in measured]], axis=1)
    rows = np.stack([n_planes, size, size * chunks], axis=1)
    found = []
    for design, taken in ((planes, [line.planes for line in measured]), (rows, [line.rows for line in measured])):
        weight = 1 / np.array(taken)  # relative errors count
        found += (np.linalg.lstsq(design * weight[:, None], np.full(len(size), 1e9))[0]).tolist()
    return found


def measure() -> Iterator[Report]:
    """Where the two methods cross, then the constants that fit the times beside those in use."""
    measured = list(lines([forced(True), forced(False), bits.count_sets]))
    rows = [
        [line.kind, f"{line.n_cases:,}", f"{line.size:,}"]
        + [f"{seconds * 1e6:.2f}" for seconds in (line.planes, line.rows, line.chosen)]
        for line in measured
    ]
    heads = ["data", "cases", "in the set", "by planes µs", "by rows µs", "as chosen µs"]
    yield Report(f"Counting {N_CANDIDATES} candidates; best of {REPEATS}", heads, rows)
    yield constants(measured)


def constants(measured: list[Line]) -> Report:
    """The constants according to these measurements, and the cost of the present ones."""
    in_use = (bits._PLANE_COST, bits._WORD_COST, bits._WRITING_COST, bits._ROW_COST, bits._CHUNK_COST)
    rows = [
        [name, *(f"{value:.3f}" for value in values)]
        for name, values in (("in use", in_use), ("fitted", fit(measured)))
    ]
    logs = [np.log(line.chosen / min(line.planes, line.rows)) for line in measured]
    remark = (
        f"Chosen against the cheaper way: {np.exp(np.mean(logs)):.2f} times the time in the geometric mean, "
        f"{np.exp(np.max(logs)):.2f} at most."
    )
    return Report(
        "Nanoseconds", ["", "a plane", "a word of it", "a plane, by rows", "a row", "512 bits of it"], rows, [remark]
    )


if __name__ == "__main__":
    main(measure, __doc__)
