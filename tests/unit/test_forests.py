"""The forest of decision graphs and mixtures as estimators: scikit-learn's checks, and the means of their members."""

import numpy as np
import pandas as pd
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn, an extra, is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from leafwise import Mixture  # noqa: E402
from leafwise.estimators import (  # noqa: E402
    DecisionGraphClassifier,
    DecisionGraphForestClassifier,
    NetworkClassifier,
    NetworkDensity,
)


def letters(n_cases=200, seed=1):
    random = np.random.default_rng(seed)
    X = random.choice(list("acgt"), (n_cases, 8))
    y = (X[:, 4] == "t") & np.isin(X[:, 1], ["a", "g"])
    return X, np.where(y ^ (random.random(n_cases) < 0.1), "+", "-")


@pytest.mark.parametrize(
    "kind",
    [DecisionGraphForestClassifier(n_estimators=2, missing="state"), NetworkDensity(networks=2, missing="state")],
    ids=["forest", "density"],
)
def test_scikit_learn_accepts_it(kind):
    checks = check_estimator(kind, on_skip=None)  # raises where one fails
    others = {check["check_name"] for check in checks if check["status"] != "passed"}
    assert others <= {"check_array_api_input"}


def test_a_forest_says_the_mean_of_its_graphs():
    X, y = letters()
    forest = DecisionGraphForestClassifier(n_estimators=10).fit(X, y)
    assert isinstance(forest.network_, Mixture)
    one = DecisionGraphClassifier().fit(X, y)
    total = np.zeros((len(X), 2))
    for member, weight in zip(forest.network_.members, forest.network_.weights, strict=True):
        one.network_ = member
        total += weight * one.predict_proba(X)
    assert forest.predict_proba(X) == pytest.approx(total)
    new, labels = letters(seed=2)
    assert forest.score(new, labels) > 0.85


def test_some_members_are_whole_networks():
    """The class is a cause of all features, each of which says little: a network sees that, and a tree cannot."""
    random = np.random.default_rng(1)
    y = random.integers(2, size=600)
    X = np.where(random.random((600, 20)) < 0.65, y[:, None], 1 - y[:, None]).astype(str)
    forest = DecisionGraphForestClassifier(n_estimators=10).fit(X[:300], y[:300])
    members, weights = forest.network_.members, np.array(forest.network_.weights)
    whole = np.array([len(member.arcs) > len(member.nodes[-1].parents) for member in members])
    assert whole.tolist() == [False] * 5 + [True] * 5
    assert weights[whole].sum() > 0.7
    graphs = DecisionGraphForestClassifier(n_estimators=5).fit(X[:300], y[:300])
    assert forest.score(X[300:], y[300:]) > graphs.score(X[300:], y[300:]) + 0.05
    unknown = X[300:302].astype(object)
    unknown[:, :5] = None
    assert forest.predict_proba(unknown).sum(axis=1) == pytest.approx(1)


def test_seeds_and_candidates():
    X, y = letters()
    forest = DecisionGraphForestClassifier(n_estimators=6, candidates=0.25, random_state=3)
    found = forest.fit(X, y).network_
    assert clone(forest).fit(X, y).network_ == found
    assert all(len(member.nodes[-1].parents) <= 2 for member in found.members)
    assert DecisionGraphForestClassifier(n_estimators=6, candidates=0.25, random_state=4).fit(X, y).network_ != found
    with pytest.raises(ValueError, match="candidates"):
        DecisionGraphForestClassifier(candidates=0).fit(X, y)


def test_missing_features_are_summed_over():
    X, y = letters()
    forest = DecisionGraphForestClassifier(n_estimators=4, missing="drop").fit(X, y)
    whole = np.array([["a"] * 8], object)
    shares = pd.Series(X[:, 4]).value_counts(normalize=True)
    cases = np.repeat(whole, 4, axis=0)
    cases[:, 4] = list("acgt")
    counts = np.array([(X[:, 4] == letter).sum() + 1 for letter in "acgt"])
    expected = (counts / counts.sum()) @ forest.predict_proba(cases)
    whole[0, 4] = None
    assert forest.predict_proba(whole)[0] == pytest.approx(expected)
    assert shares.sum() == pytest.approx(1)


def test_mixtures_as_classifier_and_density():
    X, y = letters()
    classifier = NetworkClassifier(networks=3).fit(X, y)
    assert len(classifier.network_) == 3
    assert classifier.predict_proba(X).sum(axis=1) == pytest.approx(1)
    density = NetworkDensity(networks=3).fit(X)
    assert density.score_samples(X) == pytest.approx(density.network_.log_probabilities(density_table(density, X)))
    assert density.sample(5, random_state=1).shape == (5, 8)


def density_table(density, X):
    import leafwise

    return leafwise.read(X, variables=density.network_.variables)


def test_weights_repeat_cases():
    X, y = letters(60)
    twice = DecisionGraphForestClassifier(n_estimators=2).fit(X, y, sample_weight=np.full(60, 2))
    assert twice.network_.learned["cases"] == 120
    weights = np.linspace(0.5, 1.5, 60)
    rounded = DecisionGraphForestClassifier(n_estimators=2).fit(X, y, sample_weight=weights)
    assert rounded.network_.learned["cases"] == 60
