"""Friedman & Goldszmidt's search over arcs against the joint search, a comparison announced in the paper."""

from collections.abc import Callable

import numpy as np

from leafwise.examples import alarm
from leafwise.experiments.alarm_tables import N_CASES
from leafwise.inference.sampling import sample
from leafwise.learner import start_search
from leafwise.report.tables import Report
from leafwise.search.graph_arc_search import GraphArcSearch
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.run import Settings

KINDS = {"trees (B)": "B", "graphs (CBM)": "CBM"}


def edge_report(n_seeds: int, tell: Callable[[str], None] = lambda _: None) -> Report:
    """Log score and time of both, over samples of ALARM, under uniform priors."""
    rows = []
    data: dict[str, dict[str, list[list[float]]]] = {}
    for kind, operators in KINDS.items():
        found: dict[str, list[list[float]]] = {"joint": [], "edges": []}
        for seed in range(1, n_seeds + 1):
            tell(f"{kind}, sample {seed} of {n_seeds}")
            settings: dict[str, Settings] = {
                "joint": LeafSearch(operators),
                "edges": GraphArcSearch(LeafSearch(operators)),
            }
            for name, how in settings.items():
                search = start_search(
                    sample(alarm(), N_CASES, seed), search=how, prior="uniform", structure_prior="uniform"
                )
                search.run()
                found[name].append([search.log_score, search.seconds, search.n_arcs])
        joint, edges = np.array(found["joint"]), np.array(found["edges"])
        gained = edges[:, 0] - joint[:, 0]
        rows.append(
            (
                kind,
                f"{gained.mean():.1f} ± {gained.std(ddof=min(1, n_seeds - 1)):.1f}",
                f"{int((gained > 0).sum())} of {n_seeds}",
                f"{joint[:, 1].mean():.2f}",
                f"{edges[:, 1].mean():.2f}",
                f"{joint[:, 2].mean():.0f}",
                f"{edges[:, 2].mean():.0f}",
            )
        )
        data[kind] = found
    heads = ("", "edges - joint, log score", "edges better", "joint, s", "edges, s", "joint, arcs", "edges, arcs")
    return Report(f"Search over arcs against search over leaves, {n_seeds} samples of ALARM", heads, rows, data=data)
