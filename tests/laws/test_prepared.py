"""Prepared queries equal sums over the full joint table, row by row and all at once."""

from collections import deque
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import networks
from oracle_inference import joint_table, marginal, weighted
from random_networks import random_network, single, variables
from strategies import examples

from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.inference import compiled, prepared
from leafwise.inference.compiled import CompiledQuery
from leafwise.inference.exact import Limits
from leafwise.inference.prepared import PreparedQuery
from leafwise.inference.query import query
from leafwise.inference.sampling import sample
from leafwise.network import Network

pytestmark = pytest.mark.interpreted


@st.composite
def questions(draw):
    """A network, a variable with soft evidence, variables that are told later, with states, and targets."""
    network = draw(networks(complete=True))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    variables = draw(st.permutations(range(len(network.variables))))
    targets = variables[: draw(st.integers(1, 2))]
    rest = variables[len(targets) :]
    told = rest[: draw(st.integers(0, len(rest)))]
    weights = {}
    for variable in rest[len(told) :][:1]:
        held = random.random(network.variables[variable].n_states) < 0.6
        held[0] = True
        weights[variable] = held * (random.random(len(held)) + 0.1)
    rows = np.stack([random.integers(0, network.variables[v].n_states, 4) for v in told], axis=1) if told else [[]] * 4
    return network, weights, targets, told, np.array(rows, np.int64).reshape(4, len(told))


@examples(150)
@given(questions(), st.booleans(), st.booleans(), st.booleans())
def test_compiled_queries(question, joint, walking, with_evidence):
    network, weights, targets, told, rows = question
    tables = [tuple(targets)] if joint else [(target,) for target in targets]
    with pytest.MonkeyPatch.context() as patch:
        if walking:
            patch.setattr(compiled, "_MOST_HELD", 0)
        asked = CompiledQuery.of(network, weights, tables, told, Limits(), with_evidence)
        assert asked.is_affordable
        logs, found = asked.answers(rows, threads=1)
    table = weighted(joint_table(network), weights)
    for r, row in enumerate(rows):
        known = {v: np.eye(network.variables[v].n_states)[state] for v, state in zip(told, row, strict=True)}
        here = weighted(table, known)
        if here.sum() == 0:
            assert not with_evidence or np.isnan(logs[r])
            continue
        if with_evidence:
            assert logs[r] == pytest.approx(np.log(here.sum()), abs=1e-9)
        for target, shares in zip(tables, found, strict=True):
            np.testing.assert_allclose(shares[r], marginal(here, list(target)) / here.sum(), atol=1e-12)


def labels(network, variables, row):
    names, known = network.names, network.variables
    return {names[v]: known[v].labels[code] for v, code in zip(variables, row, strict=True) if code < known[v].n_states}


@pytest.mark.parametrize("joint", [False, True])
def test_batches_equal_queries(joint):
    network = random_network(8, (2, 3, 2, 4, 2, 3), zeros=0.15)
    cases = sample(network, 30, seed=1)
    codes = cases.codes.copy()
    codes[2, :20], codes[4, 10:15] = network.variables[2].n_states, network.variables[4].n_states
    variables = [v.with_missing if (codes[k] == v.n_states).any() else v for k, v in enumerate(network.variables)]
    asked = network.prepare(["x0", "x1"], ["x2", "x4", "x5"], joint=joint)
    found = asked.batch(Table(tuple(variables), codes))
    rows = [labels(network, (2, 4, 5), column) for column in codes[[2, 4, 5]].T]
    again = asked.batch(rows)
    of_frame = asked.batch(pd.DataFrame(rows, columns=["x5", "x4", "x2"]))
    for one, other in zip(found.distributions, of_frame.distributions, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(found) == 30
    assert found.is_exact.all()
    for k, given_here in enumerate(rows):
        right = query(network, ["x0", "x1"], given=given_here, joint=joint)
        one = asked(given_here)
        for a, b, c, d in zip(
            right.distributions, one.distributions, found.distributions, again.distributions, strict=True
        ):
            np.testing.assert_allclose(b, a, atol=1e-12)
            np.testing.assert_allclose(c[k], a, atol=1e-12)
            np.testing.assert_allclose(d[k], a, atol=1e-12)
    if not joint:
        np.testing.assert_array_equal(found["x1"], found.distributions[1])
    else:
        with pytest.raises(TypeError, match="together"):
            found["x1"]


def test_what_a_plan_cannot_do_is_asked_alone():
    network = random_network(11, (2, 3, 2, 3))
    asked = PreparedQuery(network, "x0", ["x1", "x3"], log_evidence=True)
    soft = {"x1": ["s0", "s2"], "x3": {"s0": 0.5, "s1": 1}}
    np.testing.assert_allclose(asked(soft).distributions[0], query(network, "x0", given=soft).distributions[0])
    hard = {"x1": "s0", "x3": "s1"}
    assert asked(hard).log_evidence == pytest.approx(query(network, "x0", given=hard).log_evidence)


def test_a_query_without_evidence_variables():
    network = random_network(11, (2, 3, 2, 3))
    expected = query(network, "x0").distributions[0]
    np.testing.assert_allclose(network.prepare("x0")({}).distributions[0], expected)
    np.testing.assert_allclose(network.prepare("x0").batch([{}, {}])["x0"], [expected] * 2)


def test_samples_where_a_plan_is_too_costly():
    sampled = PreparedQuery(random_network(11, (2, 3, 2, 3)), "x0", ["x1"], limits=Limits(operations=1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "query", partial(query, n_samples=1000))
        found = sampled.batch([{"x1": "s0"}, {"x1": "s1"}])
        assert sampled({"x1": "s0"}).method != "exact"
    assert not found.is_exact.any()
    assert found.standard_errors[0].max() > 0


def test_impossible_rows():
    network = random_network(3, (2, 2, 2), zeros=0.0)
    sure = network.nodes[0].__class__((), network.nodes[0].graph.single(), np.array([[1.0, 0.0]]))
    network = network.__class__(network.variables, (sure, *network.nodes[1:]))
    asked = PreparedQuery(network, "x1", ["x0"], log_evidence=True)
    found = asked.batch([{"x0": "s0"}, {"x0": "s1"}])
    assert np.isneginf(found.log_evidence).tolist() == [False, True]
    assert np.isnan(found["x1"]).any(axis=1).tolist() == [False, True]
    with pytest.raises(ValueError, match="impossible"):
        asked({"x0": "s1"})


def test_impossible_rows_where_a_plan_is_too_costly():
    sure, free = single([1.0, 0.0]), single([0.3, 0.7])
    network = Network(variables((2, 2)), (sure, free))
    found = PreparedQuery(network, "x1", ["x0"], limits=Limits(memory=1)).batch([{"x0": "s0"}, {"x0": "s1"}])
    assert found.is_exact.tolist() == [False, True]
    assert np.isnan(found["x1"]).any(axis=1).tolist() == [False, True]


def test_batches_are_read_as_elsewhere(tmp_path):
    asked, path, rows = alarm().prepare("CO", "HR"), tmp_path / "rows.csv", [{"HR": "LOW"}, {"HR": "HIGH"}]
    path.write_text("HR,BP\nLOW,LOW\nHIGH,VERY LOW\n")
    expected = asked.batch(rows)["CO"]
    for given_here in (deque(rows), tuple(rows)):
        np.testing.assert_array_equal(asked.batch(given_here)["CO"], expected)
    for given_here in (path, [path]):  # whose BP does not count, whatever it is
        np.testing.assert_array_equal(asked.batch(given_here)["CO"], expected)
    path.write_text("HR\nLOW\nVERY LOW\n")
    with pytest.raises(ValueError, match=r"unseen labels .'VERY LOW'.*unseen='missing'"):
        asked.batch(path)
    np.testing.assert_allclose(asked.batch(path, unseen="missing")["CO"], asked.batch([rows[0], {}])["CO"])
    assert len(asked.batch([])) == 0


def test_cells_of_a_single_target_may_be_missing_where_they_do_not_matter():
    whole = random_network(11, (2, 3, 2, 3))
    target = next(v for v, node in enumerate(whole.nodes) if node.n_tests)
    name, parents = whole.names[target], {whole.names[v] for v in whole.nodes[target].graph.tested}
    network = Network(whole.variables, tuple(node if v == target else None for v, node in enumerate(whole.nodes)))
    names = [other for other in network.names if other != name]
    rows = [dict.fromkeys(names, "s0"), {other: "s0" if other in parents else None for other in names}]
    found = network.prepare(name, names).batch(pd.DataFrame(rows))[name]
    np.testing.assert_allclose(found, [list(network.query(name, given=rows[0])[name].values())] * 2)


def test_refusals():
    network = alarm()
    with pytest.raises(ValueError, match="as a target and as evidence"):
        network.prepare("CO", ["CO"])
    with pytest.raises(ValueError, match="prepare it with 'HR'"):
        network.prepare("CO", "BP")({"HR": "LOW"})
    with pytest.raises(ValueError, match="no state 'VERY LOW'"):
        network.prepare("CO", "BP")({"BP": "VERY LOW"})
    with pytest.raises(TypeError, match="not a mapping"):
        network.prepare("CO", "BP")("LOW")
    with pytest.raises(ValueError, match="named twice"):
        network.prepare(["CO", "CO"])
