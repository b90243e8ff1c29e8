"""Decision graphs as pictures: tests, arcs with their states, and a bar chart in each leaf."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node
from leafwise.report.folding import Fold, in_order, information, most_that_fit
from leafwise.report.layout import Layout, Point, Size, layered
from leafwise.report.pictures import name_size
from leafwise.report.shown_graph import ShownGraph, given_cases
from leafwise.report.svg import Picture, curve, element, shortened, tip, title, width_of, words
from leafwise.report.text import graph_sizes, not_shown

_MOST_STATES = 8  # of a leaf; distributions over more states show the most probable ones
_WIDEST = 1100  # a graph that would be wider is laid out from left to right instead
_MANY_ARCS, _FEW_ARCS = 24, 3  # with more arcs in a graph and to a leaf, one leads to it, and others name it
_LINE = 17
_HEAD = 46  # the height of the head: name and sizes
_MOST_OPEN = 60  # tests; more never fit on a page
_PAGE = (1190.0, 1680.0)  # the largest picture that is readable on a page of A4, in either orientation
_MOST_UNFOLDED, _MOST_PLACES = 40, 36  # in the explorer: leaves of a graph that is drawn whole, else places per drawing


def node_picture(network: Network, variable: int, *, whole: bool = False, cases: Any = None) -> Picture:
    """A variable's decision graph: tests, arcs with their states, and in each leaf a bar for each state.

    A graph that is too large for a page is folded unless `whole`. `cases`: the cases whose shares are shown in folds.

    >>> from leafwise.examples import alarm
    >>> "LVFAILURE" in node_picture(alarm(), 0).svg
    True
    """
    node, name = network.nodes[variable], network.names[variable]
    if node is None:
        raise ValueError(f"{name!r} is only given in this network and has no decision graph: choose another variable.")
    shown = ShownGraph(network, variable, node, not whole, given_cases(network, variable, cases))
    graph, n_open = _page(shown, whole)
    left_out = not_shown(shown, n_open)
    sizes = graph_sizes(network, variable, node) + (f"; not shown: {left_out}" if left_out else "")
    head = [words(shortened(name, 600), 0, 12, kind="strong"), words(sizes, 0, 29, kind="quiet")]
    body = element("g", *graph.parts, transform=f"translate(0 {_HEAD})")
    width = max(graph.width, width_of(shortened(name, 600)) * 1.1, width_of(sizes, 11))
    return Picture.of([*head, body], width, graph.height + _HEAD, f"The decision graph of {name}")


@dataclass(frozen=True)
class GraphDrawing:
    """The elements of a decision graph's picture, and its size."""

    parts: tuple[str, ...]
    width: float
    height: float

    @classmethod
    def of(cls, shown: ShownGraph, opened: Sequence[int], numbers: Mapping[int, int] | None = None) -> "GraphDrawing":
        """Boxes for tests, leaves and notes, then the arcs between them. Tests that are not opened are folded.

        `opened`: the top first, and places with everything in between. `numbers`: the numbers of the drawings of folded
        parts.
        """
        graph, leaf_numbers, cards = shown.graph, shown.leaf_numbers, _Cards.of(shown)
        places = _places(graph, opened)
        closed = [place for place in sorted({*places} - {*opened}) if graph.tests[place] != LEAF]
        folds = {place: Fold.below(shown, place, opened) for place in closed}
        notes, arcs = _noted_arcs(shown, places, opened)
        sizes = [
            cards.size
            if place in leaf_numbers
            else cards.fold_size(folds[place])
            if place in folds
            else name_size(shown.test_name(place))
            for place in places
        ]
        sizes += [note.size for note in notes]
        layout = layered(sizes, arcs, apart=16, below=20)
        turned = layout.width > _WIDEST
        if turned:
            layout = _turned(layered([(height, width) for width, height in sizes], arcs, apart=12, below=26))
        n = len(places)
        has_tip = [True] * n + [note.kind != "label" for note in notes]
        parts = list(_arcs(layout, arcs, has_tip, turned))
        parts += [note.drawn(layout.centres[n + k]) for k, note in enumerate(notes)]
        for place, centre, size in zip(places, layout.centres, sizes, strict=False):
            if place in leaf_numbers:
                parts.append(cards.drawn(leaf_numbers[place], centre))
            elif place in folds:
                parts.append(
                    cards.folded(shown.test_name(place), folds[place], centre, numbers.get(place) if numbers else None)
                )
            else:
                parts.append(_test(shown.test_name(place), centre, size, shown.is_own(place)))
        return cls(tuple(parts), layout.width, layout.height)

    @property
    def fits(self) -> bool:
        """Whether it is readable on a page, including its head."""
        sides = sorted((self.width, self.height + _HEAD))
        return sides[0] <= _PAGE[0] and sides[1] <= _PAGE[1]


def _places(graph: DecisionGraph, opened: Sequence[int]) -> list[int]:
    """The places that are drawn: opened tests, and the ends of their arcs."""
    return sorted({*opened, *(child for place in opened for child in graph.children[place])} or {0})


def _page(shown: ShownGraph, whole: bool) -> tuple[GraphDrawing, int]:
    """The drawing of as many tests as fit on a page, or of all; and the number of these tests."""
    order = list(in_order(shown, information(shown)))
    most = len(order) if whole else min(len(order), _MOST_OPEN)
    if most == len(order):
        drawing = GraphDrawing.of(shown, order)
        if whole or drawing.fits:
            return drawing, most
    n_open = most_that_fit(most, lambda n: GraphDrawing.of(shown, order[:n]).fits)
    return GraphDrawing.of(shown, order[:n_open]), n_open


def folded_drawings(network: Network, variable: int, node: Node) -> list[GraphDrawing]:
    """A decision graph as one drawing, or if it is large, as drawings of its top and of each folded part.

    The box of a fold has the number of the drawing of its contents in `data-fold`.
    """
    shown = ShownGraph(network, variable, node, smallest=True)
    if shown.graph.n_leaves <= _MOST_UNFOLDED:
        return [GraphDrawing.of(shown, list(in_order(shown, information(shown))))]
    tops, number, drawings, worth = [0], {0: 0}, [], information(shown)
    for top in tops:  # grows during the loop
        opened: list[int] = []
        for place in in_order(shown, worth, top):
            if opened and len(_places(shown.graph, [*opened, place])) > _MOST_PLACES:
                break
            opened.append(place)
        for place in _places(shown.graph, opened):
            if place not in opened and place not in number and shown.graph.tests[place] != LEAF:
                number[place] = len(tops)
                tops.append(place)
        drawings.append(GraphDrawing.of(shown, opened, number))
    return drawings


@dataclass(frozen=True)
class _Note:
    """A text in a box of its own, so that the layout leaves room: the states of an arc, or the leaf it leads to."""

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


def _noted_arcs(
    shown: ShownGraph, places: Sequence[int], opened: Sequence[int]
) -> tuple[list[_Note], list[tuple[int, int]]]:
    """The notes, numbered after the places; and the arcs, each through the note with its states."""
    graph, leaf_numbers = shown.graph, shown.leaf_numbers
    number = {place: k for k, place in enumerate(places)}
    open_tests = sorted(opened)
    n_into = Counter(child for place in open_tests for _, child in graph.arcs(place))
    tangled = n_into.total() > _MANY_ARCS
    reached: set[int] = set()
    notes: list[_Note] = []
    arcs: list[tuple[int, int]] = []

    def add(note: _Note) -> int:
        notes.append(note)
        return len(places) + len(notes) - 1

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
    """The box of a test; an own-value test has sharp corners and a dashed border."""
    (x, y), (width, height) = centre, size
    if is_own:
        box = element("rect", kind="box own", x=x - width / 2, y=y - height / 2, width=width, height=height)
        about = title(f"{name}: the switch between parts of its states")
        return element("g", about, box, words(shortened(name, width - 20), x, y + 4.5, anchor="middle"))
    box = element("rect", kind="box", x=x - width / 2, y=y - height / 2, width=width, height=height, rx=7)
    return element("g", title(f"test of {name}"), box, words(shortened(name, width - 20), x, y + 4.5, anchor="middle"))


@dataclass(frozen=True)
class _Cards:
    """How the leaves of a node are drawn, all alike so that bars can be compared."""

    of_graph: ShownGraph
    shown: tuple[tuple[int, ...], ...]  # the states of each leaf
    names: float  # the width of the labels
    size: Size

    @classmethod
    def of(cls, graph: ShownGraph) -> "_Cards":
        states = [graph.states(leaf) for leaf in range(graph.node.n_leaves)]
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
            share = float(self.of_graph.probabilities[leaf, state])
            parts.append(self._bar(state, (0.0, share), f"{100 * share:.1f} %", left + 9, top + 24 + _LINE * line))
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

    def fold_size(self, fold: Fold) -> Size:
        """The size of a fold's card: a name, its size, and a bar for each of some states."""
        return max(self.size[0] + 22, width_of(f"▸ {fold.size}", 11) + 14), 42.0 + _LINE * len(fold.states)

    def folded(self, name: str, fold: Fold, centre: Point, number: int | None) -> str:
        """The card of a fold: its size and the shares of the states."""
        width, height = self.fold_size(fold)
        left, top = centre[0] - width / 2, centre[1] - height / 2
        click = "" if number is None else ": click to see what is below"
        parts = [
            title(f"test of {name}, folded{click}"),
            element("rect", kind="box fold", x=left, y=top, width=width, height=height, rx=7),
            words(shortened(name, width - 20), centre[0], top + 16, anchor="middle"),
            words(f"▸ {fold.size}", centre[0], top + 32, kind="quiet", anchor="middle"),
        ]
        for line, state in enumerate(fold.states):
            ends = (0.0 if fold.n_cases is not None else float(fold.least[state])), float(fold.most[state])
            parts.append(self._bar(state, ends, fold.share(state), left + 9, top + 38 + _LINE * line, width))
        if number is None:
            return element("g", *parts)
        return element("g", *parts, data_fold=number, tabindex=0, role="button")

    def _bar(
        self, state: int, ends: tuple[float, float], text: str, left: float, top: float, width: float | None = None
    ) -> str:
        """A state's label, a bar from one probability to another, and its text."""
        label, x, length = self.of_graph.variable.labels[state], left + self.names + 10, 56
        name = words(shortened(label, self.names, 11), 0, 11.5, kind="small")
        about = f"{ends[1]:.6g}" if ends[0] == 0 else f"{ends[0]:.6g} to {ends[1]:.6g}"
        start, long = length * ends[0], max(length * (ends[1] - ends[0]), 0.0 if ends[0] == 0 else 2.0)
        return element(
            "g",
            title(f"{label}: {about}"),
            # clipped before the bar, however wide the font
            element("svg", name, x=left, y=top, width=self.names + 6, height=_LINE),
            element("rect", kind="track", x=x, y=top + 3, width=length, height=10, rx=2),
            element(
                "rect",
                kind="bar",
                fill_opacity=None if ends[0] == 0 else 0.5,
                x=x + start,
                y=top + 3,
                width=long,
                height=10,
                rx=2,
            ),
            words(text, left + (width or self.size[0]) - 18, top + 11.5, kind="small", anchor="end"),
        )
