"""Density estimation on fourteen binary data sets: learned on train, selected on valid, reported on test.

For each set of operators and each schedule, kappa goes from strict to lenient as long as that helps; every network is
evaluated with and without smoothing. The one with the highest mean log-likelihood on valid is evaluated on test.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from leafwise.data.encoding import read
from leafwise.data.table import Table, Variable
from leafwise.ensembles import MixtureRun
from leafwise.experiments.published import DENSITY, DENSITY_SOURCES
from leafwise.formats.whole_files import read_whole, write_whole
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import start_mixture, start_search
from leafwise.network import Network
from leafwise.report.tables import Report
from leafwise.search.leaf_search import LeafSearch
from leafwise.smoothing import smoothings

PARTS = ("train", "valid", "test")
SEARCHES = (("B", "best-first"), ("BM", "best-first"), ("BM", "splits-first"))  # C equals B if all variables are binary
KAPPAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
STRENGTHS = (0.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)  # of smoothing; 0 is none
HOPELESS = 1.01  # times the best log-likelihood on valid so far; beyond it, a more lenient kappa only overfits more
CLEARLY = 0.002  # the least difference that counts
_FORMAT = {"format": "leafwise-density", "version": 1}
_MIXTURES = {"format": "leafwise-density-mixtures", "version": 1}
CHOSEN = (  # of a mixture's record of learning
    *("networks", "structure_prior", "leaves_chosen", "leaves", "parameters", "arcs"),
    "mean_log_probability_unseen",
)
T = TypeVar("T")


@dataclass(frozen=True)
class Choice:
    """One network of a data set: its settings, and its mean log-likelihood on valid."""

    operators: str
    schedule: str
    kappa: float
    smoothing: float
    valid: float
    leaves: int
    arcs: int
    learning_seconds: float


@dataclass(frozen=True)
class Outcome:
    """The network selected for a data set, and its performance."""

    cases: int
    variables: int
    choice: Choice
    test: float
    searches: int
    seconds: float  # of everything except reading files
    limit: float | None  # of each search, in seconds


@dataclass(frozen=True)
class MixtureOutcome:
    """The mixture learned for a data set, and its performance."""

    cases: int
    variables: int
    chosen: Mapping[str, Any]
    valid: float
    test: float
    seconds: float  # of the processor, as is the limit, so that results do not depend on other users of the machine
    asked: int  # networks requested
    limit: float | None  # for the data set


def read_parts(folder: Path, name: str) -> tuple[Table, Table, Table]:
    """Train, valid and test of a data set; all variables have the states 0 and 1, even if one does not occur."""
    train, valid, test = (_read_binary(part_file(folder, name, part)) for part in PARTS)
    widths = [cases.n_variables for cases in (train, valid, test)]
    if len(set(widths)) > 1:
        raise ValueError(f"the parts of {name} have {', '.join(map(str, widths))} columns, and all need the same")
    return train, valid, test


def _read_binary(file: Path) -> Table:
    cases = read(file, header=False)
    try:
        return read(cases, variables=tuple(Variable(column, ("0", "1")) for column in cases.names))
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def part_file(folder: Path, name: str, part: str) -> Path:
    """The file of a part of a data set, in the folder or its subfolder `debd`."""
    for place in (folder, folder / "debd"):
        for ending in ("csv.gz", "csv"):
            if (file := place / f"{name}.{part}.{ending}").is_file():
                return file
    raise ValueError(f"there is no {name}.{part}.csv.gz in '{folder}': name the folder that holds the data sets")


def best_on_valid(
    train: Table,
    valid: Table,
    test: Table,
    limits: LeafSearch = LeafSearch(),
    tell: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """The network with the best score on valid, and its score on test; `limits` limits the time of a search."""
    began = time.perf_counter()
    found = [
        candidate
        for operators, schedule in SEARCHES
        for candidate in _walk(train, valid, replace(limits, operators=operators, schedule=schedule), tell)
    ]
    choice, network = max(found, key=lambda candidate: candidate[0].valid)
    likelihood = float(log_probabilities(network, test).mean())
    seconds = time.perf_counter() - began
    return Outcome(train.n_cases, train.n_variables, choice, likelihood, len(found), seconds, limits.seconds)


def _walk(
    train: Table, valid: Table, search: LeafSearch, tell: Callable[[str], None]
) -> Iterator[tuple[Choice, Network]]:
    """A network for each kappa, from the strictest to where more lenient ones only overfit."""
    best = -math.inf
    for kappa in KAPPAS:
        tell(f"{search.operators}, {search.schedule}, κ = {kappa:g}")
        choice, network = _best_smoothing(train, valid, search, kappa)
        yield choice, network
        if choice.valid < HOPELESS * best:
            return
        best = max(best, choice.valid)


def _best_smoothing(train: Table, valid: Table, search: LeafSearch, kappa: float) -> tuple[Choice, Network]:
    """The network of one search, with the smoothing that does best on valid."""
    under_way = start_search(train, search=search, prior="uniform", structure_prior=f"kappa:{kappa:g}")
    under_way.run()
    learned = under_way.network
    sizes = (under_way.n_leaves, under_way.n_arcs, under_way.seconds)
    found = []
    for strength, network in zip(STRENGTHS, [learned, *smoothings(learned, train, STRENGTHS[1:])], strict=True):
        likelihood = float(log_probabilities(network, valid).mean())
        found.append((Choice(search.operators, search.schedule, kappa, strength, likelihood, *sizes), network))
    return max(found, key=lambda candidate: candidate[0].valid)


def density(
    folder: Path,
    names: Sequence[str],
    limits: LeafSearch = LeafSearch(),
    results: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Outcome]:
    """The outcomes of data sets; those already in the results file are not repeated, others are added to it."""
    known = {} if results is None or not results.exists() else read_results(results)
    for name in names:
        for part in PARTS:
            part_file(folder, name, part)  # reports missing files before anything is run
    for name in names:
        if name not in known or known[name].limit != limits.seconds:
            parts = read_parts(folder, name)
            known[name] = best_on_valid(*parts, limits, _naming(name, tell))
            if results is not None:
                write_whole(results, results_text(known).encode())
    return {name: known[name] for name in names}


def _naming(name: str, tell: Callable[[str], None]) -> Callable[[str], None]:
    return lambda text: tell(f"{name}: {text}")


def density_of_mixtures(
    folder: Path,
    names: Sequence[str],
    networks: int,
    limits: LeafSearch = LeafSearch(),
    results: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, MixtureOutcome]:
    """Mixtures of a given number of networks, or as many as the time allows; nothing is selected on valid or test.

    Those already in the results file are not repeated, others are added to it.
    """
    for name in names:
        for part in PARTS:
            part_file(folder, name, part)
    known = {} if results is None or not results.exists() else _read(results, _MIXTURES, MixtureOutcome)
    for name in names:
        if name not in known or (known[name].asked, known[name].limit) != (networks, limits.seconds):
            known[name] = _mixed(*read_parts(folder, name), networks, limits, _naming(name, tell))
            if results is not None:
                write_whole(results, results_text(known, _MIXTURES).encode())
    return {name: known[name] for name in names}


class _TimeIsUp(Exception):
    """The time for a data set is used up."""


def _mixed(
    train: Table, valid: Table, test: Table, networks: int, limits: LeafSearch, tell: Callable[[str], None]
) -> MixtureOutcome:
    began = time.process_time()
    under_way = start_mixture(train, networks, search=replace(limits, seconds=None))

    def progress(mixture: MixtureRun) -> None:
        tell(mixture.describe())
        if limits.seconds is not None and time.process_time() - began > limits.seconds and mixture.n_steps > 0:
            raise _TimeIsUp

    with suppress(_TimeIsUp):
        under_way.run(progress)
    mixture = under_way.network
    seconds = time.process_time() - began
    on_valid, on_test = (float(mixture.log_probabilities(cases).mean()) for cases in (valid, test))
    learned = {key: mixture.learned[key] for key in CHOSEN}
    return MixtureOutcome(
        train.n_cases, train.n_variables, learned, on_valid, on_test, seconds, networks, limits.seconds
    )


def mixture_report(outcomes: Mapping[str, MixtureOutcome]) -> Report:
    """Mixtures beside the published results."""
    columns = tuple(DENSITY_SOURCES)
    heads = ("set", "variables", "train", "networks", "trees pay", "leaves are", "leaves", "seconds", "unseen")
    rows = []
    for name, outcome in outcomes.items():
        chosen = outcome.chosen
        row = [name, f"{outcome.variables:,}", f"{outcome.cases:,}", f"{chosen['networks']}"]
        row += [chosen["structure_prior"], chosen["leaves_chosen"], f"{chosen['leaves']:,}", f"{outcome.seconds:.0f}"]
        row += [f"{chosen['mean_log_probability_unseen']:.4f}", f"{outcome.valid:.4f}", f"{outcome.test:.4f}"]
        rows.append([*row, *(f"{value:.2f}" for value in DENSITY[name])])
    remarks = [_reached(outcomes, column, place) for place, column in enumerate(columns)]
    data = {
        "sets": {name: asdict(outcome) for name, outcome in outcomes.items()},
        "published": {name: dict(zip(columns, DENSITY[name], strict=True)) for name in outcomes},
        "sources": DENSITY_SOURCES,
    }
    title = (
        "Mean log-likelihood of test cases under mixtures, learned and chosen on train; published values to the right"
    )
    return Report(title, (*heads, "valid", "test", *columns), rows, remarks, data)


def _reached(outcomes: Mapping[str, MixtureOutcome], column: str, place: int) -> str:
    missed = [name for name, outcome in outcomes.items() if round(outcome.test, 2) < DENSITY[name][place]]
    reached = f"At least {column}, to its two decimals: {len(outcomes) - len(missed)} of {len(outcomes)}"
    return f"{reached}; not {', '.join(missed)}." if missed else f"{reached}."


def results_text(outcomes: Mapping[str, Any], kind: Mapping[str, Any] = _FORMAT) -> str:
    """The text of the results file."""
    return json.dumps({**kind} | {"sets": {name: asdict(outcome) for name, outcome in outcomes.items()}}, indent=1)


def read_results(path: Path) -> dict[str, Outcome]:
    """The outcomes in a results file."""
    return _read(path, _FORMAT, lambda **values: Outcome(**(values | {"choice": Choice(**values["choice"])})))


def _read(path: Path, kind: Mapping[str, Any], make: Callable[..., T]) -> dict[str, T]:
    try:
        document = json.loads(read_whole(path))
        if {key: document[key] for key in kind} != kind:
            raise ValueError
        return {name: make(**values) for name, values in document["sets"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"'{path}' is no file of results of this benchmark: name another one, or delete it") from None


def density_report(outcomes: Mapping[str, Outcome]) -> Report:
    """Our results beside the published ones."""
    columns = tuple(DENSITY_SOURCES)
    heads = ("set", "variables", "train", "search", "κ", "smoothing", "leaves", "arcs", "seconds", "all searches s")
    rows = []
    for name, outcome in outcomes.items():
        choice = outcome.choice
        row = [name, f"{outcome.variables:,}", f"{outcome.cases:,}", f"{choice.operators} {choice.schedule}"]
        row += [f"{choice.kappa:g}", f"{choice.smoothing:g}", f"{choice.leaves:,}", f"{choice.arcs:,}"]
        row += [
            f"{choice.learning_seconds:.2f}",
            f"{outcome.seconds:.0f}",
            f"{choice.valid:.4f}",
            f"{outcome.test:.4f}",
        ]
        rows.append([*row, *(f"{value:.2f}" for value in DENSITY[name])])
    winmine = {name: DENSITY[name][columns.index("WinMine")] for name in outcomes}
    reached = [name for name, outcome in outcomes.items() if round(outcome.test, 2) >= winmine[name]]
    better = [name for name, outcome in outcomes.items() if outcome.test > winmine[name] * (1 - CLEARLY)]
    missed = [name for name in outcomes if name not in reached]
    remarks = [
        f"At least WinMine's test value, to its two decimals: {len(reached)} of {len(outcomes)}"
        + (f"; not {', '.join(missed)}." if missed else "."),
        f"Better than it by more than {CLEARLY:.1%}: {len(better)} ({', '.join(better) or 'none'}).",
    ]
    data = {
        "sets": {name: asdict(outcome) for name, outcome in outcomes.items()},
        "published": {name: dict(zip(columns, DENSITY[name], strict=True)) for name in outcomes},
        "sources": DENSITY_SOURCES,
    }
    title = "Mean log-likelihood of test cases, learned on train and chosen on valid; published values to the right"
    return Report(title, (*heads, "valid", "test", *columns), rows, remarks, data)
