"""Networks and decision graphs as pictures. Knows networks and layouts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.report.layout import Layout, Point, Size, layered
from leafwise.report.map_layout import arranged, is_small
from leafwise.report.svg import Picture, curve, element, shortened, tip, title, width_of, words
from leafwise.report.text import arc_states, many
from leafwise.table import Variable

_MOST_STATES = 8  # of a leaf: distributions over more show the likeliest ones
_WIDEST = 1100  # a decision graph that would be wider grows to the right instead of down
_NAME = 200  # the widest name
_LINE = 17
_MOST_SHOWN = 100  # variables: more are drawn in a notebook only when asked for


def network_picture(network: Network) -> Picture:
    """The variables and arcs: in rows, parents above children, or for a large network as a map.

    >>> from leafwise.examples import alarm
    >>> network_picture(alarm()).svg.count("<rect") > 37
    True
    """
    sizes = [name_size(name) for name in network.names]
    layout = arranged(sizes, network.arcs)
    parts = list(_arcs(layout, sizes, network.arcs))
    for variable, ((x, y), (width, height)) in enumerate(zip(layout.centres, sizes, strict=True)):
        node, name = network.nodes[variable], network.names[variable]
        box = element(
            "rect", kind="given" if node is None else "box", x=x - width / 2, y=y - height / 2, width=width,
            height=height, rx=7,
        )  # fmt: skip
        parts.append(
            element(
                "g", title(about(network, variable)), box, words(shortened(name, _NAME), x, y + 4.5, anchor="middle")
            )
        )
    return Picture.of(parts, layout.width, layout.height, _sizes(network))


def network_html(network: Network) -> str:
    """For notebooks: the sizes in a line, and the picture of a network that is not too large for one."""
    line = f"{_sizes(network)}, {many(network.n_leaves, 'leaf', 'leaves')}"
    if len(network.variables) > _MOST_SHOWN:
        return element("p", f"{line}. network.plot() draws it, network.plot_node(name) the graph of one variable.")
    return element("div", element("p", line), network_picture(network).svg)


def name_size(name: str) -> Size:
    """The size of a variable's box."""
    return width_of(shortened(name, _NAME)) + 22, 28.0


def _sizes(network: Network) -> str:
    return f"A network of {many(len(network.variables), 'variable')} and {many(len(network.arcs), 'arc')}"


def about(network: Network, variable: int) -> str:
    """A variable in a few words: its name, states, and the size of its graph."""
    one, node = network.variables[variable], network.nodes[variable]
    text = f"{one.name}: {many(one.n_states, 'state')}"
    if node is None:
        return text + ", given"
    parents = many(len(node.parents), "parent")
    return f"{text}, {parents}, {many(node.graph.n_leaves, 'leaf', 'leaves')}"


def _arcs(layout: Layout, sizes: Sequence[Size], arcs: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Curves between rows, or in a map straight lines, which stop at the border of the box they lead to."""
    kind = "arc" if is_small(len(sizes), arcs) else "faint"
    for (start, end), route in zip(arcs, layout.routes, strict=True):
        if not route:
            (x0, y0), (x1, y1) = layout.centres[start], layout.centres[end]
            length = max(np.hypot(x1 - x0, y1 - y0), 1e-9)
            dx, dy = (x1 - x0) / length, (y1 - y0) / length
            back = min(sizes[end][k] / 2 / max(abs(d), 1e-9) for k, d in enumerate((dx, dy)))
            x1, y1 = x1 - dx * back, y1 - dy * back
            yield element("path", kind="faint", d=f"M{x0:.0f},{y0:.0f}L{x1:.0f},{y1:.0f}")
            yield tip(x1, y1, dx, dy, size=6, kind="faint tip")
        else:
            x, y = route[-1]
            yield element("path", kind=kind, d=curve((*route[:-1], (x, y - 6))))
            yield tip(x, y)


def node_picture(network: Network, variable: int) -> Picture:
    """A variable's decision graph: tests, arcs with their states, and in each leaf a bar for each state.

    >>> from leafwise.examples import alarm
    >>> "LVFAILURE" in node_picture(alarm(), 0).svg
    True
    """
    node, name = network.nodes[variable], network.names[variable]
    if node is None:
        raise ValueError(f"{name!r} is only given in this network and has no decision graph: choose another variable.")
    graph = GraphDrawing.of(network, variable, node)
    sizes = f"{many(node.graph.n_leaves, 'leaf', 'leaves')}, {many(node.n_parameters, 'parameter')}"
    head = [words(shortened(name, 600), 0, 12, kind="strong"), words(sizes, 0, 29, kind="quiet")]
    body = element("g", *graph.parts, transform="translate(0 46)")
    width = max(graph.width, width_of(shortened(name, 600)) * 1.1, width_of(sizes, 11))
    return Picture.of([*head, body], width, graph.height + 46, f"The decision graph of {name}")


@dataclass(frozen=True)
class GraphDrawing:
    """The elements of a decision graph's picture, and its size."""

    parts: tuple[str, ...]
    width: float
    height: float

    @classmethod
    def of(cls, network: Network, variable: int, node: Node) -> "GraphDrawing":
        """Boxes for tests, labels and leaves; then the arcs between them."""
        graph = node.graph
        leaf_numbers = {place: leaf for leaf, place in enumerate(graph.leaves)}
        cards = _Cards.of(node, network.variables[variable])
        tests = [network.variables[test].name if test != LEAF else "" for test in graph.tests]
        sizes = [cards.size if place in leaf_numbers else name_size(tests[place]) for place in range(len(graph.tests))]
        labels, arcs = _labelled_arcs(graph, network.variables)
        sizes += [(width_of(label, 12) + 8, 18.0) for label, _ in labels]
        layout = layered(sizes, arcs, apart=16, below=20)
        turned = layout.width > _WIDEST
        if turned:
            layout = _turned(layered([(h, w) for w, h in sizes], arcs, apart=12, below=26))
        parts = list(_graph_arcs(layout, arcs, len(graph.tests), turned))
        parts += [_label(label, full, layout.centres[len(tests) + k]) for k, (label, full) in enumerate(labels)]
        for place, centre in enumerate(layout.centres[: len(tests)]):
            if place in leaf_numbers:
                parts.append(cards.drawn(leaf_numbers[place], centre))
            else:
                parts.append(_test(tests[place], centre, sizes[place]))
        return cls(tuple(parts), layout.width, layout.height)


def _labelled_arcs(
    graph: DecisionGraph, variables: Sequence[Variable]
) -> tuple[list[tuple[str, str]], list[tuple[int, int]]]:
    """Each arc's label, short and in full; and the arcs to and from the labels, which are boxes of their own."""
    labels: list[tuple[str, str]] = []
    arcs: list[tuple[int, int]] = []
    for place, test in enumerate(graph.tests):
        for states, child in graph.arcs(place) if test != LEAF else ():
            tested = variables[test]
            full = f"{tested.name} = {', '.join(tested.labels[state] for state in sorted(states))}"
            arcs += [(place, len(graph.tests) + len(labels)), (len(graph.tests) + len(labels), child)]
            labels.append((shortened(arc_states(tested, states).removeprefix("= "), 150, 12), full))
    return labels, arcs


def _turned(layout: Layout) -> Layout:
    centres = tuple((y, x) for x, y in layout.centres)
    routes = tuple(tuple((y, x) for x, y in route) for route in layout.routes)
    return Layout(centres, routes, layout.height, layout.width)


def _graph_arcs(layout: Layout, arcs: Sequence[tuple[int, int]], n_places: int, turned: bool) -> Iterator[str]:
    for (_, end), route in zip(arcs, layout.routes, strict=True):
        x, y = route[-1]
        into = end < n_places
        ahead = ((x - 6, y) if turned else (x, y - 6)) if into else (x, y)
        yield element("path", kind="arc", d=curve((*route[:-1], ahead), sideways=turned))
        if into:
            yield tip(x, y, *((1, 0) if turned else (0, 1)))


def _label(text: str, full: str, centre: Point) -> str:
    width, (x, y) = width_of(text, 12) + 8, centre
    back = element("rect", kind="label", x=x - width / 2, y=y - 9, width=width, height=18, rx=4)
    return element("g", title(full), back, words(text, x, y + 4, kind="small", anchor="middle"))


def _test(name: str, centre: Point, size: Size) -> str:
    (x, y), (width, height) = centre, size
    box = element("rect", kind="box", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=7)
    return element("g", title(f"test of {name}"), box, words(shortened(name, _NAME), x, y + 4.5, anchor="middle"))


@dataclass(frozen=True)
class _Cards:
    """How the leaves of a node are drawn: all alike, so that bars can be compared."""

    node: Node
    variable: Variable
    shown: tuple[tuple[int, ...], ...]  # the states of each leaf
    names: float  # the width of the labels
    size: Size

    @classmethod
    def of(cls, node: Node, variable: Variable) -> "_Cards":
        states = tuple(range(variable.n_states))
        shown = [states] * node.graph.n_leaves
        if variable.n_states > _MOST_STATES:
            likeliest = np.argsort(-node.probabilities, axis=1, kind="stable")[:, : _MOST_STATES - 1]
            shown = [tuple(row) for row in likeliest.tolist()]
        n_lines = min(variable.n_states, _MOST_STATES)
        names = min(110.0, max(width_of(label, 11) for label in variable.labels))
        return cls(node, variable, tuple(shown), names, (names + 130, 26.0 + _LINE * n_lines))

    def drawn(self, leaf: int, centre: Point) -> str:
        """The card of one leaf: its number, its cases, and a bar for each state."""
        width, height = self.size
        left, top = centre[0] - width / 2, centre[1] - height / 2
        head = f"leaf {leaf}"
        cases = "" if self.node.counts is None else many(int(self.node.counts[leaf].sum()), "case")
        parts = [
            title(f"{head}{': ' + cases if cases else ''}"),
            element("rect", kind="leaf", x=left, y=top, width=width, height=height, rx=7),
            words(head, left + 9, top + 16, kind="quiet"),
            words(cases, left + width - 9, top + 16, kind="quiet", anchor="end"),
        ]
        for line, state in enumerate(self.shown[leaf]):
            parts.append(self._bar(leaf, state, left + 9, top + 24 + _LINE * line))
        if len(self.shown[leaf]) < self.variable.n_states:
            more = f"and {self.variable.n_states - len(self.shown[leaf]):,} other states"
            parts.append(words(more, left + 9, top + 36 + _LINE * len(self.shown[leaf]), kind="quiet"))
        return element("g", *parts)

    def _bar(self, leaf: int, state: int, left: float, top: float) -> str:
        share = float(self.node.probabilities[leaf, state])
        label, x, length = self.variable.labels[state], left + self.names + 6, 56
        return element(
            "g",
            title(f"{label}: {share:.6g}"),
            words(shortened(label, self.names, 11), left, top + 11.5, kind="small"),
            element("rect", kind="track", x=x, y=top + 3, width=length, height=10, rx=2),
            element("rect", kind="bar", x=x, y=top + 3, width=max(length * share, 0.0), height=10, rx=2),
            words(f"{100 * share:.1f} %", left + self.size[0] - 18, top + 11.5, kind="small", anchor="end"),
        )
