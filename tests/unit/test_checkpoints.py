"""Searches that are stopped anywhere go on from their checkpoint, and end as if nothing had happened."""

import json
import os
from dataclasses import replace
from functools import partial

import numpy as np
import pandas
import pytest

import leafwise
from leafwise.constraints import Constraints
from leafwise.data.table import Table
from leafwise.examples import alarm
from leafwise.formats import mixture_json
from leafwise.formats.json import dumps
from leafwise.inference.sampling import sample
from leafwise.learner import start_mixture, start_search
from leafwise.search import checkpoints

compiled = pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="takes long without compiled loops")
GREEDY = leafwise.LeafSearch(threads=1)
SEARCHES = {
    "greedy": GREEDY,
    "best-first": leafwise.LeafSearch("CBM", "best-first", delete_parents=True, threads=1),
    "partial": leafwise.LeafSearch("CBIMO", threads=1),
    "tables": leafwise.TableArcSearch(threads=1),
    "edges": leafwise.GraphArcSearch(GREEDY),
    "recover": leafwise.RecoverySearch(GREEDY),
    "restarts": leafwise.LeafSearchRestarts(GREEDY, rounds=12, seed=3, keep=3),
}


class Killed(BaseException):
    """What nobody catches."""


def killed_at(monkeypatch, number):
    """End the run when it has saved so often, without any ado."""
    save, n_saved = checkpoints.Checkpoint.save, 0

    def counted(self, state, stopped):
        nonlocal n_saved
        save(self, state, stopped)
        n_saved += 1
        if n_saved == number:
            raise Killed

    monkeypatch.setattr(checkpoints.Checkpoint, "save", counted)


def run(table, kind, path, **options):
    """A search that saves whenever it could be stopped, step by step; its networks as texts."""
    search = start_search(table, search=SEARCHES[kind], checkpoint=path, every=0, **options)
    for _ in search:
        pass
    found = [network for network, _, _ in search.networks] if kind == "restarts" else [search.network]
    return [dumps(network) for network in found]


@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("prior", ["auto", "bdeu:10"])
def test_killed_again_and_again(kind, prior, tmp_path, monkeypatch):
    cases = sample(alarm(), 400, seed=1)
    table = Table(cases.variables[6:13], np.ascontiguousarray(cases.codes[6:13]))
    search = start_search(table, search=SEARCHES[kind], prior=prior)
    search.run()
    found = [network for network, _, _ in search.networks] if kind == "restarts" else [search.network]
    path, n_kills = tmp_path / "run.checkpoint", 0
    for number in range(1, 60):
        with monkeypatch.context() as patch:
            killed_at(patch, 1 + number % 3)
            try:
                got = run(table, kind, path, prior=prior)
                break
            except Killed:
                n_kills += 1
    assert got == [dumps(network) for network in found]
    assert n_kills > 2
    assert json.loads(path.read_text())["stopped"] == search.stopped


IN_ROUNDS = {
    "infer": {"missing": "infer"},
    "infer, edges": {"missing": "infer", "search": leafwise.GraphArcSearch(GREEDY)},
    "infer, one target": {"missing": "infer", "target": "b"},
    "hidden": {"missing": "infer", "hidden": (2, 2)},
    "hidden, auto": {"missing": "infer", "hidden": "auto"},
    "hidden, auto, no holes": {"missing": "state", "hidden": "auto"},
    "networks": {"missing": "state", "networks": 7},
    "networks, one target": {"missing": "state", "networks": 7, "target": "b"},
    "networks, tables": {"missing": "state", "networks": 7, "search": leafwise.TableArcSearch(threads=1)},
}


@compiled
@pytest.mark.parametrize("is_run", [False, True])
@pytest.mark.parametrize("kind", IN_ROUNDS)
def test_what_repeats_rounds_goes_on(kind, is_run, tmp_path, monkeypatch):
    """Killed after a few saves, again and again: inside the search of a round, between rounds, at the end."""
    options = {"search": GREEDY, "seed": 3, **IN_ROUNDS[kind]}
    cells = np.random.default_rng(1).choice(["0", "1", None], (120, 4), p=[0.5, 0.4, 0.1])
    cells[:100, 1], cells[20:, 2] = cells[:100, 0], cells[20:, 3]
    frame = pandas.DataFrame(cells, columns=list("abcd"))
    texts = mixture_json.dumps if "networks" in options else dumps
    whole = texts(leafwise.learn(frame, **options))
    path, n_kills = tmp_path / "run.checkpoint", 0
    networks = options.pop("networks", None)
    begin = start_search if networks is None else partial(start_mixture, networks=networks)
    for number in range(200):
        with monkeypatch.context() as patch:
            killed_at(patch, 1 + number % 8)
            try:
                search = begin(frame, checkpoint=path, every=0, **options)
                if is_run:
                    search.run()
                for _ in search:
                    pass
                break
            except Killed:
                n_kills += 1
    assert texts(search.network) == whole
    assert n_kills > 2
    again = begin(frame, checkpoint=path, **options)
    again.run()
    assert texts(again.network) == whole


@compiled
def test_rounds_are_of_one_run(tmp_path):
    cells = np.random.default_rng(1).choice(["0", "1", None], (60, 3), p=[0.5, 0.4, 0.1])
    frame, path = pandas.DataFrame(cells, columns=list("abc")), tmp_path / "run.checkpoint"
    own = {"checkpoint": path, "missing": "infer", "search": leafwise.LeafSearch(max_steps=2)}
    leafwise.learn(frame, **own)
    for other in ({"seed": 2}, {"completions": 2}, {"hidden": 2}, {"missing": "state"}):
        with pytest.raises(ValueError, match=r"this is the checkpoint of a run with other (rounds or networks|data)"):
            leafwise.learn(frame, **{**own, **other})
    with pytest.raises(ValueError, match="a run with other search"):  # each round has this limit
        leafwise.learn(frame, **{**own, "search": leafwise.LeafSearch(max_steps=3)})
    path.unlink()
    own["missing"] = "state"
    leafwise.learn(frame, networks=3, **own)
    for other in ({"networks": 4}, {"networks": 3, "seed": 2}, {"networks": 3, "structure_prior": "choices"}, {}):
        with pytest.raises(ValueError, match="this is the checkpoint of a run with other"):
            leafwise.learn(frame, **{**own, **other})


@compiled
def test_a_round_that_was_stopped_is_gone_on_with():
    """In one process, too: whoever stopped a search may go on with it."""
    cells = np.random.default_rng(1).choice(["0", "1", None], (60, 3), p=[0.5, 0.4, 0.1])
    frame = pandas.DataFrame(cells, columns=list("abc"))
    for begin in (partial(start_search, missing="infer"), partial(start_mixture, networks=6, missing="state")):
        whole, stopped, n_stops = begin(frame), begin(frame), 0
        whole.run()

        def stop(_search):
            nonlocal n_stops
            n_stops += 1
            if n_stops % 3 == 1:
                raise Killed

        for _ in range(200):
            try:
                stopped.run(stop)
                break
            except Killed:
                continue
        assert n_stops > 3
        assert list(stopped.network.learned.items()) == list(whole.network.learned.items())
        assert repr(stopped.network) == repr(whole.network)


@compiled
def test_scores_of_tables_do_not_depend_on_the_way(tmp_path):
    """Under priors worth many cases what a search adds up depends in its last digits on what it counted before."""
    table = sample(alarm(), 100, seed=5)
    options = {"search": leafwise.TableArcSearch(threads=1), "prior": "bdeu:1e5", "structure_prior": "uniform"}
    options["constraints"] = Constraints(max_parents=3)
    whole = leafwise.learn(table, **options)
    for number in (1, 5, 30):
        path = tmp_path / f"{number}.checkpoint"
        begun = start_search(table, checkpoint=path, every=0, **options)
        for _ in range(number):
            next(begun)
        assert dumps(leafwise.learn(table, checkpoint=path, **options)) == dumps(whole)
    assert whole.learned["log_score"] == pytest.approx(leafwise.log_score(whole, table).total, rel=1e-12)


@compiled
def test_a_round_under_way_is_taken_up_again(tmp_path, monkeypatch):
    """Inside the two greedy searches, and inside a round, all is saved too: `run` says so to whoever watches."""
    table = sample(alarm(), 300, seed=1)
    settings = leafwise.LeafSearchRestarts(GREEDY, rounds=6, keep=2)
    whole = start_search(table, search=settings)
    whole.run()
    path, seen = tmp_path / "run.checkpoint", set()
    monkeypatch.setattr("leafwise.search.run.MOMENT", -1.0)
    for number in range(40):
        search, n_told = start_search(table, search=settings, checkpoint=path, every=1e9), 0

        def stop(_search):
            nonlocal n_told
            n_told += 1
            if n_told == 1 + number % 3:  # noqa: B023
                raise Killed

        try:
            search.run(stop)
            break
        except Killed:
            state = json.loads(path.read_text())["state"]
            seen.add("greedy" if state["greedy"] else "inner" if state["inner"] else "between")
    assert [dumps(n) for n, _, _ in search.networks] == [dumps(n) for n, _, _ in whole.networks]
    assert seen == {"greedy", "inner", "between"}


@compiled
def test_twenty_and_twenty_are_forty(tmp_path):
    table, path = sample(alarm(), 200, seed=1), tmp_path / "run.checkpoint"
    settings = [leafwise.LeafSearchRestarts(GREEDY, rounds=rounds, seed=7) for rounds in (20, 40)]
    twenty, forty = (leafwise.learn(table, search=search, checkpoint=path) for search in settings)
    assert dumps(forty) == dumps(leafwise.learn(table, search=settings[1]))
    assert dumps(forty) != dumps(twenty)
    steps = [
        leafwise.learn(table, search=leafwise.LeafSearch(max_steps=n), checkpoint=tmp_path / "c") for n in (5, 9, 9)
    ]
    assert [network.learned["steps"] for network in steps] == [5, 9, 9]
    assert dumps(steps[1]) == dumps(steps[2]) == dumps(leafwise.learn(table, search=leafwise.LeafSearch(max_steps=9)))


@compiled
def test_time_that_ran_out_inside_a_round_is_no_other_search(tmp_path):
    cases = sample(alarm(), 100, seed=1)
    table = Table(cases.variables[6:13], np.ascontiguousarray(cases.codes[6:13]))
    settings = SEARCHES["restarts"]

    def begin(seconds, path=None):
        search = start_search(table, search=replace(settings, seconds=seconds), checkpoint=path)
        search.run()
        return search

    whole = begin(None)
    for part in range(1, 21):
        path = tmp_path / f"{part}.checkpoint"
        begin(whole.seconds * part / 20, path)
        found = begin(None, path)
        assert [dumps(one) for one, _, _ in found.networks] == [dumps(one) for one, _, _ in whole.networks]


@compiled
def test_a_prior_network_and_rules(tmp_path, monkeypatch):
    table, path = sample(alarm(), 100, seed=1), tmp_path / "run.checkpoint"
    leafwise.learn(table).save(tmp_path / "prior.json")
    options = {
        "prior": f"network:{tmp_path / 'prior.json'}:10",
        "constraints": Constraints(max_parents=2, max_leaves=5, required=[("HR", "HRBP")]),
        "search": leafwise.LeafSearch("BM", max_steps=20, threads=1),
    }
    whole = leafwise.learn(table, **options)
    scores = leafwise.log_score(whole, table).values()
    assert whole.learned["log_score"] == pytest.approx(sum(score.log_score for score in scores), rel=1e-9)
    killed_at(monkeypatch, 8)
    with pytest.raises(Killed):
        for _ in start_search(table, **options, checkpoint=path, every=0):
            pass
    monkeypatch.undo()
    assert dumps(leafwise.learn(table, **options, checkpoint=path)) == dumps(whole)


def test_it_is_of_one_run(tmp_path):
    table, path = sample(alarm(), 50, seed=1), tmp_path / "run.checkpoint"
    own = {"target": "HR", "checkpoint": path, "search": leafwise.LeafSearch(max_steps=1)}
    leafwise.learn(table, **own)
    others = {
        "target (.*'CO')": {"target": "CO"},
        "prior (.*bdeu:1)": {"prior": "bdeu:1"},
        "structure prior (choices, and this is uniform)": {"structure_prior": "uniform"},
        "constraints: name": {"constraints": Constraints(max_parents=1)},
        r"search \(LeafSearch.*LeafSearch": {"search": leafwise.LeafSearch("BM")},
        "network to begin with": {"start": leafwise.learn(table, target="HR", search=leafwise.LeafSearch(max_steps=0))},
    }
    for words, other in others.items():
        match = words.replace("(choices", r"\(choices").replace("uniform)", r"uniform\)")
        with pytest.raises(ValueError, match=f"this is the checkpoint of a run with other {match}"):
            leafwise.learn(table, **{**own, **other})
    with pytest.raises(ValueError, match="other data: name another file, or delete it"):
        leafwise.learn(sample(alarm(), 50, seed=2), **own)
    leafwise.learn(table, **{**own, "search": leafwise.LeafSearch(max_steps=2, threads=2)})  # limits may be others


def test_what_is_no_checkpoint(tmp_path):
    table, path = sample(alarm(), 20, seed=1), tmp_path / "run.checkpoint"
    leafwise.learn(table, target="HR", checkpoint=path)
    sound = path.read_text()
    for text in ("", "{}", "[" * 5000, '{"format": "leafwise-network"}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=f"{path}: this is no checkpoint: name another file"):
            leafwise.learn(table, target="HR", checkpoint=path)
    for damage in (("n_steps", "n_stops"), ("]", "1]"), ('"version":4', '"version":9')):
        path.write_text(sound.replace(*damage))
        with pytest.raises(ValueError, match=r"damaged|no checkpoint|another leafwise"):
            leafwise.learn(table, target="HR", checkpoint=path)
    with pytest.raises(ValueError, match="there is no folder"):
        leafwise.learn(table, checkpoint=tmp_path / "none" / "run")
    for every in (-1, float("nan"), "soon"):
        with pytest.raises(ValueError, match="must be seconds, from 0 on"):
            leafwise.learn(table, checkpoint=path, every=every)


@compiled
def test_a_full_disk_does_not_end_a_search(tmp_path, monkeypatch):
    table, path = sample(alarm(), 50, seed=1), tmp_path / "run.checkpoint"
    leafwise.learn(table, checkpoint=path, search=leafwise.LeafSearch(max_steps=3))
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.warns(UserWarning, match="cannot be written .No space left on device.: the search goes on") as told:
        network = leafwise.learn(table, checkpoint=path, every=0)
    assert len(told) == 1
    assert path.read_bytes() == before
    assert dumps(network) == dumps(leafwise.learn(table))
    assert [file.name for file in tmp_path.iterdir()] == ["run.checkpoint"]
