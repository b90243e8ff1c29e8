"""Smoothed leaves, against the definition followed node by node."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators, random_graph, random_table

import leafwise
import leafwise.examples
from leafwise import DecisionGraph, Network
from leafwise.decision_graph import LEAF
from leafwise.network import Node
from leafwise.smoothing import smoothed, smoothings


def network_of(table, target, graph):
    """A network with one node, whose distribution is of no account."""
    r = table.variables[target].n_states
    node = Node(graph.tested, graph, np.full((graph.n_leaves, r), 1 / r))
    nodes = [node if variable == target else None for variable in range(table.n_variables)]
    return Network(table.variables, tuple(nodes))


def expected(table, target, graph, strength):
    """Counts and exponents of the leaves: cases are sorted into nodes, and each node looks at those above."""
    r = table.variables[target].n_states
    cases = table.codes.T.tolist()
    inside = {node: [] for node in range(len(graph.tests))}
    inside[0] = [(case, None) for case in cases]
    means, found = {}, []
    for node, test in enumerate(graph.tests):
        counts = [sum(case[target] == state for case, _ in inside[node]) for state in range(r)]
        above = [k for k in range(node) if node in graph.children[k]]
        exponents = np.ones(r)
        if above:
            sent = np.array([sum(parent == k for _, parent in inside[node]) for k in above], float)
            arcs = np.array([graph.children[k].count(node) for k in above])
            shares = sent / sent.sum() if sent.sum() else arcs / arcs.sum()
            exponents += strength * sum(share * means[k] for share, k in zip(shares, above, strict=True))
        means[node] = (counts + exponents) / sum(counts + exponents)
        if test == LEAF:
            found.append((counts, exponents))
        else:
            for case, _ in inside[node]:
                inside[graph.children[node][case[test]]].append((case, node))
    return tuple(np.array(column) for column in zip(*found, strict=True))


@settings(max_examples=40)
@given(generators(), st.sampled_from([0.0, 0.5, 16.0]))
def test_every_leaf_is_drawn_towards_the_nodes_above_it(random, strength):
    table = random_table(random)
    target = int(random.integers(table.n_variables))
    n_states = [variable.n_states for variable in table.variables]
    others = [v for v in range(table.n_variables) if v != target and n_states[v] > 1]
    graph = random_graph(random, target, n_states, others, 6)
    node = smoothed(network_of(table, target, graph), table, strength).nodes[target]
    counts, exponents = expected(table, target, graph, strength)
    assert node.counts.tolist() == counts.tolist()
    assert node.exponents == pytest.approx(exponents, rel=1e-6)
    assert node.probabilities == pytest.approx((counts + exponents) / (counts + exponents).sum(axis=1, keepdims=True))


@pytest.fixture
def table():
    return leafwise.read(np.array([[0, 0], [0, 0], [0, 1], [1, 1], [1, 1], [1, 1]] * 5))


@pytest.fixture
def network(table):
    return leafwise.learn(table, prior="uniform")


def test_the_counts_of_learning_and_no_prior_to_score_with(table, network):
    found = smoothed(network, table, 4)
    for one, other in zip(found.nodes, network.nodes, strict=True):
        assert (one.graph, one.counts.tolist()) == (other.graph, other.counts.tolist())
    assert found.prior is None
    with pytest.raises(ValueError, match="no priors to score with"):
        leafwise.log_score(found, table)


def test_without_strength_leaves_are_those_of_the_uniform_prior(table, network):
    for one, other in zip(smoothed(network, table, 0).nodes, network.nodes, strict=True):
        assert one == other


def test_the_stronger_the_closer_to_the_root(table):
    network = network_of(table, 1, DecisionGraph.complete([0], [2, 2]))
    distances = [np.ptp(found.nodes[1].probabilities[:, 0]) for found in smoothings(network, table, [0, 1, 10, 1e9])]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.5
    assert distances[-1] < 1e-6


def test_saved_and_loaded(table, network, tmp_path):
    found = smoothed(network, table, 4)
    found.save(tmp_path / "model.json")
    assert Network.load(tmp_path / "model.json") == found


@pytest.mark.parametrize("strength", [-1, float("inf"), float("nan")])
def test_strengths_that_are_none(table, network, strength):
    with pytest.raises(ValueError, match=r"the strength is .*: give 0 or more"):
        smoothed(network, table, strength)


def test_data_are_matched_by_name():
    cases = leafwise.sample(leafwise.examples.alarm(), 50, seed=1)
    network = leafwise.learn(cases, target="HRBP")
    turned = leafwise.Table(cases.variables[::-1], np.ascontiguousarray(cases.codes[::-1]))
    assert smoothed(network, turned, 8) == smoothed(network, cases, 8) == smoothed(network, cases.to_pandas(), 8)
    with pytest.raises(ValueError, match="no variable is called"):
        smoothed(network, leafwise.Table(cases.variables[:9], np.ascontiguousarray(cases.codes[:9])), 8)
