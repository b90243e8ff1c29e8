"""How cost grows with the number of cases, and at the start of a search with the number of variables.

The exponent is the slope of log time on log size: 1 is linear, 2 is quadratic. One thread throughout.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from benchmarks import data
from benchmarks.report import Report, best_of, check, exponent, main
from leafwise.data.table import Table
from leafwise.learner import start_search
from leafwise.search.leaf_search import LeafSearch, LeafSearchRun

CASES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
PARTS_OF_MSNBC = (16, 8, 4, 2, 1)
VARIABLES = (50, 100, 200, 400, 800)
CASES_OF_EACH = 10_000
REPEATS = 4


def whole(cases: Table) -> LeafSearchRun:
    """Learn to the end."""
    under_way = start_search(cases, search=LeafSearch(threads=1), prior="uniform", structure_prior="kappa:0.1")
    under_way.run()
    check(under_way.network.n_leaves == under_way.n_leaves, "leaves got lost")
    return under_way


def first_step(cases: Table) -> LeafSearchRun:
    """Compute all gains at the start, and take the best step."""
    under_way = start_search(cases, search=LeafSearch(threads=1), prior="uniform", structure_prior="kappa:0.1")
    step = next(under_way)
    check(step.n_arcs == 1 and step.operator.gain > 0, f"the first step is {step}")
    return under_way


def growth(
    title: str,
    unit: str,
    tables: Iterator[Table],
    size: Callable[[Table], int],
    action: Callable[[Table], LeafSearchRun],
) -> Report:
    """A table of times, with the slope between successive lines and overall."""
    sizes, times, steps = [], [], []
    for cases in tables:
        seconds, search = best_of(REPEATS, partial(action, cases))
        sizes.append(size(cases))
        times.append(seconds)
        steps.append(search.n_steps)
    slopes = ["–", *(f"{exponent(s, t):.2f}" for s, t in zip(pairwise(sizes), pairwise(times), strict=True))]
    rows = [_row(*line) for line in zip(sizes, times, steps, slopes, strict=True)]
    remarks = [f"Fitted exponent: {exponent(sizes, times):.2f}; over the larger half: {_late(sizes, times):.2f}."]
    return Report(title, [unit, "milliseconds", "steps", "exponent from the line above"], rows, remarks)


def _row(size: int, seconds: float, n_steps: int, slope: str) -> list[str]:
    return [f"{size:,}", f"{seconds * 1000:.1f}", f"{n_steps:,}", slope]


def _late(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The exponent at the large sizes, where fixed costs matter less."""
    half = len(sizes) // 2
    return exponent(sizes[half:], times[half:])


def measure() -> Iterator[Report]:
    """Cases, sampled and real; then variables."""
    whole(data.alarm_sample(100))
    samples = (data.alarm_sample(n) for n in CASES)
    yield growth("Whole search on cases drawn from ALARM", "cases", samples, lambda t: t.n_cases, whole)
    chains = (data.binary_chain(n, CASES_OF_EACH) for n in VARIABLES)
    title = f"First step on binary chains of {CASES_OF_EACH:,} cases"
    yield growth(title, "variables", chains, lambda t: t.n_variables, first_step)
    msnbc = data.table("msnbc")
    parts = (data.head(msnbc, msnbc.n_cases // part) for part in PARTS_OF_MSNBC)
    yield growth("Whole search on parts of msnbc", "cases", parts, lambda t: t.n_cases, whole)


if __name__ == "__main__":
    main(measure, __doc__)
