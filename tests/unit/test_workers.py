"""Threads for compiled loops: every request is done once, whatever the costs are said to be."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from leafwise import workers
from leafwise.workers import Workers


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_all_requests_are_done_once(n_threads, n, monkeypatch):
    monkeypatch.setattr(workers, "_WORTH_A_THREAD", 1e-9)
    done = np.zeros(n, int)

    def kernel(begin, end):
        done[begin:end] += 1

    for costs in (np.ones(n), np.full(n, 1e6), np.where(np.arange(n) == n // 2, 1e9, 0.0)):
        done[:] = 0
        Workers(n_threads).run(kernel, costs)
        assert (done == 1).all()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_what_is_done_ahead_is_done_once(n_threads):
    calls = []
    result = Workers(n_threads).ahead(lambda: calls.append(1) or "done")
    assert [result(), result()] == ["done", "done"]
    assert calls == [1]


def test_threads_that_are_busy_are_not_waited_for():
    """They belong to all: one who keeps them must not keep others from ending."""
    gate = threading.Event()
    busy = Workers(2).ahead(gate.wait)
    done = np.zeros(4, int)
    Workers(2).run(lambda begin, end: np.add.at(done, slice(begin, end), 1), np.full(4, 1e9))
    assert done.tolist() == [1] * 4
    assert Workers(2).together(lambda leads: leads) is True
    assert Workers(2).ahead(lambda: "mine")() == "mine"
    gate.set()
    assert busy() is True


@pytest.mark.parametrize(("most", "n"), [(1, 1), (3, 3), (8, 4)])
def test_no_more_threads_than_are_worth_it(most, n):
    here, gate = [], threading.Barrier(n)

    def work(leads):
        here.append(leads)
        gate.wait(10)  # until all are there
        return leads

    assert Workers(4).together(work, most)
    assert sorted(here) == [False] * (n - 1) + [True]


def test_an_interrupt_while_work_is_handed_over_costs_the_threads(monkeypatch):
    """It may have come while a lock of theirs was closed, which nobody will open again."""

    def submit(*_):
        raise KeyboardInterrupt

    before = workers._pool(1)
    monkeypatch.setattr(before, "submit", submit)
    with pytest.raises(KeyboardInterrupt):
        Workers(2).together(lambda leads: leads)
    assert workers._pool(1) is not before
    assert Workers(2).ahead(lambda: 7)() == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_has_threads_of_its_own():
    code = """
import os, sys
from leafwise.workers import Workers
Workers(2).ahead(lambda: 1)()
child = os.fork()
if child == 0:
    os._exit(Workers(2).ahead(lambda: 7)() + Workers(2).together(lambda leads: 1))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=60).returncode == 8
