"""Pictures: well-formed, complete, and safe whatever the names are."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from network_strategies import networks

import leafwise
from leafwise.data.table import Variable
from leafwise.decision_graph import DecisionGraph
from leafwise.examples import alarm
from leafwise.network import Network, Node
from leafwise.operators import BinarySplit, CompleteSplit, Merge
from leafwise.report import svg
from leafwise.report.dot import network_dot, node_dot
from leafwise.report.steps import plot_steps
from leafwise.report.svg import Picture, printable, shortened, width_of
from leafwise.search.problem import Step

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = ('</script><b onclick="x">', "a & b", "]]>", "x" * 300, "\x00\x1b\ttab", "日本 ≥ 3", "'\"\\", "${x}%%data%%")


def texts(svg):
    return ["".join(found.itertext()) for found in ElementTree.fromstring(svg).iter(SVG + "text")]


def titles(svg):
    return ["".join(found.itertext()) for found in ElementTree.fromstring(svg).iter(SVG + "title")]


def hostile_network():
    variables = tuple(Variable(name, HOSTILE[:3]) for name in HOSTILE)
    single = Node((), DecisionGraph.single(), np.array([[0.2, 0.3, 0.5]]))
    split = Node((0,), DecisionGraph.complete([0], [3]), np.full((3, 3), 1 / 3))
    return Network(variables, (single, *[split] * (len(variables) - 2), None))


@settings(max_examples=40)
@given(networks())
def test_pictures_of_any_network_are_well_formed_and_complete(network):
    svg = network.plot().svg
    assert len(texts(svg)) == len(network.variables)
    ElementTree.fromstring(svg)
    for name, node in zip(network.names, network.nodes, strict=True):
        assert any(title.startswith(printable(name) + ": ") for title in titles(svg))
        assert network.to_dot().count(" [label=") == len(network.variables)
        if node is not None:
            drawn = network.plot_node(name).svg
            heads = [text for text in texts(drawn) if re.fullmatch(r"leaf \d+", text)]
            assert len(set(heads)) == node.graph.n_leaves
            assert network.to_dot(name).count(" -> ") == sum(len(set(row)) for row in node.graph.children)


def test_names_cannot_break_out():
    network = hostile_network()
    for text in (network.plot().svg, network.plot_node(HOSTILE[1]).svg, network._repr_html_()):
        root = ElementTree.fromstring(text)
        assert not [found for found in root.iter() if found.tag in (SVG + "b", SVG + "script")]
        assert not [key for found in root.iter() for key in found.attrib if key.startswith("on")]
    assert any("</script>" in text for text in titles(network.plot().svg))
    quoted = re.findall(r'label="((?:[^"\\]|\\.)*)"\];', network_dot(network))
    assert len(quoted) == len(HOSTILE)
    assert quoted[6] == "'\\\"\\\\"


def test_a_decision_graph_shows_tests_arcs_leaves_and_cases():
    graph = DecisionGraph.single().split(0, 0, [{0}, {1, 2}]).split(1, 1, [{0}, {1}]).merge(0, 2)
    x, y, z = Variable("x", ("a", "b", "c")), Variable("y", ("no", "yes")), Variable("z", ("low", "high"))
    node = Node.learned((0, 1), graph, np.array([[1, 3], [1200, 34]]), np.ones((2, 2)))
    network = Network((x, y, z), (None, None, node))
    shown = texts(network.plot_node("z").svg)
    for text in ("x", "y", "a", "≠ a", "no", "yes", "leaf 0", "4 cases", "1,234 cases", "low", "97.2 %", "66.7 %"):
        assert text in shown
    assert "x = b, c" in titles(network.plot_node("z").svg)
    with pytest.raises(ValueError, match="only given"):
        network.plot_node("x")
    with pytest.raises(ValueError, match="only given"):
        node_dot(network, 0)
    with pytest.raises(ValueError, match="no variable is called"):
        network.plot_node("w")
    for line in ('n0 -> n3 [label="a"];', 'n0 -> n1 [label="≠ a"];', 'label="leaf 1: 1,234 cases\\nlow 0.9717'):
        assert line in node_dot(network, 2)


def test_bars_are_as_long_as_probabilities():
    network = Network((Variable("x", ("a", "b")),), (Node((), DecisionGraph.single(), np.array([[0.25, 0.75]])),))
    root = ElementTree.fromstring(network.plot_node("x").svg)
    lengths = {
        kind: [float(found.get("width")) for found in root.iter() if found.get("class") == kind]
        for kind in ("bar", "track")
    }
    assert [bar / track for bar, track in zip(lengths["bar"], lengths["track"], strict=True)] == [0.25, 0.75]


def test_many_states_and_wide_graphs():
    many = Variable("many", tuple(f"state {k}" for k in range(40)))
    single = Node((), DecisionGraph.single(), np.full((1, 40), 1 / 40))
    split = Node((0,), DecisionGraph.complete([0], [40]), np.full((40, 40), 1 / 40))
    network = Network((many, Variable("other", many.labels)), (single, split))
    assert "and 33 other states" in texts(network.plot_node("many").svg)
    width, height = (
        float(ElementTree.fromstring(network.plot_node("other").svg).get(key)) for key in ("width", "height")
    )
    assert width < height  # it grows to the right, its leaves below each other


def test_leaves_of_a_tangled_graph_are_named_where_they_are_not_drawn():
    n_states = [2] * 6
    graph = DecisionGraph.complete(range(5), n_states)
    while graph.n_leaves > 2:
        graph = graph.merge(0, 2)
    variables = tuple(Variable(f"x{k}", ("no", "yes")) for k in range(6))
    node = Node(tuple(range(5)), graph, np.array([[0.5, 0.5], [0.1, 0.9]]))
    svg = Network(variables, (None,) * 5 + (node,)).plot_node("x5").svg
    drawn = [found.get("class") for found in ElementTree.fromstring(svg).iter(SVG + "rect")]
    n_into = [sum(leaf in row for row in graph.children) for leaf in graph.leaves]
    assert drawn.count("leaf") == 2
    assert drawn.count("leaf named") == sum(n_into) - 2 > 20
    assert [texts(svg).count(f"leaf {k}") for k in (0, 1)] == n_into


def test_saving(tmp_path):
    picture = alarm().plot()
    picture.save(tmp_path / "alarm.svg")
    assert (tmp_path / "alarm.svg").read_text(encoding="utf-8") == picture.svg + "\n" == picture._repr_svg_() + "\n"
    with pytest.raises(ValueError, match=r"use \.svg or \.png"):
        picture.save(tmp_path / "alarm.gif")


def test_png(tmp_path):
    pytest.importorskip("resvg_py", reason="PNG needs the extra plot")
    if not svg._has_fonts():
        pytest.skip("no font that resvg knows is installed")
    picture = alarm().plot_node("SHUNT")
    picture.save(tmp_path / "shunt.PNG", scale=2)
    head = (tmp_path / "shunt.PNG").read_bytes()[:24]
    assert head.startswith(b"\x89PNG\r\n")
    width = float(ElementTree.fromstring(picture.svg).get("width"))
    assert int.from_bytes(head[16:20]) == pytest.approx(2 * width, abs=2)


def test_png_without_fonts(monkeypatch):
    resvg = pytest.importorskip("resvg_py", reason="PNG needs the extra plot")
    monkeypatch.setattr(resvg, "svg_to_bytes", lambda **_: b"words leave no trace")
    with pytest.raises(ValueError, match="no font was found"):
        alarm().plot().png()


def test_png_without_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "resvg_py", None)
    with pytest.raises(ValueError, match="leafwise\\[plot\\]"):
        Picture("<svg/>").png()


def test_notebooks_show_small_networks_and_describe_large_ones():
    assert "<svg" in alarm()._repr_html_()
    single = Node((), DecisionGraph.single(), np.array([[0.5, 0.5]]))
    large = Network(tuple(Variable(f"x{k}", ("0", "1")) for k in range(150)), (single,) * 150)
    assert "<svg" not in large._repr_html_()
    assert "150 variables" in large._repr_html_()


def test_steps_are_told_apart():
    splits = [CompleteSplit(0, 0, 1, (frozenset({0}), frozenset({1})), 1.0), BinarySplit(0, 0, 1, 0, 3, 1.0)]
    operators = [*splits, Merge(0, 0, 1, 0.5), Merge(0, 0, 1, 0.5)]
    steps = [Step(operator, -100.0 + k, 2 + k, 1) for k, operator in enumerate(operators)]
    svg = leafwise.plot_steps(steps).svg
    assert {"1 complete split", "1 binary split", "2 merges", "log score", "step"} <= set(texts(svg))
    coloured = [found.get("stroke") for found in ElementTree.fromstring(svg).iter(SVG + "path") if found.get("stroke")]
    assert len(coloured) == len(set(coloured)) == 3
    assert len(plot_steps(steps * 10_000).svg) < 60_000
    assert texts(plot_steps([]).svg)


def test_words_are_measured_and_cut():
    assert width_of("WWW") > width_of("iii")
    assert width_of("日本") > width_of("ab")
    assert width_of(shortened("a rather long name " * 9, 100)) <= 100
    assert shortened("short", 100) == "short"
