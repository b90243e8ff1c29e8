import numpy as np
from hypothesis import given
from network_strategies import networks

from leafwise.data.binning import interval_labels
from leafwise.data.dates import date_labels
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.network import Network, Node
from leafwise.report.text import network_text, node_text

X = Variable("x", ("a", "b", "c"))
Y = Variable("y", ("no", "yes"))
Z = Variable("z", tuple("abcdefghijkl"))


def test_a_learned_graph_with_merges():
    graph = DecisionGraph.single().split(0, 0, [{0}, {1, 2}]).split(1, 2, [{0}, set(range(1, 12))]).merge(0, 2)
    counts = np.array([[1, 0], [1200, 34]])
    network = Network((X, Y, Z), (None, Node.learned((0, 2), graph, counts, np.ones((2, 2))), None))
    assert node_text(network, 1).splitlines() == [
        "y, given x, z: 2 tests, 2 leaves, 2 parameters",
        "",
        "x = a     leaf 1  1,234 cases   no 97.2 %  yes  2.8 %",
        "x ≠ a",
        "   z = a  leaf 0       1 case   no 66.7 %  yes 33.3 %",
        "   z ≠ a  → leaf 1 (above)",
    ]


def test_bins_of_dates_are_ranges_of_dates():
    days = Variable("day", interval_labels((0.0, 31.0, 59.5), date_labels), (0.0, 31.0, 59.5))
    graph = DecisionGraph.single().split(0, 0, [{0, 1}, {2, 3}])
    network = Network((days, Y), (None, Node((0,), graph, np.full((2, 2), 0.5))))
    assert [line.split("  ")[0] for line in node_text(network, 1).splitlines()[2:]] == [
        "day < 1970-02-01",
        "day >= 1970-02-01",
    ]
    graph = DecisionGraph.single().split(0, 0, [{0, 3}, {1, 2}])
    network = Network((days, Y), (None, Node((0,), graph, np.full((2, 2), 0.5))))
    assert "day = 1970-01-01 to 1970-03-01T12:00:00 " in node_text(network, 1)


def test_shared_subgraphs_are_printed_once():
    graph = DecisionGraph((0, 2, 2, -1, -1), ((1, 2, 2), (2,) * 6 + (3,) * 6, (3,) * 7 + (4,) * 5, (), ()))
    node = Node((0, 2), graph, np.array([[1.0, 0.0], [0.5, 0.5]]))
    lines = node_text(Network((X, Y, Z), (None, node, None)), 1).splitlines()
    assert lines[2:] == [
        "x = a",
        "   z = a, b, c, … (6 states)     sub-graph 1:",
        "      z = a, b, c, … (7 states)  leaf 0   no 100.0 %  yes   0.0 %",
        "      z = h, i, j, … (5 states)  leaf 1   no  50.0 %  yes  50.0 %",
        "   z = g, h, i, … (6 states)     → leaf 0 (above)",
        "x ≠ a                            → sub-graph 1 (above)",
    ]


def test_one_leaf_and_no_node():
    node = Node((), DecisionGraph.single(), np.array([[0.5, 0.3, 0.2]]))
    network = Network((X, Y), (node, None))
    assert node_text(network, 0) == "x: 0 tests, 1 leaf, 2 parameters\n\nleaf 0   a 50.0 %  b 30.0 %  c 20.0 %"
    assert "given" in node_text(network, 1)
    assert "(given)" in network_text(network)


def test_distributions_over_many_states_show_the_likeliest():
    row = np.full(12, 0.05)
    row[3] = 0.45
    text = node_text(Network((Z,), (Node((), DecisionGraph.single(), row[None]),)), 0)
    assert text.endswith("leaf 0   d 45.0 %  a  5.0 %  b  5.0 %  c  5.0 %  e  5.0 %  … (12 states)")


def test_the_network_in_a_table():
    lines = network_text(alarm()).splitlines()
    assert lines[0] == "37 variables, 46 arcs, 105 tests, 243 leaves, 509 parameters"
    assert len([line for line in lines if line and line[0] != " "]) == 1 + 1 + 37 + 1  # parents may take another line
    assert lines[3] == "HISTORY       2: TRUE, FALSE                       1       2           2  LVFAILURE"
    assert max(map(len, lines)) <= 100
    assert all(line == line.rstrip() for line in lines)


def test_long_lists_are_wrapped_and_cut():
    variables = tuple(Variable(f"a rather long name {k}", tuple(f"label {s}" for s in range(9))) for k in range(20))
    last = Variable("target", ("a label that is much longer than the column that is to hold it", "b"))
    node = Node(tuple(range(20)), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    network = Network((*variables, last), (*[None] * 20, node), "uniform", "kappa:0.1")
    text = network_text(network)
    assert "prior uniform, structure prior kappa:0.1" in text
    assert "9: label 0, label 1, label 2, …" in text
    assert max(map(len, text.splitlines())) <= 120


@given(networks())
def test_any_network_can_be_shown(network):
    assert network_text(network)
    for index, node in enumerate(network.nodes):
        text = node_text(network, index)
        if node is not None:
            assert text.count("leaf ") >= node.graph.n_leaves
