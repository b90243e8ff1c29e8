"""Regions against brute force: every assignment listed."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import sized_graphs
from strategies import generators

from leafwise.regions import Region, bits_of, flags_of, set_of


def listed(region, n_states):
    """The assignments in a region; boxes must not overlap."""
    out = [
        assignment
        for box in region.boxes
        for assignment in itertools.product(*map(range, n_states))
        if all(states >> assignment[variable] & 1 for variable, states in box.items())
    ]
    assert len(out) == len(set(out))
    return set(out)


def leaf_regions(n_states, graph):
    """A region for each leaf: its paths as boxes, and the assignments that walk to it."""
    walked = [set() for _ in range(graph.n_leaves)]
    for assignment in itertools.product(*map(range, n_states)):
        walked[graph.leaf_of(assignment)].add(assignment)
    boxes = [
        tuple({v: bits_of(states) for v, states in path.items()} for path in graph.paths(leaf))
        for leaf in range(graph.n_leaves)
    ]
    return [Region(box) for box in boxes], walked


@given(st.sets(st.integers(0, 70)))
def test_bits_and_states(states):
    assert np.flatnonzero(flags_of(bits_of(states), 71)).tolist() == sorted(states)
    assert set_of(flags_of(bits_of(states), 71)) == bits_of(states)


def test_everything():
    assert listed(Region.everything(), [2, 3]) == set(itertools.product(range(2), range(3)))
    assert Region.everything().share([2, 3]) == 1
    assert Region.everything().tested() == []
    assert Region.everything().possible(1, 3) == 0b111
    assert Region.everything().shares([1], [2, 3])[0].tolist() == pytest.approx([1 / 3] * 3)


@given(sized_graphs())
def test_leaves_of_a_graph(sized):
    n_states, graph = sized
    n = len(list(itertools.product(*map(range, n_states))))
    for region, walked in zip(*leaf_regions(n_states, graph), strict=True):
        assert listed(region, n_states) == walked
        assert region.share(n_states) == pytest.approx(len(walked) / n)
        for variable, r in enumerate(n_states):
            with_state = [sum(assignment[variable] == state for assignment in walked) for state in range(r)]
            assert region.shares([variable], n_states)[0].tolist() == pytest.approx([count / n for count in with_state])
            assert flags_of(region.possible(variable, r), r).tolist() == [int(with_state[s] > 0) for s in range(r)]


@given(sized_graphs(), generators())
def test_cut(sized, random):
    n_states, graph = sized
    for region, walked in zip(*leaf_regions(n_states, graph), strict=True):
        variable = int(random.integers(len(n_states)))
        bits = int(random.integers(1, 2 ** n_states[variable]))
        part = region.cut(variable, bits, n_states[variable])
        assert listed(part, n_states) == {a for a in walked if bits >> a[variable] & 1}


@given(sized_graphs(), generators())
def test_joining_leaves_in_any_order(sized, random):
    n_states, graph = sized
    regions, walked = leaf_regions(n_states, graph)
    order = random.permutation(graph.n_leaves)
    joined, expected = regions[order[0]], walked[order[0]]
    for leaf in order[1:]:
        joined, expected = joined.join(regions[leaf]), expected | walked[leaf]
        assert listed(joined, n_states) == expected
        assert len(joined.boxes) <= sum(len(region.boxes) for region in regions)
    assert joined.share(n_states) == pytest.approx(1)


def test_boxes_that_differ_in_one_variable_become_one():
    whole = Region.everything()
    parts = [whole.cut(0, 1 << state, 4).cut(1, 0b01, 2) for state in range(3)]
    joined = parts[0].join(parts[2]).join(parts[1])
    assert joined == Region(({0: 0b0111, 1: 0b01},))


def test_a_cut_without_states_is_empty():
    empty = Region.everything().cut(0, 0b01, 2).cut(0, 0b10, 2)
    assert empty.boxes == ()
    assert empty.share([2]) == 0
    assert np.array_equal(empty.shares([0], [2])[0], [0, 0])
    assert empty.possible(0, 2) == 0
