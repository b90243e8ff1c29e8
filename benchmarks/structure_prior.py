"""Predictive performance of priors on many data sets: the default, its predecessor, trees, and no prior.

All numbers are means over held-out cases: the test cases of a data set, or every third case in a random order; for a
table of less than 1,000 cases, each tenth in turn, in five such orders; for published networks, cases other than the
five samples that are learned from. The number after ± is the standard error of a difference: over the held-out cases,
or over the training parts if that is larger.

`default` is `learn` with its defaults; `symmetric:2` has the same graphs with two pseudo-cases in each leaf, where the
default chooses up to 32 for each variable; `trees (B)` has the default's priors and no merges; `κ = 1/n` is the former
default (graphs, CBM, uniform prior of the parameters); `uniform, B` is the prior of the paper's experiments, with
trees, since graphs take minutes under it. For single targets, `one search` is the first of the default's two.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import data
from benchmarks.report import Report, main
from leafwise.data.table import Table
from leafwise.experiments.density import HOPELESS, KAPPAS, read_parts
from leafwise.experiments.published import DENSITY
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.sampling import sample
from leafwise.learner import learn
from leafwise.network import Network
from leafwise.search.leaf_search import LeafSearch

STRICTER = (0.0002, 0.0005)
CLASSES = dict.fromkeys(("promoters", "splice", "car", "nursery", "mushroom"), "class") | {"adult_train": "income"}
NETWORKS = ("alarm", "child", "insurance", "hailfinder", "win95pts", "hepar2", "barley")
SIZES = (500, 5_000)  # cases of each; as many as the latter are held out
MANY_STATES = 5
FEW_CASES, N_FOLDS, N_ORDERS = 1_000, 10, 5  # smaller tables are cross-validated, with this many folds and orders
SEEDS = (1, 3, 4, 5, 6)  # of the training samples; 2 is that of the held-out cases

Floats = NDArray[np.float64]


class Part(NamedTuple):
    """Training cases, and held-out cases with their places among all held-out ones."""

    train: Table
    test: Table
    places: NDArray[np.int64]


class Found(NamedTuple):
    """Log-likelihoods of held-out cases: of each, its mean over its parts; and the means of the parts."""

    cases: Floats
    parts: Floats

    @property
    def mean(self) -> float:
        return float(self.cases.mean())

    def __sub__(self, other: "Found") -> "Found":
        return Found(self.cases - other.cases, self.parts - other.parts)

    @property
    def error(self) -> float:
        """The standard error of the mean."""
        several = [numbers for numbers in self if len(numbers) > 1]
        return max(float(numbers.std(ddof=1)) / math.sqrt(len(numbers)) for numbers in several)

    @classmethod
    def of_test(cls, network: Network, test: Table) -> "Found":
        """The log-likelihoods for one part."""
        cases = log_probabilities(network, test)
        return cls(cases, np.array([cases.mean()]))

    @classmethod
    def mean_of(cls, found: Sequence["Found"]) -> "Found":
        """The means case by case, and part by part."""
        return cls(*(np.mean([one[k] for one in found], axis=0) for k in range(2)))


class Problem(NamedTuple):
    """A table and its parts: one, or for a small table several, in which each case is held out equally often."""

    name: str
    parts: list[Part]

    @property
    def train(self) -> Table:
        return self.parts[0].train

    def log_likelihoods(self, networks: Sequence[Network]) -> Found:
        """The log-likelihoods of the held-out cases under the networks of the parts."""
        n_cases = 1 + max(int(part.places.max()) for part in self.parts)
        total, times, means = np.zeros(n_cases), np.zeros(n_cases), []
        for part, network in zip(self.parts, networks, strict=True):
            own = log_probabilities(network, part.test)
            total[part.places] += own
            times[part.places] += 1
            means.append(own.mean())
        return Found(total / times, np.array(means))


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
    "default": Way("auto", "auto", "auto"),
    "symmetric:2": Way("auto", "symmetric:2", "auto"),
    "trees (B)": Way("B", "auto", "auto"),
    "κ = 1/n": Way("CBM", "uniform", "kappa:1/n"),
    "uniform, B": Way("B", "uniform", "uniform"),
}
OF_A_TARGET = {**WAYS, "one search": Way("CBIM", "auto", "auto")}


def best_kappa(train: Table, valid: Table, test: Table) -> tuple[float, Found]:
    """The kappa that is best on valid, and its result on test: from strict to where it only overfits more."""
    found: list[tuple[float, float, Network]] = []
    for kappa in (*STRICTER, *KAPPAS):
        network = Way("CBM", "uniform", f"kappa:{kappa:g}").learn(train)
        found.append((float(log_probabilities(network, valid).mean()), kappa, network))
        if found[-1][0] < HOPELESS * max(found)[0]:
            break
    _, kappa, network = max(found)
    return kappa, Found.of_test(network, test)


def binary_sets() -> Report:
    """All variables at once, on fourteen binary data sets."""
    rows, values = [], {}
    for name in DENSITY:
        train, valid, test = read_parts(data.folder(), name)
        networks = {way: settings.learn(train) for way, settings in WAYS.items()}
        kappa, tuned = best_kappa(train, valid, test)
        values[name] = {way: Found.of_test(network, test) for way, network in networks.items()}
        values[name]["best κ on valid"] = tuned
        sizes = [f"{number:,}" for number in (train.n_variables, networks["default"].n_tests)]
        rows.append([name, *sizes, *(f"{value.mean:.4f}" for value in values[name].values()), f"{kappa:g}"])
    heads = ["data", "variables", "tests, default", *WAYS, "best κ on valid", "that κ"]
    near = sum(found["default"].mean >= 1.005 * found["best κ on valid"].mean for found in values.values())
    remarks = [*beaten(values), f"Within 0.5 % of the best κ, or better: {near} of {len(values)}."]
    return Report("Binary data: mean log-likelihood of a test case", heads, rows, remarks)


def beaten(values: Mapping[str, Mapping[str, Found]]) -> list[str]:
    """For each other method: on how many rows the default is no worse, and where and by how much it is worse."""
    remarks = []
    for other in list(next(iter(values.values())))[1:]:
        lost = []
        for name, found in values.items():
            worse, scale = found[other] - found["default"], -100 / found[other].mean  # in percent
            if worse.mean > 0:
                lost.append(f"{name} ({scale * worse.mean:.2f} ± {scale * worse.error:.2f} %)")
        where = f"; worse on {', '.join(lost)}" if lost else ""
        remarks.append(f"Default at least as good as {other}: {len(values) - len(lost)} of {len(values)}{where}.")
    return remarks


def parts_of(name: str) -> list[Part]:
    """The training and held-out parts of a table."""
    cases = data.table(name)
    tests = data.test_table(name, cases)
    if tests is not None:
        return [Part(cases, tests, np.arange(tests.n_cases))]
    if cases.n_cases >= FEW_CASES:
        order = np.random.default_rng(1).permutation(cases.n_cases)
        return [_part(cases, order[2::3], np.arange(len(order[2::3])))]
    orders = [np.random.default_rng(seed).permutation(cases.n_cases) for seed in range(1, N_ORDERS + 1)]
    return [_part(cases, held := order[fold::N_FOLDS], held) for order in orders for fold in range(N_FOLDS)]


def _part(cases: Table, held_back: NDArray[np.int64], places: NDArray[np.int64]) -> Part:
    is_held = np.isin(np.arange(cases.n_cases), held_back)
    codes = [np.ascontiguousarray(cases.codes[:, which]) for which in (np.flatnonzero(~is_held), held_back)]
    return Part(Table(cases.variables, codes[0]), Table(cases.variables, codes[1]), places)


def problems() -> Iterator[Problem]:
    """Tables with variables of more than two states, and samples of published networks."""
    for name in CLASSES:
        yield Problem(name.removesuffix("_train"), parts_of(name))
    for name in NETWORKS:
        network = data.network(name)
        test = sample(network, SIZES[-1], seed=2)
        for n_cases in SIZES:
            parts = [Part(sample(network, n_cases, seed=seed), test, np.arange(SIZES[-1])) for seed in SEEDS]
            yield Problem(f"{name}, {n_cases:,} cases", parts)


def joint(found: Sequence[Problem]) -> Report:
    """All variables at once."""
    rows, values = [], {}
    for problem in found:
        networks = {way: [settings.learn(part.train) for part in problem.parts] for way, settings in WAYS.items()}
        values[problem.name] = {way: problem.log_likelihoods(learned) for way, learned in networks.items()}
        n_tests = np.mean([network.n_tests for network in networks["default"]])
        sizes = [f"{problem.train.n_cases:,} × {problem.train.n_variables}", f"{n_tests:,.0f}"]
        rows.append([problem.name, *sizes, *(f"{value.mean:.3f}" for value in values[problem.name].values())])
    heads = ["data", "size", "tests, default", *WAYS]
    title = "Variables of more states, learned together: mean log-likelihood of a case held back"
    return Report(title, heads, rows, beaten(values))


def each(found: Sequence[Problem]) -> Report:
    """Each variable as a target, with all others as possible parents."""
    rows: list[list[str]] = []
    all_values: dict[str, dict[str, Found]] = {}  # means over all targets, for the remarks
    by_states: dict[bool, list[dict[str, Found]]] = {True: [], False: []}  # many, or few
    for problem in found:
        train = problem.train
        values = {
            target: {
                way: problem.log_likelihoods([settings.learn(part.train, target) for part in problem.parts])
                for way, settings in OF_A_TARGET.items()
            }
            for target in train.names
        }
        many = [v.name for v in train.variables if v.n_states >= MANY_STATES]
        for target in train.names:
            by_states[target in many].append(values[target])
        kinds = {"all": list(train.names), f"with {MANY_STATES} states or more": many}
        kinds |= {wanted: [wanted] for wanted in CLASSES.values() if wanted in train.names}
        for kind, targets in kinds.items():
            if targets:
                means = {way: Found.mean_of([values[target][way] for target in targets]) for way in OF_A_TARGET}
                losses = [f"{-mean.mean:.4f}" for mean in means.values()]
                pairs = [(values[target]["default"].mean, values[target]["κ = 1/n"].mean) for target in targets]
                better = sum(default >= kappa for default, kappa in pairs)
                rows.append([problem.name, kind, *losses, f"{better} of {len(targets)}"])
                all_values.setdefault(problem.name, means)
    heads = ["data", "targets", *OF_A_TARGET, "default no worse than κ = 1/n"]
    title = "Variables of more states, one target at a time: mean log loss of the targets, in cases held back"
    return Report(title, heads, rows, [*beaten(all_values), *(one_by_one(*pair) for pair in by_states.items())])


def one_by_one(has_many: bool, found: Sequence[Mapping[str, Found]]) -> str:
    """On how many single targets the default is worse than κ = 1/n, and significantly so."""
    worse = [(values["κ = 1/n"] - values["default"], values["κ = 1/n"].mean) for values in found]
    worse = [(less, mean) for less, mean in worse if less.mean > 0]
    sure = sum(less.mean > -0.003 * mean and less.mean > 2 * less.error for less, mean in worse)
    states = f"{MANY_STATES} states or more" if has_many else "fewer states"
    return (
        f"Of {len(found)} targets of {states}, one by one, the default is worse than κ = 1/n on {len(worse)}; "
        f"by more than 0.3 % and two standard errors on {sure}."
    )


def measure() -> Iterator[Report]:
    """Binary data, then tables: together, and one target at a time."""
    for name in (*DENSITY, *CLASSES):
        data.path(name)  # reports missing files before anything is run
    yield binary_sets()
    found = list(problems())
    yield joint(found)
    yield each(found)


if __name__ == "__main__":
    main(measure, __doc__)
