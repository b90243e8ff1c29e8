"""The benefit of averaged and stacked leaves, and the best ways to make and mix the members of a mixture.

All on valid, not test. The first table has the mean log-likelihood of validation cases under one network learned on
train: with the defaults, as trees with kappa = 0.3, as the same trees with averaged leaves, and with the defaults and
stacked leaves. The second has that of sixteen networks, trees without a structure penalty, with uniform weights and
smoothed leaves, each learned from a bootstrap sample or from four fifths of the cases: each with its own order of the
variables, or in groups of four that share an order and mix their nodes.
"""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.averaging import GROWTH, averaged
from leafwise.constraints import Constraints
from leafwise.data.table import Table
from leafwise.experiments.density import read_parts
from leafwise.inference.likelihood import log_probabilities_by_turns
from leafwise.learner import learn
from leafwise.search.leaf_search import LeafSearch
from leafwise.smoothing import smoothings
from leafwise.stacking import stacked

SETS = ("nltcs", "plants", "baudio", "dna", "kosarek")
MIXED, MEMBERS, STRENGTHS = ("nltcs", "plants"), 16, (1.0, 4.0, 16.0, 64.0)
SIZES = (1, 4)  # of groups
Rows = Callable[[np.random.Generator, int], np.ndarray]
WAYS: dict[str, Rows] = {
    "bootstrap": lambda random, n: random.integers(n, size=n),
    "four fifths": lambda random, n: random.permutation(n)[: 4 * n // 5],
}


def parts(name: str) -> tuple[Table, Table]:
    """Train and valid of a data set."""
    data.path(name)  # reports missing files
    train, valid, _ = read_parts(data.folder(), name)
    return train, valid


def of_leaves(name: str) -> list[str]:
    """A row of the first table."""
    train, valid = parts(name)
    trees = learn(train, search=LeafSearch("CBI"), structure_prior=GROWTH)
    plain = learn(train)
    found = (plain, trees, averaged(trees, train), stacked(plain, train))
    return [name, *(f"{network.log_probabilities(valid).mean():.3f}" for network in found)]


def of_groups(name: str, rows: Rows, size: int) -> float:
    """The mean log-likelihood of validation cases with the best strength, in groups of `size`."""
    train, valid = parts(name)
    total = np.full((len(STRENGTHS), valid.n_cases), -np.inf)
    for group in range(MEMBERS // size):
        kinds = []
        order = [train.names[k] for k in np.random.default_rng([1, group]).permutation(train.n_variables)]
        for number in range(size):
            drawn = np.sort(rows(np.random.default_rng([2, group, number]), train.n_cases))
            cases = Table(train.variables, np.ascontiguousarray(train.codes[:, drawn]))
            own = Constraints(order=order)
            network = learn(cases, search=LeafSearch("CBI"), structure_prior="uniform", constraints=own)
            kinds.append(smoothings(network, cases, STRENGTHS))
        for place, networks in enumerate(zip(*kinds, strict=True)):
            logs = log_probabilities_by_turns(networks, np.ones(size), valid.codes)[0]
            total[place] = np.logaddexp(total[place], logs - np.log(MEMBERS // size))
    return float(total.mean(axis=1).max())


def measure() -> Iterator[Report]:
    """Both tables."""
    heads = ("set", "defaults", "trees, kappa:0.3", "averaged", "stacked")
    yield Report("Mean log-likelihood of validation cases, one network", heads, [of_leaves(name) for name in SETS])
    table = []
    for name in MIXED:
        for way, rows in WAYS.items():
            table.append([name, way, *(f"{of_groups(name, rows, size):.3f}" for size in SIZES)])
    heads = ("set", "learned from", *(f"groups of {size}" for size in SIZES))
    yield Report(f"The same under {MEMBERS} networks", heads, table)


if __name__ == "__main__":
    main(measure, __doc__)
