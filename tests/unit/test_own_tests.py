"""Own-value tests as values: what they say is the product of the switches on the way and of the leaf's share."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import assignments, own_probability, own_tests, reached_states

import leafwise
from leafwise.data.table import Table, Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node, TiedLeaf
from leafwise.own_expansion import combinations
from leafwise.own_tests import OwnTests, states_at

GRAPH = DecisionGraph((1, 0, 0, LEAF, LEAF), ((1, 2), (3, 4, 4), (3, 4, 4), (), ()))  # y is a, or not, given x
COUNTS = np.array([[6, 1, 2], [0, 3, 4], [6, 0, 0], [0, 4, 6]])
EXPONENTS = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 0], [0, 1, 1.0]])
VARIABLES = (Variable("y", ("a", "b", "c")), Variable("x", ("0", "1")))


def example():
    return OwnTests.learned(GRAPH, COUNTS, EXPONENTS, 0)


@st.composite
def drawn(draw):
    n_states = draw(st.lists(st.integers(2, 4), min_size=1, max_size=4))
    target = draw(st.integers(0, len(n_states) - 1))
    parents = [v for v in range(len(n_states)) if v != target]
    return n_states, draw(own_tests(n_states, target, parents))


@given(drawn())
def test_expanded_form_is_the_product_of_switches_and_shares(drawn):
    n_states, own = drawn
    graph, rows = own.expanded()
    graph.validate(n_states)
    assert own.target not in graph.tested
    met = set()
    for case in assignments(n_states):
        leaf = graph.leaf_of(case)
        met.add(leaf)
        assert rows[leaf].sum() == pytest.approx(1)
        assert rows[leaf, case[own.target]] == pytest.approx(own_probability(own, case, case[own.target]), rel=1e-12)
    assert len(met) == graph.n_leaves  # none that no case reaches


@given(drawn())
def test_states_parts_and_parameters(drawn):
    n_states, own = drawn
    assert np.array_equal(own.reached, reached_states(own.graph, own.target, n_states[own.target]))
    n = 0
    for row, place in enumerate(own.places):
        here = [state for state in range(own.n_states) if own.reached[row, state]]
        ways = {own.graph.children[place][state] for state in here} if own.is_switch(row) else here
        n += len(ways) - 1
        assert sorted(state for part in own.parts[row] for state in part) == here
    assert own.n_parameters == n
    assert pickle.loads(pickle.dumps(own)) == own


def test_learned_means():
    own = example()
    assert own.probabilities[0] == pytest.approx([7 / 12, 5 / 12, 5 / 12])
    assert own.probabilities[3] == pytest.approx([0, 5 / 12, 7 / 12])
    assert (own.n_parameters, own.n_tests, own.n_leaves, own.parents) == (3, 3, 2, (1,))


def changed(array, row, column, value):
    array = np.array(array, float)
    array[row, column] = value
    return array


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: OwnTests(GRAPH, 0, np.ones((3, 3))), "4 own-value tests and leaves: give one row for each"),
        (lambda: OwnTests(DecisionGraph.complete([1], [0, 2]), 0, np.ones((2, 3)) / 3), "no test of its own variable"),
        (lambda: OwnTests(GRAPH, 0, changed(example().probabilities, 2, 0, 0.5)), "does not sum to one"),
        (lambda: OwnTests(GRAPH, 0, changed(example().probabilities, 0, 2, 0.4)), "give them its switch"),
        (lambda: OwnTests(GRAPH, 0, changed(example().probabilities, 3, 0, 0.1)), "that cannot reach"),
        (lambda: OwnTests.learned(GRAPH, changed(COUNTS, 0, 0, -1), EXPONENTS, 0), "counts of at least 0"),
        (lambda: OwnTests.learned(GRAPH, COUNTS, changed(EXPONENTS, 0, 0, 0), 0), "exponents above 0"),
        (lambda: OwnTests.learned(GRAPH, COUNTS[:3], EXPONENTS[:3], 0), "3 rows for 4 distributions: match them"),
        (lambda: OwnTests(GRAPH, 0, example().probabilities, COUNTS), "take both or neither"),
        (
            lambda: OwnTests(DecisionGraph((0, LEAF), ((1, 1, 1), ())), 0, np.ones((2, 3)) / 3),
            "all that reach it, one way: leave the test out",
        ),
        (
            lambda: OwnTests(DecisionGraph((1, 0, LEAF, LEAF), ((1, 2), (2, 3, 3), (), ())), 0, np.ones((3, 3)) / 3),
            "where a distribution has one set of states",
        ),
        (
            lambda: OwnTests(
                DecisionGraph((0, LEAF, 0, LEAF, LEAF), ((1, 2, 2), (), (3, 4, 4), (), ())), 0, np.ones((5, 3)) / 3
            ),
            "no state of the target reaches node 3",
        ),
    ],
)
def test_what_is_no_set_of_own_value_tests_is_refused_in_a_line(make, said):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        make()
    assert said in str(refused.value)


def one_parent_a_state(r):
    """Each of r states has a switch that depends on a parent of its own: 2^(r-1) combinations."""
    tests, children = [], []
    for state in range(r - 1):
        at = 4 * state
        tests += [1 + state, 0, 0, LEAF]
        row = tuple(at + 3 if k == state else at + 4 for k in range(r))
        children += [(at + 1, at + 2), row, row, ()]
    return DecisionGraph((*tests, LEAF), (*children, ()))


def test_combinations_have_a_limit():
    graph = one_parent_a_state(10)
    expanded, ways = combinations(graph, 0, 1023)
    assert (expanded.n_leaves, len(set(ways))) == (512, 512)
    with pytest.raises(ValueError, match="more than 1,022 combinations of distributions"):
        combinations(graph, 0, 1022)


@pytest.mark.parametrize("r", [4, 20])
def test_a_network_need_not_have_a_form_over_parents_alone(r, tmp_path):
    """Saved, scored and asked for the probability of cases without it; only questions need it, and are refused."""
    random, graph = np.random.default_rng(1), one_parent_a_state(r)
    variables = tuple(Variable(f"v{k}", tuple("abcdefghijklmnopqrst"[: r if k == 0 else 2])) for k in range(r))
    table = Table(variables, np.stack([random.integers(v.n_states, size=200) for v in variables]).astype(np.uint8))
    reached = np.array([[k in there for k in range(r)] for there in states_at(graph, 0, r)])
    places = [node for node, test in enumerate(graph.tests) if test in (0, LEAF)]
    own = OwnTests.learned(graph, np.zeros((len(places), r), int), reached[places] * 1.0, 0)
    coin = Node.learned((), DecisionGraph.single(), np.zeros((1, 2), int), np.ones((1, 2)))
    network = Network(variables, (Node.with_own_tests(own), *[coin] * (r - 1)), "uniform", "choices")
    assert network.n_parameters == 2 * (r - 1) + r - 1
    network.save(tmp_path / "model.json")
    assert Network.load(tmp_path / "model.json") == network
    assert math.isfinite(leafwise.log_score(network, table).total)
    found = leafwise.log_probabilities(network, table)
    assert found == pytest.approx(-math.log(r) - (r - 1) * math.log(2))  # exponents of one: all states are as likely
    if r == 20:
        with pytest.raises(ValueError, match="more than 65,536 combinations"):
            network.query("v0")
    else:
        assert network.query("v0")["v0"] == pytest.approx(dict.fromkeys("abcd", 0.25))


def tied(*leaves):
    other = Node.learned((), DecisionGraph.single(), np.array([[6, 4]]), np.ones((1, 2)))
    return Network(VARIABLES, (Node.with_own_tests(example()), other), ties=[leaves])


def test_a_network_with_own_tests_and_ties():
    network = tied(TiedLeaf(0, 3, (2, 1)), TiedLeaf(1, 0, (0, 1)))
    assert (network.n_tests, network.n_leaves, network.n_parameters) == (3, 3, 3)
    assert pickle.loads(pickle.dumps(network)) == network
    assert network != Network(network.variables, network.nodes)
    later = Network.with_nodes_later(network.variables, lambda: network.nodes, ties=network.ties)
    assert later == network


@pytest.mark.parametrize(
    ("leaves", "said"),
    [
        ([TiedLeaf(0, 3, (1, 2)), TiedLeaf(1, 0, (0, 1))], "do not hold the same distribution"),
        ([TiedLeaf(0, 1, (1, 2)), TiedLeaf(1, 0, (0, 1))], "not one of its leaves"),
        ([TiedLeaf(1, 0, (0, 1))], "fewer than two leaves"),
        ([TiedLeaf(0, 3, (0, 2)), TiedLeaf(1, 0, (0, 1))], "not (1, 2): give each once"),
        ([TiedLeaf(1, 0, (0, 1)), TiedLeaf(1, 0, (0, 1))], "tied twice"),
        ([TiedLeaf(1, 0, (0, 1)), TiedLeaf(7, 0, (0, 1))], "no distribution here"),
        ([TiedLeaf(0, 2, (0,)), TiedLeaf(1, 0, (0, 1))], "do not hold the same"),
    ],
)
def test_ties_that_do_not_fit_are_refused_in_a_line(leaves, said):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        tied(*leaves)
    assert said in str(refused.value)


def test_nodes_that_are_not_what_their_own_tests_say_are_refused():
    good, other = Node.with_own_tests(example()), Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    with pytest.raises(ValueError, match=r"build it by Node\.with_own_tests"):
        Network(VARIABLES, (Node((1,), good.graph, good.probabilities[::-1], own=good.own), other))
    with pytest.raises(ValueError, match="leave them to the tests"):
        Node((1,), good.graph, good.probabilities, np.ones((2, 3)), np.ones((2, 3)), good.own)
    alone = DecisionGraph((0, LEAF, LEAF), ((1, 2), (), ()))
    own = OwnTests(alone, 0, np.array([[0.4, 0.6], [1, 0], [0, 1]]))
    with pytest.raises(ValueError, match="are of variable 0: give those of 1"):
        Network(VARIABLES, (good, Node.with_own_tests(own)))
