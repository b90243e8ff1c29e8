"""Networks and decision graphs in DOT, the language of Graphviz."""

from collections.abc import Iterable

from leafwise.decision_graph import LEAF
from leafwise.network import Network
from leafwise.report.shown_graph import ShownGraph
from leafwise.report.svg import printable


def network_dot(network: Network) -> str:
    """The variables and arcs in DOT.

    >>> from leafwise.examples import alarm
    >>> print("\\n".join(network_dot(alarm()).splitlines()[:4]))
    digraph "network" {
      node [shape=box, style=rounded];
      v0 [label="HISTORY"];
      v1 [label="CVP"];
    """
    boxes = [f"v{variable} [label={_quoted(name)}];" for variable, name in enumerate(network.names)]
    return _digraph("network", [*boxes, *(f"v{parent} -> v{child};" for parent, child in network.arcs)])


def node_dot(network: Network, variable: int) -> str:
    """A variable's decision graph in DOT: tests, arcs with their states, leaves with their distributions."""
    node, one = network.nodes[variable], network.variables[variable]
    if node is None:
        raise ValueError(
            f"{one.name!r} is only given in this network and has no decision graph: choose another variable."
        )
    lines, shown = [], ShownGraph(network, variable, node)
    for place, test in enumerate(shown.graph.tests):
        if test == LEAF:
            leaf = shown.leaf_numbers[place]
            head = f"leaf {leaf}" + (f": {shown.cases[leaf]}" if shown.cases[leaf] else "")
            shares = [f"{one.labels[state]} {shown.probabilities[leaf, state]:.4f}" for state in shown.states(leaf)]
            text = "\n".join([head, *shares, *filter(None, [shown.tied(leaf)])])
            lines.append(f"n{place} [shape=box, style=solid, label={_quoted(text)}];")
            continue
        style = "shape=diamond, style=dashed, " if shown.is_own(place) else ""
        lines.append(f"n{place} [{style}label={_quoted(shown.test_name(place))}];")
        for arc in shown.arcs(place):
            label = arc.states.removeprefix("= ") + ("" if arc.share is None else f" {arc.share:.4f}")
            lines.append(f"n{place} -> n{arc.child} [label={_quoted(label)}];")
    return _digraph(one.name, lines)


def _digraph(name: str, lines: Iterable[str]) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"digraph {_quoted(name)} {{\n  node [shape=box, style=rounded];\n{body}}}\n"


def _quoted(text: str) -> str:
    r"""A DOT string: quotes and backslashes are escaped, line ends are \n."""
    lines = [printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'
