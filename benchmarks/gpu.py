"""A GPU and this machine's cores side by side: tables drawn from random networks of binary decision graphs.

The networks must be the same. Reading is not timed; copying the table to the device is. Needs a GPU and CuPy.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.counters.gpu import GpuCounter
from leafwise.inference.sampling import sample
from leafwise.learner import start_search
from leafwise.network import Network
from leafwise.table import Table


@dataclass(frozen=True)
class Job:
    """A size, and whether the cores are timed, too."""

    n_cases: int
    n_variables: int
    with_cores: bool


JOBS = (Job(200_000, 500, True), Job(1_000_000, 2_000, False))


def learned(table: Table | GpuCounter) -> tuple[Network, float, tuple[int, int]]:
    """The network, the seconds, and how often histograms were asked for, and how many."""
    began = time.perf_counter()
    search = start_search(table)
    search.run()
    network = search.network
    return network, time.perf_counter() - began, search.round_trips


def row(job: Job) -> list[str]:
    """One table, on the GPU and perhaps on the cores."""
    table = sample(data.random_network(job.n_variables, most_states=2), job.n_cases, seed=1)
    began = time.perf_counter()
    counter = GpuCounter(table)
    counter.data  # noqa: B018  # to the device
    copying = time.perf_counter() - began
    network, seconds, (n_batches, n_histograms) = learned(counter)
    cells = [f"{job.n_cases:,} × {job.n_variables:,}", f"{network.learned['steps']:,}", f"{counter.n_bytes / 1e9:.1f}"]
    cells += [f"{copying:.1f}", f"{seconds:.1f}", f"{n_batches:,}", f"{n_histograms:,}"]
    if not job.with_cores:
        return [*cells, "not timed"]
    same, cores, _ = learned(table)
    check(same == network, "the cores learned another network")
    return [*cells, f"{cores:.1f}"]


def measure() -> Iterator[Report]:
    """One row a table."""
    try:
        small = sample(data.random_network(5), 200, seed=1)
        learned(GpuCounter(small))  # compile
        learned(small)
    except ValueError as reason:
        raise data.NoData(str(reason)) from None
    heads = [
        "size",
        "steps",
        "GB on the device",
        "s to copy",
        "s on the GPU",
        "batches",
        "histograms",
        "s on the cores",
    ]
    yield Report("Counting on a GPU, and on all cores; run once", heads, [row(job) for job in JOBS])


if __name__ == "__main__":
    main(measure, __doc__)
