"""Posterior marginals of all variables, for random evidence on published networks, beside pyAgrum and pgmpy.

Every answer is checked: ours and theirs agree to 1e-8. Each query starts from scratch: evidence in, the marginals of
all variables out; or for pgmpy, which repeats variable elimination for each variable, that of a single one without
evidence, the middle one.
"""

import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.inference.exact import Limits
from leafwise.inference.query import query
from leafwise.inference.sampling import sample
from leafwise.network import Network

NETWORKS = (
    *("asia", "alarm", "child", "insurance", "hailfinder", "win95pts"),
    *("hepar2", "andes", "water", "munin1", "pigs", "link"),
)
N_SETS = 20
FEWER_SETS = {"link": 4}  # with the fifth, pyAgrum needs more memory than a machine of 24 GB has
LIMITS = Limits(memory=8 * 2**30, operations=1e12)
SAME = 1e-8

Evidence = dict[str, str]
Marginals = list[np.ndarray]


def ours(network: Network) -> Callable[[Evidence], Marginals]:
    return lambda given: list(query(network, network.names, given=given, method="exact", limits=LIMITS).distributions)


def ours_of_one(network: Network) -> Callable[[Evidence], Marginals]:
    def ask(given: Evidence) -> Marginals:
        return list(query(network, one_free(network, given), given=given, method="exact").distributions)

    return ask


def one_free(network: Network, given: Evidence) -> str:
    free = [name for name in network.names if name not in given]
    return free[len(free) // 2]


def of_pyagrum(network: Network) -> Callable[[Evidence], Marginals]:
    import pyagrum

    from leafwise.formats.agrum import to_agrum

    theirs = to_agrum(network)

    def ask(given: Evidence) -> Marginals:
        engine = pyagrum.LazyPropagation(theirs)
        engine.setEvidence(given)
        engine.makeInference()
        return [engine.posterior(name).toarray() for name in network.names]

    return ask


def of_pgmpy(network: Network) -> Callable[[Evidence], Marginals]:
    from pgmpy.inference import VariableElimination

    from leafwise.formats.pgmpy import to_pgmpy

    engine = VariableElimination(to_pgmpy(network))

    def ask(given: Evidence) -> Marginals:
        return [engine.query([one_free(network, given)], evidence=given, show_progress=False).values]

    return ask


def evidence_sets(network: Network, n: int) -> list[Evidence]:
    """States of up to a quarter of the variables, from cases sampled from the network."""
    random = np.random.default_rng(1)
    cases = sample(network, n, seed=1).codes
    out = []
    for k in range(n):
        shown = random.permutation(len(network.variables))[: random.integers(0, len(network.variables) // 4 + 1)]
        out.append({network.names[v]: network.variables[v].labels[cases[v, k]] for v in sorted(shown.tolist())})
    return out


def timed(ask: Callable[[Evidence], Marginals], sets: list[Evidence]) -> tuple[float, list[Marginals]]:
    """The median time of a query, and all answers."""
    ask(sets[0])
    times, answers = [], []
    for given in sets:
        begin = time.perf_counter()
        answers.append(ask(given))
        times.append(time.perf_counter() - begin)
    return float(np.median(times)), answers


def row(name: str) -> list[str]:
    """Times on one network, and the largest difference between ours and pyAgrum's answers."""
    network = data.network(name)
    sets = evidence_sets(network, FEWER_SETS.get(name, N_SETS))
    own, answers = timed(ours(network), sets)
    cells = [name, str(len(network.variables)), f"{1e3 * own:.2f}"]
    if importlib.util.find_spec("pyagrum"):
        other, theirs = timed(of_pyagrum(network), sets)
        pairs = [(a, b) for x, y in zip(answers, theirs, strict=True) for a, b in zip(x, y, strict=True)]
        apart = max(float(abs(a - b).max()) for a, b in pairs)
        check(apart < SAME, f"{name}: a marginal differs from pyAgrum's by {apart}")
        cells += [f"{1e3 * other:.2f}", f"{other / own:.1f}", f"{apart:.0e}"]
    else:
        cells += ["-"] * 3
    one, singles = timed(ours_of_one(network), sets)
    cells.append(f"{1e3 * one:.2f}")
    if importlib.util.find_spec("pgmpy"):
        other, theirs = timed(of_pgmpy(network), sets[:5])
        for (own_one,), (other_one,) in zip(singles, theirs, strict=False):
            check(float(abs(own_one - other_one).max()) < SAME, f"{name}: a marginal differs from pgmpy's")
        return [*cells, f"{1e3 * other:.2f}", f"{other / one:.0f}"]
    return [*cells, "-", "-"]


def measure() -> Iterator[Report]:
    yield Report(
        "Posterior marginals, milliseconds a question (median)",
        (
            *("network", "variables", "leafwise, all", "pyAgrum, all", "ratio", "largest difference"),
            *("leafwise, one", "pgmpy, one", "ratio"),
        ),
        [row(name) for name in NETWORKS],
    )


if __name__ == "__main__":
    main(measure, __doc__)
