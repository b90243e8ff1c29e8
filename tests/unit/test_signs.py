import numpy as np

from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.network import Network, Node
from leafwise.report.text import network_text, node_text


def test_names_with_line_ends_stay_on_their_line():
    node = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    network = Network((Variable("a\nb", ("x\x1b", "\u202ey")),), (node,))
    for text in (network_text(network), node_text(network, 0)):
        assert "a\\nb" in text
        assert text.replace("\n", "").isprintable()
    assert len(network_text(network).splitlines()) == 5
