"""Queries to networks with decision graphs learned from data: how many are exact, and how accurate the others are.

Test cases are partly observed, and the marginals of all other variables are queried, within half of the machine's
memory and the operations of about 6 seconds. If the answer is exact, that from 100,000 samples is compared with it.
"""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.inference.exact import Exact, Limits
from leafwise.inference.gibbs import gibbs
from leafwise.inference.weighting import weighting
from leafwise.learner import learn
from leafwise.network import Network

SETS = ("plants", "tretail", "dna")
STRUCTURE_PRIORS = ("kappa:0.1", "kappa:0.01")
SHOWN = (0.9, 0.5, 0.1)
N_CASES = 20
N_COMPARED = 3  # of the cases with an exact answer: samples take longer
LIMITS = Limits(operations=3e9)


def rows(name: str, structure_prior: str) -> Iterator[list[str]]:
    cases = data.table(name)
    network = learn(cases, prior="uniform", structure_prior=structure_prior)
    test = data.test_table(name, cases)
    check(test is not None, f"{name} has no test cases")
    assert test is not None
    random = np.random.default_rng(1)
    for share in SHOWN:
        times, operations, errors = [], [], []
        for case in test.codes[:, random.permutation(test.n_cases)[:N_CASES]].T:
            shown = random.permutation(test.n_variables)[: round(share * test.n_variables)].tolist()
            weights = {v: np.eye(network.variables[v].n_states)[case[v]] for v in shown}
            hidden = [v for v in range(test.n_variables) if v not in weights]
            began = time.perf_counter()
            question = Exact.of(network, weights, [(v,) for v in hidden], LIMITS)
            operations.append(question.operations)
            if question.is_affordable:
                exact = question.distributions()[1]
                times.append(time.perf_counter() - began)
                if len(times) <= N_COMPARED:
                    errors.append(compared(network, hidden, weights, exact))
        head = [name, structure_prior, f"{network.n_leaves:,}", f"{share:.0%}", f"{len(times)} of {N_CASES}"]
        took = [f"{np.median(times):.3f} s", f"{max(times):.3f} s"] if times else ["-", "-"]
        apart = [f"{max(column):.4f}" for column in zip(*errors, strict=True)] if errors else ["-", "-"]
        yield [*head, f"{np.median(operations):.0e}", *took, *apart]


def compared(
    network: Network, hidden: list[int], weights: dict[int, np.ndarray], exact: list[np.ndarray]
) -> list[float]:
    """The largest error of a probability, by weighting and by Gibbs sampling."""
    out = []
    for way in (weighting, gibbs):
        found = way(network, hidden, weights, n_samples=100_000, seed=1)
        pairs = zip(found.probabilities, exact, strict=True)
        out.append(max(float(abs(a - b).max()) for a, b in pairs))
    return out


def measure() -> Iterator[Report]:
    yield Report(
        "Marginals of what is hidden",
        (
            *("data", "structure prior", "leaves", "shown", "exact", "multiplications", "median", "longest"),
            *("error, weighting", "error, gibbs"),
        ),
        [row for name in SETS for prior in STRUCTURE_PRIORS for row in rows(name, prior)],
    )


if __name__ == "__main__":
    main(measure, __doc__)
