"""Prior networks: exponents are sums over the full joint table; a uniform one is bdeu; complete tables get BDe."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from network_strategies import graphs
from oracle import log_likelihood
from oracle_inference import joint_table
from strategies import examples

from leafwise.data.table import Table, Variable, code_type
from leafwise.decision_graph import DecisionGraph
from leafwise.learner import learn, log_score
from leafwise.network import Network, Node
from leafwise.prior_network import PriorNetwork
from leafwise.priors import Bdeu
from leafwise.regions import Region, bits_of
from leafwise.search.graph_arc_search import GraphArcSearch
from leafwise.search.histograms import make_layout
from leafwise.search.leaf_search import LeafSearch
from leafwise.search.restarts import LeafSearchRestarts
from leafwise.search.table_arc_search import TableArcSearch


@st.composite
def positive_networks(draw, most=6):
    """A network over one to six variables whose probabilities are all above zero."""
    n_states = draw(st.lists(st.integers(1, 3), min_size=1, max_size=most))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    order = draw(st.permutations(range(len(n_states))))
    nodes = {}
    for place, index in enumerate(order):
        graph = draw(graphs(n_states, sorted(order[:place]), max_operators=5)) if place else DecisionGraph.single()
        weights = random.random((graph.n_leaves, n_states[index])) + 0.05
        nodes[index] = Node(graph.tested, graph, weights / weights.sum(axis=1, keepdims=True))
    variables = tuple(Variable(f"v{i}", tuple(map(str, range(r)))) for i, r in enumerate(n_states))
    return Network(variables, tuple(nodes[i] for i in range(len(n_states))))


def _prior(network, worth=7.0):
    return PriorNetwork(network, worth, network.names, "network:file:7")


def _layout(n_states):
    allowed = np.ones((len(n_states), len(n_states)), np.uint8)
    np.fill_diagonal(allowed, 0)
    return make_layout(allowed, np.array(n_states), np.arange(len(n_states)))


@pytest.mark.interpreted
@examples(60)
@given(positive_networks(), st.data())
def test_exponents_are_sums_over_the_joint_table(network, data):
    n_states = [variable.n_states for variable in network.variables]
    target = data.draw(st.integers(0, len(n_states) - 1))
    others = [v for v in range(len(n_states)) if v != target]
    graph = data.draw(graphs(n_states, others)) if others else DecisionGraph.single()
    leaf = data.draw(st.integers(0, graph.n_leaves - 1))
    region = Region(tuple({v: bits_of(states) for v, states in path.items()} for path in graph.paths(leaf)))
    table = 7.0 * joint_table(network)
    for case in np.ndindex(*n_states):
        if graph.leaf_of(case) != leaf:
            table[case] = 0
    prior, layout = _prior(network), _layout(n_states)
    own = table.sum(axis=tuple(others))
    np.testing.assert_allclose(prior.leaf_exponents(target, region, np.array(n_states)), own, atol=1e-12)
    rows = prior.exponents(target, region, layout).reshape(-1, n_states[target])
    np.testing.assert_allclose(rows[-1], own, atol=1e-12)
    for other, place in zip(others, layout.rows(target, others), strict=True):
        rest = tuple(v for v in others if v != other)
        pair = table.sum(axis=rest)
        np.testing.assert_allclose(rows[place], pair if other < target else pair.T, atol=1e-12)
        assert ((rows[place] == 0) == ((pair if other < target else pair.T) == 0)).all()


def _cases(network, n_cases, seed):
    random = np.random.default_rng(seed)
    codes = np.array([random.integers(0, v.n_states, n_cases) for v in network.variables])
    codes[-1] = np.where(random.random(n_cases) < 0.7, codes[0] % network.variables[-1].n_states, codes[-1])
    return Table(network.variables, codes.astype(code_type(network.variables)))


@examples(15)
@given(positive_networks(), st.sampled_from(["C", "B", "CBM"]), st.integers(0, 10**6))
def test_a_uniform_prior_network_is_bdeu(tmp_path_factory, network, operators, seed):
    uniform = Network(
        network.variables,
        tuple(Node((), DecisionGraph.single(), np.full((1, v.n_states), 1 / v.n_states)) for v in network.variables),
    )
    file = tmp_path_factory.mktemp("prior") / "uniform.json"
    uniform.save(file)
    table = _cases(network, 60, seed)
    search = LeafSearch(operators=operators)
    learned = learn(table, search=search, prior=f"network:{file}:7")
    plain = learn(table, search=search, prior="bdeu:7")
    assert learned.prior == f"network:{file}:7"
    one, other = (log_score(n, table, prior=p) for n, p in ((learned, f"network:{file}:7"), (plain, "bdeu:7")))
    assert sum(s.log_score for s in one.values()) == pytest.approx(sum(s.log_score for s in other.values()), abs=1e-9)
    assert [node.graph for node in learned.nodes] == [node.graph for node in plain.nodes]


def test_complete_tables_get_the_bde_score(tmp_path):
    """Heckerman, Geiger and Chickering: exponents of a table's cells are shares of the prior network's joint."""
    shape = [2, 3, 2]
    variables = tuple(Variable(name, tuple(map(str, range(r)))) for name, r in zip("abc", shape, strict=True))
    random = np.random.default_rng(5)
    parents_of = ((), (0,), (0, 1))
    nodes = []
    for target, parents in enumerate(parents_of):
        graph = DecisionGraph.complete(parents, shape)
        nodes.append(Node(parents, graph, random.dirichlet(np.ones(shape[target]), graph.n_leaves)))
    network = Network(variables, tuple(nodes))
    network.save(tmp_path / "prior.bif")
    table = _cases(network, 80, seed=3)
    worth, expected = 5.0 * joint_table(network), 0.0
    for target, parents in enumerate(parents_of):
        others = tuple(v for v in range(3) if v not in (*parents, target))
        for case in np.ndindex(*(shape[v] for v in parents)):
            there = np.ones(80, bool)
            for parent, state in zip(parents, case, strict=True):
                there &= table.codes[parent] == state
            counts = np.bincount(table.codes[target][there], minlength=shape[target])
            expected += log_likelihood(counts.tolist(), worth.sum(axis=others)[case].tolist())
    scores = log_score(network, table, prior=f"network:{tmp_path / 'prior.bif'}:5", structure_prior="uniform")
    assert sum(score.log_score for score in scores.values()) == pytest.approx(expected, abs=1e-9)


@examples(10)
@given(positive_networks(), st.integers(0, 10**6))
def test_every_search_that_takes_a_prior_network_scores_by_it(tmp_path_factory, network, seed):
    file = tmp_path_factory.mktemp("prior") / "prior.json"
    network.save(file)
    prior, table = f"network:{file}:9", _cases(network, 60, seed)
    for search in (
        LeafSearch(),
        LeafSearch(schedule="best-first"),
        GraphArcSearch(max_steps=6),
        LeafSearchRestarts(rounds=2),
    ):
        learned = learn(table, search=search, prior=prior)
        scores = log_score(learned, table, prior=prior)
        assert learned.learned["log_score"] == pytest.approx(sum(s.log_score for s in scores.values()), abs=1e-7)
    with pytest.raises(ValueError, match="complete tables got the prior 'network:"):
        learn(table, search=TableArcSearch(), prior=prior)


def test_scores_need_a_prior_network_with_the_same_states(tmp_path):
    node = Node((), DecisionGraph.single(), np.array([[0.3, 0.7]]))
    network = Network((Variable("a", ("no", "yes")),), (node,))
    Network((Variable("a", ("yes", "no")),), (node,)).save(tmp_path / "other.json")
    table = Table(network.variables, np.array([[0, 1, 1]], np.uint8))
    with pytest.raises(ValueError, match="prior network has other states of 'a', or another order"):
        log_score(network, table, prior=f"network:{tmp_path / 'other.json'}:5", structure_prior="uniform")


def test_bdeu_exponents_are_those_of_a_uniform_network():
    variables = tuple(Variable(f"v{i}", tuple(map(str, range(r)))) for i, r in enumerate((2, 3, 4)))
    uniform = Network(
        variables,
        tuple(Node((), DecisionGraph.single(), np.full((1, v.n_states), 1 / v.n_states)) for v in variables),
    )
    region, n_states = Region(({1: 0b011}, {1: 0b100, 2: 0b0110})), np.array([2, 3, 4])
    expected = Bdeu(7.0).leaf_exponents(0, region, n_states)
    np.testing.assert_allclose(_prior(uniform).leaf_exponents(0, region, n_states), expected, rtol=1e-12)


def _ordered_cases(n_cases, seed):
    """Cases of a number x, of whether it is large, and of a number near it, with some noise."""
    random = np.random.default_rng(seed)
    x = random.integers(5, size=n_cases)
    is_large = np.where(random.random(n_cases) < 0.9, x > 2, random.integers(2, size=n_cases))
    variables = tuple(
        Variable(n, tuple(map(str, range(r))), ordered=True) for n, r in zip("xyz", (5, 2, 6), strict=True)
    )
    return Table(variables, np.array([x, is_large, x + random.integers(2, size=n_cases)], np.uint8))


@pytest.mark.parametrize("operators", ["I", "CBIM"])
@pytest.mark.parametrize("seed", range(8))
def test_no_split_leaves_a_child_without_cases(operators, seed):
    """Sums of such weights differ in their last digits if they are added in another order."""
    cases, prior = _ordered_cases(60, seed), _prior(learn(_ordered_cases(50, 100 + seed)))
    how = {"search": LeafSearch(operators, max_steps=300), "prior": prior, "structure_prior": "uniform"}
    network = learn(cases, weights=np.full(60, 1.0267), **how)
    assert network.learned["stopped"] == "no operator gains"
    assert all((node.counts.sum(axis=1) > 0.5).all() for node in network.nodes)
