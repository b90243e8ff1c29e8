"""Searches that are stopped anywhere go on from their checkpoint, and end as if nothing had happened."""

import json
import os

import numpy as np
import pytest

import leafwise
from leafwise.constraints import Constraints
from leafwise.examples import alarm
from leafwise.formats.json import dumps
from leafwise.inference.sampling import sample
from leafwise.learner import start_search
from leafwise.search import checkpoints
from leafwise.table import Table

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


@compiled
def test_a_round_under_way_is_taken_up_again(tmp_path, monkeypatch):
    """Inside the two greedy searches, and inside a round, all is saved too: `run` says so to whoever watches."""
    table = sample(alarm(), 300, seed=1)
    settings = leafwise.LeafSearchRestarts(GREEDY, rounds=6, keep=2)
    whole = start_search(table, search=settings)
    whole.run()
    path, seen = tmp_path / "run.checkpoint", set()
    monkeypatch.setattr("leafwise.search.under_way.MOMENT", -1.0)
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
    for damage in (("n_steps", "n_stops"), ("]", "1]"), ('"version":1', '"version":9')):
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
