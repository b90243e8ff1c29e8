"""Leaves averaged over prunings, against all prunings of small trees, one by one."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from strategies import generators, random_table

import leafwise
import leafwise.examples
from leafwise import DecisionGraph, LeafSearch, Network
from leafwise.averaging import averaged, log_probability_of_test
from leafwise.decision_graph import LEAF
from leafwise.network import Node


def network_of(table, target, graph):
    """A network with one node, whose distribution is of no account."""
    r = table.variables[target].n_states
    node = Node(graph.tested, graph, np.full((graph.n_leaves, r), 1 / r))
    nodes = [node if variable == target else None for variable in range(table.n_variables)]
    return Network(table.variables, tuple(nodes))


def random_tree(random, n_states, others, n_splits):
    graph = DecisionGraph.single()
    for _ in range(n_splits if others else 0):
        variable = int(random.choice(others))
        states = random.permutation(n_states[variable])
        cut = int(random.integers(1, len(states)))
        graph = graph.split(
            int(random.integers(graph.n_leaves)), variable, [states[:cut].tolist(), states[cut:].tolist()]
        )
    return graph


def prunings(graph, node=0):
    """All sets of tests that may be left below a node, each with the node itself or empty."""
    if graph.tests[node] == LEAF:
        return [frozenset()]
    below = [prunings(graph, child) for child in sorted(set(graph.children[node]))]
    return [frozenset(), *(frozenset({node}).union(*parts) for parts in itertools.product(*below))]


def end_of(graph, kept, case):
    node = 0
    while node in kept:
        node = graph.children[node][case[graph.tests[node]]]
    return node


def log_likelihood(counts, alpha):
    total = math.lgamma(alpha * len(counts)) - math.lgamma(alpha * len(counts) + sum(counts))
    return total + sum(math.lgamma(n + alpha) - math.lgamma(alpha) for n in counts)


def expected(table, target, graph, log_go):
    """The distribution in each leaf: a sum over all prunings, each weighed by prior and likelihood."""
    r = table.variables[target].n_states
    alpha, cases = 2 / r, table.codes.T.tolist()
    above = {child: node for node, row in enumerate(graph.children) for child in row}
    found, weights = [], []
    for kept in prunings(graph):
        counts = {}
        for case in cases:
            counts.setdefault(end_of(graph, kept, case), [0] * r)[case[target]] += 1
        ends = {0} if not kept else {c for node in kept for c in graph.children[node]} - kept
        stopped = [node for node in ends if graph.tests[node] != LEAF]
        weight = len(kept) * log_go + len(stopped) * math.log1p(-math.exp(log_go))
        weights.append(weight + sum(log_likelihood(n, alpha) for n in counts.values()))
        rows = []
        for leaf in graph.leaves:
            while leaf not in ends:
                leaf = above[leaf]
            n = np.array(counts.get(leaf, [0] * r))
            rows.append((n + alpha) / (n + alpha).sum())
        found.append(rows)
    weights = np.exp(np.array(weights) - max(weights))
    return np.tensordot(weights / weights.sum(), np.array(found), 1)


@settings(max_examples=60)
@given(generators())
def test_trees_are_averaged_over_all_their_prunings(random):
    table = random_table(random)
    target = int(random.integers(table.n_variables))
    n_states = [variable.n_states for variable in table.variables]
    others = [v for v in range(table.n_variables) if v != target and n_states[v] > 1]
    network = network_of(table, target, random_tree(random, n_states, others, int(random.integers(5))))
    node = averaged(network, table).nodes[target]
    log_go = log_probability_of_test(network, target, network.nodes[target])
    assert node.probabilities == pytest.approx(expected(table, target, node.graph, log_go), rel=1e-6)
    assert node.counts.sum() == table.n_cases


def test_a_shared_leaf_is_judged_as_if_the_others_stayed():
    """Two tests lead to one leaf, and a third leaf is apart: followed by hand."""
    codes = np.array([[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 1, 0, 1, 0, 1, 1]], np.uint8)
    table = leafwise.read(codes.T.astype(str))
    graph = DecisionGraph((0, 1, LEAF, LEAF), ((1, 3), (2, 3), (), ()))
    network = network_of(table, 2, graph)
    log_go = log_probability_of_test(network, 2, network.nodes[2])
    go, stay = math.exp(log_go), 1 - math.exp(log_go)

    def p(*counts):
        return math.exp(log_likelihood(counts, 1.0))

    apart, shared, rest, from_inner = (2, 0), (2, 4), (1, 3), (1, 1)
    inner_stop, inner_go = stay * p(3, 1), go * p(*apart) * p(*shared) / p(*rest)
    inner = inner_stop + inner_go
    stop, on = stay * p(4, 4), go * (inner * p(*shared) / p(*from_inner))
    root_stop, inner_stops = stop / (stop + on), inner_stop / inner
    left = (1 - root_stop) * (1 - inner_stops)
    path = root_stop * 0.5 + (1 - root_stop) * inner_stops * 4 / 6
    found = averaged(network, table).nodes[2].probabilities[:, 0]
    via_inner, direct = (path, left), (root_stop * 0.5, 1 - root_stop)
    mixed = [(2 * a + 4 * b) / 6 for a, b in zip(via_inner, direct, strict=True)]
    assert found == pytest.approx([path + left * 3 / 4, mixed[0] + mixed[1] * 3 / 8], rel=1e-6)


@pytest.fixture(scope="module")
def cases():
    return leafwise.sample(leafwise.examples.alarm(), 400, seed=1)


def test_one_word_grows_trees_and_averages_them(cases):
    found = leafwise.learn(cases, leaves="average")
    trees = leafwise.learn(cases, search=LeafSearch("CBI"), structure_prior="kappa:0.3")
    assert found == averaged(trees, cases)
    assert found.prior is None
    assert found.learned["averaged"]
    new = leafwise.sample(leafwise.examples.alarm(), 1000, seed=2)
    assert found.log_probabilities(new).mean() > trees.log_probabilities(new).mean() + 0.03


def test_what_is_asked_for_besides_is_kept(cases):
    found = leafwise.learn(cases, leaves="average", search=LeafSearch("CM"), structure_prior="choices", target="HRBP")
    plain = leafwise.learn(cases, search=LeafSearch("CM"), structure_prior="choices", target="HRBP")
    assert found == averaged(plain, cases)
    assert leafwise.learn(cases, leaves="plain", target="HRBP") == leafwise.learn(cases, target="HRBP")


def test_saved_and_loaded(cases, tmp_path):
    found = leafwise.learn(cases, leaves="average", target="HRBP")
    found.save(tmp_path / "model.json")
    assert Network.load(tmp_path / "model.json") == found


def test_leaves_that_are_not_known(cases):
    with pytest.raises(ValueError, match="leaves are 'best': give 'plain', 'average' or 'stacked'"):
        leafwise.learn(cases, leaves="best")


@pytest.mark.parametrize("ask", [leafwise.averaged, lambda network, data: leafwise.smoothed(network, data, 4)])
def test_cells_that_are_missing_or_hidden_are_refused_with_what_helps(ask):
    frame = leafwise.sample(leafwise.examples.alarm(), 60, seed=1).to_pandas()[["CO", "BP"]].astype(object)
    network, hidden = leafwise.learn(frame), leafwise.learn(frame, hidden=2)
    gaps = frame.assign(CO=frame["CO"].mask(frame.index < 5))
    with pytest.raises(ValueError, match=r"pass read\(missing='drop'\) to leave these rows out, or use stacked"):
        ask(network, gaps)
    with pytest.raises(ValueError, match="needs cases in which all variables are observed: use stacked"):
        ask(hidden, frame)
    shown = leafwise.sample(hidden, 60, seed=1)
    assert ask(hidden, shown).names == hidden.names
    with pytest.raises(ValueError, match="needs cases in which all variables are observed: use stacked"):
        ask(hidden, shown.to_pandas().assign(**{shown.names[-1]: [None] * 60}))
    for found in (leafwise.stacked(network, gaps), leafwise.stacked(hidden, frame)):
        assert found.learned["stacked"]
