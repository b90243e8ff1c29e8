"""Threads for compiled loops: every request is done once, whatever the costs are said to be."""

import numpy as np
import pytest

from leafwise import workers
from leafwise.workers import Workers


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_all_requests_are_done_once(n_threads, n, monkeypatch):
    monkeypatch.setattr(workers, "_WORTH_A_THREAD", 0.0)
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
