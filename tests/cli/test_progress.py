"""Following a search: asked to stop, it stops between two steps."""

import json
import os
import signal
import threading

import numpy as np
import pytest

from leafwise.cli.progress import follow, narrate
from leafwise.constraints import Constraints
from leafwise.examples import alarm
from leafwise.inference.sampling import sample
from leafwise.learner import start_mixture, start_search
from leafwise.search import checkpoints
from leafwise.search.graph_arc_search import GraphArcSearch
from leafwise.search.leaf_search import LeafSearch, LeafSearchRun
from leafwise.search.recover import RecoverySearch
from leafwise.search.restarts import LeafSearchRestarts
from leafwise.search.sharing import Sharing
from leafwise.search.table_arc_search import TableArcSearch, TableArcSearchRun


class EndlessSearch:
    """Counts its rounds, and gets a Ctrl-C in the third one."""

    def __init__(self):
        self.n_rounds = 0

    def run(self, progress):
        while True:
            self.n_rounds += 1
            if self.n_rounds == 3:
                os.kill(os.getpid(), signal.SIGINT)
            progress(self)
            assert self.n_rounds < 10


class ShortSearch:
    def run(self, progress):
        progress(self)


class DeafSearch:
    """Never comes to the end of its step."""

    def run(self, progress):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)


def test_the_first_interrupt_stops_after_the_step():
    before = signal.getsignal(signal.SIGINT)
    search = EndlessSearch()
    assert follow(search, quiet=True)
    assert 3 <= search.n_rounds < 10
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_interrupt_ends_it_all(monkeypatch):
    assert follow(DeafSearch(), quiet=True)  # two in a moment are one
    monkeypatch.setattr("leafwise.cli.progress.SECONDS_OF_ONE_CTRL_C", -1.0)
    with pytest.raises(KeyboardInterrupt):
        follow(DeafSearch(), quiet=True)


def test_a_search_may_end_by_itself_and_run_in_any_thread():
    assert not follow(ShortSearch(), quiet=True)
    found = []
    thread = threading.Thread(target=lambda: found.append(follow(ShortSearch(), quiet=True)))
    thread.start()
    thread.join()
    assert found == [False]


def test_a_search_that_is_told_of_saves_its_checkpoint_when_asked_to_stop(tmp_path, monkeypatch):
    path = tmp_path / "run.checkpoint"
    table = sample(alarm(), 50, seed=1)
    search = start_search(table, checkpoint=path, every=1e9)
    monkeypatch.setattr("click.echo", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    assert narrate(search, table.names) == signal.SIGTERM
    assert json.loads(path.read_text())["state"]["n_steps"] == search.n_steps == 1


CELLS = np.random.default_rng(1).choice(["0", "1", ""], (300, 8), p=[0.5, 0.4, 0.1])
GREEDY = LeafSearch(threads=1)
WITH_LONG_ROUNDS = {
    "restarts": (start_search, sample(alarm(), 50, seed=1), {"search": LeafSearchRestarts(GREEDY, rounds=3)}),
    "edges": (start_search, sample(alarm(), 50, seed=1), {"search": GraphArcSearch(GREEDY, max_steps=3)}),
    "infer": (start_search, CELLS, {"search": GREEDY, "missing": "infer"}),
    "hidden": (start_search, CELLS, {"search": GREEDY, "missing": "state", "hidden": "auto"}),
    "networks": (start_mixture, CELLS, {"search": GREEDY, "missing": "state", "networks": 3}),
}


@pytest.mark.parametrize("kind", WITH_LONG_ROUNDS)
def test_a_search_that_is_told_of_stops_within_a_long_round(kind, tmp_path, monkeypatch):
    """Asked to stop while it saves its checkpoint within the first round, it does not complete that round."""
    begin, data, options = WITH_LONG_ROUNDS[kind]
    path, told = tmp_path / "run.checkpoint", []
    save = checkpoints.Checkpoint.save

    def save_and_ask(self, state, stopped):
        save(self, state, stopped)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("click.echo", lambda text, **_: told.append(text))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.Checkpoint, "save", save_and_ask)
        search = begin(data, checkpoint=path, every=0, **options)
        assert narrate(search, search.network.names) == signal.SIGINT
    assert not told
    assert search.n_steps == 0
    assert json.loads(path.read_text())["stopped"] == ""


WITH_LONG_STEPS = {
    "tables": (TableArcSearch(threads=1), TableArcSearchRun, "_take_out"),
    "recover": (RecoverySearch(GREEDY), TableArcSearchRun, "_take_out"),
    "partial": (LeafSearch("CBIMO", threads=1), LeafSearchRun, "_begin_to_part"),
    "shared": (LeafSearch("CBIMRT", threads=1), Sharing, "advance"),
}


@pytest.mark.parametrize("kind", WITH_LONG_STEPS)
def test_a_search_that_is_told_of_stops_while_it_looks_for_a_step(kind, monkeypatch):
    settings, owner, name = WITH_LONG_STEPS[kind]
    look, told, n_told = getattr(owner, name), [], []

    def ask_and_look(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        n_told.append(len(told))
        return look(*arguments)

    monkeypatch.setattr(owner, name, ask_and_look)
    monkeypatch.setattr("click.echo", lambda text, **_: told.append(text))
    table = sample(alarm(), 100, seed=1)
    search = start_search(table, search=settings)
    assert narrate(search, table.names) == signal.SIGINT
    assert n_told == [len(told)]
    assert search.stopped == ""
    assert search.network.learned["steps"] == search.n_steps == len(told)


ALARM = sample(alarm(), 100, seed=1)
WITH_A_SEARCH_INSIDE = {
    "target": (ALARM, {"search": GREEDY, "target": "HRBP"}),
    "shared": (ALARM, {"search": LeafSearch("CBIMRT", threads=1)}),
    "tied": (CELLS == "1", {"search": GREEDY, "constraints": Constraints(tied=[[("x1", ["x3"]), ("x2", ["x4"])]])}),
}


@pytest.mark.parametrize("kind", WITH_A_SEARCH_INSIDE)
def test_a_search_that_is_told_of_stops_while_the_one_inside_looks_for_a_step(kind, monkeypatch):
    data, options = WITH_A_SEARCH_INSIDE[kind]
    advance, asked, told = LeafSearchRun._advance, [], []

    def ask_first(self, n):
        if asked:
            advance(self, n)
        else:
            asked.append(os.kill(os.getpid(), signal.SIGINT))  # and the time is up

    monkeypatch.setattr(LeafSearchRun, "_advance", ask_first)
    monkeypatch.setattr("click.echo", lambda text, **_: told.append(text))
    search = start_search(data, **options)
    assert narrate(search, search.network.names) == signal.SIGINT
    assert not told
    assert (search.n_steps, search.stopped) == (0, "")
