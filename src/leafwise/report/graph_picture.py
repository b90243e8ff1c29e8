"""Decision graphs as pictures: tests, arcs with their states, a bar chart in each leaf. Knows networks and layouts."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.report.layout import Layout, Point, Size, layered
from leafwise.report.pictures import name_size
from leafwise.report.shown_graph import ShownGraph
from leafwise.report.svg import Picture, curve, element, shortened, tip, title, width_of, words
from leafwise.report.text import graph_sizes
from leafwise.table import many

_MOST_STATES = 8  # of a leaf: distributions over more show the likeliest ones
_WIDEST = 1100  # a graph that would be wider grows to the right instead of down
_MANY_ARCS, _FEW_ARCS = 24, 3  # in a graph with many arcs, a leaf has a few, and the others name it
_LINE = 17
_MOST_UNFOLDED, _MOST_PLACES = 40, 36  # leaves of a graph that is drawn whole; places of one that is folded
_FOLD = 96.0  # the least width of what is folded


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
    sizes = graph_sizes(network, variable, node)
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
    def of(cls, network: Network, variable: int, node: Node, folds: "_Folds | None" = None) -> "GraphDrawing":
        """Boxes for tests, leaves and words; then the arcs between them. What is folded is one box."""
        shown = ShownGraph(network, variable, node)
        graph, folds = shown.graph, folds or _Folds(tuple(range(len(shown.graph.tests))), {})
        leaf_numbers, cards = shown.leaf_numbers, _Cards.of(shown)
        tests = [shown.test_name(place) if test != LEAF else "" for place, test in enumerate(graph.tests)]
        below = _n_leaves_below(graph) if folds.drawing else []
        notes, arcs = _noted_arcs(shown, folds)
        sizes = []
        for place in folds.shown:
            width, height = cards.size if place in leaf_numbers else name_size(tests[place])
            sizes.append((max(width, _FOLD), height + 14) if place in folds.drawing else (width, height))
        sizes += [note.size for note in notes]
        layout = layered(sizes, arcs, apart=16, below=20)
        turned = layout.width > _WIDEST
        if turned:
            layout = _turned(layered([(height, width) for width, height in sizes], arcs, apart=12, below=26))
        n = len(folds.shown)
        has_tip = [True] * n + [note.kind != "label" for note in notes]
        parts = list(_arcs(layout, arcs, has_tip, turned))
        parts += [note.drawn(layout.centres[n + k]) for k, note in enumerate(notes)]
        for place, centre, size in zip(folds.shown, layout.centres, sizes, strict=False):
            if place in leaf_numbers:
                parts.append(cards.drawn(leaf_numbers[place], centre))
            elif place in folds.drawing:
                parts.append(_fold(tests[place], below[place], folds.drawing[place], centre, size))
            else:
                parts.append(_test(tests[place], centre, size, shown.is_own(place)))
        return cls(tuple(parts), layout.width, layout.height)


@dataclass(frozen=True)
class _Folds:
    """The places of a graph that are drawn, and which of them are folded: each with the number of its own drawing."""

    shown: tuple[int, ...]
    drawing: dict[int, int]


def folded_drawings(network: Network, variable: int, node: Node) -> list[GraphDrawing]:
    """A decision graph in one drawing, or where it is large the top of it, folded below a depth, and what is below.

    A fold's box has the number of the drawing of what is below it in `data-fold`.
    """
    graph = node.whole_graph
    if graph.n_leaves <= _MOST_UNFOLDED:
        return [GraphDrawing.of(network, variable, node)]
    tops, number, drawings = [0], {0: 0}, []
    for top in tops:  # grows while it is read
        shown, edge = {top}, [top]
        while True:
            level = sorted({child for place in edge for child in graph.children[place]} - shown)
            if not level or (len(shown) + len(level) > _MOST_PLACES and len(shown) > 1):
                break
            shown.update(level)
            edge = level
        folded = [place for place in edge if graph.tests[place] != LEAF and not set(graph.children[place]) <= shown]
        for place in folded:
            if place not in number:
                number[place] = len(tops)
                tops.append(place)
        folds = _Folds(tuple(sorted(shown)), {place: number[place] for place in folded if place != top})
        drawings.append(GraphDrawing.of(network, variable, node, folds))
    return drawings


def _n_leaves_below(graph: DecisionGraph) -> list[int]:
    below: list[set[int]] = [set() for _ in graph.tests]
    for place in reversed(range(len(graph.tests))):
        below[place] = (
            {place} if graph.tests[place] == LEAF else set().union(*(below[c] for c in graph.children[place]))
        )
    return [len(leaves) for leaves in below]


def _fold(name: str, n_leaves: int, drawing: int, centre: Point, size: Size) -> str:
    (x, y), (width, height) = centre, size
    parts = [
        title(f"test of {name}, folded: click to see what is below"),
        element("rect", kind="box fold", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=7),
        words(shortened(name, width - 20), x, y - 2, anchor="middle"),
        words(f"▸ {many(n_leaves, 'leaf', 'leaves')} below", x, y + 14, kind="quiet", anchor="middle"),
    ]
    return element("g", *parts, data_fold=drawing, tabindex=0, role="button")


@dataclass(frozen=True)
class _Note:
    """Words in a box of their own, so that the layout leaves room: the states of an arc, or the leaf it leads to."""

    text: str
    full: str
    kind: str  # of the box: "label" or "leaf named"

    @property
    def size(self) -> Size:
        return width_of(self.text, 12) + 8, 18.0

    def drawn(self, centre: Point) -> str:
        (width, height), (x, y) = self.size, centre
        box = element("rect", kind=self.kind, x=x - width / 2, y=y - 9, width=width, height=height, rx=4)
        kind = "small" if self.kind == "label" else "quiet"
        return element("g", title(self.full), box, words(self.text, x, y + 4, kind=kind, anchor="middle"))


def _noted_arcs(shown: ShownGraph, folds: _Folds) -> tuple[list[_Note], list[tuple[int, int]]]:
    """The notes, numbered after the places drawn; and the arcs, each of which passes the one with its states."""
    graph, leaf_numbers = shown.graph, shown.leaf_numbers
    number = {place: k for k, place in enumerate(folds.shown)}
    open_tests = [place for place in folds.shown if place not in folds.drawing and graph.tests[place] != LEAF]
    n_into = Counter(child for place in open_tests for _, child in graph.arcs(place))
    tangled = n_into.total() > _MANY_ARCS
    reached: set[int] = set()
    notes: list[_Note] = []
    arcs: list[tuple[int, int]] = []

    def add(note: _Note) -> int:
        notes.append(note)
        return len(folds.shown) + len(notes) - 1

    for place in open_tests:
        for arc in shown.arcs(place):
            text = shortened(arc.states.removeprefix("= "), 150, 12)
            label = add(_Note(text if arc.share is None else f"{text} {100 * arc.share:.1f} %", arc.full, "label"))
            child, end = arc.child, number[arc.child]
            if tangled and child in leaf_numbers and n_into[child] > _FEW_ARCS and child in reached:
                name = f"leaf {leaf_numbers[child]}"
                end = add(_Note(name, f"{name}, which is drawn elsewhere", "leaf named"))
            reached.add(child)
            arcs += [(number[place], label), (label, end)]
    return notes, arcs


def _turned(layout: Layout) -> Layout:
    centres = tuple((y, x) for x, y in layout.centres)
    routes = tuple(tuple((y, x) for x, y in route) for route in layout.routes)
    return Layout(centres, routes, layout.height, layout.width)


def _arcs(layout: Layout, arcs: Sequence[tuple[int, int]], has_tip: Sequence[bool], turned: bool) -> Iterator[str]:
    for (_, end), route in zip(arcs, layout.routes, strict=True):
        x, y = route[-1]
        back = 6 if has_tip[end] else 0
        ahead = (x - back, y) if turned else (x, y - back)
        yield element("path", kind="arc", d=curve((*route[:-1], ahead), sideways=turned))
        if has_tip[end]:
            yield tip(x, y, *((1, 0) if turned else (0, 1)))


def _test(name: str, centre: Point, size: Size, is_own: bool) -> str:
    """The box of a test; an own-value test has sharp corners and a border of dashes."""
    (x, y), (width, height) = centre, size
    if is_own:
        box = element("rect", kind="box own", x=x - width / 2, y=y - height / 2, width=width, height=height)
        about = title(f"{name}: the switch between parts of its states")
        return element("g", about, box, words(shortened(name, width - 20), x, y + 4.5, anchor="middle"))
    box = element("rect", kind="box", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=7)
    return element("g", title(f"test of {name}"), box, words(shortened(name, width - 20), x, y + 4.5, anchor="middle"))


@dataclass(frozen=True)
class _Cards:
    """How the leaves of a node are drawn: all alike, so that bars can be compared."""

    of_graph: ShownGraph
    shown: tuple[tuple[int, ...], ...]  # the states of each leaf
    names: float  # the width of the labels
    size: Size

    @classmethod
    def of(cls, graph: ShownGraph) -> "_Cards":
        states = [graph.states(leaf) for leaf in range(graph.graph.n_leaves)]
        most = max(map(len, states))
        shown = list(states)
        if most > _MOST_STATES:
            weights = np.where(graph.probabilities > 0, graph.probabilities, -1.0)
            likeliest = np.argsort(-weights, axis=1, kind="stable")[:, : _MOST_STATES - 1].tolist()
            shown = [
                own if len(own) <= _MOST_STATES else tuple(state for state in row if state in own)
                for own, row in zip(states, likeliest, strict=True)
            ]
        n_lines = min(most, _MOST_STATES) + any(graph.tied(leaf) for leaf in range(len(states)))
        names = min(110.0, max(width_of(label, 11) for label in graph.variable.labels))
        return cls(graph, tuple(shown), names, (names + 134, 26.0 + _LINE * n_lines))

    def drawn(self, leaf: int, centre: Point) -> str:
        """The card of one leaf: its number, its cases, and a bar for each state."""
        width, height = self.size
        left, top = centre[0] - width / 2, centre[1] - height / 2
        head = f"leaf {leaf}"
        cases = self.of_graph.cases[leaf]
        parts = [
            title(f"{head}{': ' + cases if cases else ''}"),
            element("rect", kind="leaf", x=left, y=top, width=width, height=height, rx=7),
            words(head, left + 9, top + 16, kind="quiet"),
            words(cases, left + width - 9, top + 16, kind="quiet", anchor="end"),
        ]
        for line, state in enumerate(self.shown[leaf]):
            parts.append(self._bar(leaf, state, left + 9, top + 24 + _LINE * line))
        n_left, below = (
            len(self.of_graph.states(leaf)) - len(self.shown[leaf]),
            top + 36 + _LINE * len(self.shown[leaf]),
        )
        if n_left:
            parts.append(words(f"and {n_left:,} other states", left + 9, below, kind="quiet"))
        tied = self.of_graph.tied(leaf)
        if tied:
            own = words(shortened(tied, width - 18, 11), left + 9, below + _LINE * bool(n_left), kind="quiet")
            parts.append(element("g", title(tied), own))
        return element("g", *parts)

    def _bar(self, leaf: int, state: int, left: float, top: float) -> str:
        share = float(self.of_graph.probabilities[leaf, state])
        label, x, length = self.of_graph.variable.labels[state], left + self.names + 10, 56
        name = words(shortened(label, self.names, 11), 0, 11.5, kind="small")
        return element(
            "g",
            title(f"{label}: {share:.6g}"),
            # cut off before the bar, however wide the font
            element("svg", name, x=left, y=top, width=self.names + 6, height=_LINE),
            element("rect", kind="track", x=x, y=top + 3, width=length, height=10, rx=2),
            element("rect", kind="bar", x=x, y=top + 3, width=max(length * share, 0.0), height=10, rx=2),
            words(f"{100 * share:.1f} %", left + self.size[0] - 18, top + 11.5, kind="small", anchor="end"),
        )
