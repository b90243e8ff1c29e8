"""Structure recovery: the distance between learned arcs and those of ALARM, by number of cases."""

from collections.abc import Callable, Sequence

import numpy as np

from leafwise import dag
from leafwise.examples import alarm
from leafwise.experiments.published import RECOVERY, RECOVERY_CASES
from leafwise.inference.sampling import sample
from leafwise.learner import learn
from leafwise.network import Network
from leafwise.report.tables import Report
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.recover import RecoverySearch
from leafwise.search.run import Settings
from leafwise.search.table_arc_search import GREEDY, TableArcSearch

FORMER = f"kappa:{1 / 37:.6f}"  # the former `auto`, for 37 variables
SEARCHES: dict[str, tuple[Settings, str, str]] = {
    "graphs, default": (LeafSearch(), "auto", "auto"),
    "graphs, former default, κ = 1/37": (LeafSearch("CBM"), "uniform", FORMER),
    "graphs, CBM, κ = 0.1": (LeafSearch("CBM"), "uniform", "kappa:0.1"),
    "graphs, CBM, κ = 0.01": (LeafSearch("CBM"), "uniform", "kappa:0.01"),
    "trees, CB, κ = 0.01": (LeafSearch("CB"), "uniform", "kappa:0.01"),
    "graphs, recover": (RecoverySearch(), "auto", "auto"),
    "tables, default": (TableArcSearch(), "auto", "auto"),
    "tables, former default, κ = 1/37": (TableArcSearch(), "uniform", FORMER),
    "tables, κ = 0.1, plain greedy": (GREEDY, "uniform", "kappa:0.1"),
    "tables, κ = 0.1": (TableArcSearch(), "uniform", "kappa:0.1"),
    "tables, BDeu 1, plain greedy": (GREEDY, "bdeu:1", "uniform"),
    "tables, BDeu 1": (TableArcSearch(), "bdeu:1", "uniform"),
    "tables, BDeu 1, κ = 0.1": (TableArcSearch(), "bdeu:1", "kappa:0.1"),
}


def recovery_report(
    n_samples: int, cases: Sequence[int] = RECOVERY_CASES, tell: Callable[[str], None] = lambda _: None
) -> Report:
    """The mean structural Hamming distance between equivalence classes, over samples."""
    generator = alarm()
    found: dict[str, list[list[int]]] = {name: [] for name in SEARCHES}
    for n_cases in cases:
        tables = [sample(generator, n_cases, seed) for seed in range(1, n_samples + 1)]
        for name, (settings, prior, structure_prior) in SEARCHES.items():
            tell(f"{n_cases} cases, {name}")
            networks = [learn(table, search=settings, prior=prior, structure_prior=structure_prior) for table in tables]
            found[name].append([distance(network, generator) for network in networks])
    rows = [(name, *(f"{np.mean(values):.1f}" for values in row)) for name, row in found.items()]
    for name, row in RECOVERY.items():
        known = dict(zip(RECOVERY_CASES, row, strict=True))
        rows.append((f"published: {name}", *(f"{known[n]:g}" if n in known else "" for n in cases)))
    title = f"Structural Hamming distance to ALARM, mean of {n_samples} samples"
    data = {"cases": list(cases), "leafwise": found, "published": RECOVERY}
    return Report(title, ("", *(f"{n:,}" for n in cases)), rows, data=data)


def distance(one: Network, other: Network) -> int:
    """The structural Hamming distance between the equivalence classes of two networks."""
    return dag.structural_hamming_distance(_parents(one), _parents(other))


def _parents(network: Network) -> list[tuple[int, ...]]:
    return [() if node is None else node.parents for node in network.nodes]
