import math
from types import SimpleNamespace

import numpy as np
import pytest
from oracle_inference import joint_table, marginal, weighted
from random_networks import EVIDENCE, STATES, random_network, single, variables

from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference.estimates import Cells
from leafwise.inference.evidence import weights_of
from leafwise.inference.gibbs import _Run, _tables, gibbs
from leafwise.network import Network, Node


def both_or_neither(p):
    """Two coins, and a third that says whether they agree, for sure."""
    graph = DecisionGraph.complete([0, 1], [2, 2])
    agree = Node((0, 1), graph, np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]))
    return Network(variables([2, 2, 2]), (single([1 - p, p]), single([0.5, 0.5]), agree))


@pytest.mark.parametrize("weights", EVIDENCE.values(), ids=EVIDENCE)
@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_the_joint_table(seed, weights):
    network = random_network(seed, STATES)
    table = weighted(joint_table(network), weights)
    found = gibbs(network, range(len(STATES)), weights, n_samples=2000, seed=seed, burn_in=20)
    answers = zip(found.probabilities, found.standard_errors, found.intervals, strict=True)
    for target, (probabilities, errors, (low, high)) in enumerate(answers):
        expected = marginal(table, [target]) / table.sum()
        assert probabilities.sum() == pytest.approx(1)
        assert (abs(probabilities - expected) <= 5 * errors + 1e-9).all()
        assert errors.max() < 0.05
        assert ((low <= probabilities) & (probabilities <= high)).all()
    assert 50 < found.effective_sample_size <= found.n_samples
    assert found.n_samples == 2000
    assert found.mixing.r_hat < 1.05
    assert found.log_evidence is None


@pytest.mark.parametrize("targets", [(0, 4), (4, 3, 0), (2, 1), (3,), (2,)])
def test_joint_tables(targets):
    network = random_network(1, STATES)
    weights = {2: np.array([0.0, 1.0]), 5: np.array([2.0])}
    table = weighted(joint_table(network), weights)
    found = gibbs(network, targets, weights, n_samples=4000, seed=1, joint=True, burn_in=20)
    expected = marginal(table, targets) / table.sum()
    (probabilities,), (errors,) = found.probabilities, found.standard_errors
    assert probabilities.shape == errors.shape == expected.shape
    assert (abs(probabilities - expected) <= 5 * errors + 1e-9).all()


def test_graphs_that_test_a_variable_twice_and_leave_others_out():
    graph = DecisionGraph.single().split(0, 0, [{0}, {1, 2}]).split(1, 1, [{0}, {1}]).split(2, 0, [{0, 1}, {2}])
    rows = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.05, 0.95]])
    child = Node((0, 1), graph, rows)
    network = Network(variables([3, 2, 2, 2]), (single([0.2, 0.3, 0.5]), single([0.4, 0.6]), child, child))
    weights = {2: np.array([0.0, 1.0]), 3: np.array([0.3, 1.0])}
    table = weighted(joint_table(network), weights)
    found = gibbs(network, [0, 1, 3], weights, n_samples=8000, seed=1, burn_in=20)
    for target, probabilities, errors in zip((0, 1, 3), found.probabilities, found.standard_errors, strict=True):
        assert (abs(probabilities - marginal(table, [target]) / table.sum()) <= 5 * errors).all()
        assert errors.max() < 0.02


def test_errors_are_calibrated():
    copies = [Node((p,), DecisionGraph.complete([p], [2] * 3), np.array([[0.8, 0.2], [0.2, 0.8]])) for p in (0, 1)]
    network = Network(variables([2] * 3), (single([0.3, 0.7]), *copies))
    weights = {2: np.array([0.2, 1.0])}
    table = weighted(joint_table(network), weights)
    expected = marginal(table, [0])[0] / table.sum()
    scores = []
    for seed in range(200):
        found = gibbs(network, [0], weights, n_samples=160, seed=seed, burn_in=2, threads=1)
        scores.append((found.probabilities[0][0] - expected) / found.standard_errors[0][0])
    assert abs(np.mean(scores)) < 0.25
    assert 0.8 < np.std(scores) < 1.25


def test_slow_chains_are_sure_of_nothing():
    """What moves seldom may move any state: none is called surer than the slowest, unless samples are just few."""
    random = np.random.default_rng(1)
    slow = np.repeat(random.random((8, 10, 1)), 100, axis=1)  # chains that move ten times
    quick = 0.3 + 0.001 * random.random((8, 1000, 1))
    means = np.concatenate([slow, 1 - slow, quick, 1 - quick], axis=2)
    part = SimpleNamespace(free=np.arange(3), is_rigid=lambda _least: False)
    widths = {}
    for n_samples in (100_000, 200):
        run = _Run(part, np.arange(4), means, random.random((8, 1000, 1)), 1 / 12, n_samples, 100.0)
        assert run.worth < 400
        assert run.is_slow == (n_samples > 200)
        tables = _tables(Cells(((0,), (1,)), (2, 2)), run)
        widths[n_samples] = [float(np.diff(table.interval, axis=0).max()) for table in tables]
    assert widths[100_000][1] > widths[100_000][0] / 2
    assert widths[200][1] < widths[200][0] / 5


def test_threads_change_nothing_and_seeds_do():
    network = alarm()
    weights = weights_of(network, {"BP": "LOW", "CO": ["LOW", "HIGH"]})
    one, two, other = (
        gibbs(network, range(37), weights, n_samples=64, seed=seed, burn_in=1, threads=threads)
        for seed, threads in ((3, 1), (3, 2), (4, 2))
    )
    for probabilities, same in zip(one.probabilities, two.probabilities, strict=True):
        assert (probabilities == same).all()
    assert any((p != q).any() for p, q in zip(one.probabilities, other.probabilities, strict=True))


def test_variables_that_determine_each_other_are_drawn_together():
    """One by one they could not move; half of the cases drawn from above agree with the evidence."""
    network = both_or_neither(0.02)
    found = gibbs(network, [0], {2: np.array([0.0, 1.0])}, n_samples=4000, seed=1)
    low, high = found.intervals[0][:, 1]
    assert 0.01 < low < 0.02 < high < 0.04
    assert found.effective_sample_size > 500
    assert not found.warnings


def test_what_chains_cannot_know_is_in_their_intervals(monkeypatch):
    """Without cases from above, each chain stays where it began: all in the same state, or in two."""
    monkeypatch.setattr("leafwise.inference.gibbs._FRESH", 0)
    for seed, p in ((1, 0.02), (2, 0.5)):
        found = gibbs(both_or_neither(p), [0], {2: np.array([0.0, 1.0])}, n_samples=4000, seed=seed)
        low, high = found.intervals[0][:, 1]
        assert low < p < high
        assert high - low > 0.3
        assert found.effective_sample_size <= 8
        assert any("only 8 independent cases were drawn" in warning for warning in found.warnings)
    assert any("the chains disagree" in warning for warning in found.warnings)


def test_chains_that_hardly_move_are_noticed():
    """Without a single impossible state: two clusters of variables that all but determine each other."""
    copy = Node((0,), DecisionGraph.complete([0], [2]), np.array([[0.9999, 0.0001], [0.0001, 0.9999]]))
    network = Network(variables([2] * 13), (single([0.5, 0.5]), *[copy] * 12))
    weights = {v: np.array([1.0, 1e-3]) for v in range(1, 7)} | {v: np.array([1e-3, 1.0]) for v in range(7, 13)}
    found = gibbs(network, [0], weights, n_samples=800, seed=1, burn_in=0)
    assert found.intervals[0][0, 0] < 0.5 < found.intervals[0][1, 0] or found.warnings


def test_an_unseen_state_has_an_upper_limit():
    network = Network(variables([2, 2]), (single([1 - 1e-9, 1e-9]), single([0.5, 0.5])))
    found = gibbs(network, [0, 1], {}, n_samples=1000, seed=1, joint=True)
    assert found.probabilities[0][1].tolist() == [0, 0]
    assert found.intervals[0][0, 1].tolist() == [0, 0]
    assert found.intervals[0][1, 1] == pytest.approx([3.69 / 1000] * 2, rel=0.05)
    assert (found.standard_errors[0] > 1e-3).all()


def test_chains_begin_where_the_posterior_is(monkeypatch):
    """They cannot move, so where they begin is the answer; half of the cases drawn are in state 1."""
    monkeypatch.setattr("leafwise.inference.gibbs._FRESH", 0)
    network = both_or_neither(0.5)
    found = gibbs(
        network, [0], {2: np.array([0.0, 1.0]), 0: np.array([0.9, 0.1])}, n_samples=400, seed=0, burn_in=0, chains=100
    )
    assert found.probabilities[0][1] == pytest.approx(0.1, abs=5 * math.sqrt(0.09 / 100))


def test_a_joint_table_of_many_cells():
    network = Network(variables([100] * 3), (single(np.full(100, 0.01)),) * 3)
    found = gibbs(network, [0, 1, 2], {}, n_samples=2000, seed=0, joint=True)
    assert found.probabilities[0].shape == (100, 100, 100)
    assert found.probabilities[0].sum() == pytest.approx(1)
    assert (found.intervals[0][1] >= 1e-6).all()


def test_a_thousand_observations_do_not_underflow():
    n, ratio = 1000, 1.001**1000
    child = Node((0,), DecisionGraph.complete([0], [2]), np.array([[0.99999, 0.00001], [0.99998999, 0.00001001]]))
    network = Network(variables([2] * (n + 1)), (single([0.5, 0.5]), *[child] * n))
    weights = {v: np.array([0.0, 1.0]) for v in range(1, n + 1)}
    found = gibbs(network, [0], weights, n_samples=16, seed=0, burn_in=0, chains=2)
    np.testing.assert_allclose(found.probabilities[0][1], ratio / (1 + ratio), rtol=1e-6)
    assert found.effective_sample_size == 16
    assert found.standard_errors[0].max() < 1e-12  # nothing else is unknown, so this is exact
    assert not found.warnings


def test_products_too_small_for_a_number_keep_the_state():
    graph = DecisionGraph.complete([0], [2])
    small, tiny = (Node((0,), graph, np.array([[1.0, p], [1.0, p]])) for p in (1e-99, 1e-250))
    network = Network(variables([2] * 3), (single([0.5, 0.5]), small, tiny))
    found = gibbs(network, [0], {1: np.array([0.0, 1.0]), 2: np.array([0.0, 1.0])}, n_samples=64, seed=0)
    assert found.probabilities[0].sum() == pytest.approx(1)


def test_what_is_known_is_certain():
    network = random_network(3, STATES)
    found = gibbs(network, [1, 0], EVIDENCE["a state"], n_samples=64, seed=0)
    assert found.probabilities[0].tolist() == [0, 0, 1]
    assert found.standard_errors[0].tolist() == [0, 0, 0]
    assert found.effective_sample_sizes[0] == 64


def test_variables_without_a_distribution_are_refused():
    graph = DecisionGraph.complete([0], [2])
    network = Network(variables([2, 2]), (None, Node((0,), graph, np.array([[0.9, 0.1], [0.2, 0.8]]))))
    with pytest.raises(ValueError, match=r"no distribution of 'x0', .*: give its state"):
        gibbs(network, [1], {}, n_samples=64, seed=0)
    known = gibbs(network, [1], {0: np.array([0.0, 1.0])}, n_samples=64, seed=0)
    assert known.probabilities[0].tolist() == pytest.approx([0.2, 0.8])


def test_impossible_evidence(monkeypatch):
    monkeypatch.setattr("leafwise.inference.chains._MOST_STARTS", 500)
    copy = Node((0,), DecisionGraph.complete([0], [2]), np.eye(2))
    network = Network(variables([2, 2, 2, 2]), (single([0.5, 0.5]), copy, copy, single([0.5, 0.5])))
    weights = {1: np.array([1.0, 0.0]), 2: np.array([0.0, 1.0])}
    for target in (0, 3):  # in the same part and in another
        with pytest.raises(ValueError, match=r"none of 500 cases .* agrees with the evidence, .*: give less evidence"):
            gibbs(network, [target], weights, n_samples=64, seed=0)


def test_refusals():
    network = alarm()
    with pytest.raises(ValueError, match="1 chains"):
        gibbs(network, [0], {}, n_samples=100, seed=0, chains=1)
    with pytest.raises(ValueError, match="burn-in of -1"):
        gibbs(network, [0], {}, n_samples=100, seed=0, burn_in=-1)
    with pytest.raises(ValueError, match=r"31 samples .* the least is 32"):
        gibbs(network, [0], {}, n_samples=31, seed=0)
    with pytest.raises(ValueError, match="is named twice"):
        gibbs(network, [1, 1], {}, n_samples=100, seed=0)
