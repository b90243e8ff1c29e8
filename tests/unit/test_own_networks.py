"""Networks with own-value tests and ties, in everything that a network can be asked."""

import math
from pathlib import Path

import numpy as np
import pytest
import random_networks
from hypothesis import given, settings
from network_strategies import assignments, own_networks, own_probability

import leafwise
from leafwise.averaging import averaged
from leafwise.comparison import compare
from leafwise.data.table import Table
from leafwise.decision_graph import DecisionGraph
from leafwise.formats import files
from leafwise.inference.completion import Completions
from leafwise.network import Network, Node
from leafwise.own_tests import OwnTests
from leafwise.scores import score_as_learned
from leafwise.search.incomplete import expectation_maximization
from leafwise.search.leaf_search import LeafSearch
from leafwise.smoothing import smoothed
from leafwise.structure_priors import Kappa

FEW = settings(max_examples=20)
GOLDEN = Path(__file__).parents[1] / "golden" / "network-2.json"


def golden_network_2():
    return Network.load(GOLDEN)


def joint(network):
    """The probability of every combination of states, by the definition of own-value tests."""
    shape = [variable.n_states for variable in network.variables]
    table = np.ones(shape)
    for case in np.ndindex(*shape):
        for target, node in enumerate(network.nodes):
            if node.own is not None:
                table[case] *= own_probability(node.own, case, case[target])
            else:
                table[case] *= node.probabilities[node.graph.leaf_of(case), case[target]]
    return table


def plain(network):
    """The same with names that any format takes."""
    return Network(random_networks.variables([v.n_states for v in network.variables]), network.nodes)


@FEW
@given(own_networks())
def test_answers_are_those_of_the_product_of_switches_and_shares(network):
    network, table = plain(network), joint(network)
    n_states = table.shape
    assert table.sum() == pytest.approx(1)
    cases = Table(network.variables, np.array(assignments(n_states), np.uint8).T.copy())
    with np.errstate(divide="ignore"):
        assert network.log_probabilities(cases) == pytest.approx(np.log(table.ravel()), rel=1e-9)
    known = int(np.argmax(table.sum(axis=tuple(range(1, table.ndim)))))
    for target in range(1, len(n_states)):
        given = {"x0": f"s{known}"}
        answer = network.query(f"x{target}", given=given)[f"x{target}"]
        slice_ = table[known].sum(axis=tuple(a for a in range(table.ndim - 1) if a != target - 1))
        assert list(answer.values()) == pytest.approx((slice_ / slice_.sum()).tolist(), rel=1e-9)
    likeliest = network.explain()
    assert math.exp(likeliest.log_probability) == pytest.approx(table.max(), rel=1e-9)


def test_samples_are_as_often_as_the_product_says():
    network = golden_network_2()
    n, table = 20_000, joint(network)
    sample = network.sample(n, seed=3)
    for target in range(len(network)):
        expected = table.sum(axis=tuple(a for a in range(table.ndim) if a != target))
        seen = np.bincount(sample.codes[target], minlength=len(expected)) / n
        assert abs(seen - expected).max() < 5 * 0.5 / math.sqrt(n)


@pytest.mark.parametrize("suffix", ["bif", "xmlbif", "net", "uai", "xdsl", "xmod", "bn"])
def test_other_formats_hold_the_same_probabilities(suffix, tmp_path):
    network = plain(golden_network_2())
    files.save(network, tmp_path / f"a.{suffix}")
    back = files.load(tmp_path / f"a.{suffix}")
    assert all(node.own is None for node in back.nodes)
    places = [back.names.index(name) if name in back.names else k for k, name in enumerate(network.names)]
    assert joint(back).transpose(places) == pytest.approx(joint(network), rel=1e-12)


def urn(counts, exponents):
    """log p of so many cases of each part, one after the other."""
    total, n, weight = 0.0, 0, sum(exponents)
    for count, exponent in zip(counts, exponents, strict=True):
        for k in range(count):
            total += math.log((exponent + k) / (weight + n))
            n += 1
    return total


@FEW
@given(own_networks(learned=True))
def test_score_adds_up_over_switches_and_leaves(network):
    for target, node in enumerate(network.nodes):
        if node.own is None:
            continue
        expected, own = 0.0, node.own
        for row, parts in enumerate(own.parts):
            of = [[array[row, list(part)].sum() for part in parts] for array in (own.counts, own.exponents)]
            expected += urn(*of)
        score = score_as_learned(network, target, Kappa(0.1))
        assert score.log_marginal_likelihood == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert score.log_prior == pytest.approx(own.n_parameters * math.log(0.1))


def test_an_own_value_test_alone_leaves_the_score_as_it_was():
    """Neutrality: to part the states of a leaf, whose exponents add up in the switch, gains and costs nothing."""
    graph = DecisionGraph((0, 0, -1, -1, -1), ((1, 1, 4, 4), (2, 3, 3, 3), (), (), ()))
    counts, exponents = np.array([5, 0, 7, 2]), np.array([0.3, 1.0, 2.0, 0.7])
    mask = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]])
    parted = OwnTests.learned(graph, counts * mask, exponents * mask, 0)
    variables = random_networks.variables([4])
    whole = Node.learned((), DecisionGraph.single(), counts[None], exponents[None])
    networks = [Network(variables, (node,)) for node in (whole, Node.with_own_tests(parted))]
    scores = [score_as_learned(network, 0, Kappa()).log_score for network in networks]
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)
    assert networks[0].nodes[0].probabilities == pytest.approx(networks[1].nodes[0].probabilities)
    assert networks[0].n_parameters == networks[1].n_parameters


def test_text_names_the_variable_itself():
    assert str(golden_network_2()["shade"]) == (
        "shade, given size: 3 tests, 2 leaves, 3 parameters\n\n"
        "size ≤ M\n"
        "   shade itself: red  61.9 %           leaf 0   6 cases   red 100.0 %\n"
        "   shade itself: other states  38.1 %  leaf 1  12 cases   green  55.8 %  blue  44.2 %\n"
        "size ≥ L or (missing)\n"
        "   shade itself: red  10.0 %           → leaf 0 (above)\n"
        "   shade itself: other states  90.0 %  → leaf 1 (above)"
    )
    assert "tied with leaf 0 of hue (green as blue, blue as green)" in str(golden_network_2()["colour"])


def test_pictures_draw_own_value_tests_differently():
    svg = golden_network_2().plot_node("shade").svg
    assert svg.count('class="box own"') == 2
    assert svg.count('class="box"') == 1
    assert "other states 38.1 %" in svg
    assert "tied with leaf 0 of colour" in golden_network_2().plot_node("hue").svg
    assert golden_network_2().to_dot("shade").count("shape=diamond") == 2


def data(n=300, seed=1):
    """Ten states: how often the first one comes depends on the parent, and what is left of the others does not."""
    random = np.random.default_rng(seed)
    x = random.integers(0, 2, n)
    y = np.where(random.random(n) < np.array([0.8, 0.1])[x], 0, 1 + random.integers(0, 9, n))
    return leafwise.read(np.stack([x, y], axis=1), states=["x1", "x2"])


@pytest.fixture(scope="module")
def learned():
    """What the data say of x2: a switch for each state of x1, and one distribution of all other states."""
    x, y = data().codes
    graph = DecisionGraph((0, 1, 1, -1, -1), ((1, 2), (3, *[4] * 9), (3, *[4] * 9), (), ()))
    rows = [np.bincount(y[x == state], minlength=10) for state in (0, 1)]
    counts = np.array([*rows, sum(rows), sum(rows)])
    counts[2, 1:], counts[3, 0] = 0, 0
    mask = np.array([[1] * 10, [1] * 10, [1] + [0] * 9, [0] + [1] * 9])
    node = Node.with_own_tests(OwnTests.learned(graph, counts, mask * 0.2, 1))
    first = Node.learned((), DecisionGraph.single(), np.bincount(x)[None], np.ones((1, 2)))
    return Network(data().variables, (first, node), "symmetric:2", "choices")


def test_log_score_is_that_of_the_counts(learned):
    scores = leafwise.log_score(learned, data())
    assert scores == leafwise.log_score(learned, data(), prior="auto", structure_prior="auto")
    own = learned.nodes[1].own
    switches = [urn([row[0], row[1:].sum()], [0.2, 1.8]) for row in own.counts[:2]]
    rest = urn(own.counts[3, 1:].tolist(), [0.2] * 9)
    assert scores["x2"].log_marginal_likelihood == pytest.approx(sum(switches) + rest)
    # one parent of one candidate, one test of one way; a partition among ten states and seven beginnings of them
    assert scores["x2"].log_prior == pytest.approx(-math.log(2 * 3) - math.log(4) - math.log(17))
    assert learned.nodes[1].n_parameters == 10  # two switches, and eight for nine states


def test_log_score_pools_what_is_tied():
    network, cases = golden_network_2(), golden_network_2().sample(200, seed=1)
    scores = leafwise.log_score(network, cases, prior="uniform", structure_prior="uniform")
    counts = sum(np.bincount(cases.codes[v], minlength=3)[order] for v, order in ((1, [0, 1, 2]), (3, [0, 2, 1])))
    assert scores["colour"].log_score == pytest.approx(urn(counts.tolist(), [1, 1, 1]))
    assert scores["hue"].log_score == 0
    added = leafwise.log_score(network, cases, prior="bdeu:6", structure_prior="kappa:0.1")
    assert added["colour"].log_score == pytest.approx(urn(counts.tolist(), [4, 4, 4]) + 2 * math.log(0.1))
    choices = leafwise.log_score(network, cases, prior="uniform", structure_prior="choices")
    price = choices["colour"].log_prior + math.log(2)  # a graph without parents has the prior 1/2
    assert price == pytest.approx(-math.log(4))  # no other leaf is over these labels, so there was no choice


def test_smoothing_draws_parts_to_what_is_above(learned):
    own = smoothed(learned, data(), 0).nodes[1].own
    counts = learned.nodes[1].own.counts
    assert np.array_equal(own.counts, counts)
    assert np.array_equal(own.exponents, own.reached * 1.0)
    strong = smoothed(learned, data(), 1e9).nodes[1]
    all_of_them = np.bincount(data().codes[1], minlength=10) + 1.0
    assert strong.probabilities == pytest.approx(np.tile(all_of_them / all_of_them.sum(), (2, 1)), rel=1e-4)
    tied = smoothed(golden_network_2(), golden_network_2().sample(300, seed=1), 8)
    assert tied.ties == golden_network_2().ties
    assert tied.nodes[1].probabilities[0, [0, 2, 1]] == pytest.approx(tied.nodes[3].probabilities[0])


def test_what_does_not_go_together_is_refused_in_a_line(learned):
    calls = [
        lambda: averaged(learned, data()),
        lambda: averaged(plain_tied(), plain_tied().sample(10)),
        lambda: leafwise.learn(data(), search=LeafSearch("CBMO"), leaves="average"),
        lambda: leafwise.learn(data(), search=LeafSearch("CBMO"), networks=3),
        lambda: leafwise.learn(data(), start=learned, target="x2"),
    ]
    said = ["own-value tests", "ties", "operators O", "operators O", "own-value tests or ties"]
    for call, words in zip(calls, said, strict=True):
        with pytest.raises(ValueError, match=words) as refused:
            call()
        assert "\n" not in str(refused.value)


def plain_tied():
    network = golden_network_2()
    without = Node((), DecisionGraph.single(), network.nodes[0].probabilities)
    nodes = (without, network.nodes[1], network.nodes[1], network.nodes[3])
    return Network(network.variables, nodes, ties=network.ties)


def test_what_is_set_is_tied_no_more():
    network = golden_network_2().do({"hue": "red"})
    assert network.ties == ()
    assert golden_network_2().do({"size": "M"}).ties == golden_network_2().ties


def test_expected_counts_of_own_value_tests(learned):
    both = learned
    codes = data().codes.copy()
    whole = next(expectation_maximization(both, Completions(both.variables, codes, seed=1), 1))
    found, before = whole.network.nodes[1].own, both.nodes[1].own
    assert found.counts == pytest.approx(before.counts)
    scores = [score_as_learned(both, target, Kappa()) for target in range(2)]
    assert whole.log_marginal_likelihood == pytest.approx(sum(score.log_score for score in scores))
    codes[0, ::3], codes[1, 1::4] = 9, 9
    rounds = list(expectation_maximization(both, Completions(both.variables, codes, seed=1), 4))
    posteriors = [one.log_posterior for one in rounds]
    assert posteriors == sorted(posteriors)
    last = rounds[-1].network.nodes[1].own
    switches = [row for row in range(len(last.places)) if last.is_switch(row)]
    assert last.counts[switches].sum() == pytest.approx(300)


def test_ties_stay_through_expected_counts():
    network = golden_network_2()
    codes = network.sample(300, seed=1).codes.copy()
    codes[1, ::2], codes[2, 1::3] = 9, 9
    nodes = [n.relearned((n.own or n).counts, (n.own or n).exponents) for n in network.nodes[1:]]
    network = Network(network.variables, (network.nodes[0], *nodes), ties=network.ties)
    rounds = list(expectation_maximization(network, Completions(network.variables, codes, seed=1), 4))
    assert [one.log_posterior for one in rounds] == sorted(one.log_posterior for one in rounds)
    last = rounds[-1].network
    assert last.ties == network.ties
    assert last.nodes[1].counts.sum() == pytest.approx(600)


def test_comparison_sees_own_value_tests(learned):
    without = leafwise.learn(data(), target="x2")
    assert compare(learned, learned).graphs == {}
    assert compare(learned, without).graphs == {"x2": (learned["x2"].n_leaves, without["x2"].n_leaves)}


def test_comparison_ignores_the_order_of_own_value_tests(learned):
    own, places = learned.nodes[1].own, [1, 0, 2, 3]
    graph = DecisionGraph(own.graph.tests, (own.graph.children[0][::-1], *own.graph.children[1:]))
    turned = Node.with_own_tests(OwnTests.learned(graph, own.counts[places], own.exponents[places], 1))
    assert turned != learned.nodes[1]
    assert compare(learned, Network(learned.variables, (learned.nodes[0], turned))).graphs == {}


def test_nodes_move_with_their_variables(learned):
    node = learned.nodes[1]
    moved = node.renumbered(lambda variable: variable + 2)
    assert (moved.parents, moved.own.target, moved.own.parents) == ((2,), 3, (2,))
    assert np.array_equal(moved.probabilities, node.probabilities)


def test_classifiers_take_the_operator():
    pytest.importorskip("sklearn")
    from leafwise.estimators import DecisionGraphClassifier

    cases = data().codes.T
    model = DecisionGraphClassifier(operators="CBMO").fit(cases[:, :1].astype(str), cases[:, 1].astype(str))
    assert model.predict_proba(cases[:5, :1].astype(str)).sum(axis=1) == pytest.approx(np.ones(5))
