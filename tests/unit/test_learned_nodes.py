"""Networks made of arrays: equal to those made node by node, and refused where these are."""

import copy
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import networks
from strategies import make_table

from leafwise import Constraints, DecisionGraph, LeafSearch, Network, Variable, dag, start_search
from leafwise.learned_nodes import LearnedGraphs, LearnedNodes, network_of
from leafwise.network import Node

RANDOM = np.random.default_rng(1)
FIRST = RANDOM.integers(0, 3, 400)
TABLE = make_table(
    [3, 2, 2, 4], [FIRST, (FIRST + (RANDOM.random(400) < 0.1)) % 2, RANDOM.integers(0, 2, 400), (FIRST * 2) % 4]
)


def learned(**options):
    search = start_search(TABLE, search=LeafSearch(threads=1), **options)
    search.run()
    return search.network


def node_by_node(network):
    nodes = tuple(
        node
        and Node.learned(
            node.parents, DecisionGraph(node.graph.tests, node.graph.children), node.counts, node.exponents
        )
        for node in network.nodes
    )
    return Network(network.variables, nodes, network.prior, network.structure_prior, network.learned)


def drawn_from(network):
    """The arrays that a search with this network would draw."""
    begin, tests, first, children, arcs, leaves = [0], [], [0], [], [], {}
    n_states = [variable.n_states for variable in network.variables]
    for index, node in enumerate(network.nodes):
        if node is not None:
            tests += node.graph.tests
            for row in node.graph.children:
                children += row
                first.append(len(children))
            arcs += [index * len(n_states) + parent for parent in node.parents]
            leaves.setdefault(node.n_states, []).append(node.graph.n_leaves)
        begin.append(len(tests))
    numbers = {
        r: (RANDOM.integers(0, 9, (sum(sizes), r)), RANDOM.random((sum(sizes), r)) + 0.1) for r, sizes in leaves.items()
    }
    begin, tests, first, children, arcs = (np.array(part, np.int64) for part in (begin, tests, first, children, arcs))
    graphs = LearnedGraphs(begin, tests, first, children)
    return LearnedNodes(np.array(n_states), graphs, arcs, ranks(arcs, len(n_states)), numbers)


def ranks(arcs, n):
    """Where each variable is in an order; any numbers if there is none."""
    try:
        return np.argsort(dag.topological_order(dag.parents_at(arcs, n)))
    except ValueError:
        return np.arange(n)


def is_accepted(make):
    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            make()
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "options", [{}, {"target": "b"}, {"prior": "bdeu:4"}, {"constraints": Constraints(max_parents=1)}]
)
def test_a_learned_network_is_the_one_made_node_by_node(options):
    network = learned(**options)
    assert "nodes" not in vars(network)
    assert type(network.nodes) is tuple
    assert network.nodes is network.nodes
    assert network == node_by_node(network)
    assert hash(network) == hash(node_by_node(network))
    assert repr(network) == repr(node_by_node(network))
    assert any(node is not None and node.graph.tested for node in network.nodes)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, replace, lambda it: pickle.loads(pickle.dumps(it))])
def test_a_network_can_be_copied_before_its_nodes_are_made(again):
    assert again(learned()) == learned()


def test_a_learned_network_cannot_be_changed():
    network = learned()
    with pytest.raises(FrozenInstanceError):
        network.nodes = ()
    with pytest.raises(AttributeError, match="no attribute 'node'"):
        _ = network.node
    with pytest.raises(ValueError, match="read-only"):
        network.nodes[0].counts[0, 0] = 1


def test_a_network_stays_as_it_was_when_the_search_goes_on():
    search = start_search(TABLE, search=LeafSearch(threads=1))
    next(search)
    before, same = search.network, search.network
    assert before.nodes
    search.run()
    assert search.network != before
    assert same == before


@given(networks())
def test_arrays_make_the_network_they_came_from(network):
    drawn = drawn_from(network)
    assert drawn.are_sound()
    made = network_of(network.variables, drawn)
    assert [node and (node.parents, node.graph) for node in made.nodes] == [
        node and (node.parents, node.graph) for node in network.nodes
    ]
    assert made == Network(network.variables, drawn.made())


@st.composite
def faulty(draw):
    """Arrays with a number changed at random, which may do or not."""
    drawn = drawn_from(draw(networks(complete=True)))
    n = len(drawn.n_states)
    kind = draw(st.sampled_from(["tests", "children", "counts", "exponents", "arcs", "n_states"]))
    if kind == "arcs":
        arcs = draw(st.sets(st.integers(0, n * n - 1)))
        arcs = np.array(sorted({*arcs, *drawn.arcs.tolist()} if draw(st.booleans()) else arcs), int)
        return replace(drawn, arcs=arcs, ranks=ranks(arcs, n))
    if kind == "n_states":
        n_states = drawn.n_states.copy()
        n_states[draw(st.integers(0, n - 1))] = draw(st.integers(1, 6))
        return replace(drawn, n_states=n_states)
    if kind in ("counts", "exponents"):
        pair = draw(st.sampled_from(sorted(drawn.leaves.items())))[1][kind == "exponents"]
        pair.ravel()[draw(st.integers(0, pair.size - 1))] = draw(
            st.sampled_from([-1, 0, 1, *[np.nan, np.inf] * (kind == "exponents")])
        )
        return drawn
    array = getattr(drawn.graphs, kind)
    if array.size:
        array[draw(st.integers(0, array.size - 1))] = draw(st.integers(-2, 8))
    return drawn


@given(faulty())
def test_checking_all_at_once_finds_what_checking_one_by_one_finds(drawn):
    variables = tuple(Variable(f"v{k}", tuple(map(str, range(r)))) for k, r in enumerate(drawn.n_states.tolist()))
    accepted = is_accepted(lambda: Network(variables, drawn.made()))
    assert drawn.are_sound() == accepted
    assert is_accepted(lambda: network_of(variables, drawn)) == accepted


def test_arrays_that_are_no_graphs_are_not_sound():
    drawn = drawn_from(Network(TABLE.variables, learned().nodes))
    graphs = drawn.graphs
    for place in range(len(graphs.first)):
        first = graphs.first.copy()
        first[place] += 1
        assert not replace(drawn, graphs=replace(graphs, first=first)).are_sound()
    for arcs in (drawn.arcs[::-1], np.repeat(drawn.arcs, 2), drawn.arcs + 16, drawn.arcs - 16):
        with pytest.raises(ValueError, match="are not sorted, or outside"):
            network_of(TABLE.variables, replace(drawn, arcs=arcs))


def test_wrong_ranks_prove_nothing():
    drawn = drawn_from(learned())
    assert len(drawn.arcs)
    for wrong in (np.zeros(len(TABLE.variables), int), drawn.ranks[::-1], drawn.ranks[:-1]):
        again = replace(drawn, ranks=wrong)
        assert not again.are_sound()
        assert network_of(TABLE.variables, again) == network_of(TABLE.variables, drawn)


@pytest.mark.parametrize(
    ("tests", "children"),
    [
        ((0, 0, -1, -1), ((1, 2), (3, 0), (), ())),  # back to the root
        ((0, 0, -1, -1), ((1, 2), (1, 3), (), ())),  # to itself
        ((0, 0, -1, -1), ((1, 2), (3, 4), (), ())),  # to the next graph
        ((0, 0, -1, -1), ((1, 2), (2, 2), (), ())),  # none to a leaf
        ((0, 3, -1, -1), ((1, 2), (2, 3), (), ())),
        ((0, -2, -1, -1), ((1, 2), (2, 3), (), ())),
        ((0, -2, -1, -1), ((1, 2), (), (), ())),
        ((0, 0, -1, -1), ((1, 2, 2), (2, 3), (), ())),
    ],
)
def test_every_fault_of_a_graph_is_found(tests, children):
    first = np.cumsum([0, *map(len, children), 0])
    kids = np.array([child for row in children for child in row])
    graphs = LearnedGraphs(np.array([0, 0, len(tests), len(tests) + 1]), np.array([*tests, -1]), first, kids)
    assert not is_accepted(lambda: graphs.made()[1].validate([2, 2, 2]))
    assert not graphs.are_valid(np.array([2, 2, 2]))


def test_every_leaf_needs_its_numbers():
    drawn = drawn_from(Network(TABLE.variables, learned().nodes))
    sizes = [len(counts) for counts, _ in drawn.leaves.values()]
    assert sizes != sizes[::-1]
    for r, (counts, exponents) in drawn.leaves.items():
        for leaves in (
            {**drawn.leaves, r: (counts[1:], exponents[1:])},
            {**drawn.leaves, r: (np.repeat(counts, 2, axis=0), np.repeat(exponents, 2, axis=0))},
            {k: (np.ones((n, k), int), np.ones((n, k))) for k, n in zip(drawn.leaves, sizes[::-1], strict=True)},
            {other: numbers for other, numbers in drawn.leaves.items() if other != r},
        ):
            with pytest.raises(ValueError, match=r"leaf|leaves"):
                network_of(TABLE.variables, replace(drawn, leaves=leaves))


def test_variables_must_be_those_that_were_drawn():
    with pytest.raises(ValueError, match="3 states, and the variable has 2"):
        network_of((replace(TABLE.variables[0], labels=("0", "1")), *TABLE.variables[1:]), drawn_from(learned()))
