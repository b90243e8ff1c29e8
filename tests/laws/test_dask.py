"""The network is the same on a cluster, whatever happens to its workers."""

import os
import signal
import threading
import time
from itertools import count, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from pyarrow import parquet
from strategies import dask_client, examples, generators, on_a_cluster, problems

from leafwise import Constraints, GraphArcSearch, LeafSearch, Table, learn, read, sample, start_search
from leafwise.counters import dask as on_dask
from leafwise.counters.dask import DaskCounter, DaskSession
from leafwise.examples import alarm

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'leafwise[dask]'")


@examples(8)
@given(problems(), generators())
def test_a_cluster_learns_what_one_table_does(problem, random):
    table, setup, _ = problem
    given = setup.for_library(delete_parents=bool(random.random() < 0.3))
    usual, found = learn(table, **given), learn(on_a_cluster(table, random, 3), **given)
    assert found == usual
    assert found.learned == usual.learned


def test_other_searches():
    table = sample(alarm(), 300, seed=5)
    table = Table(table.variables[:6], np.ascontiguousarray(table.codes[:6]))
    for search in (
        GraphArcSearch(greedy=LeafSearch("BM"), max_steps=2),
        LeafSearch(delete_parents=True, max_steps=30),
        LeafSearch("CBIMO"),
        LeafSearch("CBIMRT"),
    ):
        assert learn(on_a_cluster(table, np.random.default_rng(0), 3), search=search) == learn(table, search=search)


@pytest.fixture
def folder(tmp_path):
    """Files of an uneven size, with labels that not all of them have."""
    table = sample(alarm(), 4000, seed=3).to_arrow()
    table = table.append_column("mixed", pa.array(np.arange(4000) // 700 * 0.5))
    ranks = np.where(np.arange(4000) < 100, 2, np.arange(4000) % 3)
    table = table.append_column("rank", pa.DictionaryArray.from_arrays(ranks, ["low", "mid", "high"], ordered=True))
    begins = [0, 100, 1500, 1600, 4000]
    for number, (begin, end) in enumerate(pairwise(begins)):
        parquet.write_table(table.slice(begin, end - begin), tmp_path / f"part-{number}.parquet")
    return tmp_path


def test_states_are_agreed_on(folder):
    counter = DaskCounter.read(folder, dask_client())
    assert counter.variables == read(folder).variables
    assert [v.ordered for v in counter.variables] == [v.ordered for v in read(folder).variables]
    assert learn(folder, cluster=dask_client()) == learn(folder)
    assert learn(folder, cluster=dask_client(), target="HRBP", ignore="H*Y") == learn(
        folder, target="HRBP", ignore="H*Y"
    )


def test_workers_out_of_reach_are_asked_by_the_scheduler(folder):
    counter = DaskCounter.read(folder, dask_client())
    counter.out_of_reach.update(dask_client().nthreads())
    assert learn(counter) == learn(folder)
    assert counter.report["restored"] == 0


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask itself, with pandas 3
def test_a_dask_frame(folder):
    frames = pytest.importorskip("dask.dataframe")
    with dask_client().as_current():
        frame = frames.read_parquet(str(folder))
        assert learn(frame) == learn(folder)
        kept = frame[frame["mixed"] >= 1.5]  # the first partitions are left without rows
        assert learn(kept) == learn(kept.compute())
        with pytest.raises(ValueError, match="the data have no rows"):
            learn(frame[frame["mixed"] > 9])


def test_what_a_cluster_does_not_do(folder, tmp_path, monkeypatch):
    client = dask_client()
    with pytest.raises(ValueError, match="missing='drop' does not go with a cluster"):
        learn(folder, cluster=client, missing="drop")
    with pytest.raises(ValueError, match="cache keeps a table on this machine"):
        learn(folder, cluster=client, cache=True)
    with pytest.raises(ValueError, match="weights and cluster were both given"):
        learn(folder, cluster=client, weights="mixed")
    with pytest.raises(ValueError, match=r"cluster and lags=1 were both given"):
        learn(folder, cluster=client, lags=1)
    with pytest.raises(ValueError, match="tied and cluster were both given"):
        learn(folder, cluster=client, constraints=Constraints(tied=[[("HISTORY", ()), ("HYPOVOLEMIA", ())]]))
    with pytest.raises(TypeError, match="ndarray cannot be read by a cluster: give files"):
        learn(np.zeros((3, 2)), cluster=client)
    monkeypatch.setattr(on_dask, "_ANSWER", 0.5)
    with pytest.raises(ValueError, match=r"no Dask scheduler answers at 'tcp://127.0.0.1:9'"):
        learn(folder, cluster="tcp://127.0.0.1:9")
    with pytest.raises(TypeError, match="cluster is int: give a dask"):
        learn(folder, cluster=7)
    other = tmp_path / "other"
    other.mkdir()
    for number, values in enumerate((np.arange(300) / 7, np.arange(40) / 7)):
        parquet.write_table(pa.table({"x": values, "y": values > 3}), other / f"{number}.parquet")
    with pytest.raises(ValueError, match=r"'x' has more than 127 values in .*0.parquet"):
        learn(other, cluster=client)
    with pytest.raises(ValueError, match="'x' would be cut into bins, which takes all rows in one place"):
        learn(other / "1.parquet", cluster=client)
    parquet.write_table(pa.table({"x": ["a", "b"], "y": [True, False]}), other / "0.parquet")
    with pytest.raises(ValueError, match=r"'x' is a text in '.*0.parquet' and a number in '.*1.parquet'"):
        learn(other, cluster=client)
    monkeypatch.setattr(on_dask, "client_of", lambda _cluster: client)
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ValueError, match=r"needs the package dask.*pip install 'leafwise\[dask\]'"):
        on_dask._distributed()


def test_workers_that_die_are_replaced(folder, monkeypatch):
    """At random moments: before a round, or in the middle of one."""
    random, ask, killed, rounds = np.random.default_rng(5), DaskSession._ask, [], count()
    usual = learn(folder)
    cluster = distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=":0")
    with cluster, distributed.Client(cluster, set_as_default=False) as client:

        def kill():
            """End a worker's process as a machine ends that loses its power."""
            alive = client.run(os.getpid, on_error="ignore")
            if len(alive) > 1:
                killed.append(str(random.choice(sorted(alive))))
                os.kill(alive[killed[-1]], signal.SIGKILL)

        def killing(session, round_):
            due = next(rounds)
            monkeypatch.setattr(on_dask, "_FEW_WORKERS", 16 if due < 6 else 0)  # sums are made here, then by a tree
            if due in (1, 8):
                kill()
            if due in (4, 11):
                threading.Timer(float(random.uniform(0, 0.05)), kill).start()
            return ask(session, round_)

        monkeypatch.setattr(DaskSession, "_ask", killing)
        monkeypatch.setattr(on_dask, "_SPARE", 16)  # what was asked for is looked at again and again
        search = start_search(folder, cluster=client)
        search.run()
        assert search.network == usual
        assert search.network.learned == usual.learned
        report = search._counter.report
        assert killed
        assert report["restored"] > 0
        assert (report["round_trips"], report["histograms"]) == search.round_trips
        assert report["bytes_sent"] > 0 < report["bytes_received"]
        search.close()
        time.sleep(0.2)  # for a timer that is late
