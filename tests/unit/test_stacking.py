"""Leaves parted by all states of the parents: mixed estimates, with holes and without."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import leafwise
from leafwise import stacking
from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.inference import completion
from leafwise.inference.likelihood import log_probabilities
from leafwise.stacking import stacked, stacked_means


def with_holes(table, share, seed=5):
    holes = np.random.default_rng(seed).random(table.codes.shape) < share
    variables = tuple(variable.with_missing for variable in table.variables)
    return Table(variables, np.where(holes, table.n_states[:, None], table.codes).astype(table.codes.dtype))


@pytest.fixture(scope="module")
def cases():
    return alarm().sample(500, seed=1)


@pytest.fixture(scope="module")
def network(cases):
    return leafwise.learn(cases)


def test_new_labels_are_refused_without_advice_that_it_does_not_take(cases, network):
    frame = cases.to_pandas().astype(object)
    frame.loc[3, "HR"] = "ABSENT"
    with pytest.raises(ValueError, match=r"unseen labels \('ABSENT'\).*or learn again with such cases$"):
        stacked(network, frame)


def slow_estimates(counts, leaf_of, cell, state, without):
    """All estimates of one state in one cell, with so much of a case left out, as the page says."""
    counts = counts.copy()
    counts[cell, state] -= without
    r = counts.shape[1]
    leaf = counts[leaf_of == leaf_of[cell]].sum(axis=0)
    overall = (counts[:, state].sum() + 2 / r) / (counts.sum() + 2)
    in_leaf = (leaf[state] + 2 / r) / (leaf.sum() + 2)
    centers = [center for center in (1 / r, overall, in_leaf) for _ in range(3)]
    found = [
        (counts[cell, state] + s * c) / (counts[cell].sum() + s) for s, c in zip((1, 4, 16) * 3, centers, strict=True)
    ]
    return [in_leaf, *found]


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.booleans())
def test_estimates_and_weights_are_those_of_the_slow_way(seed, whole):
    random = np.random.default_rng(seed)
    counts = random.integers(0, 6, (6, 3)).astype(float) * (1.0 if whole else 0.3)
    counts[0, 0] += 1.0
    leaf_of = np.array([0, 1, 0, 1, 2, 2])
    cells, states = np.nonzero(counts)
    there = counts[cells, states]
    left_out = np.array(
        [
            slow_estimates(counts, leaf_of, cell, state, min(n, 1.0))
            for cell, state, n in zip(cells, states, there, strict=True)
        ]
    ).T
    np.testing.assert_allclose(
        stacking._estimates(counts, leaf_of, cells, states, np.minimum(there, 1)), left_out, atol=1e-12
    )
    weights = stacking.em_weights([(slice(None), logs) for logs in np.log(left_out)], len(there), there, 1e-6)
    best = there @ np.log(weights @ left_out)
    for other in random.dirichlet(np.full(len(weights), 0.3), 50):
        assert there @ np.log(other @ left_out) < best + 1e-3 * there.sum()
    every = [slow_estimates(counts, leaf_of, cell, state, 0.0) for cell in range(6) for state in range(3)]
    means = stacked_means(counts, leaf_of)
    np.testing.assert_allclose(means.ravel(), np.array(every) @ weights, atol=1e-12)
    np.testing.assert_allclose(means.sum(axis=1), 1.0)


def test_parted_leaves_say_the_same(network, cases):
    for node in (node for node in network.nodes if node.parents):
        leaf_of, parted = stacking._parted(network, node)
        assert parted.graph.n_leaves == len(leaf_of)
        assert parted.parents == node.parents
        for case in cases.codes.T[:20].tolist():
            np.testing.assert_array_equal(
                parted.probabilities[parted.graph.leaf_of(case)], node.probabilities[node.graph.leaf_of(case)]
            )
        assert set(leaf_of) == set(range(node.graph.n_leaves))


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_it_predicts_better(share, cases):
    new = alarm().sample(2000, seed=2)
    table = with_holes(cases, share)
    plain = leafwise.learn(table, missing="infer")
    found = leafwise.learn(table, missing="infer", leaves="stacked")
    assert found.arcs == plain.arcs
    assert found == stacked(plain, table)
    assert log_probabilities(found, new).mean() > log_probabilities(plain, new).mean() + 0.02
    assert found.prior is None
    assert found.learned["stacked"]
    for node in found.nodes:
        assert node.counts.sum() == pytest.approx(500)


def test_states_for_holes_that_nothing_uses_change_nothing(network, cases):
    unused = Table(tuple(variable.with_missing for variable in cases.variables), cases.codes)
    assert stacked(network, unused) == stacked(network, cases) == leafwise.learn(cases, leaves="stacked")


def test_what_is_too_large_keeps_its_leaves(network, cases, monkeypatch):
    monkeypatch.setattr(stacking, "_MOST_CELLS", 9)
    found = stacked(network, cases)
    states = [variable.n_states for variable in network.variables]
    sizes = [states[k] * np.prod([states[p] for p in node.parents]) for k, node in enumerate(network.nodes)]
    for size, node, before in zip(sizes, found.nodes, network.nodes, strict=True):
        assert (node == before) == (size > 9 or not before.parents)
    assert any(size > 9 for size in sizes)


def test_rows_that_are_too_large_are_drawn(network, cases, monkeypatch):
    monkeypatch.setattr(completion, "_ROOM", 2)
    found = stacked(network, with_holes(cases, 0.3))
    for node in found.nodes:
        assert node.counts.sum() == pytest.approx(500)
    new = alarm().sample(1000, seed=2)
    assert log_probabilities(found, new).mean() > log_probabilities(network, new).mean() - 0.3
    started = leafwise.learn(with_holes(cases, 0.3), missing="infer", start=network)  # nothing was drawn before
    assert started.learned["stopped"] == "no round gains"


def test_ties_and_own_tests_stay():
    network = leafwise.Network.load(Path(__file__).parents[1] / "golden" / "network-2.json")
    found = stacked(network, network.sample(200, seed=1))
    tied = {tied.variable for group in network.ties for tied in group}
    keep = [node.own is not None or target in tied for target, node in enumerate(network.nodes)]
    assert any(keep)
    for node, before, kept in zip(found.nodes, network.nodes, keep, strict=True):
        assert not kept or node == before


def test_one_row_and_one_column():
    assert leafwise.learn(np.array([[1, 2]]), leaves="stacked").n_leaves == 2
    assert leafwise.learn(np.array([["a"], ["b"], [""]]), missing="infer", leaves="stacked").n_leaves == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "SHUNT"}, "leaves and a target of a table with holes"),
        ({"hidden": 2}, "hidden and leaves='stacked'"),
        ({"networks": 2}, "missing='infer' and networks=2"),
    ],
)
def test_what_is_refused(options, message, cases):
    with pytest.raises(ValueError, match=message):
        leafwise.learn(with_holes(cases, 0.1), missing="infer", leaves="stacked", **options)
