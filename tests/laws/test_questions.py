"""Independence, interventions, explanations and information are what the full joint table says."""

import networkx
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from network_strategies import networks
from oracle_inference import joint_table, marginal, weighted
from random_networks import random_network, single, variables
from strategies import examples

import leafwise
from leafwise.data.table import Table, Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference import explanation, information, sampling
from leafwise.inference import importance as importance_sampling
from leafwise.inference.exact import Exact, Impossible, Limits
from leafwise.inference.explanation import explain
from leafwise.inference.importance import importance
from leafwise.inference.independence import contexts, is_independent, markov_blanket
from leafwise.inference.information import entropy, mutual_information, value_of_information
from leafwise.inference.intervention import do
from leafwise.inference.loopy import propagate
from leafwise.inference.query import query
from leafwise.inference.sampling import Approximate, sample
from leafwise.network import Network, Node


@st.composite
def plain_networks(draw, least=1):
    """Networks with plain labels, of which a few probabilities are zero."""
    network = draw(networks(complete=True).filter(lambda one: len(one.variables) >= least))
    variables = [
        Variable(f"x{v}", tuple(f"s{k}" for k in range(one.n_states))) for v, one in enumerate(network.variables)
    ]
    return Network(tuple(variables), network.nodes)


def pick(draw, network, n):
    return draw(st.permutations(range(len(network.variables))))[:n]


def factorises(table, one, other):
    """Whether two axes of what is left are independent, whatever the others are."""
    moved = np.moveaxis(table, (one, other), (0, 1))
    rows = moved.reshape(moved.shape[0], moved.shape[1], -1)
    product = rows.sum(axis=1, keepdims=True) * rows.sum(axis=0, keepdims=True)
    return np.allclose(rows * rows.sum(axis=(0, 1), keepdims=True), product, atol=1e-12)


@examples(150)
@given(st.data())
def test_independence_holds_in_the_joint_table(data):
    network = data.draw(plain_networks(least=2))
    order = pick(data.draw, network, len(network.variables))
    one, other, *rest = order
    known = rest[: data.draw(st.integers(0, len(rest)))]
    states = {v: data.draw(st.integers(0, network.variables[v].n_states - 1) | st.none()) for v in known}
    context = {f"x{v}": None if state is None else f"s{state}" for v, state in states.items()}
    if not is_independent(network, f"x{one}", f"x{other}", context):
        return
    table = joint_table(network)
    for v, state in states.items():
        if state is not None:
            table = weighted(table, {v: np.eye(table.shape[v])[state]})
    kept = [one, other, *states]
    assert factorises(marginal(table, kept), 0, 1)


@examples(100)
@given(st.data())
def test_names_alone_are_d_separation(data):
    network = data.draw(plain_networks(least=2))
    one, other, *rest = pick(data.draw, network, len(network.variables))
    known = rest[: data.draw(st.integers(0, len(rest)))]
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(network.variables)))
    graph.add_edges_from((parent, v) for v, node in enumerate(network.nodes) for parent in node.graph.tested)
    expected = networkx.is_d_separator(graph, {one}, {other}, set(known))
    assert is_independent(network, f"x{one}", f"x{other}", [f"x{v}" for v in known]) == expected


@examples(80)
@given(plain_networks())
def test_blankets_and_contexts(network):
    table = joint_table(network)
    for v, name in enumerate(network.names):
        blanket = markov_blanket(network, name)
        for other in set(network.names) - {name, *blanket}:
            assert is_independent(network, name, other, blanket)
        for context in contexts(network, name):
            here = table
            for parent, labels in context.given.items():
                index = network.names.index(parent)
                held = [label in labels for label in network.variables[index].labels]
                here = weighted(here, {index: np.array(held, float)})
            parents = network.nodes[v].parents
            for gone in context.irrelevant:
                index = network.names.index(gone)
                others = [parent for parent in parents if parent != index]
                assert factorises(marginal(here, [v, index, *others]), 0, 1)


def test_the_context_of_the_readme():
    network = leafwise.learn(leafwise.sample(alarm(), 1000, seed=1))
    assert not is_independent(network, "SHUNT", "PULMEMBOLUS", {"INTUBATION": "NORMAL"})
    context = {"INTUBATION": "ONESIDED"}
    assert is_independent(network, "SHUNT", "PULMEMBOLUS", context)
    assert "PULMEMBOLUS" in markov_blanket(network, "SHUNT")
    assert "PULMEMBOLUS" not in markov_blanket(network, "SHUNT", given=context)


@examples(60)
@given(st.data())
def test_interventions_cut_a_variable_off_its_parents(data):
    network = data.draw(plain_networks())
    (v,) = pick(data.draw, network, 1)
    state = data.draw(st.integers(0, network.variables[v].n_states - 1))
    expected = np.ones([one.n_states for one in network.variables])
    for case in np.ndindex(*expected.shape):
        for index, node in enumerate(network.nodes):
            own = node.probabilities[node.graph.leaf_of(case), case[index]]
            expected[case] *= float(case[v] == state) if index == v else own
    np.testing.assert_allclose(joint_table(do(network, {f"x{v}": f"s{state}"})), expected, atol=1e-15)


@pytest.mark.interpreted
@examples(80)
@given(st.data())
def test_the_most_probable_states_of_some_variables(data):
    network = data.draw(plain_networks())
    order = pick(data.draw, network, len(network.variables))
    targets = order[: data.draw(st.integers(1, len(order)))]
    known = order[len(targets) :][:2]
    weights = {v: np.eye(network.variables[v].n_states)[0] for v in known}
    table = weighted(joint_table(network), weights)
    names, evidence = [f"x{v}" for v in targets], {f"x{v}": "s0" for v in known}
    if table.sum() == 0:
        with pytest.raises(ValueError, match="impossible"):
            explain(network, names, given=evidence)
        return
    best = explain(network, names, given=evidence)
    sums = marginal(table, targets)
    states = tuple(int(best.states[name][1:]) for name in names)
    assert sums[states] == pytest.approx(sums.max(), rel=1e-9)
    assert best.log_probability == pytest.approx(np.log(sums.max()), abs=1e-9)
    assert best.log_posterior == pytest.approx(np.log(sums.max() / table.sum()), abs=1e-9)
    assert best.method == "exact"


@pytest.mark.interpreted
@examples(60)
@given(st.data())
def test_information_is_that_of_the_joint_table(data):
    network = data.draw(plain_networks(least=2))
    one, other, *rest = pick(data.draw, network, len(network.variables))
    weights = {rest[0]: np.arange(1.0, network.variables[rest[0]].n_states + 1)} if rest else {}
    evidence = {f"x{v}": {f"s{k}": w for k, w in enumerate(weight)} for v, weight in weights.items()}
    table = weighted(joint_table(network), weights)
    assume(table.sum() > 0)
    joint = marginal(table / table.sum(), [one, other])

    def nats(shares):
        return float(-(shares[shares > 0] @ np.log(shares[shares > 0])))

    a, b = joint.sum(axis=1), joint.sum(axis=0)
    expected = nats(a) + nats(b) - nats(joint)
    names = f"x{one}", f"x{other}"
    assert entropy(network, names[0], given=evidence) == pytest.approx(nats(a), abs=1e-9)
    assert mutual_information(network, *names, given=evidence)[names[1]] == pytest.approx(expected, abs=1e-9)
    decisions = np.random.default_rng(1).normal(size=(2, len(a)))
    utilities = {f"d{k}": {f"s{s}": u for s, u in enumerate(row)} for k, row in enumerate(decisions)}
    value = value_of_information(network, *names, given=evidence, utilities=utilities)[names[1]]
    assert value.information == pytest.approx(expected, abs=1e-9)
    assert value.entropy_after == pytest.approx(nats(joint) - nats(b), abs=1e-9)
    assert value.best_guess == pytest.approx(joint.max(axis=0).sum())
    gain = (decisions @ joint).max(axis=0).sum() - (decisions @ a).max()
    assert value.gain == pytest.approx(gain, abs=1e-9)


@pytest.mark.interpreted
@examples(60)
@given(plain_networks())
def test_loopy_propagation_is_exact_on_trees(network):
    graph = networkx.Graph()
    graph.add_edges_from((f"f{v}", u) for v, node in enumerate(network.nodes) for u in (v, *node.graph.tested))
    assume(networkx.is_forest(graph))
    table = joint_table(network)
    found = propagate(network, range(table.ndim), {})
    assert found.settled
    for v, shares in enumerate(found.distributions):
        np.testing.assert_allclose(shares, marginal(table, [v]) / table.sum(), atol=1e-9)


@pytest.mark.interpreted
def test_loopy_propagation_where_the_state_that_evidence_favours_is_ruled_out_last():
    n, graph = 120, DecisionGraph.complete([0], [3])
    sign = Node((0,), graph, np.array([[0.9999, 0.0001], [0.0001, 0.9999], [0.9999, 0.0001]]))
    last = Node((0,), graph, np.array([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]))
    network = Network(variables((3, *[2] * (n + 1))), (single([0.4, 0.2, 0.4]), *[sign] * n, last))
    found = query(network, "x0", given={f"x{v + 1}": "s1" for v in range(n + 1)}, method="loopy")
    assert list(found["x0"].values()) == pytest.approx([0.4, 0.0, 0.6])


@pytest.mark.interpreted
@pytest.mark.parametrize(("chance", "what"), [(0.25, "numbers too small to represent"), (0.0, "is impossible")])
def test_loopy_propagation_tells_numbers_that_are_too_small_from_impossible_evidence(chance, what):
    """Of x1, a copy of x0, evidence favours the state that x0 cannot have, by more than doubles can hold."""
    n, states = 120, [2, 2]
    first, second = (DecisionGraph.complete([parent], states) for parent in (0, 1))
    sign = Node((1,), second, np.array([[0.9999, 0.0001], [0.0001, 0.9999]]))
    last = Node((0,), first, np.array([[1 - chance, chance], [1.0, 0.0]]))
    nodes = (single([0.5, 0.5]), Node((0,), first, np.eye(2)), *[sign] * n, last)
    network, given = Network(variables([2] * (n + 3)), nodes), {f"x{v + 2}": "s1" for v in range(n + 1)}
    with pytest.raises(ValueError, match=what) as refusal:
        query(network, "x0", given=given, method="loopy")
    assert isinstance(refusal.value, Impossible) == (chance == 0)


@pytest.mark.parametrize("evidence", [{"x0": "s0", "x1": "s1"}, {"x1": "s1"}])
@pytest.mark.parametrize("target", ["x0", "x1", "x2"])
def test_loopy_propagation_refuses_impossible_evidence(evidence, target):
    sure, copy = single([1.0, 0.0]), Node((0,), DecisionGraph.complete([0], [2]), np.eye(2))
    network = Network(variables((2, 2, 2)), (sure, copy, single([0.3, 0.7])))
    with pytest.raises(Impossible):
        query(network, target, given=evidence, method="loopy")


LITTLE = Limits(operations=1)
STATES = (2, 3, 2, 3, 2)


@pytest.fixture
def few(monkeypatch):
    """Fewer samples: the tests are also run without a compiler."""
    monkeypatch.setattr(explanation, "_CASES", 3000)
    monkeypatch.setattr(information, "_CASES", 3000)
    monkeypatch.setattr(sampling, "_LEAST", 3000)
    for name, value in {"_CASES": 500, "_ROUNDS": 4, "_ROUND": 300, "_FIRST_TURN": 1024}.items():
        monkeypatch.setattr(importance_sampling, name, value)


@pytest.mark.interpreted
@pytest.mark.usefixtures("few")
def test_what_is_too_costly_falls_back_and_says_so():
    network = random_network(11, STATES)
    evidence = {"x1": "s2"}
    exact = explain(network, given=evidence)
    found = explain(network, given=evidence, limits=LITTLE)
    assert (found.method, dict(found.states)) == ("search", dict(exact.states))
    assert found.log_probability == pytest.approx(exact.log_probability, abs=1e-9)
    assert found.log_posterior == pytest.approx(exact.log_posterior, abs=0.1)
    assert "Limits(operations=...)" in found.note
    some = explain(network, ["x0", "x3"], given=evidence, limits=LITTLE)
    assert dict(some.states) == dict(explain(network, ["x0", "x3"], given=evidence).states)
    with pytest.raises(ValueError, match="an exact answer takes about"):
        explain(network, given=evidence, limits=LITTLE, method="exact")
    with pytest.raises(ValueError, match="is not known: use 'auto'"):
        explain(network, method="guess")
    with pytest.warns(Approximate, match="raise Limits"):
        drawn = sample(network, 300, seed=1, given=evidence, limits=LITTLE)
    shares = np.bincount(drawn.codes[3], minlength=3) / 300
    right = query(network, "x3", given=evidence).distributions[0]
    assert (drawn.codes[1] == 2).all()
    assert abs(shares - right).max() < 0.1
    with pytest.warns(Approximate, match="worth"):
        found = mutual_information(network, "x0", ["x2", "x3"], given=evidence, limits=LITTLE)
    exact = mutual_information(network, "x0", ["x2", "x3"], given=evidence)
    for name, value in exact.items():
        assert found[name] == pytest.approx(value, abs=0.02)


@pytest.mark.interpreted
@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("joint", [False, True])
def test_importance_sampling_is_as_good_as_it_says(joint):
    network = random_network(7, STATES, zeros=0.1)
    weights = {1: np.array([0.0, 0.0, 1.0]), 3: np.array([1.0, 0.5, 0.0])}
    targets = [0, 2, 4]
    tables = [tuple(targets)] if joint else [(v,) for v in targets]
    log_evidence, right = Exact.of(network, weights, tables, Limits()).distributions()
    found = importance(network, targets, weights, n_samples=4000, seed=3, joint=joint, threads=1)
    again = importance(network, targets, weights, n_samples=4000, seed=3, joint=joint, threads=3)
    for mine, errors, theirs, same in zip(
        found.probabilities, found.standard_errors, right, again.probabilities, strict=True
    ):
        assert (abs(mine - theirs) <= 5 * errors).all()
        np.testing.assert_array_equal(mine, same)
    assert abs(found.log_evidence - log_evidence) < 5 * found.log_evidence_error + 1e-9


@pytest.mark.interpreted
@pytest.mark.usefixtures("few")
def test_anytime():
    network = random_network(11, STATES)
    evidence = {"x1": "s2"}
    assert query(network, "x0", given=evidence, seconds=5).method == "exact"
    found = query(network, "x0", given=evidence, error=0.02, limits=LITTLE)
    assert found.method == "importance"
    assert found.standard_errors[0].max() <= 0.02
    assert "raise Limits(operations=...)" in found.note
    short = query(network, "x0", given=evidence, error=1e-9, seconds=0.05, limits=LITTLE)
    assert "above the 1e-09 that was asked for" in short.note
    loopy = query(network, "x0", given=evidence, method="loopy")
    assert loopy.standard_errors is None
    assert "no error is known" in loopy.note
    others = {"method": "gibbs", "seconds": 1}, {"method": "loopy", "seconds": 1}, {"method": "loopy", "error": -1}
    for wrong in ({"seconds": 0}, {"error": float("nan")}, *others):
        with pytest.raises(ValueError, match=r"finite number above 0|does not stop by"):
            query(network, "x0", **wrong)
    with pytest.raises(ValueError, match="no joint"):
        query(network, ["x0", "x2"], joint=True, method="loopy")


def test_no_feature_explains_a_row_that_is_impossible():
    network = Network(variables((2, 2)), (single([1.0, 0.0]), single([0.3, 0.7])))
    table = Table(tuple(v.with_missing for v in network.variables), np.array([[0, 0, 1], [2, 1, 1]], np.uint8))
    with pytest.raises(ValueError, match="row 3 is impossible under this network, so importance is undefined"):
        leafwise.feature_importance(network, "x1", data=table)


def test_importance_needs_all_distributions():
    whole = random_network(11, STATES)
    network = Network(whole.variables, (None, *whole.nodes[1:]))
    for data in (None, sample(whole, 10, seed=1)):
        with pytest.raises(ValueError, match="no distribution of 'x0', and importance needs one for each variable"):
            leafwise.feature_importance(network, "x1", data=data)


def test_features_outside_the_blanket_do_not_matter():
    network = random_network(11, STATES)
    cases = sample(network, 400, seed=2)
    found = leafwise.feature_importance(network, "x0", data=cases)
    assert leafwise.feature_importance(network, "x0", data=cases.to_pandas()) == found
    blanket = markov_blanket(network, "x0")
    for name, value in found.items():
        given_all = {other: None for other in network.names if other not in ("x0", name)}
        if name not in blanket:
            assert is_independent(network, "x0", name, given_all)
            assert value.beyond == 0
    names = [name for name in network.names if name != "x0"]
    shown = [
        {name: network.variables[k].labels[case[k]] for k, name in enumerate(network.names) if name in names}
        for case in cases.codes.T
    ]
    for name in names:
        everything = network.prepare("x0", names).batch(shown)["x0"]
        without = network.prepare("x0", [other for other in names if other != name]).batch(
            [{other: state for other, state in row.items() if other != name} for row in shown]
        )["x0"]
        rows = np.arange(400), cases.codes[0]
        expected = np.log(everything[rows] / without[rows]).mean()
        assert found[name].beyond == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match="utilities of 'd'"):
        value_of_information(network, "x0", utilities={"d": {"s0": 1}})
