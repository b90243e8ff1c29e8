"""Laws of the search that goes on from where greedy search ends."""

import math
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import assignments
from strategies import examples, make_table, problems, random_dag, random_start

from leafwise.constraints import Constraints
from leafwise.counters.cpu import CpuCounter
from leafwise.decision_graph import LEAF
from leafwise.examples import alarm
from leafwise.inference.sampling import sample
from leafwise.learner import learn, log_score, start_search
from leafwise.priors import parameter_prior
from leafwise.search.best_networks import same_leaves
from leafwise.search.leaf_search import SCHEDULES, LeafSearch
from leafwise.search.problem import Problem
from leafwise.search.restarts import LeafSearchRestarts, LeafSearchRestartsRun
from leafwise.structure_priors import Kappa
from leafwise.workers import Workers

LIMITS = {"max_cases": 120, "max_assignments": 200}


def total(network, table):
    return sum(score.log_score for score in log_score(network, table).values())


def begin(table, setup, *, target=None, start=None, threads=1, **settings):
    options = setup.for_library(threads=threads)
    search = LeafSearchRestarts(options.pop("search"), **{"rounds": 12, **settings})
    return start_search(table, **options, search=search, target=target, start=start)


@examples(40)
@given(problems(**LIMITS))
def test_no_schedule_of_greedy_search_scores_higher(problem):
    table, setup, target = problem
    for name in (None, table.names[target]):
        search = begin(table, setup, target=name)
        search.run()
        for schedule in SCHEDULES:
            greedy = learn(table, **setup.for_library(schedule=schedule), target=name)
            assert search.log_score >= greedy.learned["log_score"] - 1e-6


@examples(40)
@given(problems(**LIMITS))
def test_rounds_tell_score_and_size_and_never_lose(problem):
    table, setup, _ = problem
    search = begin(table, setup)
    before = -math.inf
    for round_ in search:
        assert round_.log_score >= before
        assert (
            round_.operator.gain == pytest.approx(max(0.0, round_.log_score - before), abs=1e-6) or before == -math.inf
        )
        assert round_.log_score == pytest.approx(total(search.network, table), abs=1e-6)
        assert (round_.n_leaves, round_.n_arcs) == (search.network.n_leaves, len(search.network.arcs))
        before = round_.log_score
    assert (search.n_rounds, search.stopped) == (12, "rounds")
    assert search.summary() == dict(search.network.learned)


def assert_within(rules, network):
    arcs = set(network.arcs)
    assert not any(oracle.leads_to(child, parent, arcs) for parent, child in arcs)
    assert rules.required <= arcs
    assert all(rules.permit(parent, child) for parent, child in arcs)
    for node in network.nodes:
        assert rules.max_parents is None or len(node.parents) <= rules.max_parents
        assert rules.max_leaves is None or node.graph.n_leaves <= rules.max_leaves


@examples(60)
@given(problems(**LIMITS))
def test_all_networks_are_acyclic_and_within_their_constraints(problem):
    table, setup, _ = problem
    search = begin(table, setup, rounds=20, keep=4)
    search.run()
    for network, _, _ in search.networks:
        assert_within(setup.rules, network)
        for node in network.nodes:
            reached = {
                node.graph.leaf_of(case) for case in assignments([variable.n_states for variable in table.variables])
            }
            assert reached == set(range(node.graph.n_leaves))


def is_made_by(operators, variable, possible, row):
    """Whether one of the operators makes a test with these children, by which not all states may be possible."""
    r, ordered = variable.n_states, variable.n_states - variable.missing if variable.ordered else 0
    groups = {frozenset(state for state in range(r) if row[state] == child) for child in row}
    below = [frozenset(range(state)) for state in range(1, ordered + 1)] if ordered > 2 else []
    below += [states | {r - 1} for states in below if variable.missing]
    return (
        ({"C", "M"} <= set(operators))
        or ("C" in operators and len(groups) == len(possible) == len({row[state] for state in possible}))
        or ("B" in operators and len(groups) == 2 and any(len(group) == 1 for group in groups))
        or ("I" in operators and len(groups) == 2 and any(group in groups for group in below))
    )


@examples(100)
@given(problems(**LIMITS), st.sampled_from(["C", "B", "I", "CB", "BI", "CI", "BM", "IM", "BIM", "CIM"]))
def test_every_test_is_one_that_the_operators_make(problem, operators):
    table, setup, _ = problem
    search = begin(table, replace(setup, operators=operators), rounds=20, keep=4)
    search.run()
    for network, _, _ in search.networks:
        for graph in (node.graph for node in network.nodes):
            for place, test in enumerate(graph.tests):
                if test != LEAF:
                    every = frozenset(range(table.variables[test].n_states))
                    possible = frozenset().union(*(path.get(test, every) for path in graph.paths_to(place)))
                    assert is_made_by(operators, table.variables[test], possible, graph.children[place])


def test_splits_at_thresholds_are_among_the_perturbations():
    """Neither variable tells anything of the target alone, so greedy search takes no step."""
    x, z = np.random.default_rng(1).integers(4, size=(2, 400))
    table = make_table([4, 4, 2], [x, z, (x > 1) ^ (z > 1)], ordered={0, 1})
    search = start_search(table, target="c", search=LeafSearchRestarts(LeafSearch("I"), rounds=20))
    assert search.n_leaves == 1
    search.run()
    assert {"a", "b"} == set(search.network["c"].parents)


@examples(30)
@given(problems(make_rules=random_dag, **LIMITS))
def test_a_given_dag_keeps_its_arcs(problem):
    table, setup, _ = problem
    search = begin(table, setup, keep=3)
    search.run()
    for network, _, _ in search.networks:
        assert set(network.arcs) == set(setup.rules.dag)


@examples(30)
@given(problems(**LIMITS))
def test_seeds_and_threads(problem):
    table, setup, _ = problem
    one, two = (begin(table, setup, keep=3, threads=threads) for threads in (1, 2))
    one.run()
    assert [step.log_score for step in two][-1] == one.log_score
    assert one.network == two.network
    assert one.networks == two.networks


@examples(30)
@given(problems(**LIMITS))
def test_the_networks_kept_are_distinct_and_the_best_comes_first(problem):
    table, setup, _ = problem
    search = begin(table, setup, rounds=30, keep=5)
    search.run()
    networks, scores, posteriors = zip(*search.networks, strict=True)
    assert networks[0] == search.network
    assert all(a > b - 1e-8 for a, b in pairwise(scores))
    assert sum(posteriors) == pytest.approx(1)
    for network, score, posterior in search.networks:
        assert score == pytest.approx(total(network, table), abs=1e-6)
        assert posterior == pytest.approx(math.exp(score - scores[0]) * posteriors[0])
    for k, network in enumerate(networks):
        for other in networks[:k]:
            pairs = zip(network.nodes, other.nodes, strict=True)
            assert not all(same_leaves(a.graph, b.graph) for a, b in pairs)


@examples(20)
@given(problems(**LIMITS))
def test_a_network_to_begin_with_is_where_it_begins(problem):
    table, setup, _ = problem
    random = np.random.default_rng(1)
    start = random_start(random, table)
    search = start_search(
        table,
        search=LeafSearchRestarts(LeafSearch(setup.operators, threads=1), rounds=5),
        prior=setup.prior,
        start=start,
    )
    assert (
        search.log_score
        >= sum(s.log_score for s in log_score(start, table, prior=setup.prior, structure_prior="auto").values()) - 1e-6
    )
    before = search.log_score
    search.run()
    assert search.log_score >= before


class Stop(Exception):
    pass


def test_an_interrupt_leaves_the_best_network_so_far():
    table = sample(alarm(), 1000, seed=1)
    for when in range(1, 6):
        search, calls = start_search(table, search=LeafSearchRestarts(rounds=40)), []

        def progress(_, calls=calls, when=when):
            calls.append(1)
            if len(calls) == when:
                raise Stop

        with suppress(Stop):
            search.run(progress)
        assert search.log_score == pytest.approx(total(search.network, table), abs=1e-6)


def test_seconds_end_the_search():
    table = sample(alarm(), 300, seed=1)
    search = start_search(table, search=LeafSearchRestarts(rounds=10**6, seconds=0.3))
    search.run()
    assert search.stopped == "seconds"
    assert 0 < search.n_rounds < 10**6
    assert search.seconds < 3
    none = start_search(table, search=LeafSearchRestarts(seconds=0))
    none.run()
    assert (none.n_rounds, none.n_steps, none.stopped) == (0, 0, "seconds")
    assert none.network.n_leaves == table.n_variables


def test_it_gets_further_than_greedy_search():
    table = sample(alarm(), 1000, seed=1)
    search = start_search(table, search=LeafSearchRestarts(rounds=200))
    search.run()
    best = max(learn(table, search=LeafSearch(schedule=s)).learned["log_score"] for s in SCHEDULES)
    assert search.log_score > best + 2
    assert search.n_steps > 1


def test_the_counter_holds_no_more_after_many_rounds():
    table = sample(alarm(), 300, seed=1)
    workers = Workers(1)
    counter = CpuCounter(table, workers)
    problem = Problem(
        table.variables,
        tuple(range(table.n_variables)),
        parameter_prior("uniform"),
        Kappa(0.1),
        Constraints().resolve(table),
        np.full(table.n_variables, table.n_variables - 1),
        {},
    )
    LeafSearchRestartsRun(problem, counter, LeafSearchRestarts(LeafSearch(threads=1), rounds=60), workers).run()
    in_use = (counter._sets["size"] > 0).sum()
    assert in_use == 1


def test_one_variable():
    table = make_table([2], [[0, 1, 1, 0, 1]])
    search = start_search(table, search=LeafSearchRestarts(rounds=3, keep=3))
    search.run()
    assert len(search.networks) == 1
    assert search.networks[0][2] == 1


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"rounds": -1}, "rounds is -1"),
        ({"keep": 0}, "keep is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"seconds": -0.5}, "seconds is -0.5"),
        ({"greedy": LeafSearch(max_steps=3)}, "max_steps is 3"),
        ({"greedy": LeafSearch(seconds=3)}, "seconds is 3"),
    ],
)
def test_settings_out_of_range(settings, fault):
    with pytest.raises(ValueError, match=fault):
        LeafSearchRestarts(**settings)
