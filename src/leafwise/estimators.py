"""Networks as estimators of scikit-learn: two classifiers and a density. The only door to scikit-learn, an extra.

Knows how data are read, how networks are learned, and what is asked of them. All three take the same arguments:

`operators`, `schedule`, `prior`, `structure_prior`, `constraints` as in `learn` and `Greedy`; `max_parents` and
`max_leaves` as in `Constraints`; `search`, another search than the greedy one, with operators and schedule of its own.

`bins`: "auto" cuts each column of numbers with many distinct ones into 2 to 8 bins, about the cube root of the number
of cases; a number into so many; a mapping {"age": 8} these columns alone; None cuts none: every value is a state.
`binning` is "quantile" or "uniform". The cuts are in `network_.variables`. Where a column has few numbers, each is a
state, and a new number counts as the nearest of them. Categorical and text columns are kept as they are, their labels
being the states, even if they spell numbers.

`variables`: the states and cuts of the features, where they are known beforehand (`leafwise.read(frame).variables`).
A label that comes up in new cases only is an error; in cross-validation this is the way to declare rare ones.

`missing`: what NaN, None and empty cells are. "error" refuses them, "state" makes them a state of their own, and "drop"
leaves such cases out when fitting. A new case may lack what no fitted case lacked: `NetworkClassifier` and
`NetworkDensity` sum over what the cell may hold; `DecisionGraphClassifier`, which has no distribution of the features,
refuses it.

Weights of cases are not supported: counts are whole numbers, and so `fit` has no argument `sample_weight`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin
    from sklearn.utils import check_consistent_length, check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "leafwise.estimators needs the package scikit-learn, which is not installed: pip install 'leafwise[sklearn]'."
    ) from None

from leafwise.binning import number_label
from leafwise.constraints import Constraints
from leafwise.encoding import read
from leafwise.features import read_features
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.sampling import sample
from leafwise.learner import DEFAULT_STRUCTURE_PRIOR, learn
from leafwise.network import Network
from leafwise.search.greedy import Greedy
from leafwise.search.under_way import Settings
from leafwise.table import Table, Variable, code_type

Floats = NDArray[np.float64]
_MISSING_CHOICES = ("error", "state", "drop")


@dataclass(eq=False, repr=False, kw_only=True)
class DecisionGraphClassifier(ClassifierMixin, BaseEstimator):
    """One decision graph for p(class | features), as in Section 5 of the paper; `network_` holds it, as its last node.

    The arguments are described in `leafwise.estimators`.

    >>> X = [["red", "round"], ["red", "square"], ["blue", "round"], ["blue", "square"]] * 10
    >>> classifier = DecisionGraphClassifier().fit(X, ["stop", "stop", "go", "go"] * 10)
    >>> classifier.predict([["red", "square"], ["blue", "square"]]).tolist()
    ['stop', 'go']
    >>> classifier.predict_proba([["red", "square"]]).round(3).tolist()
    [[0.045, 0.955]]
    """

    operators: str = "CBM"
    schedule: str = "splits-first"
    search: Settings | None = None
    prior: str = "uniform"
    structure_prior: str = DEFAULT_STRUCTURE_PRIOR
    constraints: Constraints | None = None
    max_parents: int | None = None
    max_leaves: int | None = None
    bins: str | int | Mapping[str, int] | None = "auto"
    binning: str = "quantile"
    variables: Sequence[Variable] | None = None
    missing: str = "error"

    def fit(self, X: Any, y: ArrayLike) -> Self:
        table = _labelled_cases(self, X, y)
        self.network_ = _learned(self, table, target=table.names[-1])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return _likeliest(self, X)

    def predict_proba(self, X: Any) -> Floats:
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        return _log_posterior(self, X)

    def __sklearn_tags__(self) -> Any:
        return _tagged(super().__sklearn_tags__(), self.missing)


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkClassifier(ClassifierMixin, BaseEstimator):
    """p(class | everything else) in a network over the features and the class, whose variable is the last.

    The arguments are described in `leafwise.estimators`. Where features are missing, the answer is the exact one given
    the others.

    >>> X = np.array([["red", "round"], ["red", "square"], ["blue", "round"], ["blue", "square"]] * 10)
    >>> classifier = NetworkClassifier(missing="drop").fit(X, ["stop", "stop", "go", "go"] * 10)
    >>> classifier.predict_proba(np.array([["red", None], [None, None]])).round(3).tolist()
    [[0.045, 0.955], [0.5, 0.5]]
    """

    operators: str = "CBM"
    schedule: str = "splits-first"
    search: Settings | None = None
    prior: str = "uniform"
    structure_prior: str = DEFAULT_STRUCTURE_PRIOR
    constraints: Constraints | None = None
    max_parents: int | None = None
    max_leaves: int | None = None
    bins: str | int | Mapping[str, int] | None = "auto"
    binning: str = "quantile"
    variables: Sequence[Variable] | None = None
    missing: str = "error"

    def fit(self, X: Any, y: ArrayLike) -> Self:
        self.network_ = _learned(self, _labelled_cases(self, X, y))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        return _likeliest(self, X)

    def predict_proba(self, X: Any) -> Floats:
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        return _log_posterior(self, X)

    def __sklearn_tags__(self) -> Any:
        return _tagged(super().__sklearn_tags__(), self.missing)


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkDensity(DensityMixin, BaseEstimator):
    """A network as a distribution of cases. Of a number, it is the bin that has a probability: keep bins to compare.

    The arguments are described in `leafwise.estimators`.

    >>> X = np.array([["red", "round"], ["blue", "square"]] * 20)
    >>> density = NetworkDensity().fit(X)
    >>> np.exp(density.score_samples([["red", "round"], ["red", "square"]])).round(3).tolist()
    [0.477, 0.023]
    >>> density.sample(2, random_state=0).tolist()
    [['red', 'round'], ['red', 'round']]
    """

    operators: str = "CBM"
    schedule: str = "splits-first"
    search: Settings | None = None
    prior: str = "uniform"
    structure_prior: str = DEFAULT_STRUCTURE_PRIOR
    constraints: Constraints | None = None
    max_parents: int | None = None
    max_leaves: int | None = None
    bins: str | int | Mapping[str, int] | None = "auto"
    binning: str = "quantile"
    variables: Sequence[Variable] | None = None
    missing: str = "error"

    def fit(self, X: Any, y: None = None) -> Self:
        self.network_ = _learned(self, _kept(_fitted_cases(self, X), self.missing))
        return self

    def score_samples(self, X: Any) -> Floats:
        """The natural log of each case's probability."""
        check_is_fitted(self)
        return log_probabilities(self.network_, _new_cases(self, X, self.network_.variables))

    def score(self, X: Any, y: None = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.object_]:
        """Cases drawn, as labels of states: of bins, those in `network_.variables`; of a missing cell, None."""
        check_is_fitted(self)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        drawn = sample(self.network_, n_samples, seed)
        pairs = zip(self.network_.variables, drawn.codes, strict=True)
        return np.stack([_labels(variable)[codes] for variable, codes in pairs], axis=1)

    def __sklearn_tags__(self) -> Any:
        return _tagged(super().__sklearn_tags__(), self.missing)


def _tagged(tags: Any, missing: str) -> Any:
    tags.input_tags.categorical = True
    tags.input_tags.string = True
    tags.input_tags.allow_nan = missing != "error"
    return tags


def _labels(variable: Variable) -> NDArray[np.object_]:
    return np.array([*variable.labels[: variable.n_states - variable.missing], *[None] * variable.missing], np.object_)


# Learning


def _learned(estimator: Any, table: Table, target: str | None = None) -> Network:
    limits = {name: getattr(estimator, name) for name in ("max_parents", "max_leaves")}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return learn(
        table,
        target=target,
        search=_search(estimator),
        prior=estimator.prior,
        structure_prior=estimator.structure_prior,
        constraints=replace(estimator.constraints or Constraints(), **given),
    )


def _search(estimator: Any) -> Settings:
    greedy = Greedy(estimator.operators, estimator.schedule)
    if estimator.search is None:
        return greedy
    if greedy != Greedy():
        raise ValueError(
            f"search={estimator.search!r} was given with operators={greedy.operators!r} and "
            f"schedule={greedy.schedule!r}, which it does not use: give these to the search, or leave it out"
        )
    search: Settings = estimator.search
    return search


# Cases


def _labelled_cases(estimator: Any, X: Any, y: ArrayLike) -> Table:
    """The cases to learn a classifier from; the class is the last variable."""
    labels = validate_data(estimator, y=y)
    check_classification_targets(labels)
    table = _fitted_cases(estimator, X)
    check_consistent_length(table.codes[0], labels)
    estimator.classes_, states = np.unique(labels, return_inverse=True)
    name = str(getattr(y, "name", None) or "class")
    while name in table.names:
        name += "_"
    variable = Variable(name, tuple(map(_class_label, estimator.classes_.tolist())))
    return _kept(_with_class(table, variable, states), estimator.missing)


def _class_label(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).lower()
    return number_label(label) if isinstance(label, float) else str(label)


def _with_class(table: Table, variable: Variable, states: NDArray[Any]) -> Table:
    variables = (*table.variables, variable)
    kind = code_type(variables)
    return Table(variables, np.concatenate([table.codes.astype(kind), states[None].astype(kind)]))


def _fitted_cases(estimator: Any, X: Any) -> Table:
    """All cases to fit, missing cells as a state."""
    if estimator.missing not in _MISSING_CHOICES:
        raise ValueError(f"missing={estimator.missing!r} is not known: use 'error', 'state' or 'drop'")
    X = _checked(estimator, X, reset=True)
    if estimator.variables is not None:
        return _known_cases(X, estimator.variables, estimator.missing)
    return read_features(X, estimator.bins, estimator.binning, "error" if estimator.missing == "error" else "state")


def _kept(table: Table, missing: str) -> Table:
    """The cases to learn from: all of them, or those without a missing cell, and then no state for such cells."""
    if missing != "drop":
        return table
    last = np.array([[variable.n_states - 1 if variable.missing else -1] for variable in table.variables])
    kept = (table.codes != last).all(axis=0)
    variables = tuple(
        replace(variable, labels=variable.labels[:-1], missing=False) if variable.missing else variable
        for variable in table.variables
    )
    return Table(variables, np.ascontiguousarray(table.codes[:, kept], dtype=code_type(variables)))


def _new_cases(estimator: Any, X: Any, variables: Sequence[Variable]) -> Table:
    return _known_cases(_checked(estimator, X, reset=False), variables, estimator.missing)


def _known_cases(X: Any, variables: Sequence[Variable], missing: str) -> Table:
    return read(X, variables=variables, missing="error" if missing == "error" else "unknown")


def _checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as scikit-learn wants it checked: a frame whose columns have names as it is, anything else as an array."""
    if hasattr(X, "__arrow_c_stream__"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if hasattr(estimator, "feature_names_in_"):
            return X
    array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    if estimator.missing == "error" and array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError("X has cells that are NaN: pass missing='state' to make missing a state, or missing='drop'")
    return array


# Predictions


def _likeliest(estimator: Any, X: Any) -> NDArray[Any]:
    best = _log_posterior(estimator, X).argmax(axis=1)
    labels: NDArray[Any] = estimator.classes_[best]
    return labels


def _log_posterior(estimator: Any, X: Any) -> Floats:
    """log p(class | features): the log probabilities of each case with the class set to each state, normalised."""
    check_is_fitted(estimator)
    network: Network = estimator.network_
    *features, label = network.variables
    table = _new_cases(estimator, X, features)
    joint = np.empty((table.n_cases, label.n_states))
    for state in range(label.n_states):
        completed = _with_class(table, label, np.full(table.n_cases, state))
        joint[:, state] = log_probabilities(network, completed)
    return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)
