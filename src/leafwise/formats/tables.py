"""Complete tables: what decision graphs are to programs that know nothing else, and nodes made of them.

Knows networks and nothing above them.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node

MOST_CELLS = 1_000_000  # of one table, unless somebody asks for more
_KEPT = 0.9e-6  # a little less than a Node allows
_SCALED = 1.0001e-3


def complete_table(network: Network, index: int, most_cells: int = MOST_CELLS) -> NDArray[np.float64]:
    """A variable's distribution as an array: one axis for each parent, in order, and one for its own states.

    >>> from leafwise.examples import alarm
    >>> network = alarm()
    >>> complete_table(network, network.names.index("SHUNT")).shape
    (2, 3, 2)
    """
    node, variables = network.nodes[index], network.variables
    name = variables[index].name
    if node is None:
        raise ValueError(
            f"{name!r} is only given and has no distribution, and tables need one for every variable: save it as JSON."
        )
    shape = tuple(variables[parent].n_states for parent in node.parents)
    n_cells = math.prod(shape) * node.n_states
    if n_cells > most_cells:
        raise ValueError(
            f"the table of {name!r} given its {len(shape)} parents would have {amount(n_cells)} cells, more than the "
            f"limit of {most_cells:,}: raise most_cells, or save it as JSON, which keeps its leaves."
        )
    leaves = leaves_of(node.graph, dict(zip(node.parents, shape, strict=True)))
    return node.probabilities[leaves].reshape(*shape, node.n_states)


def fitted(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounded rows made distributions: kept where they sum to one within a millionth, else divided by their sum.

    A row that is further off than a thousandth, or has a negative number, becomes nan.

    >>> fitted(np.array([[0.333, 0.333, 0.333], [0.1, 0.2, 0.3]])).round(4).tolist()
    [[0.3333, 0.3333, 0.3333], [nan, nan, nan]]
    """
    sums = rows.sum(axis=1, keepdims=True)
    off = abs(sums - 1)
    bad = ~(off <= _SCALED) | (rows < 0).any(axis=1, keepdims=True)
    return np.where(bad, np.nan, np.where(off <= _KEPT, rows, rows / np.where(bad, 1, sums)))


def table_node(parents: Sequence[int], table: NDArray[np.float64], n_states: Sequence[int]) -> Node:
    """The node of a table whose axes are these parents, in any order, and the variable's own states.

    >>> table_node((2, 0), np.full((3, 2, 2), 0.5), (2, 2, 3)).parents
    (0, 2)
    """
    order = sorted(range(len(parents)), key=parents.__getitem__)
    sorted_parents = tuple(parents[axis] for axis in order)
    rows = table.transpose(*order, len(parents)).reshape(-1, table.shape[-1])
    return Node(sorted_parents, DecisionGraph.complete(sorted_parents, n_states), rows)


def amount(number: int) -> str:
    """A whole number as a message shows it, however large.

    >>> amount(1234), amount(2**5000)
    ('1,234', 'more than 10^1505')
    """
    return f"{number:,}" if number < 10**15 else f"more than 10^{int((number.bit_length() - 1) * 0.30103)}"


def leaves_of(graph: DecisionGraph, n_states: dict[int, int]) -> NDArray[np.intp]:
    """The leaf of each assignment of the parents, the last parent varying fastest.

    >>> leaves_of(DecisionGraph.complete([0], [2]), {0: 2, 1: 2}).tolist()
    [0, 0, 1, 1]
    """
    stride, n_rows = {LEAF: 1}, 1
    for parent in reversed(n_states):
        stride[parent] = n_rows
        n_rows *= n_states[parent]
    tests = np.array(graph.tests)
    rows = [row or (node,) for node, row in enumerate(graph.children)]
    children = np.array([child for row in rows for child in row])
    sizes = np.array([len(row) for row in rows])
    first = np.cumsum(sizes) - sizes
    strides = np.array([stride[test] for test in graph.tests])
    assignments = np.arange(n_rows)
    at = np.zeros(n_rows, np.intp)  # all walk from the root together, one test a step; a leaf leads to itself
    while (tests[at] != LEAF).any():
        at = children[first[at] + assignments // strides[at] % sizes[at]]
    leaf: NDArray[np.intp] = (np.cumsum(tests == LEAF) - 1)[at]
    return leaf
