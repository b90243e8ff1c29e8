"""Complete tables: decision graphs expanded for formats that support nothing else, and nodes made from tables."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.data.table import Variable, brief
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.errors import Advice, AdvisedError
from leafwise.network import Network, Node

MOST_CELLS = 1_000_000  # of one table, by default
_KEPT = 0.9e-6  # a little less than a Node allows
_SCALED = 1.0001e-3
_NUMBER = re.compile(r"[-+]?+(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+")

Fail = Callable[[str], NoReturn]  # raises a ValueError with the problem and its place


class Room:
    """The number of numbers that a file may still become: a million, its number of bytes, or a given limit.

    So no table that is written out in full is refused, and no small file becomes large by accident.

    >>> Room(10**7).left, Room(100).left, Room(100, most_cells=10**9).left
    (10000000, 1000000, 1000000000)
    """

    def __init__(self, n_bytes: int, most_cells: int | None = None) -> None:
        self.n_bytes = n_bytes
        self.most = self.left = max(MOST_CELLS, n_bytes, most_cells or 0)

    def take(self, n: int, fail: Fail) -> None:
        """Reserve `n` numbers, or fail."""
        if n > self.left:
            fail(
                Advice(
                    f"with {amount(n)} numbers more the file becomes more than {self.most:,}, the limit for its "
                    f"{self.n_bytes:,} bytes: convert it with larger ",
                    ("most_cells",),
                    ", or take out parents or states.",
                )
            )
        self.left -= n


def check_size(what: str, n_cells: int, most_cells: int) -> None:
    """Raise an error if something would have too many numbers."""
    if n_cells > most_cells:
        raise AdvisedError(
            f"{what} would have {amount(n_cells)} cells, more than the limit of {most_cells:,}: raise ",
            ("most_cells",),
            ", or save it as JSON, which keeps its leaves.",
        )


def complete_table(network: Network, index: int, most_cells: int = MOST_CELLS) -> NDArray[np.float64]:
    """A variable's distribution as an array: one axis for each parent, in order, and one for its own states.

    >>> from leafwise.examples import alarm
    >>> network = alarm()
    >>> complete_table(network, network.names.index("SHUNT")).shape
    (2, 3, 2)
    """
    rows, node = complete_rows(network, index, most_cells), network.nodes[index]
    return rows.reshape(*(network.variables[parent].n_states for parent in (node.parents if node else ())), -1)


def complete_rows(network: Network, index: int, most_cells: int = MOST_CELLS) -> NDArray[np.float64]:
    """The same as rows, the last parent varying fastest: the number of parents is not limited to that of axes."""
    node, variables = network.nodes[index], network.variables
    name = variables[index].name
    if node is None:
        raise ValueError(
            f"{brief(name)} is only given and has no distribution, and tables need one for each: save it as JSON."
        )
    shape = tuple(variables[parent].n_states for parent in node.parents)
    n_cells = math.prod(shape) * node.n_states
    check_size(f"the table of {brief(name)} given its {len(shape)} parents", n_cells, most_cells)
    return node.probabilities[leaves_of(node.graph, dict(zip(node.parents, shape, strict=True)))]


def names_of_parents(network: Network, index: int) -> list[str]:
    """The names of a variable's parents, in the order of the axes of its table."""
    node = network.nodes[index]
    return [network.names[parent] for parent in (node.parents if node else ())]


def fitted(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rounded rows as distributions: unchanged if they sum to one within a millionth, else divided by their sum.

    A row whose sum is off by more than a thousandth, or with a negative number, becomes nan.

    >>> fitted(np.array([[0.333, 0.333, 0.333], [0.1, 0.2, 0.3]])).round(4).tolist()
    [[0.3333, 0.3333, 0.3333], [nan, nan, nan]]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        sums = rows.sum(axis=1, keepdims=True)
    off = abs(sums - 1)
    bad = ~(off <= _SCALED) | (rows < 0).any(axis=1, keepdims=True)
    return np.where(bad, np.nan, np.where(off <= _KEPT, rows, rows / np.where(bad, 1, sums)))


def table_node(parents: Sequence[int], table: NDArray[np.float64], n_states: Sequence[int]) -> Node:
    """The node of a table: its last axis is the variable's own states; those before, or rows, the parents' states.

    >>> table_node((2, 0), np.full((3, 2, 2), 0.5), (2, 2, 3)).parents
    (0, 2)
    """
    several = [parent for parent in parents if n_states[parent] > 1]  # as the number of axes of an array is limited
    order = sorted(range(len(several)), key=several.__getitem__)
    axes = table.reshape(*(n_states[parent] for parent in several), table.shape[-1])
    rows = axes.transpose(*order, len(several)).reshape(-1, table.shape[-1])
    return Node(tuple(sorted(parents)), DecisionGraph.complete(sorted(several), n_states), rows)


def rows_of_text(rows: NDArray[np.float64]) -> list[str]:
    """The numbers of a table, one line per assignment of the parents, to be read back to the last bit."""
    return [" ".join(map(repr, row)) for row in rows.tolist()]


def numbers_of(text: str, due: int, fail: Fail) -> list[float]:
    """The `due` numbers in a text, separated by blanks, or fail."""
    words = text.split()
    odd = next((word for word in words if not _NUMBER.fullmatch(word)), None)
    if odd is not None:
        fail(f"{odd[:30]!r} came where a number is expected: write one.")
    if len(words) != due:
        fail(f"{len(words):,} numbers came where {amount(due)} are expected: give each state one.")
    return list(map(float, words))


def checked_rows(values: NDArray[np.float64], fail_of: Callable[[int], Fail]) -> NDArray[np.float64]:
    """Rows as distributions; fails if one of them cannot be."""
    rows = fitted(values)
    wrong = np.flatnonzero(np.isnan(rows[:, 0]))
    if wrong.size:
        row = values[wrong[0]].tolist()
        what = f"sum to {sum(row):.6g} where 1 is expected" if min(row) >= 0 else "are not all from 0 on"
        fail_of(int(wrong[0]))(f"these probabilities {what}: correct them.")
    return rows


@dataclass
class Draft:
    """A network of tables under construction, piece by piece; what does not fit is refused with its place."""

    room: Room
    variables: dict[str, Variable] = field(default_factory=dict)
    number: dict[str, int] = field(default_factory=dict)
    nodes: dict[int, Node] = field(default_factory=dict)
    n_states: list[int] = field(default_factory=list)

    def add_variable(self, name: str, labels: Sequence[str], fail: Fail) -> None:
        """Add the next variable."""
        if name in self.number:
            fail(f"the variable {name[:30]!r} came before, and a name stands for one: rename one.")
        try:
            self.variables[name] = Variable(name, tuple(labels))
        except ValueError as error:
            fail(str(error))
        self.number[name] = len(self.n_states)
        self.n_states.append(len(labels))

    def known(self, name: str, fail: Fail) -> int:
        """The number of a variable, or fail."""
        if name not in self.number:
            fail(f"{name[:30]!r} came where a variable is expected: declare it.")
        return self.number[name]

    def n_cells(self, index: int, parents: Sequence[int], fail: Fail) -> int:
        """The size of a variable's table given these parents; fails if it already has a table."""
        if index in self.nodes:
            fail(f"{brief(list(self.variables)[index])} has a second distribution, and it takes one: leave one out.")
        if index in parents or len(set(parents)) < len(parents):
            fail("the variable itself, or another one twice, came where its parents are expected: name each once.")
        n_cells = math.prod(self.n_states[parent] for parent in parents) * self.n_states[index]
        self.room.take(n_cells, fail)
        return n_cells

    def add_table(self, index: int, parents: Sequence[int], values: Sequence[float], fail: Fail) -> None:
        """Add a variable's distribution: the first parent varies slowest, the variable itself fastest."""
        rows = checked_rows(np.array(values, np.float64).reshape(-1, self.n_states[index]), lambda _: fail)
        self.nodes[index] = table_node(parents, rows, self.n_states)

    def network(self, fail: Fail) -> Network:
        """The complete network; fails if a table is missing or the arcs form a cycle."""
        names = tuple(self.variables)
        if not names:
            fail("the network has no variables, and at least one is expected: declare some.")
        for index, name in enumerate(names):
            if index not in self.nodes:
                fail(f"{name[:30]!r} has no distribution, and each variable takes one: add it.")
        nodes = tuple(self.nodes[index] for index in range(len(names)))
        cycle = dag.find_cycle([node.parents for node in nodes])
        if cycle:
            arrows = " → ".join(repr(names[index]) for index in cycle)
            fail(f"the arcs {arrows[:200]} form a cycle, and a network has none: leave one of them out.")
        return Network(tuple(self.variables.values()), nodes)


def amount(number: int) -> str:
    """A whole number as shown in a message, however large.

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
    at = np.zeros(n_rows, np.intp)  # all walk from the root together, one test per step; leaves lead to themselves
    while (tests[at] != LEAF).any():
        at = children[first[at] + assignments // strides[at] % sizes[at]]
    leaf: NDArray[np.intp] = (np.cumsum(tests == LEAF) - 1)[at]
    return leaf
