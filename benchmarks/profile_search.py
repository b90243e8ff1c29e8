"""Where a search spends its time, and the gain from a second thread, beside what passing a message to it takes.

Shares are of one thread, from the samples of Linux `perf` (see samples.py), by the module of the function. Inlined code
counts where it was inlined: planning splits and subtracting histograms are part of choosing. Everything that is not
compiled by this library is one column: Python, numpy, the system.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from benchmarks import data, samples
from benchmarks.limits import two_masks_four_planes
from benchmarks.report import Report, check, main
from leafwise.counters.cpu import CpuCounter
from leafwise.data.table import Table
from leafwise.kernels.compiling.atomics import atomic_exchange, atomic_load
from leafwise.kernels.compiling.jit import jit

REPEATS = 40
SETS = ("plants", "kosarek", "msweb", "ad")
PRIORS = ("auto", "kappa:0.1")
PARTS = {"bits": "counting", "rows": "counting", "counting_together": "counting", "sets": "cutting, joining"}
PARTS |= dict.fromkeys(("splits", "weights", "rises", "dirichlet"), "scoring")
PARTS |= dict.fromkeys(
    ("numba", "schedule", "apply", "acyclic", "operators", "fallback", "expand", "leaf_lists", "regions"),
    "choosing, bookkeeping",
)
PARTS |= {"replay": "drawing", "packing": "laying out", "planes": "laying out"}
REST = "all else"
GOAL = 1.7
N_MESSAGES = 100_000
AHEAD = (0.9, 0.7, 0.5)  # shares of the gain of the next step


def where_time_goes() -> Report:
    """Shares of the samples by part; none if perf is unavailable."""
    parts = [*dict.fromkeys(PARTS.values()), REST]
    rows, remarks = [], []
    try:
        for name, found in samples.take(SETS).items():
            by_part: Counter[str] = Counter()
            for function, n in found.items():
                by_part[PARTS.get(function.partition(".")[0], REST)] += n
            shares = [f"{100 * by_part[part] / by_part.total():.0f} %" for part in parts]
            rows.append([name, f"{by_part.total():,}", *shares])
    except samples.NoSamples as reason:
        remarks.append(f"Not measured here: {reason}.")
    title = "Where the time goes: `learn` with its default settings, one thread"
    return Report(title, ["data", "samples", *parts], rows, remarks)


def count() -> None:
    """Work without any sharing, all in the first-level cache, for about half as long as a search."""
    planes = np.ones((32, 64), np.uint64)
    two_masks_four_planes(planes[:2], planes, np.zeros(32, np.int64), 40_000)


def count_twice() -> None:
    """The same work twice."""
    count()
    count()


def count_together() -> None:
    """The same work once here and once on a second thread."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(count)
        count()
        other.result()


@jit
def answer(message: NDArray[np.int64], player: int, n: int) -> None:
    """Send n messages, each as soon as the other player has sent one: both write to the same word of memory."""
    for k in range(n):
        while atomic_load(message, 0) != 2 * k + player:
            pass
        atomic_exchange(message, 0, np.int64(2 * k + player + 1))


def correspond() -> None:
    """Two threads that answer each other, as fast as a word gets from one core to the other."""
    message = np.zeros(8, np.int64)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(answer, message, 1, N_MESSAGES // 2)
        answer(message, 0, N_MESSAGES // 2)
        other.result()


def line(name: str, prior: str) -> list[float]:
    """Seconds of one search on one thread and on two, then of work without any sharing, then of messages."""
    cases = data.table(name)
    samples.learn(cases, prior, 2)
    correspond()
    actions = [partial(samples.learn, cases, prior, n) for n in (1, 2)]
    return in_turn([*actions, count_twice, count_together, correspond], time.perf_counter)


def in_turn(actions: Sequence[Callable[[], object]], clock: Callable[[], float]) -> list[float]:
    """The least time of each action; they take turns, so that other load affects all alike."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(REPEATS):
        for action, own in zip(actions, times, strict=True):
            began = clock()
            action()
            own.append(clock() - began)
    return [min(own) for own in times]


def log_score_ahead(cases: Table, share: float) -> float:
    """The log score of a search whose nodes run ahead while their steps gain this share of the next step's gain."""
    in_use, CpuCounter.lookahead = CpuCounter.lookahead, share
    try:
        return samples.learn(cases)
    finally:
        CpuCounter.lookahead = in_use


def running_ahead() -> Report:
    """Processor seconds by how far nodes run ahead."""
    rows = []
    for name in SETS:
        cases = data.table(name)
        actions = [partial(log_score_ahead, cases, share) for share in AHEAD]
        check(len({action() for action in actions}) == 1, f"{name}: how far nodes run ahead changes the score")
        rows.append([name, *(f"{seconds:.3f}" for seconds in in_turn(actions, time.process_time))])
    how = f"{CpuCounter.lookahead} is in use; {PRIORS[0]}, one thread, best of {REPEATS}"
    return Report(f"Processor seconds by how far nodes run ahead ({how})", ["data", *map(str, AHEAD)], rows)


def threads() -> Report:
    """The gain from a second thread, and the gain that was possible at the time."""
    rows, reached = [], 0
    for prior, name in product(PRIORS, SETS):
        one, two, alone, together, messages = line(name, prior)
        reached += one / two >= GOAL
        row = [f"{name}, {prior}", f"{one:.3f}", f"{two:.3f}", f"{one / two:.2f}", f"{alone / together:.2f}"]
        rows.append([*row, f"{messages / N_MESSAGES * 1e9:.0f}"])
    remark = f"{GOAL} times as fast on two threads: {reached} of {len(rows)}. The last two columns take turns with the "
    remark += "search: work that needs no sharing, 2 where a second core was free all the time; and how long a word "
    remark += "takes from one core to the other."
    title = f"One thread and two, best of {REPEATS}"
    columns = ["data", "1 thread s", "2 threads s", "times faster", "second core", "message ns"]
    return Report(title, columns, rows, [remark])


def measure() -> Iterator[Report]:
    """Shares, then threads, then how far to run ahead."""
    for name in SETS:
        data.path(name)  # reports missing files before anything is run
    yield where_time_goes()
    yield threads()
    yield running_ahead()


if __name__ == "__main__":
    main(measure, __doc__)
