"""10,000 variables and 10,000 cases: takes a minute or more and several GB, and must finish.

A binary chain, `learn` with its defaults. The pairs of variables alone have 400 million counts. Fewer variables are
measured, too, to show how time and memory grow.
"""

from collections.abc import Iterator

from benchmarks.large import Job, report
from benchmarks.report import Report, main

JOBS = tuple(Job(f"{n}x10000", float("inf"), float("inf")) for n in (2_500, 5_000, 10_000))


def measure() -> Iterator[Report]:
    """One row per number of variables."""
    yield from report(JOBS)


if __name__ == "__main__":
    main(measure, __doc__)
