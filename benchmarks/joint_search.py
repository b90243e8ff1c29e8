"""The time of a joint search: data in memory, kernels compiled, start_search(...).run() and .network in full.

Each answer is checked. The prototype for comparison is a 150-line program for the same searches, measured once on a
machine with 2 cores.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from benchmarks import data
from benchmarks.report import Report, best_of, check, main
from leafwise.data.table import Table
from leafwise.learner import start_search
from leafwise.search.leaf_search import LeafSearch, LeafSearchRun

REPEATS = 5


@dataclass(frozen=True)
class Job:
    """A data set, the operators, and the known answer."""

    name: str
    operators: str
    prototype: float  # seconds
    score: float  # log score per case
    digits: int  # known decimals of the score
    n_splits: int
    n_merges: int


JOBS = (
    Job("plants", "B", 0.20, -12.5729, 4, 2580, 0),
    Job("kosarek", "B", 0.67, -10.8637, 4, 3514, 0),
    Job("msnbc", "B", 0.75, -6.0550, 4, 1316, 0),
    Job("baudio", "BM", 0.60, -39.22, 2, 3849, 3168),
)


def search(cases: Table, operators: str, threads: int) -> LeafSearchRun:
    """The search that is timed, to its network."""
    settings = LeafSearch(operators=operators, schedule="best-first", threads=threads)
    under_way = start_search(cases, search=settings, prior="uniform", structure_prior="kappa:0.1")
    under_way.run()
    check(len(under_way.network.nodes) == cases.n_variables, "a node is missing")
    return under_way


def check_answer(job: Job, found: LeafSearchRun, n_cases: int) -> None:
    """Check the score, splits and merges."""
    score, steps = found.log_score / n_cases, (found.n_splits, found.n_merges)
    check(round(score, job.digits) == job.score, f"{job.name}: log score / N is {score}, not {job.score}")
    check(steps == (job.n_splits, job.n_merges), f"{job.name}: splits and merges are {steps}")


def measure() -> Iterator[Report]:
    """One row per data set."""
    rows = []
    for job in JOBS:
        cases = data.table(job.name)
        search(data.head(cases, 500), job.operators, 1)
        times = []
        for threads in (1, 2):
            seconds, found = best_of(REPEATS, partial(search, cases, job.operators, threads))
            check_answer(job, found, cases.n_cases)
            times.append(seconds)
        row = [f"{job.name} {job.operators}", f"{cases.n_cases:,} × {cases.n_variables}"]
        row += [f"{found.log_score / cases.n_cases:.4f}", f"{found.n_splits:,}", f"{found.n_merges:,}"]
        row += [f"{job.prototype:.2f}", *(f"{seconds:.3f}" for seconds in times)]
        rows.append([*row, *(f"{job.prototype / seconds:.1f}" for seconds in times)])
    heads = ["data", "size", "log score / N", "splits", "merges", "prototype s"]
    heads += ["1 thread s", "2 threads s", "times faster, 1 thread", "2 threads"]
    title = f"Joint search, best-first, uniform prior, kappa:0.1; best of {REPEATS}; answers checked"
    yield Report(title, heads, rows)


if __name__ == "__main__":
    main(measure, __doc__)
