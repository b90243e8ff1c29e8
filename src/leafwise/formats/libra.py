"""Networks as the BN files of Libra, which contain decision trees.

As written by Libra's source: the number of states of each variable, then a factor for each variable, a tree of tests
(vI_S yes no) whose leaves are log probabilities. There are no names. A decision graph is written as a tree, and a test
of several groups of states as a chain of tests: it comes back with other leaves and the same distributions.

    2,3
    BN {
    v0 {
    tree {
    (v1_0 (v0_0 -0.1 -2.3) (v0_0 -0.7 -0.7))
    }
    } ...
    }
"""

import math
import os
from collections.abc import Iterator

from leafwise.data.table import brief
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.formats.libra_reading import read_network
from leafwise.formats.tables import MOST_CELLS, Room, check_size
from leafwise.formats.whole_files import read_as, write_whole
from leafwise.network import Network, Node


def save(network: Network, path: str | os.PathLike[str], most_cells: int = MOST_CELLS) -> None:
    """Write a network to a .bn or .bn.gz file, atomically.

    >>> import tempfile
    >>> from leafwise.examples import alarm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(alarm(), folder + "/alarm.bn")
    ...     len(load(folder + "/alarm.bn").arcs)
    46
    """
    write_whole(path, dumps(network, most_cells).encode())


def load(path: str | os.PathLike[str]) -> Network:
    """Read a network from a .bn or .bn.gz file; a one-line ValueError with line and column if it is invalid."""
    return read_as(path, loads)


def dumps(network: Network, most_cells: int = MOST_CELLS) -> str:
    """The BN text of a network; a ValueError if a tree's leaves would have more than `most_cells` numbers."""
    lines = [",".join(str(variable.n_states) for variable in network.variables), "BN {"]
    for index, node in enumerate(network.nodes):
        name = network.variables[index].name
        if node is None:
            raise ValueError(
                f"{brief(name)} is only given, and Libra needs a distribution for every variable: save it as JSON."
            )
        check_size(f"the tree of {brief(name)}", _n_leaves(node.graph) * node.n_states, most_cells)
        lines += [f"v{index} {{", "tree {", "".join(_tree(node, index)), "}", "}"]
    return "\n".join([*lines, "}", ""])


def loads(text: str | bytes, most_cells: int | None = None) -> Network:
    """The network of a BN text. Variables are named v0, v1, …, and their states 0, 1, …"""
    read = text.decode(errors="replace") if isinstance(text, bytes) else text
    return read_network(read, Room(len(text), most_cells))


def _tests(graph: DecisionGraph, place: int) -> tuple[list[tuple[int, int]], int]:
    """A node's outcomes as a chain of tests: pairs (state, child), and the child of all other states."""
    arcs = graph.arcs(place)
    _, other = max(arcs, key=lambda arc: len(arc[0]))
    return [(state, child) for states, child in arcs if child != other for state in sorted(states)], other


def _n_leaves(graph: DecisionGraph) -> int:
    """The number of leaves of the graph as a tree of such chains."""
    count = [1] * len(graph.tests)
    for place in reversed(range(len(count))):
        if graph.tests[place] != LEAF:
            chain, other = _tests(graph, place)
            count[place] = sum(count[child] for _, child in chain) + count[other]
    return count[0]


def _tree(node: Node, index: int) -> Iterator[str]:
    leaf_number = {place: leaf for leaf, place in enumerate(node.graph.leaves)}
    pending: list[int | str] = [0]  # nodes to write, and pieces of text to write after them
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif node.graph.tests[item] == LEAF:
            yield _leaf(node.probabilities[leaf_number[item]].tolist(), index)
        else:
            chain, other = _tests(node.graph, item)
            pieces: list[int | str] = []
            for state, child in chain:
                pieces += [f"\n(v{node.graph.tests[item]}_{state} ", child, " "]
            pending += reversed([*pieces, other, ")" * len(chain)])


def _leaf(row: list[float], index: int) -> str:
    """A distribution as tests of the variable itself."""
    logs = [repr(math.log(p)) if p > 0 else "-inf" for p in row]
    opened = "".join(f"(v{index}_{state} {log} " for state, log in enumerate(logs[:-1]))
    return f"{opened}{logs[-1]}{')' * (len(logs) - 1)}"
