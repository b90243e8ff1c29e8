"""Exact inference: numbers that are too small for floats, costs and limits, missing cells, refusals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_strategies import networks
from oracle_inference import joint_table, marginal

import leafwise
from leafwise.data.table import Table, Variable, code_type
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference import evidence
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits
from leafwise.inference.explanation import explain
from leafwise.inference.independence import markov_blanket
from leafwise.inference.information import mutual_information
from leafwise.inference.query import query
from leafwise.mixture import Mixture
from leafwise.network import Network, Node


def _naive_bayes(prior, given_class, n_features):
    """A class and features that each depend on it alone."""
    variables = [Variable("class", tuple("abc"[: len(prior)]))]
    variables += [Variable(f"f{k}", ("no", "yes")) for k in range(n_features)]
    graph = DecisionGraph.complete([0], [len(prior)])
    nodes = [Node((), DecisionGraph.single(), np.array([prior]))]
    nodes += [Node((0,), graph, np.array(given_class))] * n_features
    return Network(tuple(variables), tuple(nodes))


def test_a_thousand_observations_do_not_underflow():
    network = _naive_bayes([0.5, 0.5], [[0.999, 0.001], [0.998, 0.002]], 1000)
    given_features = {f"f{k}": "yes" for k in range(1000)}
    answer = query(network, "class", given=given_features)
    expected = np.logaddexp(1000 * np.log(0.001), 1000 * np.log(0.002)) + np.log(0.5)
    assert answer.log_evidence == pytest.approx(expected, rel=1e-12)
    assert np.log(answer["class"]["a"]) == pytest.approx(-1000 * np.log(2), rel=1e-9)


def test_what_is_left_may_be_far_smaller_than_what_goes():
    """The likelihood ratio is e^-6900, and the state it favours is then ruled out: logs have to be used."""
    network = _naive_bayes([0.4, 0.0, 0.6], [[0.999, 0.001], [0.001, 0.999], [0.999, 0.001]], 1000)
    given_features = {f"f{k}": "yes" for k in range(1000)}
    answer = query(network, "class", given=given_features)
    assert answer.log_evidence == pytest.approx(1000 * np.log(0.001), rel=1e-12)
    assert list(answer["class"].values()) == pytest.approx([0.4, 0.0, 0.6])
    drawn = Exact.of(network, {k + 1: np.array([0.0, 1.0]) for k in range(1000)}, [(0,)], DEFAULT_LIMITS).draw(2000, 1)
    assert np.bincount(drawn[0], minlength=3) / 2000 == pytest.approx([0.4, 0, 0.6], abs=0.05)


@pytest.mark.parametrize(("n_for", "n_against"), [(200, 200), (170, 230)])
def test_what_shrinks_step_by_step_may_come_back(n_for, n_against):
    """Evidence for one state, then as much or more against it: no single step looks small."""
    n = n_for + n_against
    network = _naive_bayes([0.5, 0.5], [[0.99, 0.01], [0.01, 0.99]], n)
    given_features = {f"f{k}": "no" if k < n_for else "yes" for k in range(n)}
    log_odds = (n_for - n_against) * np.log(99)
    expected = [1 / (1 + np.exp(-log_odds)), 1 / (1 + np.exp(log_odds))]
    answer = query(network, "class", given=given_features)
    assert list(answer["class"].values()) == pytest.approx(expected)
    assert explain(network, given=given_features).log_posterior <= 1e-9
    gibbs = query(network, "class", given=given_features, method="gibbs", n_samples=1000)
    assert list(gibbs["class"].values()) == pytest.approx(expected, abs=0.1)


def test_weights_of_any_size():
    network = _naive_bayes([0.4, 0.6], [[0.9, 0.1], [0.2, 0.8]], 2)
    plain = query(network, "class", given={"f0": {"no": 1, "yes": 2}, "f1": "yes"})
    for scale in (1e-300, 1e300):
        scaled = query(network, "class", given={"f0": {"no": scale, "yes": 2 * scale}, "f1": {"yes": scale}})
        assert list(scaled["class"].values()) == pytest.approx(list(plain["class"].values()))
        assert scaled.log_evidence == pytest.approx(plain.log_evidence + 2 * np.log(scale))


def test_a_row_with_holes_is_given_as_it_is():
    network = alarm()
    known = {"HR": "HIGH", "CO": ["LOW", "NORMAL"]}
    row = {**known, "BP": None, "CVP": float("nan"), "PCWP": np.float64("nan")}
    for name in ("LVFAILURE", "BP"):
        assert query(network, name, given=row)[name] == query(network, name, given=known)[name]
    assert explain(network, given=row).states == explain(network, given=known).states
    asked = network.prepare("LVFAILURE", ["HR", "BP"])
    rows = [{"HR": "HIGH", "BP": None}, {"HR": float("nan")}]
    expected = [query(network, "LVFAILURE", given=one)["LVFAILURE"]["TRUE"] for one in ({"HR": "HIGH"}, {})]
    assert asked.batch(rows)["LVFAILURE"][:, network.variables[0].labels.index("TRUE")] == pytest.approx(expected)
    with pytest.raises(ValueError, match="'HR' is set to None, which is no state"):
        leafwise.do(network, {"HR": None})
    with pytest.raises(ValueError, match="gives 'BP' no state"):
        leafwise.is_independent(network, "HR", "CO", {"BP": float("nan")})


def test_a_hole_is_in_the_state_for_it_where_there_is_one():
    cases = np.array([["x", "x"], [None, "y"]] * 20, dtype=object)
    network = leafwise.learn(cases, missing="state")
    assert query(network, "x2", given={"x1": None})["x2"] == query(network, "x2", given={"x1": "(missing)"})["x2"]
    named = Network((Variable("a", ("None", "nan")),), (Node((), DecisionGraph.single(), np.array([[0.5, 0.5]])),))
    assert query(named, "a", given={"a": None})["a"]["None"] == 1.0  # a state is called so


def test_unusual_questions_are_refused_in_one_line():
    network, cut = alarm(), leafwise.learn(np.arange(6.0)[:, None], bins={"x1": 2})
    for ask, what in (
        (lambda: Limits(operations=0), "the limits are"),
        (lambda: Limits(memory=float("nan")), "the limits are"),
        (lambda: query(network, network.names, joint=True), "the joint distribution of the 37 targets"),
        (lambda: query(network, "CO", n_samples=-1), "-1 samples"),
        (lambda: query(network, "CO", given={"HR": {"LOW": 0.3, "HIGH": 1.0, " LOW": 0.1}}), "has no state ' LOW'"),
        (lambda: query(cut, "x1", given={"x1": "many"}), "'>= 3': use one of them, or give numbers"),
    ):
        with pytest.raises(ValueError, match=what) as caught:
            ask()
        assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match="not a mapping"):
        query(network, "CO", given="HR=LOW")
    row = pd.Series({"HR": "LOW"})
    for asked in (network, Mixture((network, network), (0.5, 0.5))):
        for ask in (partial(asked.query, "CO"), asked.explain, partial(asked.sample, 3)):
            with pytest.raises(TypeError, match=r"of type Series, not a mapping.*as dict\(row\)"):
                ask(given=row)
            ask(given=dict(row))
    with pytest.raises(TypeError, match=r"of type Series, not a mapping.*as dict\(row\)"):
        markov_blanket(network, "CO", given=row)
    assert mutual_information(network, "CO", "HR").keys() == {"HR"}


def test_other_spellings_are_looked_for_only_if_a_label_is_none(monkeypatch):
    """That takes a hundred times as long, which counts where one query follows another."""
    rates = Variable("rate", ("0.50", "1.5", "high"))
    network, looked = Network((rates,), (Node((), DecisionGraph.single(), np.array([[0.2, 0.3, 0.5]])),)), []
    found = evidence.positions
    monkeypatch.setattr(evidence, "positions", lambda variable: looked.append(variable) or found(variable))
    for known in ("1.5", ["0.50", "high"], {"0.50": 2, "high": 1}):
        evidence.weights_of(network, {"rate": known})
    assert not looked
    for other in (0.5, ["0.5", "high"], {"high": 1, 1.50: 2}):
        assert evidence.weights_of(network, {"rate": other})[0].sum() > 0
    assert looked == [rates] * 2  # as 1.50 is a number, of which the label is known


def test_impossible_evidence_is_one_line():
    network = _naive_bayes([0.4, 0.6], [[1.0, 0.0], [1.0, 0.0]], 2)
    for ask in (
        lambda given: query(network, "class", given=given),
        lambda given: explain(network, given=given),
        lambda given: mutual_information(network, "class", given=given),
        lambda given: leafwise.sample(network, 3, seed=1, given=given),
    ):
        with pytest.raises(ValueError, match=r"^the evidence is impossible under this network: .*\.$"):
            ask({"f0": "yes"})


def test_costs_are_known_and_limits_hold():
    network = alarm()
    every = [(variable,) for variable in range(37)]
    question = Exact.of(network, {}, every, DEFAULT_LIMITS)
    assert 0 < question.operations < 1e5
    assert 0 < question.memory < 1e6
    with pytest.raises(ValueError, match=r"an exact answer takes about .* KiB of memory, and the limit is"):
        query(network, network.names, method="exact", limits=Limits(memory=1000))
    with pytest.raises(ValueError, match=r"1\.0e\+02"):
        query(network, network.names, method="exact", limits=Limits(operations=100))
    answer = query(network, "CO", limits=Limits(operations=100), n_samples=20_000)
    assert answer.method == "weighting"
    exact = query(network, "CO")
    assert exact.method == "exact"
    assert exact.standard_errors is None
    assert answer.standard_errors is not None
    z = (answer.distributions[0] - exact.distributions[0]) / answer.standard_errors[0]
    assert abs(z).max() < 5


def test_weighting_that_is_worth_little_gives_way():
    network = _naive_bayes([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], 3)
    cut = Limits(operations=1)
    given_features = {"f0": {"no": 1.0, "yes": 2.0}}
    assert query(network, "class", given=given_features, limits=cut, n_samples=5000).method == "weighting"
    rare = _naive_bayes([0.999, 0.001], [[0.9, 0.1], [0.2, 0.8]], 8)
    alarming = {f"f{k}": "yes" for k in range(8)}
    assert query(rare, "class", given=alarming, limits=cut, n_samples=5000).method == "importance"
    for method in ("weighting", "gibbs"):
        answer = query(network, "class", given=given_features, method=method, n_samples=5000)
        assert answer.method == method
        assert answer["class"]["a"] == pytest.approx(1.1 / 2.9, abs=0.05)


def test_joint_of_two():
    network = alarm()
    answer = query(network, ["CO", "HR"], joint=True)
    single = query(network, ["CO", "HR"])
    np.testing.assert_allclose(answer.distributions[0].sum(axis=1), single.distributions[0])
    np.testing.assert_allclose(answer.distributions[0].sum(axis=0), single.distributions[1])
    with pytest.raises(TypeError, match="together"):
        answer["CO"]


def test_mutual_information_is_that_of_the_joint_distribution():
    network = alarm()
    joint = query(network, ["CO", "HR"], joint=True, given={"BP": "LOW"}).distributions[0]
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    expected = (joint[joint > 0] * np.log(joint[joint > 0] / apart[joint > 0])).sum()
    assert mutual_information(network, "CO", ["HR"], given={"BP": "LOW"})["HR"] == pytest.approx(expected, abs=1e-12)
    assert len(mutual_information(network, "CO")) == 36


def test_mutual_information_where_numbers_are_too_small_for_the_plan():
    """Each of two states decides which state of another a thousand observations favour, by e^6900."""
    single, both = DecisionGraph.single(), DecisionGraph.complete([0, 1], [2, 2])
    roots = [Node((), single, np.array([[0.5, 0.5]]))] * 2
    feature = Node((0, 1), both, np.array([[0.999, 0.001], [0.001, 0.999], [0.001, 0.999], [0.999, 0.001]]))
    variables = [Variable(name, ("no", "yes")) for name in ("a", "b", *(f"f{k}" for k in range(1000)))]
    network = Network(tuple(variables), (*roots, *[feature] * 1000))
    observed = {f"f{k}": "yes" for k in range(1000)}
    assert mutual_information(network, "a", "b", given=observed)["b"] == pytest.approx(np.log(2))


def test_explanation_is_a_case_of_that_probability():
    network = alarm()
    best = explain(network, given={"BP": "LOW", "HR": ["LOW", "HIGH"]})
    codes = [v.labels.index(best.states[v.name]) for v in network.variables]
    case = Table(network.variables, np.array(codes, np.uint8)[:, None])
    assert leafwise.log_probabilities(network, case)[0] == pytest.approx(best.log_probability, abs=1e-9)
    assert best.states["BP"] == "LOW"
    assert best.states["HR"] in ("LOW", "HIGH")
    assert best.log_posterior == pytest.approx(
        best.log_probability - query(network, [], given={"BP": "LOW", "HR": ["LOW", "HIGH"]}).log_evidence
    )


def test_no_targets():
    for joint in (False, True):
        answer = query(alarm(), [], given={"BP": "LOW"}, joint=joint)
        assert len(answer.to_pandas()) == joint
        assert repr(answer).startswith("Answer (exact)")
    for method in ("exact", "search"):
        with pytest.raises(ValueError, match="explain got no targets"):
            explain(alarm(), [], method=method)


def test_a_variable_that_tells_everything_leaves_no_entropy():
    network = _naive_bayes([0.4, 0.6], [[1.0, 0.0], [0.0, 1.0]], 1)
    left = leafwise.value_of_information(network, "class", "f0")["f0"].entropy_after
    assert f"{left:.6f}" == "0.000000"


def test_a_model_of_one_target_answers_when_its_parents_are_given():
    cases = leafwise.sample(alarm(), 500, seed=1)
    network = leafwise.learn(cases, target="HRBP")
    parents = {network.names[p]: network.variables[p].labels[0] for p in network.nodes[8].parents}
    leaf = network.nodes[8].graph.leaf_of([0] * 37)
    answer = query(network, "HRBP", given=parents)
    assert list(answer["HRBP"].values()) == pytest.approx(network.nodes[8].probabilities[leaf].tolist())
    with pytest.raises(ValueError, match="has no distribution of"):
        query(network, "HRBP")


@st.composite
def tables_with_gaps(draw):
    network = draw(networks(complete=True).filter(lambda one: not any(v.missing for v in one.variables)))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    variables, rows = [], []
    for variable in network.variables:
        gaps = random.random(12) < draw(st.sampled_from([0.0, 0.3, 0.8]))
        rows.append(np.where(gaps, variable.n_states, random.integers(0, variable.n_states, 12)))
        variables.append(variable.with_missing if gaps.any() else variable)
    codes = np.array(rows).astype(code_type(tuple(variables)))
    return network, Table(tuple(variables), codes)


@settings(max_examples=40)
@given(tables_with_gaps())
def test_missing_cells_are_summed_over(pair):
    network, table = pair
    found = leafwise.log_probabilities(network, table)
    whole = joint_table(network)
    for case, value in zip(table.codes.T, found, strict=True):
        known = [v for v in range(whole.ndim) if case[v] < whole.shape[v]]
        expected = marginal(whole, known)[tuple(case[known])]
        assert np.exp(value) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def test_many_constant_variables_may_be_missing():
    constant = Node((), DecisionGraph.single(), np.array([[1.0]]))
    variables = tuple(Variable(f"c{k}", ("only",)) for k in range(70))
    network = Network(variables, (constant,) * 70)
    table = Table(tuple(v.with_missing for v in variables), np.ones((70, 2), np.uint8))
    assert leafwise.log_probabilities(network, table).tolist() == [0.0, 0.0]


def test_missing_cells_of_a_file(tmp_path):
    (tmp_path / "cases.csv").write_text("class,f0,f1\na,yes,\n,,no\nb,no,yes\n")
    network = _naive_bayes([0.25, 0.75], [[0.9, 0.1], [0.2, 0.8]], 2)
    table = leafwise.read(tmp_path / "cases.csv", variables=network.variables, missing="unknown")
    found = np.exp(leafwise.log_probabilities(network, table))
    assert found.tolist() == pytest.approx([0.25 * 0.1, 0.25 * 0.9 + 0.75 * 0.2, 0.75 * 0.2 * 0.8])
    with pytest.raises(ValueError, match="missing='unknown' needs the variables of a network"):
        leafwise.read(tmp_path / "cases.csv", missing="unknown")
    with pytest.raises(ValueError, match="missing cells in columns 'class'"):
        leafwise.log_score(network, table, prior="uniform", structure_prior="uniform")
