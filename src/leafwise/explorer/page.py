"""The explorer page: one self-contained HTML file with the network, its layout and every decision graph.

Names come from data, which may be hostile: HTML characters in the JSON are escaped, pictures are escaped when written,
and the page's policy allows no script but its own.
"""

import base64
import gzip
import hashlib
import json
from collections import Counter
from html import escape
from importlib.resources import files
from typing import Any

from leafwise.data.table import Variable
from leafwise.explorer.answers import marginals
from leafwise.explorer.clusters import clusters
from leafwise.explorer.strengths import shares, strengths
from leafwise.inference.exact import DEFAULT_LIMITS
from leafwise.network import Network, Node
from leafwise.report.graph_picture import folded_drawings
from leafwise.report.layout import Layout, Size
from leafwise.report.map_layout import arranged, as_map, is_small
from leafwise.report.pictures import name_size
from leafwise.report.svg import drawing, element, printable, width_of
from leafwise.report.text import cause_lines, node_text
from leafwise.scores import score_as_learned
from leafwise.structure_priors import structure_prior

MANY_SAMPLES = 100_000
_SCRIPTS = ("map.js", "side.js", "start.js")  # one script, in this order
_MOST_LEAVES = 1000  # a larger graph is shown as text
_MOST_CARDS = 60  # with at most this many variables, all distributions are on the map
_LINE, _SMALL = 13, 10.5  # the distance between the bars of a variable, and the size of their labels
_BARS = (8, 6, 4, 3)  # the most bars per variable: the first number with which the map is readable at once,
_READABLE = (1350, 1200)  # on a common screen


def page(network: Network, name: str, *, live: bool = False) -> str:
    """The page of a network. A live one queries the server that sent it; any other contains the marginals.

    >>> from leafwise.examples import alarm
    >>> text = page(alarm(), "alarm.bif", live=True)
    >>> text.startswith("<!doctype html>"), "https://" in text
    (True, False)
    """
    folder = files("leafwise.explorer")
    style, frame = ((folder / name).read_text("utf-8") for name in ("page.css", "page.html"))
    script = "".join(['"use strict";{\n', *((folder / name).read_text("utf-8") for name in _SCRIPTS), "}\n"])
    parts = {
        "policy": policy(script, live=live),
        "name": escape(printable(name)),
        "style": style,
        "data": _json(_data(network, live)),
        "graphs": base64.b64encode(gzip.compress(_json(_graphs(network)).encode(), mtime=0)).decode(),
        "script": script,
    }
    pieces = frame.split("%%")  # text, name of a part, text, name of a part, ..., text
    return "".join(parts[piece] if place % 2 else piece for place, piece in enumerate(pieces))


def policy(script: str, *, live: bool) -> str:
    """The page's content security policy: its own script and style, and queries to its own server."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    source = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {source}; base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> str:
    """JSON that cannot end a script element or start a comment in one."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate is not valid text
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _data(network: Network, live: bool) -> dict[str, Any]:
    sizes, layout = _map(network)
    scores, parameters = _scores(network), network.parameters_by_node()
    return {
        "live": live,
        "about": {
            "cases": network.learned.get("cases"),
            "tests": network.n_tests,
            "leaves": network.n_leaves,
            "parameters": sum(parameters),
            "prior": network.prior,
            "structure prior": network.structure_prior,
        },
        "variables": [
            {
                "name": variable.name,
                "labels": variable.labels,
                "parents": () if (node := network.nodes[index]) is None else node.parents,
                "at": [*map(round, layout.centres[index]), *map(round, sizes[index])],
                "tests": None if node is None else node.n_tests,
                "leaves": None if node is None else node.n_leaves,
                "parameters": None if node is None else parameters[index],
                "score": scores[index],
            }
            for index, variable in enumerate(network.variables)
        ],
        "routes": _routes(layout),
        "strengths": strengths(network),
        "shares": shares(network),
        "clusters": None if is_small(len(sizes), network.arcs) else _clusters(network),
        "marginals": None if live else _marginals(network),
    }


def _routes(layout: Layout) -> list[list[int] | None]:
    return [[round(value) for point in route for value in point] or None for route in layout.routes]


def _map(network: Network) -> tuple[list[Size], Layout]:
    """The boxes of all variables, with as many bars as are readable when all are visible, and their positions."""
    if len(network.variables) > _MOST_CARDS:
        sizes = [name_size(name) for name in network.names]
        return sizes, arranged(sizes, network.arcs)
    for bars in _BARS:
        sizes = [_card_size(variable, bars) for variable in network.variables]
        layout = arranged(sizes, network.arcs, apart=10, below=26)
        if layout.width <= _READABLE[0] and layout.height <= _READABLE[1]:
            break
    return sizes, layout


def _card_size(variable: Variable, bars: int) -> Size:
    """Room for the name and labelled bars, of at most this many states."""
    labels = min(84.0, max(width_of(label, _SMALL) for label in variable.labels))
    return max(name_size(variable.name)[0], labels + 90), 24.0 + _LINE * min(variable.n_states, bars)


def _clusters(network: Network) -> list[dict[str, Any]]:
    """Groups of variables: the position of each on the map of groups, and those of its variables on its own map."""
    groups = clusters(len(network.variables), network.arcs)
    group_of = {variable: number for number, group in enumerate(groups) for variable in group}
    linked = Counter(variable for arc in network.arcs for variable in arc)
    ends = [(group_of[parent], group_of[child]) for parent, child in network.arcs]
    between = Counter((min(pair), max(pair)) for pair in ends if pair[0] != pair[1])
    heads = [max(group, key=lambda variable: linked[variable]) for group in groups]
    sizes = [(max(name_size(network.names[head])[0], 110.0), 44.0) for head in heads]
    centres = _group_places(sizes, list(between))
    out = []
    for number, (group, head) in enumerate(zip(groups, heads, strict=True)):
        place = {variable: k for k, variable in enumerate(group)}
        arcs = [(k, arc) for k, arc in enumerate(network.arcs) if arc[0] in place and arc[1] in place]
        boxes = [name_size(network.names[variable]) for variable in group]
        inside = arranged(boxes, [(place[a], place[b]) for _, (a, b) in arcs])
        out.append(
            {
                "head": head,
                "members": group,
                "at": [*map(round, centres[number]), *map(round, sizes[number])],
                "links": [[b if a == number else a, count] for (a, b), count in between.items() if number in (a, b)],
                "places": [[*map(round, centre)] for centre in inside.centres],
                "routes": {k: route for (k, _), route in zip(arcs, _routes(inside), strict=True) if route},
            }
        )
    return out


def _group_places(sizes: list[Size], links: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """Linked groups as a map; the others in a row below it."""
    linked = sorted({group for link in links for group in link})
    place = {group: k for k, group in enumerate(linked)}
    drawn = as_map([sizes[group] for group in linked], [(place[a], place[b]) for a, b in links]) if linked else None
    centres, left = [], 0.0
    for group, (width, height) in enumerate(sizes):
        if drawn is not None and group in place:
            centres.append(drawn.centres[place[group]])
        else:
            centres.append((left + width / 2, (0.0 if drawn is None else drawn.height + 30) + height / 2))
            left += width + 20
    return centres


def _marginals(network: Network) -> dict[str, Any]:
    if any(node is None for node in network.nodes):
        return {"problem": "Some variables of this network are only given, so there are no marginals."}
    return marginals(network, {}, DEFAULT_LIMITS, MANY_SAMPLES)


def _scores(network: Network) -> list[float | None]:
    """The log score of each node, where counts allow it."""
    prior = structure_prior(network.structure_prior or "uniform")
    scores = [score_as_learned(network, target, prior) for target in range(len(network.nodes))]
    return [None if score is None else score.log_score for score in scores]


def _graphs(network: Network) -> list[list[str]]:
    return [_graph(network, index, node) for index, node in enumerate(network.nodes)]


def _graph(network: Network, variable: int, node: Node | None) -> list[str]:
    """The decision graph, and if it is folded, the contents of each fold."""
    if node is None or node.n_leaves > _MOST_LEAVES:
        return [element("pre", escape(printable_lines(node_text(network, variable))))]
    title = f"The decision graph of {network.variables[variable].name}"
    drawings = [drawing(g.parts, g.width, g.height, title) for g in folded_drawings(network, variable, node)]
    if network.variables[variable].hidden:
        lines = "\n".join(cause_lines(network, variable))
        drawings[0] += element("pre", escape(printable_lines(lines)))
    return drawings


def printable_lines(text: str) -> str:
    """A text with its line ends, without characters that a page cannot contain."""
    return "\n".join(map(printable, text.split("\n")))
