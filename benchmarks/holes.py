"""Cases with missing cells: log probabilities beside pyAgrum, and completions, marginals and expected counts.

Cells are removed at random, so nearly every case lacks different ones. pyAgrum keeps one engine, receives the observed
cells of a case, and returns their probability; ours computes all cases at once, on one thread. Every log probability of
pyAgrum is checked. The second table is for a million cases of about 40 variables with a tenth of their cells removed,
on all cores, with the peak memory of the process up to then.
"""

import resource
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.formats.agrum import to_agrum
from leafwise.inference.holes import Holes
from leafwise.inference.sampling import sample
from leafwise.learner import learn
from leafwise.network import Network

NETWORKS = ("sachs", "alarm", "insurance", "hailfinder", "win95pts", "hepar2")
SHARES = (0.1, 0.3, 0.5)
N_CASES, N_THEIRS = 10_000, 100
MILLION = 1_000_000
HOLE = 255
SAME = 1e-5  # published tables are rounded, which pyAgrum does not take into account


def incomplete(network: Network, n_cases: int, share: float) -> np.ndarray:
    """Cases with missing cells."""
    codes = sample(network, n_cases, seed=1).codes.copy()
    codes[np.random.default_rng(1).random(codes.shape) < share] = HOLE
    return codes


def theirs(network: Network, codes: np.ndarray) -> Callable[[], np.ndarray]:
    import pyagrum

    engine = pyagrum.LazyPropagation(to_agrum(network))

    def ask() -> np.ndarray:
        found = []
        for case in codes.T.tolist():
            engine.eraseAllEvidence()
            shown = zip(network.names, case, strict=True)
            engine.setEvidence({name: state for name, state in shown if state != HOLE})
            found.append(np.log(engine.evidenceProbability()))
        return np.array(found)

    return ask


def timed(ask: Callable[[], object], n_cases: int) -> tuple[float, object]:
    """Microseconds per case, the better of two runs."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        found = ask()
        times.append(1e6 * (time.perf_counter() - began) / n_cases)
    return min(times), found


def rows(name: str) -> Iterator[list[str]]:
    network = data.network(name)
    asked = Holes(network, threads=1)
    for share in SHARES:
        codes = incomplete(network, N_CASES, share)
        asked.log_probabilities(codes[:, :1])
        own, found = timed(partial(asked.log_probabilities, codes), N_CASES)
        other, expected = timed(theirs(network, codes[:, :N_THEIRS]), N_THEIRS)
        apart = float(abs(found[:N_THEIRS] - expected).max())  # type: ignore[index, operator]
        check(apart < SAME, f"{name}: a log probability differs from pyAgrum's by {apart}")
        others = [partial(asked.draw, codes, 1), partial(asked.marginals, codes), partial(asked.expected_counts, codes)]
        took = [f"{timed(ask, N_CASES)[0]:.1f}" for ask in others]
        yield [name, f"{share:.0%}", f"{own:.1f}", f"{other:.0f}", f"{other / own:.0f}", *took]


def a_million() -> Iterator[list[str]]:
    cases = sample(data.network("hailfinder"), 10_000, seed=1)
    forty = learn(Table(cases.variables[:40], np.ascontiguousarray(cases.codes[:40])))
    learned = learn(sample(alarm(), 10_000, seed=1))
    for name, network in (("alarm", alarm()), ("alarm, learned", learned), ("hailfinder, learned", forty)):
        codes = incomplete(network, MILLION, 0.1)
        asked = Holes(network)
        ways = (asked.log_probabilities, partial(asked.draw, seed=1), asked.marginals, asked.expected_counts)
        times = []
        for ask in ways:
            began = time.perf_counter()
            ask(codes)
            times.append(f"{time.perf_counter() - began:.1f}")
        yield [name, str(len(codes)), *times, f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f}"]


def measure() -> Iterator[Report]:
    ours = ["draws", "marginals", "expected counts"]
    yield Report(
        "Microseconds a case",
        ["network", "holes", "log probability", "pyAgrum's", "ratio", *ours],
        [row for name in NETWORKS for row in rows(name)],
    )
    heads = ["network", "variables", "log probability", *ours, "GiB"]
    yield Report(f"Seconds for {MILLION:,} cases, a tenth of the cells missing", heads, list(a_million()))


if __name__ == "__main__":
    main(measure, __doc__)
