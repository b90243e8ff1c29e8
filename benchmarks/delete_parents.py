"""The cost and benefit of deleting parents that no longer matter.

A merge can make a parent irrelevant to its node. Its arc still rules out other arcs; deleting it removes that
constraint, at the cost of checking for such parents after every merge. One thread.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

from benchmarks import data
from benchmarks.report import Report, best_of, check, main
from leafwise.data.table import Table
from leafwise.learner import start_search
from leafwise.search.leaf_search import SCHEDULES, LeafSearch, LeafSearchRun

NAMES = ("promoters", "splice", "car", "nursery", "mushroom", "adult_train", "nltcs", "plants", "tretail")
REPEATS = 5
LONG = 1.0  # seconds; longer searches are timed once


def search(cases: Table, operators: str, schedule: str, delete_parents: bool) -> LeafSearchRun:
    """Learn to the end."""
    settings = LeafSearch(operators=operators, schedule=schedule, delete_parents=delete_parents, threads=1)
    under_way = start_search(cases, search=settings, prior="uniform", structure_prior="kappa:0.1")
    under_way.run()
    check(under_way.network.n_leaves == under_way.n_leaves, "leaves got lost")
    return under_way


def timed(action: Callable[[bool], LeafSearchRun]) -> Iterator[tuple[float, LeafSearchRun]]:
    """Without deletion, then with it: the least of several times. Runs alternate, so that conditions are the same."""
    times, found = {False: math.inf, True: math.inf}, {}
    for repeat in range(REPEATS):
        if repeat and times[True] > LONG:
            break
        for delete_parents in (False, True):
            seconds, found[delete_parents] = best_of(1, partial(action, delete_parents))
            times[delete_parents] = min(times[delete_parents], seconds)
    return ((times[delete_parents], found[delete_parents]) for delete_parents in (False, True))


def compare(name: str, cases: Table, operators: str, schedule: str) -> tuple[list[str], float]:
    """A row with and without deletion, and the gain in log score."""
    action = partial(search, cases, operators, schedule)
    (without_s, without), (with_s, with_) = timed(action)
    check(without.n_deleted == 0, "parents were deleted that should be kept")
    gain = with_.log_score - without.log_score
    row = [name, operators, schedule, f"{without.n_merges:,}", f"{without.n_arcs:,}", f"{with_.n_arcs:,}"]
    row += [f"{with_.n_deleted:,}", f"{gain:+.2f}", f"{100 * gain / abs(without.log_score):+.3f} %"]
    return [*row, f"{without_s:.3f}", f"{with_s:.3f}", f"{with_s / without_s:.1f}"], gain


def measure() -> Iterator[Report]:
    """One row per data set, operator set and schedule."""
    for delete_parents in (False, True):
        search(data.alarm_sample(10_000), "BM", "splits-first", delete_parents)  # compile; a parent is deleted here
    jobs = [(f"alarm, {n:,} cases", data.alarm_sample(n)) for n in (1_000, 10_000)]
    jobs += [(name, data.table(name)) for name in NAMES]
    rows, gains = [], []
    for name, cases in jobs:
        is_binary = all(variable.n_states <= 2 for variable in cases.variables)
        for operators in ("CBM",) if is_binary else ("CBM", "BM"):
            for schedule in SCHEDULES:
                row, gain = compare(name, cases, operators, schedule)
                rows.append(row)
                gains.append(gain)
    heads = ["data", "operators", "schedule", "merges", "arcs without", "arcs with", "deleted"]
    heads += ["log score gained", "of it", "seconds without", "with", "ratio"]
    better, worse = sum(gain > 1e-6 for gain in gains), sum(gain < -1e-6 for gain in gains)
    remarks = [f"The log score rose {better} times, fell {worse} times and stayed {len(gains) - better - worse} times."]
    how = f"best of {REPEATS}, once above {LONG:.0f} s"
    title = f"Deleting parents that no longer matter, joint search, uniform prior, kappa:0.1; {how}"
    yield Report(title, heads, rows, remarks)


if __name__ == "__main__":
    main(measure, __doc__)
