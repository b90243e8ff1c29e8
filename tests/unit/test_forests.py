"""The forest of decision graphs and mixtures as estimators: scikit-learn's checks, and what their members say."""

import pickle

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn, an extra, is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

import leafwise  # noqa: E402
from leafwise import Constraints, Mixture, forests  # noqa: E402
from leafwise.estimators import (  # noqa: E402
    DecisionGraphClassifier,
    DecisionGraphForestClassifier,
    NetworkClassifier,
    NetworkDensity,
    _repeated,
)
from leafwise.forests import grow, pool_weights  # noqa: E402
from leafwise.predictions import log_posteriors  # noqa: E402


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


def product(forest, table, label):
    """What a forest says, from its parts, one by one."""
    total = np.zeros((table.n_cases, forest.naive.variables[label].n_states))
    for member, weight in zip(forest.mixture.members, forest.weights, strict=True):
        total += weight * log_posteriors(member, table, label)
    for place, power in enumerate(forest.powers):
        given = forest.naive.nodes[place].probabilities
        total += power * np.log(given if place == label else given[:, table.codes[place]].T)
    return np.exp(total) / np.exp(total).sum(axis=1, keepdims=True)


def test_a_forest_says_the_product_of_its_graphs():
    X, y = letters()
    classifier = DecisionGraphForestClassifier(n_estimators=10).fit(X, y)
    forest = classifier.forest_
    assert isinstance(classifier.network_, Mixture)
    assert len(classifier.network_) == len(forest.weights) == 10
    table = leafwise.read(np.c_[X, y], variables=forest.naive.variables)
    assert classifier.predict_proba(X) == pytest.approx(product(forest, table, 8))
    new, labels = letters(seed=2)
    assert classifier.score(new, labels) > 0.85
    assert pickle.loads(pickle.dumps(classifier)).predict_proba(new) == pytest.approx(classifier.predict_proba(new))


@pytest.mark.parametrize(
    "given",
    [{}, {"candidates": 0.4, "prior": "bdeu:4"}, {"max_parents": 2, "max_leaves": 9}, {"operators": "BM"}],
    ids=lambda given: ", ".join(given) or "defaults",
)
def test_graphs_learned_together_are_those_learned_apart(given, monkeypatch):
    """One search over copies of the target, each with its cases, or a search for each."""
    X, y = letters()
    together = DecisionGraphForestClassifier(**given).fit(X, y).forest_
    monkeypatch.setattr(forests._Growing, "_go_together", lambda *_: False)
    apart = DecisionGraphForestClassifier(**given).fit(X, y).forest_
    assert (together.weights, together.powers) == (apart.weights, apart.powers)
    assert [member.nodes for member in together.mixture] == [member.nodes for member in apart.mixture]


def test_members_that_know_different_things_add_up():
    """The class is a sum of features: no graph sees it, and the product of what single features say does."""
    random = np.random.default_rng(1)
    y = random.integers(2, size=600)
    X = np.where(random.random((600, 20)) < 0.65, y[:, None], 1 - y[:, None]).astype(str)
    forest = DecisionGraphForestClassifier(n_estimators=8).fit(X[:300], y[:300])
    members = forest.network_.members
    whole = [len(member.arcs) > len(member.nodes[-1].parents) for member in members]
    assert whole == [False] * 4 + [True] * 4
    graph = DecisionGraphClassifier().fit(X[:300], y[:300])
    assert forest.score(X[300:], y[300:]) > graph.score(X[300:], y[300:]) + 0.05


def test_features_drawn_first_find_what_no_feature_says_alone():
    random = np.random.default_rng(1)
    X = random.integers(3, size=(600, 6))
    y = (X[:, 1] == X[:, 4]).astype(int)
    found = DecisionGraphForestClassifier().fit(X[:400], y[:400])
    assert found.score(X[400:], y[400:]) == 1
    assert found.predict_proba(X[400:]).max(axis=1).mean() > 0.99


@pytest.mark.parametrize("n", [1, 2, 7])
def test_tiny_forests_and_tiny_data(n):
    X, y = letters(40)
    forest = DecisionGraphForestClassifier(n_estimators=n).fit(X, y)
    assert len(forest.network_) == n
    assert forest.predict_proba(X).sum(axis=1) == pytest.approx(1)
    one = DecisionGraphForestClassifier(n_estimators=n).fit(X[:1], y[:1])
    assert one.predict(X[:2]).tolist() == [y[0]] * 2
    constant = DecisionGraphForestClassifier(n_estimators=n).fit(np.full((20, 1), "a"), ["x", "x", "x", "y"] * 5)
    assert constant.predict_proba([["a"]])[0] == pytest.approx([0.75, 0.25], abs=0.05)


def test_weights_of_a_pool_are_those_of_the_most_probable_prior():
    """By the slow way: for each width of the prior the best weights, and the evidence of Laplace's approximation."""
    random = np.random.default_rng(3)
    states = random.integers(3, size=400)
    terms = [np.log(random.dirichlet(np.ones(3), 400)) for _ in range(4)]
    terms.append(np.where(np.arange(3) == states[:, None], 1.0, 0.0) + random.normal(size=(400, 3)))
    logs, begin = np.stack(terms, axis=2), np.zeros(5)

    def losses(weights):
        sums = logs @ weights
        return np.logaddexp.reduce(sums, axis=1) - sums[np.arange(400), states]

    def best(strength):
        weights = begin
        for _ in range(8):
            slope, bend = parts(weights, strength)
            weights = weights - np.linalg.solve(bend, slope)
        bend = parts(weights, strength)[1]
        value = losses(weights).sum() + strength / 2 * weights @ weights - 5 / 2 * np.log(strength)
        return value + np.linalg.slogdet(bend)[1] / 2, weights

    def parts(weights, strength):
        p = np.exp(logs @ weights)
        p /= p.sum(axis=1, keepdims=True)
        mean = np.einsum("nc,nck->nk", p, logs)
        slope = (mean - logs[np.arange(400), states]).sum(axis=0) + strength * weights
        return slope, np.einsum("nc,nck,ncl->kl", p, logs, logs) - mean.T @ mean + strength * np.eye(5)

    _, weights = min((best(strength) for strength in np.geomspace(1, 100, 40)), key=lambda pair: pair[0])
    ratios = logs[:, 1:] - logs[:, :1]
    assert pool_weights(ratios, states, begin, np.zeros(5)) == pytest.approx(weights, abs=0.02)


def test_constraints_hold_for_features_that_are_drawn_first():
    X, y = letters()
    few = DecisionGraphForestClassifier(max_parents=1, max_leaves=3).fit(X, y).network_
    graphs = [member.nodes[-1] for member in few.members]
    assert max(len(node.parents) for node in graphs) == 1
    assert max(node.n_leaves for node in graphs) <= 3
    names = few.names
    forbidden = Constraints(forbidden=[(names[4], names[8]), (names[1], names[8])])
    without = DecisionGraphForestClassifier(constraints=forbidden).fit(X, y).network_
    assert all({1, 4}.isdisjoint(member.nodes[-1].parents) for member in without.members)


def test_seeds_and_candidates():
    X, y = letters()
    forest = DecisionGraphForestClassifier(n_estimators=6, candidates=0.25, random_state=3)
    found = forest.fit(X, y).network_
    assert clone(forest).fit(X, y).network_ == found
    assert all(len(member.nodes[-1].parents) <= 2 for member in found.members)
    assert DecisionGraphForestClassifier(n_estimators=6, candidates=0.25, random_state=4).fit(X, y).network_ != found
    with pytest.raises(ValueError, match="candidates"):
        DecisionGraphForestClassifier(candidates=0).fit(X, y)


@pytest.mark.parametrize("n", [4, 8], ids=["without networks of all", "with some"])
def test_missing_features_are_summed_over(n):
    """The mean of what the product says of all ways to fill a case, by how probable these are."""
    X, y = letters()
    classifier = DecisionGraphForestClassifier(n_estimators=n, missing="drop").fit(X, y)
    forest = classifier.forest_
    cases = np.repeat(np.array([["a"] * 8], object), 16, axis=0)
    cases[:, 4], cases[:, 1] = list("acgt" * 4), np.repeat(list("acgt"), 4)
    table = leafwise.read(np.c_[cases, np.repeat(y[:1], 16)], variables=forest.naive.variables)
    shares = np.zeros(16)
    for state in range(2):
        table.codes[8] = state
        shares += np.exp(forest.features.log_probabilities(table))
    whole = cases[:1].copy()
    whole[0, [1, 4]] = None
    found = classifier.predict_proba(np.r_[whole, cases[:1]])
    assert found[0] == pytest.approx(shares @ product(forest, table, 8) / shares.sum())
    assert found[1] == pytest.approx(product(forest, table, 8)[0])


@pytest.mark.parametrize(
    "classifier", [DecisionGraphForestClassifier(n_estimators=8, missing="drop"), NetworkClassifier(networks=4)]
)
def test_many_missing_features_are_drawn(classifier, monkeypatch):
    X, y = letters()
    new = letters(40, seed=2)[0].astype(object)
    new[np.random.default_rng(1).random(new.shape) < 0.4] = None
    classifier.fit(X, y)
    drawn = classifier.predict_proba(new)
    assert classifier.predict_proba(new[7:9]) == pytest.approx(drawn[7:9])  # whoever else is asked about
    monkeypatch.setattr(forests, "WAYS_TO_FILL", 4**8)
    assert np.abs(drawn - classifier.predict_proba(new)).max() < 0.1
    assert np.abs(drawn - classifier.predict_proba(new)).mean() < 0.01


def test_mixtures_as_classifier_and_density():
    X, y = letters()
    classifier = NetworkClassifier(networks=3).fit(X, y)
    assert len(classifier.network_) == 3
    assert classifier.predict_proba(X).sum(axis=1) == pytest.approx(1)
    joint = classifier.network_  # features, and then the class given them
    table = leafwise.read(np.column_stack([X, y]), variables=joint.variables)
    found = joint.predict(table, joint.names[-1]).probabilities.argmax(axis=1)
    assert (found == table.codes[-1]).mean() > 0.85
    said = np.exp(classifier.forest_.log_posteriors(table, len(joint.names) - 1))
    assert classifier.predict_proba(X) == pytest.approx(said)
    assert joint.members[0].nodes[:-1] != joint.members[1].nodes[:-1]
    plain = NetworkClassifier(networks=3, constraints=Constraints(max_parents=2)).fit(X, y)
    assert plain.forest_ is None
    assert plain.predict_proba(X).sum(axis=1) == pytest.approx(1)
    density = NetworkDensity(networks=3).fit(X)
    assert density.score_samples(X) == pytest.approx(density.network_.log_probabilities(density_table(density, X)))
    assert density.sample(5, random_state=1).shape == (5, 8)


def density_table(density, X):
    return leafwise.read(X, variables=density.network_.variables)


def test_weights_repeat_cases():
    X, y = letters(60)
    twice = DecisionGraphForestClassifier(n_estimators=2).fit(X, y, sample_weight=np.full(60, 2))
    assert twice.network_.learned["cases"] == 120
    weights = np.linspace(0.5, 1.5, 60)
    rounded = DecisionGraphForestClassifier(n_estimators=2).fit(X, y, sample_weight=weights)
    assert rounded.network_.learned["cases"] == 60


@pytest.mark.parametrize(
    "estimator",
    [DecisionGraphForestClassifier(n_estimators=2), NetworkClassifier(networks=2), NetworkDensity(networks=2)],
)
@pytest.mark.parametrize("total", [1e-3, 1e11])
def test_weights_of_no_case_or_of_too_many_are_refused(estimator, total):
    X, y = letters(60)
    weights = np.linspace(0.5, 1.5, 60) / 60 * total
    with pytest.raises(ValueError, match=r"cases, and forests and mixtures need at least 1 and, of [0-9]+ variables"):
        estimator.fit(X, y, sample_weight=weights)


def test_weights_of_more_cases_than_a_weighted_network_repeats_are_not_refused():
    rows = np.zeros((700, 200), np.uint8)
    table = leafwise.read(rows)
    repeated = _repeated(table, np.full(700, 1000.5))
    assert (repeated.n_cases, repeated.n_variables) == (700_350, 200)


def test_a_forest_of_nothing_is_refused():
    table = leafwise.sample(leafwise.examples.alarm(), 5, seed=1)
    with pytest.raises(ValueError, match="the table has no cases"):
        grow(leafwise.Table(table.variables, table.codes[:, :0]), 3, target="BP")


def test_features_are_those_before_the_class():
    X, y = letters()
    table = leafwise.read(np.c_[X, y])
    features = leafwise.learn(leafwise.read(X), networks=2)
    with pytest.raises(ValueError, match=r"a forest of 2 takes as many, of .* but the target, which is to be the last"):
        grow(table, 2, target=table.names[0], features=features)
    with pytest.raises(ValueError, match="2 networks of 8 variables, and a forest of 3 takes as many"):
        grow(table, 3, target=table.names[-1], features=features)
    assert len(grow(table, 2, target=table.names[-1], features=features).mixture) == 2


@pytest.mark.parametrize("search", [leafwise.LeafSearch("CBO"), leafwise.RecoverySearch(leafwise.LeafSearch("CBMR"))])
def test_operators_that_part_or_share_are_refused_before_the_work(search):
    forest = DecisionGraphForestClassifier(n_estimators=3, search=search)
    with pytest.raises(ValueError, match=r"the operators [OR] do not go with forests, which average leaves"):
        forest.fit(*letters())


@pytest.mark.parametrize(
    "estimator",
    [DecisionGraphForestClassifier(n_estimators=4), NetworkClassifier(networks=4), NetworkDensity(networks=4)],
)
def test_holes_are_inferred_for_one_network_only(estimator):
    """A state of their own, or cases that are left out, is not what was asked for."""
    X, y = letters()
    X = X.astype(object)
    X[::7, 2] = None
    with pytest.raises(ValueError, match="missing='infer' is for one network, and here are many: pass missing='state'"):
        clone(estimator).set_params(missing="infer").fit(X, y)
    for cells in (X, np.array([[0.0], [np.nan]] * 50)):
        with pytest.raises(ValueError, match="missing='state'") as refused:
            clone(estimator).fit(cells, y[: len(cells)])
        assert "infer" not in str(refused.value)
    assert clone(estimator).set_params(missing="state").fit(X, y).network_.variables[2].missing
