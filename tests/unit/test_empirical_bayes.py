"""Leaves that begin with as many cases as their variable asks for, against the definition; and where they do not."""

import copy
import math

import numpy as np
import pandas
import pytest
from hypothesis import assume, given, settings
from sklearn.metrics import log_loss
from strategies import make_table, tables

import leafwise
import leafwise.examples
from leafwise import Constraints, LeafSearch, LeafSearchRestarts, TableArcSearch, learn, log_score, start_search
from leafwise.empirical_bayes import cross_validated, folds
from leafwise.estimators import DecisionGraphClassifier

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


def medians(nodes):
    """For each node the number of cases of which fewer are less probable than not, and more at most as probable."""
    likelihoods = []
    for node in nodes:
        logs = [log_probability(node.counts.tolist(), n / node.n_states) for n in CASES]
        likelihoods.append([math.exp(value - max(logs)) for value in logs])
    shares = [[value / sum(row) for value in row] for row in likelihoods]
    for _ in range(20):  # what is probable for the others is probable before the node's own cases
        before = [
            [1 + sum(row[k] for other, row in enumerate(shares) if other != own) for k in range(5)]
            for own in range(len(nodes))
        ]
        posterior = [[p * q for p, q in zip(*rows, strict=True)] for rows in zip(likelihoods, before, strict=True)]
        shares = [[value / sum(row) for value in row] for row in posterior]
    return [next(k for k in range(5) if sum(row[: k + 1]) >= 0.5 - 1e-12) for row in shares], shares


@settings(max_examples=40)
@given(tables())
def test_the_number_of_cases_is_the_median_of_five(table):
    found, plain = learn(table), learn(table, prior="symmetric:2")
    due, shares = medians(plain.nodes)
    for node, other, median, own in zip(found.nodes, plain.nodes, due, shares, strict=True):
        assert (node.parents, node.graph) == (other.parents, other.graph)
        assert node.counts.tolist() == other.counts.tolist()
        cases = round(float(node.exponents[0].sum()))
        assert node.exponents.tolist() == [[cases / 2 * (2 / node.n_states)] * node.n_states] * node.n_leaves
        is_even = any(abs(sum(own[: k + 1]) - 0.5) < 1e-9 for k in range(5))  # where rounding says which it is
        assert cases == CASES[median] or is_even


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


def fair_and_sure(n_cases):
    """Four variables of which all states are alike, and four that are in one state nearly always."""
    random = np.random.default_rng(1)
    states = [random.random(n_cases) < (0.5 if k < 4 else 0.03) for k in range(8)]
    return make_table([2] * 8, [column.astype(int) for column in states])


@pytest.mark.parametrize("search", [LeafSearch(), TableArcSearch()])
def test_leaves_of_one_table_differ(search, cases):
    fair, sure = (
        [node.exponents.sum() for node in learn(fair_and_sure(200), search=search).nodes][k:][:4] for k in (0, 4)
    )
    assert max(sure) < min(fair)
    assert sizes(learn(cases, search=search, prior="symmetric:2")) == {2}


def test_the_priors_own_cases(cases):
    assert sizes(learn(cases, prior=leafwise.Symmetric())) == {2}
    assert sizes(learn(cases, prior="symmetric:3")) == {3}


def test_variables_of_which_little_is_known_are_taken_for_what_the_others_are():
    """Two rows say next to nothing of one variable, and all together that few are even."""
    rows = np.zeros((26, 2), int)
    rows[0, 0] = 1
    table = make_table([2] * 26, rows)
    assert max(sizes(learn(table))) < 8
    assert sizes(learn(table, target="d")) == {8}  # nobody else was asked


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


def test_who_is_told_of_progress_is_told_of_the_search_that_was_begun(cases):
    search, told = start_search(cases), []
    search.run(told.append)
    assert told
    assert all(one is search for one in told)
    assert copy.copy(search).network == search.network


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


# A classifier of one graph: as many cases as predict cases held back best

OF_A_CLASS = (*CASES, 64, 128)


def log_likelihood(network, target, held_back, cases):
    """Of a target's states, each by the leaf that its case ends in, which began with so many cases."""
    node = network.nodes[target]
    total = 0.0
    for case in held_back.codes.T:
        counts = node.counts[node.graph.leaf_of(case)]
        total += math.log((counts[case[target]] + cases / node.n_states) / (counts.sum() + cases))
    return total


@settings(max_examples=25)
@given(tables())
def test_cases_held_back_choose_the_most_probable_number(table):
    assume(table.n_cases >= 3)
    last = table.n_variables - 1
    how = {"target": table.names[last], "prior": "symmetric:2"}
    plain, parts = learn(table, **how), [(learn(cases, **how), held_back) for cases, held_back in folds(table, last)]
    start = CASES[medians([plain.nodes[last]])[0][0]]
    logs = {
        cases: sum(log_likelihood(network, last, held_back, cases) for network, held_back in parts)
        - abs(math.log(cases / start))
        for cases in OF_A_CLASS
    }
    assert logs[2 * cross_validated(plain, last, parts)] >= max(logs.values()) - 1e-9


@settings(max_examples=25)
@given(tables())
def test_folds_are_balanced_and_do_not_know_the_order_of_cases(table):
    def rows(cases):
        return sorted(map(tuple, cases.codes.T.tolist()))

    parts = list(folds(table, 0))
    assert sorted(row for _, held_back in parts for row in rows(held_back)) == rows(table)
    for cases, held_back in parts:
        assert sorted(rows(cases) + rows(held_back)) == rows(table)
    shares = np.array([np.bincount(held_back.codes[0], minlength=9) for _, held_back in parts])
    assert (shares.max(axis=0) - shares.min(axis=0)).max() <= 1
    backwards = leafwise.Table(table.variables, np.ascontiguousarray(table.codes[:, ::-1]))
    for one, other in zip(parts, folds(backwards, 0), strict=True):
        assert [rows(cases) for cases in one] == [rows(cases) for cases in other]


@pytest.fixture(scope="module")
def sums():
    """The class is a sum of the columns, in fifths: many tests find leaves that are nearly pure by chance."""
    random = np.random.default_rng(1)
    x = random.integers(0, 3, (600, 8))
    y = x.sum(axis=1) + random.normal(0, 0.5, 600)
    return x.astype(str), np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y).astype(str)


def fitted(sums, **given):
    """With how many cases the leaves of a classifier's graph begin."""
    weights = given.pop("sample_weight", None)
    network = DecisionGraphClassifier(**given).fit(*sums, sample_weight=weights).network_
    return {round(float(row.sum()), 6) for row in network.nodes[-1].exponents}


def test_pure_leaves_of_a_large_graph_are_not_believed(sums):
    x, y = sums
    assert min(fitted(sums)) >= 8
    assert fitted(sums, prior="symmetric:2") == {2}
    losses = [
        log_loss(y[300:], DecisionGraphClassifier(prior=prior).fit(x[:300], y[:300]).predict_proba(x[300:]))
        for prior in ("auto", "symmetric:2")
    ]
    assert losses[0] < losses[1] - 0.05


def test_where_no_cases_are_held_back_the_evidence_stays(sums):
    assert fitted(sums, operators="CBIMO") == {2}
    assert fitted(sums, search=LeafSearch()) == {2}
    with_hole = sums[0].astype(object)
    with_hole[0, 0] = None
    assert fitted((with_hole, sums[1]), missing="infer") == {2}
    assert fitted((sums[0][:2], sums[1][:2])) <= set(CASES)
    assert fitted(sums, sample_weight=np.full(600, 1e9)) == {2}  # rows that cannot be repeated


def test_weights_are_cases(sums):
    x, y = sums
    assert fitted(sums, sample_weight=np.full(len(y), 2.0)) == fitted((x.repeat(2, axis=0), y.repeat(2)))
    assert fitted(sums, sample_weight=np.ones(len(y))) == fitted(sums)
