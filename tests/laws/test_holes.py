"""Cases with missing cells: sums, draws, marginals and expected counts are those of the full joint table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import networks
from oracle_inference import joint_table, marginal
from random_networks import random_network
from strategies import examples

from leafwise.inference.exact import Exact, Limits, TooCostly
from leafwise.inference.holes import Holes

pytestmark = pytest.mark.interpreted


@st.composite
def incomplete(draw):
    """A network, and some cases with holes; a hole is any number that is no state."""
    network = draw(networks(complete=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_states = [variable.n_states for variable in network.variables]
    codes = np.stack([random.integers(0, n, 6) for n in n_states]).astype(np.uint8)
    is_hole = random.random(codes.shape) < draw(st.sampled_from([0.1, 0.5, 0.9, 1.0]))
    codes[is_hole] = (np.array(n_states)[:, None] + random.integers(0, 3, codes.shape))[is_hole]
    return network, codes


def shown(table, case):
    """The joint table where it agrees with what a case shows."""
    for variable, code in enumerate(case):
        n = table.shape[variable]
        if code < n:
            table = table * np.eye(n)[code].reshape([-1 if axis == variable else 1 for axis in range(table.ndim)])
    return table


def asking(network, little_room):
    """With little room every case is left to the exact answer."""
    return Holes(network, room=2) if little_room else Holes(network)


@examples(120)
@given(incomplete(), st.booleans())
def test_log_probabilities_are_sums(question, little_room):
    network, codes = question
    table = joint_table(network)
    found = asking(network, little_room).log_probabilities(codes)
    with np.errstate(divide="ignore"):
        expected = np.log([shown(table, case).sum() for case in codes.T])
    np.testing.assert_allclose(found, expected, atol=1e-9)


@examples(80)
@given(incomplete(), st.booleans())
def test_marginals_and_expected_counts(question, little_room):
    network, codes = question
    table = joint_table(network)
    possible = np.array([shown(table, case).sum() > 0 for case in codes.T])
    asked = asking(network, little_room)
    if not possible.all():
        assert np.isneginf(asked.marginals(codes).log_probabilities[~possible]).all()
        for ask in (asked.expected_counts, lambda some: asked.draw(some, 1)):
            with pytest.raises(ValueError, match="impossible"):
                ask(codes)
    codes = codes[:, possible]
    found = asked.marginals(codes)
    counts, logs = asked.expected_counts(codes)
    for variable in range(table.ndim):
        lacking = np.flatnonzero(codes[variable] >= table.shape[variable])
        rows = found.of(variable)
        assert len(rows) == len(lacking)
        for case, row in zip(lacking, rows, strict=True):
            here = shown(table, codes[:, case])
            np.testing.assert_allclose(row, marginal(here, [variable]) / here.sum(), atol=1e-12)
    expected = [np.zeros(node.probabilities.shape) for node in network.nodes]
    for case in codes.T:
        here = shown(table, case)
        for states in np.argwhere(here > 0):
            for variable, node in enumerate(network.nodes):
                leaf = node.graph.leaf_of(states)
                expected[variable][leaf, states[variable]] += here[tuple(states)] / here.sum()
    for found, right in zip(counts, expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-9)
    np.testing.assert_allclose(logs, asked.log_probabilities(codes), atol=1e-9)


@pytest.mark.parametrize("little_room", [False, True])
def test_draws_have_the_distribution(little_room):
    network = random_network(5, (2, 3, 2, 3), zeros=0.2)
    table = joint_table(network)
    case = np.array(np.unravel_index(table.argmax(), table.shape))
    case[[0, 2, 3]] = 9
    n = 300 if little_room else 3000
    codes = np.repeat(case[:, None], n, axis=1).astype(np.uint8)
    asked = asking(network, little_room)
    drawn = asked.draw(codes, seed=3)
    np.testing.assert_array_equal(drawn, asked.draw(codes, seed=3))
    assert (drawn != asked.draw(codes, seed=4)).any()
    here = shown(table, case)
    shares = np.zeros(table.shape)
    np.add.at(shares, tuple(drawn), 1 / n)
    spread = np.sqrt(here / here.sum() / n)
    assert (abs(shares - here / here.sum()) < 5 * spread + 1e-12).all()


def test_any_number_of_threads_gives_the_same():
    network = random_network(2, (2, 3, 2, 4, 2, 3, 2))
    random = np.random.default_rng(1)
    codes = np.stack([random.integers(0, variable.n_states, 400) for variable in network.variables]).astype(np.uint8)
    codes[random.random(codes.shape) < 0.4] = 77
    one, three = Holes(network, threads=1), Holes(network, threads=3)
    np.testing.assert_array_equal(one.draw(codes, 1), three.draw(codes, 1))
    np.testing.assert_array_equal(one.log_probabilities(codes), three.log_probabilities(codes))
    for here, there in zip(one.expected_counts(codes)[0], three.expected_counts(codes)[0], strict=True):
        np.testing.assert_array_equal(here, there)


def test_many_improbable_children():
    """Four hundred observed children of one missing variable: their product is far too small for a number."""
    from leafwise.data.table import Variable
    from leafwise.decision_graph import DecisionGraph
    from leafwise.network import Network, Node

    n = 400
    random = np.random.default_rng(1)
    root = Node((), DecisionGraph.single(), np.array([[0.5, 0.3, 0.2]]))
    split = DecisionGraph.complete([0], [3])
    rows = [random.dirichlet([0.2, 5.0], 3) for _ in range(n)]
    nodes = [root, *(Node((0,), split, row) for row in rows)]
    variables = [Variable("c", ("a", "b", "c")), *(Variable(f"x{k}", ("no", "yes")) for k in range(n))]
    network = Network(tuple(variables), tuple(nodes))
    codes = np.zeros((n + 1, 2), np.uint8)
    codes[0] = 3
    logs = np.log(root.probabilities[0]) + sum(np.log(row[:, 0]) for row in rows)
    expected = logs.max() + np.log(np.exp(logs - logs.max()).sum())
    assert expected < -1000
    assert Holes(network).log_probabilities(codes) == pytest.approx([expected] * 2, abs=1e-9)
    np.testing.assert_allclose(Holes(network).marginals(codes).of(0), [np.exp(logs - expected)] * 2, atol=1e-12)


def test_large_cases_have_an_order_of_their_own():
    """So many missing variables with so many states that the common order is not taken for good enough."""
    network = random_network(4, (4,) * 14)
    random = np.random.default_rng(2)
    codes = np.stack([random.integers(0, 4, 6) for _ in range(14)]).astype(np.uint8)
    codes[random.random(codes.shape) < 0.8] = 4
    asked = Holes(network)
    logs, found = asked.log_probabilities(codes), asked.marginals(codes)
    counts, again = asked.expected_counts(codes)
    total = 0.0
    for case in range(6):
        weights = {v: np.eye(4)[code] for v, code in enumerate(codes[:, case]) if code < 4}
        unknown = [v for v in range(14) if v not in weights]
        log_evidence, rows = Exact.of(network, weights, [(v,) for v in unknown], Limits()).distributions()
        assert logs[case] == pytest.approx(log_evidence, abs=1e-9)
        cells = np.flatnonzero(found.cases == case)
        for cell, row in zip(cells, rows, strict=True):
            np.testing.assert_allclose(found.shares[found.first[cell] : found.first[cell + 1]], row, atol=1e-10)
        total += 1.0
    np.testing.assert_allclose(again, logs, atol=1e-9)
    for counted in counts:
        assert counted.sum() == pytest.approx(total)


def test_a_refusal_names_the_row_and_what_helps():
    network = random_network(1, [2, 3, 2, 3, 2])
    codes = np.full((5, 3), 255, np.uint8)
    codes[:, 0] = codes[:2, 1] = 0
    with pytest.raises(TooCostly) as refusal:
        Holes(network, Limits(operations=1), room=2).log_probabilities(codes)
    assert str(refusal.value).startswith("row 2 lacks 3 cells: an exact answer takes about ")
    assert dict(refusal.value.arguments) == {"operations": ..., "missing": "drop"}
