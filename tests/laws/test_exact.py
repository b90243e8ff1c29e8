"""Exact inference equals sums over the full joint table, for random networks and evidence of every kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import networks
from oracle_inference import joint_table, marginal, weighted
from strategies import examples

from leafwise.inference.exact import Exact, Limits
from leafwise.kernels.questions import contraction

pytestmark = pytest.mark.interpreted


@st.composite
def questions(draw):
    """A network, evidence on some variables (one state, a set, weights), and two targets."""
    network = draw(networks(complete=True))
    weights = {}
    for index, variable in enumerate(network.variables):
        kind = draw(st.sampled_from(["free", "free", "state", "set", "weights"]))
        random = np.random.default_rng(draw(st.integers(0, 2**32)))
        if kind == "state":
            weights[index] = np.eye(variable.n_states)[random.integers(variable.n_states)]
        elif kind != "free":
            held = random.random(variable.n_states) < 0.6
            held[random.integers(variable.n_states)] = True
            weights[index] = held * (random.random(variable.n_states) + 0.1 if kind == "weights" else 1.0)
    targets = draw(st.permutations(range(len(network.variables))))[: draw(st.integers(1, 3))]
    return network, weights, targets


@examples(150)
@given(questions())
def test_distributions_and_evidence(question):
    network, weights, targets = question
    table = weighted(joint_table(network), weights)
    exact = Exact.of(network, weights, [tuple(targets), *((target,) for target in targets)], Limits())
    assert exact.is_affordable
    if table.sum() == 0:
        assert exact.log_evidence() == -np.inf
        with pytest.raises(ValueError, match="impossible"):
            exact.distributions()
        return
    log_evidence, (joint, *singles) = exact.distributions()
    assert log_evidence == pytest.approx(np.log(table.sum()), abs=1e-9)
    assert exact.log_evidence() == log_evidence
    np.testing.assert_allclose(joint, marginal(table, targets) / table.sum(), atol=1e-12)
    for target, single in zip(targets, singles, strict=True):
        np.testing.assert_allclose(single, marginal(table, [target]) / table.sum(), atol=1e-12)


_go_up = contraction.go_up


def _distrustful(program, memory, log_scale, kind):
    """As if some sum had been too small, so that logs are used."""
    return kind != contraction.SUM and _go_up(program, memory, log_scale, kind)


@examples(50)
@given(questions())
def test_logs_give_the_same(question):
    network, weights, targets = question
    exact = Exact.of(network, weights, [tuple(targets)], Limits())
    if exact.log_evidence() == -np.inf:
        return
    log_evidence, (joint,) = exact.distributions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(contraction, "go_up", _distrustful)
        again, (slow,) = exact.distributions()
    assert again == pytest.approx(log_evidence, abs=1e-9)
    np.testing.assert_allclose(slow, joint, atol=1e-12)


@examples(100)
@given(questions())
def test_best_is_the_largest_entry(question):
    network, weights, _ = question
    table = weighted(joint_table(network), weights)
    exact = Exact.of(network, weights, [(variable,) for variable in range(table.ndim)], Limits())
    if table.sum() == 0:
        with pytest.raises(ValueError, match="impossible"):
            exact.best()
        return
    log_probability, states = exact.best()
    assert log_probability == pytest.approx(np.log(table.max()), abs=1e-9)
    assert table[tuple(states)] == pytest.approx(table.max(), rel=1e-9)


@examples(25)
@given(questions())
def test_draws_have_the_distribution(question):
    network, weights, _ = question
    table = weighted(joint_table(network), weights)
    exact = Exact.of(network, weights, [(variable,) for variable in range(table.ndim)], Limits())
    if table.sum() == 0:
        with pytest.raises(ValueError, match="impossible"):
            exact.draw(1, seed=1)
        return
    cases = exact.draw(2000, seed=1)
    assert (table[tuple(cases)] > 0).all()
    np.testing.assert_array_equal(cases, exact.draw(2000, seed=1))
    for variable in range(table.ndim):
        share = np.bincount(cases[variable], minlength=table.shape[variable]) / 2000
        expected = marginal(table, [variable]) / table.sum()
        spread = np.sqrt(np.clip(expected * (1 - expected), 0, None) / 2000)
        assert (abs(share - expected) <= 5 * spread + 0.005).all()
