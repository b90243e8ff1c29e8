"""Networks and decision graphs in DOT, the language of the Graphviz programs. Knows networks."""

from collections.abc import Iterable

from leafwise.decision_graph import LEAF
from leafwise.network import Network
from leafwise.report.svg import printable
from leafwise.report.text import arc_states
from leafwise.table import many


def network_dot(network: Network) -> str:
    """The variables and arcs.

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
    """A variable's decision graph: tests, arcs with their states, leaves with their distributions."""
    node, one = network.nodes[variable], network.variables[variable]
    if node is None:
        raise ValueError(
            f"{one.name!r} is only given in this network and has no decision graph: choose another variable."
        )
    lines = []
    leaf = 0
    for place, test in enumerate(node.graph.tests):
        if test == LEAF:
            cases = "" if node.counts is None else f": {many(round(node.counts[leaf].sum()), 'case')}"
            shares = zip(one.labels, node.probabilities[leaf].tolist(), strict=True)
            text = "\n".join([f"leaf {leaf}{cases}", *(f"{label} {share:.4f}" for label, share in shares)])
            lines.append(f"n{place} [shape=box, style=solid, label={_quoted(text)}];")
            leaf += 1
        else:
            tested = network.variables[test]
            lines.append(f"n{place} [label={_quoted(tested.name)}];")
            for states, child in node.graph.arcs(place):
                label = arc_states(tested, states).removeprefix("= ")
                lines.append(f"n{place} -> n{child} [label={_quoted(label)}];")
    return _digraph(one.name, lines)


def _digraph(name: str, lines: Iterable[str]) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f"digraph {_quoted(name)} {{\n  node [shape=box, style=rounded];\n{body}}}\n"


def _quoted(text: str) -> str:
    r"""A DOT string: quotes and backslashes are escaped, line ends are \n."""
    lines = [printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in text.split("\n")]
    return '"' + "\\n".join(lines) + '"'
