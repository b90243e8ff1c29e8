"""Laws of weighted cases: whole weights are repeated rows, others count as what they are, and what is no weight."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, generators, random_setup, random_table

import leafwise
from leafwise import GraphArcSearch, LeafSearchRestarts, RecoverySearch, TableArcSearch, learn, start_search
from leafwise.data.case_weights import stacked
from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.search.leaf_search import LeafSearch


def some_weights(table, random, high=4):
    weights = random.integers(0, high, table.n_cases)
    weights[0] = 1
    return weights


def repeated(table, weights):
    return Table(table.variables, np.repeat(table.codes, weights, axis=1))


@pytest.mark.interpreted
@given(generators(), st.sampled_from(["uniform", "auto", "bdeu:10"]))
@examples(30)
def test_whole_weights_are_repeated_rows(random, prior):
    table = random_table(random)
    setup = random_setup(random, table)
    weights = some_weights(table, random)
    options = setup.for_library() | {"prior": prior}
    assert learn(table, weights=weights, **options) == learn(repeated(table, weights), **options)
    assert learn(table, weights=np.ones(table.n_cases), **options) == learn(table, **options)


@pytest.mark.interpreted
@given(generators(), st.sampled_from(["uniform", "symmetric:2", "bdeu:10"]), st.sampled_from([0.5, 0.3, 3.0, 1 / 7]))
@examples(30)
def test_rows_that_stand_for_shares_of_cases_count_as_such(random, prior, unit):
    """Score and parameters are those of Equation 5 for the weighted counts."""
    table = random_table(random)
    weights = some_weights(table, random) * unit
    search = start_search(table, weights=weights, prior=prior, structure_prior="uniform")
    search.run()
    network, by_hand = search.network, 0.0
    for target, node in enumerate(network.nodes):
        counts = np.zeros(node.probabilities.shape)
        for case, weight in zip(table.codes.T.tolist(), weights, strict=True):
            counts[node.graph.leaf_of(case), case[target]] += weight
        alphas = node.exponents
        assert node.counts == pytest.approx(counts)
        assert node.probabilities == pytest.approx(
            (counts + alphas) / (counts + alphas).sum(axis=1, keepdims=True), abs=1e-12
        )
        if prior != "bdeu:10":
            assert alphas == pytest.approx(np.full(alphas.shape, 1.0 if prior == "uniform" else 2 / alphas.shape[1]))
        for row, alpha in zip(counts, alphas, strict=True):
            by_hand += math.lgamma(alpha.sum()) - math.lgamma(alpha.sum() + row.sum())
            by_hand += sum(math.lgamma(a + n) - math.lgamma(a) for a, n in zip(alpha, row, strict=True))
    assert search.log_marginal_likelihood == pytest.approx(by_hand, rel=1e-9, abs=1e-7)


def test_the_priors_exponents_are_those_of_whole_cases():
    table = leafwise.sample(alarm(), 200, seed=1)
    node = learn(table, weights=np.full(200, 0.25)).nodes[0]
    assert node.counts.sum() + (node.exponents - 1).sum() == pytest.approx(50)
    assert learn(table, weights=np.full(200, 0.25)).learned["cases"] == 50


@pytest.mark.parametrize("search", [GraphArcSearch(), LeafSearchRestarts(rounds=5), RecoverySearch(), TableArcSearch()])
def test_every_search_takes_whole_weights(search):
    table = leafwise.sample(alarm(), 150, seed=1)
    table = Table(table.variables[:8], np.ascontiguousarray(table.codes[:8]))
    weights = some_weights(table, np.random.default_rng(1))
    assert learn(table, weights=weights, search=search) == learn(repeated(table, weights), search=search)


def test_other_searches_over_graphs_take_other_weights_and_complete_tables_refuse_them():
    table = leafwise.sample(alarm(), 150, seed=1)
    table = Table(table.variables[:6], np.ascontiguousarray(table.codes[:6]))
    assert learn(table, weights=np.full(150, 2.5), search=GraphArcSearch()).learned["cases"] == 375
    schedules = [LeafSearch(schedule=schedule) for schedule in ("best-first", "splits-first")]
    one, other = (learn(table, weights=np.full(150, 2.5), search=own).learned["log_score"] for own in schedules)
    begun = learn(table, weights=np.full(150, 2.5), search=LeafSearchRestarts(rounds=0)).learned["log_score"]
    assert begun == pytest.approx(max(one, other), rel=1e-12)
    with pytest.raises(ValueError, match="not whole"):
        learn(table, weights=np.full(150, 2.5), search=TableArcSearch())


def test_units_are_exact_where_they_can_be_and_add_up_to_all_cases():
    table = leafwise.sample(alarm(), 50, seed=1)
    rows, unit = stacked(table, np.repeat([0.5, 1.5, 2.0, 0.0, 1.0], 10))
    assert (rows.n_cases, unit) == (100, 0.5)
    weights = np.random.default_rng(1).random(50)
    rows, unit = stacked(table, weights)
    assert rows.n_cases * unit == pytest.approx(weights.sum())
    rows, unit = stacked(table, np.full(50, 1e9))  # equal weights need no repeats, however large
    assert (rows.n_cases, unit) == (50, 1e9)
    huge = np.full(50, 1e9)
    huge[0] += 1  # no common divisor, and far too many rows: rounded, within what was promised
    rows, unit = stacked(table, huge)
    assert rows.n_cases <= 50 * 101
    assert rows.n_cases * unit == pytest.approx(huge.sum())


@pytest.mark.parametrize("scale", [1e-9, 1e-10, 1e-200])
def test_small_weights_count_for_what_they_are(scale):
    table = leafwise.sample(alarm(), 50, seed=1)
    weights = np.arange(50) % 3 * scale
    rows, unit = stacked(table, weights)
    assert rows.n_cases * unit / scale == pytest.approx(49)
    counted = np.bincount(rows.codes[0]) * unit / scale
    assert counted == pytest.approx(np.bincount(table.codes[0], np.arange(50) % 3), rel=0.01)
    assert learn(table, weights=weights).nodes[0].counts.sum() / scale == pytest.approx(49)


@pytest.mark.parametrize("others", [1.0, 0.123456789])
def test_weights_that_are_too_small_beside_the_others_are_told(others):
    table = leafwise.sample(alarm(), 50, seed=1)
    weights = np.full(50, others)
    weights[:3] = 1e-10
    with pytest.warns(UserWarning, match="weights up to 1e-10 round to 0 .* leaves out 3 cases of 50: give them"):
        found = learn(table, weights=weights)
    weights[:3] = 0
    for node, other in zip(found.nodes, learn(table, weights=weights).nodes, strict=True):
        assert node.graph == other.graph
        assert node.probabilities == pytest.approx(other.probabilities)


def frame():
    cases = leafwise.sample(alarm(), 120, seed=1).to_pandas()[["SHUNT", "INTUBATION", "PULMEMBOLUS"]]
    random = np.random.default_rng(1)
    return cases.assign(age=random.integers(20, 60, 120), n=random.integers(0, 4, 120))


def test_a_column_of_weights_is_no_variable(tmp_path):
    cases = frame()
    cases.to_csv(tmp_path / "cases.csv", index=False)
    by_hand = learn(cases.loc[cases.index.repeat(cases["n"])].drop(columns="n"))
    assert "n" not in by_hand.names
    assert learn(cases, weights="n") == by_hand  # numbers are cut as in the repeated rows, too
    assert learn(tmp_path / "cases.csv", weights="n") == by_hand
    assert learn(cases.drop(columns="n"), weights=cases["n"]) == by_hand
    table = leafwise.read(cases, bins=None, states="*")
    assert learn(table, weights="n").names == ("SHUNT", "INTUBATION", "PULMEMBOLUS", "age")


@pytest.mark.parametrize("scale", [1, 0.3])
def test_weights_go_with_frames_of_polars(scale):
    cases = frame().assign(n=frame()["n"] * scale)
    texts = pl.from_pandas(cases).with_columns(pl.col(pl.Categorical).cast(pl.String))
    assert learn(texts, weights="n") == learn(cases, weights="n")


def test_a_column_without_labels_is_refused_beside_weights():
    runs = pa.RunEndEncodedArray.from_arrays([60, 120], ["a", "b"])
    with pytest.raises(ValueError, match=r"column 'runs' holds run_end_encoded.*, which has no labels: turn it into"):
        learn(pa.table({"runs": runs, "n": [1] * 120}), weights="n")


def test_rows_with_missing_cells_are_dropped_with_their_weights():
    cases = frame()
    cases.loc[3:9, "SHUNT"] = None
    for scale in (1, 0.5):
        weighted = cases.assign(n=cases["n"] * scale)
        whole = weighted.drop(index=range(3, 10))
        assert learn(weighted, weights="n", missing="drop") == learn(whole, weights="n")
        weighted["SHUNT"] = None
        with pytest.raises(
            ValueError, match=r"every row has a missing cell, in column 'SHUNT' .*, so missing='drop' l"
        ):
            learn(weighted, weights="n", missing="drop")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], r"the shape \(2,\), and there are 120 cases"),
        (np.full(120, np.nan), "case 1 has the weight nan"),
        (np.append(np.ones(119), -2), "case 120 has the weight -2"),
        (np.append(np.ones(119), np.inf), "case 120 has the weight inf"),
        (np.zeros(120), "all weights are zero"),
        (np.full(120, 1e14), "add up to 1.2e\\+16"),
        (np.full(120, 1e-310), "add up to 1.2e-308 cases, too few"),
        (["a"] * 120, "must be numbers"),
        ("m", "weights names 'm'"),
        ("SHUNT", "holds 'NORMAL', which is no weight"),
    ],
)
def test_what_is_no_weight_is_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        learn(frame(), weights=weights)


def test_a_missing_weight_is_refused():
    cases = frame().astype({"n": "Int64"})
    cases.loc[4, "n"] = pd.NA
    with pytest.raises(ValueError, match="row 5 has no weight in column 'n'"):
        learn(cases, weights="n")


def test_a_search_with_weights_goes_on_where_it_stopped():
    table = leafwise.sample(alarm(), 200, seed=1)
    weights = np.random.default_rng(2).random(200)
    whole = learn(table, weights=weights, search=LeafSearch(schedule="best-first"))
    part = learn(table, weights=weights, search=LeafSearch(max_steps=20, schedule="best-first"))
    assert part.learned["steps"] == 20 < whole.learned["steps"]
    assert learn(table, weights=weights, start=part, search=LeafSearch(schedule="best-first")).nodes == whole.nodes
