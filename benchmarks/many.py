"""What averaged and stacked leaves are worth, and from which cases the members of a mixture are best learned.

All on valid, not test. The first table has the mean log-likelihood of validation cases under one network learned on
train: with the defaults, as trees that pay kappa = 0.3, as these with averaged leaves, and with the defaults and
stacked leaves. The second has that of eight networks with random orders of the variables, uniform weights and smoothed
leaves, which were learned from a bootstrap sample each, from four fifths of the cases (and whose leaves then got all),
and from all cases.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.averaging import GROWTH, averaged
from leafwise.constraints import Constraints
from leafwise.experiments.density import read_parts
from leafwise.learner import learn
from leafwise.search.greedy import LeafSearch
from leafwise.smoothing import smoothings
from leafwise.stacking import stacked
from leafwise.table import Table

SETS = ("nltcs", "plants", "baudio", "dna", "kosarek")
MIXED, MEMBERS, STRENGTHS = ("nltcs", "plants"), 8, (8.0, 16.0, 32.0, 64.0)
Rows = Callable[[np.random.Generator, int], np.ndarray]
WAYS: dict[str, Rows] = {
    "bootstrap": lambda random, n: random.integers(n, size=n),
    "four fifths": lambda random, n: random.permutation(n)[: 4 * n // 5],
    "all": lambda random, n: np.arange(n),
}


def parts(name: str) -> tuple[Table, Table]:
    """Train and valid of a data set."""
    data.path(name)  # says what is missing
    train, valid, _ = read_parts(data.folder(), name)
    return train, valid


def of_leaves(name: str) -> list[str]:
    """A row of the first table."""
    train, valid = parts(name)
    trees = learn(train, search=LeafSearch("CBI"), structure_prior=GROWTH)
    plain = learn(train)
    found = (plain, trees, averaged(trees, train), stacked(plain, train))
    return [name, *(f"{network.log_probabilities(valid).mean():.3f}" for network in found)]


def of_rows(name: str, rows: Rows, leaves_of_all: bool) -> float:
    """The mean log-likelihood of validation cases with the best of the strengths."""
    train, valid = parts(name)
    total = np.full((len(STRENGTHS), valid.n_cases), -np.inf)
    for number in range(MEMBERS):
        random = np.random.default_rng([1, number])
        drawn = Table(train.variables, np.ascontiguousarray(train.codes[:, np.sort(rows(random, train.n_cases))]))
        order = Constraints(order=[train.names[k] for k in random.permutation(train.n_variables)])
        network = learn(drawn, search=LeafSearch("CBI"), structure_prior="uniform", constraints=order)
        kinds = smoothings(network, train if leaves_of_all else drawn, STRENGTHS)
        logs = np.stack([kind.log_probabilities(valid) for kind in kinds])
        total = np.logaddexp(total, logs - np.log(MEMBERS))
    return float(total.mean(axis=1).max())


def measure() -> Iterator[Report]:
    """Both tables."""
    heads = ("set", "defaults", "trees, kappa:0.3", "averaged", "stacked")
    yield Report("Mean log-likelihood of validation cases, one network", heads, [of_leaves(name) for name in SETS])
    table = []
    for name in MIXED:
        values = [of_rows(name, rows, way == "four fifths") for way, rows in WAYS.items()]
        table.append([name, *(f"{value:.3f}" for value in values)])
    yield Report(f"The same under {MEMBERS} networks, learned from", ("set", *WAYS), table)


if __name__ == "__main__":
    main(measure, __doc__)
