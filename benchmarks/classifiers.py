"""The accuracy of one decision graph, and of a network, beside other classifiers.

Each is used with its defaults, with the same states for all: numbers, which only adult has, are cut into eight bins by
the training cases, and missing cells are a state. Trees that split on numbers alone get one column per state; the order
of bins is available to those that can use it. adult comes with test cases; the others are cut into five folds. The two
cases of nursery that are a class by themselves are omitted: they mislead boosting. One thread.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import data
from benchmarks.report import Report, check, main
from leafwise.data.table import Table, Variable
from leafwise.search.leaf_search import LeafSearch

os.environ["OMP_NUM_THREADS"] = "1"  # before scikit-learn is imported

FOLDS, SEED = 5, 1
CLASS = {"adult_train": "income"}  # the class column is called "class" elsewhere
LEAST = 1e-15  # a probability of 0 counts as this much


@dataclass(frozen=True)
class Problem:
    """The codes of the features, the class, and the folds of training and test cases."""

    name: str
    features: tuple[Variable, ...]
    X: np.ndarray
    y: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]

    @property
    def declared(self) -> tuple[Variable, ...]:
        """The features, with codes as labels."""
        return tuple(
            Variable(each.name, tuple(map(str, range(each.n_states))), ordered=each.ordered and not each.missing)
            for each in self.features
        )


@dataclass(frozen=True)
class Classifier:
    """A name, how to make one for a problem, and the leaves and parameters of a fitted one."""

    name: str
    make: Callable[[Problem], Any]
    size: Callable[[Any, Problem], tuple[int, int]]


def problem(name: str) -> Problem:
    """A data set as a classification problem."""
    cases = data.table(name)
    tests = data.test_table(name, cases)
    codes = cases.codes if tests is None else np.concatenate([cases.codes, tests.codes], axis=1)
    at = cases.index(CLASS.get(name, "class"))
    codes = codes[:, np.bincount(codes[at])[codes[at]] >= FOLDS].astype(np.int64)
    kept = [index for index, variable in enumerate(cases.variables) if index != at and variable.n_states > 1]
    X, y, features = codes[kept].T, codes[at], tuple(cases.variables[index] for index in kept)
    return Problem(name, features, X, y, folds(X, y, None if tests is None else cases))


def folds(X: np.ndarray, y: np.ndarray, train: Table | None) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training and test cases: as provided with the data set, or stratified folds."""
    from sklearn.model_selection import StratifiedKFold

    if train is not None:
        return [(np.arange(train.n_cases), np.arange(train.n_cases, len(y)))]
    return list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(X, y))


# The classifiers


def one_graph(where: Problem) -> Any:
    from leafwise.estimators import DecisionGraphClassifier

    return DecisionGraphClassifier(search=LeafSearch(threads=1), variables=where.declared)


def chosen_graph(where: Problem) -> Any:
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    searches = [LeafSearch(operators, threads=1) for operators in ("CBIM", "BM", "CBI")]
    kappas = [f"kappa:{kappa}" for kappa in (0.001, 0.01, 0.1, 0.3)]
    grid = {"search": searches, "structure_prior": ["auto", *kappas, "uniform"]}
    inner = StratifiedKFold(3, shuffle=True, random_state=SEED)  # car and nursery are sorted
    return GridSearchCV(one_graph(where), grid, scoring="neg_log_loss", cv=inner)


def chosen_size(fitted: Any, where: Problem) -> tuple[int, int]:
    return network_size(fitted.best_estimator_, where)


def network(where: Problem) -> Any:
    from leafwise.estimators import NetworkClassifier

    return NetworkClassifier(search=LeafSearch(threads=1), variables=where.declared)


def network_size(fitted: Any, where: Problem) -> tuple[int, int]:
    return fitted.network_.n_leaves, fitted.network_.n_parameters


def tree(where: Problem) -> Any:
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    labels = [index for index, variable in enumerate(where.features) if not variable.cuts]
    states = [np.arange(where.features[index].n_states) for index in labels]
    columns = make_column_transformer((OneHotEncoder(categories=states), labels), remainder="passthrough")
    return make_pipeline(columns, DecisionTreeClassifier(random_state=SEED))


def tree_size(fitted: Any, where: Problem) -> tuple[int, int]:
    n_leaves = fitted[-1].get_n_leaves()
    return n_leaves, n_leaves * (len(fitted.classes_) - 1)


def naive_bayes(where: Problem) -> Any:
    from sklearn.naive_bayes import CategoricalNB

    return CategoricalNB(min_categories=[variable.n_states for variable in where.features])


def naive_bayes_size(fitted: Any, where: Problem) -> tuple[int, int]:
    n_classes = len(fitted.classes_)
    free = sum(variable.n_states - 1 for variable in where.features)
    return 1 + n_classes * len(where.features), n_classes - 1 + n_classes * free


def boosting(where: Problem) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    labels = [not variable.cuts for variable in where.features]
    return HistGradientBoostingClassifier(categorical_features=labels, random_state=SEED)


def boosting_size(fitted: Any, where: Problem) -> tuple[int, int]:
    n_leaves = sum(tree.get_n_leaf_nodes() for trees in fitted._predictors for tree in trees)
    return n_leaves, n_leaves


def agrum(method: str) -> Callable[[Problem], Any]:
    def make(where: Problem) -> Any:
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        types = DiscreteTypeProcessor("NoDiscretization", None)
        for variable in where.declared:
            states = "{" + "|".join(variable.labels) + "}"
            types.setDiscretizationParameters(variable.name, "NoDiscretization", states)
        return OnFrames(BNClassifier(learningMethod=method, type_processor=types), where)

    return make


class OnFrames:
    """pyAgrum's classifier, which identifies variables by the columns of a frame."""

    def __init__(self, classifier: Any, where: Problem) -> None:
        self.classifier, self.names = classifier, [variable.name for variable in where.features]

    def fit(self, X: np.ndarray, y: np.ndarray) -> "OnFrames":
        self.classifier.fit(self.frame(X), y.astype(str))
        self.classes_ = np.array(self.classifier.classes_).astype(np.int64)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classifier.predict_proba(self.frame(X)))

    def frame(self, X: np.ndarray) -> Any:
        import pandas

        return pandas.DataFrame(X.astype(str), columns=self.names)


def agrum_size(fitted: OnFrames, where: Problem) -> tuple[int, int]:
    learned = fitted.classifier.bn_
    tables = [learned.cpt(node) for node in learned.nodes()]
    return sum(table.domainSize() // table.variable(0).domainSize() for table in tables), learned.dim()


def classifiers() -> list[Classifier]:
    """All classifiers; pyAgrum's if it is installed."""
    found = [
        Classifier("DecisionGraphClassifier", one_graph, network_size),
        Classifier("the same, by grid search", chosen_graph, chosen_size),
        Classifier("NetworkClassifier", network, network_size),
        Classifier("DecisionTreeClassifier", tree, tree_size),
        Classifier("CategoricalNB", naive_bayes, naive_bayes_size),
        Classifier("HistGradientBoosting", boosting, boosting_size),
    ]
    try:
        import pyagrum
    except ModuleNotFoundError:
        return found
    pyagrum.setNumberOfThreads(1)
    return [*found, *(Classifier(f"pyAgrum, {method}", agrum(method), agrum_size) for method in ("MIIC", "TAN"))]


# Measuring


@dataclass(frozen=True)
class Outcome:
    """The results of one classifier: over all test cases, and the means over the folds; seconds of processor time."""

    log_loss: float
    accuracy: float
    n_leaves: float
    n_parameters: float
    seconds: float


def outcome(which: Classifier, where: Problem) -> Outcome:
    """Fit and test a classifier on each fold."""
    right, losses, sizes, seconds = [], [], [], []
    for train, test in where.folds:
        classifier, began = which.make(where), time.process_time()
        classifier.fit(where.X[train], where.y[train])
        seconds.append(time.process_time() - began)
        sizes.append(which.size(classifier, where))
        found = classifier.predict_proba(where.X[test])
        check(bool(np.allclose(found.sum(axis=1), 1)), f"{which.name} on {where.name}: probabilities do not sum to one")
        probabilities = np.zeros((len(test), where.y.max() + 1))
        probabilities[:, classifier.classes_] = found
        right.append(probabilities.argmax(axis=1) == where.y[test])
        losses.append(-np.log(np.maximum(probabilities[np.arange(len(test)), where.y[test]], LEAST)))
    n_leaves, n_parameters = np.mean(sizes, axis=0)
    accuracy, log_loss = np.concatenate(right).mean(), np.concatenate(losses).mean()
    return Outcome(log_loss, accuracy, n_leaves, n_parameters, float(np.mean(seconds)))


def measure() -> Iterator[Report]:
    """A row for each data set and classifier."""
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError:
        raise data.NoData("scikit-learn is not installed: pip install 'leafwise[sklearn]'") from None
    outcome(Classifier("compile", one_graph, network_size), problem("promoters"))
    heads = ["data", "classifier", "log-loss", "accuracy %", "leaves", "parameters", "fit s"]
    rows = []
    for name in data.TABLES:
        where = problem(name)
        for which in classifiers():
            found = outcome(which, where)
            sizes = [f"{found.n_leaves:,.0f}", f"{found.n_parameters:,.0f}"]
            rows.append([name, which.name, f"{found.log_loss:.4f}", f"{found.accuracy:.2%}"[:-1], *sizes])
            rows[-1].append(f"{found.seconds:.3f}")
    yield Report("Test cases: log-loss and accuracy; models: size, and processor seconds to fit one", heads, rows)


if __name__ == "__main__":
    main(measure, __doc__)
