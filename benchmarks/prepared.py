"""One query repeated a hundred times with other states of the same evidence variables, beside pyAgrum's engine.

A fifth of the variables is observed, and one other is queried. pyAgrum keeps one engine with that target, and its
evidence is changed rather than set again, which is faster. Ours is prepared once and then queried one row at a time, as
theirs, or for all rows at once, on one thread. Every answer is checked against theirs.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.formats.agrum import to_agrum
from leafwise.inference.exact import Limits
from leafwise.inference.prepared import PreparedQuery
from leafwise.inference.sampling import sample
from leafwise.network import Network

NETWORKS = (
    *("asia", "sachs", "alarm", "child", "insurance", "hailfinder", "win95pts"),
    *("hepar2", "water", "pathfinder", "andes", "munin1"),
)
N_ROWS = 100
N_TARGETS = 3
LIMITS = Limits(memory=8 * 2**30, operations=1e12)
SAME = 1e-6  # published tables are rounded, which pyAgrum does not take into account


def questions(network: Network) -> Iterator[tuple[str, list[str], list[dict[str, str]], Table]]:
    """Some targets, each with evidence variables and their states in cases sampled from the network."""
    random = np.random.default_rng(1)
    cases = sample(network, N_ROWS, seed=1)
    for _ in range(N_TARGETS):
        target, *others = random.permutation(len(network.variables)).tolist()
        shown = sorted(others[: max(2, len(network.variables) // 5)])
        names = [network.names[v] for v in shown]
        rows = [{network.names[v]: network.variables[v].labels[case[v]] for v in shown} for case in cases.codes.T]
        yield network.names[target], names, rows, cases


def theirs(network: Network, target: str, rows: list[dict[str, str]]) -> Callable[[], list[np.ndarray]]:
    import pyagrum

    engine = pyagrum.LazyPropagation(to_agrum(network))
    engine.setTargets({target})
    engine.setEvidence(rows[0])
    engine.makeInference()

    def ask() -> list[np.ndarray]:
        found = []
        for row in rows:
            for name, state in row.items():
                engine.chgEvidence(name, state)
            engine.makeInference()
            found.append(engine.posterior(target).toarray())
        return found

    return ask


def timed(ask: Callable[[], list[np.ndarray] | np.ndarray]) -> tuple[float, np.ndarray]:
    """Milliseconds per query, the better of two runs, and the answers."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        found = ask()
        times.append(1e3 * (time.perf_counter() - began) / N_ROWS)
    return min(times), np.array(found)


def one_by_one(question: PreparedQuery, rows: list[dict[str, str]]) -> list[np.ndarray]:
    return [question(given).distributions[0] for given in rows]


def at_once(question: PreparedQuery, cases: Table) -> np.ndarray:
    return question.batch(cases, threads=1).distributions[0]


def row(name: str) -> list[str]:
    network = data.network(name)
    times = []
    for target, names, rows, cases in questions(network):
        began = time.perf_counter()
        question = PreparedQuery(network, target, names, limits=LIMITS)
        question(rows[0])
        planned = 1e3 * (time.perf_counter() - began)
        one, found = timed(partial(one_by_one, question, rows))
        many, again = timed(partial(at_once, question, cases))
        other, expected = timed(theirs(network, target, rows))
        check(float(abs(found - expected).max()) < SAME, f"{name}: {target} differs from pyAgrum's")
        check(bool((found == again).all()), f"{name}: {target} differs when all rows are asked at once")
        times.append((planned, one, many, other, other / one, other / many))
    planned, one, many, other, ratio, ratio_many = np.median(times, axis=0)
    least = min(single for *_, single, _ in times)
    sizes = [name, str(len(network.variables)), f"{planned:.1f}", f"{one:.3f}", f"{many:.3f}", f"{other:.3f}"]
    return [*sizes, f"{ratio:.1f}", f"{least:.1f}", f"{ratio_many:.1f}"]


def measure() -> Iterator[Report]:
    row("asia")  # compile
    yield Report(
        f"Milliseconds a question: {N_ROWS} rows, median of {N_TARGETS} targets",
        (
            *("network", "variables", "prepare", "one at a time", "all at once", "pyAgrum"),
            *("ratio, one at a time", "least", "ratio, all at once"),
        ),
        [row(name) for name in NETWORKS],
    )


if __name__ == "__main__":
    main(measure, __doc__)
