"""Moves away from a graph: what comes out is a graph that every search could have made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import assignments, sized_graphs

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.search.best_networks import same_leaves
from leafwise.search.perturbation import Moves, collapse, cut, cuttable, perturbed, without_impossible_arcs

SEEDS = st.integers(0, 2**32 - 1)


def leaves_of(graph, n_states):
    return [graph.leaf_of(assignment) for assignment in assignments(n_states)]


def share_leaves(leaves, others):
    """Whether two lists of leaf numbers group their places in the same way."""
    return len(set(zip(leaves, others, strict=True))) == len(set(leaves)) == len(set(others))


@given(sized_graphs(), SEEDS, st.integers(1, 5), st.sampled_from(["C", "B", "CM", "BM", "CBM"]))
def test_some_case_reaches_every_leaf_of_a_perturbed_graph(sized, seed, n_moves, operators):
    n_states, graph = sized
    moves = Moves(operators, n_states, range(len(n_states)))
    other = perturbed(without_impossible_arcs(graph), n_moves, moves, np.random.default_rng(seed))
    other.validate(n_states)
    assert set(leaves_of(other, n_states)) == set(range(other.n_leaves))


@given(sized_graphs(), SEEDS, st.integers(1, 5), st.integers(1, 6))
def test_a_perturbed_graph_keeps_to_its_limits(sized, seed, n_moves, most_leaves):
    n_states, graph = sized
    moves = Moves("CBM", n_states, graph.tested, most_leaves)
    other = perturbed(graph, n_moves, moves, np.random.default_rng(seed))
    assert set(other.tested) <= set(graph.tested)
    assert other.n_leaves <= max(graph.n_leaves, most_leaves)


@given(sized_graphs(), SEEDS)
def test_the_same_seed_makes_the_same_moves(sized, seed):
    n_states, graph = sized
    moves = Moves("CBM", n_states, range(len(n_states)))
    one, other = (perturbed(graph, 3, moves, np.random.default_rng(seed)) for _ in range(2))
    assert one == other


def test_nothing_can_be_done_to_a_leaf_without_variables():
    for seed in range(9):
        moves = Moves("CBM", [2, 3], [])
        assert perturbed(DecisionGraph.single(), 3, moves, np.random.default_rng(seed)) == DecisionGraph.single()


@given(sized_graphs())
def test_a_collapsed_test_is_one_leaf(sized):
    n_states, graph = sized
    for node in [node for node, test in enumerate(graph.tests) if test != LEAF]:
        other = collapse(graph, node)
        other.validate(n_states)
        groups = set(zip(leaves_of(graph, n_states), leaves_of(other, n_states), strict=True))
        new = [a for a in range(other.n_leaves) if sum(b == a for _, b in groups) > 1]
        assert len(new) <= 1


@given(sized_graphs())
def test_a_cut_takes_some_assignments_out_of_one_leaf(sized):
    n_states, graph = sized
    before = leaves_of(graph, n_states)
    for node, states in cuttable(graph):
        after = leaves_of(cut(graph, node, states), n_states)
        moved = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        assert {b for _, b in moved} <= {graph.n_leaves}
        assert len({a for a, _ in moved}) <= 1


def test_what_can_be_cut():
    graph = DecisionGraph.complete([0, 1], [2, 2]).merge(1, 2)
    assert cuttable(graph) == [(1, frozenset({1})), (2, frozenset({0}))]
    assert cuttable(DecisionGraph.complete([0, 1], [2, 2])) == []
    assert cuttable(DecisionGraph.single().split(0, 0, [{0, 2}, {1}])) == [(0, frozenset({0})), (0, frozenset({2}))]


@given(sized_graphs())
def test_without_impossible_arcs_the_cases_go_where_they_went_when_few_ways_lead_there(sized):
    n_states, graph = sized
    other = without_impossible_arcs(graph)
    other.validate(n_states)
    after = leaves_of(other, n_states)
    assert set(after) == set(range(other.n_leaves))
    if max(len(graph.paths(leaf)) for leaf in range(graph.n_leaves)) <= 4:
        assert share_leaves(leaves_of(graph, n_states), after)


@given(sized_graphs(), sized_graphs())
def test_same_leaves_is_what_assignments_say(one, other):
    n_states, graph = one
    if n_states == other[0]:
        said = same_leaves(without_impossible_arcs(graph), without_impossible_arcs(other[1]))
        first, second = (leaves_of(without_impossible_arcs(g), n_states) for g in (graph, other[1]))
        assert said == share_leaves(first, second)
    assert same_leaves(graph, graph.simplified())


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1, 2, 0]])
def test_the_order_of_tests_does_not_matter(order):
    assert same_leaves(DecisionGraph.complete([0, 1, 2], [2, 3, 2]), DecisionGraph.complete(order, [2, 3, 2]))
    assert not same_leaves(DecisionGraph.complete([0, 1], [2, 3, 2]), DecisionGraph.complete([2, 1], [2, 3, 2]))
