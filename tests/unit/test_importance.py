"""Importance sampling finds out what its cases lack."""

import numpy as np
import pytest
from random_networks import random_network

from leafwise import query
from leafwise.decision_graph import DecisionGraph
from leafwise.inference import importance
from leafwise.network import Network, Node
from leafwise.table import Variable


def switch_network(cause, seen, rare):
    """A cause that is seldom on, what is seen of it, and a state that is rare when it is on."""
    variables = tuple(Variable(name, ("off", "on")) for name in ("cause", "seen", "state"))
    graph = DecisionGraph((0, -1, -1), ((1, 2), (), ()))
    rows = ([[1 - cause, cause]], [[1 - seen, seen], [0.0, 1.0]], [[0.5, 0.5], [1 - rare, rare]])
    graphs, parents = (DecisionGraph.single(), graph, graph), ((), (0,), (0,))
    return Network(variables, tuple(map(Node, parents, graphs, map(np.array, rows))))


def test_a_state_that_is_hardly_ever_proposed(monkeypatch):
    """Its probability follows from cases without it, so the error says how far off it may be."""
    network = switch_network(cause=0.001, seen=1e-6, rare=0.002)
    exact = query(network, "state", given={"seen": "on"}, method="exact")["state"]["on"]
    proposal = importance._proposal

    def careless(part, log_joint, shapes, wanted):
        return proposal(part, log_joint, shapes, [*wanted[:-1], np.array([[0.5, 0.5], [1 - 1e-9, 1e-9]])])

    monkeypatch.setattr(importance, "_proposal", careless)
    monkeypatch.setattr(importance, "_DEFENCE", 1e-4)
    answer = query(network, "state", given={"seen": "on"}, method="importance", n_samples=20_000)
    assert answer["state"]["on"] < 0.5 * exact
    assert answer.intervals[0][0, 1] <= exact <= answer.intervals[0][1, 1] * 1.05
    assert exact - answer["state"]["on"] < 3 * answer.standard_errors[0][1]


@pytest.mark.parametrize(("cause", "warns"), [(1e-7, True), (0.2, False)])
def test_a_cause_that_nothing_leads_to(monkeypatch, cause, warns):
    """No case was drawn from where the evidence comes from: the network's bound on weights says that there may be."""
    network = switch_network(cause, seen=1e-8, rare=0.5)
    monkeypatch.setattr(importance, "_hints", lambda *_: {})
    monkeypatch.setattr(importance, "_ROUNDS", 1)
    answer = query(network, "cause", given={"seen": "on"}, method="importance", n_samples=1000)
    if warns:
        assert answer["cause"]["on"] == 0  # it is 0.9
        assert "cases that no sample met" in answer.warnings[0]
    else:
        assert answer["cause"]["on"] == pytest.approx(1)
        assert not answer.warnings


@pytest.mark.parametrize("method", ["weighting", "importance", "gibbs"])
def test_distributions_that_were_rounded_are_those_of_exact_answers(method):
    """Where one variable is left to ask for, nothing is left to chance but what a file rounds."""
    network = random_network(3, (2, 3, 2))
    nodes = [Node(n.parents, n.graph, n.probabilities * (1 + 9e-7 * np.arange(n.n_leaves)[:, None] % 1.8e-6 - 4e-7))
             for n in network.nodes]  # fmt: skip
    network = Network(network.variables, tuple(nodes))
    given = {name: network[name].labels[0] for name in network.names[1:]}
    name = network.names[0]
    exact, found = (query(network, name, given=given, method=how) for how in ("exact", method))
    if method == "gibbs":
        assert found.distributions[0] == pytest.approx(exact.distributions[0], abs=1e-12)
    assert found.log_evidence is None or found.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)
