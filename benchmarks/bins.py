"""Cut points chosen for the learning task, against bins of equal size: how well new cases are predicted.

The numeric tables that come with scikit-learn, and two synthetic ones; five folds. A class is predicted by one decision
graph. For the joint density, the bins of each table are compared on an equal footing: within a bin, a case is
distributed as the training cases are over 64 equal parts.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold

from benchmarks.report import Report, main
from leafwise.data.binning import cut_points
from leafwise.data.columns import open_source
from leafwise.data.features import read_features
from leafwise.data.new_data import as_known
from leafwise.estimators import DecisionGraphClassifier
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import learn

Floats = NDArray[np.float64]
FOLDS = 5


def tables() -> Iterator[tuple[str, Floats, NDArray[np.int64]]]:
    """Names, numbers and classes."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield name, *getattr(datasets, f"load_{name}")(return_X_y=True)
    random = np.random.default_rng(1)
    x = random.normal(size=(2000, 6))
    noise = random.random(2000)
    yield "sum of three", x, (noise < 1 / (1 + np.exp(-2 * (x[:, 0] + x[:, 1] - x[:, 2])))).astype(np.int64)
    either = (x[:, 0] > 0) ^ (x[:, 1] > 0.3)
    yield "one or the other", x, np.where(noise < 0.1, ~either, either).astype(np.int64)


def density(train: Floats, test: Floats, binning: str) -> float:
    """The mean log density of test cases, from a network over all columns."""
    table = read_features(train, binning=binning)
    network = learn(table)
    total = log_probabilities(network, as_known(open_source(test), table.variables, "error"))
    for variable, old, new in zip(table.variables, train.T, test.T, strict=True):
        values, counts = np.unique(old, return_counts=True)
        parts = np.array(cut_points(values, counts, 64))
        shares = np.bincount(np.searchsorted(parts, old, side="right"), minlength=len(parts) + 1) + 0.5
        bins = np.searchsorted(variable.cuts, np.append(-np.inf, parts), side="right")
        inside = np.bincount(bins, weights=shares, minlength=variable.n_states)
        place = np.searchsorted(parts, new, side="right")
        total = total + np.log(shares[place] / inside[bins[place]])
    return float(total.mean())


def measure() -> Iterator[Report]:
    """One row per table."""
    rows, wins = [], 0
    for name, x, y in tables():
        found = []
        for binning in ("quantile", "bayes"):
            scores = []
            for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=1).split(x, y):
                classifier = DecisionGraphClassifier(binning=binning).fit(x[train], y[train])
                shares = classifier.predict_proba(x[test])
                loss = log_loss(y[test], shares, labels=classifier.classes_)
                right = accuracy_score(y[test], classifier.classes_[shares.argmax(axis=1)])
                scores.append((loss, 100 * right, density(x[train], x[test], binning)))
            found.append(np.mean(scores, axis=0))
        wins += found[1][0] <= found[0][0]
        cells = [
            f"{number:.{digits}f}"
            for column, digits in ((0, 3), (1, 1), (2, 2))
            for number in (found[0][column], found[1][column])
        ]
        rows.append((name, f"{len(x):,}", str(x.shape[1]), *cells))
    heads = (
        "data",
        "cases",
        "columns",
        *(f"{what}, {how}" for what in ("log-loss", "accuracy %", "log density") for how in ("equal shares", "auto")),
    )
    remarks = [f"Classes are predicted at least as well with auto, by log-loss, on {wins} of {len(rows)} tables."]
    yield Report("New cases: bins with equal shares, and cut points towards what is learned", heads, rows, remarks)


if __name__ == "__main__":
    main(measure, __doc__)
