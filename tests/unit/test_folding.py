"""Large graphs on a page: what is shown is the same graph, fits, and says of what is folded what cases say."""

import re
from itertools import product
from xml.etree import ElementTree

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

import leafwise
from leafwise.data.table import Table, Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.report.folding import Fold, in_order, information
from leafwise.report.graph_picture import folded_drawings
from leafwise.report.shown_graph import ShownGraph, given_cases
from leafwise.report.text import _graph_lines, node_text

N = 9  # parents of the large graph


def large(seed=1):
    """A complete tree over nine coins, some of whose leaves are shared, and some without cases; and its cases."""
    random = np.random.default_rng(seed)
    graph = DecisionGraph.complete(range(N), [2] * N)
    for _ in range(60):
        graph = graph.merge(*random.choice(graph.n_leaves, 2, replace=False).tolist())
    variables = tuple(Variable(f"x{k}", ("no", "yes")) for k in range(N + 1))
    codes = (random.random((N + 1, 700)) < np.linspace(0.2, 0.7, N + 1)[:, None]).astype(np.uint8)
    counts = np.zeros((graph.n_leaves, 2), np.int64)
    for case in codes.T.tolist():
        counts[graph.leaf_of(case), case[N]] += 1
    node = Node.learned(tuple(range(N)), graph, counts, np.ones(counts.shape))
    return Network(variables, (None,) * N + (node,)), Table(variables, codes)


def passing(shown, start, end, codes):
    """The cases that pass an arc, case by case."""
    graph, found = shown.graph, []
    for case in codes.T.tolist():
        place = 0
        while graph.tests[place] != LEAF:
            child = graph.children[place][case[graph.tests[place]]]
            if (place, child) == (start, end):
                found.append(case[shown.index])
            place = child
    return found


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_the_smallest_graph_says_the_same(seed, is_learned):
    random = np.random.default_rng(seed)
    n_states = [2, 3, 2, 2]
    graph = DecisionGraph.complete([0, 1, 2], n_states)
    while graph.n_leaves > 5 and random.random() < 0.8:
        graph = graph.merge(0, 2)
    counts = random.poisson(0.7, (graph.n_leaves, 2))
    node = Node.learned((0, 1, 2), graph, counts, np.ones(counts.shape))
    if not is_learned:
        node = Node((0, 1, 2), graph, node.probabilities)
    variables = tuple(Variable(f"x{k}", tuple("abc"[:r])) for k, r in enumerate(n_states))
    shown = ShownGraph(Network(variables, (None, None, None, node)), 3, node, smallest=True)
    for case in product(*map(range, n_states[:3])):
        place = 0
        while shown.graph.tests[place] != LEAF:
            place = shown.graph.children[place][case[shown.graph.tests[place]]]
        row = shown.probabilities[shown.leaf_numbers[place]]
        assert row.tolist() == node.probabilities[graph.leaf_of(case)].tolist()
    n_unseen = int((counts.sum(axis=1) == 0).sum()) if is_learned else 0
    assert len(shown.stands_for) == max(n_unseen - 1, 0)
    assert shown.graph.n_leaves == graph.n_leaves - len(shown.stands_for)


def test_tests_are_opened_from_the_top_and_each_once():
    network, cases = large()
    for table in (None, cases):
        shown = ShownGraph(network, N, network.nodes[N], True, table)
        worth = information(shown)
        order = list(in_order(shown, worth))
        assert sorted(order) == [place for place, test in enumerate(shown.graph.tests) if test != LEAF]
        assert table is not None or all(worth[place] >= -1e-9 for place in order)
        reached = {0}
        for place in order:
            assert place in reached
            reached.update(shown.graph.children[place])


def test_what_is_folded_says_what_the_cases_say():
    network, cases = large()
    shown = ShownGraph(network, N, network.nodes[N], True, cases)
    for (start, end), flow in list(shown.flows.items())[::40]:
        own = passing(shown, start, end, cases.codes)
        assert flow.tolist() == [own.count(0), own.count(1)]
    assert sum(shown.flows[0, child] for child in set(shown.graph.children[0])).sum() == cases.n_cases
    fold = Fold.below(shown, shown.graph.children[0][0], [0])
    own = passing(shown, 0, shown.graph.children[0][0], cases.codes)
    assert (fold.n_cases, fold.share(1)) == (len(own), f"{100 * own.count(1) / len(own):.1f} %")


def test_without_cases_a_fold_tells_a_range():
    graph = DecisionGraph.complete([0, 1], [2, 2])
    rows = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.5, 0.5]])
    variables = tuple(Variable(f"x{k}", ("no", "yes")) for k in range(3))
    shown = ShownGraph(Network(variables, (None, None, Node((0, 1), graph, rows))), 2, Node((0, 1), graph, rows))
    fold = Fold.below(shown, 2, [0])
    assert (fold.size, fold.states, fold.share(1)) == ("1 test, 2 leaves", [1], "50 to 70 %")
    counts = np.array([[9, 1], [8, 2], [300, 700], [1, 1]])
    node = Node.learned((0, 1), graph, counts, np.ones((4, 2)))
    shown = ShownGraph(Network(variables, (None, None, node)), 2, node)
    assert Fold.below(shown, 2, [0]).share(1) == "70 %"  # two cases in a thousand do not count


@pytest.mark.parametrize("given", [False, True])
def test_a_large_graph_fits_a_page(given):
    network, cases = large()
    name = network.names[N]
    picture, whole = network.plot_node(name, cases=cases if given else None), network.plot_node(name, whole=True)
    size, full = (
        [float(ElementTree.fromstring(one.svg).get(key)) for key in ("width", "height")] for one in (picture, whole)
    )
    assert min(size) < 1250 < 1750 > max(size)
    assert max(full) > 5000
    assert "folded at ▸" in picture.svg
    assert "folded" not in whole.svg
    text = network[name].text(cases=cases if given else None)
    assert text.count("\n") < 66
    assert re.search(r"Not shown: \d+ tests, folded at ▸; \d+ leaves without cases, the same as leaf \d+", text)
    if given:
        assert re.search(r"▸ \d+ cases, \d+ tests, \d+ leaves   yes \d", text)
    everything = network[name].text(whole=True)
    assert all(f"leaf {leaf} " in everything for leaf in range(network.nodes[N].n_leaves))
    assert repr(network[name]) == network[name].text()


def test_a_small_graph_is_shown_whole():
    network = leafwise.examples.alarm()
    for index, name in enumerate(network.names):
        if network.nodes[index].n_leaves < 20:
            assert node_text(network, index) == node_text(network, index, whole=True)
            assert network.plot_node(name).svg == network.plot_node(name, whole=True).svg


def test_the_explorer_has_a_drawing_of_every_fold():
    network, _ = large()
    drawings = folded_drawings(network, N, network.nodes[N])
    numbers = {int(found) for one in drawings for found in re.findall(r'data-fold="(\d+)"', "".join(one.parts))}
    assert numbers == set(range(1, len(drawings)))
    drawn = {found for one in drawings for found in re.findall(r">leaf (\d+)<", "".join(one.parts))}
    shown = ShownGraph(network, N, network.nodes[N], True)
    assert drawn == {str(leaf) for leaf in shown.leaf_numbers.values()}


def test_cases_must_be_of_the_network():
    network, cases = large()
    with pytest.raises(ValueError, match="x9"):
        network.plot_node("x9", cases=Table(cases.variables[:N], cases.codes[:N]))


def test_cases_that_lack_what_the_graph_needs_are_left_out():
    network, cases = large()
    rows = [[cases.variables[v].labels[code] for v, code in enumerate(case)] for case in cases.codes.T.tolist()]
    rows[3][2], rows[5][N], rows[7][0] = None, None, None
    columns = {name: [row[k] for row in rows] for k, name in enumerate(cases.names)}
    shown = ShownGraph(network, N, network.nodes[N], True, given_cases(network, N, pyarrow.table(columns)))
    assert sum(shown.flows[0, child] for child in set(shown.graph.children[0])).sum() == cases.n_cases - 3


def test_cases_that_show_nothing_of_the_graph_are_refused():
    network, cases = large()
    with pytest.raises(ValueError, match="no case shows"):
        node_text(network, N, cases=Table(cases.variables, cases.codes[:, :0]))


def test_a_fold_that_no_case_reaches_tells_no_shares():
    network, cases = large()
    text = node_text(network, N, cases=Table(cases.variables, cases.codes[:, :1].copy()))
    assert re.search(r"▸ [^\n]*\b0 cases, \d+ tests?, \d+ leaves\n", text)
    assert not re.search(r"\b0 cases, [^\n]*%", text.replace("leaves", ""))


def test_text_counts_the_cases_of_all_arcs_into_a_fold():
    variables = tuple(Variable(f"x{k}", ("no", "yes")) for k in range(N + 2))
    below = DecisionGraph.complete(range(2, N + 1), [2] * (N + 1))
    place = [at + 2 for at in range(len(below.tests))]
    tests = (0, 1, *below.tests)
    children = ((2, 1), (2, len(tests)), *(tuple(place[child] for child in row) for row in below.children))
    graph = DecisionGraph((*tests, LEAF), (*children, ()))
    random = np.random.default_rng(1)
    codes = (random.random((N + 2, 4000)) < 0.5).astype(np.uint8)
    counts = np.ones((graph.n_leaves, 2), np.int64)
    node = Node.learned(tuple(range(N + 1)), graph, counts, np.ones(counts.shape))
    network, cases = Network(variables, (None,) * (N + 1) + (node,)), Table(variables, codes)
    shown = ShownGraph(network, N + 1, node, True, cases)
    n_cases = sum(len(passing(shown, start, 2, codes)) for start in (0, 1))
    lines = _graph_lines(shown, [""] * graph.n_leaves, {0, 1})
    assert f"{n_cases:,} cases" in next(right for _, right in lines if "▸" in right)
