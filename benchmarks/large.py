"""Wide and long data: `learn` with its defaults, in its own process, its time and its peak memory.

Wide: ad, 1,556 variables, in under 5 s. Long: 1,000,000 cases of 200 variables with 2 to 4 states, drawn from a random
network of decision graphs, in under 60 s and under 4 GB including the cases; the learned network must give new cases
the likelihood that the true one gives them. benchmarks.widest has 10,000 variables.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks import data
from benchmarks.memory import peak_of
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.sampling import sample
from leafwise.learner import start_search
from leafwise.network import Network

GB = 1e9
CLOSE = 0.001  # relative to the true network's log-likelihood


@dataclass(frozen=True)
class Job:
    """A table by name, and the limits on time and memory."""

    name: str
    seconds: float
    gigabytes: float


JOBS = (Job("ad", 5, 4), Job("long", 60, 4))


def cases_of(name: str) -> tuple[Table, Network | None]:
    """The cases, and the network from which they were drawn."""
    if name == "ad":
        return data.table("ad"), None
    if name == "long":
        network = data.random_network(200)
        return sample(network, 1_000_000, seed=1), network
    return data.binary_chain(*map(int, name.split("x"))), None


def learn_here(name: str) -> None:
    """Learn in this process, and print the results."""
    start_search(data.binary_chain(10, 500)).run()  # compile
    cases, truth = cases_of(name)
    began, work = time.perf_counter(), time.process_time()
    under_way = start_search(cases)
    under_way.run()
    network = under_way.network
    found = {"seconds": time.perf_counter() - began, "processor": time.process_time() - work}
    found |= {"cases": cases.n_cases, "variables": cases.n_variables, "kappa": network.structure_prior}
    found |= {"leaves": network.n_leaves, "arcs": len(network.arcs)}
    if truth is not None:
        new = sample(truth, 10_000, seed=2)
        found["test"] = [float(log_probabilities(model, new).mean()) for model in (network, truth)]
    json.dump(found, sys.stdout)


def row(job: Job, remarks: list[str]) -> list[str]:
    """Learn in another process; missed limits are added to the remarks."""
    peak, printed = peak_of(
        [sys.executable, "-c", f"from benchmarks.large import learn_here; learn_here({job.name!r})"]
    )
    found: dict[str, Any] = json.loads(printed)
    if "test" in found:
        learned, true = found["test"]
        check(learned > (1 + CLOSE) * true, f"{job.name}: new cases have {learned:.3f} a case, truly {true:.3f}")
        remarks.append(f"{job.name}: mean log-likelihood of new cases {learned:.3f}, by the true network {true:.3f}.")
    if found["seconds"] >= job.seconds or peak >= job.gigabytes * GB:
        remarks.append(f"{job.name}: more than {job.seconds:g} s or {job.gigabytes:g} GB.")
    cells = [job.name, f"{found['cases']:,} × {found['variables']:,}", f"{found['leaves']:,}", f"{found['arcs']:,}"]
    return [*cells, f"{found['seconds']:.1f}", f"{found['processor']:.1f}", f"{peak / GB:.2f}"]


def report(jobs: tuple[Job, ...]) -> Iterator[Report]:
    """One row per table."""
    remarks: list[str] = []
    rows = [row(job, remarks) for job in jobs]
    heads = ["data", "size", "leaves", "arcs", "s", "processor s", "peak GB"]
    yield Report("`learn` with its default settings, all cores; run once", heads, rows, remarks)


def measure() -> Iterator[Report]:
    """Wide and long tables."""
    data.path("ad")
    yield from report(JOBS)


if __name__ == "__main__":
    main(measure, __doc__)
