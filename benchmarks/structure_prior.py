"""Which priors predict best on which data: the default, what it replaced, trees, and none at all.

All numbers are means over cases that were held back: the test cases of a data set, or every third case of it in an
order drawn at random; of published networks, other cases than those learned from. `default` is `learn` as it comes;
`trees (B)` has the same priors and no merges; `κ = 1/n` is the former default (graphs, CBM, uniform prior of the
parameters); `uniform, B` is the prior of the paper's experiments, with trees, since graphs take minutes under it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.experiments.density import HOPELESS, KAPPAS, read_parts
from leafwise.experiments.published import DENSITY
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.sampling import sample
from leafwise.learner import learn
from leafwise.network import Network
from leafwise.search.greedy import LeafSearch
from leafwise.table import Table

STRICTER = (0.0002, 0.0005)
CLASSES = dict.fromkeys(("promoters", "splice", "car", "nursery", "mushroom"), "class") | {"adult_train": "income"}
NETWORKS = ("alarm", "child", "insurance", "hailfinder", "win95pts", "hepar2", "barley")
SIZES = (500, 5_000)  # cases of each, and as many as the latter are held back
MANY_STATES = 5


class Way(NamedTuple):
    """A search and its priors."""

    operators: str
    prior: str
    structure_prior: str

    def learn(self, cases: Table, target: str | None = None) -> Network:
        structure_prior = self.structure_prior.replace("1/n", f"{1 / cases.n_variables:.6g}")
        search = LeafSearch(self.operators, threads=1)
        return learn(cases, target=target, search=search, prior=self.prior, structure_prior=structure_prior)


WAYS = {
    "default": Way("CBIM", "auto", "auto"),
    "trees (B)": Way("B", "auto", "auto"),
    "κ = 1/n": Way("CBM", "uniform", "kappa:1/n"),
    "uniform, B": Way("B", "uniform", "uniform"),
}


def mean_log(network: Network, cases: Table) -> float:
    """The mean log-likelihood of a case; of a target alone, given all else."""
    return float(log_probabilities(network, cases).mean())


def best_kappa(train: Table, valid: Table, test: Table) -> tuple[float, float]:
    """The kappa that is best on valid, and what it does on test: from strict to where it only overfits more."""
    found: list[tuple[float, float, float]] = []
    for kappa in (*STRICTER, *KAPPAS):
        network = Way("CBM", "uniform", f"kappa:{kappa:g}").learn(train)
        found.append((mean_log(network, valid), kappa, mean_log(network, test)))
        if found[-1][0] < HOPELESS * max(found)[0]:
            break
    return max(found)[1:]


def binary_sets() -> Report:
    """All variables at once, on fourteen binary data sets."""
    rows, values = [], {}
    for name in DENSITY:
        train, valid, test = read_parts(data.folder(), name)
        networks = {way: settings.learn(train) for way, settings in WAYS.items()}
        kappa, tuned = best_kappa(train, valid, test)
        values[name] = {way: mean_log(network, test) for way, network in networks.items()} | {"best κ on valid": tuned}
        sizes = [f"{number:,}" for number in (train.n_variables, networks["default"].n_tests)]
        rows.append([name, *sizes, *(f"{value:.4f}" for value in values[name].values()), f"{kappa:g}"])
    heads = ["data", "variables", "tests, default", *WAYS, "best κ on valid", "that κ"]
    near = sum(found["default"] >= 1.005 * found["best κ on valid"] for found in values.values())
    remarks = [*beaten(values), f"Within 0.5 % of the best κ, or better: {near} of {len(values)}."]
    return Report("Binary data: mean log-likelihood of a test case", heads, rows, remarks)


def beaten(values: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Against each other way: on how many rows the default is no worse, and where it is worse, by how much."""
    remarks = []
    for other in list(next(iter(values.values())))[1:]:
        gaps = {name: found["default"] / found[other] - 1 for name, found in values.items()}  # both below zero
        lost = [f"{name} ({100 * gap:.2f} %)" for name, gap in gaps.items() if gap > 0]
        where = f"; worse on {', '.join(lost)}" if lost else ""
        remarks.append(f"Default at least as good as {other}: {len(gaps) - len(lost)} of {len(gaps)}{where}.")
    return remarks


def held_back(name: str) -> tuple[Table, Table]:
    """What a table is learned from, and what is held back."""
    cases = data.table(name)
    tests = data.test_table(name, cases)
    if tests is not None:
        return cases, tests
    order = np.random.default_rng(1).permutation(cases.n_cases)
    is_kept = np.arange(cases.n_cases) % 3 != 2
    parts = [np.ascontiguousarray(cases.codes[:, order[which]]) for which in (is_kept, ~is_kept)]
    return Table(cases.variables, parts[0]), Table(cases.variables, parts[1])


def problems() -> Iterator[tuple[str, Table, Table]]:
    """Tables with variables of more than two states, and samples of published networks."""
    for name in CLASSES:
        yield (name.removesuffix("_train"), *held_back(name))
    for name in NETWORKS:
        network = data.network(name)
        test = sample(network, SIZES[-1], seed=2)
        for n_cases in SIZES:
            yield f"{name}, {n_cases:,} cases", sample(network, n_cases, seed=1), test


def joint(found: Sequence[tuple[str, Table, Table]]) -> Report:
    """All variables at once."""
    rows, values = [], {}
    for name, train, test in found:
        networks = {way: settings.learn(train) for way, settings in WAYS.items()}
        values[name] = {way: mean_log(network, test) for way, network in networks.items()}
        sizes = [f"{train.n_cases:,} × {train.n_variables}", f"{networks['default'].n_tests:,}"]
        rows.append([name, *sizes, *(f"{value:.3f}" for value in values[name].values())])
    heads = ["data", "size", "tests, default", *WAYS]
    title = "Variables of more states, learned together: mean log-likelihood of a case held back"
    return Report(title, heads, rows, beaten(values))


def each(found: Sequence[tuple[str, Table, Table]]) -> Report:
    """Each variable as a target, all others being its possible parents."""
    rows, all_values = [], {}  # these: means over all targets, for the remarks
    for name, train, test in found:
        values = {
            target: {way: mean_log(settings.learn(train, target), test) for way, settings in WAYS.items()}
            for target in train.names
        }
        many = [v.name for v in train.variables if v.n_states >= MANY_STATES]
        kinds = {"all": list(train.names), f"with {MANY_STATES} states or more": many}
        kinds |= {wanted: [wanted] for wanted in CLASSES.values() if wanted in train.names}
        for kind, targets in kinds.items():
            if targets:
                means = {way: math.fsum(values[target][way] for target in targets) / len(targets) for way in WAYS}
                losses = [f"{-mean:.4f}" for mean in means.values()]
                better = sum(values[target]["default"] >= values[target]["κ = 1/n"] for target in targets)
                rows.append([name, kind, *losses, f"{better} of {len(targets)}"])
                all_values.setdefault(name, means)
    heads = ["data", "targets", *WAYS, "default no worse than κ = 1/n"]
    title = "Variables of more states, one target at a time: mean log loss of the targets, in cases held back"
    return Report(title, heads, rows, beaten(all_values))


def measure() -> Iterator[Report]:
    """Binary data, then tables: together, and one target at a time."""
    for name in (*DENSITY, *CLASSES):
        data.path(name)  # what is missing is said before anything is run
    yield binary_sets()
    found = list(problems())
    yield joint(found)
    yield each(found)


if __name__ == "__main__":
    main(measure, __doc__)
