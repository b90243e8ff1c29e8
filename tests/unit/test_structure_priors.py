"""Priors over structures: by name, by hand, and as distributions."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from strategies import generators, random_graph

from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.structure_priors import Arcs, Choices, Kappa, log_ways, structure_prior


def variables(*n_states):
    return [Variable(f"v{k}", tuple(map(str, range(r)))) for k, r in enumerate(n_states)]


@pytest.mark.parametrize("text", ["uniform", "kappa:0.1", "kappa:0.027027", "choices", "arcs"])
def test_structure_priors_by_name(text):
    assert str(structure_prior(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "kappa",
        "kappa:",
        "kappa:0",
        "kappa:-0.1",
        "kappa:1e-300",
        "kappa:1.5",
        "kappa:nan",
        "0.1",
        "choices:2",
        "auto",
    ],
)
def test_unknown_structure_priors(text):
    with pytest.raises(ValueError, match=r"structure prior .* is not known: give 'auto', 'choices'"):
        structure_prior(text)


@pytest.mark.parametrize("number", [np.float64(0.1), np.float32(0.25), np.int64(1), 1])
def test_kappa_of_any_kind_of_number_has_a_name(number):
    assert structure_prior(str(Kappa(number))) == Kappa(number) == Kappa(float(number))


def test_kappa_is_a_number():
    for number in (np.float32(0), 0, -1, math.nan, 10**400):
        with pytest.raises(ValueError, match="and it is a factor for each parameter"):
            Kappa(number)
    with pytest.raises(TypeError, match=r"kappa is '0.1' \(str\), and must be a factor"):
        Kappa("0.1")


def test_kappa_charges_parameters():
    graph = DecisionGraph.complete([0, 1], [2, 3])
    assert Kappa(0.1).log_prior(graph, 4, variables(2, 3), 2) == pytest.approx(6 * 3 * math.log(0.1))
    assert Kappa().log_prior(graph, 4, variables(2, 3), 2) == 0


def test_choices_by_hand():
    own, n = variables(2, 3, 2), 10
    tree = DecisionGraph.single().split(0, 0, [{0}, {1}]).split(1, 1, [{0}, {1, 2}])
    expected = 1 / (3 * 4) / math.comb(10, 2) / 2**2 / 4  # two parents, which; two tests of them; four ways to split v1
    assert math.exp(Choices().log_prior(tree, 2, own, n)) == pytest.approx(expected)
    shared = tree.merge(0, 1)  # of different tests: an arc leads to a leaf that is there
    assert math.exp(Choices().log_prior(shared, 2, own, n)) == pytest.approx(expected / 4)
    siblings = tree.merge(1, 2)  # of one test: its two outcomes say the same, and no arc is shared
    assert math.exp(Choices().log_prior(siblings, 2, own, n)) == pytest.approx(expected)


def test_a_shared_leaf_pays_and_a_shared_test_does_not():
    own = variables(2, 2, 2)
    shared = DecisionGraph.single().split(0, 0, [{0}, {1}]).split(1, 1, [{0}, {1}]).merge(0, 1)  # two tests
    deeper = shared.split(1, 2, [{0}, {1}])  # of the leaf to which two arcs lead: they lead to a test now
    two, three = 1 / (3 * 4) / math.comb(3, 2) / 2**2, 1 / (4 * 5) / 3**3
    assert math.exp(Choices().log_prior(shared, 2, own, 3)) == pytest.approx(two / 4)
    assert math.exp(Choices().log_prior(deeper, 2, own, 3)) == pytest.approx(three)


def test_arcs_are_the_same_for_all_parents():
    own = variables(2, 2, 2, 2, 2)
    for parents in itertools.combinations(range(4), 2):
        assert Arcs().log_prior(DecisionGraph.complete(parents, [2] * 5), 2, own, 3) == pytest.approx(-2 * math.log(4))


@given(generators())
def test_the_way_to_a_graph_does_not_matter(random):
    """Any order of the same splits and merges costs the same, as it is one graph; merging back costs no test less."""
    n_states = random.integers(2, 5, size=4).tolist()
    own = variables(*n_states)
    graph = random_graph(random, 3, n_states, [0, 1, 2], 8)
    again = DecisionGraph(graph.tests, graph.children)
    assert Choices().log_prior(graph, 2, own, 3) == Choices().log_prior(again, 2, own, 3)
    order = random.permutation(3)
    renamed = DecisionGraph(tuple(order[t] if t >= 0 else t for t in graph.tests), graph.children)
    moved = [own[int(np.flatnonzero(order == k)[0])] for k in range(3)] + [own[3]]
    assert Choices().log_prior(renamed, 2, moved, 3) == pytest.approx(Choices().log_prior(graph, 2, own, 3))


def all_trees(variables_left):
    """All decision trees over binary variables, each tested once on a path at most, as nested tuples."""
    yield ()
    for variable in variables_left:
        rest = variables_left - {variable}
        for low, high in itertools.product(all_trees(rest), repeat=2):
            yield variable, low, high


def graph_of(tree):
    graph, todo = DecisionGraph.single(), [(0, tree)]
    while todo:
        leaf, (variable, low, high) = todo.pop() if todo[-1][1] else (None, (None, None, None))
        if leaf is None:
            todo.pop()
            continue
        graph = graph.split(leaf, variable, [{0}, {1}])
        n = graph.n_leaves
        todo = [(k - (k > leaf), t) for k, t in todo] + [(n - 2, low), (n - 1, high)]
    return graph


@pytest.mark.parametrize("n", [1, 2, 3])
def test_trees_of_few_variables_have_a_probability_of_at_most_one(n):
    graphs = [graph_of(tree) for tree in all_trees(frozenset(range(n)))]
    assert len(graphs) == len({(g.tests, g.children) for g in graphs}) > n
    assert sum(math.exp(Choices().log_prior(g, 2, variables(*[2] * n), n)) for g in graphs) <= 1


@pytest.mark.parametrize(
    ("variable", "n_ways"),
    [
        (Variable("a", ("x", "y")), 1),
        (Variable("a", ("x", "y", "z")), 4),
        (Variable("a", ("1", "2", "3"), ordered=True), 4),
        (Variable("a", ("1", "2", "3", "4", "5"), ordered=True), 8),
        (Variable("a", ("1", "2", "3", "4", "(missing)"), missing=True, ordered=True), 10),
    ],
)
def test_ways_to_split(variable, n_ways):
    assert math.exp(log_ways(variable)) == pytest.approx(n_ways)
