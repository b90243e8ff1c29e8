"""Leaves that begin with as many cases as their variable asks for, against the definition; and where they do not."""

import math

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from strategies import tables

import leafwise
import leafwise.examples
from leafwise import Constraints, LeafSearch, LeafSearchRestarts, TableArcSearch, learn, log_score, start_search

CASES = (2, 4, 8, 16, 32)


def log_probability(rows, exponent):
    """Of the cases of all leaves, one after the other: each by what was there before it."""
    total = 0.0
    for row in rows:
        seen, n = [0] * len(row), 0
        for state, count in enumerate(row):
            for _ in range(count):
                total += math.log((seen[state] + exponent) / (n + exponent * len(row)))
                seen[state] += 1
                n += 1
    return total


def is_the_median(node, cases):
    """Whether fewer cases are at most as probable as not, and so are more, given those of the node."""
    logs = {n: log_probability(node.counts.tolist(), n / node.n_states) for n in CASES}
    shares = {n: math.exp(value - max(logs.values())) for n, value in logs.items()}
    half = sum(shares.values()) / 2 + 1e-9
    return sum(shares[n] for n in CASES if n < cases) < half and sum(shares[n] for n in CASES if n > cases) < half


@settings(max_examples=40)
@given(tables())
def test_the_number_of_cases_is_the_median_of_five(table):
    found, plain = learn(table), learn(table, prior="symmetric:2")
    for node, other in zip(found.nodes, plain.nodes, strict=True):
        assert (node.parents, node.graph) == (other.parents, other.graph)
        assert node.counts.tolist() == other.counts.tolist()
        cases = round(float(node.exponents[0].sum()))
        assert node.exponents.tolist() == [[cases / 2 * (2 / node.n_states)] * node.n_states] * node.n_leaves
        assert is_the_median(node, cases)


@settings(max_examples=20)
@given(tables())
def test_scores_are_those_of_the_graphs(table):
    found, plain = learn(table), learn(table, prior="symmetric:2")
    assert found.prior == plain.prior == "symmetric:2"
    assert found.learned["log_score"] == plain.learned["log_score"]
    assert log_score(found, table) == log_score(plain, table)
    assert log_score(found, table) == log_score(found, table, prior="symmetric:2")


@pytest.fixture(scope="module")
def cases():
    return leafwise.sample(leafwise.examples.alarm(), 300, seed=1)


def sizes(network):
    """With how many cases the leaves of each variable begin."""
    return {round(float(row.sum())) for node in network.nodes if node is not None for row in node.exponents}


def test_leaves_of_real_tables_differ(cases):
    assert len(sizes(learn(cases))) > 1
    assert sizes(learn(cases, prior="symmetric:2")) == sizes(learn(cases, prior=leafwise.Symmetric())) == {2}
    assert sizes(learn(cases, prior="symmetric:3")) == {3}
    assert len(sizes(learn(cases, search=TableArcSearch()))) > 1


def test_a_file_holds_them(cases, tmp_path):
    found = learn(cases)
    found.save(tmp_path / "model.json")
    loaded = leafwise.Network.load(tmp_path / "model.json")
    assert loaded == found
    assert log_score(loaded, cases).total == log_score(found, cases).total


def test_searches_hand_out_the_same(cases, tmp_path):
    search = start_search(cases, checkpoint=tmp_path / "saved")
    assert [step.n_leaves for step in search][-1] == search.n_leaves
    assert search.network == learn(cases) == learn(cases, checkpoint=tmp_path / "saved")
    several = start_search(cases, target="HRBP", search=LeafSearchRestarts(rounds=3, keep=2))
    several.run()
    assert several.networks[0][0] == several.network
    with pytest.raises(AttributeError, match="networks"):
        search.networks  # noqa: B018


def test_a_start_goes_on_from_the_graphs(cases):
    found = learn(cases)
    assert learn(cases, start=found).nodes == found.nodes


def test_weights_count(cases):
    assert sizes(learn(cases, weights=[40] * cases.n_cases)) == sizes(learn(doubled(cases, 40)))


def doubled(table, times):
    return leafwise.Table(table.variables, table.codes.repeat(times, axis=1))


def test_expected_counts_count():
    frame = pandas.DataFrame(np.random.default_rng(1).integers(0, 3, (60, 4)).astype(str))
    frame.iloc[:9, 0] = None
    found, plain = (learn(frame, missing="infer", prior=prior) for prior in ("auto", "symmetric:2"))
    assert found.learned == plain.learned
    assert [node.counts.tolist() for node in found.nodes] == [node.counts.tolist() for node in plain.nodes]
    assert max(sizes(found)) > 2
    assert sizes(plain) == {2}
    assert max(sizes(learn(frame.iloc[9:], hidden=2, search=LeafSearch(max_steps=3)))) > 2


def test_tied_leaves_and_own_value_tests_keep_two_cases(cases):
    frame = cases.to_pandas()[["HRBP", "HREKG", "HR", "ERRCAUTER"]]
    whole = learn(frame, constraints=Constraints(tied=[[("HRBP", ["HR"]), ("HREKG", ["HR"])]]))
    tied = {leaf.variable for group in whole.ties for leaf in group}
    assert tied
    assert {round(float(row.sum())) for variable in tied for row in whole.nodes[variable].exponents} == {2}
    random = np.random.default_rng(1)
    x, z = random.integers(0, 4, (2, 3000))
    y = np.where(random.random(3000) < 0.5, 0, np.where(random.random(3000) < 0.8, 1 + x, 1 + z))
    table = leafwise.read(np.column_stack([x, y]).astype(str))
    own = learn(table, constraints=Constraints(order=["x1", "x2"]), search=LeafSearch("CBIMO"))
    assert own.nodes[1].own is not None
    assert own.nodes[1].own.exponents.max() == 2 / 5
    assert log_score(own, table) == log_score(own, table, prior="symmetric:2")
