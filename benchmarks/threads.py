"""The gain from more threads: whole searches on one thread and on more, up to the machine's number of cores.

From a table in memory to the network. Data sets whose files are missing are omitted. The last column is for work
without any sharing, once on one thread and once per core on all of them: the gain that the machine itself allows.
"""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from benchmarks import data
from benchmarks.profile_search import count
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.inference.sampling import sample
from leafwise.learner import start_search
from leafwise.search.leaf_search import LeafSearch

FILES = ("plants", "kosarek", "msnbc", "ad", "cwebkb", "adult_train")
LEAST, MOST, SECONDS = 2, 15, 5.0  # turns per table
GOALS = {"1,000,000 x 200": 10.0, "msnbc": 5.0}
GOAL = 6.0

Search = Callable[[], float]


def tables(remarks: list[str]) -> Iterator[tuple[str, Table, str | None]]:
    """All tables by name, and the target if only one is learned."""
    for name in FILES:
        try:
            yield name, data.table(name), None
        except data.NoData:
            remarks.append(f"{name} is not here.")
    yield "alarm, 1,000,000 cases", data.alarm_sample(1_000_000), None
    for n in (20_000, 500_000):
        yield f"{n:,} x 42 of three states", sample(data.network_of_tables(42, 3, 2), n, seed=1), None
    long = sample(data.random_network(200), 1_000_000, seed=1)
    yield "1,000,000 x 200", long, None
    yield "the same, one target", long, long.names[-1]


def search(cases: Table, target: str | None, threads: int) -> float:
    """The log score of the result."""
    under_way = start_search(cases, target=target, search=LeafSearch(threads=threads))
    under_way.run()
    _ = under_way.network
    return under_way.log_score


def in_turn(searches: list[Search], name: str) -> list[float]:
    """The least seconds of each search."""
    found = {search() for search in searches}  # compile, and warm the caches
    check(len(found) == 1, f"{name}: the network depends on the number of threads")
    best, n_turns, began = [float("inf")] * len(searches), 0, time.perf_counter()
    while n_turns < LEAST or (n_turns < MOST and time.perf_counter() - began < SECONDS):
        for k, one in enumerate(searches):
            start = time.perf_counter()
            one()
            best[k] = min(best[k], time.perf_counter() - start)
        n_turns += 1
    return best


def gained_by_machine(n: int) -> float:
    """The throughput of n threads relative to one, for work without any sharing."""

    def seconds(pool: ThreadPoolExecutor, times: int) -> float:
        began = time.perf_counter()
        for done in [pool.submit(count) for _ in range(times)]:
            done.result()
        return time.perf_counter() - began

    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(n) as all_of_them:
        seconds(one, 1)
        return n * min(seconds(one, 1) for _ in range(5)) / min(seconds(all_of_them, n) for _ in range(5))


def measure() -> Iterator[Report]:
    """A row per table."""
    cores = os.cpu_count() or 1
    threads = sorted({min(2**k, cores) for k in range(6)})
    rows, remarks, missed = [], list[str](), list[str]()
    for name, cases, target in tables(remarks):
        seconds = in_turn([partial(search, cases, target, n) for n in threads], name)
        gained, machine = seconds[0] / seconds[-1], gained_by_machine(threads[-1])
        if target is None and gained < GOALS.get(name, GOAL):
            missed.append(f"{name} {GOALS.get(name, GOAL):g}")
        rows.append([name, *(f"{1e3 * taken:.1f}" for taken in seconds), f"{gained:.1f}", f"{machine:.1f}"])
    if missed and threads[-1] >= 16:
        remarks.append(f"Wanted, and missed: {', '.join(missed)} times.")
    heads = ["data", *(f"{n} ms" for n in threads), "times faster", "the machine itself"]
    yield Report("Threads: whole searches, milliseconds", heads, rows, remarks)


if __name__ == "__main__":
    main(measure, __doc__)
