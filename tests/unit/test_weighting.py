import math

import numpy as np
import pytest
from oracle_inference import joint_table, marginal, weighted
from random_networks import EVIDENCE, STATES, random_network, single, variables

from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference.evidence import weights_of
from leafwise.inference.likelihood import log_probabilities
from leafwise.inference.weighting import weighted_cases, weighting
from leafwise.network import Network, Node


def naive_bayes(n_features, low, high):
    """A class and features, of which state 1 has probability low in class 0 and high in class 1."""
    graph = DecisionGraph.complete([0], [2])
    feature = Node((0,), graph, np.array([[1 - low, low], [1 - high, high]]))
    return Network(variables([2] * (n_features + 1)), (single([0.5, 0.5]), *[feature] * n_features))


@pytest.mark.parametrize("weights", EVIDENCE.values(), ids=EVIDENCE)
@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_the_joint_table(seed, weights):
    network = random_network(seed, STATES, zeros=0.1)
    table = weighted(joint_table(network), weights)
    found = weighting(network, range(len(STATES)), weights, n_samples=2000, seed=seed)
    answers = zip(found.probabilities, found.standard_errors, found.intervals, strict=True)
    for target, (probabilities, errors, (low, high)) in enumerate(answers):
        expected = marginal(table, [target]) / table.sum()
        assert probabilities.sum() == pytest.approx(1)
        assert (abs(probabilities - expected) <= 5 * errors + 1e-9).all()
        assert errors.max() < 0.05
        assert ((low <= probabilities) & (probabilities <= high)).all()
    assert abs(found.log_evidence - math.log(table.sum())) <= 5 * found.log_evidence_error + 1e-9
    assert 100 < found.effective_sample_size <= 2000 + 1e-6
    assert found.n_samples == 2000


@pytest.mark.parametrize("targets", [(0, 4), (4, 3, 0), (2, 1), (3,), (2,)])
def test_joint_tables(targets):
    network = random_network(1, STATES)
    weights = {2: np.array([0.0, 1.0]), 5: np.array([2.0])}
    table = weighted(joint_table(network), weights)
    found = weighting(network, targets, weights, n_samples=3000, seed=1, joint=True)
    expected = marginal(table, targets) / table.sum()
    (probabilities,), (errors,) = found.probabilities, found.standard_errors
    assert probabilities.shape == errors.shape == expected.shape
    assert (abs(probabilities - expected) <= 5 * errors + 1e-9).all()


def test_errors_are_calibrated():
    network = random_network(5, (2, 2, 3))
    weights = {2: np.array([0.1, 1.0, 0.0])}
    table = weighted(joint_table(network), weights)
    scores = []
    for seed in range(200):
        found = weighting(network, [0, 1], weights, n_samples=400, seed=seed, threads=1)
        for target, probabilities, errors in zip((0, 1), found.probabilities, found.standard_errors, strict=True):
            scores.append((probabilities[0] - marginal(table, [target])[0] / table.sum()) / errors[0])
        scores.append((found.log_evidence - math.log(table.sum())) / found.log_evidence_error)
    by_question = np.reshape(scores, (200, 3))
    assert (abs(by_question.mean(axis=0)) < 0.25).all()
    assert ((by_question.std(axis=0) > 0.8) & (by_question.std(axis=0) < 1.25)).all()


def test_threads_change_nothing_and_seeds_do():
    network = alarm()
    weights = weights_of(network, {"BP": "LOW", "CO": ["LOW", "HIGH"]})
    one, two, other = (
        weighting(network, range(37), weights, n_samples=3000, seed=seed, threads=threads)
        for seed, threads in ((3, 1), (3, 2), (4, 2))
    )
    for probabilities, same in zip(one.probabilities, two.probabilities, strict=True):
        assert (probabilities == same).all()
    assert one.log_evidence == two.log_evidence != other.log_evidence


def test_what_is_known_is_certain():
    network = naive_bayes(2, 0.1, 0.3)
    found = weighting(network, [0, 1], {0: np.array([0.0, 1.0])}, n_samples=500, seed=0)
    assert found.probabilities[0].tolist() == [0, 1]
    assert found.standard_errors[0].tolist() == [0, 0]
    assert found.probabilities[1][1] == pytest.approx(0.3, abs=0.1)
    assert found.log_evidence == pytest.approx(math.log(0.5))
    assert found.log_evidence_error == pytest.approx(0, abs=1e-6)


def test_variables_that_do_not_matter_are_not_drawn():
    network = Network(variables([2, 2]), (single([0.5, 0.5]), None))
    assert weighting(network, [0], {}, n_samples=500, seed=0).probabilities[0][0] == pytest.approx(0.5, abs=0.1)


def test_variables_without_a_distribution_are_refused_unless_they_are_known():
    graph = DecisionGraph.complete([0], [2])
    network = Network(variables([2, 2]), (None, Node((0,), graph, np.array([[0.9, 0.1], [0.2, 0.8]]))))
    with pytest.raises(ValueError, match="no distribution of 'x0'"):
        weighting(network, [1], {}, n_samples=10, seed=0)
    with pytest.raises(ValueError, match="no distribution of 'x0'"):
        weighted_cases(network, {}, 10, seed=0)
    found = weighting(network, [1], {0: np.array([0.0, 0.5])}, n_samples=1000, seed=0)
    assert abs(found.probabilities[0] - [0.2, 0.8]).max() < 5 * found.standard_errors[0].max()
    assert found.log_evidence == pytest.approx(math.log(0.5))  # as in exact inference


def test_a_thousand_observations_do_not_underflow():
    network = naive_bayes(1000, 0.1, 0.1001)
    weights = {v: np.array([0.0, 1.0]) for v in range(1, 1001)}
    ratio = 1.001**1000
    found = weighting(network, [0], weights, n_samples=500, seed=0)
    assert abs(found.probabilities[0][1] - ratio / (1 + ratio)) < 5 * found.standard_errors[0][1]
    exact = 1000 * math.log(0.1) + math.log((1 + ratio) / 2)
    assert abs(found.log_evidence - exact) < 5 * found.log_evidence_error


def test_evidence_of_next_to_no_probability():
    tiny = 1e-200
    graph = DecisionGraph.complete([0], [2])
    node = Node((0,), graph, np.array([[1 - tiny, tiny], [1 - 3 * tiny, 3 * tiny]]))
    network = Network(variables([2, 2, 2]), (single([0.5, 0.5]), node, node))
    weights = {1: np.array([0.0, 1.0]), 2: np.array([0.0, 1e-300])}
    found = weighting(network, [0], weights, n_samples=1000, seed=0)
    assert abs(found.probabilities[0][1] - 0.9) < 5 * found.standard_errors[0][1]
    assert found.log_evidence == pytest.approx(math.log(5) - 700 * math.log(10), abs=0.5)


def test_evidence_far_away_costs_no_certainty():
    """What hangs together only by known variables is weighted apart."""
    copy = Node((1,), DecisionGraph.complete([1], [2, 2]), np.array([[0.99, 0.01], [0.01, 0.99]]))
    rare = Node((2,), DecisionGraph.complete([2], [2] * 3), np.array([[0.999, 0.001], [0.2, 0.8]]))
    network = Network(variables([2] * 4), (copy, single([0.5, 0.5]), single([0.999, 0.001]), rare))
    found = weighting(network, [0, 2], {3: np.array([0.0, 1.0])}, n_samples=2000, seed=0)
    assert found.effective_sample_sizes[0] == pytest.approx(2000)
    assert found.effective_sample_sizes[1] < 1000
    assert found.effective_sample_size == found.effective_sample_sizes[1]


def test_weighted_cases():
    network = alarm()
    weights = weights_of(network, {"BP": "LOW", "CO": ["LOW", "HIGH"], "HR": {"LOW": 2.0, "HIGH": 0.5}})
    cases, log_weights = weighted_cases(network, weights, 3000, seed=2)
    again, _ = weighted_cases(network, weights, 3000, seed=2)
    assert (cases.codes == again.codes).all()
    assert np.isfinite(log_probabilities(network, cases)).all()
    for variable, weight in weights.items():
        assert (weight[cases.codes[variable]] > 0).all()
    found = weighting(network, range(37), weights, n_samples=3000, seed=1)
    share = np.exp(log_weights - log_weights.max())
    share /= share.sum()
    for codes, probabilities, errors in zip(cases.codes, found.probabilities, found.standard_errors, strict=True):
        assert (abs(np.bincount(codes, share, len(errors)) - probabilities) <= 8 * errors + 1e-9).all()
    assert np.log(np.exp(log_weights).mean()) == pytest.approx(found.log_evidence, abs=0.3)


def test_cases_of_which_all_is_known():
    network = random_network(2, (2, 2))
    cases, log_weights = weighted_cases(network, {0: np.array([0.0, 1.0]), 1: np.array([1.0, 0.0])}, 5, seed=0)
    assert cases.codes.tolist() == [[1] * 5, [0] * 5]
    np.testing.assert_allclose(log_weights, log_probabilities(network, cases))


def test_impossible_evidence():
    copy = Node((0,), DecisionGraph.complete([0], [2]), np.eye(2))
    network = Network(variables([2, 2, 2]), (single([0.5, 0.5]), copy, copy))
    differ = {1: np.array([1.0, 0.0]), 2: np.array([0.0, 1.0])}
    with pytest.raises(ValueError, match=r"none of 100 cases agrees with the evidence, .*: draw more samples"):
        weighting(network, [0], differ, n_samples=100, seed=0)
    with pytest.raises(ValueError, match="none of 100 cases"):
        weighted_cases(network, differ, 100, seed=0)
    with pytest.raises(ValueError, match="the evidence is impossible"):
        weighting(network, [2], {0: np.array([1.0, 0.0]), 1: np.array([0.0, 1.0])}, n_samples=100, seed=0)


def test_refusals():
    network = alarm()
    with pytest.raises(ValueError, match="1 samples"):
        weighting(network, [0], {}, n_samples=1, seed=0)
    with pytest.raises(ValueError, match="seed -1"):
        weighting(network, [0], {}, n_samples=10, seed=-1)
    with pytest.raises(ValueError, match="is named twice"):
        weighting(network, [3, 4, 3], {}, n_samples=10, seed=0)
    with pytest.raises(ValueError, match="1,000,000"):
        weighting(network, range(37), {}, n_samples=10, seed=0, joint=True)


def test_no_targets_ask_for_the_evidence_alone():
    network = random_network(0, STATES)
    weights = EVIDENCE["a state"]
    found = weighting(network, [], weights, n_samples=1000, seed=0, joint=True)
    assert found.probabilities[0] == 1
    exact = math.log(weighted(joint_table(network), weights).sum())
    assert abs(found.log_evidence - exact) <= 5 * found.log_evidence_error + 1e-9


def test_an_unseen_state_has_an_upper_limit():
    network = Network(variables([3]), (single([0.5, 0.5 - 1e-9, 1e-9]),))
    found = weighting(network, [0], {}, n_samples=1000, seed=0)
    assert found.probabilities[0][2] == 0
    assert found.intervals[0][:, 2] == pytest.approx([0, 1 - 0.025 ** (1 / 1000)], rel=0.01)
    assert found.standard_errors[0][2] == pytest.approx(found.intervals[0][1, 2] / 2)


def test_intervals_hold_where_hits_are_few():
    """Three hits are expected: two errors to either side of what was found miss the truth in one case of eight."""
    network = Network(variables([2]), (single([0.997, 0.003]),))
    held = [
        low <= 0.003 <= high
        for seed in range(300)
        for low, high in [weighting(network, [0], {}, n_samples=1000, seed=seed, threads=1).intervals[0][:, 1]]
    ]
    assert np.mean(held) >= 0.95


def rare_cause(prior, false_alarm):
    """A cause that few cases have and most of what is given speaks for."""
    graph = DecisionGraph.complete([0], [2])
    alarm_given = Node((0,), graph, np.array([[1 - false_alarm, false_alarm], [0.1, 0.9]]))
    return Network(variables([2, 2]), (single([1 - prior, prior]), alarm_given))


def test_a_cause_that_no_sample_met_is_not_ruled_out():
    """All weights are alike, and worth a thousand draws: but a case that was not drawn may weigh as much as all."""
    network = rare_cause(1e-6, 1e-6)
    found = weighting(network, [0], {1: np.array([0.0, 1.0])}, n_samples=1000, seed=0)
    assert found.probabilities[0][1] == 0
    assert found.intervals[0][1, 1] > 0.9
    assert "no sample met" in found.warnings[0]
    assert found.effective_sample_size < 2


def test_a_bound_on_weights_that_changes_little_gives_no_warning():
    found = weighting(rare_cause(0.1, 0.1), [0], {1: np.array([0.0, 1.0])}, n_samples=1000, seed=0)
    assert found.intervals[0][0, 1] < 0.5 < found.intervals[0][1, 1]
    assert not found.warnings
    assert found.effective_sample_size > 100


def test_few_draws_that_count_are_said_to_be_few():
    found = weighting(random_network(5, (2, 2, 3)), [0], {2: np.array([0.1, 1.0, 0.0])}, n_samples=50, seed=0)
    assert any("100 are the least" in warning for warning in found.warnings)
