"""Networks as JSON files: readable, and loaded back identical.

The format is published as network.schema.json beside this file. In short, one line for each variable and graph node:

    {"format": "leafwise-network", "version": 1, "prior": "uniform", "structure_prior": "kappa:0.1", "learned": {...},
     "variables": [{"name": "x", "labels": ["a", "b", "c"]}, ...],
     "nodes": [
      {"variable": "y", "parents": ["x"], "graph": [
       {"test": "x", "arcs": [{"states": ["a"], "to": 1}, {"states": ["b", "c"], "to": 2}]},
       {"leaf": 0, "counts": [3, 1], "exponents": 0.5},
       {"leaf": 1, "probabilities": [0.25, 0.75]}]}]}

Nodes of the graph are numbered by their place in the list. An arc without "states" has all states of no other arc.
A learned leaf has its counts and its exponents: a list, or one number for all states, or nothing if they are ones.
If cells were missing, counts are expected counts, and need not be whole.
A variable without an entry in "nodes" has no distribution: it must be given.

Version 2 adds two things; networks without them are written in version 1. A test may be of the node's own variable:
besides its arcs it has, like a leaf, the counts or probabilities of its switch, and all numbers of it and below it are
0 for states that cannot reach it. And "ties", after "nodes", are groups of leaves that share a distribution:

    "ties": [[{"variable": "y", "leaf": 0, "states": ["a", "b"]}, {"variable": "z", "leaf": 2, "states": ["b", "a"]}]]
"""

import json
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from leafwise.data.table import Variable, brief
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.formats.json_reading import read_network
from leafwise.formats.tables import Room
from leafwise.formats.whole_files import read_as, write_whole
from leafwise.network import Network, Node, TiedLeaf

FORMAT = "leafwise-network"
VERSION = 2

_MANY_STATES = 4  # an arc with more states than this, and than half of all, is written without them


def save(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network to a file, atomically.

    >>> import tempfile
    >>> from leafwise.examples import alarm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(alarm(), folder + "/alarm.json")
    ...     load(folder + "/alarm.json") == alarm()
    True
    """
    write_whole(path, dumps(network).encode())


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network from a file; a one-line ValueError if it is invalid."""
    return read_as(path, loads)


def dumps(network: Network) -> str:
    """The JSON text of a network."""
    head = {
        "format": FORMAT,
        "version": version_of([network]),
        "prior": network.prior,
        "structure_prior": network.structure_prior,
        "learned": dict(network.learned),
    }
    lines = [f" {text(key)}: {text(value)}," for key, value in head.items()]
    variables = [f"  {text(variable_entry(variable))}" for variable in network.variables]
    lists = [f' "variables": {list_text(variables)},', f" {nodes_text(network)}"]
    return "\n".join(["{", *lines, *lists, "}", ""])


def version_of(networks: Iterable[Network]) -> int:
    """The format version that networks need."""
    plain = all(not one.ties and all(node is None or node.own is None for node in one.nodes) for one in networks)
    return 1 if plain else 2


def check_version(version: int, networks: Iterable[Network]) -> None:
    """Raise a ValueError if a file contains what its version does not allow."""
    if version < version_of(networks):
        raise ValueError(
            f"the file has own-value tests or ties, which version {version} of the format does not have: repair the "
            f'file, which may need "version": {VERSION}.'
        )


def loads(text_of_file: str | bytes, most_cells: int | None = None) -> Network:
    """The network of a JSON text."""
    return network_of(parsed(text_of_file), Room(len(text_of_file), most_cells))


def network_of(document: Any, room: Room) -> Network:
    """The network in a parsed file."""
    kind = format_named(document)
    if kind != FORMAT:
        if kind == "leafwise-mixture":
            raise ValueError(
                "this file holds a mixture of networks, and one network is needed here: give such a file. A mixture "
                "can evaluate, query, mpe, sample, predict, impute and show."
            )
        if kind == "leafwise-dynamic-network":
            raise ValueError(
                "this file holds a dynamic network, and an ordinary network is needed here: make one with unroll."
            )
        raise ValueError(f'this is JSON but no network: a network file has "format": "{FORMAT}"; give such a file.')
    version = document.get("version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(
            f'the "version" is {brief(version)}, and it must be an integer from 1 to {VERSION}: repair the file.'
        )
    if version > VERSION:
        raise ValueError(
            f"the file was written by a newer leafwise (version {brief(version)} of the format, and this one reads up "
            f"to {VERSION}): upgrade leafwise."
        )
    try:
        network = read_network(document, room)
    except RecursionError:
        raise ValueError("something in it is nested too deeply for a network: save the network again.") from None
    check_version(version, [network])
    return network


def format_named(document: Any) -> Any:
    """What a parsed file says is in it; None if it says nothing."""
    return document.get("format") if isinstance(document, dict) else None


def parsed(content: str | bytes) -> Any:
    """The value of a JSON text."""
    try:
        text = content if isinstance(content, str) else content.decode(json.detect_encoding(content))
        document = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if not text.isascii() or "\\ud" in text.lower():  # a lone surrogate is not valid text
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not JSON ({error}), and a network file is: save the network again.") from None
    return document


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:30]} is not a finite number")
    return number


def text(value: Any) -> str:
    """A value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def list_text(items: list[str]) -> str:
    """A list of JSON values, one per line."""
    return "[\n" + ",\n".join(items) + "\n ]" if items else "[]"


def variable_entry(variable: Variable) -> dict[str, Any]:
    """The JSON entry of a variable."""
    entry: dict[str, Any] = {"name": variable.name, "labels": list(variable.labels)}
    if variable.cuts:
        entry["cuts"] = [float(cut) for cut in variable.cuts]
    if variable.missing:
        entry["missing"] = True
    if variable.ordered and not variable.cuts:
        entry["ordered"] = True
    if variable.hidden:
        entry["hidden"] = True
    return entry


def nodes_text(network: Network) -> str:
    """The JSON text of the nodes, and of the ties if there are any."""
    nodes = [_node_text(network, index, node) for index, node in enumerate(network.nodes) if node is not None]
    ties = [f"  {text([_tied_entry(network, tied) for tied in group])}" for group in network.ties]
    return f'"nodes": {list_text(nodes)}' + (f',\n "ties": {list_text(ties)}' if ties else "")


def _tied_entry(network: Network, tied: TiedLeaf) -> dict[str, Any]:
    variable, node = network.variables[tied.variable], network.nodes[tied.variable]
    assert node is not None  # the network has checked its ties
    labels = [variable.labels[state] for state in tied.states]
    return {"variable": variable.name, "leaf": node.leaf_rows.index(tied.leaf), "states": labels}


def _node_text(network: Network, index: int, node: Node) -> str:
    parents = [network.variables[parent].name for parent in node.parents]
    head = f'"variable": {text(network.variables[index].name)}, "parents": {text(parents)}'
    graph = ",\n".join(f"    {text(entry)}" for entry in _graph_entries(network.variables, index, node))
    return f'  {{{head}, "graph": [\n{graph}\n  ]}}'


def _graph_entries(variables: tuple[Variable, ...], index: int, node: Node) -> Iterator[dict[str, Any]]:
    leaf = row = 0
    for number, test in enumerate(node.whole_graph.tests):
        entry: dict[str, Any] = {"leaf": leaf}
        if test == LEAF:
            leaf += 1
        else:
            entry = {"test": variables[test].name, "arcs": _arc_entries(variables[test], node.whole_graph, number)}
        if test in (LEAF, index):
            entry |= _distribution_entry(node, row)
            row += 1
        yield entry


def _arc_entries(variable: Variable, graph: DecisionGraph, number: int) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for states, child in graph.arcs(number):
        if len(states) > _MANY_STATES and 2 * len(states) > variable.n_states:
            entries.append({"to": child})
        else:
            entries.append({"states": [variable.labels[state] for state in sorted(states)], "to": child})
    return entries


def _distribution_entry(node: Node, row: int) -> dict[str, Any]:
    """The contents of a leaf, or of the switch of an own-value test."""
    holder = node.own or node
    if holder.counts is None or holder.exponents is None:
        return {"probabilities": holder.probabilities[row].tolist()}
    entry: dict[str, Any] = {"counts": holder.counts[row].tolist()}
    exponents = holder.exponents[row]
    known = exponents[exponents > 0]  # the others are those of states that cannot reach it
    if np.any(known != 1.0):
        entry["exponents"] = float(known[0]) if np.all(known == known[0]) else exponents.tolist()
    return entry
