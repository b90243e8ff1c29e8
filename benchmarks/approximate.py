"""Approximate marginals: error by time, of loopy propagation beside pyAgrum's, and of our samplers.

All marginals given random evidence on published networks, whose exact values are known. Errors are root mean squares
over all states of all variables; samplers also state their own. Loopy propagation converges to an answer that no longer
improves; samplers improve with time. One thread.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.inference import Evidence, evidence_sets
from benchmarks.report import Report, check, main
from leafwise.formats.agrum import to_agrum
from leafwise.inference.estimates import Estimate
from leafwise.inference.evidence import weights_of
from leafwise.inference.exact import Limits
from leafwise.inference.gibbs import gibbs
from leafwise.inference.importance import importance
from leafwise.inference.loopy import propagate
from leafwise.inference.query import query
from leafwise.inference.weighting import weighting
from leafwise.network import Network

NETWORKS = ("alarm", "win95pts", "hepar2", "insurance", "andes")
N_SETS = 8
LIMITS = Limits(operations=1e12)
SAMPLERS: dict[str, Callable[..., Estimate]] = {"weighting": weighting, "importance": importance, "gibbs": gibbs}
N_SAMPLES = {"weighting": 100_000, "importance": 50_000, "gibbs": 5_000}


def theirs(network: Network) -> Callable[[Evidence, list[str]], list[np.ndarray]]:
    import pyagrum

    bayes_net = to_agrum(network)

    def ask(given: Evidence, names: list[str]) -> list[np.ndarray]:
        engine = pyagrum.LoopyBeliefPropagation(bayes_net)
        engine.setEvidence(given)
        engine.makeInference()
        return [engine.posterior(name).toarray() for name in names]

    return ask


def timed(ask: Callable[[], list[np.ndarray]]) -> tuple[float, list[np.ndarray]]:
    began = time.perf_counter()
    found = ask()
    return time.perf_counter() - began, found


def rows(name: str) -> Iterator[list[str]]:
    network = data.network(name)
    agrum = theirs(network)
    found: dict[str, list[tuple[float, float, float]]] = {}
    for given in evidence_sets(network, N_SETS):
        names = [one for one in network.names if one not in given]
        targets, weights = [network.names.index(one) for one in names], weights_of(network, given)
        exact = np.concatenate(query(network, names, given=given, method="exact", limits=LIMITS).distributions)
        propagate(network, targets, weights)
        for method, ask in (
            ("loopy", lambda t=targets, w=weights: list(propagate(network, t, w).distributions)),
            ("loopy, pyAgrum", partial(agrum, given, names)),
        ):
            took, answer = timed(ask)
            error = float(np.sqrt(((np.concatenate(answer) - exact) ** 2).mean()))
            found.setdefault(method, []).append((took, error, np.nan))
        for method, sampler in SAMPLERS.items():
            began = time.perf_counter()
            estimate = sampler(network, targets, weights, n_samples=N_SAMPLES[method], seed=1, threads=1)
            took = time.perf_counter() - began
            error = float(np.sqrt(((np.concatenate(estimate.probabilities) - exact) ** 2).mean()))
            said = float(np.sqrt((np.concatenate(estimate.standard_errors) ** 2).mean()))
            found.setdefault(method, []).append((took, error, said))
    for method, values in found.items():
        took, error, said = np.median(values, axis=0)
        check(method != "importance" or error < 3 * said, f"{name}: importance errs by {error} and says {said}")
        cells = [f"{1e3 * took:.1f}", f"{error:.5f}", "unknown" if np.isnan(said) else f"{said:.5f}"]
        yield [name if method == "loopy" else "", method, *cells, f"{error * np.sqrt(took):.5f}"]


def measure() -> Iterator[Report]:
    list(rows("asia"))  # compile
    yield Report(
        f"All marginals, medians of {N_SETS} sets of evidence",
        ("network", "method", "ms", "error", "as estimated", "error · √s"),
        [row for name in NETWORKS for row in rows(name)],
    )


if __name__ == "__main__":
    main(measure, __doc__)
