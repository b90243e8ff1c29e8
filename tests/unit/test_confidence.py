"""How sure arcs are: counted by hand from the networks of halves, and thresholds against their definition."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import generators

import leafwise
import leafwise.examples
from leafwise import Confidence, Constraints, LeafSearch, RecoverySearch, TableArcSearch
from leafwise.arc_confidence import halves
from leafwise.decision_graph import LEAF
from leafwise.explorer.page import page
from leafwise.explorer.strengths import shares as explorer_shares


@pytest.fixture(scope="module")
def cases():
    return leafwise.sample(leafwise.examples.alarm(), 500, seed=1)


@pytest.fixture(scope="module")
def found(cases):
    return leafwise.confidence(cases, 8)


def test_shares_are_those_of_the_networks(cases, found):
    networks = list(halves(cases, 8, 1, search=RecoverySearch()))
    assert all(network.learned["cases"] == 250 for network in networks)
    for i, j in ((2, 4), (4, 2), (10, 3)):
        with_arc = [network for network in networks if (i, j) in network.arcs]
        assert found.shares[i, j] == pytest.approx(len(with_arc) / 8)
        tests = sum(network.nodes[j].graph.tests.count(i) for network in networks)
        assert found.tests[i, j] == pytest.approx(tests / 8)
    assert LEAF == -1  # which is no variable's number: the last row has no tests of leaves
    assert found.tests[-1, -1] == 0
    assert leafwise.confidence(cases, 8, seed=2).shares.tolist() != found.shares.tolist()


def test_most_of_what_is_sure_is_true(found):
    true = {frozenset(arc) for arc in leafwise.examples.alarm().named_arcs}
    sure = [frozenset(arc) for arc in found.consensus]
    assert len(sure) > 20
    assert sum(pair in true for pair in sure) / len(sure) > 0.9


def test_the_consensus_is_a_network(cases, found):
    network = leafwise.learn(cases, constraints=Constraints(dag=found.consensus))
    assert set(network.named_arcs) == set(found.consensus)


def of(shares):
    n = 2
    while n * (n - 1) // 2 < len(shares):
        n += 1
    both = np.zeros((n, n))
    both[np.triu_indices(n, 1)] = [*shares, *[0.0] * (n * (n - 1) // 2 - len(shares))]
    return Confidence(tuple(map(str, range(n))), 10, both, both)


@settings(max_examples=50)
@given(generators())
def test_the_threshold_is_nearest_to_all_or_nothing(random):
    result = of(random.integers(0, 11, size=random.choice([1, 3, 6, 10])) / 10)
    shares = np.sort(result.connected[np.triu_indices(len(result.names), 1)])
    places = (np.arange(1000) + 0.5) / 1000
    cumulative = np.searchsorted(shares, places, side="right") / len(shares)
    distances = [np.abs(cumulative - t / len(shares)).mean() for t in range(len(shares) + 1)]
    n_below = int((shares < result.threshold).sum()) if result.threshold < 1 else int((shares < 1).sum())
    assert distances[n_below] == pytest.approx(min(distances), abs=0.002)


def test_the_explorer_shows_how_sure_arcs_are(cases, found):
    network = found.network(cases)
    shares = explorer_shares(network)
    names = found.names
    assert network.named_arcs
    for (parent, child), share in zip(network.named_arcs, shares, strict=True):
        assert share == found.connected[names.index(parent), names.index(child)]
    assert f'"shares":[{shares[0]}' in page(network, "consensus").replace(" ", "")
    assert explorer_shares(leafwise.learn(cases)) is None
    assert explorer_shares(replace(network, learned={"confidence": {"arcs": [["a"]]}})) is None
    for share in ("0.5", [0.5], True, 10**400, 1.5, None):
        rows = [[*arc, 0.5, 0.5] for arc in network.named_arcs]
        rows[0][2] = share
        assert explorer_shares(replace(network, learned={"confidence": {"arcs": rows}})) is None


def test_cycles_are_turned_round():
    shares = np.array([[0, 0.9, 0], [0, 0, 0.8], [0.7, 0, 0]])
    assert Confidence(("a", "b", "c"), 10, shares, shares).consensus == (("a", "b"), ("b", "c"), ("a", "c"))


def test_rows_and_pictures(found):
    frame = found.to_pandas()
    assert (frame["connected"].diff().dropna() <= 1e-12).all()
    assert (frame["connected"] - frame["this_way"] - frame["the_other"]).abs().max() < 1e-12
    assert found.plot().svg.count('class="arc"') == len(found.consensus)
    assert "8 networks" in repr(found)
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("search", [LeafSearch(), TableArcSearch()])
def test_other_searches(cases, search):
    found = leafwise.confidence(cases, 3, search=search)
    assert found.n_networks == 3
    assert found.shares.max() == 1


def test_small_and_wrong():
    one = leafwise.read(np.array([["a", "b"], ["a", "c"]]), states=["x1", "x2"])
    assert leafwise.confidence(one, 2).consensus == ()
    with pytest.raises(ValueError, match="0 networks of half of 2 cases"):
        leafwise.confidence(one, 0)
    with pytest.raises(ValueError, match="give some"):
        Confidence.of([])


def test_what_is_refused(cases):
    """A missing cell became a state where it was to be inferred, and arcs were counted between other variables."""
    with pytest.raises(ValueError, match="missing='infer' is for one network, and here are many: pass missing='state'"):
        leafwise.confidence(np.array([["a", None], ["b", "c"]] * 20, dtype=object), 2, missing="infer")
    frame = cases.to_pandas()[["CO", "BP", "HR"]]
    networks = [leafwise.learn(frame[names]) for names in (["CO", "BP", "HR"], ["HR", "BP", "CO"])]
    with pytest.raises(ValueError, match="a network of HR, BP, CO was given beside one of CO, BP, HR"):
        Confidence.of(networks)
    with pytest.raises(ValueError, match="the seed is -1, and the least is 0"):
        leafwise.confidence(cases, 2, seed=-1)
    with pytest.raises(TypeError, match="the seed is None"):
        leafwise.confidence(cases, 2, seed=None)
