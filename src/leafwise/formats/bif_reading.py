"""Parsing of BIF text: a Network, or an error that says where the text is wrong and what was expected.

Variables must be declared before they are used. Rows that sum to one within a millionth, as rounded ones do, are kept
unchanged; those within a thousandth are divided by their sum; others are refused.
"""

import math
import re
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.data.table import Variable
from leafwise.formats.bif_text import Cursor, brief
from leafwise.formats.tables import Room, amount, fitted, table_node
from leafwise.network import Network, Node

_COUNT = re.compile(r"[0-9]{1,6}")


@dataclass
class _Found:
    """What has been read so far."""

    variables: list[Variable] = field(default_factory=list)
    number: dict[str, int] = field(default_factory=dict)
    states: list[dict[str, int]] = field(default_factory=list)
    declared: list[int] = field(default_factory=list)  # where
    nodes: list[Node | None] = field(default_factory=list)
    n_states: list[int] = field(default_factory=list)
    given: list[int] = field(default_factory=list)  # where the distribution of each begins


@dataclass
class _Rows:
    """The rows of one distribution, as given in the file."""

    shape: tuple[int, ...]  # numbers of states of the parents, in file order
    n_states: int
    values: list[list[float]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    which: dict[int, int] = field(default_factory=dict)  # assignment of the parents to row
    default: int | None = None


def read_network(text: str, room: Room) -> Network:
    """The network of a BIF text."""
    cursor, found = Cursor(text), _Found()
    _read_head(cursor)
    while not cursor.at_end():
        keyword = cursor.word("'variable' or 'probability'")
        if keyword == "variable":
            _read_variable(cursor, found)
        elif keyword == "probability":
            _read_distribution(cursor, found, room)
        else:
            cursor.fail(
                f"{brief(keyword)} came where 'variable' or 'probability' is expected: begin a block by one of them.",
                cursor.began,
            )
    _check_all(cursor, found)
    return Network(tuple(found.variables), tuple(found.nodes))


def _read_head(cursor: Cursor) -> None:
    keyword = cursor.word("the word 'network'")
    if keyword != "network":
        cursor.fail(f"{brief(keyword)} came where 'network' is expected: begin with network NAME {{ }}.", cursor.began)
    cursor.word("the network's name")
    cursor.expect("{", "write network NAME { }")
    while not cursor.takes("}"):
        _read_property(cursor, "'property' or '}'")


def _read_property(cursor: Cursor, expected: str) -> None:
    keyword = cursor.word(expected)
    if keyword != "property":
        cursor.fail(f"{brief(keyword)} came where {expected} is expected: close the block before it.", cursor.began)
    cursor.skip_statement()


def _read_variable(cursor: Cursor, found: _Found) -> None:
    name = cursor.word("the variable's name")
    place = cursor.began
    if name in found.number:
        cursor.fail(f"the variable {name!r} is declared twice, and a name stands for one: rename one.", place)
    cursor.expect("{", "write variable NAME { type discrete [ 2 ] { a, b }; }")
    states: dict[str, int] | None = None
    while not cursor.takes("}"):
        keyword = cursor.word("'type', 'property' or '}'")
        if keyword == "property":
            cursor.skip_statement()
        elif keyword == "type" and states is None:
            states = _read_type(cursor)
        else:
            cursor.fail(f"{brief(keyword)} came where one type, 'property' or '}}' is expected: drop it.", cursor.began)
    if states is None:
        cursor.fail(f"the variable {name!r} has no type: write type discrete [ 2 ] {{ a, b }}; in it.", place)
    try:
        variable = Variable(name, tuple(states))
    except ValueError as error:
        cursor.fail(str(error), place)
    found.number[name] = len(found.variables)
    found.variables.append(variable)
    found.states.append(states)
    found.n_states.append(len(states))
    found.declared.append(place)
    found.nodes.append(None)
    found.given.append(place)


def _read_type(cursor: Cursor) -> dict[str, int]:
    kind = cursor.word("'discrete'")
    if kind != "discrete":
        cursor.fail(f"the type {brief(kind)} came where 'discrete' is expected: no other can be read.", cursor.began)
    cursor.expect("[", "write the number of states between [ and ]")
    count, place = cursor.word("the number of states"), cursor.began
    if not _COUNT.fullmatch(count):
        cursor.fail(f"{brief(count)} came where the number of states is expected: write it in digits.", place)
    cursor.expect("]", "write the number of states between [ and ]")
    cursor.expect("{", "list the states between { and }")
    states: dict[str, int] = {}
    while not cursor.takes("}"):
        label = cursor.word("a state or '}'")
        if label in states or len(states) == int(count):
            expected = "another state" if label in states else f"'}}' after {count} states"
            cursor.fail(
                f"{brief(label)} came where {expected} is expected: drop it, or correct the number.", cursor.began
            )
        states[label] = len(states)
        cursor.takes(",")
    if len(states) < int(count):
        cursor.fail(f"{count} states are said to follow, and {len(states)} do: correct one of them.", place)
    cursor.expect(";", "end the type by a semicolon")
    return states


def _read_distribution(cursor: Cursor, found: _Found, room: Room) -> None:
    cursor.expect("(", "write probability ( NAME | PARENT, PARENT )")
    index = _known(cursor, found)
    place = cursor.began
    if found.nodes[index] is not None:
        name = found.variables[index].name
        cursor.fail(f"{name!r} has a second distribution, and it takes one: leave one out.", place)
    parents = _read_parents(cursor, found, index)
    cursor.expect("{", "write the rows of the distribution between { and }")
    shape = tuple(len(found.states[parent]) for parent in parents)
    rows = _Rows(shape, len(found.states[index]))
    while not cursor.takes("}"):
        _read_entry(cursor, rows, [found.states[parent] for parent in parents])
    table = _filled(cursor, rows, place, room)
    found.nodes[index] = table_node(parents, table, found.n_states)
    found.given[index] = place


def _known(cursor: Cursor, found: _Found) -> int:
    name = cursor.word("a variable")
    if name not in found.number:
        cursor.fail(f"{brief(name)} came where a variable is expected: declare it in a block above.", cursor.began)
    return found.number[name]


def _read_parents(cursor: Cursor, found: _Found, index: int) -> list[int]:
    """The parents up to ')'. The bar and commas are optional, as in files of JavaBayes."""
    parents: dict[int, None] = {}
    if not cursor.takes("|"):
        cursor.takes(",")
    while not cursor.takes(")"):
        parent = _known(cursor, found)
        if parent == index or parent in parents:
            name = found.variables[parent].name
            cursor.fail(f"{name!r} came again where another parent is expected: name it once.", cursor.began)
        parents[parent] = None
        cursor.takes(",")
    return list(parents)


def _read_entry(cursor: Cursor, rows: _Rows, states: list[dict[str, int]]) -> None:
    """Read a row, a table of all rows, the default of the other rows, or a property."""
    if cursor.takes("("):
        place = cursor.began
        cursor.place = place
        assignment = _read_assignment(cursor, states)
        if assignment in rows.which:
            cursor.fail("a row for these states came before, and each takes one: leave one out.", place)
        rows.which[assignment] = len(rows.values)
        rows.values.append(cursor.numbers(rows.n_states))
        rows.places.append(place)
        return
    keyword, place = cursor.word("'(', 'table', 'default', 'property' or '}'"), cursor.began
    if keyword == "property":
        cursor.skip_statement()
    elif keyword == "table" and not rows.which:
        _read_table(cursor, rows, place)
    elif keyword == "default" and rows.default is None:
        rows.default = len(rows.values)
        rows.values.append(cursor.numbers(rows.n_states))
        rows.places.append(place)
    else:
        problem = (
            f"{brief(keyword)} came where a row, one table, one 'default', 'property' or '}}' is expected: drop it."
        )
        cursor.fail(problem, place)


def _read_assignment(cursor: Cursor, states: list[dict[str, int]]) -> int:
    """The states in parentheses as one number, the last parent's varying fastest."""
    start = cursor.place
    labels = cursor.plain_row()
    if labels is not None and len(labels) == len(states):
        assignment = 0
        for label, state_of in zip(labels, states, strict=True):
            state = state_of.get(label)
            if state is None:
                break
            assignment = assignment * len(state_of) + state
        else:
            return assignment
    cursor.place = start
    return _read_assignment_by_words(cursor, states)


def _read_assignment_by_words(cursor: Cursor, states: list[dict[str, int]]) -> int:
    cursor.expect("(", "list the parents' states between ( and )")
    assignment = 0
    for number, state_of in enumerate(states, start=1):
        label = cursor.word(f"a state of parent {number}")
        if label not in state_of:
            some = ", ".join(map(repr, list(state_of)[:5])) + ", …" * (len(state_of) > 5)
            cursor.fail(f"{brief(label)} came where a state of parent {number} is expected: use {some}.", cursor.began)
        assignment = assignment * len(state_of) + state_of[label]
        cursor.takes(",")
    cursor.expect(")", f"give one state for each of the {len(states)} parents")
    return assignment


def _read_table(cursor: Cursor, rows: _Rows, place: int) -> None:
    """Read all numbers at once: the variable's own state varies slowest, the last parent's fastest."""
    n_rows = math.prod(rows.shape)
    due = n_rows * rows.n_states
    if due > len(cursor.text):
        cursor.fail(
            f"a table of {amount(due)} numbers is expected, more than the file can hold: drop some parents.", place
        )
    values = cursor.numbers(due)
    for assignment in range(n_rows):
        rows.which[assignment] = len(rows.values)
        rows.values.append(values[assignment::n_rows])
        rows.places.append(place)


def _filled(cursor: Cursor, rows: _Rows, place: int, room: Room) -> NDArray[np.float64]:
    """The rows of all assignments in order, each summing to one."""
    n_rows = math.prod(rows.shape)
    if rows.default is None and len(rows.which) < n_rows:
        missing = next(number for number in range(n_rows) if number not in rows.which)
        cursor.fail(
            f"{len(rows.which):,} rows came where {amount(n_rows)} are expected, and row {missing + 1:,} (the last "
            f"parent varying fastest) is missing: add it, or a default.",
            place,
        )
    room.take(n_rows * rows.n_states, lambda problem: cursor.fail(problem, place))
    values = np.array(rows.values, np.float64).reshape(-1, rows.n_states)
    distributions = fitted(values)
    wrong = np.flatnonzero(np.isnan(distributions[:, 0]))
    if wrong.size:
        total = values[wrong[0]].sum()
        cursor.fail(f"these probabilities sum to {total:.6g} where 1 is expected: correct them.", rows.places[wrong[0]])
    default = -1 if rows.default is None else rows.default
    return distributions[[rows.which.get(number, default) for number in range(n_rows)]]


def _check_all(cursor: Cursor, found: _Found) -> None:
    """Fail unless every variable has a distribution and the arcs are acyclic."""
    if not found.variables:
        cursor.fail("the network has no variables, and at least one is expected: declare some.")
    for variable, node, place in zip(found.variables, found.nodes, found.declared, strict=True):
        if node is None:
            name = variable.name
            cursor.fail(f"{name!r} has no distribution, and each variable takes one: write probability ( … ).", place)
    cycle = dag.find_cycle([node.parents for node in found.nodes if node is not None])
    if cycle:
        arrows = " → ".join(repr(found.variables[index].name) for index in cycle)
        problem = f"the arcs {arrows} form a cycle, and a network has none: leave one of them out."
        cursor.fail(problem, found.given[cycle[0]])
