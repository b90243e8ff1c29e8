"""Importance sampling finds out what its cases lack."""

from types import SimpleNamespace

import numpy as np
import pytest

from leafwise import query
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference import forward, importance
from leafwise.network import Network, Node


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


def test_what_is_missed_is_looked_for_while_there_is_time(monkeypatch):
    """The clock stands still until the search begins: then each stream draws a first block, and none a second."""
    clock, step, blocks = [0.0], [0.0], []

    def draws(part, n, random):
        for block in forward.draws(part, n, random, 64):
            blocks.append(len(block[1]))
            clock[0] += step[0]
            yield block

    monkeypatch.setattr(importance, "draws", draws)
    monkeypatch.setattr(importance, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    n_blocks = []
    for step[0] in (0.0, 1000.0):
        blocks.clear()
        query(alarm(), "LVFAILURE", given={"BP": "LOW"}, method="importance", seconds=100, error=0.5)
        n_blocks.append(len(blocks))
    assert n_blocks[0] > n_blocks[1] == importance._STREAMS


def test_cases_are_followed_while_there_is_time(monkeypatch):
    clock, sweep, followed = [0.0], importance.Chain.sweep, []

    def slow_sweep(self, case, *rest, **options):
        clock[0] += 1000.0
        followed.append(case)
        return sweep(self, case, *rest, **options)

    monkeypatch.setattr(importance.Chain, "sweep", slow_sweep)
    monkeypatch.setattr(importance, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    answer = query(alarm(), "LVFAILURE", given={"BP": "LOW"}, method="importance", seconds=100, error=0.5)
    assert len(followed) == importance._SWEEPS
    assert np.isfinite(answer.standard_errors[0]).all()


def test_cases_are_followed_by_chances_of_the_seed(monkeypatch):
    sweep, drawn = importance.Chain.sweep, []

    def spied_sweep(self, case, random, *rest, **options):
        drawn.append(random.random())
        return sweep(self, case, random, *rest, **options)

    monkeypatch.setattr(importance.Chain, "sweep", spied_sweep)
    for seed in (1, 1, 2):
        query(alarm(), "CO", given={"BP": "LOW"}, method="importance", n_samples=1000, seed=seed)
    first, again, other = np.split(np.array(drawn), 3)
    assert (first == again).all()
    assert not set(first) & set(other)


@pytest.mark.parametrize("method", ["weighting", "importance", "gibbs"])
def test_distributions_that_were_rounded_are_those_of_exact_answers(method):
    """What is seen is as probable in both states, but for what a file rounds: so little is left to chance."""
    variables = (Variable("cause", ("off", "on")), Variable("seen", ("off", "on")))
    cause = Node((), DecisionGraph.single(), np.array([[0.6, 0.4]]) * (1 + 4e-7))
    rows = np.array([[0.3, 0.7], [0.3, 0.7]]) * [[1 - 4e-7], [1 + 5e-7]]
    network = Network(variables, (cause, Node((0,), DecisionGraph.complete([0], [2]), rows)))
    exact, found = (query(network, "cause", given={"seen": "on"}, method=how) for how in ("exact", method))
    if method == "gibbs":
        assert found.distributions[0] == pytest.approx(exact.distributions[0], abs=1e-12)
        assert abs(exact["cause"]["on"] - 0.4) > 1e-7  # what it is if they are made to sum to one
    else:
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=2e-8)
        assert abs(exact.log_evidence - np.log(0.7)) > 1e-7
