import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_strategies import assignments, networks

from leafwise.data.table import Table, Variable, code_type
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.sampling import sample
from leafwise.kernels.questions import routes
from leafwise.network import Network, Node


def random_table(network, n_cases, seed):
    random = np.random.default_rng(seed)
    columns = [random.integers(variable.n_states, size=n_cases) for variable in network.variables]
    return Table(network.variables, np.array(columns, dtype=code_type(network.variables)))


def log_probability_by_walking(network, case):
    total = 0.0
    for index, node in enumerate(network.nodes):
        if node is not None:
            p = node.probabilities[node.graph.leaf_of(case), case[index]]
            total += math.log(p) if p > 0 else -math.inf
    return total


@settings(deadline=None)  # the first call compiles
@given(networks(), st.integers(0, 40))
def test_log_probabilities_are_those_of_walking(network, n_cases):
    table = random_table(network, n_cases, 0)
    expected = [log_probability_by_walking(network, case) for case in table.codes.T.tolist()]
    np.testing.assert_allclose(log_probabilities(network, table), expected, rtol=1e-12)


@settings(deadline=None)  # the first call compiles
@given(networks(complete=True))
def test_the_joint_distribution_sums_to_one(network):
    cases = assignments([variable.n_states for variable in network.variables])
    if len(cases) <= 5000:
        table = Table(network.variables, np.array(cases, np.uint8).T.copy())
        assert math.isclose(np.exp(log_probabilities(network, table)).sum(), 1, rel_tol=1e-9)


@settings(deadline=None)  # the first call compiles
@given(networks(), st.integers(0, 40))
def test_leaves_and_their_counts(network, n_cases):
    table = random_table(network, n_cases, 1)
    for index, node in enumerate(network.nodes):
        if node is None:
            continue
        test, first, child, root = routes.flatten([node.graph])
        leaves = [node.graph.leaf_of(case) for case in table.codes.T.tolist()]
        assert routes.leaves_of(table.codes, test, first, child, root[0]).tolist() == leaves
        expected = np.zeros(node.probabilities.shape, np.int64)
        np.add.at(expected, (np.array(leaves, int), table.codes[index].astype(int)), 1)
        counts = routes.leaf_counts(table.codes, test, first, child, root[0], node.graph.n_leaves, index, node.n_states)
        assert counts.dtype == np.int64
        np.testing.assert_array_equal(counts, expected)


def test_tables_with_other_variables_are_refused():
    network = alarm()
    table = sample(network, 5, seed=0)
    renamed = (Variable("OTHER", ("TRUE", "FALSE")), *table.variables[1:])
    restated = (Variable("HISTORY", ("FALSE", "TRUE")), *table.variables[1:])
    turned = (table.variables[1], table.variables[0], *table.variables[2:])
    codes = table.codes[[1, 0, *range(2, 37)]]
    for variables, rows, message in [
        (renamed, table.codes, "lacks 'HISTORY'"),
        (restated, table.codes, "other states of 'HISTORY'"),
        (turned, codes, "another order"),
    ]:
        with pytest.raises(ValueError, match=message):
            log_probabilities(network, Table(variables, rows))


def test_many_states_need_wide_codes():
    wide = Variable("wide", tuple(map(str, range(1000))))
    narrow = Variable("narrow", ("a", "b"))
    graph = DecisionGraph.single().split(0, 0, [{999}, set(range(999))])
    nodes = (
        Node((), DecisionGraph.single(), np.full((1, 1000), 0.001)),
        Node((0,), graph, np.array([[1.0, 0.0], [0.0, 1.0]])),
    )
    network = Network((wide, narrow), nodes)
    table = sample(network, 20_000, seed=3)
    assert table.codes.dtype == np.uint16
    assert set(table.codes[0].tolist()) == set(range(1000))
    assert ((table.codes[0] == 999) == (table.codes[1] == 0)).all()
    np.testing.assert_allclose(log_probabilities(network, table), math.log(0.001))


def test_sampling_repeats_itself_by_seed():
    one, same, other = (sample(alarm(), 200, seed=seed) for seed in (7, 7, 8))
    assert (one.codes == same.codes).all()
    assert (one.codes != other.codes).any()
    assert one.variables == alarm().variables


def test_sampling_follows_the_distributions():
    network = alarm()
    table = sample(network, 50_000, seed=1)
    for index, node in enumerate(network.nodes):
        test, first, child, _ = routes.flatten([node.graph])
        counts = routes.leaf_counts(table.codes, test, first, child, 0, node.graph.n_leaves, index, node.n_states)
        n = counts.sum(axis=1, keepdims=True)
        error = abs(counts - n * node.probabilities) / np.sqrt(n * node.probabilities * (1 - node.probabilities) + 1)
        assert error.max() < 5


@settings(deadline=None)  # the first call compiles
@given(networks(complete=True))
def test_sampled_cases_are_possible(network):
    assert np.isfinite(log_probabilities(network, sample(network, 50, seed=0))).all()


def test_states_without_probability_are_never_drawn():
    variable = Variable("x", ("a", "b", "c", "d"))
    network = Network((variable,), (Node((), DecisionGraph.single(), np.array([[0.0, 0.4999999, 0.5, 0.0]])),))
    assert set(sample(network, 5000, seed=0).codes[0].tolist()) == {1, 2}


def test_sampling_refuses():
    variable = Variable("x", ("a", "b"))
    with pytest.raises(ValueError, match="'x'"):
        sample(Network((variable,), (None,)), 5, seed=0)
    with pytest.raises(ValueError, match="0 cases"):
        sample(alarm(), 0, seed=0)
    with pytest.raises(ValueError, match="seed -1"):
        sample(alarm(), 1, seed=-1)
