"""Comparison of methods for missing data: all get the same tables, from which cells were removed.

Each method produces a network. It is evaluated by the log probability of held-out complete cases, and of the true
values of the missing cells given the observed ones of their rows. Imputers of scikit-learn get the states as numbers,
and their results are rounded to states; KNNImputer searches neighbours among 10,000 rows, a random sample of larger
tables. pyAgrum's EM gets our structure, as complete tables; it takes minutes with many missing cells or rows, and is
then run only on request. All others have the leaves that predict best, "stacked", and also plain ones.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import read
from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.formats.agrum import from_agrum, to_agrum
from leafwise.formats.files import load
from leafwise.inference.exact import Limits, TooCostly
from leafwise.inference.holes import Holes
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.sampling import sample
from leafwise.learner import learn
from leafwise.network import Network
from leafwise.report.tables import Report
from leafwise.stacking import stacked

Codes = NDArray[Any]
Holed = NDArray[np.bool_]
Found = tuple[Network, Network]  # with plain leaves, and with stacked ones
SHARES = (0.05, 0.1, 0.3, 0.5)
DEPENDS = "depends"
BINARY = ("nltcs", "msnbc", "dna", "tretail")
SETS: dict[str, int] = {
    "alarm": 1000,
    "alarm-10000": 10_000,
    "child": 5000,
    "insurance": 5000,
    "adult": 40_000,
    "mushroom": 8000,
    **dict.fromkeys(BINARY, 300_000),
}
_TESTED, _ASKED = 5000, 300  # held-out cases, and rows with missing cells whose true values are scored
_SEED = 2024  # of the removed cells, different from those of samples
_LIMITS = Limits(operations=2e7)
_FEW, _FEW_A_ROW, _FEW_ROWS = 0.1, 8, 5000  # with more missing cells, more in a row, or more rows, pyAgrum's EM is slow
_DONORS = 10_000  # rows among which KNNImputer searches neighbours


@dataclass(frozen=True)
class Cut:
    """A table with removed cells, their true values, and held-out cases."""

    complete: Table
    holes: Holed
    held_back: Table

    def shown(self) -> Table:
        """The table with a state for missing cells."""
        variables = tuple(variable.with_missing for variable in self.complete.variables)
        codes = np.where(self.holes, self.complete.n_states[:, None], self.complete.codes)
        return Table(variables, codes.astype(np.uint16 if max(self.complete.n_states) > 255 else np.uint8))

    def filled(self, codes: Codes) -> Table:
        """The cells imputed by another method, as states."""
        most = self.complete.n_states[:, None] - 1
        states = np.clip(np.rint(codes), 0, most).astype(self.complete.codes.dtype)
        return Table(self.complete.variables, np.where(self.holes, states, self.complete.codes))

    def numbers(self) -> NDArray[np.float64]:
        """The states as numbers, one row per case, NaN for missing cells."""
        return np.where(self.holes, np.nan, self.complete.codes).T


def learned_from(table: Table, infers: bool = False) -> Found:
    """The networks learned from a table; missing cells are inferred, or are a state."""
    plain = learn(table, missing="infer") if infers else learn(table)
    return plain, stacked(plain, table)


def _dropped(cut: Cut) -> Found | None:
    whole = ~cut.holes.any(axis=0)
    if not whole.any():
        return None
    return learned_from(Table(cut.complete.variables, np.ascontiguousarray(cut.complete.codes[:, whole])))


def most_common(cut: Cut) -> Found:
    """Imputation of the most common state."""
    pairs = zip(cut.complete.codes, cut.holes, strict=True)
    common = [np.bincount(codes[~holes]).argmax() if not holes.all() else 0 for codes, holes in pairs]
    return learned_from(cut.filled(np.repeat(np.array(common)[:, None], cut.complete.n_cases, axis=1)))


def iterative(cut: Cut) -> Found:
    """Imputation by scikit-learn's IterativeImputer."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged
        imputer = IterativeImputer(max_iter=3, n_nearest_features=10, keep_empty_features=True, random_state=0)
        return learned_from(cut.filled(imputer.fit_transform(cut.numbers()).T))


def nearest(cut: Cut) -> Found:
    """Imputation by scikit-learn's KNNImputer; rows with equal observed cells are imputed once."""
    from sklearn.impute import KNNImputer

    numbers = cut.numbers()
    donors = np.sort(np.random.default_rng(_SEED).permutation(len(numbers))[:_DONORS])
    _, first, kind = np.unique(cut.shown().codes, axis=1, return_index=True, return_inverse=True)
    filled = KNNImputer(keep_empty_features=True).fit(numbers[donors]).transform(numbers[first])
    return learned_from(cut.filled(filled[kind.ravel()].T))


def _agrum(cut: Cut, ours: Network) -> Found | None:
    """Parameters by pyAgrum's EM, with a prior case in each cell, for our structure."""
    import pyagrum

    plain = replace_names(ours)
    try:
        model = to_agrum(plain, most_cells=2**18)
    except ValueError:
        return None  # the table of some node is too large
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        rows = [",".join(plain.names)]
        for case, lacks in zip(cut.complete.codes.T.tolist(), cut.holes.T.tolist(), strict=True):
            rows.append(",".join("?" if gone else f"s{code}" for code, gone in zip(case, lacks, strict=True)))
        file.write_text("\n".join(rows) + "\n")
        learner = pyagrum.BNLearner(str(file), model, ["?"])
        learner.useSmoothingPrior(1.0)
        learner.useEM(1e-3)
        found = from_agrum(learner.learnParameters(model.dag()))
    order = [found.names.index(name) for name in plain.names]
    if order != list(range(len(order))):
        raise ValueError("pyAgrum changed the order of the variables, which this comparison relies on: update it.")
    network = Network(ours.variables, found.nodes)
    return network, network


def replace_names(network: Network) -> Network:
    """The network with names and labels that all file formats accept."""
    variables = tuple(
        replace(variable, name=f"v{k}", labels=tuple(f"s{s}" for s in range(variable.n_states)), cuts=(), missing=False)
        for k, variable in enumerate(network.variables)
    )
    return Network(variables, network.nodes)


LINES = {"of_cases": "cases", "of_holes": "holes", "of_cases_plain": "cases, plain leaves"}
WAYS = (
    "rows dropped", "a state", "most common", "IterativeImputer", "KNNImputer", "pyAgrum EM", "infer", "complete",
)  # fmt: skip


def _networks(cut: Cut, slow: bool, tell: Callable[[str], None]) -> Iterator[tuple[str, Found | None]]:
    tell("infer")
    ours = learned_from(cut.shown(), infers=True)
    ways: dict[str, Callable[[], Found | None]] = {
        "rows dropped": lambda: _dropped(cut),
        "a state": lambda: learned_from(cut.shown()),
        "most common": lambda: most_common(cut),
        "IterativeImputer": lambda: iterative(cut),
        "KNNImputer": lambda: nearest(cut),
        "pyAgrum EM": lambda: _agrum(cut, ours[0]) if slow else None,
        "infer": lambda: ours,
        "complete": lambda: learned_from(cut.complete),
    }
    for name in WAYS:
        tell(name)
        yield name, ways[name]()


def cases(name: str, most: int, folder: Path | None, turn: int = 0) -> tuple[Table, Table]:
    """The cases to learn from, different ones each turn if there are enough, and the held-out ones; all complete."""
    n = min(SETS[name], most)
    seed = 1 if turn == 0 else 200 + turn  # 2 is the seed of the held-out cases
    if name.startswith("alarm"):
        return sample(alarm(), n, seed=seed), sample(alarm(), _TESTED, seed=2)
    if folder is None:
        raise ValueError(f"{name} is read from files: name their folder with --data-dir.")
    if name in BINARY:
        train = read(folder / "debd" / f"{name}.train.csv.gz", header=False)
        test = read(folder / "debd" / f"{name}.test.csv.gz", header=False, variables=train.variables)
    elif name == "adult":
        train = read(folder / "tables" / "adult_train.csv.gz", missing="drop")
        test = read(folder / "tables" / "adult_test.csv.gz", missing="drop", variables=train.variables)
    elif name == "mushroom":
        table = read(folder / "tables" / "mushroom.csv", missing="drop")
        places = np.random.default_rng(_SEED).permutation(table.n_cases)
        train, test = _rows(table, places[: 2 * len(places) // 3]), _rows(table, places[2 * len(places) // 3 :])
    else:
        network = load(folder / "networks" / f"{name}.bif")
        return sample(network, n, seed=seed), sample(network, _TESTED, seed=2)
    places = np.random.default_rng(_SEED).permutation(train.n_cases)
    places = places.take(range(turn * n, turn * n + min(n, len(places))), mode="wrap")
    return _rows(train, np.sort(places)), _rows(test, np.arange(min(test.n_cases, _TESTED)))


def _rows(table: Table, places: NDArray[np.int64]) -> Table:
    return Table(table.variables, np.ascontiguousarray(table.codes[:, places]))


def removed(table: Table, how: float | str, seed: int = _SEED) -> Holed:
    """Cells removed at random; or, in every other variable, far more often if another one is in its usual state."""
    random = np.random.default_rng(seed)
    if isinstance(how, float):
        return np.asarray(random.random(table.codes.shape) < how)
    order = random.permutation(table.n_variables)
    kept, cut = order[: table.n_variables // 2], order[table.n_variables // 2 :]
    share = np.zeros(table.codes.shape)
    for variable in cut.tolist():
        driver = table.codes[random.choice(kept)]
        share[variable] = np.where(driver == np.bincount(driver).argmax(), 0.45, 0.05)
    return np.asarray(random.random(share.shape) < share)


def _of_true_values(network: Network, cut: Cut) -> float | None:
    """The log p(true values | observed cells) per missing cell, over some rows; None if that is too costly."""
    rows = np.flatnonzero(cut.holes.any(axis=0))[:_ASKED]
    whole = cut.complete.codes[:, rows].astype(np.uint16)
    n_states = max(variable.n_states for variable in network.variables)
    shown = np.where(cut.holes[:, rows], n_states, whole).astype(np.uint16)
    asked = Holes(network, _LIMITS)
    try:
        gained = asked.log_probabilities(whole) - asked.log_probabilities(shown)
    except TooCostly:
        return None
    return float(gained.sum() / cut.holes[:, rows].sum())


def of_held_back(network: Network, cut: Cut) -> float:
    """The mean log probability of the held-out cases."""
    pairs = zip(network.variables, cut.held_back.variables, strict=True)
    if any(there != known for there, known in pairs):  # with a state for missing cells
        table = Table(network.variables, cut.held_back.codes)
        return float(log_probabilities(network, table).mean())
    return float(log_probabilities(network, cut.held_back).mean())


def missing_report(
    names: Sequence[str],
    most: int,
    folder: Path | None,
    slow: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """All data sets, shares of missing cells and methods, and how much of the gap to complete data ours closes."""
    unknown = [name for name in names if name not in SETS]
    if unknown:
        raise ValueError(f"there is no set {unknown[0]!r}: the sets are {', '.join(SETS)}.")
    return report([entry for name in names or SETS for entry in outcomes(name, most, folder, slow, tell)])


def outcomes(
    name: str, most: int, folder: Path | None, slow: bool, tell: Callable[[str], None] = lambda _: None
) -> Iterator[dict[str, Any]]:
    """The outcomes for one data set, reduced to a number of rows, for each share of missing cells."""
    if name == "alarm-10000" and most <= SETS["alarm"]:
        return  # the result would be the same
    train, test = cases(name, most, folder)
    for how in (*SHARES, DEPENDS):
        cut = Cut(train, removed(train, how), test)
        entry: dict[str, Any] = {"set": name, "cases": train.n_cases, "holes": how} | {key: {} for key in LINES}
        has_few = how == DEPENDS or float(how) <= _FEW
        is_fast = has_few and cut.holes.sum(axis=0).mean() <= _FEW_A_ROW and train.n_cases <= _FEW_ROWS
        for way, found in _networks(cut, slow or is_fast, partial(_tell_about, tell, f"{name}, {_text(how)}")):
            entry["of_cases"][way] = None if found is None else of_held_back(found[1], cut)
            entry["of_holes"][way] = None if found is None else _of_true_values(found[1], cut)
            entry["of_cases_plain"][way] = None if found is None else of_held_back(found[0], cut)
        yield entry


def _tell_about(tell: Callable[[str], None], about: str, what: str) -> None:
    tell(f"{about}: {what}")


def _text(how: float | str) -> str:
    return how if isinstance(how, str) else f"{how:.0%}"


def report(found: list[dict[str, Any]]) -> Report:
    """The table of outcomes; three lines for each share of missing cells."""
    rows = []
    for entry in found:
        heads = [f"{entry['set'].split('-')[0]}, {entry['cases']:,} cases", _text(entry["holes"])]
        for key, line in LINES.items():
            covered = "" if key == "of_holes" else f"{_covered(entry[key]):.0%}"
            rows.append([*heads, line, *_cells(entry[key]), covered])
            heads = ["", ""]
    heads = ["set", "holes", "mean log p of", *WAYS, "covered"]
    remarks = [text for key in ("of_cases", "of_cases_plain") for text in _remarks(found, key)]
    return Report("Holes, and ways to learn from them", heads, rows, remarks, {"rows": found})


def _remarks(found: list[dict[str, Any]], key: str) -> Iterator[str]:
    """In how many rows ours is best, where it is not, and how much of the gap it closes."""
    rivals = [way for way in WAYS if way not in ("infer", "complete")]
    lost = [e for e in found if any(_less(e[key]["infer"], e[key][way]) for way in rivals)]
    yield (
        f"By {LINES[key]} `infer` is best of all but `complete` in {len(found) - len(lost)} of {len(found)} rows"
        + (": lost are " + "; ".join(_lost(e, e[key], rivals) for e in lost) if lost else "")
        + "."
    )
    for share in (0.1, 0.3):
        shares = [_covered(e[key]) for e in found if e["holes"] == share]
        if shares:
            yield (
                f"At {share:.0%} holes it covers {min(shares):.0%} to {max(shares):.0%} of the way from `most common` "
                f"to `complete`, in the median {float(np.median(shares)):.0%}."
            )


def _covered(values: Mapping[str, float]) -> float:
    return (values["infer"] - values["most common"]) / (values["complete"] - values["most common"])


def _less(one: float, other: float | None) -> bool:
    return other is not None and one < other


def _lost(entry: dict[str, Any], values: Mapping[str, float], rivals: list[str]) -> str:
    best = max((way for way in rivals if values[way] is not None), key=lambda way: values[way])
    return f"{entry['set']} at {_text(entry['holes'])} to `{best}` by {values[best] - values['infer']:.3f}"


def _cells(values: Mapping[str, float | None]) -> list[str]:
    best = max(value for way, value in values.items() if value is not None and way != "complete") if values else 0.0
    cells = []
    for way in WAYS:
        value = values[way]
        text = "–" if value is None else f"{value:.3f}"
        cells.append(f"**{text}**" if value == best and way != "complete" else text)
    return cells
