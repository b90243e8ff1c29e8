"""Leaves learned from few cases: the gain in probability of new ones by `auto` over two pseudo-cases per leaf.

Some rows of each data set are drawn, ten times, and the network learned from them is tested on a thousand others. Both
priors find the same graphs; with `auto`, the number of pseudo-cases in the leaves is chosen for each variable.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.data.table import Table
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import learn

SETS = ("tretail", "kosarek", "plants", "nltcs", "dna", "mushroom", "car", "nursery", "splice", "promoters")
CASES = (1, 2, 3, 5, 10, 30, 80)
DRAWS, NEW = 10, 1000


def rows_of(table: Table, which: NDArray[np.int64]) -> Table:
    """Some of the cases."""
    return Table(table.variables, table.codes.take(which, axis=1))


def gain(table: Table, n_cases: int) -> float:
    """The increase in the mean log-likelihood of new cases, in percent, on average."""
    both = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(table.n_cases)
        few, new = rows_of(table, order[:n_cases]), rows_of(table, order[n_cases:][:NEW])
        networks = [learn(few, prior=prior) for prior in ("symmetric:2", "auto")]
        check(networks[0].arcs == networks[1].arcs, "the graphs are not the same")
        both.append([log_probabilities(network, new).mean() for network in networks])
    two, fitted = np.mean(both, axis=0)
    return float(100 * (two - fitted) / two)


def measure() -> Iterator[Report]:
    """One row per data set."""
    rows = []
    for name in SETS:
        table = data.table(name)
        rows.append([name, *(f"{round(gain(table, n), 2) + 0.0:+.2f} %" for n in CASES)])
    title = "By how much the log-likelihood of new cases is higher with `auto` than with `symmetric:2`, in 10 draws"
    yield Report(title, ["data", *(f"{n} case{'s' * (n > 1)}" for n in CASES)], rows)


if __name__ == "__main__":
    main(measure, __doc__)
