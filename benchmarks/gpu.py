"""A GPU beside this machine's cores: tables drawn from random networks of binary decision graphs.

The networks must be the same. Reading is not timed; copying the table to the device is. On first use, CuPy compiles
kernels, with separate ones for arrays of more than two gigabytes. Needs a GPU and CuPy.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.counters.gpu import GpuCounter, GpuSession
from leafwise.data.table import Table
from leafwise.inference.sampling import sample
from leafwise.learner import start_search
from leafwise.network import Network
from leafwise.search.leaves import Leaves


@dataclass(frozen=True)
class Job:
    """The size of a table."""

    n_cases: int
    n_variables: int


JOBS = (Job(200_000, 500), Job(1_000_000, 2_000))


def learned(table: Table | GpuCounter) -> tuple[Network, float, tuple[int, int]]:
    """The network, the seconds, and the numbers of requests for histograms and of histograms."""
    began = time.perf_counter()
    search = start_search(table)
    search.run()
    network = search.network
    return network, time.perf_counter() - began, search.round_trips


STAGES = (
    *((GpuSession, name) for name in ("cut", "join", "count", "release")),
    *((Leaves, name) for name in ("_fill", "_run")),
)


@contextmanager
def stages() -> Iterator[dict[str, float]]:
    """The seconds spent in each of these methods during the context; `_fill` includes what a session takes."""
    spent = {name: 0.0 for _, name in STAGES}

    def timed(method: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*given)
            finally:
                spent[name] += time.perf_counter() - began

        return run

    with ExitStack() as patches:
        for owner, name in STAGES:
            patches.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name), name)))
        yield spent


def row(job: Job, spent_in: dict[str, dict[str, float]]) -> list[str]:
    """One table, on the GPU and on the cores."""
    table = sample(data.random_network(job.n_variables, most_states=2), job.n_cases, seed=1)
    began = time.perf_counter()
    counter = GpuCounter(table)
    counter.data  # noqa: B018  # to the device
    copying = time.perf_counter() - began
    size = f"{job.n_cases:,} × {job.n_variables:,}"
    first = learned(counter)[1]
    with stages() as spent_in[size]:
        network, seconds, (n_batches, n_histograms) = learned(counter)
    cells = [size, f"{network.learned['steps']:,}", f"{counter.n_bytes / 1e9:.1f}"]
    cells += [f"{copying:.1f}", f"{first:.1f}", f"{seconds:.1f}", f"{n_batches:,}", f"{n_histograms:,}"]
    same, cores, _ = learned(table)
    check(same == network, "the cores learned another network")
    return [*cells, f"{cores:.1f}"]


def rates() -> Report:
    """The throughput of the kernels for one set of cases, 1,000,000 × 2,000 binary; and of the device, copying."""
    import cupy as cp

    from leafwise.counters.gpu import _kernels

    kernels, n_cases, n, n_sets = _kernels(), 1_000_000, 2_000, 64
    n_words, n_octets, n_rows = n_cases // 64, n // 8, np.int64(2 * n)

    def microseconds(run: Callable[[], object]) -> float:
        run()
        begin, end = cp.cuda.Event(), cp.cuda.Event()
        begin.record()
        for _ in range(5):
            run()
        end.record()
        end.synchronize()
        return float(cp.cuda.get_elapsed_time(begin, end)) * 1e3 / 5

    sets, offsets, bases = cp.arange(n_sets), cp.arange(n_sets) * (2 * n + 1) * 2, cp.arange(n) * 2
    out, own = cp.zeros(n_sets * (2 * n + 1) * 2, np.int32), cp.zeros(n_sets, np.int64)
    planes = cp.random.randint(0, 2**63, (n, n_words)).astype(np.uint64)
    given = (sets, own, sets, offsets, np.int64(n), bases, planes, planes, np.int64(n_words), n_rows, out)
    grid = (n_sets, -(-n // kernels.PLANES // kernels.WARPS))
    spent = microseconds(lambda: kernels.count_binary_masks(grid, (kernels.THREADS,), given)) / n_sets
    lines = [["a mask", f"{spent:.1f}", f"{n * n_words * 8 / spent / 1e6:.2f}", f"{2 * n * n_words / spent / 1e6:.2f}"]]
    rows = cp.random.randint(0, 2, (n_cases, n), np.uint8)
    lists = cp.random.permutation(n_cases).astype(np.int32)
    for size in (1_000, 31_250, 125_000):
        sizes, chunks = cp.full(n_sets, size), -(-size // kernels.SUMMED)
        given = (sets * 1000, sizes, sets, offsets, bases, lists, rows, rows.view(np.uint64))
        given += (np.int64(n), np.int64(n_octets), n_rows, out)
        grid = (n_sets, chunks, 1)
        spent = microseconds(lambda g=grid, a=given: kernels.count_binary_lists(g, (kernels.THREADS,), a)) / n_sets
        lines.append([f"a list of {size:,}", f"{spent:.1f}", f"{size * n / spent / 1e6:.2f}", ""])
    copy = cp.empty_like(rows)
    spent = microseconds(lambda: cp.copyto(copy, rows))
    lines.append(["copying a byte a cell", f"{spent:.1f}", f"{2 * rows.nbytes / spent / 1e6:.2f}", ""])
    return Report("One set of cases on the GPU", ["", "µs", "TB/s", "10¹² words counted a second"], lines)


def measure() -> Iterator[Report]:
    """One row per table."""
    try:
        for small in (
            sample(data.random_network(5), 200, seed=1),
            sample(data.random_network(40, most_states=2), 3000, seed=1),
        ):
            learned(GpuCounter(small))  # compile
            learned(small)
    except ValueError as reason:
        raise data.NoData(str(reason)) from None
    heads = [
        "size",
        "steps",
        "GB on the device",
        "s to copy",
        "s on the GPU, the first time",
        "again",
        "batches",
        "histograms",
        "s on the cores",
    ]
    spent_in: dict[str, dict[str, float]] = {}
    yield Report("Counting on a GPU, and on all cores; run once", heads, [row(job, spent_in) for job in JOBS])
    lines = [[size, *(f"{seconds:.1f}" for seconds in spent.values())] for size, spent in spent_in.items()]
    yield Report("Seconds of it by stage", ["size", *(name for _, name in STAGES)], lines)
    yield rates()


if __name__ == "__main__":
    main(measure, __doc__)
