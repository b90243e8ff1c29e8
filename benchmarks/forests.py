"""Forests of decision graphs, and mixtures of networks as classifiers, beside scikit-learn's forests and boosting.

The data sets, folds and states are those of the benchmark `classifiers`, and two more are drawn from published
networks; as many of the five folds are used as are needed to test 1,000 cases. The calibration error is the mean
distance between the largest probability and its relative frequency of being right, over fifteen groups of equal size.
One thread; seconds are processor time, the least of several fits that take turns.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.classifiers import LEAST, Problem, boosting, folds, problem
from benchmarks.report import Report, main
from leafwise.inference.sampling import sample
from leafwise.search.leaf_search import LeafSearch

TABLES = ("adult_train", "mushroom", "nursery", "car", "splice", "promoters")
DRAWN = {"child": ("Disease", 2_000), "insurance": ("PropCost", 2_000)}
GROUPS = 15
ENOUGH = 1_000  # test cases
FITS, PATIENCE = 5, 30.0  # for timing: this many, as long as they take less than this many seconds in total


def drawn(name: str) -> Problem:
    """A variable of a published network as the class."""
    target, n_cases = DRAWN[name]
    cases = sample(data.network(name), n_cases, seed=1)
    at = cases.index(target)
    codes = cases.codes.astype(np.int64)
    X, y = np.delete(codes, at, axis=0).T, codes[at]
    features = tuple(variable for index, variable in enumerate(cases.variables) if index != at)
    return Problem(name, features, X, y, folds(X, y, None))


def forest(where: Problem) -> Any:
    from leafwise.estimators import DecisionGraphForestClassifier

    return DecisionGraphForestClassifier(search=LeafSearch(threads=1), variables=where.declared)


def mixture(networks: int, where: Problem) -> Any:
    from leafwise.estimators import NetworkClassifier

    return NetworkClassifier(networks=networks, search=LeafSearch(threads=1), variables=where.declared)


def random_forest(where: Problem) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    labels = [index for index, variable in enumerate(where.features) if not variable.cuts]
    states = [np.arange(where.features[index].n_states) for index in labels]
    columns = make_column_transformer((OneHotEncoder(categories=states), labels), remainder="passthrough")
    return make_pipeline(columns, RandomForestClassifier(random_state=1))


OURS: dict[str, Callable[[Problem], Any]] = {
    "DecisionGraphForest": forest,
    "NetworkClassifier(networks=10)": partial(mixture, 10),
    "NetworkClassifier(networks=36)": partial(mixture, 36),
}
OTHERS: dict[str, Callable[[Problem], Any]] = {"RandomForest": random_forest, "HistGradientBoosting": boosting}


def calibration_error(probabilities: np.ndarray, y: np.ndarray) -> float:
    """The mean distance between the largest probabilities and their relative frequencies of being right."""
    order = np.argsort(probabilities.max(axis=1), kind="stable")
    right = probabilities.argmax(axis=1) == y
    groups = np.array_split(order, GROUPS)
    gaps = [abs(probabilities[group].max(axis=1).mean() - right[group].mean()) for group in groups if len(group)]
    return float(np.mean(gaps))


@dataclass
class Results:
    """The predictions of a classifier for the test cases so far, the true classes, and the seconds to fit it."""

    probabilities: list[np.ndarray] = field(default_factory=list)
    y: list[np.ndarray] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def cells(self) -> list[str]:
        p, y = np.concatenate(self.probabilities), np.concatenate(self.y)
        loss = -np.log(np.maximum(p[np.arange(len(y)), y], LEAST)).mean()
        accuracy = (p.argmax(axis=1) == y).mean()
        numbers = (loss, accuracy, calibration_error(p, y))
        return [*(f"{number:.4f}" for number in numbers), f"{min(self.seconds):.2f}"]


def results(where: Problem, ways: dict[str, Callable[[Problem], Any]], fits: int) -> dict[str, Results]:
    """Fit and test classifiers on each fold, in turn; for timing up to `fits` times, while there is time."""
    found = {name: Results() for name in ways}
    enough = 1 + int(np.searchsorted(np.cumsum([len(test) for _, test in where.folds]), ENOUGH))
    n_folds = min(enough, len(where.folds))
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    threadpool_limits(1)
    for number in range(max(n_folds, fits)):
        if number >= n_folds and sum(sum(own.seconds) for own in found.values()) > PATIENCE:
            break
        train, test = where.folds[number % n_folds]
        for name, make in ways.items():
            classifier, began = make(where), time.process_time()
            classifier.fit(where.X[train], where.y[train])
            found[name].seconds.append(time.process_time() - began)
            if number < n_folds:
                probabilities = np.zeros((len(test), where.y.max() + 1))
                probabilities[:, classifier.classes_] = classifier.predict_proba(where.X[test])
                found[name].probabilities.append(probabilities)
                found[name].y.append(where.y[test])
    return found


def summary(rows: list[list[str]]) -> list[str]:
    """On how many data sets each of ours is at least as good as both of scikit-learn's, to the digits of the table."""
    told = []
    of = {(row[0], row[1]): [float(cell) for cell in row[2:]] for row in rows}
    sets = list(dict.fromkeys(row[0] for row in rows))
    for own in OURS:
        n, every = np.zeros(4, int), []
        for name in sets:
            loss, accuracy, error, seconds = (np.array(of[name, own]) - [of[name, other] for other in OTHERS]).T
            holds = np.array([(loss <= 0).all(), (accuracy >= 0).all(), (error <= 0).all(), (seconds <= 0).all()])
            n += [holds[:2].all(), *holds[[0, 2, 3]]]
            every += [name] if holds.all() else []
        told.append(
            f"{own}: log loss and accuracy at least those of both on {n[0]} of {len(sets)}, log loss alone on {n[1]}; "
            f"better calibrated on {n[2]}, as fast to fit on {n[3]}; all of these on {len(every)} "
            f"({', '.join(every) or 'none'})."
        )
    return told


def measure() -> Iterator[Report]:
    """A row per data set and classifier."""
    small = problem("promoters")
    for make in OURS.values():  # compile
        make(small).fit(small.X, small.y)
    heads = ("data", "classifier", "log loss", "accuracy", "calibration error", "seconds to fit")
    table = []
    for name in (*TABLES, *DRAWN):
        where = drawn(name) if name in DRAWN else problem(name)
        for way, own in results(where, OURS | OTHERS, FITS).items():
            table.append([name, way, *own.cells()])
            print(*table[-1], file=sys.stderr, flush=True)
    yield Report("Forests and mixtures as classifiers", heads, table, summary(table))


if __name__ == "__main__":
    main(measure, __doc__)
