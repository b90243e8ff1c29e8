"""Calibration of arc confidence: how often pairs connected in a share of the networks are truly adjacent.

500 to 10,000 cases are drawn from published networks, and `confidence` learns networks from halves of them. Over all
networks and samples, pairs are counted by the share of networks that connect them. Other searches, and the bootstrap,
which draws cases with replacement, show why this procedure was chosen.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.arc_confidence import Confidence
from leafwise.data.table import Table
from leafwise.inference.sampling import sample
from leafwise.learner import learn
from leafwise.network import Network
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.recover import RecoverySearch
from leafwise.search.run import Settings
from leafwise.search.table_arc_search import TableArcSearch

NETWORKS = ("alarm", "child", "insurance", "hailfinder", "barley", "win95pts")
CASES = (500, 2_000, 10_000)
LEARNED = 20
EDGES = (0.05, 0.15, 0.35, 0.65, 0.85, 0.95, 1.01)
Rows = Callable[[np.random.Generator, int], np.ndarray]
WAYS: dict[str, tuple[Settings, Rows]] = {
    "halves, recover": (RecoverySearch(), lambda random, n: random.permutation(n)[: n // 2]),
    "halves, graphs": (LeafSearch(), lambda random, n: random.permutation(n)[: n // 2]),
    "halves, tables": (TableArcSearch(), lambda random, n: random.permutation(n)[: n // 2]),
    "bootstrap, recover": (RecoverySearch(), lambda random, n: random.integers(n, size=n)),
}


def shares(true: Network, n_cases: int, search: Settings, rows: Rows) -> np.ndarray:
    """For each pair, the share of learned networks that connect it."""
    cases = sample(true, n_cases, seed=1)
    found = []
    for number in range(LEARNED):
        drawn = np.sort(rows(np.random.default_rng([1, number]), n_cases))
        found.append(learn(Table(cases.variables, np.ascontiguousarray(cases.codes[:, drawn])), search=search))
    return Confidence.of(found).connected


def counts(true: Network, connected: np.ndarray) -> np.ndarray:
    """The number of pairs in each range of shares, and how many of them are adjacent in the true network."""
    n = len(true.variables)
    adjacent = np.zeros((n, n), np.bool_)
    for parent, child in true.arcs:
        adjacent[parent, child] = adjacent[child, parent] = True
    pairs = np.triu_indices(n, 1)
    place = np.digitize(connected[pairs], EDGES)
    return np.stack([np.bincount(place, weights, len(EDGES) + 1) for weights in (None, adjacent[pairs])])


def measure() -> Iterator[Report]:
    """A row per range, a pair of columns per method."""
    totals = {way: np.zeros((2, len(EDGES) + 1)) for way in WAYS}
    for name in NETWORKS:
        true = data.network(name)
        for n_cases in CASES:
            for way, (search, rows) in WAYS.items():
                totals[way] += counts(true, shares(true, n_cases, search, rows))
    table = []
    for k in range(1, len(EDGES)):
        row = [f"{EDGES[k - 1]:.0%} to {min(EDGES[k], 1):.0%}"]
        for all_pairs, adjacent in totals.values():
            row += [f"{all_pairs[k]:,.0f}", f"{adjacent[k] / all_pairs[k]:.0%}" if all_pairs[k] else "–"]
        table.append(row)
    heads = ["networks that connect a pair"]
    for way in WAYS:
        heads += [f"{way}: pairs", "adjacent"]
    remark = f"{', '.join(NETWORKS)}; {', '.join(f'{n:,}' for n in CASES)} cases; {LEARNED} networks each."
    yield Report("Pairs by the share of networks that connect them, and how many are adjacent", heads, table, [remark])


if __name__ == "__main__":
    main(measure, __doc__)
