import sys

import numpy as np
import pytest
from hypothesis import given
from network_strategies import networks

from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.network import Network, Node

A, B, C = (Variable(name, ("no", "yes")) for name in "abc")
SPLIT_ON_A = DecisionGraph.complete([0], [2])


def fair(graph=None):
    graph = graph or DecisionGraph.single()
    return Node(graph.tested, graph, np.full((graph.n_leaves, 2), 0.5))


def test_learned_probabilities_are_posterior_means():
    node = Node.learned((0,), SPLIT_ON_A, np.array([[3, 1], [0, 0]]), np.array([[1.0, 1.0], [0.5, 1.5]]))
    assert node.probabilities.tolist() == [[4 / 6, 2 / 6], [0.25, 0.75]]
    assert (node.n_states, node.n_parameters) == (2, 2)


def test_arrays_are_private_and_frozen():
    counts = np.array([[3, 1]])
    node = Node.learned((), DecisionGraph.single(), counts, np.ones((1, 2)))
    counts[0, 0] = 99
    assert node.counts[0, 0] == 3
    for array in (node.counts, node.exponents, node.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1
    with pytest.raises(AttributeError):
        node.parents = (1,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((), DecisionGraph.single(), np.ones((2, 2)) / 2), "one row for each leaf"),
        (((), DecisionGraph.single(), np.ones((1, 2))), "do not sum to one"),
        (((), DecisionGraph.single(), np.array([[1.5, -0.5]])), "do not sum to one"),
        (((), DecisionGraph.single(), np.array([[np.nan, 1]])), "do not sum to one"),
        (((), SPLIT_ON_A, np.ones((2, 2)) / 2), "more than the parents"),
        (((2, 0), SPLIT_ON_A, np.ones((2, 2)) / 2), "not sorted"),
        (((), DecisionGraph.single(), np.ones((1, 2)) / 2, np.ones((1, 2), int)), "both or neither"),
        (((), DecisionGraph.single(), np.array([[0.3, 0.7]]), np.ones((1, 2), int), np.ones((1, 2))), "Node.learned"),
        (((), DecisionGraph.single(), np.ones((1, 2)) / 2, np.ones((1, 3), int), np.ones((1, 2))), "match them"),
        (((), DecisionGraph.single(), np.ones((1, 2)) / 2, -np.ones((1, 2), int), np.ones((1, 2))), "at least 0"),
    ],
)
def test_nodes_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Node(*arguments)


@pytest.mark.parametrize(
    ("variables", "nodes", "message"),
    [
        ((A, B), (None,), "1 nodes for 2 variables"),
        ((A,), (Node((), DecisionGraph.single(), np.ones((1, 3)) / 3),), "3 states"),
        ((A, B), (fair(SPLIT_ON_A), fair()), "name other variables"),
        ((A, B), (fair(), fair(DecisionGraph.complete([5], [2] * 6))), "name other variables"),
        ((A, B), (fair(), fair(DecisionGraph.complete([0], [3]))), "graph of 'b' is not valid"),
        ((A, B), (fair(DecisionGraph.complete([1], [2, 2])), fair(SPLIT_ON_A)), "'a' → 'b' → 'a' form a cycle"),
    ],
)
def test_networks_that_make_no_sense_are_refused(variables, nodes, message):
    with pytest.raises(ValueError, match=message):
        Network(variables, nodes)


def test_arcs_order_and_totals():
    graph = DecisionGraph.complete([2], [2, 2, 2])
    node = Node((1, 2), graph, np.full((2, 2), 0.5))  # a parent that the graph does not test
    network = Network((A, B, C), (node, None, fair()))
    assert network.names == ("a", "b", "c")
    assert network.arcs == ((1, 0), (2, 0))
    assert network.order() == (1, 2, 0)
    assert (network.n_leaves, network.n_parameters) == (3, 3)


def test_networkx_has_names_and_arcs():
    graph = alarm().to_networkx()
    assert list(graph) == list(alarm().names)
    assert graph.number_of_edges() == 46
    assert graph.has_edge("LVFAILURE", "HISTORY")


def test_networkx_may_be_absent(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ValueError, match="pip install"):
        alarm().to_networkx()


def test_equality_is_by_value():
    def made(probability=0.5, **more):
        return Network((A,), (Node((), DecisionGraph.single(), np.array([[probability, 1 - probability]])),), **more)

    assert made() == made()
    assert hash(made()) == hash(made())
    assert made() != made(0.25)
    assert made() != made(prior="uniform")
    assert made() != made(structure_prior="uniform")
    assert made() != made(learned={"steps": 3})
    assert made() != "a network"
    assert made().nodes[0] != "a node"
    learned = Node.learned((), DecisionGraph.single(), np.array([[0, 0]]), np.ones((1, 2)))
    assert Network((A,), (learned,)) != made()


def test_learned_becomes_plain_json_values():
    network = Network((A,), (None,), learned={"steps": np.int64(3), "gains": (np.float64(0.5),), "more": {"x": None}})
    assert network.learned == {"steps": 3, "gains": [0.5], "more": {"x": None}}
    assert type(network.learned["steps"]) is int
    for bad in (float("nan"), {1: 2}, object()):
        with pytest.raises(TypeError, match="JSON"):
            Network((A,), (None,), learned={"bad": bad})


@given(networks())
def test_every_variable_comes_after_its_parents(network):
    place = {variable: k for k, variable in enumerate(network.order())}
    assert all(place[parent] < place[child] for parent, child in network.arcs)


def test_alarm_has_its_published_size():
    network = alarm()
    assert len(network.variables) == 37
    assert len(network.arcs) == 46
    assert network.n_parameters == 509
    assert sorted({variable.n_states for variable in network.variables}) == [2, 3, 4]
    for node in network.nodes:
        assert node.counts is None
        assert np.allclose(node.probabilities.sum(axis=1), 1, atol=1e-12)
        assert node.graph.n_leaves == np.prod([network.variables[p].n_states for p in node.parents])
    history = network.nodes[network.names.index("HISTORY")]
    assert history.probabilities.tolist() == [[0.9, 0.1], [0.01, 0.99]]
    assert network.variables[0].labels == ("TRUE", "FALSE")
