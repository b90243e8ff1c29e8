"""The network is the same, whoever counted: shards learn what one table does, by every search, prior and operator."""

import re
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from strategies import examples, generators, has_gpu, problems, random_start, shards

from leafwise import (
    GraphArcSearch,
    LeafSearch,
    LeafSearchRestarts,
    Table,
    TableArcSearch,
    Variable,
    learn,
    start_search,
)
from leafwise.counters.cpu import CpuCounter
from leafwise.counters.gpu import GpuCounter
from leafwise.counters.sharded import ShardedCounter
from leafwise.examples import alarm
from leafwise.inference.sampling import sample
from leafwise.search import histograms, leaf_search, leaves


@examples(60)
@given(problems(), generators())
def test_shards_learn_what_one_table_does(problem, random):
    table, setup, target = problem
    given = {**setup.for_library(delete_parents=bool(random.random() < 0.3))}
    if random.random() < 0.2:
        given["target"] = table.names[target]
    if random.random() < 0.3:
        own = given["search"]
        given["search"] = replace(own, operators=own.operators + "O")
    if random.random() < 0.3 and "target" not in given and not setup.rules.arcs_at_start():
        given["start"] = random_start(random, table, setup.rules)
    usual = learn(table, **given)
    for n in (1, 2, 3, 7):
        found = learn(shards(table, random, n), **given)
        assert found == usual, f"{n} shards"
        assert found.learned == usual.learned


@pytest.mark.skipif(not has_gpu(), reason="there is no GPU here, or no CuPy")
@examples(20)
@given(problems())
def test_a_gpu_learns_what_one_table_does(problem):
    table, setup, _ = problem
    given = setup.for_library(delete_parents=False)
    usual, found = learn(table, **given), learn(table, device="gpu", **given)
    assert found == usual
    assert found.learned == usual.learned


@pytest.mark.skipif(not has_gpu(), reason="there is no GPU here, or no CuPy")
def test_every_way_to_begin_on_a_gpu():
    """Sets that are there before a search, the second look of partial splits, and rounds."""
    table = sample(alarm(), 600, seed=5)
    start = learn(sample(alarm(), 200, seed=1))
    ways = [{"start": start}, {"search": LeafSearch("CBMO")}, {"search": LeafSearchRestarts(rounds=6, seed=3)}]
    for way in ways:
        assert learn(table, device="gpu", **way) == learn(table, **way)


@pytest.mark.parametrize("prior", ["auto", "bdeu:10", "network"])
@pytest.mark.parametrize(
    "search",
    [
        LeafSearch(),
        LeafSearch("BM", "best-first", delete_parents=True, threads=2),
        LeafSearch("CBMO"),
        LeafSearch("CBMO", delete_parents=True),
        GraphArcSearch(greedy=LeafSearch("BM"), max_steps=6),
        LeafSearchRestarts(rounds=12, seed=3, greedy=LeafSearch("CBIM")),
    ],
    ids=["greedy", "best-first", "partial", "partial, deleting", "edges", "restarts"],
)
def test_every_search(search, prior, tmp_path):
    table = sample(alarm(), 300, seed=5)
    table = Table(table.variables[:9], np.ascontiguousarray(table.codes[:9]))
    if prior == "network":
        learn(Table(table.variables, table.codes[:, :50].copy())).save(tmp_path / "prior.json")
        prior = f"network:{tmp_path / 'prior.json'}:10"
    usual = learn(table, search=search, prior=prior)
    for n in (2, 7):
        found = learn(shards(table, np.random.default_rng(n), n), search=search, prior=prior)
        assert found == usual
        assert found.learned == usual.learned


@pytest.mark.parametrize("search", [LeafSearch(threads=2), LeafSearch("CBMO"), LeafSearch("BM", "best-first")])
def test_halves_of_batches(search, monkeypatch):
    """Where counting and scoring overlap, as on a GPU: half of a batch is counted while the other is scored."""
    table = sample(alarm(), 500, seed=5)
    usual = learn(table, search=search)
    monkeypatch.setattr(ShardedCounter, "overlaps", True)
    monkeypatch.setattr(leaves, "_WORTH_HALVING", 2)
    halved = start_search(shards(table, np.random.default_rng(0), 2), search=search)
    halved.run()
    assert halved.network == usual
    monkeypatch.setattr(ShardedCounter, "overlaps", False)
    whole = start_search(shards(table, np.random.default_rng(0), 2), search=search)
    whole.run()
    assert halved.round_trips[0] > whole.round_trips[0]
    assert halved.round_trips[1] == whole.round_trips[1]


@pytest.mark.parametrize("prior", ["auto", "bdeu:10"])
def test_merges_made_ahead_save_rounds(prior, monkeypatch):
    """Of a graph of many leaves, most of which are merged: its variable counts how many others are on."""
    random = np.random.default_rng(1)
    on = random.integers(0, 2, (10, 20_000), np.uint8)
    total = random.random(on.shape[1]) < (on[:8].sum(axis=0) + (on[8] & on[9])) / 10
    table = Table([Variable(f"x{k}", ("off", "on")) for k in range(11)], np.vstack([on, total]))
    usual, n_rounds = learn(table, prior=prior, target="x10"), []
    for n in (0, 1, 8):
        monkeypatch.setattr(leaf_search, "_MERGES_AHEAD", n)
        search = start_search(shards(table, np.random.default_rng(n), 2), prior=prior, target="x10")
        search.run()
        assert search.network == usual
        n_rounds.append(search.round_trips[0])
    assert n_rounds[0] > n_rounds[1] > n_rounds[2]


@pytest.mark.parametrize("overlaps", [False, True])
def test_interrupts_while_counts_are_filled_in(overlaps, monkeypatch):
    """A batch is repeated then; histograms must still be there, where there are so many that they are given back."""
    table, search, fill_in = sample(alarm(), 500, seed=5), LeafSearch(threads=2), leaves.expand.fill_in
    usual, random, n_interrupts = learn(table, search=search), np.random.default_rng(0), 0

    def interrupted(*given):
        fill_in(*given)
        if random.random() < 0.3:
            raise KeyboardInterrupt

    monkeypatch.setattr(histograms, "_PLENTY", 10)
    monkeypatch.setattr(ShardedCounter, "overlaps", overlaps)
    monkeypatch.setattr(leaves, "_WORTH_HALVING", 2)
    monkeypatch.setattr(leaves.expand, "fill_in", interrupted)
    found = start_search(shards(table, np.random.default_rng(0), 2), search=search)
    while not found.stopped:
        try:
            found.run()
        except KeyboardInterrupt:
            n_interrupts += 1
    assert n_interrupts > 0
    assert found.network == usual


def test_the_second_look_at_graphs_knows_none_of_the_sets_of_the_first():
    """Leaves that were merged in the end, and whose sets nobody has asked for yet, are those of the first search."""
    table = sample(alarm(), 3000, seed=1)
    for letters in ("CBIMO", "CBIMORT"):
        usual, found = (
            learn(rows, search=LeafSearch(letters)) for rows in (table, shards(table, np.random.default_rng(0), 3))
        )
        assert usual.learned["merges"] > 0
        assert found == usual
        assert found.learned == usual.learned


def test_counts_are_asked_for_in_few_batches():
    table = sample(alarm(), 2000, seed=5)
    search = start_search(shards(table, np.random.default_rng(0), 2))
    search.run()
    n_trips, n_histograms = search.round_trips
    assert n_histograms >= table.n_variables + search.n_splits
    assert n_trips < search.n_steps / 2
    assert start_search(table).round_trips == (0, 0)


def test_complete_tables_want_rows_that_are_here():
    counter = shards(sample(alarm(), 100, seed=1), np.random.default_rng(0), 2)
    with pytest.raises(ValueError, match="rows are elsewhere"):
        learn(counter, search=TableArcSearch())
    with pytest.raises(ValueError, match=r"read already, .* so bins cannot be given: leave it out"):
        learn(counter, bins=3)


@pytest.mark.parametrize("device", ["gpu", "tpu"])
def test_a_counter_counts_where_its_rows_are(device):
    with pytest.raises(ValueError, match=r"counted where they are, so device cannot be given: leave it out"):
        learn(CpuCounter(sample(alarm(), 100, seed=1)), device=device)


@pytest.mark.skipif(not has_gpu(), reason="there is no GPU here, or no CuPy")
def test_the_memory_of_a_gpu_is_told_and_bounded(caplog):
    table = sample(alarm(), 100_000, seed=1)
    with caplog.at_level("INFO", "leafwise.counters.gpu"):
        counter = GpuCounter(table)
    assert re.search(r"the table takes 0\.\d GB on the GPU, and [\d.]+ GB are left for sets of cases", caplog.text)
    pool = counter.cupy.get_default_memory_pool()
    try:
        counter.data  # noqa: B018  # to the device
        pool.free_all_blocks()
        pool.set_limit(pool.total_bytes() + 2**20)
        with pytest.raises(ValueError, match=r"memory is full of sets of cases .* device='cpu'"):
            learn(counter)
    finally:
        pool.set_limit(0)


def test_who_counts_is_named(monkeypatch):
    table = sample(alarm(), 100, seed=1)
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ValueError, match=r"needs the package CuPy.* device='cpu'"):
        learn(table, device="gpu")
    with pytest.raises(ValueError, match="the device is 'tpu': give 'cpu' or 'gpu'"):
        learn(table, device="tpu")
