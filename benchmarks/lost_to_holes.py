"""The cost of missing cells, and its causes: rows of `leafwise reproduce missing`, with several sets of holes each.

All have stacked leaves and are tested on held-out cases, as there. *Completed by others*: missing cells are drawn by a
network of all cases of the data set, as if their joint distribution were known; *fewer rows*: the share of rows that is
omitted equals the share of missing cells. *Structure*: that of `infer`, with parameters from complete data.
*Parameters*: those with missing cells, for the structure of complete data.
"""

from collections.abc import Iterator

import numpy as np

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.data.table import Table
from leafwise.experiments.missing import Cut, cases, most_common, of_held_back, removed
from leafwise.inference.holes import Holes
from leafwise.learner import learn
from leafwise.network import Network
from leafwise.stacking import stacked

ALL = 10**6
ROWS = (("nltcs", 0.1, 2000), ("nltcs", 0.1, ALL), ("adult", 0.1, 2000), ("dna", 0.1, 2000), ("msnbc", 0.3, 2000))
SEEDS = range(5)
N_DRAWS = 5
WAYS = ("fewer rows", "completed by others", "structure", "parameters", "infer")


def ways(cut: Cut, whole: Network, others: Network | None, seed: int) -> Iterator[float]:
    """The log probability of held-out cases with each method."""
    shown, complete = cut.shown(), cut.complete
    n_cases, share = complete.n_cases, cut.holes.mean()
    left = np.sort(np.random.default_rng(seed).permutation(n_cases)[: round(n_cases * (1 - share))])
    fewer = Table(complete.variables, np.ascontiguousarray(complete.codes[:, left]))
    yield of_held_back(stacked(learn(fewer), fewer), cut)
    yield np.nan if others is None else of_held_back(stacked(completed_by(others, cut, seed), shown), cut)
    ours = learn(shown, missing="infer")
    yield of_held_back(stacked(ours, complete), cut)
    yield of_held_back(stacked(whole, shown), cut)
    yield of_held_back(stacked(ours, shown), cut)


def completed_by(network: Network, cut: Cut, seed: int) -> Network:
    """The network learned from cases that a network completed several times."""
    completed = [Holes(network).draw(cut.shown().codes, N_DRAWS * seed + k) for k in range(N_DRAWS)]
    table = Table(network.variables, np.concatenate(completed, axis=1))
    return learn(table, weights=np.full(table.n_cases, 1 / N_DRAWS))


def row(name: str, share: float, most: int) -> list[str]:
    train, test = cases(name, most, data.folder())
    every = cases(name, ALL, data.folder())[0]
    others = stacked(learn(every), every) if every.n_cases > 2 * train.n_cases else None
    whole = learn(train)
    covered = []
    for seed in SEEDS:
        cut = Cut(train, removed(train, share, seed), test)
        worst, best = of_held_back(most_common(cut)[1], cut), of_held_back(stacked(whole, train), cut)
        covered.append([(value - worst) / (best - worst) for value in ways(cut, whole, others, seed)])
    means, spreads = np.mean(covered, axis=0), np.std(covered, axis=0, ddof=1)
    cells = [
        "–" if np.isnan(mean) else f"{mean:.0%} ± {spread:.0%}" for mean, spread in zip(means, spreads, strict=True)
    ]
    return [name, f"{train.n_cases:,}", f"{share:.0%}", *cells]


def measure() -> Iterator[Report]:
    yield Report(
        f"Covered of the way from most common to complete: mean and spread of {len(SEEDS)} sets of holes",
        ["set", "cases", "holes", *WAYS],
        [row(*which) for which in ROWS],
    )


if __name__ == "__main__":
    main(measure, __doc__)
