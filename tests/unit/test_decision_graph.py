import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import assignments, graphs, sized_graphs

from leafwise.dag import ancestor_matrix, find_cycle, topological_order
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.questions.routes import flatten


def walk(graph, case):
    """The slow and obvious way to a leaf, by arcs."""
    node = 0
    while graph.tests[node] != LEAF:
        (node,) = [child for states, child in graph.arcs(node) if case[graph.tests[node]] in states]
    return graph.leaves.index(node)


@given(sized_graphs())
def test_every_assignment_reaches_exactly_one_leaf(sized):
    n_states, graph = sized
    graph.validate(n_states)
    paths = [graph.paths(leaf) for leaf in range(graph.n_leaves)]
    for case in assignments(n_states):
        fits = [
            leaf
            for leaf in range(graph.n_leaves)
            for path in paths[leaf]
            if all(case[variable] in states for variable, states in path.items())
        ]
        assert fits == [graph.leaf_of(case)] == [walk(graph, case)]


@given(sized_graphs(), st.data())
def test_split_and_merge_change_what_they_say(sized, data):
    n_states, graph = sized
    leaf = data.draw(st.integers(0, graph.n_leaves - 1))
    variable = data.draw(st.integers(0, len(n_states) - 1))
    groups = [{n_states[variable] - 1}, set(range(n_states[variable] - 1))]
    after = graph.split(leaf, variable, groups)
    old = [k for k in range(graph.n_leaves) if k != leaf]  # the order of the leaves that stay
    for case in assignments(n_states):
        before = graph.leaf_of(case)
        new = len(old) + (case[variable] not in groups[0])
        assert after.leaf_of(case) == (new if before == leaf else old.index(before))
    other = data.draw(st.sampled_from([k for k in range(after.n_leaves) if k != leaf] or [0]))
    if other != leaf and leaf < after.n_leaves:
        merged = after.merge(leaf, other)
        stay = [k for k in range(after.n_leaves) if k not in (leaf, other)]
        for case in assignments(n_states):
            before = after.leaf_of(case)
            assert merged.leaf_of(case) == (stay.index(before) if before in stay else len(stay))
        assert merged.n_leaves == after.n_leaves - 1


def relevant_by_force(graph, n_states):
    def matters(variable):
        return any(
            graph.leaf_of(case) != graph.leaf_of((*case[:variable], state, *case[variable + 1 :]))
            for case in assignments(n_states)
            for state in range(n_states[variable])
        )

    return tuple(variable for variable in range(len(n_states)) if matters(variable))


@given(sized_graphs())
def test_relevant_parents_are_exact_and_the_rest_can_go(sized):
    n_states, graph = sized
    relevant = graph.relevant_parents(n_states)
    assert relevant == relevant_by_force(graph, n_states)
    possible = {graph.leaf_of(case) for case in assignments(n_states)}
    for variable in range(len(n_states)):
        if variable in relevant:
            with pytest.raises(ValueError, match="changes the leaf"):
                graph.without(variable, n_states)
            continue
        less = graph.without(variable, n_states)
        less.validate(n_states)
        assert variable not in less.tested
        pairs = {(graph.leaf_of(case), less.leaf_of(case)) for case in assignments(n_states)}
        assert len(pairs) == len(possible)  # the same partition of the assignments,
        assert [b for _, b in sorted(pairs)] == sorted({b for _, b in pairs})  # in the same order
        if len(possible) == graph.n_leaves:
            assert all(a == b for a, b in pairs)


@given(sized_graphs())
def test_simplified_keeps_the_map_and_the_leaf_numbers(sized):
    n_states, graph = sized
    less = graph.simplified()
    less.validate(n_states)
    assert less.n_leaves == graph.n_leaves
    assert len(less.tests) <= len(graph.tests)
    assert all(graph.leaf_of(case) == less.leaf_of(case) for case in assignments(n_states))
    assert all(len(set(row)) > 1 for row in less.children if row)
    tests = [(test, row) for test, row in zip(less.tests, less.children, strict=True) if row]
    assert len(set(tests)) == len(tests)
    assert less.simplified() == less


def test_simplified_shares_identical_subgraphs():
    graph = DecisionGraph.complete([0, 1], [2, 2])
    graph = graph.merge(0, 2).merge(0, 1)  # (x, y): leaf 0 for y = 0, leaf 1 for y = 1
    assert graph.simplified() == DecisionGraph((1, LEAF, LEAF), ((1, 2), (), ()))
    assert graph.relevant_parents([2, 2]) == (1,)
    assert graph.without(0, [2, 2]).simplified() == graph.simplified()


def test_relevance_sees_impossible_paths():
    # x = 0 → y, x = 1 → one leaf, and below y = 0 the test of x can only come out one way: x itself still matters by y.
    graph = DecisionGraph.single().split(0, 0, [{0}, {1}]).split(0, 0, [{0}, {1}])
    # leaves: x=1, then (x=0 and x=0), (x=0 and x=1: impossible)
    merged = graph.merge(0, 1)
    assert merged.n_leaves == 2
    assert merged.relevant_parents([2]) == ()
    assert merged.without(0, [2]).n_leaves == 1
    assert merged.paths(0) == ()


@pytest.mark.parametrize(("n_variables", "n_states", "merges"), [(10, 2, 0.8), (20, 2, 0.6), (20, 4, 0.8)])
def test_relevant_parents_of_large_graphs_are_fast(n_variables, n_states, merges):
    random = np.random.default_rng(0)
    graph = DecisionGraph.single()
    while graph.n_leaves < 60:
        leaf, variable, state = (int(random.integers(n)) for n in (graph.n_leaves, n_variables, n_states))
        graph = graph.split(leaf, variable, [{state}, set(range(n_states)) - {state}])
        if random.random() < merges and graph.n_leaves > 2:
            graph = graph.merge(*random.permutation(graph.n_leaves)[:2].tolist())
    start = time.perf_counter()
    relevant = graph.relevant_parents([n_states] * n_variables)
    assert time.perf_counter() - start < 2
    cases = random.integers(n_states, size=(200, n_variables))
    for variable in set(graph.tested) - set(relevant):
        changed = cases.copy()
        changed[:, variable] = random.integers(n_states, size=200)
        assert [graph.leaf_of(case) for case in cases] == [graph.leaf_of(case) for case in changed]


@given(sized_graphs())
def test_relevance_is_exact_without_witnesses_too(sized):
    n_states, graph = sized
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leafwise.decision_graph._N_WITNESSES", 0)
        assert graph.relevant_parents(n_states) == relevant_by_force(graph, n_states)


def test_complete_trees_read_the_states_as_digits():
    graph = DecisionGraph.complete([2, 0], [2, 9, 3])
    graph.validate([2, 9, 3])
    cases = [(x, 0, z) for z, x in itertools.product(range(3), range(2))]
    assert [graph.leaf_of(case) for case in cases] == list(range(6))
    assert graph.tested == (0, 2)
    assert graph.n_parameters(4) == 18
    assert DecisionGraph.complete([], []) == DecisionGraph.single()


def test_equality_and_hash_are_by_value():
    one, other = (DecisionGraph.single().split(0, 1, [{0}, {1}]) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)


@given(st.data())
def test_flat_form_leads_where_the_graphs_do(data):
    n_states = [2, 3, 2]
    several = data.draw(st.lists(graphs(n_states), min_size=1, max_size=3))
    flat = flatten(several)
    for graph, root in zip(several, flat.root, strict=True):
        for case in assignments(n_states):
            node = root
            while flat.test[node] >= 0:
                node = flat.child[flat.first[node] + case[flat.test[node]]]
            assert flat.first[node] == graph.leaf_of(case)


@pytest.mark.parametrize("groups", [[{0, 1}], [{0}, {0, 1}], [{0}, {2}], [{0, 1}, set()], [{-1, 0}, {1}]])
def test_split_refuses_groups_that_are_no_partition(groups):
    with pytest.raises(ValueError, match="share out"):
        DecisionGraph.single().split(0, 0, groups)


def test_leaves_that_do_not_exist():
    for call in (lambda g: g.split(1, 0, [{0}, {1}]), lambda g: g.merge(0, -1), lambda g: g.paths(5)):
        with pytest.raises(ValueError, match="no leaf"):
            call(DecisionGraph.single())
    with pytest.raises(ValueError, match="twice"):
        DecisionGraph.complete([0], [2]).merge(1, 1)


@pytest.mark.parametrize(
    ("tests", "children"),
    [
        ((), ()),
        ((LEAF, LEAF), ((), ())),
        ((0, LEAF), ((1, 1, 1), ())),
        ((0, LEAF), ((1, 0), ())),
        ((0, LEAF), ((1, 2), ())),
        ((5, LEAF), ((1, 1), ())),
        ((-2, LEAF), ((1, 1), ())),
        ((LEAF,), ((0,),)),
        ((0, LEAF), ((1, 1),)),
    ],
)
def test_validate_refuses(tests, children):
    with pytest.raises(ValueError, match=r"node|tests"):
        DecisionGraph(tests, children).validate([2, 2])


def test_topological_order_takes_the_smallest_first():
    assert topological_order([[3], [], [1, 0], []]) == (1, 3, 0, 2)
    assert topological_order([]) == ()


def test_cycles_are_named():
    with pytest.raises(ValueError, match="1 → 2 → 3 → 1"):
        topological_order([[], [3], [1, 0], [2]])
    assert find_cycle([[0]]) == (0, 0)
    assert find_cycle([[], [0], [0, 1]]) == ()


@given(st.integers(1, 7), st.data())
def test_ancestors_are_parents_and_their_ancestors(n, data):
    order = data.draw(st.permutations(range(n)))
    parents = [[] for _ in range(n)]
    for place, node in enumerate(order):
        parents[node] = sorted(data.draw(st.sets(st.sampled_from(order[:place])))) if place else []
    matrix = ancestor_matrix(parents)
    for node in range(n):
        expected = set(parents[node]).union(*({k for k in range(n) if matrix[p, k]} for p in parents[node]))
        assert {k for k in range(n) if matrix[node, k]} == expected
