"""The distance of learned arcs from those of published networks, and the probability of new cases.

The distance is that of `leafwise reproduce recovery`: pairs of variables in which the equivalence classes differ. The
log-likelihood is the mean over 5,000 new cases.
"""

import sys
from collections.abc import Iterator

import numpy as np

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.experiments.recovery import distance
from leafwise.inference.sampling import sample
from leafwise.learner import learn
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.recover import RecoverySearch
from leafwise.search.run import Settings
from leafwise.search.table_arc_search import TableArcSearch

NETWORKS = ("alarm", "child", "insurance", "hailfinder", "barley", "win95pts")
CASES = (500, 2_000, 10_000)
SAMPLES, NEW = 3, 5_000
WAYS: dict[str, Settings] = {"graphs": LeafSearch(), "tables": TableArcSearch(), "recover": RecoverySearch()}


def measure() -> Iterator[Report]:
    """A row per network and number of cases, with two columns per method."""
    rows = []
    for name in NETWORKS:
        true = data.network(name)
        new = sample(true, NEW, seed=0)
        for n_cases in CASES:
            tables = [sample(true, n_cases, seed) for seed in range(1, SAMPLES + 1)]
            row = [name, f"{len(true.arcs)}", f"{n_cases:,}"]
            for search in WAYS.values():
                found = [learn(table, search=search) for table in tables]
                far = np.mean([distance(network, true) for network in found])
                likely = np.mean([network.log_probabilities(new).mean() for network in found])
                row += [f"{far:.1f}", f"{likely:.3f}"]
            rows.append(row)
            print(*row, file=sys.stderr, flush=True)
    heads = ["network", "arcs", "cases"]
    for way in WAYS:
        heads += [f"{way}: distance", "log-likelihood"]
    yield Report(f"Distance to the arcs of published networks, mean of {SAMPLES} samples", heads, rows)


if __name__ == "__main__":
    main(measure, __doc__)
