"""The explorer page: one HTML file with the network, its layout and every decision graph inside; it fetches nothing.

Knows networks, pictures, scores and the page's own files. Names in it come from data, and data can be hostile:
JSON has its signs of HTML escaped, pictures are escaped as they are written, and the page's policy runs no script but
its own.
"""

import base64
import gzip
import hashlib
import json
from html import escape
from importlib.resources import files
from typing import Any

from leafwise.explorer.answers import marginals
from leafwise.inference.exact import DEFAULT_LIMITS
from leafwise.network import Network, Node
from leafwise.report.graph_picture import GraphDrawing
from leafwise.report.map_layout import arranged
from leafwise.report.pictures import name_size
from leafwise.report.svg import drawing, element, printable
from leafwise.report.text import node_text
from leafwise.scores import log_prior, node_score
from leafwise.structure_priors import structure_prior

MANY_SAMPLES = 100_000
_SCRIPTS = ("map.js", "side.js", "start.js")  # one script, in this order
_MOST_LEAVES = 250  # a graph with more is shown as text


def page(network: Network, name: str, *, live: bool = False) -> str:
    """The page of a network. A live one asks the server that sent it; any other has the marginals inside.

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
    """What the page may do: run its own script and style, and ask the server it came from."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    source = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src {source}; base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> str:
    """JSON that ends no script element and starts no comment in one."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _data(network: Network, live: bool) -> dict[str, Any]:
    sizes = [name_size(one) for one in network.names]
    layout = arranged(sizes, network.arcs)
    scores = _scores(network)
    return {
        "live": live,
        "about": {
            "cases": network.learned.get("cases"),
            "leaves": network.n_leaves,
            "parameters": network.n_parameters,
            "prior": network.prior,
            "structure prior": network.structure_prior,
        },
        "variables": [
            {
                "name": variable.name,
                "labels": variable.labels,
                "parents": () if (node := network.nodes[index]) is None else node.parents,
                "at": [round(layout.centres[index][0]), round(layout.centres[index][1]), round(sizes[index][0])],
                "leaves": None if node is None else node.graph.n_leaves,
                "parameters": None if node is None else node.n_parameters,
                "score": scores[index],
            }
            for index, variable in enumerate(network.variables)
        ],
        "routes": [[round(value) for point in route for value in point] or None for route in layout.routes],
        "marginals": None if live else _marginals(network),
    }


def _marginals(network: Network) -> dict[str, Any]:
    if any(node is None for node in network.nodes):
        return {"problem": "Some variables of this network are only given, so there are no marginals."}
    return marginals(network, {}, DEFAULT_LIMITS, MANY_SAMPLES)


def _scores(network: Network) -> list[float | None]:
    """The log score of each node, where counts tell it."""
    prior = structure_prior(network.structure_prior or "uniform")
    return [
        None
        if node is None or node.counts is None or node.exponents is None
        else node_score(node.counts, node.exponents, log_prior(network, target, prior)).log_score
        for target, node in enumerate(network.nodes)
    ]


def _graphs(network: Network) -> list[str]:
    return [_graph(network, index, node) for index, node in enumerate(network.nodes)]


def _graph(network: Network, variable: int, node: Node | None) -> str:
    if node is None or node.graph.n_leaves > _MOST_LEAVES:
        return element("pre", escape(printable_lines(node_text(network, variable))))
    graph = GraphDrawing.of(network, variable, node)
    return drawing(graph.parts, graph.width, graph.height, f"The decision graph of {network.variables[variable].name}")


def printable_lines(text: str) -> str:
    """A text with its lines, without signs that a page cannot hold."""
    return "\n".join(map(printable, text.split("\n")))
