"""Sampling: cells per second forward, by weighting and by Gibbs; on alarm also the errors of the last two.

One thread. A cell is a variable of a case; with Gibbs sampling, cells are redrawn in every sweep, burn-in included.
Forward samples must reach 5 million cells per second, and estimates must agree with exact answers within their errors.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.report import Report, best_of, check, main
from leafwise.examples import alarm
from leafwise.inference.estimates import Estimate
from leafwise.inference.evidence import Weights, weights_of
from leafwise.inference.gibbs import gibbs
from leafwise.inference.query import query
from leafwise.inference.sampling import sample
from leafwise.inference.weighting import weighting
from leafwise.learner import learn
from leafwise.network import Network

LEAST = 5e6  # cells per second, forward
BURN_IN, CHAINS = 200, 8
EVIDENCE = (
    {},
    {"HRBP": "HIGH", "PRESS": "LOW"},
    {"BP": "LOW", "HRBP": "HIGH", "EXPCO2": "LOW", "SAO2": "LOW", "CVP": "HIGH", "PAP": "HIGH", "MINVOL": "ZERO"},
)


def networks() -> Iterator[tuple[str, Network, int]]:
    """Networks, and the number of cases to draw from each."""
    yield "alarm", alarm(), 1_000_000
    yield "dna, learned", learn(data.table("dna"), prior="uniform", structure_prior="kappa:0.1"), 200_000
    yield "dna, learned without a structure prior", learn(data.table("dna"), structure_prior="uniform"), 200_000
    yield "chain, learned", learn(data.binary_chain(1000, 2000), prior="uniform", structure_prior="kappa:0.1"), 50_000


def weighted(network: Network, targets: list[int], weights: Weights, n_samples: int) -> Estimate:
    return weighting(network, targets, weights, n_samples=n_samples, seed=1, threads=1)


def by_gibbs(network: Network, targets: list[int], weights: Weights, n_samples: int) -> Estimate:
    return gibbs(network, targets, weights, n_samples=n_samples, seed=1, threads=1, chains=CHAINS, burn_in=BURN_IN)


def rates(name: str, network: Network, n_cases: int) -> list[float]:
    """Cells per second forward, by weighting and by Gibbs: all marginals are queried without evidence."""
    everything = list(range(len(network.variables)))
    sample(network, 10, seed=1)
    for method in (weighted, by_gibbs):
        method(network, everything, {}, 100)
    forward, _ = best_of(3, lambda: sample(network, n_cases, seed=1))
    n_weighted, n_swept = n_cases // 5, max(1000, n_cases // 50)
    seconds, _ = best_of(3, lambda: weighted(network, everything, {}, n_weighted))
    chains, found = best_of(2, lambda: by_gibbs(network, everything, {}, n_swept))
    n_samples = (n_cases / forward, n_weighted / seconds, (found.n_samples + CHAINS * BURN_IN) / chains)
    cells = [rate * len(everything) for rate in n_samples]
    check(cells[0] >= LEAST, f"{name}: {cells[0] / 1e6:.1f} million cells a second forward")
    return cells


def speeds() -> Report:
    """Networks of several sizes."""
    rows = []
    for name, network, n_cases in networks():
        sizes = [f"{len(network.variables):,}", f"{network.n_leaves:,}"]
        rows.append([name, *sizes, *(f"{rate / 1e6:.1f}" for rate in rates(name, network, n_cases))])
    heads = ["network", "variables", "leaves", "forward", "weighting", "Gibbs"]
    return Report("Million cells a second, one thread", heads, rows)


def errors(found: Estimate, exact: list[np.ndarray]) -> tuple[float, float]:
    """The root mean square of the errors, and of those stated by the estimate."""
    apart = np.concatenate(found.probabilities) - np.concatenate(exact)
    said = np.concatenate(found.standard_errors)
    return float(np.sqrt((apart**2).mean())), float(np.sqrt((said**2).mean()))


def accuracy() -> Report:
    """All marginals of alarm, from no evidence to very improbable evidence."""
    network = alarm()
    for method in (weighted, by_gibbs):
        method(network, [0], {}, 100)  # compile
    rows = []
    for given in EVIDENCE:
        weights = weights_of(network, given)
        names = [name for name in network.names if name not in given]
        targets = [network.names.index(name) for name in names]
        took, answer = best_of(3, partial(query, network, names, given=given, method="exact"))
        rows.append([f"{len(given)} given", "exact", "", f"{took:.3f}", "", "", ""])
        for name, method, n in _runs():
            began = time.perf_counter()
            found = method(network, targets, weights, n)
            seconds = time.perf_counter() - began
            error, said = errors(found, list(answer.distributions))
            check(error < 3 * said, f"{name} errs by {error:.4f} and says {said:.4f}")
            row = ["", name, f"{found.n_samples:,}", f"{seconds:.3f}", f"{error:.5f}", f"{said:.5f}"]
            rows.append([*row, f"{found.effective_sample_size:,.0f}"])
    heads = ["alarm", "method", "samples", "s", "error", "as estimated", "least effective"]
    return Report("All marginals of alarm: error (root mean square) against the exact answer", heads, rows)


def _runs() -> Iterator[tuple[str, Callable[..., Estimate], int]]:
    for n in (10_000, 100_000, 1_000_000):
        yield "weighting", weighted, n
    for n in (10_000, 100_000):
        yield "Gibbs", by_gibbs, n


def measure() -> Iterator[Report]:
    yield accuracy()
    yield speeds()


if __name__ == "__main__":
    main(measure, __doc__)
