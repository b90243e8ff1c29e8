"""The schedules compared: always the best operator, or merges only when no split gains.

The log score is what search maximizes. If a data set has test cases, their mean log-likelihood is shown beside it: a
higher score need not predict better. Binary variables are searched with CBM only, as C and B are the same there.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import start_search
from leafwise.search.leaf_search import SCHEDULES, LeafSearch

SMALL = 300_000  # cells: up to this size, priors of several strengths are tried, too
PRIORS = ("uniform", "bdeu:1", "bdeu:10")


@dataclass(frozen=True)
class Outcome:
    """The result of one search."""

    score: float  # log score per case
    test: float | None  # log-likelihood per test case
    n_leaves: int
    seconds: float


def outcome(cases: Table, test: Table | None, operators: str, schedule: str, prior: str) -> Outcome:
    """Learn once."""
    began = time.perf_counter()
    settings = LeafSearch(operators=operators, schedule=schedule)
    search = start_search(cases, search=settings, prior=prior, structure_prior="kappa:0.1")
    search.run()
    network, seconds = search.network, time.perf_counter() - began
    check(search.stopped == "no operator gains", f"the search stopped early: {search.stopped}")
    likelihood = None if test is None else float(log_probabilities(network, test).mean())
    return Outcome(search.log_score / cases.n_cases, likelihood, search.n_leaves, seconds)


def compare(name: str, cases: Table, test: Table | None) -> Iterator[tuple[list[str], Outcome, Outcome]]:
    """Both schedules, for each prior and operator set that is meaningful here."""
    is_binary = all(variable.n_states <= 2 for variable in cases.variables)
    for prior in PRIORS if cases.codes.size <= SMALL else PRIORS[:1]:
        for operators in ("CBM",) if is_binary else ("CBM", "BM"):
            best, splits = (outcome(cases, test, operators, schedule, prior) for schedule in SCHEDULES)
            yield [name, operators, prior], best, splits


def measure() -> Iterator[Report]:
    """One row per data set, operator set and prior."""
    for prior in PRIORS[:2]:  # compile
        start_search(data.alarm_sample(100), prior=prior).run()
    jobs = [(f"alarm, {n:,} cases", data.alarm_sample(n), data.alarm_sample(10_000, seed=2)) for n in (1_000, 10_000)]
    jobs += [(name, cases := data.table(name), data.test_table(name, cases)) for name in (*data.TABLES, *data.BINARY)]
    heads = ["data", "operators", "prior"]
    heads += ["score/N best-first", "splits-first", "test/case best-first", "splits-first"]
    heads += ["leaves best-first", "splits-first", "seconds best-first", "splits-first"]
    rows, won, predicted, usual = [], [0, 0], [0, 0], [0, 0]
    for name, cases, test in jobs:
        for row, best, splits in compare(name, cases, test):
            won[splits.score > best.score] += 1
            tests = ["–", "–"]
            if best.test is not None and splits.test is not None:
                predicted[splits.test > best.test] += 1
                usual[splits.test > best.test] += row[1:] == ["CBM", "uniform"]
                tests = [f"{best.test:.3f}", f"{splits.test:.3f}"]
            row += [f"{best.score:.4f}", f"{splits.score:.4f}", *tests, str(best.n_leaves), str(splits.n_leaves)]
            rows.append([*row, f"{best.seconds:.2f}", f"{splits.seconds:.2f}"])
    remarks = [
        f"Higher log score: best-first {won[0]} times, splits-first {won[1]} times. "
        f"Higher likelihood of test cases: best-first {predicted[0]} times, splits-first {predicted[1]} times; "
        f"counting each data set once (CBM, uniform): best-first {usual[0]}, splits-first {usual[1]}."
    ]
    yield Report("Best-first against splits-first, joint search, kappa:0.1", heads, rows, remarks)


if __name__ == "__main__":
    main(measure, __doc__)
