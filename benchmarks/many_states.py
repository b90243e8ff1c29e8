"""Search on tables with many states: with complete splits, under BDeu and on two threads, beside the plain case.

Whole searches through `start_search`, without building the network; each number is the least of several runs, which
take turns.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.inference.sampling import sample
from leafwise.learner import start_search
from leafwise.search.leaf_search import LeafSearch

TABLES = ("mushroom", "nursery", "adult_train", "splice")
NETWORKS = ("alarm", "insurance", "hailfinder")
CASES = 10_000
LEAST, MOST, SECONDS = 3, 15, 6.0  # turns per table
GOALS = {"complete splits": 2.0, "bdeu:10": 3.0, "threads": 1.6}
WORTH_THREADS = 0.05  # seconds on one thread

Search = Callable[[], int]


def tables() -> Iterator[tuple[str, Table]]:
    """All tables by name."""
    for name in TABLES:
        yield name, data.table(name)
    for name in NETWORKS:
        yield f"{name}, {CASES:,} cases", sample(data.network(name), CASES, 1)


def search(cases: Table, operators: str, prior: str, threads: int) -> int:
    """The number of steps to the end of a search."""
    under_way = start_search(cases, search=LeafSearch(operators, threads=threads), prior=prior)
    under_way.run()
    return under_way.n_steps


def in_turn(searches: list[Search]) -> list[tuple[float, int]]:
    """The least seconds of each search, and its number of steps."""
    steps = [search() for search in searches]  # compile, and warm the caches
    best, n_turns, began = [float("inf")] * len(searches), 0, time.perf_counter()
    while n_turns < LEAST or (n_turns < MOST and time.perf_counter() - began < SECONDS):
        for k, search in enumerate(searches):
            start = time.perf_counter()
            check(search() == steps[k], "a search took another number of steps")
            best[k] = min(best[k], time.perf_counter() - start)
        n_turns += 1
    return list(zip(best, steps, strict=True))


def line(name: str, cases: Table) -> tuple[list[str], dict[str, bool]]:
    """A row of the table, and which goals are met."""
    kinds = [("BM", "uniform", 1), ("CBM", "uniform", 1), ("BM", "bdeu:10", 1), *(("CBIM", "auto", n) for n in (1, 2))]
    plain, complete, bdeu, one, two = in_turn([partial(search, cases, *kind) for kind in kinds])
    check(one[1] == two[1], f"{name}: two threads take another number of steps than one")
    a_step = plain[0] / plain[1]
    slower = [seconds / steps / a_step for seconds, steps in (complete, bdeu)]
    faster = one[0] / two[0]
    reached = {goal: ratio <= GOALS[goal] for goal, ratio in zip(GOALS, slower, strict=False)}
    reached["threads"] = faster >= GOALS["threads"] or one[0] <= WORTH_THREADS
    times = [f"{1e6 * a_step:.0f}", *(f"{ratio:.2f}" for ratio in slower), f"{1e3 * one[0]:.1f}", f"{faster:.2f}"]
    return [name, f"{plain[1]:,}", *times], reached


def measure() -> Iterator[Report]:
    """One table."""
    rows, all_reached = [], []
    for name, cases in tables():
        row, reached = line(name, cases)
        rows.append(row)
        all_reached.append(reached)
    n = {goal: sum(reached[goal] for reached in all_reached) for goal in GOALS}
    remark = (
        f"At most {GOALS['complete splits']} times as long with complete splits: "
        f"{n['complete splits']} of {len(rows)}; "
        f"at most {GOALS['bdeu:10']} times as long under BDeu: {n['bdeu:10']}; {GOALS['threads']} times as fast on two "
        f"threads, or less than {1e3 * WORTH_THREADS:.0f} ms on one: {n['threads']}."
    )
    columns = ["data", "BM steps", "BM µs a step", "CBM / BM", "bdeu:10 / uniform", "default ms", "2 threads"]
    title = "A step with many states: BM with the uniform prior, and how many times as long others take; one thread"
    yield Report(title, columns, rows, [remark])


if __name__ == "__main__":
    main(measure, __doc__)
