"""Tables with holes and hidden causes: what learning takes, refuses and gives, and filling in."""

import os
import pickle

import numpy as np
import pandas as pd
import pytest

import leafwise
from leafwise import Constraints, TableArcSearch, own_tests
from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.formats.json import dumps
from leafwise.imputation import CellProbabilities
from leafwise.search import incomplete

pytestmark = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="rounds need compiled loops")


def garden(n_cases=300, share=0.1, seed=1):
    """Cases where wet grass needs rain or the sprinkler, with holes."""
    random = np.random.default_rng(seed)
    rain = random.random(n_cases) < 0.4
    sprinkler = random.random(n_cases) < 0.3
    wet = (rain | sprinkler) ^ (random.random(n_cases) < 0.05)
    frame = pd.DataFrame({"rain": rain, "sprinkler": sprinkler, "wet": wet}).astype(object)
    frame["degrees"] = np.where(rain, 10.0, 20.0) + random.normal(size=n_cases)
    return frame.mask(random.random(frame.shape) < share)


def mixture(n_cases=600, seed=1):
    """Six tests that agree because of a cause that is not in the table."""
    random = np.random.default_rng(seed)
    cause = random.random(n_cases) < 0.5
    return np.stack([cause ^ (random.random(n_cases) < 0.15) for _ in range(6)], axis=1).astype(int)


def test_what_is_learned_from_holes():
    frame = garden()
    network = leafwise.learn(frame, missing="infer")
    assert not any(variable.missing for variable in network.variables)
    assert set(network.parents("wet")) == {"rain", "sprinkler"} or "wet" in network.parents("rain")
    learned = network.learned
    assert learned["cases"] == 300
    assert learned["missing"] == int(frame.isna().to_numpy().sum())
    assert learned["stopped"] == "no round gains"
    for node in network.nodes:
        assert node.counts.dtype == np.float64
        assert node.counts.sum() == pytest.approx(300)
    assert network == leafwise.learn(leafwise.read(frame, missing="infer"), missing="infer")


def test_a_network_of_holes_is_saved_and_shown(tmp_path):
    network = leafwise.learn(garden(), missing="infer")
    network.save(tmp_path / "model.json")
    assert leafwise.Network.load(tmp_path / "model.json") == network
    assert "cases" in str(network["wet"])


@pytest.mark.parametrize("n_cases", [1, 2])
def test_tiny_tables(n_cases):
    frame = pd.DataFrame({"a": ["x", None][:n_cases], "b": ["u", "u"][:n_cases]})
    assert leafwise.learn(frame, missing="infer").n_leaves == 2
    assert leafwise.learn(pd.DataFrame({"a": ["x", None, "y"]}), missing="infer").n_leaves == 1


def test_a_target_alone():
    frame = garden(share=0.2)
    network = leafwise.learn(frame, missing="infer", target="wet")
    assert [node is not None for node in network.nodes] == [False, False, True, False]
    assert {"rain", "sprinkler"} <= set(network.parents("wet"))
    frame[["rain", "sprinkler", "degrees"]] = garden(share=0.0)[["rain", "sprinkler", "degrees"]]
    only = leafwise.learn(frame, missing="infer", target="wet")  # holes in the target tell nothing of it
    dropped = leafwise.learn(frame.dropna(), target="wet")
    assert set(only.parents("wet")) == set(dropped.parents("wet"))


def test_constraints_and_a_network_to_begin_with():
    frame = garden(share=0.15)
    ordered = leafwise.learn(
        frame, missing="infer", constraints=Constraints(order=["rain", "sprinkler", "wet", "degrees"], max_leaves=3)
    )
    assert ordered.parents("rain") == ()
    start = leafwise.learn(frame.dropna(), bins={"degrees": 2})
    again = leafwise.learn(frame, missing="infer", start=start)
    assert again.variables == start.variables


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"search": TableArcSearch()}, "complete tables takes no missing='infer'"),
        ({"hidden": 1}, "hidden is 1"),
        ({"hidden": True}, "hidden is True"),
        ({"hidden": "many"}, "hidden is 'many'"),
        ({"hidden": (4, 1)}, "hidden is"),
        ({"hidden": 2.5}, "hidden is 2.5, and says how many states"),
        ({"weights": np.full(60, 0.5)}, "not whole, or too large, .* missing='state' or missing='drop'"),
        ({"weights": np.full(60, 1e9)}, "not whole, or too large"),
        ({"hidden": 2, "target": "wet"}, "a target was given"),
        ({"completions": 0}, "completions is 0"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        leafwise.learn(garden(60), missing="infer", **options)


def test_whole_numbers_of_numpy_are_whole_numbers():
    frame = garden(60)
    plain = leafwise.learn(frame, missing="infer", hidden=2, seed=3, completions=2)
    one, two, three = np.array([1, 2, 3])
    assert leafwise.learn(frame, missing="infer", hidden=two, seed=three, completions=two) == plain
    assert leafwise.learn(frame, missing="infer", hidden=[two, two], seed=one).variables[-1].n_states == 2
    assert leafwise.learn(frame, missing="infer", hidden=np.array([two, two]), seed=one).variables[-1].n_states == 2


def test_a_column_without_a_cell():
    frame = garden(60)
    frame["mood"] = None
    with pytest.raises(ValueError, match=r"'mood' has no cell .* ignore=\['mood'\].* hidden=2"):
        leafwise.learn(frame, missing="infer")


def test_a_prior_network_with_holes(tmp_path):
    leafwise.learn(alarm().sample(50, seed=2)).save(tmp_path / "prior.json")
    prior = f"network:{tmp_path / 'prior.json'}:10"
    frame = alarm().sample(100, seed=1).to_pandas().iloc[:, :6].astype(object)
    frame = frame.mask(np.random.default_rng(3).random(frame.shape) < 0.1)
    network = leafwise.learn(frame, missing="infer", prior=prior)
    assert network.variables == alarm().variables[:6]
    with pytest.raises(ValueError, match="knows no hidden causes"):
        leafwise.learn(frame, missing="infer", prior=prior, hidden=2)


def test_who_stops_it_keeps_what_was_found(monkeypatch):
    class Stop(Exception):
        pass

    calls = []

    def stop(search, at):
        calls.append(search.n_rounds)
        if search.n_rounds >= at:
            raise Stop

    for at in (0, 2):
        search = leafwise.start_search(garden(), missing="infer")
        with pytest.raises(Stop):
            search.run(lambda search, at=at: stop(search, at))
        network = search.network
        assert network.learned["cases"] == 300
        assert network.learned["rounds"] == at
        assert np.isfinite(network.log_probabilities(garden(), missing="unknown")).all()
        assert [node.counts.sum() for node in network.nodes] == pytest.approx([300] * 4)  # also what is not shown
        only = leafwise.start_search(garden(), missing="infer", target="wet")
        with pytest.raises(Stop):
            only.run(lambda search, at=at: stop(search, at))
        alone = only.network
        assert [node is not None for node in alone.nodes] == [False, False, True, False]
        told, sizes = alone.learned, (len(alone.arcs), alone.n_tests, alone.n_leaves, alone.n_parameters)
        assert (told["target"], *(told[name] for name in ("arcs", "tests", "leaves", "parameters"))) == ("wet", *sizes)
        assert told["log_score"] < told["log_marginal_likelihood"] < -10
    assert leafwise.start_search(garden(), missing="infer").network.n_leaves == 4  # before it began
    monkeypatch.setattr(incomplete, "MOST_ROUNDS", 2)
    assert leafwise.learn(garden(), missing="infer").learned["stopped"] == "rounds"
    hurried = leafwise.learn(garden(), missing="infer", search=leafwise.LeafSearch(seconds=0))
    assert hurried.learned["stopped"] == "seconds"


def test_partial_splits_that_make_graphs_too_large_are_left_out(monkeypatch, tmp_path):
    class Stop(Exception):
        pass

    def stop(search):
        nodes = [] if search._search is None else search._search.network.nodes
        if any(node.own is not None for node in nodes):
            raise Stop

    cases = leafwise.sample(alarm(), 500, seed=1)
    holes = np.random.default_rng(1).random(cases.codes.shape) < 0.3
    codes = np.where(holes, cases.n_states[:, None], cases.codes).astype(np.uint8)
    table = Table(tuple(variable.with_missing for variable in cases.variables), codes)
    options = {"missing": "infer", "search": leafwise.LeafSearch("CBMO"), "completions": 1}
    monkeypatch.setattr(incomplete, "MOST_ROUNDS", 2)
    with_parts = leafwise.learn(table, **options)
    assert with_parts.learned["operators"] == "CBMO"
    assert any(node.own is not None for node in with_parts.nodes)
    monkeypatch.setattr(own_tests, "MOST_COMBINATIONS", 1)
    stopped = leafwise.start_search(table, **options)
    with pytest.raises(Stop):
        stopped.run(stop)
    assert any(node.own is not None for node in stopped.network.nodes)  # in the first round: there is nothing else
    whole = leafwise.learn(table, **options)
    assert whole.learned["operators"] == "CBM"
    assert np.isfinite(whole.log_probabilities(table)).all()
    begun = leafwise.start_search(table, **options, checkpoint=tmp_path / "run.checkpoint", every=0)
    next(begun)
    again = leafwise.learn(table, **options, checkpoint=tmp_path / "run.checkpoint")
    assert dumps(again) == dumps(whole)


def test_rounds_are_steps():
    search = leafwise.start_search(garden(100), missing="infer", completions=1)
    rounds = list(search)
    assert len(rounds) == search.n_steps == search.network.learned["rounds"]
    assert max(step.log_score for step in rounds) == rounds[-1].log_score
    assert search.summary()["log_score"] == pytest.approx(search.log_score)


def test_a_hidden_cause(tmp_path):
    cases = mixture()
    network, plain = leafwise.learn(cases, hidden=2), leafwise.learn(cases)
    assert network.names[-1] == "hidden1"
    assert network.variables[-1].hidden
    assert len(network.children("hidden1")) == 6
    assert network.learned["hidden"] == ["hidden1"]
    assert network.learned["missing"] == 0
    new = mixture(seed=2)
    assert network.log_probabilities(new).mean() > plain.log_probabilities(new).mean()
    np.testing.assert_allclose(network.log_probabilities(leafwise.read(new)), network.log_probabilities(new))
    network.save(tmp_path / "model.json")
    loaded = leafwise.Network.load(tmp_path / "model.json")
    assert loaded.variables[-1].hidden
    np.testing.assert_allclose(loaded.predict(new, "x1").probabilities, network.predict(new, "x1").probabilities)
    assert leafwise.impute(network, new).variables == leafwise.read(new).variables
    with pytest.raises(ValueError, match="hidden causes"):
        leafwise.log_score(network, new)
    again = leafwise.learn(new, start=network)  # what is hidden stays hidden
    assert again.names == network.names


def test_several_hidden_causes_and_as_many_as_the_score_says():
    two = leafwise.learn(mixture(200), hidden=(2, 3))
    assert [variable.n_states for variable in two.variables[-2:]] == [2, 3]
    assert two.parents("hidden1") == ()
    assert set(two.parents("hidden2")) <= {"hidden1"}
    search = leafwise.start_search(mixture(), hidden="auto")
    assert len(list(search)) == search.n_steps
    assert search.network.learned["hidden"] == ["hidden1"]
    assert search.log_score > leafwise.learn(mixture()).learned["log_score"]
    nothing = np.random.default_rng(1).integers(0, 2, (300, 3))
    assert leafwise.learn(nothing, hidden="auto") == leafwise.learn(nothing)


def test_filling_in():
    frame = garden(400, 0.15)
    network = leafwise.learn(frame, missing="infer")
    drawn = leafwise.impute(network, frame)
    assert isinstance(drawn, Table)
    shown = leafwise.read(frame, variables=network.variables, missing="unknown")
    there = shown.codes < drawn.n_states[:, None]
    np.testing.assert_array_equal(drawn.codes[there], shown.codes[there])
    assert (drawn.codes != leafwise.impute(network, frame, seed=2).codes).any()
    best = leafwise.impute(network, frame, "most probable")
    chances = leafwise.impute(network, frame, "mean probabilities")
    assert isinstance(chances, CellProbabilities)
    assert len(chances) == 400
    for name, codes in zip(network.names, best.codes, strict=True):
        np.testing.assert_allclose(chances.of(name).sum(axis=1), 1)
        np.testing.assert_array_equal(chances.of(name).argmax(axis=1), codes)
    assert list(chances.to_pandas())[:2] == ["rain=false", "rain=true"]
    lacks = ~there[2]
    expected = network.predict(frame, "wet").probabilities
    np.testing.assert_allclose(chances.of("wet")[lacks], expected[lacks], atol=1e-9)


def test_filling_in_what_is_too_large(monkeypatch):
    from leafwise import imputation
    from leafwise.inference.holes import Holes

    frame = garden(400, 0.15)
    network = leafwise.learn(frame, missing="infer")
    exact = leafwise.impute(network, frame, "mean probabilities")
    monkeypatch.setattr(imputation, "Holes", lambda network, limits: Holes(network, limits, room=2))
    with pytest.warns(leafwise.inference.sampling.Approximate, match="Gibbs"):
        rough = leafwise.impute(network, frame, "mean probabilities")
    apart = np.concatenate([abs(a - b) for a, b in zip(exact.probabilities, rough.probabilities, strict=True)])
    assert apart.mean() < 0.01
    assert np.quantile(apart, 0.98) < 0.12  # chains are slow where two missing cells nearly decide each other
    with pytest.warns(leafwise.inference.sampling.Approximate):
        assert leafwise.impute(network, frame).n_cases == 400


@pytest.mark.parametrize("how", ["draw", "most probable"])
def test_rows_that_lack_nothing_stay_as_they_are_even_if_impossible(how):
    network = leafwise.examples.alarm().do({"BP": "LOW"})
    frame = network.sample(4, seed=1).to_pandas()
    frame.loc[1, "BP"], frame.loc[2, "SHUNT"] = "HIGH", None
    filled = leafwise.impute(network, frame, how).to_pandas()
    assert filled["BP"].tolist() == ["LOW", "HIGH", "LOW", "LOW"]
    assert filled["SHUNT"].notna().all()
    frame.loc[1, "SHUNT"] = None
    with pytest.raises(ValueError, match="what row 2 shows is impossible under this network") as refusal:
        leafwise.impute(network, frame, how)
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)  # as between processes


def test_filling_in_refuses():
    frame = garden(100)
    network = leafwise.learn(frame, missing="state")
    with pytest.raises(ValueError, match="a state of its own for missing cells"):
        leafwise.impute(network, frame)
    with pytest.raises(ValueError, match="how='best' is not known"):
        leafwise.impute(network, frame, "best")
    with pytest.raises(ValueError, match="impute got the seed -1, and the least is 0"):
        leafwise.impute(network, frame, seed=-1)
    with pytest.raises(TypeError, match=r"the seed is 1\.5 \(float\), and must be a whole number"):
        leafwise.impute(network, frame, seed=1.5)
    chances = leafwise.impute(leafwise.learn(frame, missing="infer"), frame, "mean probabilities")
    with pytest.raises(ValueError, match="no variable is called 'wine' among the 4 here"):
        chances.of("wine")
