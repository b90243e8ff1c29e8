"""Where the time of a search goes, and what a second thread gains.

Shares are of one thread, by cProfile, of the quickest of several runs: compiled functions by name, then the Python
between them, then making the network. The profiler makes every call of Python dearer, so the share of Python is less
than it looks; two columns say by how much all became slower. Three of the compiled functions are shared out among
threads; were all their work halved and nothing else, two threads would be as much faster as the column "at most" says.
"""

import cProfile
import pstats
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.limits import added
from benchmarks.report import Report, best_of, check, main
from leafwise.learner import learning
from leafwise.search import leaves
from leafwise.search.greedy import Greedy
from leafwise.search.under_way import UnderWay
from leafwise.table import Table

REPEATS = 7
SETS = ("plants", "kosarek", "msweb", "ad")
PRIORS = ("auto", "kappa:0.1")
SHARED_OUT = {"count_sets": "counting", "price_by_table": "pricing", "cut_sets": "cutting"}
ALONE = {"advance": "choosing", "derive_children": "children", "pack": "packing"}
COMPILED = SHARED_OUT | ALONE
REST = ("other kernels", "Python", "network")
GOAL = 1.7
AHEAD = (0.8, 0.5, 0.2)  # shares of the next step's gain


def search(cases: Table, prior: str, threads: int) -> UnderWay:
    """The search alone."""
    under_way = learning(cases, search=Greedy(threads=threads), structure_prior=prior)
    under_way.run()
    return under_way


def search_and_network(cases: Table, prior: str, threads: int) -> None:
    """The whole learning call."""
    _ = search(cases, prior, threads).network


def part_of(file: str, function: str) -> str:
    """The column that a function's own time belongs to."""
    in_kernels = Path(file).parent.name == "kernels"
    return COMPILED.get(function, "other kernels") if in_kernels else "Python"


def profile(cases: Table, prior: str) -> Counter[str]:
    """Seconds by part, of one run."""
    profiler = cProfile.Profile()
    under_way = profiler.runcall(search, cases, prior, 1)
    stats: Any = pstats.Stats(profiler)
    seconds: Counter[str] = Counter()
    for (file, _, function), (_, _, own, _, _) in stats.stats.items():
        seconds[part_of(file, function)] += own
    seconds["network"] = best_of(1, lambda: under_way.network)[0]
    return seconds


@dataclass(frozen=True)
class Line:
    """One search: seconds by part with one thread, and whole times with one and two."""

    name: str
    parts: Counter[str]
    one: float
    two: float

    @property
    def shared_out(self) -> float:
        return sum(self.parts[part] for part in SHARED_OUT.values()) / self.parts.total()

    @property
    def cells(self) -> list[str]:
        shares = [f"{100 * self.parts[part] / self.parts.total():.0f} %" for part in (*COMPILED.values(), *REST)]
        return [self.name, f"{self.one:.3f}", f"{self.parts.total():.3f}", *shares]

    @property
    def thread_cells(self) -> list[str]:
        at_most = 1 / (1 - self.shared_out / 2)
        times = [f"{self.one:.3f}", f"{self.two:.3f}", f"{self.one / self.two:.2f}"]
        return [self.name, *times, f"{100 * self.shared_out:.0f} %", f"{at_most:.2f}"]


def line(name: str, prior: str) -> Line:
    """Measure one search."""
    cases = data.table(name)
    search_and_network(cases, prior, 2)
    parts = min((profile(cases, prior) for _ in range(REPEATS)), key=lambda found: found.total())
    one, two = in_turn([partial(search_and_network, cases, prior, n) for n in (1, 2)], time.perf_counter)
    return Line(f"{name}, {prior}", parts, one, two)


def in_turn(actions: list[Callable[[], object]], clock: Callable[[], float]) -> list[float]:
    """The least time of each action; they take turns, so that what else the machine does falls on all alike."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(REPEATS):
        for action, own in zip(actions, times, strict=True):
            began = clock()
            action()
            own.append(clock() - began)
    return [min(own) for own in times]


def log_score_ahead(cases: Table, share: float) -> float:
    """The log score of a search whose nodes run ahead while their steps gain this share of the next step's gain."""
    in_use, leaves._AHEAD = leaves._AHEAD, share
    try:
        return search(cases, PRIORS[0], 1).log_score
    finally:
        leaves._AHEAD = in_use


def running_ahead() -> Report:
    """Processor seconds by how far nodes run ahead."""
    rows = []
    for name in SETS:
        cases = data.table(name)
        actions = [partial(log_score_ahead, cases, share) for share in AHEAD]
        check(len({action() for action in actions}) == 1, f"{name}: how far nodes run ahead changes the score")
        rows.append([name, *(f"{seconds:.3f}" for seconds in in_turn(actions, time.process_time))])
    how = f"{leaves._AHEAD} is in use; {PRIORS[0]}, one thread, best of {REPEATS}"
    return Report(f"Processor seconds by how far nodes run ahead ({how})", ["data", *map(str, AHEAD)], rows)


def cores_there_are() -> float:
    """How much faster two threads are at work that needs no sharing: 2 on a quiet machine with two cores."""
    words = np.ones((2, 2**20), np.uint64)

    def add(which: int) -> None:
        for _ in range(100):
            added(words[which])

    def together() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(add, (0, 1)))

    add(0)
    one, two = in_turn([lambda: [add(0), add(1)], together], time.perf_counter)
    return one / two


def measure() -> Iterator[Report]:
    """Shares, then threads, then how far to run ahead."""
    lines = [line(name, prior) for prior in PRIORS for name in SETS]
    title = "Where the time goes: `learn`, CBM, splits-first, uniform prior, one thread"
    yield Report(title, ["data", "s", "profiled s", *COMPILED.values(), *REST], [found.cells for found in lines])
    heads = ["data", "1 thread s", "2 threads s", "times faster", "shared out", "at most"]
    reached = sum(found.one / found.two >= GOAL for found in lines)
    remark = f"{GOAL} times as fast on two threads: {reached} of {len(lines)}. "
    remark += f"In the same run, work that needs no sharing was {cores_there_are():.2f} times as fast on two threads."
    title = f"One thread and two, best of {REPEATS}"
    yield Report(title, heads, [found.thread_cells for found in lines], [remark])
    yield running_ahead()


if __name__ == "__main__":
    main(measure, __doc__)
