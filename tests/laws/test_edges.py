"""Search over arcs with decision graphs learned anew: laws that hold for every search of this kind."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from strategies import examples, free, generators, random_rules, random_setup, random_table

import leafwise
from leafwise import Constraints, GraphArcSearch, LeafSearch
from leafwise.examples import alarm
from leafwise.formats.json import dumps
from leafwise.inference.sampling import sample
from leafwise.search.graph_arc_search import GraphArcSearchRun
from leafwise.search.table_arc_search import AddArc


def begun(table, setup, **limits):
    arguments = setup.for_library()
    greedy = arguments.pop("search")
    return leafwise.start_search(
        table, search=GraphArcSearch(LeafSearch(greedy.operators, greedy.schedule), **limits), **arguments
    )


@given(generators())
@examples(20)
def test_steps_gain_what_they_say_and_the_constraints_hold(random):
    table = random_table(random, max_cases=60, max_states=3, max_assignments=60)
    setup = random_setup(random, table, lambda r, n: random_rules(r, n, kinds=("order", "forbidden", "max_parents")))
    search = begun(table, setup)
    before = search.log_score
    for step in search:
        assert step.log_score == pytest.approx(before + step.operator.gain, abs=1e-7)
        assert step.operator.gain > 0
        before = step.log_score
    network = search.network
    total = sum(score.log_score for score in leafwise.log_score(network, table).values())
    assert total == pytest.approx(search.log_score, abs=1e-6)
    rules = setup.rules
    assert all(rules.permit(parent, child) for parent, child in network.arcs)
    if rules.max_parents is not None:
        assert all(len(node.parents) <= rules.max_parents for node in network.nodes)


@given(generators())
@examples(15)
def test_each_step_is_the_best_change_of_one_arc(random):
    """No arc that could be added gains more than the step that was taken, when it is learned on its own."""
    table = random_table(random, max_cases=40, max_states=3, max_assignments=60)
    setup = random_setup(random, table, free)
    if setup.structure_prior == "choices":  # it counts the candidates, and alone there is one
        setup = replace(setup, structure_prior="kappa:0.1")
    search = begun(table, setup, max_steps=1)
    empty = search.log_score
    found = next(search, None)
    gains = [0.0]
    arguments = setup.for_library()
    for child in range(table.n_variables):
        for parent in range(table.n_variables):
            if parent != child:
                alone = Constraints(dag=[(table.names[parent], table.names[child])])
                network = leafwise.learn(table, **(arguments | {"constraints": alone}))
                gains.append(sum(s.log_score for s in leafwise.log_score(network, table).values()) - empty)
    assert (0.0 if found is None else found.operator.gain) == pytest.approx(max(gains), abs=1e-7)
    if found is not None:
        assert isinstance(found.operator, AddArc)


def test_threads_and_limits():
    table = leafwise.sample(alarm(), 200, seed=3)
    columns = leafwise.Table(table.variables[:8], np.ascontiguousarray(table.codes[:8]))
    one, two = (leafwise.learn(columns, search=GraphArcSearch(LeafSearch(threads=threads))) for threads in (1, 2))
    assert one == two
    short = leafwise.start_search(columns, search=GraphArcSearch(max_steps=2))
    short.run()
    assert (short.n_steps, short.stopped) == (2, "max_steps")
    none = leafwise.start_search(columns, search=GraphArcSearch(seconds=0))
    none.run()
    assert (none.n_steps, none.stopped) == (0, "seconds")
    with pytest.raises(ValueError, match="max_steps limits the search over arcs"):
        GraphArcSearch(LeafSearch(max_steps=3))


def test_time_that_runs_out_within_a_step(tmp_path, monkeypatch):
    """A batch of graphs takes a second here, and the first step three batches."""
    table, path, n_learned = sample(alarm(), 50, seed=1), tmp_path / "run.checkpoint", 0
    learn_batch = GraphArcSearchRun._learn_batch

    def counted(self, batch):
        nonlocal n_learned
        n_learned += 1
        return learn_batch(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(GraphArcSearchRun, "_learn_batch", counted)
        patch.setattr(GraphArcSearchRun, "seconds", property(lambda _: float(n_learned)))
        search = leafwise.start_search(table, search=GraphArcSearch(seconds=2), checkpoint=path)
        search.run()
        assert (search.n_steps, search.stopped, n_learned) == (0, "seconds", 2)
    whole, resumed = (
        leafwise.learn(table, search=GraphArcSearch(max_steps=2), checkpoint=file) for file in (None, path)
    )
    assert dumps(resumed) == dumps(whole)


def test_the_arcs_of_a_given_dag_stay():
    table = leafwise.sample(alarm(), 300, seed=1)
    names = table.names
    arcs = [(names[parent], names[child]) for parent, child in alarm().arcs]
    network = leafwise.learn(table, search=GraphArcSearch(), constraints=Constraints(dag=arcs))
    assert {(names[parent], names[child]) for parent, child in network.arcs} == set(arcs)
