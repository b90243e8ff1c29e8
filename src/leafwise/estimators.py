"""Estimators for scikit-learn: three classifiers, a density and an imputer. The only module that imports it, an extra.

Knows how data are read, how networks are learned, and queries. All estimators have these arguments:

`operators`, `schedule`, `prior`, `structure_prior`, `constraints` as in `learn` and `LeafSearch`; `max_parents` and
`max_leaves` as in `Constraints`; `search`, a search other than the greedy one, with operators and schedule of its own.

`bins`: "auto" bins columns with many distinct numbers, and determines the number of bins from the data; a number fixes
it; a mapping {"age": 8} fixes it for this column, the others as by "auto"; None bins no column: every value is a state.
`binning` is "bayes", the most probable cut points with respect to the class or, in a density, to other features;
"quantile" or "uniform"; by default it is "bayes" if the number of bins is "auto", else "quantile". The cut points are
in `network_.variables`. In a column with few distinct numbers each is a state, and new numbers are assigned to the
nearest. Categorical and text columns keep their labels as states, even if these spell numbers; a text column in which
nearly every case has its own label, such as names, is refused unless it is categorical.

`variables`: the states and cut points of the features, if known in advance (`leafwise.read(frame).variables`).

`missing`: the treatment of NaN, None and empty cells. "error" refuses them, "state" makes them a state, "drop" omits
such cases in `fit`, and "infer" learns from incomplete cases (`learn(..., missing="infer")`), for single networks only:
forests and `networks` refuse it. In new cases, any feature may be missing. `NetworkClassifier` and `NetworkDensity` sum
over the missing cells. So does `DecisionGraphClassifier`, which has no joint distribution of the features, over each
missing feature independently, with the frequencies of its states in `fit`. `DecisionGraphForestClassifier` averages its
predictions over all completions of a case, weighted by their probabilities under its networks of all variables, or over
64 sampled ones if there are more; so does `NetworkClassifier` with `networks` and without `constraints`.

`unseen`: the treatment of labels that occur only in new cases: "missing", as missing cells (whatever `missing` is), or
"error".

`classes`, of the classifiers: all labels of the class, if the cases in `fit` may lack some, as a fold of
cross-validation may; the categories of a categorical `y` have the same effect. A class without cases keeps the
probability that the prior gives it.

`class_weight`, of the classifiers: {label: weight}, or "balanced" for classes of equal total weight; it multiplies the
`sample_weight` of `fit`, the number of cases that each row represents. Integer weights repeat their cases, also when
columns are binned; other weights are rounded as by `learn`, in forests and mixtures to integers with the same sum, and
binning ignores them.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, DensityMixin, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state, check_scalar
    from sklearn.utils._set_output import _get_output_config
    from sklearn.utils.class_weight import compute_sample_weight
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "leafwise.estimators needs the package scikit-learn, which is not installed: pip install 'leafwise[sklearn]'."
    ) from None

from leafwise.constraints import Constraints
from leafwise.data.binning import number_label
from leafwise.data.case_weights import MOST_CELLS, checked_weights, repeated_rows
from leafwise.data.discretization import States
from leafwise.data.encoding import read_new
from leafwise.data.features import read_features
from leafwise.data.frames import Columns, Framed
from leafwise.data.kinds import Bins
from leafwise.data.new_data import is_missing, without_inference
from leafwise.data.table import Table, Variable, code_type
from leafwise.empirical_bayes import N_FOLDS, cross_validated, folds, with_prior_of_target
from leafwise.ensembles import independent, with_others
from leafwise.forests import Forest, grow
from leafwise.imputation import DRAW, MOST_PROBABLE, impute
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.sampling import sample
from leafwise.learner import DEFAULT_PRIOR, DEFAULT_STRUCTURE_PRIOR, learn, start_mixture
from leafwise.mixture import Mixture
from leafwise.network import Network
from leafwise.predictions import log_posteriors, mixture_log_posteriors
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.run import Settings

Floats = NDArray[np.float64]
_MISSING_CHOICES = ("error", "state", "drop", "infer")
_UNSEEN_CHOICES = ("missing", "error")
_MOST_REPEATED = 2**30  # cells of the table from which forests and mixtures are learned, a byte or two each


@dataclass(eq=False, repr=False, kw_only=True)
class _Estimator(BaseEstimator):
    """What all estimators share; dataclasses provide the signatures that scikit-learn requires."""

    operators: str = LeafSearch.operators
    schedule: str = "splits-first"
    search: Settings | None = None
    prior: str = DEFAULT_PRIOR
    structure_prior: str = DEFAULT_STRUCTURE_PRIOR
    constraints: Constraints | None = None
    max_parents: int | None = None
    max_leaves: int | None = None
    bins: Bins = "auto"
    binning: str | None = None
    variables: Sequence[Variable] | None = None
    missing: str = "error"
    unseen: str = "missing"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = self.missing != "error"  # in `fit`; new cases may always have NaN
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class _Classifier(ClassifierMixin, _Estimator):
    classes: Sequence[Any] | None = None
    class_weight: Any = None

    def predict(self, X: Any) -> NDArray[Any]:
        best = self.predict_log_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_proba(self, X: Any) -> Floats:
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        check_is_fitted(self)
        *features, label = self.network_.variables
        table = _new_cases(self, X, features)
        return self._log_posteriors(_with_class(table, label, np.zeros(table.n_cases)), len(features))

    def _log_posteriors(self, table: Table, label: int) -> Floats:
        if isinstance(self.network_, Mixture):
            return mixture_log_posteriors(self.network_, table, label)
        return log_posteriors(self.network_, table, label)


@dataclass(eq=False, repr=False, kw_only=True)
class DecisionGraphClassifier(_Classifier):
    """One decision graph for p(class | features), as in Section 5 of the paper; it is the last node of `network_`.

    By default (`prior="auto"`) the prior of its leaves is worth 2, 4, ... or 128 cases, selected by threefold
    cross-validation; "symmetric:2" is worth two, without it. The arguments are described in `leafwise.estimators`.

    >>> X = [["red", "round"], ["red", "square"], ["blue", "round"], ["blue", "square"]] * 10
    >>> classifier = DecisionGraphClassifier().fit(X, ["stop", "stop", "go", "go"] * 10)
    >>> classifier.predict([["red", "square"], ["blue", "square"]]).tolist()
    ['stop', 'go']
    >>> classifier.predict_proba([["red", "square"], ["green", "square"]]).round(3).tolist()
    [[0.045, 0.955], [0.5, 0.5]]
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        table, weights = _labelled_cases(self, X, y, sample_weight)
        self.network_ = _graph_of_class(self, table, weights)
        self.shares_ = _shares(self.network_.variables, table, weights)
        return self

    def _log_posteriors(self, table: Table, label: int) -> Floats:
        return log_posteriors(with_others(self.network_, independent(self.shares_)), table, label)


@dataclass(eq=False, repr=False, kw_only=True)
class DecisionGraphForestClassifier(_Classifier):
    """Many decision graphs for p(class | features), and networks, as a weighted product.

    The arguments are described in `leafwise.estimators`. `n_estimators`: the number of graphs. `candidates`: the share
    of the features, drawn for each graph, that it may test; None: all. `random_state`: the seed, an integer. Graphs
    come in sets of four, each learned from three quarters of the cases: as trees or with merges, some with random
    features tested first; one set in eight has networks of all variables, which predict the class by Bayes' rule. The
    weights, and the averaging or smoothing of leaves, are selected on out-of-sample cases. `forest_` is the product
    (`leafwise.forests.Forest`), `network_` the mixture of the same graphs, in which those of the class alone have
    independent features: it can be saved and queried like any other.

    >>> X = [["red", "round"], ["red", "square"], ["blue", "round"], ["blue", "square"]] * 10
    >>> classifier = DecisionGraphForestClassifier(n_estimators=10).fit(X, ["stop", "stop", "go", "go"] * 10)
    >>> classifier.predict([["red", "square"], ["blue", "square"]]).tolist()
    ['stop', 'go']
    """

    n_estimators: int = 32
    candidates: float | None = None
    random_state: int = 0

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        table, weights = _labelled_cases(self, X, y, sample_weight)
        check_scalar(self.n_estimators, "n_estimators", Integral, min_val=1)
        check_scalar(self.random_state, "random_state", Integral, min_val=0)
        if self.candidates is not None:
            check_scalar(self.candidates, "candidates", Real, min_val=0, max_val=1, include_boundaries="right")
        given = {"candidates": self.candidates, "seed": self.random_state}
        self.forest_ = _forest(self, table, weights, self.n_estimators, **given)
        self.network_ = self.forest_.mixture
        return self

    def _log_posteriors(self, table: Table, label: int) -> Floats:
        return self.forest_.log_posteriors(table, label)


def _shares(variables: Sequence[Variable], table: Table, weights: Floats | None) -> tuple[NDArray[Any], ...]:
    """The counts of each feature's states; the last variable is the class."""
    shares = []
    for variable, codes in zip(variables[:-1], table.codes[:-1], strict=True):
        there = codes < variable.n_states
        own = None if weights is None else weights[there]
        shares.append(np.bincount(codes[there], own, variable.n_states))
    return tuple(shares)


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkClassifier(_Classifier):
    """p(class | everything else) in a network over the features and the class, which is the last variable.

    The arguments are described in `leafwise.estimators`. With missing features, the prediction of a network is exact
    given the others. With `networks`, `network_` is a mixture of that many. Some are networks of all variables; in the
    others, the features are learned as by `NetworkDensity`, and the class comes last, with a graph over all of them, as
    in `DecisionGraphForestClassifier`; their predictions are multiplied, with the weights of `forest_`. With
    `constraints`, the class is a variable like any other, and predictions are those of the mixture.

    >>> X = np.array([["red", "round"], ["red", "square"], ["blue", "round"], ["blue", "square"]] * 10)
    >>> classifier = NetworkClassifier(missing="drop").fit(X, ["stop", "stop", "go", "go"] * 10)
    >>> classifier.predict_proba(np.array([["red", None], [None, None]])).round(3).tolist()
    [[0.045, 0.955], [0.5, 0.5]]
    """

    networks: int | None = None

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        table, weights = _labelled_cases(self, X, y, sample_weight)
        if self.networks is None or self.constraints is not None:
            self.forest_, self.network_ = None, _learned_or_mixed(self, table, weights)
            return self
        features = Table(table.variables[:-1], table.codes[:-1])
        mixture = _mixture(self, features, weights, self.networks)
        forest = _forest(self, table, weights, self.networks, seed=0, features=mixture)
        self.forest_, self.network_ = forest, forest.mixture
        return self

    def _log_posteriors(self, table: Table, label: int) -> Floats:
        return (
            super()._log_posteriors(table, label) if self.forest_ is None else self.forest_.log_posteriors(table, label)
        )


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkDensity(DensityMixin, _Estimator):
    """A network as a distribution of cases. Probabilities are those of bins, and comparable only with the same bins.

    The arguments are described in `leafwise.estimators`. With `networks`, it is a mixture of that many.

    >>> X = np.array([["red", "round"], ["blue", "square"]] * 20)
    >>> density = NetworkDensity().fit(X)
    >>> np.exp(density.score_samples([["red", "round"], ["red", "square"]])).round(3).tolist()
    [0.477, 0.023]
    >>> density.sample(2, random_state=0).tolist()
    [['red', 'round'], ['red', 'round']]
    """

    networks: int | None = None

    def fit(self, X: Any, y: None = None, sample_weight: ArrayLike | None = None) -> Self:
        X = _checked(self, X, reset=True)
        rows, weights = _weighed(X, sample_weight)
        table = _fitted_cases(self, X if rows is None else _safe_indexing(X, rows))
        self.network_ = _learned_or_mixed(self, *_kept(table, self.missing, weights))
        return self

    def score_samples(self, X: Any) -> Floats:
        """The natural log probability of each case."""
        check_is_fitted(self)
        return log_probabilities(self.network_, _new_cases(self, X, self.network_.variables))

    def score(self, X: Any, y: None = None) -> float:
        """The mean of `score_samples`."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.object_]:
        """Sample cases, as labels of states: those of bins are in `network_.variables`; None is a missing cell."""
        check_is_fitted(self)
        seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
        drawn = sample(self.network_, n_samples, seed)
        return np.stack([_labels(variable)[codes] for variable, codes in _pairs(drawn)], axis=1)


@dataclass(eq=False, repr=False, kw_only=True)
class NetworkImputer(OneToOneFeatureMixin, TransformerMixin, _Estimator):
    """Imputes missing cells by a network learned from incomplete cases, whose cells must be missing at random.

    `how`: "draw" samples the missing cells of a case jointly, "most probable" takes the most probable state of each.
    Binned numbers are sampled from the values that `fit` saw in the bin, or replaced by their median.
    `random_state`: the random state of samples; `draws(X, 5)` returns several completions, for multiple imputation.

    The other arguments are described in `leafwise.estimators`. Labels that `fit` did not see are left unchanged.

    >>> X = np.array([["red", "round"], ["blue", "square"]] * 20 + [["red", None]], dtype=object)
    >>> NetworkImputer(how="most probable").fit_transform(X)[-1].tolist()
    ['red', 'round']
    """

    missing: str = "infer"
    how: str = DRAW
    random_state: Any = None

    def fit(self, X: Any, y: None = None) -> Self:
        if self.how not in (DRAW, MOST_PROBABLE):
            raise ValueError(f"how={self.how!r} is not known: use 'draw' or 'most probable'")
        X = _checked(self, X, reset=True)
        table = _fitted_cases(self, X)
        if table.n_variables < self.n_features_in_:
            raise ValueError(
                f"variables has {table.n_variables} of the {self.n_features_in_} columns of X, all of which are to be "
                f"filled in: add the others, or leave these columns out"
            )
        self.network_ = _learned(self, *_kept(table, self.missing, None))
        self.values_ = tuple(
            [column[codes == state] for state in range(variable.n_states)]
            for variable, codes, column in zip(self.network_.variables, table.codes, _cells(X).T, strict=True)
        )
        return self

    def transform(self, X: Any) -> Any:
        check_is_fitted(self)
        X = _checked(self, X, reset=False)
        cells = self._completed(X, check_random_state(self.random_state))
        kind = _get_output_config("transform", self)["dense"]
        if kind == "default" or cells.dtype != object or not hasattr(X, "columns"):
            return cells
        frame = getattr(_Filled(dict(zip(self.get_feature_names_out(), cells.T, strict=True))), f"to_{kind}")()
        if hasattr(X, "index") and hasattr(frame, "index"):
            frame.index = X.index
        return frame

    def draws(self, X: Any, n_draws: int = 5) -> list[NDArray[Any]]:
        """Several completions of the same cases, as arrays; `transform` gives one."""
        check_is_fitted(self)
        check_scalar(n_draws, "n_draws", Integral, min_val=1)
        X, random = _checked(self, X, reset=False), check_random_state(self.random_state)
        return [self._completed(X, random) for _ in range(n_draws)]

    def _completed(self, X: Any, random: Any) -> NDArray[Any]:
        cells = _cells(X).copy()
        table = _known_cases(X, self.network_.variables, "unknown", self.unseen)
        seed = random.randint(np.iinfo(np.int32).max)
        filled = impute(self.network_, table, self.how, seed=seed)
        assert isinstance(filled, Table)
        pairs = zip(self.network_.variables, table.codes, filled.codes, self.values_, strict=True)
        for place, (variable, codes, found, values) in enumerate(pairs):
            column = cells[:, place]
            for row in np.flatnonzero(codes >= variable.n_states).tolist():
                if is_missing(column[row]):
                    column[row] = self._value(variable, values[found[row]], int(found[row]), random)
        return cells

    def _value(self, variable: Variable, values: NDArray[Any], state: int, random: Any) -> Any:
        """The value to write into a cell in this state, from the values that `fit` saw in it."""
        if not len(values):  # a bin without cases
            return variable.cuts[min(state, len(variable.cuts) - 1)] if variable.cuts else variable.labels[state]
        if not variable.cuts:
            return values[0]
        return values[random.randint(len(values))] if self.how == DRAW else np.median(values.astype(np.float64))


@dataclass(frozen=True, eq=False)
class _Filled(Framed):
    """Columns with types of their own in a frame, where a single array would have the type object.

    Intervals of pandas, which other frames do not support, become texts.
    """

    columns: dict[str, NDArray[Any]]

    def frame_columns(self) -> Columns:
        return {
            name: [*map(str, cells)] if type(cells[0]).__name__ == "Interval" else cells
            for name, cells in self.columns.items()
        }

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


def _cells(X: Any) -> NDArray[Any]:
    """All cells, as floats if all columns are numeric, else as objects."""
    cells = np.asarray(X)
    return cells if cells.dtype.kind == "f" else cells.astype(np.float64 if cells.dtype.kind in "iu" else object)


def _pairs(table: Table) -> list[tuple[Variable, NDArray[Any]]]:
    return list(zip(table.variables, table.codes, strict=True))


def _labels(variable: Variable) -> NDArray[np.object_]:
    return np.array([*variable.labels[: variable.n_states - variable.missing], *[None] * variable.missing], np.object_)


# Learning


def _graph_of_class(estimator: Any, table: Table, weights: Floats | None) -> Network:
    """Learn the graph of the class; by default, the prior of its leaves is selected by threefold cross-validation."""
    last, two_cases = table.n_variables - 1, "symmetric:2"  # with which the default scores
    is_plain = estimator.search is None and not set("ORT") & set(estimator.operators) and estimator.missing != "infer"
    cells = table.n_variables * (table.n_cases if weights is None else weights.sum())  # with repeated rows
    if estimator.prior != "auto" or not is_plain or cells > MOST_CELLS or cells < N_FOLDS * table.n_variables:
        return _learned(estimator, table, weights, table.names[last])
    settings = _settings(estimator) | {"prior": two_cases, "target": table.names[last]}
    network = learn(table, weights=weights, **settings)
    parts = [(learn(some, **settings), held_back) for some, held_back in folds(_repeated(table, weights), last)]
    return with_prior_of_target(network, last, cross_validated(network, last, parts))


def _learned(estimator: Any, table: Table, weights: Floats | None, target: str | None = None) -> Network:
    empty = [v.name for v in table.variables if estimator.missing == "infer" and v.missing and v.n_states == 1]
    if empty:
        raise ValueError(f"column {empty[0]!r} has not one cell, so nothing can be inferred: leave it out")
    network: Network = learn(table, target=target, weights=weights, **_settings(estimator))
    return network


def _learned_or_mixed(estimator: Any, table: Table, weights: Floats | None) -> Network | Mixture:
    if estimator.networks is None:
        return _learned(estimator, table, weights)
    return _mixture(estimator, table, weights, estimator.networks)


def _mixture(estimator: Any, table: Table, weights: Floats | None, networks: int) -> Mixture:
    under_way = start_mixture(_repeated(table, weights), networks, seed=0, **_settings(estimator))
    under_way.run()
    return under_way.network


def _forest(estimator: Any, table: Table, weights: Floats | None, n_members: int, **given: Any) -> Forest:
    settings = _settings(estimator) | given
    del settings["missing"]  # missing cells are a state here
    return grow(_repeated(table, weights), n_members, target=table.names[-1], **settings)


def _repeated(table: Table, weights: Floats | None) -> Table:
    """The rows sorted, so that their order has no effect; weights become integers with the same total, rounded."""
    rows = np.lexsort(table.codes)
    if weights is not None:
        total, most = weights.sum(), max(_MOST_REPEATED // table.n_variables, 2 * table.n_cases)
        if not 0.5 <= total < most + 1:
            raise ValueError(
                f"the weights add up to {total:g} cases, and forests and mixtures need at least 1 and, of "
                f"{table.n_variables:,} variables, at most {most:,}: multiply or divide the weights"
            )
        ends: NDArray[np.int64] = np.floor(np.append(0.0, weights[rows].cumsum()) + 0.5).astype(np.int64)
        rows = np.repeat(rows, ends[1:] - ends[:-1])
    return Table(table.variables, np.ascontiguousarray(table.codes[:, rows]))


def _settings(estimator: Any) -> dict[str, Any]:
    limits = {name: getattr(estimator, name) for name in ("max_parents", "max_leaves")}
    given = {name: limit for name, limit in limits.items() if limit is not None}
    return {
        "search": _search(estimator),
        "prior": estimator.prior,
        "structure_prior": estimator.structure_prior,
        "missing": "infer" if estimator.missing == "infer" else "error",
        "constraints": replace(estimator.constraints or Constraints(), **given),
    }


def _search(estimator: Any) -> Settings:
    greedy = LeafSearch(estimator.operators, estimator.schedule)
    if estimator.search is None:
        return greedy
    if greedy != LeafSearch():
        raise ValueError(
            f"search={estimator.search!r} was given with operators={greedy.operators!r} and "
            f"schedule={greedy.schedule!r}, which it does not use: give these to the search, or leave it out"
        )
    search: Settings = estimator.search
    return search


# Cases


def _weighed(X: Any, weights: ArrayLike | None) -> tuple[NDArray[np.int64] | None, Floats | None]:
    """The rows to use, repeated by integer weights, and None; or the rows with positive weights, and these."""
    if weights is None:
        return None, None
    found = checked_weights(weights, _num_samples(X))
    rows = repeated_rows(found, X.shape[1])
    if rows is not None:
        return rows, None
    rows = np.flatnonzero(found)
    return rows, found[rows]


def _labelled_cases(
    estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Table, Floats | None]:
    """The cases from which to learn a classifier, with the class as the last variable, and their weights."""
    labels = validate_data(estimator, y=y)
    check_classification_targets(labels)
    X = _checked(estimator, X, reset=True)
    check_consistent_length(X, labels)
    column = _safe_indexing(y, 0, axis=1) if hasattr(y, "columns") else y  # the only one of a frame
    estimator.classes_ = _classes(estimator.classes, column, labels)
    if estimator.class_weight is not None:
        by_class = compute_sample_weight(estimator.class_weight, labels)
        sample_weight = by_class if sample_weight is None else by_class * checked_weights(sample_weight, len(labels))
    rows, weights = _weighed(X, sample_weight)
    if rows is not None:
        X, labels = _safe_indexing(X, rows), labels[rows]
    states = np.searchsorted(estimator.classes_, labels)
    table = _fitted_cases(estimator, X, States(states, len(estimator.classes_)))
    name = str(getattr(column, "name", None) or "class")
    while name in table.names:
        name += "_"
    variable = Variable(name, tuple(map(_class_label, estimator.classes_.tolist())))
    return _kept(_with_class(table, variable, states), estimator.missing, weights)


def _classes(declared: Sequence[Any] | None, y: ArrayLike, labels: NDArray[Any]) -> NDArray[Any]:
    """All classes, sorted: those declared, else the categories of a categorical `y`, else those that occur."""
    there = np.unique(labels)
    known = _categories(y) if declared is None else declared
    if known is None:
        return there
    classes: NDArray[Any] = np.unique(np.asarray(known, object if labels.dtype.kind == "O" else None))
    strange = there[~np.isin(there, classes)]
    if len(strange):
        raise ValueError(f"y has the label {strange[0]!r}, which is none of the classes {classes.tolist()}: add it")
    return classes


def _categories(y: Any) -> Any:
    """The categories of a categorical column, if it lists them, as one of polars does not."""
    found = getattr(getattr(y, "dtype", None), "categories", None)
    return found if hasattr(found, "__len__") else None


def _class_label(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).lower()
    return number_label(label) if isinstance(label, float) else str(label)


def _with_class(table: Table, variable: Variable, states: NDArray[Any]) -> Table:
    variables = (*table.variables, variable)
    kind = code_type(variables)
    return Table(variables, np.concatenate([table.codes.astype(kind), states[None].astype(kind)]))


def _fitted_cases(estimator: Any, X: Any, towards: States | None = None) -> Table:
    """All cases to fit, with missing cells as a state; a ValueError if the estimator's arguments are not valid."""
    for name, known in (("missing", _MISSING_CHOICES), ("unseen", _UNSEEN_CHOICES)):
        if getattr(estimator, name) not in known:
            listed = f"{', '.join(map(repr, known[:-1]))} or {known[-1]!r}"
            raise ValueError(f"{name}={getattr(estimator, name)!r} is not known: use {listed}")
    if estimator.missing == "infer" and _has_many(estimator):
        raise ValueError(
            "missing='infer' is for one network, and here are many: pass missing='state' or missing='drop'"
        )
    with without_inference() if _has_many(estimator) else nullcontext():
        if estimator.variables is not None:
            return _known_cases(X, _in_order(estimator, estimator.variables), estimator.missing)
        missing = "error" if estimator.missing == "error" else "state"
        return read_features(X, estimator.bins, estimator.binning, missing, towards)


def _in_order(estimator: Any, variables: Sequence[Variable]) -> list[Variable]:
    """The variables in the order of the columns of X, if these have names."""
    place = {str(name).strip(): k for k, name in enumerate(getattr(estimator, "feature_names_in_", ()))}
    return sorted(variables, key=lambda variable: place.get(variable.name, len(place)))


def _has_many(estimator: Any) -> bool:
    """Return whether the estimator learns many networks."""
    return isinstance(estimator, DecisionGraphForestClassifier) or getattr(estimator, "networks", None) is not None


def _kept(table: Table, missing: str, weights: Floats | None) -> tuple[Table, Floats | None]:
    """The cases to learn from: all, or with "drop" those without missing cells, whose state is then removed."""
    if missing != "drop":
        return table, weights
    last = np.array([[variable.n_states - 1 if variable.missing else -1] for variable in table.variables])
    kept = (table.codes != last).all(axis=0)
    if not kept.any():
        raise ValueError(
            "every case has a missing cell, so missing='drop' leaves none: pass missing='state', or leave out columns "
            "in which many cells are missing"
        )
    variables = tuple(
        replace(variable, labels=variable.labels[:-1], missing=False) if variable.missing else variable
        for variable in table.variables
    )
    found = Table(variables, np.ascontiguousarray(table.codes[:, kept], dtype=code_type(variables)))
    return found, None if weights is None else weights[kept]


def _new_cases(estimator: Any, X: Any, variables: Sequence[Variable]) -> Table:
    return _known_cases(_checked(estimator, X, reset=False), variables, "unknown", estimator.unseen)


def _known_cases(X: Any, variables: Sequence[Variable], missing: str, unseen: str = "error") -> Table:
    return read_new(X, variables, missing="error" if missing == "error" else "unknown", unseen=unseen)


def _checked(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as validated by scikit-learn: a frame with column names is unchanged, anything else becomes an array."""
    if hasattr(X, "__arrow_c_stream__"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if hasattr(estimator, "feature_names_in_"):
            return X
    array = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    if reset and estimator.missing == "error" and array.dtype.kind == "f" and np.isnan(array).any():
        infer = "" if _has_many(estimator) else "missing='infer', "
        raise ValueError(f"X has cells that are NaN: pass {infer}missing='state' or missing='drop'")
    return array
