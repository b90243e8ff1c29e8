"""The estimators of scikit-learn: its own checks, and predictions that equal sums over the whole joint table."""

import pickle
import subprocess
import sys
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest

sklearn = pytest.importorskip("sklearn", reason="scikit-learn, an extra, is not installed")

from oracle_inference import joint_table  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.metrics import log_loss, make_scorer  # noqa: E402
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OrdinalEncoder, StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

import leafwise  # noqa: E402
from leafwise import Constraints, LeafSearch, TableArcSearch, Variable  # noqa: E402
from leafwise.estimators import DecisionGraphClassifier, NetworkClassifier, NetworkDensity, NetworkImputer  # noqa: E402

CLASSIFIERS = [DecisionGraphClassifier, NetworkClassifier]
EVERY = [*CLASSIFIERS, NetworkDensity]


@pytest.mark.filterwarnings("ignore:weights up to .* round to 0")  # it gives classes the weights 1000 and 0.0001
@pytest.mark.parametrize("given", [{}, {"missing": "state", "bins": 5}])
@pytest.mark.parametrize("kind", EVERY)
def test_scikit_learn_accepts_it(kind, given):
    # Cases to fit may be refused for their missing cells; new ones are not, and scikit-learn knows one word for both.
    alike = {} if given or kind is NetworkDensity else {"check_estimators_nan_inf": "new cases may have missing cells"}
    checks = check_estimator(kind(**given), on_skip=None, expected_failed_checks=alike)  # raises where others fail
    passed = {check["check_name"] for check in checks if check["status"] == "passed"}
    others = {check["check_name"] for check in checks} - passed
    assert others <= {"check_array_api_input", *alike}  # the first is checked where SCIPY_ARRAY_API is set
    assert len(passed) >= 30


def weather(n_cases=60, seed=1):
    """A frame of labels and numbers, and a class that follows them."""
    random = np.random.default_rng(seed)
    sky, wind = random.choice(["clear", "grey", "black"], n_cases), random.choice(["calm", "storm"], n_cases)
    rain = (sky == "black") | ((sky == "grey") & (random.random(n_cases) < 0.5))
    frame = pd.DataFrame({"sky": pd.Categorical(sky), "wind": wind, "warm": random.normal(size=n_cases) - rain})
    return frame, pd.Series(np.where(rain ^ (random.random(n_cases) < 0.1), "wet", "dry"), name="ground")


def promoters(n_cases=300, seed=1):
    """Letters, two of which decide the class in nine cases of ten."""
    random = np.random.default_rng(seed)
    letters = random.choice(list("acgt"), (n_cases, 20))
    y = (letters[:, 4] == "t") & np.isin(letters[:, 11], ["a", "g"])
    return letters, np.where(y ^ (random.random(n_cases) < 0.1), "+", "-")


def codes_of(network, X):
    return leafwise.read(X, variables=network.variables[: X.shape[1]], missing="unknown").codes.T


def test_without_scikit_learn_it_says_what_to_install():
    code = "import sys; sys.modules['sklearn'] = None; import leafwise.estimators"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith("which is not installed: pip install 'leafwise[sklearn]'.")


# Predictions


def test_one_graph_gives_the_distribution_of_the_leaf_a_case_arrives_at():
    X, y = weather()
    classifier = DecisionGraphClassifier(structure_prior="kappa:0.5").fit(X, y)
    node = classifier.network_.nodes[-1]
    assert node.graph.n_leaves > 2
    expected = [node.probabilities[node.graph.leaf_of([*case, 0])] for case in codes_of(classifier.network_, X)]
    np.testing.assert_allclose(classifier.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_array_equal(classifier.predict(X), np.array(["dry", "wet"])[np.argmax(expected, axis=1)])


def test_it_is_the_graph_that_learn_finds_for_a_target():
    X, y = weather()
    network = DecisionGraphClassifier(bins={"warm": 4}).fit(X, y).network_
    table = leafwise.read(X.assign(ground=y), bins={"warm": 4})
    found = leafwise.learn(table, target="ground")
    assert (network.nodes[-1].graph, network.learned) == (found.nodes[-1].graph, found.learned)
    plain = DecisionGraphClassifier(bins={"warm": 4}, prior="symmetric:2").fit(X, y).network_
    assert plain == leafwise.learn(table, target="ground", prior="symmetric:2")
    assert NetworkClassifier(bins={"warm": 4}).fit(X, y).network_ == leafwise.learn(table)


@pytest.mark.parametrize("prior", ["uniform", "bdeu:3"])
def test_a_network_gives_the_class_by_bayes_theorem(prior):
    X, y = weather()
    classifier = NetworkClassifier(prior=prior, structure_prior="uniform", bins=3).fit(X, y)
    joint = joint_table(classifier.network_)
    assert len(classifier.network_.arcs) > 1
    columns = [joint[tuple(case)] for case in codes_of(classifier.network_, X)]
    expected = [column / column.sum() for column in columns]
    np.testing.assert_allclose(classifier.predict_proba(X), expected, atol=1e-12)
    np.testing.assert_allclose(classifier.predict_log_proba(X), np.log(expected), atol=1e-9)


def test_a_network_sums_over_what_missing_cells_may_hold():
    X, y = weather()
    classifier = NetworkClassifier(structure_prior="kappa:0.5", bins=3, missing="drop").fit(X, y)
    joint = joint_table(classifier.network_)
    gaps = np.array(list(product([False, True], repeat=3)))
    new = X.astype(object).iloc[: len(gaps)].mask(gaps)
    for case, gap, found in zip(codes_of(classifier.network_, X), gaps, classifier.predict_proba(new), strict=False):
        part = joint[tuple(slice(None) if hidden else code for code, hidden in zip(case, gap, strict=True))]
        column = part.reshape(-1, 2).sum(axis=0)
        np.testing.assert_allclose(found, column / column.sum(), atol=1e-12)


def test_a_density_gives_the_probability_of_each_case():
    X, _ = weather()
    density = NetworkDensity(structure_prior="kappa:0.5", bins=3).fit(X)
    joint = joint_table(density.network_)
    expected = np.log([joint[tuple(case)] for case in codes_of(density.network_, X)])
    np.testing.assert_allclose(density.score_samples(X), expected, atol=1e-9)
    assert density.score(X) == pytest.approx(expected.mean())


def test_cases_drawn_can_be_scored_and_keep_the_frequencies():
    X, _ = weather()
    X.loc[::3, "wind"] = None
    density = NetworkDensity(bins=3, missing="state").fit(X)
    drawn = density.sample(4000, random_state=1)
    assert np.array_equal(drawn, density.sample(4000, random_state=1))
    frame = pd.DataFrame(drawn, columns=X.columns)
    assert frame["sky"].value_counts(normalize=True)["grey"] == pytest.approx((X["sky"] == "grey").mean(), abs=0.03)
    assert frame["wind"].isna().mean() == pytest.approx(1 / 3, abs=0.03)
    np.testing.assert_array_equal(
        codes_of(density.network_, frame), leafwise.sample(density.network_, 4000, seed_of(1)).codes.T
    )
    assert np.isfinite(density.score_samples(frame)).all()


def seed_of(random_state):
    return np.random.RandomState(random_state).randint(np.iinfo(np.int32).max)


def test_a_graph_finds_the_letters_that_decide():
    X, y = promoters()
    classifier = DecisionGraphClassifier().fit(X, y)
    assert classifier.network_.nodes[-1].parents == (4, 11)
    assert classifier.network_.nodes[-1].graph.n_leaves == 2
    new, labels = promoters(1000, seed=2)
    assert classifier.score(new, labels) > 0.87


# Classes


@pytest.mark.parametrize(
    ("classes", "labels"),
    [
        ((False, True), ("false", "true")),
        ((-1.0, 2.0), ("-1", "2")),
        ((3, 20), ("3", "20")),
        (("b", "a"), ("a", "b")),
    ],
)
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_come_back_as_they_were_given(kind, classes, labels):
    X, y = weather()
    y = np.where(y == "wet", classes[1], classes[0])
    classifier = kind().fit(X, y)
    assert classifier.classes_.tolist() == sorted(classes)
    assert classifier.network_.variables[-1] == Variable("class", labels)
    assert classifier.predict(X).dtype == y.dtype
    assert classifier.score(X, y) > 0.8


def test_the_class_is_called_as_its_column_unless_a_feature_is():
    X, y = weather()
    names = [DecisionGraphClassifier().fit(X, y.rename(name)).network_.names[-1] for name in ("ground", "sky", None)]
    assert names == ["ground", "sky_", "class"]


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_in_any_kind_of_column():
    X, y = weather()
    two, three = ["dry", "wet"], ["dry", "storm", "wet"]
    expected = DecisionGraphClassifier().fit(X, y).predict(X)
    for labels, classes in (
        (pl.Series("name", y, pl.Categorical), two),
        (y.to_frame("name"), two),
        (pl.DataFrame({"name": y.tolist()}), two),
        (pd.DataFrame({"name": pd.Categorical(y, categories=three)}), three),
        (pl.DataFrame({"name": y.tolist()}, {"name": pl.Enum(three)}), three),
    ):
        classifier = DecisionGraphClassifier().fit(X, labels)
        assert classifier.network_.names[-1] == "name"
        assert classifier.classes_.tolist() == classes
        assert (classifier.predict(X) == expected).all()


# Columns


def test_numbers_are_cut_and_labels_are_not():
    X = pd.DataFrame({
        "many": np.linspace(0, 1, 64),
        "few": np.tile([0, 1, 5, 7], 16),
        "one": np.full(64, 3),
        "code": [f"{i % 16}" for i in range(64)],
        "grade": pd.Categorical(np.arange(64) % 16),
        "flag": np.arange(64) % 2 == 0,
    })  # fmt: skip
    many, few, one, *kept = NetworkDensity().fit(X).network_.variables
    assert 2 <= len(many.cuts) + 1 <= 16
    assert many.labels[0] == f"< {many.cuts[0]:.6g}"
    assert few == Variable("few", ("0", "1", "5", "7"), cuts=(0.5, 3.0, 6.0))
    assert one == Variable("one", ("< 3", ">= 3"), cuts=(3.0,))
    assert [(variable.n_states, variable.cuts) for variable in kept] == [(16, ()), (16, ()), (2, ())]


def test_new_numbers_count_as_the_nearest():
    X, y = np.repeat([[0, 8], [1, 8], [5, 8]], 20, axis=0), np.repeat(["a", "b", "c"], 20)
    classifier = DecisionGraphClassifier().fit(X, y)
    assert classifier.predict([[-9, 8], [0.4, 1], [0.6, 9], [2, 8], [4, 8], [70, 8]]).tolist() == list("aabbcc")


def test_numbers_that_no_float_tells_apart_stay_labels():
    X = np.repeat([[2**53], [2**53 + 1]], 10, axis=0)
    assert NetworkDensity().fit(X).network_.variables[0].cuts == ()


def test_bins_as_asked():
    X = np.random.default_rng(1).normal(size=(300, 2)).round(1)
    n_states = {
        str(bins): [variable.n_states for variable in NetworkDensity(bins=bins).fit(X).network_.variables]
        for bins in ("auto", 3, {"x2": 4}, None)
    }
    distinct = [len(np.unique(column)) for column in X.T]
    assert n_states == {"auto": [4, 4], "3": [3, 3], "{'x2': 4}": [4, 4], "None": distinct}
    uniform = NetworkDensity(bins=2, binning="uniform").fit(X).network_.variables[0]
    assert uniform.cuts == (X[:, 0].min() / 2 + X[:, 0].max() / 2,)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_frames_and_arrays_of_every_make_agree(kind):
    X, y = weather()
    sources = [
        X,
        pl.DataFrame(X.astype({"sky": str})),
        X.to_numpy(),
        X.rename(columns={"sky": 0, "wind": 1, "warm": 2}),
    ]
    found = [kind().fit(source, y).predict_proba(source) for source in sources]
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    assert kind().fit(X, y).feature_names_in_.tolist() == ["sky", "wind", "warm"]


def test_columns_in_another_order_are_refused():
    X, y = weather()
    classifier = DecisionGraphClassifier().fit(X, y)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        classifier.predict(X[["wind", "sky", "warm"]])


@pytest.mark.parametrize("kind", EVERY)
def test_labels_seen_in_new_cases_only_are_missing_cells_unless_refused_or_declared(kind):
    X, y = weather()
    new = X.astype({"sky": str}).assign(sky="green")
    ask = "score_samples" if kind is NetworkDensity else "predict_proba"
    unknown = getattr(kind(missing="drop").fit(X, y), ask)(new.assign(sky=None))
    np.testing.assert_array_equal(getattr(kind().fit(X, y), ask)(new), unknown)
    with pytest.raises(ValueError, match=r"column 'sky' has 60 cells with unseen labels \('green'\)"):
        getattr(kind(unseen="error").fit(X, y), ask)(new)
    declared = leafwise.read(pd.concat([X, new]), bins={"warm": 4}).variables
    fitted = kind(variables=declared, unseen="error").fit(X, y)
    assert fitted.network_.variables[:3] == declared
    assert np.isfinite(getattr(fitted, ask)(new)).all()


def test_one_graph_sums_over_missing_features_by_their_shares():
    X, y = weather()
    classifier = DecisionGraphClassifier(missing="drop", structure_prior="kappa:0.5", bins=3).fit(X, y)
    node, cases = classifier.network_.nodes[-1], codes_of(classifier.network_, X)
    shares = [(np.bincount(codes, minlength=n) + 1) / (60 + n) for codes, n in zip(cases.T, (3, 2, 3), strict=True)]
    gaps = np.array(list(product([False, True], repeat=3)))
    found = classifier.predict_proba(X.astype(object).iloc[:8].mask(gaps))
    for case, gap, row in zip(cases[:8], gaps, found, strict=True):
        known = zip(shares, gap, case, strict=True)
        weights = [share if hidden else np.eye(len(share))[code] for share, hidden, code in known]
        expected = sum(
            np.prod([weight[code] for weight, code in zip(weights, filled, strict=True)])
            * node.probabilities[node.graph.leaf_of([*filled, 0])]
            for filled in product(range(3), range(2), range(3))
        )
        np.testing.assert_allclose(row, expected, atol=1e-12)


# Folds that lack a class, or a label


def test_a_class_that_is_not_there_keeps_its_prior_share():
    X, y = weather()
    with_storm = [*y.unique(), "storm"]
    for kind in CLASSIFIERS:
        for classifier, labels in (
            (kind(classes=with_storm), y),
            (kind(), pd.Series(pd.Categorical(y, categories=with_storm), name="ground")),
        ):
            classifier.fit(X, labels)
            assert classifier.classes_.tolist() == ["dry", "storm", "wet"]
            shares = classifier.predict_proba(X)
            assert (shares[:, 1] > 0).all()
            assert shares.sum(axis=1) == pytest.approx(np.ones(60))
            assert "storm" not in classifier.predict(X)
    leaf = DecisionGraphClassifier(classes=with_storm, max_leaves=1).fit(X, y)
    assert leaf.predict_proba(X)[0, 1] == pytest.approx(2 / 3 / 62)  # two cases are spread over three classes
    with pytest.raises(ValueError, match="y has the label 'wet', which is none of the classes"):
        DecisionGraphClassifier(classes=["dry", "storm"]).fit(X, y)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_folds_that_lack_labels_and_classes_are_scored(kind):
    X, y = weather(90)
    X = X.assign(wind=X["wind"].mask(X.index == 7, "gale"))
    y = y.mask(y.index < 3, "hail")  # which two of three folds have not seen
    log_score = make_scorer(log_loss, response_method="predict_proba", labels=sorted(y.unique()))
    for scoring in ("accuracy", log_score):
        scores = cross_val_score(kind(classes=y.unique()), X, y, cv=KFold(3), scoring=scoring, error_score="raise")
        assert np.isfinite(scores).all()
    assert np.isfinite(cross_val_score(kind(), X, y, cv=KFold(3), error_score="raise")).all()


# Missing cells


def with_gaps():
    X, y = weather(120)
    return X.assign(wind=X["wind"].mask(y.eq("wet"))), y


@pytest.mark.parametrize("kind", EVERY)
def test_missing_cells_are_refused_unless_asked_for(kind):
    X, y = with_gaps()
    with pytest.raises(ValueError, match="missing cells in column 'wind'"):
        kind().fit(X, y)
    with pytest.raises(ValueError, match=r"X has cells that are NaN: pass missing='infer'"):
        kind().fit(np.array([[1.0, np.nan], [2.0, 3.0]]), [0, 1])
    with pytest.raises(ValueError, match="missing='sum' is not known: use 'error', 'state', 'drop' or 'infer'"):
        kind(missing="sum").fit(X, y)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_missing_cells_can_be_a_state(kind):
    X, y = with_gaps()
    classifier = kind(missing="state").fit(X, y)
    assert classifier.network_.variables[1].labels == ("calm", "storm", "(missing)")
    assert classifier.score(X, y) > 0.95


def test_cases_with_missing_cells_can_be_left_out():
    X, y = with_gaps()
    classifier = NetworkClassifier(missing="drop").fit(X, y)
    assert classifier.network_.variables[1].labels == ("calm", "storm")
    assert classifier.network_.nodes[0].counts.sum() == (y == "dry").sum()
    assert classifier.predict_proba(X).shape == (120, 2)
    declared = leafwise.read(X, missing="state", bins={"warm": 4}).variables
    again = NetworkClassifier(missing="drop", variables=declared).fit(X, y)
    assert again.network_.variables[1].labels == ("calm", "storm")


# Settings


def test_numbers_of_networks_from_a_search_over_them():
    X, y = weather()
    grid = {"networks": np.arange(1, 3)}
    assert GridSearchCV(NetworkClassifier(), grid, cv=2, error_score="raise").fit(X, y).best_params_["networks"] in (
        1,
        2,
    )


def test_settings_reach_the_search():
    X, y = promoters()
    assert DecisionGraphClassifier(max_leaves=np.int64(1)).fit(X, y).network_.n_leaves == 1
    assert DecisionGraphClassifier(max_parents=1).fit(X, y).network_.nodes[-1].parents == (4,)
    without = Constraints(forbidden=[("x5", "class")], max_leaves=2)
    network = DecisionGraphClassifier(constraints=without, structure_prior="uniform").fit(X, y).network_
    assert 4 not in network.nodes[-1].parents
    assert network.n_leaves == 2
    learned = [DecisionGraphClassifier(operators=operators).fit(X, y).network_.learned for operators in ("C", "BM")]
    assert [how["operators"] for how in learned] == ["C", "BM"]
    assert (
        NetworkClassifier(search=TableArcSearch(), max_parents=2).fit(X[:, 3:12], y).network_.learned["search"]
        == "tables"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"bins": "many"}, "bins='many' is not known"),
        ({"bins": 1}, "fewer than 2 bins"),
        ({"bins": 2.5}, "not a count of bins"),
        ({"bins": {"heat": 3}}, "bins name 'heat'"),
        ({"operators": "X"}, "operators are 'X'"),
        ({"structure_prior": "kappa:2"}, "structure prior 'kappa:2' is not known"),
        ({"search": LeafSearch(), "operators": "C"}, "search=.* was given with operators='C'"),
    ],
)
@pytest.mark.parametrize("kind", EVERY)
def test_wrong_settings_are_refused_when_fitted(kind, given, message):
    X, y = weather()
    with pytest.raises((ValueError, TypeError), match=message):
        kind(**given).fit(X, y)


@pytest.mark.parametrize("kind", EVERY)
def test_whole_weights_are_repeated_cases(kind):
    X, y = weather()
    n = np.random.default_rng(1).integers(0, 4, 60)
    own = [] if kind is NetworkDensity else [y]
    by_hand = kind().fit(X.loc[X.index.repeat(n)], *(one.repeat(n) for one in own)).network_
    assert kind().fit(X, *own, sample_weight=n).network_ == by_hand
    assert kind().fit(X, *own, sample_weight=np.ones(60)).network_ == kind().fit(X, *own).network_


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_classes_have_weights(kind):
    X, y = weather()
    found = kind(class_weight={"wet": 3, "dry": 1}).fit(X, y).network_
    assert found == kind().fit(X, y, sample_weight=np.where(y == "wet", 3, 1)).network_
    balanced = kind(class_weight="balanced").fit(X, y, sample_weight=np.full(60, 2)).network_
    assert balanced.learned["cases"] == 120
    shares = kind(class_weight="balanced", structure_prior="kappa:1e-9").fit(X, y).network_.nodes[-1].probabilities
    assert shares == pytest.approx(np.full((1, 2), 0.5), abs=0.005)  # one leaf: both classes weigh the same


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_weights_go_with_their_cases_where_some_are_dropped(kind):
    X, y = weather()
    n = np.random.default_rng(1).random(60)
    X.loc[5:9, "wind"] = None
    whole = X.drop(index=range(5, 10)).assign(wind=lambda frame: frame["wind"].astype(str))
    given = {"bins": 3, "binning": "uniform"}
    one = kind(missing="drop", **given).fit(X, y, sample_weight=n).network_
    other = kind(**given).fit(whole, y[whole.index], sample_weight=n[whole.index]).network_
    assert one.learned["cases"] == other.learned["cases"] == round(n[whole.index].sum())


@pytest.mark.parametrize("kind", [*EVERY, NetworkImputer])
def test_where_no_whole_case_is_left_it_is_said(kind):
    X, y = weather()
    for gaps in (X.assign(wind=None), X.assign(wind=X["wind"].mask(y == "wet"), sky=X["sky"].mask(y == "dry"))):
        with pytest.raises(ValueError, match="every case has a missing cell, so missing='drop' leaves none"):
            kind(missing="drop").fit(gaps, y)


def test_what_is_no_weight_is_refused():
    X, y = weather()
    with pytest.raises(ValueError, match="case 1 has the weight -1"):
        NetworkClassifier().fit(X, y, sample_weight=np.full(60, -1))
    with pytest.raises(ValueError, match="there are 60 cases"):
        NetworkDensity().fit(X, sample_weight=np.ones(59))


# In company


def test_grid_search_chooses_among_priors_and_operators():
    X, y = promoters()
    grid = {"structure_prior": ["kappa:1e-40", "kappa:0.1", "uniform"], "operators": ["C", "CBM"]}
    search = GridSearchCV(DecisionGraphClassifier(), grid, scoring="neg_log_loss", cv=3).fit(X, y)
    scores = dict(zip(map(str, search.cv_results_["params"]), search.cv_results_["mean_test_score"], strict=True))
    assert search.best_params_["structure_prior"] == "kappa:0.1"
    assert len(set(scores.values())) == 5  # without a single split, the operators make no difference
    density = GridSearchCV(NetworkDensity(), {"structure_prior": ["kappa:1e-40", "kappa:0.1"]}, cv=3)
    assert density.fit(X[:, [4, 4, 11]]).best_params_ == {"structure_prior": "kappa:0.1"}


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_it_works_in_pipelines_and_cross_validation(kind):
    X, y = promoters()
    folds = StratifiedKFold(3, shuffle=True, random_state=1)
    alike = {"operators": "CBM", "structure_prior": "kappa:0.02"}  # whether states are numbers, in order, or not
    encoded = cross_val_score(make_pipeline(OrdinalEncoder(), kind(bins=None, **alike)), X, y, cv=folds)
    np.testing.assert_array_equal(encoded, cross_val_score(kind(**alike), X, y, cv=folds))
    assert encoded.mean() > 0.8
    frame, ground = weather()
    scaled = make_pipeline(StandardScaler(), kind()).fit(frame[["warm"]], ground)
    assert len(scaled[-1].network_.variables[0].cuts) == 3


@pytest.mark.parametrize("kind", EVERY)
def test_it_is_cloned_and_pickled(kind):
    X, y = weather()
    variables = leafwise.read(X, bins={"warm": 3}).variables
    given = kind(variables=variables, constraints=Constraints(max_parents=2), structure_prior="kappa:0.2")
    fitted = clone(given).fit(X, y)
    back = pickle.loads(pickle.dumps(fitted))
    assert back.network_ == fitted.network_
    ask = "score_samples" if kind is NetworkDensity else "predict_proba"
    np.testing.assert_array_equal(getattr(back, ask)(X), getattr(fitted, ask)(X))
    assert "structure_prior='kappa:0.2'" in repr(back)


@pytest.mark.parametrize("kind", EVERY)
def test_cases_with_missing_cells_can_be_learned_from(kind):
    X, y = with_gaps()
    fitted = kind(missing="infer").fit(X, y)
    assert fitted.network_.variables[1].labels == ("calm", "storm")
    ask = "score_samples" if kind is NetworkDensity else "predict_log_proba"
    assert np.isfinite(getattr(fitted, ask)(X)).all()


@pytest.mark.parametrize("kind", EVERY)
def test_new_cases_may_lack_cells_without_options(kind):
    X, y = weather(120)
    fitted = kind().fit(X, y)
    ask = "score_samples" if kind is NetworkDensity else "predict_log_proba"
    assert np.isfinite(getattr(fitted, ask)(X.assign(wind=None))).all()


@pytest.mark.parametrize("given", [{}, {"how": "most probable", "missing": "drop", "bins": 4}])
def test_scikit_learn_accepts_the_imputer(given):
    checks = check_estimator(NetworkImputer(**given), on_skip=None)
    others = {check["check_name"] for check in checks if check["status"] != "passed"}
    assert others <= {"check_array_api_input"}


def test_an_imputer_fills_in_what_fits():
    random = np.random.default_rng(1)
    X, _ = weather(200)
    X = X.assign(cold=np.where(X["warm"] < 0, "yes", "no"), day=7)
    holes = random.random(X.shape) < 0.15
    holes[:, -1] = random.random(200) < 0.1
    gaps = X.astype(object).mask(holes)
    gaps["warm"] = gaps["warm"].astype(float)
    imputer = NetworkImputer(random_state=1).fit(gaps)
    full = imputer.transform(gaps)
    assert full.shape == X.shape
    assert (full[~holes] == X.to_numpy(object)[~holes]).all()
    assert set(full[:, 0]) == {"clear", "grey", "black"}
    lacks = holes[:, 3] & ~holes[:, 2]
    assert ((full[lacks, 3] == "yes") == (full[lacks, 2].astype(float) < 0)).mean() > 0.8
    assert set(full[holes[:, 2], 2]) <= set(X["warm"])
    assert (full == imputer.transform(gaps)).all()
    one, two = imputer.draws(gaps, 2)
    assert (one != two).any()
    with pytest.raises(ValueError, match="n_draws == 0, must be >= 1"):
        imputer.draws(gaps, 0)
    with pytest.raises(TypeError, match="n_draws must be an instance of"):
        imputer.draws(gaps, 2.5)
    best = NetworkImputer(how="most probable").set_output(transform="pandas").fit_transform(gaps)
    assert list(best.columns) == list(X.columns)
    assert (best["day"].astype(int) == 7).all()
    odd = gaps.copy()
    odd.loc[0, "sky"] = "purple"
    assert imputer.transform(odd)[0, 0] == "purple"
    with pytest.raises(ValueError, match="how='mean' is not known"):
        NetworkImputer(how="mean").fit(X)
    with pytest.raises(ValueError, match="nothing can be inferred: leave it out"):
        NetworkImputer().fit(gaps.assign(day=None))


def test_an_imputer_gives_frames_whose_columns_keep_their_types():
    frame = pd.DataFrame({"sky": ["grey", None] * 30, "warm": [1.5, np.nan, 2.5] * 20, "day": range(60)}, range(5, 65))
    imputer = NetworkImputer(random_state=1)
    filled = imputer.set_output(transform="pandas").fit_transform(frame)
    assert list(filled.dtypes[1:]) == [np.float64, np.int64]
    assert list(filled.index) == list(frame.index)
    assert (filled.to_numpy(object) == imputer.set_output(transform="default").transform(frame)).all()
    filled = imputer.set_output(transform="polars").fit_transform(pl.from_pandas(frame))
    assert filled.dtypes == [pl.String, pl.Float64, pl.Int64]
    assert DecisionGraphClassifier().fit(filled, ["a", "b"] * 30).network_.variables[1].cuts
    frame["cut"] = pd.cut(frame["day"].where(frame["day"] % 3 > 0), 4)
    for kind in ("pandas", "polars"):
        filled = imputer.set_output(transform=kind).fit_transform(frame)
        assert set(filled["cut"]) <= {*map(str, frame["cut"].cat.categories)}


def test_variables_in_another_order_than_the_columns():
    X, y = weather()
    gaps = X.assign(wind=X["wind"].mask(y == "wet"))
    known = leafwise.read(X[["wind", "warm", "sky"]]).variables
    imputer = NetworkImputer(variables=known, random_state=1).fit(gaps)
    assert imputer.network_.names == ("sky", "wind", "warm")
    filled = imputer.transform(gaps)
    assert (filled[:, [0, 2]] == X[["sky", "warm"]].to_numpy()).all()
    assert set(filled[:, 1]) == {"calm", "storm"}
    drawn = NetworkDensity(variables=known).fit(X).sample(50, random_state=1)
    assert set(drawn[:, 1]) == {"calm", "storm"}
    with pytest.raises(ValueError, match="variables has 2 of the 3 columns of X"):
        NetworkImputer(variables=known[:2]).fit(gaps)


def test_an_imputer_in_a_pipeline():
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    random = np.random.default_rng(1)
    X = random.normal(size=(150, 1)) + random.normal(scale=0.2, size=(150, 3))
    y = X[:, 0] > 0
    X[random.random(X.shape) < 0.2] = np.nan
    pipeline = make_pipeline(NetworkImputer(random_state=1), LogisticRegression())
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.8


@pytest.mark.parametrize("y", [["x", "y"], np.array(["x", "y"]), np.array(["x", "y"], object), [1, 2]])
def test_declared_classes_are_of_the_type_of_the_labels(y):
    classes = ["x", "y", "z"] if y[0] == "x" else [1, 2, 3]
    classifier = DecisionGraphClassifier(classes=classes).fit([["a"], ["b"]] * 9, np.tile(y, 9))
    assert classifier.classes_.tolist() == classes
    assert classifier.predict([["a"], ["b"]]).tolist() == list(y)
