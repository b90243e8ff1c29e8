"""Restarts of greedy search from where it ends: their results and their cost.

Both schedules of greedy search, then rounds that perturb one node's decision graph and search from there. The entries
with merges of the paper's Tables 1 and 2 must all be reached.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import start_search
from leafwise.search.leaf_search import SCHEDULES, LeafSearch
from leafwise.search.restarts import LeafSearchRestarts
from leafwise.search.run import SearchRun

ROUNDS = (10, 100, 1000)
CELL_ROUNDS = 100
ROUNDED = 0.02  # the rounding of the published numbers
OPERATORS = ("CM", "BM", "CBM")
PUBLISHED = {  # log scores relative to greedy search with complete splits only
    ("promoters", "bdeu:10"): (9.5, 10.82, 12.93),
    ("promoters", "bdeu:20"): (14.11, 12.11, 14.12),
    ("promoters", "bdeu:30"): (10.93, 12.98, 16.65),
    ("promoters", "bdeu:40"): (16.3, 13.54, 16.02),
    ("promoters", "bdeu:50"): (15.76, 15.54, 17.54),
    ("promoters", "uniform"): (22.13, 26.11, 26.11),
    ("splice", "uniform"): (464, 655, 687),
}


@dataclass(frozen=True)
class Outcome:
    """The result of a search so far, and its time."""

    score: float
    seconds: float
    test: float  # log-likelihood per test case


def outcome(search: SearchRun, test: Table) -> Outcome:
    """The result of the search so far."""
    return Outcome(search.log_score, search.seconds, float(log_probabilities(search.network, test).mean()))


def greedy(cases: Table, test: Table, schedule: str) -> Outcome:
    """One greedy search of all variables."""
    search = start_search(cases, search=LeafSearch(schedule=schedule), prior="uniform", structure_prior="kappa:0.1")
    search.run()
    return outcome(search, test)


def restarted(cases: Table, test: Table) -> list[Outcome]:
    """The search with restarts, after each number of rounds."""
    search = start_search(
        cases, search=LeafSearchRestarts(rounds=max(ROUNDS)), prior="uniform", structure_prior="kappa:0.1"
    )
    return [outcome(search, test) for number, _ in enumerate(search, 1) if number in ROUNDS]


def with_tests() -> Iterator[tuple[str, Table, Table]]:
    """The data sets with their test cases."""
    for seed in (1, 2, 3):
        yield f"alarm, 1,000 cases, seed {seed}", data.alarm_sample(1_000, seed), data.alarm_sample(10_000, 100 + seed)
    for name in ("nltcs", "plants"):
        cases = data.table(name)
        test = data.test_table(name, cases)
        if test is None:
            raise data.NoData(f"the test cases of {name!r} are not beside {data.path(name)}: put them there")
        yield name, cases, test


def joint() -> Report:
    """All variables at once, on samples and on real data."""
    heads = ["data", *SCHEDULES, *(f"+ {n} rounds" for n in ROUNDS)]
    heads += ["seconds best-first", "splits-first", *(f"{n} rounds" for n in ROUNDS)]
    heads += ["test/case best-first", "splits-first", *(f"{n} rounds" for n in ROUNDS)]
    rows = []
    for name, cases, test in with_tests():
        both = [greedy(cases, test, schedule) for schedule in SCHEDULES]
        after = restarted(cases, test)
        best = max(one.score for one in both)
        check(after[-1].score > best, f"restarts found nothing better on {name}")
        row = [name, *(f"{one.score:.1f}" for one in both), *(f"{max(0.0, one.score - best):+.1f}" for one in after)]
        row += [f"{one.seconds:.2f}" for one in (*both, *after)]
        rows.append([*row, *(f"{one.test:.3f}" for one in (*both, *after))])
    return Report("Log score of all variables, and what restarts add to the better schedule (kappa:0.1)", heads, rows)


def cell(cases: Table, prior: str, operators: str, base: float, published: float) -> list[str]:
    """One entry of the paper's tables: greedy searches, restarts, and when they reach the published score."""
    options = {"target": "class", "prior": prior, "structure_prior": "uniform"}
    both = [start_search(cases, search=LeafSearch(operators, schedule), **options) for schedule in SCHEDULES]
    for search in both:
        search.run()
    search = start_search(cases, search=LeafSearchRestarts(LeafSearch(operators), rounds=CELL_ROUNDS), **options)
    scores = [done.log_score - base for done in search]
    reached = [k for k, score in enumerate(scores, 1) if score >= published - ROUNDED]
    check(bool(reached), f"{prior} {operators}: {scores[-1]:.2f} does not reach the published {published}")
    found = [published, *(one.log_score - base for one in both), scores[-1]]
    return [prior, operators, *(f"{score:.2f}" for score in found), str(reached[0]), f"{search.seconds:.1f}"]


def cells() -> Report:
    """All entries with merges in Tables 1 and 2."""
    heads = ["data", "prior", "operators", "published", "best-first", "splits-first", f"{CELL_ROUNDS} rounds"]
    rows = []
    for (name, prior), published in PUBLISHED.items():
        cases = data.table(name)
        trees = start_search(cases, search=LeafSearch("C"), target="class", prior=prior, structure_prior="uniform")
        trees.run()
        for operators, value in zip(OPERATORS, published, strict=True):
            rows.append([name, *cell(cases, prior, operators, trees.log_score, value)])
    remarks = [f"Seconds in all: {sum(float(row[-1]) for row in rows):.0f}."]
    title = "Tables 1 and 2: log score above that of complete splits"
    return Report(title, [*heads, "reached in round", "seconds"], rows, remarks)


def measure() -> Iterator[Report]:
    """First all variables at once, then single targets."""
    start_search(data.alarm_sample(100), search=LeafSearchRestarts(rounds=5)).run()  # compile
    yield joint()
    yield cells()


if __name__ == "__main__":
    main(measure, __doc__)
