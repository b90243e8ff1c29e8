"""The forest and networks as classifiers, with features of new cases missing at random.

The first fold of some data sets of the benchmark `forests`: everything is learned from complete cases, and a share of
the features of at most 1,000 test cases is removed. `mixture` is NetworkClassifier(networks=12,
constraints=Constraints()), in which the class is a variable like any other. One thread.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from benchmarks.classifiers import LEAST, Problem, network, problem
from benchmarks.forests import DRAWN, drawn, forest, mixture
from benchmarks.report import Report, main
from leafwise.constraints import Constraints
from leafwise.inference.exact import TooCostly

SETS, SHARES, MOST = ("nursery", "car", "child", "insurance"), (0.0, 0.1, 0.3), 1_000


def plain_mixture(where: Problem) -> Any:
    return mixture(12, where).set_params(constraints=Constraints())


WAYS: dict[str, Callable[[Problem], Any]] = {
    "DecisionGraphForest": forest,
    "NetworkClassifier(networks=12)": partial(mixture, 12),
    "mixture": plain_mixture,
    "NetworkClassifier": network,
}


def losses(where: Problem, make: Callable[[Problem], Any]) -> list[str]:
    """The log loss for each share of missing cells; an exact answer may take too long."""
    train, test = where.folds[0]
    test = test[:MOST]
    classifier, found = make(where).set_params(missing="drop").fit(where.X[train].astype(float), where.y[train]), []
    for share in SHARES:
        X = where.X[test].astype(float)
        X[np.random.default_rng(1).random(X.shape) < share] = np.nan
        own = np.searchsorted(classifier.classes_, where.y[test])
        try:
            p = classifier.predict_proba(X)[np.arange(len(own)), own]
        except TooCostly:
            found.append("refused")
        else:
            found.append(f"{-np.log(np.maximum(p, LEAST)).mean():.4f}")
    return found


def measure() -> Iterator[Report]:
    """A row per data set and share."""
    rows = []
    for name in SETS:
        where = drawn(name) if name in DRAWN else problem(name)
        found = [losses(where, make) for make in WAYS.values()]
        for share, own in zip(SHARES, zip(*found, strict=True), strict=True):
            rows.append([name, f"{share:.0%}", *own])
            print(*rows[-1], file=sys.stderr, flush=True)
    yield Report("Log loss where cells of new cases are missing", ("data", "missing", *WAYS), rows)


if __name__ == "__main__":
    main(measure, __doc__)
