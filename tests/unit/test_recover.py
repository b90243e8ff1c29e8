"""The search for the arcs that made the data: arcs with complete tables, then graphs in them."""

import numpy as np
import pytest

import leafwise
from leafwise import Constraints, LeafSearch, RecoverySearch, TableArcSearch, learn, start_search
from leafwise.examples import alarm
from leafwise.experiments.recovery import distance
from leafwise.formats.json import dumps


@pytest.fixture(scope="module")
def cases():
    return leafwise.sample(alarm(), 1600, seed=1)


def first(table, n, n_cases):
    return leafwise.Table(table.variables[:n], np.ascontiguousarray(table.codes[:n, :n_cases]))


def test_it_comes_near_the_arcs_that_made_the_data(cases):
    recovered, greedy = learn(cases, search=RecoverySearch()), learn(cases)
    assert distance(recovered, alarm()) <= 8 < distance(greedy, alarm())
    n_rows = [np.prod([cases.variables[parent].n_states for parent in node.parents]) for node in recovered.nodes]
    assert any(node.graph.n_leaves < n for node, n in zip(recovered.nodes, n_rows, strict=True))
    assert recovered.learned["search"] == "recover"
    assert leafwise.log_score(recovered, cases).total == pytest.approx(recovered.learned["log_score"])


def test_graphs_are_those_of_a_search_that_may_test_these_parents(cases):
    """The structure prior does not count candidates here, of which there are fewer."""
    table = first(cases, 10, 800)
    given = {"structure_prior": "kappa:0.1"}
    found = learn(table, search=RecoverySearch(), **given)
    arcs = learn(table, search=TableArcSearch(patience=10), prior="bdeu:2", structure_prior="arcs")
    allowed = {name: [table.names[p] for p in node.parents] for name, node in zip(table.names, arcs.nodes, strict=True)}
    assert found.nodes == learn(table, constraints=Constraints(allowed_parents=allowed), **given).nodes


def test_threads_steps_and_limits(cases):
    table = first(cases, 12, 300)
    one, two = (learn(table, search=RecoverySearch(LeafSearch(threads=threads))) for threads in (1, 2))
    assert dumps(one) == dumps(two)
    search = start_search(table, search=RecoverySearch())
    assert len(list(search)) == search.n_steps == one.learned["steps"]
    assert (dumps(search.network), search.stopped) == (dumps(one), "no operator gains")
    none = start_search(table, search=RecoverySearch(seconds=0))
    none.run()
    assert (none.network.arcs, none.stopped) == ((), "seconds")
    with pytest.raises(ValueError, match="seconds limits the search over arcs"):
        RecoverySearch(LeafSearch(seconds=3))


def test_a_higher_limit_goes_on(cases, tmp_path):
    table, path = first(cases, 12, 300), tmp_path / "run.checkpoint"
    few, all_of_them = (learn(table, search=RecoverySearch(max_steps=most), checkpoint=path) for most in (3, None))
    assert (len(few.arcs), few.learned["stopped"]) == (3, "max_steps")
    assert dumps(all_of_them) == dumps(learn(table, search=RecoverySearch()))


def test_there_is_a_network_at_any_time(cases):
    search = start_search(first(cases, 12, 300), search=RecoverySearch())
    for n_steps in range(5):
        assert len(search.network.arcs) == search.n_arcs == n_steps
        next(search)

    def stop(_search):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        search.run(stop)
    assert search.network.arcs


def test_constraints_hold(cases):
    table = first(cases, 12, 400)
    names = table.names
    free = {(names[parent], names[child]) for parent, child in learn(table, search=RecoverySearch()).arcs}
    gone, (parent, child) = sorted(free)[:3], sorted(free)[-1]
    rules = Constraints(forbidden=gone, required=[(child, parent)], max_parents=2, max_leaves=3)
    found = learn(table, search=RecoverySearch(), constraints=rules)
    arcs = {(names[parent], names[child]) for parent, child in found.arcs}
    assert (child, parent) in arcs
    assert not arcs & set(gone)
    assert all(len(node.parents) <= 2 and node.graph.n_leaves <= 3 for node in found.nodes)
    given = Constraints(dag=sorted(free))
    assert learn(table, search=RecoverySearch(), constraints=given).nodes == learn(table, constraints=given).nodes
    target = learn(table, search=RecoverySearch(), target=names[3])
    assert [node is not None for node in target.nodes] == [k == 3 for k in range(12)]


def test_it_goes_on_from_a_network(cases):
    table = first(cases, 12, 400)
    start = learn(table)
    search = start_search(table, search=RecoverySearch(), start=start)
    assert set(search.network.arcs) <= set(start.arcs)
    search.run()
    assert search.n_steps > 0


@pytest.mark.parametrize("columns", [{"a": ["x"]}, {"a": ["x"], "b": ["y"]}, {"a": ["x", "y"] * 9, "b": ["z"] * 18}])
def test_tiny_tables(columns):
    import pyarrow as pa

    assert learn(pa.table(columns), search=RecoverySearch()).arcs == ()


def test_what_it_cannot_count_is_refused(cases):
    table = first(cases, 5, 40)
    with pytest.raises(ValueError, match="whole"):
        learn(table, search=RecoverySearch(), weights=np.full(40, 2.5))
    with pytest.raises(ValueError, match="is for complete tables"):
        start_search(table, search=RecoverySearch(), structure_prior="arcs")
    with pytest.raises(ValueError, match="complete tables"):
        learn(table, search=RecoverySearch(), hidden=2)


@pytest.mark.parametrize("letters", ["CBIMO", "CBIMR", "CBIMORT"])
def test_graphs_may_test_their_own_variables_and_share(cases, letters, tmp_path):
    table = first(cases, 20, 1600)
    search, path = RecoverySearch(LeafSearch(letters)), tmp_path / "run.checkpoint"
    plain, found = (learn(table, search=RecoverySearch(LeafSearch(own))) for own in ("CBIM", letters))
    assert set(found.arcs) <= set(learn(table, search=TableArcSearch(patience=20), prior="bdeu:2").arcs)
    assert found.learned["log_score"] > plain.learned["log_score"]
    assert leafwise.log_score(found, table).total == pytest.approx(found.learned["log_score"])
    few = learn(table, search=RecoverySearch(LeafSearch(letters), max_steps=3), checkpoint=path)
    assert len(few.arcs) <= 3
    assert dumps(learn(table, search=search, checkpoint=path)) == dumps(found)
    under_way = start_search(table, search=search)
    assert len(list(under_way)) == under_way.n_steps == found.learned["steps"]
    assert dumps(under_way.network) == dumps(found)
    for given in ({"leaves": "average"}, {"networks": 3}):
        with pytest.raises(ValueError, match="do not go together yet"):
            learn(table, search=search, **given)
