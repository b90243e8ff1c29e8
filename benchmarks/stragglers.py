"""Search on many workers: a simulation of rounds and stragglers, fitted to a local run and tested on another.

A round ends when the slowest worker has counted, and its counts have passed up a tree of sums. Counting is linear in a
worker's rows; the time per histogram, and the overhead of a round, are those of a local cluster of one worker, and the
variation between workers is that of the next larger one. The model then predicts runs with more workers, and a billion
rows × 2,000 variables on 100. The machine should be idle, and have a core for each worker. `LEAFWISE_CLUSTER=200000x30`
is the size of the local runs, `LEAFWISE_WORKERS=1,2` their numbers of workers; with `LEAFWISE_RUNS=runs.json`, runs of
that size saved by `cluster` are used.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("LEAFWISE_CLUSTER", "200000x30")
os.environ.setdefault("LEAFWISE_WORKERS", "1,2")

from benchmarks import cluster
from benchmarks.report import Report, main
from leafwise.counters.dask import _FEW_WORKERS

ROWS, VARIABLES, WORKERS, CORES = 1_000_000_000, 2_000, 100, 16
LATENCY = 0.002  # seconds per message within a data centre, handled by Python,
BANDWIDTH = 1e9  # ... and bytes per second
# For 1,000,000 × 2,000, from `python -m benchmarks gpu`: batches, histograms and seconds on one GPU.
BATCHES, HISTOGRAMS, GPU_SECONDS, GPU_A_BATCH, GPUS = 2_582, 327_805, 20.8, 0.0036, 8


@dataclass(frozen=True)
class Model:
    """Seconds per histogram, row and variable on one core; seconds per round; variation between workers."""

    counting: float
    round: float
    spread: float  # standard deviation of the logarithm of a worker's time

    def seconds(self, n_rounds: int, n_histograms: float, n_rows: float, n_variables: int, n_workers: int) -> float:
        """A simulated search: every worker has an equal share of the rows, and a random delay in each round."""
        random = np.random.default_rng(1)
        work = self.counting * n_histograms / n_rounds * n_rows / n_workers * n_variables
        mean_of_log = -(self.spread**2) / 2  # so that the mean is 1
        late = random.lognormal(mean_of_log, self.spread, (min(n_rounds, 5000), n_workers)).max(axis=1).mean()
        n_bytes = n_histograms / n_rounds * n_variables * 2 * 2 * 4
        n_sums = np.ceil(np.log2(n_workers)) if n_workers > _FEW_WORKERS else 0  # one after the other
        tree = n_sums * (LATENCY + n_bytes / BANDWIDTH)
        return float(n_rounds * (self.round + work * late + tree))


def growth() -> float:
    """The growth of the number of histograms with rows: the slope of their logarithms, on small tables."""
    from benchmarks import data
    from leafwise.counters.cpu import CpuCounter
    from leafwise.counters.sharded import ShardedCounter
    from leafwise.inference.sampling import sample
    from leafwise.learner import start_search

    network, found = data.random_network(20, most_states=2), []
    sizes = (5_000, 20_000, 80_000)
    for size in sizes:
        search = start_search(ShardedCounter([CpuCounter(sample(network, size, seed=1))]))
        search.run()
        found.append(search.round_trips[1])  # type: ignore[attr-defined]
    return float(np.polyfit(np.log(sizes), np.log(found), 1)[0])


def local_runs() -> dict[int, dict[str, Any]]:
    """The reports of runs on local clusters, by their number of workers."""
    if cluster.RUNS:
        return {int(n_workers): report for n_workers, report in json.loads(Path(cluster.RUNS).read_text()).items()}
    with tempfile.TemporaryDirectory() as place:
        cases = cluster.make(Path(place))
        return {n_workers: cluster.learned(cases, n_workers)[1] for n_workers in cluster.WORKERS}


def measure() -> Iterator[Report]:
    """The model beside local runs, and its prediction for a billion rows."""
    runs = local_runs()
    one, several = runs[1], min(n for n in runs if n > 1)
    rows, variables = cluster.N_CASES, cluster.N_VARIABLES
    on_workers = one["seconds"]["count_on_workers"]
    a_round = (one["seconds"]["count"] - on_workers) / one["round_trips"]
    behind = runs[several]["seconds"]["count_on_workers"] / (on_workers / several)
    latest = np.random.default_rng(1).normal(size=(100_000, several)).max(axis=1).mean()
    spread = float(np.log(max(1.0, behind)) / latest)
    model = Model(on_workers / (one["histograms"] * rows * variables), a_round, min(spread, 1.0))
    lines = []
    for n_workers, report in sorted(runs.items()):
        measured = [report["seconds"][stage] for stage in ("count_on_workers", "count")]
        told = model.seconds(report["round_trips"], report["histograms"], rows, variables, n_workers)
        numbers = (measured[0], told - report["round_trips"] * model.round, measured[1], told)
        lines.append([str(n_workers), f"{report['round_trips']:,}", *(f"{number:.1f}" for number in numbers)])
    title = f"{rows:,} × {variables}: seconds of counting, measured and foretold; spread {model.spread:.2f}"
    yield Report(title, ["workers", "rounds", "slowest workers", "foretold", "with the way", "foretold"], lines)
    power = growth()
    histograms = HISTOGRAMS * (ROWS / 1e6) ** power
    rounds = int(BATCHES * (ROWS / 1e6) ** power)
    lines = []
    for late in sorted({0.0, model.spread, 0.5}):
        own = Model(model.counting / CORES, model.round, late)
        seconds = own.seconds(rounds, histograms, ROWS, VARIABLES, WORKERS)
        lines.append([f"{WORKERS} workers of {CORES} cores, spread {late:.2f}", f"{seconds / 3600:.1f}"])
    a_histogram = (GPU_SECONDS - BATCHES * GPU_A_BATCH) / HISTOGRAMS
    on_gpus = rounds * GPU_A_BATCH + histograms * a_histogram * ROWS / 1e6 / GPUS
    lines.append([f"{GPUS} GPUs", f"{on_gpus / 3600:.1f}"])
    title = f"{ROWS:,} × {VARIABLES:,} on paper: {histograms:,.0f} histograms (rows to the power {power:.2f})"
    yield Report(title, ["", "hours"], lines)


if __name__ == "__main__":
    main(measure, __doc__)
