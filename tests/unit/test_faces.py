"""What a person meets in Python: Tab, help, names, frames, and errors for wrong types."""

import pydoc
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from oracle_inference import joint_table

import leafwise
from leafwise.data.encoding import read
from leafwise.data.table import MISSING
from leafwise.examples import alarm

ALARM = alarm()
CASES = ALARM.sample(200)


# Names


def test_tab_and_help_show_the_public_names():
    assert set(leafwise.__all__) < set(dir(leafwise))
    text = pydoc.render_doc(leafwise, renderer=pydoc.plaintext)
    assert [name for name in leafwise.__all__ if name not in text] == []
    assert leafwise.examples.alarm() == ALARM
    with pytest.raises(AttributeError, match="no attribute 'lern'"):
        _ = leafwise.lern


def test_a_network_by_name():
    shunt = ALARM["SHUNT"]
    assert (shunt.name, shunt.parents, shunt.children) == ("SHUNT", ("PULMEMBOLUS", "INTUBATION"), ("SAO2",))
    assert shunt.variable is ALARM.variables[shunt.index]
    assert shunt.probabilities is ALARM.nodes[shunt.index].probabilities
    assert shunt.graph.n_leaves == shunt.n_leaves == 6
    assert shunt.counts is None
    assert ALARM.parents("SHUNT") == shunt.parents
    assert ALARM.children("SHUNT") == shunt.children
    assert len(ALARM) == 37
    assert "SHUNT" in ALARM
    assert "shunt" not in ALARM
    assert list(ALARM) == list(ALARM.names)
    assert set(ALARM.named_arcs) == {(ALARM.names[a], ALARM.names[b]) for a, b in ALARM.arcs}
    with pytest.raises(ValueError, match=r"no variable is called 'SHUT' among the 37 here \('SHUNT', ...\)"):
        ALARM["SHUT"]
    given = leafwise.learn(CASES, target="HR")["BP"]
    assert given.parents == ()
    with pytest.raises(ValueError, match="'BP' is only given in this network"):
        _ = given.graph


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (ALARM, "Network(37 variables, 46 arcs, 105 tests, 243 leaves, 509 parameters)"),
        (read(np.array([["x", "y"]])), "Table(1 case, 2 variables: x1, x2)"),
        (ALARM.variables[1], "Variable('CVP', 3 states: LOW, NORMAL, HIGH)"),
        (ALARM.query("SHUNT"), "Answer (exact)\nSHUNT  NORMAL  0.8969\nSHUNT  HIGH    0.1031"),
        (ALARM["LVFAILURE"], "LVFAILURE: 0 tests, 1 leaf, 1 parameter\n\nleaf 0   TRUE  5.0 %  FALSE 95.0 %"),
    ],
)
def test_short_texts(thing, text):
    assert repr(thing) == text


def test_learned_networks_say_from_how_many_cases():
    assert repr(leafwise.learn(CASES)).endswith(", learned from 200 cases)")


def test_notebooks_get_html():
    for thing in (CASES, ALARM.query("SHUNT"), ALARM.explain(given={"BP": "LOW"}), ALARM.predict(CASES, "BP")):
        assert thing._repr_html_().count("<table>") == 1
    assert ALARM["SHUNT"]._repr_svg_().startswith("<svg")


# Questions


def test_questions_are_methods_too():
    given = {"BP": "LOW"}
    assert ALARM.query("CO", given=given)["CO"] == leafwise.query(ALARM, "CO", given=given)["CO"]
    assert ALARM.explain(given=given) == leafwise.explain(ALARM, given=given)
    assert (ALARM.sample(50, 7).codes == leafwise.sample(ALARM, 50, 7).codes).all()
    expected = leafwise.log_probabilities(ALARM, CASES)
    assert (ALARM.log_probabilities(CASES.to_pandas()) == expected).all()
    assert (ALARM.log_probabilities(pl.DataFrame(CASES)) == expected).all()


def small_network(seed: int) -> tuple[leafwise.Network, leafwise.Table]:
    random = np.random.default_rng(seed)
    a, b = random.integers(0, 3, 300), random.integers(0, 2, 300)
    c = np.where(random.random(300) < 0.8, (a + b) % 2, random.integers(0, 2, 300))
    d = np.where(random.random(300) < 0.8, c + (a > 1), random.integers(0, 3, 300))
    table = read(np.stack([a, b, c, d], axis=1))
    return leafwise.learn(table, structure_prior="kappa:0.5"), table


@pytest.mark.parametrize("target", range(4))
def test_predictions_equal_sums_over_the_joint_table(target):
    network, table = small_network(1)
    random = np.random.default_rng(2)
    hidden = random.random((60, 4)) < 0.4
    frame = pd.DataFrame(table.codes[:, :60].T, columns=table.names).astype("Int64").mask(hidden)
    found = network.predict(frame.drop(columns=table.names[target]), table.names[target])
    joint = joint_table(network)
    for codes, gaps, row in zip(table.codes[:, :60].T, hidden, found.probabilities, strict=True):
        place = tuple(
            slice(None) if i == target or gap else code for i, (code, gap) in enumerate(zip(codes, gaps, strict=True))
        )
        axes = [i for i in range(4) if i == target or gaps[i]]
        part = joint[place].sum(axis=tuple(k for k, i in enumerate(axes) if i != target))
        np.testing.assert_allclose(row, part / part.sum(), atol=1e-12)
    assert found.labels == [table.variables[target].labels[code] for code in found.probabilities.argmax(axis=1)]


def test_what_cannot_be_predicted():
    network, table = small_network(1)
    new = pd.DataFrame({"x1": [7], "x2": [0], "x3": [1]})
    with pytest.raises(ValueError, match="column 'x1' has 1 cell with unseen labels"):
        network.predict(new, "x4")
    assert len(network.predict(new, "x4", unseen="missing")) == 1
    with pytest.raises(ValueError, match="lacks column 'x3'"):
        network.predict(new.drop(columns="x3"), "x4")
    with pytest.raises(ValueError, match="missing cells in column 'x1'"):
        network.predict(new.assign(x1=None), "x4", missing="error")
    alone = leafwise.learn(table, target="x4")
    with pytest.raises(ValueError, match="no distribution of 'x1': learn it as a target"):
        alone.predict(new.assign(x1=0, x4=0), "x1")


def test_impossible_cases_have_no_prediction():
    sure = ALARM.predict(CASES, "HISTORY").probabilities
    assert np.isfinite(sure).all()
    a, b = (leafwise.Variable(name, ("no", "yes")) for name in "ab")
    graph = leafwise.DecisionGraph.complete([0], [2])
    never = leafwise.Node((), leafwise.DecisionGraph.single(), np.array([[0.5, 0.5]]))
    same = leafwise.Node((0,), graph, np.array([[1.0, 0.0], [1.0, 0.0]]))
    network = leafwise.Network((a, b), (never, same))
    found = network.predict(pd.DataFrame({"b": ["no", "yes"]}), "a").probabilities
    assert found[0].tolist() == [0.5, 0.5]
    assert np.isnan(found[1]).all()


# Frames


def test_tables_turn_into_frames_and_back():
    table = read(pd.DataFrame({"n": [1.5, 2.5, None, 4.5] * 5, "s": ["x", "y", None, "x"] * 5}), missing="state")
    assert table.variables[1].labels == ("x", "y", MISSING)
    for frame in (table.to_pandas(), table.to_polars(), table.to_arrow(), pa.table(table), pl.DataFrame(table)):
        again = read(frame, missing="state")
        assert again.variables == table.variables or frame is not None
        assert [v.labels for v in again.variables] == [v.labels for v in table.variables]
        assert (again.codes == table.codes).all()
    assert table.to_pandas()["n"].dtype.ordered
    assert not table.to_pandas()["s"].dtype.ordered
    assert table.to_pandas().isna().sum().tolist() == [5, 5]
    if hasattr(pd.DataFrame, "from_arrow"):
        assert pd.DataFrame.from_arrow(table).shape == (20, 2)


def test_answers_turn_into_frames():
    alone = ALARM.query(["SHUNT", "BP"]).to_pandas()
    assert alone.columns.tolist() == ["variable", "state", "probability"]
    assert alone.groupby("variable")["probability"].sum().tolist() == pytest.approx([1, 1])
    joint = pl.DataFrame(ALARM.query(["SHUNT", "BP"], joint=True))
    assert joint.columns == ["SHUNT", "BP", "probability"]
    assert joint.height == 6
    drawn = ALARM.query("SHUNT", method="weighting", n_samples=500).to_arrow()
    assert drawn.column_names[-1] == "standard_error"
    assert len(ALARM.explain().to_pandas()) == 37
    assert ALARM.predict(CASES, "BP").to_pandas().columns.tolist() == ["BP", "p(LOW)", "p(NORMAL)", "p(HIGH)"]


def test_targets_named_like_other_columns():
    coin = leafwise.Node((), leafwise.DecisionGraph.single(), np.array([[0.25, 0.75]]))
    names = ("probability", "standard_error")
    network = leafwise.Network(tuple(leafwise.Variable(name, ("heads", "tails")) for name in names), (coin, coin))
    frame = network.query(names, joint=True, method="weighting", n_samples=100).to_pandas()
    assert frame.columns.tolist() == [*names, "probability'", "standard_error'"]
    assert frame["probability"].tolist() == ["heads", "heads", "tails", "tails"]


def test_frames_of_packages_that_are_not_there(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(ValueError, match="needs the package pandas, which is not installed: install it"):
        CASES.to_pandas()


def test_comparison_counts_what_differs():
    learned = leafwise.learn(CASES)
    found = leafwise.compare(learned, ALARM, CASES)
    one, other = set(learned.named_arcs), set(ALARM.named_arcs)
    assert set(found.arcs) == one & other
    assert set(found.reversed) == {arc for arc in one if arc[::-1] in other}
    pairs = {frozenset(arc) for arc in one} ^ {frozenset(arc) for arc in other}
    assert found.distance == len(pairs) + len(found.reversed)
    assert found.fits["a"]["mean_log_likelihood"] == pytest.approx(learned.log_probabilities(CASES).mean())
    assert "log_score" not in found.fits["b"]
    same = leafwise.compare(learned, learned)
    assert (same.distance, same.class_distance, same.graphs) == (0, 0, {})
    a, b = (leafwise.Variable(name, ("no", "yes")) for name in "ab")
    alone = leafwise.Node((), leafwise.DecisionGraph.single(), np.array([[0.5, 0.5]]))
    below = leafwise.Node((0,), leafwise.DecisionGraph.complete([0], [2]), np.array([[0.9, 0.1], [0.2, 0.8]]))
    one, other = leafwise.Network((a, b), (alone, below)), leafwise.Network((b, a), (alone, below))
    turned = leafwise.compare(one, other)  # the arc is turned round, and no data could tell
    assert (turned.distance, turned.class_distance) == (1, 0)
    assert leafwise.compare(one, leafwise.Network((a,), (alone,))).only_in_a == ("b",)


def test_compared_networks_are_scored_on_the_same_cases():
    a, b = (leafwise.Variable(name, ("no", "yes")) for name in "ab")
    alone = leafwise.DecisionGraph.single()
    of_a = leafwise.Network((a,), (leafwise.Node((), alone, np.array([[0.5, 0.5]])),))
    of_b = leafwise.Network((b,), (leafwise.Node((), alone, np.array([[0.9, 0.1]])),))
    holes = pd.DataFrame({"a": [None, "no", "yes", "no"], "b": ["no", "no", "yes", None]})
    whole = np.log([0.9, 0.1]) - np.log(0.5)  # of the two rows without holes; each network lacks one other
    found = leafwise.compare(of_a, of_b, holes, missing="drop").fits
    assert found["b less a"]["mean_log_likelihood"] == pytest.approx(whole.mean())
    assert found["b less a"]["standard_error"] == pytest.approx(whole.std(ddof=1) / np.sqrt(2))
    assert found["b"]["mean_log_likelihood"] == pytest.approx(np.log([0.9, 0.1]).mean())
    with pytest.raises(ValueError, match="every row has a missing cell"):
        leafwise.compare(of_a, of_b, holes.iloc[[0, 3]], missing="drop")
    table = leafwise.read(holes.iloc[1:3])
    assert leafwise.compare(of_a, of_b, table).fits == found  # a table of more variables than either has


def test_what_can_be_read_once_is_compared():
    frame = pd.DataFrame({"a": ["no", "yes", "no"]})
    learned = leafwise.learn(frame)
    stream = pa.table({"a": frame["a"].tolist()}).to_reader()
    assert leafwise.compare(learned, learned, stream).fits == leafwise.compare(learned, learned, frame).fits


def by_graph(graph, names="abcy", labels=("no", "yes")):
    """A network in which the last of four variables has this graph."""
    alone = leafwise.Node((), leafwise.DecisionGraph.single(), np.array([[0.5, 0.5]]))
    node = leafwise.Node(graph.tested, graph, np.tile([0.9, 0.1], (graph.n_leaves, 1)))
    return leafwise.Network(tuple(leafwise.Variable(name, labels) for name in names), (alone,) * 3 + (node,))


def test_graphs_are_compared_by_their_leaves_and_not_by_the_order_of_splits_variables_or_states():
    first, halves = leafwise.DecisionGraph.single().split(0, 0, [{0}, {1}]), [{0}, {1}]
    one = first.split(0, 1, halves).split(0, 2, halves)
    other = first.split(1, 2, halves).split(0, 1, halves)
    assert one != other
    assert leafwise.compare(by_graph(one), by_graph(other)).graphs == {}
    turned = other.renumbered(lambda variable: 2 - variable)
    assert leafwise.compare(by_graph(one), by_graph(turned, "cbay")).graphs == {}
    assert leafwise.compare(by_graph(one), by_graph(turned)).graphs == {"y": (4, 4)}
    states = leafwise.DecisionGraph(one.tests, tuple(row[::-1] for row in one.children))
    assert leafwise.compare(by_graph(one), by_graph(states, labels=("yes", "no"))).graphs == {}
    assert leafwise.compare(by_graph(one), by_graph(one, labels=("n", "y"))).graphs == {"y": (4, 4)}
    whole = [leafwise.DecisionGraph.complete(order, [2] * 3) for order in ([0, 1, 2], [2, 0, 1])]
    assert leafwise.compare(*map(by_graph, whole)).graphs == {}
    merged = [graph.merge(*leaves) for graph, leaves in zip(whole, [(0, 1), (0, 4)], strict=True)]
    assert leafwise.compare(*map(by_graph, merged)).graphs == {}
    assert leafwise.compare(by_graph(merged[0]), by_graph(whole[1].merge(0, 1))).graphs == {"y": (7, 7)}


# Wrong types


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: leafwise.learn(5), "data of type int cannot be read: pass a path"),
        (lambda: leafwise.learn(ALARM), "data of type Network cannot be read"),
        (lambda: leafwise.learn(CASES, search="greedy"), "search is 'greedy' .str., and must be settings"),
        (lambda: leafwise.learn(CASES, prior=5), "the prior is 5 .int., and must be a text or a prior: use 'uniform'"),
        (lambda: leafwise.learn(CASES, structure_prior=5), "the structure prior is 5"),
        (lambda: leafwise.learn(CASES, constraints=5), "must be leafwise.Constraints"),
        (lambda: leafwise.learn(CASES, constraints=5, leaves="average"), "must be leafwise.Constraints"),
        (lambda: leafwise.learn(CASES, constraints=5, lags=1), "must be leafwise.Constraints"),
        (lambda: leafwise.learn(CASES, start="model.json"), "start got .* str, and needs a Network: Network.load"),
        (lambda: leafwise.query("model.json", "a"), "query got .* str, and needs a Network: Network.load"),
        (lambda: leafwise.sample(None, 5, 1), "sample got .* NoneType, and needs a Network: learn or load"),
        (lambda: leafwise.explain(5), "explain got"),
        (lambda: leafwise.mutual_information(5, "a"), "mutual_information got"),
        (lambda: leafwise.value_of_information(5, "a"), "value_of_information got"),
        (lambda: leafwise.feature_importance(5, "a"), "feature_importance got"),
        (lambda: leafwise.markov_blanket("model.json", "a"), "markov_blanket got .* Network.load"),
        (lambda: leafwise.is_independent(5, "a", "b"), "is_independent got"),
        (lambda: leafwise.dependence_path(5, "a", "b"), "dependence_path got"),
        (
            lambda: leafwise.contexts(leafwise.Mixture((ALARM,), (1,)), "CO"),
            "contexts got .* Mixture, .*: ask one of its members",
        ),
        (lambda: leafwise.do(5, {}), "do got"),
        (lambda: leafwise.reversible_arcs(5, "a"), "reversible_arcs got"),
        (lambda: leafwise.log_probabilities(5, CASES), "log_probabilities got"),
        (lambda: leafwise.log_score(5, CASES), "log_score got"),
        (lambda: leafwise.predict(5, CASES, "a"), "predict got"),
        (lambda: leafwise.compare(ALARM, 5), "compare got"),
        (lambda: leafwise.smoothed(5, CASES, 1), "smoothed got"),
        (lambda: leafwise.write(CASES, 5), "where to write is 5 .int., and must be a path"),
        (lambda: leafwise.write(5, "a.csv"), "data of type int cannot be read"),
        (lambda: leafwise.Network.load(5), "what to load is 5"),
        (lambda: ALARM.save(5), "where to save is 5"),
        (lambda: leafwise.plot_steps(5), "what to plot is 5"),
        (lambda: leafwise.describe(CASES), "a Table is encoded already"),
        (lambda: ALARM.query(5), "what is asked for is 5 .int., and must be the name of a variable"),
        (lambda: ALARM.query("SHUNT", given="x"), "what is given is 'x', not a mapping"),
        (lambda: ALARM.query("SHUNT", limits=5), "must be leafwise.Limits"),
        (lambda: ALARM.sample("x"), "the number of cases is 'x' .str., and must be a whole number"),
        (lambda: ALARM.sample(1.5), "the number of cases is 1.5"),
        (lambda: read("a.csv", na=5), "what names columns or words is 5"),
        (lambda: read("a.csv", na=[-999]), "a word for missing cells is -999 .int., and must be a text"),
        (lambda: read("a.csv", bins=[3]), "is not a count of bins"),
    ],
)
def test_wrong_types_get_three_parts(call: Any, message: str):
    with pytest.raises(TypeError, match=message):
        call()


def test_options_of_reading_are_not_for_tables():
    mixture = leafwise.Mixture((ALARM, ALARM), (0.5, 0.5))
    for options in ({"ignore": "HR"}, {"bins": 3}, {"delimiter": ";"}, {"states": "HR"}):
        for ask in (
            leafwise.learn,
            ALARM.log_probabilities,
            mixture.log_probabilities,
            partial(leafwise.compare, *mixture),
        ):
            with pytest.raises(ValueError, match=r"a Table is encoded already|variables bring their own"):
                ask(CASES, **options)
    asked = ALARM.prepare("CO", "HR")
    for rows in (CASES, [{"HR": "LOW"}]):
        with pytest.raises(ValueError, match="not read, so unseen cannot be given: leave it out, or give a frame"):
            asked.batch(rows, unseen="missing")


def test_missing_cells_are_treated_alike_in_tables_and_frames_by_networks_and_mixtures():
    frame = CASES.to_pandas().astype(object)
    frame.loc[3, "HR"] = None
    table = read(frame, variables=ALARM.variables, missing="unknown")
    expected = ALARM.log_probabilities(table)
    for network in (ALARM, leafwise.Mixture((ALARM, ALARM), (0.5, 0.5))):
        for data in (table, frame):
            assert network.log_probabilities(data) == pytest.approx(expected)
            with pytest.raises(ValueError, match="missing cells in column 'HR'"):
                network.log_probabilities(data, missing="error")
