"""Comparison of two networks: arcs, distances, graphs, and fit to data. Knows networks, searches and scores."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import fsum
from typing import Any, Unpack

import numpy as np

from leafwise import dag
from leafwise.data.encoding import NewReading, read_each
from leafwise.data.table import many, shortened
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.inference.likelihood import log_probabilities
from leafwise.learner import log_score
from leafwise.network import Network, check_network
from leafwise.search.best_networks import same_leaves

Arc = tuple[str, str]

_MOST_WALKS = 100_000  # to compare two graphs, in less than a second


@dataclass(frozen=True, repr=False)
class Comparison:
    """What two networks, a and b, have in common, and how they differ. Variables are identified by name."""

    only_in_a: tuple[str, ...]  # variables
    only_in_b: tuple[str, ...]
    arcs: tuple[Arc, ...]  # in both
    reversed: tuple[Arc, ...]  # in a, and reversed in b
    arcs_of_a: tuple[Arc, ...]  # in a and not in b, including reversed ones
    arcs_of_b: tuple[Arc, ...]  # in b and not in a, including reversed ones
    graphs: Mapping[str, tuple[int, int]]  # variables with the same parents, but not the same leaves: how many in each
    distance: int  # structural Hamming distance of the arcs: missing, additional or reversed
    class_distance: int  # structural Hamming distance of the equivalence classes
    fits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # of each network, and of b minus a

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "variables": {"only_in_a": list(self.only_in_a), "only_in_b": list(self.only_in_b)},
            "arcs": {
                "both": list(self.arcs),
                "reversed": list(self.reversed),
                "only_in_a": list(self.arcs_of_a),
                "only_in_b": list(self.arcs_of_b),
            },
            "structural_hamming_distance": self.distance,
            "structural_hamming_distance_of_classes": self.class_distance,
            "graphs": {name: {"leaves_in_a": a, "leaves_in_b": b} for name, (a, b) in self.graphs.items()},
            "fits": {name: dict(values) for name, values in self.fits.items()},
        }

    def rows(self) -> list[tuple[str, str]]:
        """Labels and texts for a table."""
        rows = [
            ("arcs in both", f"{len(self.arcs):,}"),
            ("arcs the other way round", _arcs(self.reversed)),
            ("arcs only in a", _arcs(tuple(arc for arc in self.arcs_of_a if arc not in self.reversed))),
            ("arcs only in b", _arcs(tuple(arc for arc in self.arcs_of_b if arc[::-1] not in self.reversed))),
            ("distance of arcs", f"{self.distance:,}"),
            ("distance of equivalence classes", f"{self.class_distance:,}"),
            ("graphs that differ", _graphs(self.graphs)),
        ]
        for label, names in (("variables only in a", self.only_in_a), ("variables only in b", self.only_in_b)):
            rows += [(label, f"{len(names):,}: {shortened(names)}")] if names else []
        for name, values in self.fits.items():
            rows += [(f"{key.replace('_', ' ')}, {name}", f"{value:,.4f}") for key, value in values.items()]
        return rows

    def __repr__(self) -> str:
        width = max(len(label) for label, _ in self.rows())
        return "\n".join(f"{label:<{width}}  {text}" for label, text in self.rows())


def compare(a: Network, b: Network, data: object = None, **reading: Unpack[NewReading]) -> Comparison:
    """Compare two networks and, if data are given, how well they fit these.

    `data`: what `read` accepts.
    `reading`: arguments of `read`.

    >>> from leafwise.examples import alarm
    >>> found = compare(alarm(), alarm())
    >>> len(found.arcs), found.reversed, found.distance, found.class_distance
    (46, (), 0, 0)
    """
    check_network(a, "compare")
    check_network(b, "compare")
    of_a, of_b = set(a.named_arcs), set(b.named_arcs)
    turned = {arc for arc in of_a if arc[::-1] in of_b}
    names = tuple(dict.fromkeys((*a.names, *b.names)))
    missing = len({frozenset(arc) for arc in of_a} ^ {frozenset(arc) for arc in of_b})
    return Comparison(
        tuple(name for name in a.names if name not in b),
        tuple(name for name in b.names if name not in a),
        tuple(sorted(of_a & of_b)),
        tuple(sorted(turned)),
        tuple(sorted(of_a - of_b)),
        tuple(sorted(of_b - of_a)),
        _different_graphs(a, b),
        missing + len(turned),
        dag.structural_hamming_distance(_parents(a, names), _parents(b, names)),
        {} if data is None else _fits(a, b, data, reading),
    )


def _parents(network: Network, names: tuple[str, ...]) -> list[tuple[int, ...]]:
    place = {name: index for index, name in enumerate(names)}
    found: dict[str, list[int]] = {name: [] for name in names}
    for parent, child in network.named_arcs:
        found[child].append(place[parent])
    return [tuple(sorted(found[name])) for name in names]


def _different_graphs(a: Network, b: Network) -> dict[str, tuple[int, int]]:
    """Variables with the same parents in both networks, some at least, whose graphs have other leaves.

    Graphs with own-value tests differ if their tests do, since tests with the same children have different switches.
    """
    found = {}
    for name in a.names:
        if name in b and set(a.parents(name)) == set(b.parents(name)) and a.parents(name):
            (labels, one), (own_labels, other) = _in_standard_order(a, name), _in_standard_order(b, name)
            is_plain = name not in labels
            if labels != own_labels or not (one == other or (is_plain and same_leaves(one, other, _MOST_WALKS))):
                found[name] = a[name].n_leaves, b[name].n_leaves
    return found


def _in_standard_order(network: Network, name: str) -> tuple[dict[str, list[str]], DecisionGraph]:
    """The names and labels, sorted, of a node's parents and of what else it tests, and its simplified graph.

    Graphs that differ only in the order of nodes, variables or states are equal in standard order. Graphs with
    own-value tests are not simplified.
    """
    node = network[name].node
    graph = node.graph.simplified() if node.own is None else node.own.graph
    variables = sorted({*node.parents, *graph.tested}, key=network.names.__getitem__)
    labels = {v: network.variables[v].labels for v in variables}
    states = {v: sorted(range(len(labels[v])), key=labels[v].__getitem__) for v in variables}
    children = [
        tuple(row[state] for state in states[test]) if row else ()
        for test, row in zip(graph.tests, graph.children, strict=True)
    ]
    below: dict[int, None] = {}  # nodes, all children of a node before itself
    stack = [0]
    while stack:
        waiting = [child for child in dict.fromkeys(children[stack[-1]]) if child not in below]
        if waiting:
            stack += waiting
        else:
            below[stack.pop()] = None
    order = list(reversed(below))
    rank, number = {v: k for k, v in enumerate(variables)}, {place: k for k, place in enumerate(order)}
    return {network.names[v]: sorted(labels[v]) for v in variables}, DecisionGraph(
        tuple(rank.get(graph.tests[place], LEAF) for place in order),
        tuple(tuple(number[child] for child in children[place]) for place in order),
    )


def _fits(a: Network, b: Network, data: object, reading: NewReading) -> dict[str, dict[str, float]]:
    """Scores and likelihoods of both networks, and the difference in likelihood with its standard error."""
    fits: dict[str, dict[str, float]] = {}
    logs = []
    given: NewReading = {"missing": "unknown", **reading}
    tables = read_each(data, [a.variables, b.variables], **given)
    for name, network, table in zip("ab", (a, b), tables, strict=True):
        logs.append(log_probabilities(network, table))
        fits[name] = {"mean_log_likelihood": float(logs[-1].mean())}
        is_whole = table.variables == network.variables and not any(v.hidden for v in network.variables)
        if is_whole and network.prior is not None and network.structure_prior is not None:
            fits[name]["log_score"] = fsum(node.log_score for node in log_score(network, table).values())
    difference = logs[1] - logs[0]
    fits["b less a"] = {"mean_log_likelihood": float(difference.mean())}
    if len(difference) > 1:
        fits["b less a"]["standard_error"] = float(difference.std(ddof=1) / np.sqrt(len(difference)))
    return fits


def _arcs(arcs: tuple[Arc, ...]) -> str:
    shown = shortened([f"{parent} → {child}" for parent, child in arcs])
    return f"{len(arcs):,}: {shown}" if arcs else "0"


def _graphs(graphs: Mapping[str, tuple[int, int]]) -> str:
    shown = shortened([f"{name} ({one} and {many(other, 'leaf', 'leaves')})" for name, (one, other) in graphs.items()])
    return f"{len(graphs):,}: {shown}" if graphs else "0"
