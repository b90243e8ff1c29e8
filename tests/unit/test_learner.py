"""What learning refuses before it begins, and what is true of the compiled kernels it runs on."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import leafwise
from leafwise import Constraints, DecisionGraph, LeafSearch, Network, TableArcSearch
from leafwise.examples import alarm
from leafwise.network import Node

CASES = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 1], [0, 1, 0], [1, 0, 1]] * 4)


def network_of(table, graphs):
    nodes = [Node(graph.tested, graph, np.full((graph.n_leaves, 2), 0.5)) for graph in graphs]
    return Network(table.variables, tuple(nodes))


@pytest.fixture
def table():
    return leafwise.read(CASES)


@pytest.fixture
def start(table):
    single = DecisionGraph.single()
    return network_of(table, [single, single, DecisionGraph.complete([0, 1], [2, 2, 2])])


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(required=[("x3", "x1")]), "close a cycle"),
        (Constraints(forbidden=[("x1", "x3")]), "starting network has the arc x1 -> x3"),
        (Constraints(max_parents=1), "more parents than max_parents=1"),
        (Constraints(max_leaves=3), "4 leaves for 'x3', more than max_leaves=3"),
    ],
)
def test_a_start_must_keep_the_constraints(table, start, constraints, message):
    with pytest.raises(ValueError, match=message):
        leafwise.learn(table, start=start, constraints=constraints)


@pytest.mark.parametrize("arcs", ["required", "dag"])
def test_complete_tables_over_given_arcs_must_keep_the_limit_on_leaves(table, arcs):
    given = {arcs: [("x1", "x3"), ("x2", "x3")]}
    network = leafwise.learn(table, search=TableArcSearch(), constraints=Constraints(**given, max_leaves=4))
    assert network["x3"].parents == ("x1", "x2")
    with pytest.raises(leafwise.AdvisedError, match=r"'x3' begins with parents of 4 .* more than max_leaves=3"):
        leafwise.learn(table, search=TableArcSearch(), constraints=Constraints(**given, max_leaves=3))


def test_a_start_must_have_no_leaf_out_of_reach(table):
    impossible = DecisionGraph.single().split(0, 0, [{0}, {1}]).split(0, 0, [{0}, {1}])
    single = DecisionGraph.single()
    with pytest.raises(ValueError, match="no case can reach"):
        leafwise.learn(table, start=network_of(table, [single, single, impossible]))


def test_columns_too_large_to_cross_are_refused_at_once():
    wide = np.stack([np.arange(60_000), np.arange(60_000)[::-1]], axis=1)
    with pytest.raises(ValueError, match=r"more than the limit .* 'x1' \(60000 states\) and 'x2' \(60000 states\)"):
        leafwise.learn(wide, states="*")


def test_histograms_that_were_given_back_are_counted_again(monkeypatch):
    rich = leafwise.sample(alarm(), 300, seed=1)
    kept = [leafwise.learn(rich, search=LeafSearch("CBM", schedule)) for schedule in ("best-first", "splits-first")]
    monkeypatch.setattr("leafwise.search.histograms._PLENTY", -1)
    assert [leafwise.learn(rich, search=LeafSearch("CBM", s)) for s in ("best-first", "splits-first")] == kept


def cache_hits(folder):
    """How many kernels a new process finds in the cache: 1 or 0, of one kernel of the copy in the folder."""
    script = (
        "import numpy as np; from leafwise.kernels.scoring import rises;"
        "rises.fill(1.0, 1.0, np.zeros(3)); print(len(rises.fill.stats.cache_hits))"
    )
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    ran = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    return int(ran.stdout)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_change_in_any_kernel_file_makes_kernels_anew(tmp_path):
    """A kernel is made of parts from other files, which numba by itself does not watch."""
    shutil.copytree(Path(leafwise.__file__).parent, tmp_path / "leafwise", ignore=shutil.ignore_patterns("__pycache__"))
    assert [cache_hits(tmp_path), cache_hits(tmp_path)] == [0, 1]
    with (tmp_path / "leafwise" / "kernels" / "compiling" / "words.py").open("a") as file:
        file.write("# changed\n")
    assert cache_hits(tmp_path) == 0
    (index,) = (tmp_path / "cache").rglob("rises.fill*.nbi")
    index.write_bytes(pickle.dumps("another version") + b"what only that version can read")
    assert [cache_hits(tmp_path), cache_hits(tmp_path)] == [0, 1]


def test_tables_that_may_not_be_written_to():
    """As joblib hands them to its processes."""
    table = leafwise.sample(alarm(), 300, seed=1)
    codes = table.codes.copy()
    codes.flags.writeable = False
    assert leafwise.learn(leafwise.Table(table.variables, codes)) == leafwise.learn(table)
