"""Learning on a Dask cluster of 1, 2, 4 and 8 workers of one thread each: seconds by stage, rounds and bytes.

All must learn the same network. 4,000,000 × 100 binary and three-state columns; `LEAFWISE_CLUSTER=200000x30` makes a
smaller table, and `LEAFWISE_WORKERS=1,2` fewer runs. Workers are processes on this machine, which should have a core
for each, and some more for the search itself. Each reads its own Parquet files; without pyarrow, rows are sent to it.
`LEAFWISE_RUNS=runs.json` is the file in which to save the reports of the runs, for `stragglers`.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise import write
from leafwise.data.table import Table
from leafwise.inference.sampling import sample
from leafwise.learner import start_search

N_CASES, N_VARIABLES = map(int, os.environ.get("LEAFWISE_CLUSTER", "4000000x100").split("x"))
WORKERS = tuple(map(int, os.environ.get("LEAFWISE_WORKERS", "1,2,4,8").split(",")))
RUNS = os.environ.get("LEAFWISE_RUNS")
N_FILES = 16


def make(folder: Path) -> Path | Table:
    """Cases drawn from a random network of decision graphs, as files in a folder; without pyarrow, as a table."""
    network = data.random_network(N_VARIABLES, most_states=3)
    parts = (sample(network, N_CASES // N_FILES, seed=number + 1) for number in range(N_FILES))
    if find_spec("pyarrow") is None:
        return Table(network.variables, np.hstack([part.codes for part in parts]))
    for number, part in enumerate(parts):
        write(part, folder / f"part-{number:02d}.parquet")
    return folder


def learned(cases: Path | Table, n_workers: int) -> tuple[Any, dict[str, Any], float]:
    """The network, the counter's report, and the seconds of the search."""
    from distributed import Client, LocalCluster

    from leafwise.counters.dask import DaskCounter

    cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, Client(cluster, set_as_default=False) as client:
        client.run(_warm)  # load or compile before anything is timed
        if isinstance(cases, Table):
            parts = np.array_split(cases.codes, n_workers, axis=1)
            tables = [Table(cases.variables, np.ascontiguousarray(part)) for part in parts]
            search = start_search(DaskCounter.of_tables(tables, client))
        else:
            search = start_search(cases, cluster=client)
        began = time.perf_counter()
        search.run()
        seconds = time.perf_counter() - began
        network, report = search.network, search._counter.report  # type: ignore[attr-defined]
        search.close()  # type: ignore[attr-defined]
    return network, report, seconds


def _warm() -> None:
    from leafwise.counters.cpu import CpuCounter
    from leafwise.counters.sharded import ShardedCounter
    from leafwise.examples import alarm

    table = sample(alarm(), 300, seed=1)
    start_search(ShardedCounter([CpuCounter(Table(table.variables, np.ascontiguousarray(table.codes)))])).run()


def measure() -> Iterator[Report]:
    """One row for each number of workers."""
    runs: dict[int, tuple[Any, dict[str, Any], float]] = {}
    with tempfile.TemporaryDirectory() as place:
        cases = make(Path(place))
        _warm()
        for n_workers in WORKERS:
            runs[n_workers] = learned(cases, n_workers)
            print(f"{n_workers} workers: {runs[n_workers][2]:.1f} s", file=sys.stderr, flush=True)
            check(runs[n_workers][0] == runs[WORKERS[0]][0], f"{n_workers} workers learned another network")
    if RUNS:
        Path(RUNS).write_text(json.dumps({n_workers: report for n_workers, (_, report, _) in runs.items()}))
    rows = []
    for n_workers, (_, report, seconds) in sorted(runs.items()):
        spent = report["seconds"]
        rows.append(
            [
                str(n_workers),
                *(f"{spent[stage]:.1f}" for stage in ("read", "agree", "pack")),
                f"{seconds:.1f}",
                f"{spent['count']:.1f}",
                f"{spent['count_on_workers']:.1f}",
                f"{runs[min(runs)][2] / seconds:.2f}",
                *(f"{report[name]:,}" for name in ("round_trips", "histograms")),
                f"{report['bytes_sent'] / 1e6:.1f}",
                f"{report['bytes_received'] / 1e6:.1f}",
            ]
        )
    heads = ["workers", "s to read", "agree", "pack", "search", "of it waiting", "slowest workers", "times as fast"]
    heads += ["rounds", "histograms", "MB sent", "MB received"]
    title = f"{N_CASES:,} × {N_VARIABLES} on workers of one thread, {os.cpu_count()} cores; run once"
    yield Report(title, heads, rows)


if __name__ == "__main__":
    main(measure, __doc__)
