"""Settings of a search, how it ends, and small searches whose answer is plain."""

import math

import numpy as np
import pytest
from strategies import make_table

from leafwise import Constraints, LeafSearch, Table, Variable, learn, log_score, start_search
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.inference.sampling import sample
from leafwise.network import Network, Node
from leafwise.operators import BinarySplit, CompleteSplit, Merge

# b copies a; c is a state of its own. 40 cases.
COPY = make_table([2, 2, 2], [[0, 1] * 20, [0, 1] * 20, [0] * 10 + [1] * 30])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"operators": ""}, "operators are '': give some of the letters C, B, I, M, O, R and T"),
        ({"operators": "M"}, "give some of the letters C, B, I, M, O, R and T"),
        ({"operators": "CC"}, "give some of"),
        ({"operators": "CX"}, "give some of"),
        ({"schedule": "merges-first"}, "the schedule is 'merges-first': give one of best-first, splits-first"),
        ({"max_steps": -1}, "max_steps is -1, and must be at least 0"),
        ({"seconds": -0.5}, "seconds is -0.5, and must be at least 0"),
        ({"seconds": math.nan}, "seconds is nan"),
        ({"threads": 0}, "threads is 0, and must be at least 1"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(ValueError, match=message):
        LeafSearch(**settings)


def test_one_split_is_enough_for_a_copy():
    search = start_search(COPY)
    steps = list(search)
    assert [type(step.operator) for step in steps] == [CompleteSplit]
    operator = steps[0].operator
    # the two directions tie: the smaller target wins
    assert (operator.target, operator.leaf, operator.variable) == (0, 0, 1)
    assert operator.groups == (frozenset({0}), frozenset({1}))
    assert (steps[0].n_leaves, steps[0].n_arcs) == (4, 1)
    # 40 cases, 20 a state: log(20! 20! / 41!) alone, and twice log(20! / 21!) after; the parent is one of two, and one
    # parent is a third as likely as none
    before, after = 2 * math.lgamma(21) - math.lgamma(42), -2 * math.log(21)
    assert operator.gain == pytest.approx(after - before - math.log(2) - math.log(3), rel=1e-6)
    assert search.stopped == "no operator gains"


def test_ties_go_to_the_smaller_state():
    table = make_table([2, 3], [[0, 0, 1, 1, 0, 0, 1, 1] * 4, [0, 0, 1, 1, 0, 0, 1, 1] * 4])
    operator = next(start_search(table, target="a", search=LeafSearch("B"))).operator
    assert isinstance(operator, BinarySplit)
    assert (operator.variable, operator.state, operator.n_states) == (1, 0, 3)


def test_complete_before_binary_when_they_tie():
    for operators in ("CB", "CBM"):
        operator = next(start_search(COPY, target="a", search=LeafSearch(operators))).operator
        assert isinstance(operator, CompleteSplit)


def test_a_complete_split_makes_leaves_for_states_without_cases():
    table = make_table([2, 4], [[0, 1] * 20, [0, 2] * 20])
    search = start_search(table, target="a", search=LeafSearch("C"), structure_prior="uniform")
    assert next(search).operator.groups == tuple(frozenset({state}) for state in range(4))
    assert search.network.nodes[0].counts.tolist() == [[20, 0], [0, 0], [0, 20], [0, 0]]


def test_merging_goes_with_the_splits_before():
    """A complete split on four states, of which two and two are alike, and two merges."""
    random = np.random.default_rng(0)
    b = random.integers(4, size=400)
    table = make_table([2, 4], [b // 2, b])
    search = start_search(table, target="a", search=LeafSearch("CM"))
    assert [type(step.operator) for step in search] == [CompleteSplit, Merge, Merge]
    assert search.network.nodes[0].graph.n_leaves == 2
    assert (search.n_splits, search.n_merges) == (1, 2)


@pytest.mark.parametrize("schedule", ["best-first", "splits-first"])
def test_no_case_separated_no_split(schedule):
    """A prior network would gain by splitting pure leaves for ever, were it allowed."""
    table = make_table([2, 3], [[0] * 30, [1] * 30])
    search = start_search(table, search=LeafSearch(schedule=schedule), prior="bdeu:1", structure_prior="uniform")
    assert list(search) == []


@pytest.mark.parametrize("n_cases", [1, 2])
def test_next_to_no_cases(n_cases):
    table = make_table([2, 3, 1], np.zeros((3, n_cases), int))
    network = learn(table)
    assert network.arcs == ()
    assert [node.counts.sum() for node in network.nodes] == [n_cases] * 3


def test_one_variable():
    network = learn(make_table([3], [[0, 0, 1]]), prior="symmetric:2")
    assert network.nodes[0].counts.tolist() == [[2, 1, 0]]
    assert network.nodes[0].probabilities[0] == pytest.approx([8 / 15, 5 / 15, 2 / 15])


def test_no_cases():
    with pytest.raises(ValueError, match="the table has no cases, and learning needs at least one: check the data"):
        learn(Table((Variable("a", ("0", "1")),), np.zeros((1, 0), np.uint8)))


def test_unknown_target():
    with pytest.raises(ValueError, match="no variable is called 'z'"):
        learn(COPY, target="z")


def test_only_the_target_is_learned():
    network = learn(COPY, target="b")
    assert [node is None for node in network.nodes] == [True, False, True]
    assert network.nodes[1].parents == (0,)
    assert network.learned["target"] == "b"


def test_stopping_by_steps():
    search = start_search(COPY, search=LeafSearch(max_steps=0))
    assert search.stopped == ""
    search.run()
    assert (search.n_steps, search.stopped) == (0, "max_steps")


def test_stopping_by_the_clock():
    search = start_search(COPY, search=LeafSearch(seconds=0.0))
    search.run()
    assert (search.n_steps, search.stopped) == (0, "seconds")
    assert search.network.arcs == ()


def test_progress_is_told():
    seen = []
    start_search(COPY).run(lambda search: seen.append(search.n_steps))
    assert seen[-1] == 1


def test_the_summary():
    network = learn(COPY, search=LeafSearch("BM", "best-first", threads=1), structure_prior="kappa:0.5", prior="bdeu:2")
    learned = network.learned
    assert {key: learned[key] for key in ("cases", "variables", "target", "operators", "schedule", "stopped")} == {
        "cases": 40,
        "variables": 3,
        "target": None,
        "operators": "BM",
        "schedule": "best-first",
        "stopped": "no operator gains",
    }
    assert (network.prior, network.structure_prior) == ("bdeu:2", "kappa:0.5")
    assert (learned["leaves"], learned["parameters"], learned["arcs"]) == (4, 4, 1)
    assert (learned["steps"], learned["splits"], learned["merges"], learned["deleted_parents"]) == (1, 1, 0, 0)
    scores = log_score(network, COPY).values()
    assert learned["log_score"] == pytest.approx(sum(score.log_score for score in scores))
    assert learned["log_marginal_likelihood"] == pytest.approx(sum(s.log_marginal_likelihood for s in scores))
    assert learned["log_score"] - learned["log_marginal_likelihood"] == pytest.approx(4 * math.log(0.5))


def started(arcs):
    """A network with complete tables along these arcs."""
    nodes = []
    for child in range(3):
        graph = DecisionGraph.complete([p for p, c in arcs if c == child], [2, 2, 2])
        nodes.append(Node(graph.tested, graph, np.full((graph.n_leaves, 2), 0.5)))
    return Network(COPY.variables, tuple(nodes))


def test_beginning_with_a_network():
    search = start_search(COPY, start=started([(2, 0), (0, 1)]), search=LeafSearch(max_steps=0))
    assert search.network.arcs == ((2, 0), (0, 1))
    assert search.network.nodes[1].counts.tolist() == [[20, 0], [0, 20]]
    assert search.log_score == pytest.approx(sum(s.log_score for s in log_score(search.network, COPY).values()))


def test_beginning_with_arcs_that_are_ruled_out():
    with pytest.raises(ValueError, match="the starting network has the arc c -> a, which the constraints rule out"):
        learn(COPY, start=started([(2, 0)]), constraints=Constraints(forbidden=[("c", "a")]))


def test_a_parent_that_stops_mattering_is_deleted():
    start = started([(2, 0), (2, 1)])
    kept, deleted = (learn(COPY, start=start, search=LeafSearch("CM", delete_parents=d)) for d in (False, True))
    assert kept.arcs == deleted.arcs == ((1, 0),)  # what does not matter is left out in the end, in any case
    assert (kept.learned["deleted_parents"], deleted.learned["deleted_parents"]) == (0, 2)
    assert deleted.learned["log_score"] == pytest.approx(kept.learned["log_score"])


def test_a_required_parent_is_never_deleted():
    constraints = Constraints(required=[("c", "a")])
    network = learn(
        COPY, start=started([(2, 0)]), search=LeafSearch("CM", delete_parents=True), constraints=constraints
    )
    assert network.arcs == ((2, 0), (0, 1))
    assert network.nodes[0].graph.n_leaves == 1


def test_required_arcs_are_there_though_they_do_not_matter():
    network = learn(COPY, constraints=Constraints(required=[("c", "a")], forbidden=[("b", "a"), ("a", "b")]))
    assert network.arcs == ((2, 0),)
    assert network.nodes[0].graph.n_leaves == 1


@pytest.mark.parametrize("operators", ["CBIM", "CBIMO"])
def test_what_is_charged_is_counted_while_graphs_are_drawn(operators):
    search = start_search(sample(alarm(), 2000, seed=1), search=LeafSearch(operators), prior="uniform")
    search.run()
    replayed, graphs = search._reduced(charges=True)
    whole, problem = search._replay(search.n_steps).graphs, search._problem
    assert len(whole.tests) > len(graphs.tests)
    for row, drawn in enumerate((whole, replayed.graphs)):
        for target in problem.targets:
            charged = (counted[row, target] for counted in replayed.charged)
            cost = problem.structure_prior.cost(*charged, int(problem.n_candidates[target]))
            assert -cost == pytest.approx(problem.log_prior(target, drawn.graph(target)))
