"""Conversion of XMOD to a Network, or to an error that says where the file is wrong and what was expected."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.formats.tables import MOST_CELLS, Room, amount, checked_rows, numbers_of, table_node
from leafwise.formats.xml_elements import Element, parsed
from leafwise.network import Network, Node


@dataclass(frozen=True)
class _Names:
    variables: tuple[Variable, ...]
    number: dict[str, int]

    def of(self, element: Element, attribute: str) -> int:
        name = element.attribute(attribute)
        if name not in self.number:
            element.fail(f"{name[:30]!r} came where a variable is expected: declare it in <Variables>.")
        return self.number[name]


def read_network(data: bytes, room: Room) -> Network:
    """The network of an XMOD file."""
    root = parsed(data, "AnalysisNotebook", "XMOD")
    variables = _read_variables(root)
    names = _Names(variables, {variable.name: k for k, variable in enumerate(variables)})
    nodes: list[Node | None] = [None] * len(variables)
    for model in root.one("Model").one("LocalModels").all("LocalModel"):
        index = names.of(model, "variable")
        if nodes[index] is not None:
            model.fail(f"{variables[index].name!r} has a second <LocalModel>, and it takes one: leave one out.")
        nodes[index] = _read_node(model, names, index, room)
    cycle = dag.find_cycle([() if node is None else node.parents for node in nodes])
    if cycle:
        arrows = " → ".join(repr(variables[index].name) for index in cycle)
        root.fail(f"the arcs {arrows} form a cycle, and a network has none: leave one of them out.")
    return Network(variables, tuple(nodes))


def _read_variables(root: Element) -> tuple[Variable, ...]:
    section = root.one("Variables")
    types = {
        entry.attribute("name"): _read_labels(entry, {})
        for place in (root, section)
        for group in place.all("TypeVariables")
        for entry in group.all("Variable")
    }
    found: dict[str, Variable] = {}
    for entry in section.all("Variable"):
        name = entry.attribute("name")
        if name in found:
            entry.fail(f"the variable {name[:30]!r} came before, and a name stands for one: rename one.")
        labels = _read_labels(entry, types)
        try:
            found[name] = Variable(name, labels)
        except ValueError as error:
            entry.fail(str(error))
    return tuple(found.values())


def _read_labels(entry: Element, types: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    states = entry.all("State")
    if not states and entry.attributes.get("typeVariable") in types:
        return types[entry.attributes["typeVariable"]]
    labels = {state.attribute("index"): state.attribute("name") for state in states}
    if set(labels) != set(map(str, range(len(states)))):
        entry.fail(f"the indices of {len(states)} states came otherwise than as 0, 1, …, each once: correct them.")
    if len(set(labels.values())) < len(states):
        entry.fail("two states have the same name where names must differ: rename one.")
    return tuple(labels[str(state)] for state in range(len(states)))


def _read_node(model: Element, names: _Names, index: int, room: Room) -> Node:
    inputs = [names.of(entry, "variable") for group in model.all("Inputs") for entry in group.all("Input")]
    if index in inputs or len(set(inputs)) < len(inputs):
        model.fail(
            "the <Inputs> name the variable itself, or another twice, where other variables are expected: drop it."
        )
    if model.all("Table"):
        return _read_table(model.one("Table"), names, index, inputs)
    return _read_tree(model.one("DecisionTree"), names, index, inputs, room)


def _read_tree(top: Element, names: _Names, index: int, inputs: list[int], room: Room) -> Node:
    """The tree, with nodes numbered from the root down, level by level."""
    waiting: list[tuple[Element, dict[int, frozenset[int]]]] = [(_below(top), {})]
    tests: list[int] = []
    children: list[tuple[int, ...]] = []
    leaves: list[Element] = []
    for element, possible in waiting:  # grows during the loop
        if element.tag == "Leaf":
            tests.append(LEAF)
            children.append(())
            leaves.append(element)
            continue
        variable = names.of(element, "split")
        if variable == index:
            element.fail("a vertex splits by the variable itself where a parent is expected: name another.")
        every = frozenset(range(names.variables[variable].n_states))
        states_of = _read_branches(element, len(every), possible.get(variable, every))
        room.take(len(every) + len(states_of) * len(possible), element.fail)
        child_of: dict[int, int] = {}
        for branch, states in states_of:
            child_of.update(dict.fromkeys(states, len(waiting)))
            waiting.append((_below(branch), {**possible, variable: states}))
        tests.append(variable)
        children.append(tuple(child_of.get(state, len(waiting) - 1) for state in sorted(every)))
    graph = DecisionGraph(tuple(tests), tuple(children))
    return Node(tuple(sorted({*inputs, *graph.tested})), graph, _read_rows(leaves, names.variables[index].n_states))


def _below(element: Element) -> Element:
    found = element.all("Vertex") + element.all("Leaf")
    if len(found) != 1:
        element.fail(f"{len(found)} came in <{element.tag}> where one <Vertex> or <Leaf> is expected: correct that.")
    return found[0]


def _read_branches(vertex: Element, n_states: int, possible: frozenset[int]) -> list[tuple[Element, frozenset[int]]]:
    """The branches and their states, by smallest state; they must partition the states left by earlier tests."""
    groups = [(branch, branch.one("Values").whole_numbers(n_states)) for branch in vertex.all("Branch")]
    named = [state for _, states in groups for state in states]
    if len(set(named)) < len(named) or not possible <= set(named) or not all(states for _, states in groups):
        vertex.fail("the branches do not share out the states of their split, and each state takes one: correct them.")
    return sorted(((branch, frozenset(states)) for branch, states in groups), key=lambda group: min(group[1]))


def _read_rows(elements: list[Element], n_states: int) -> NDArray[np.float64]:
    """The distributions of leaves, or of the entries of a table."""
    places = [element.one("Multinomial").one("Probs") for element in elements]
    values = np.array([numbers_of(place.text, n_states, place.fail) for place in places])
    return checked_rows(values, lambda row: places[row].fail)


def _read_table(top: Element, names: _Names, index: int, inputs: list[int]) -> Node:
    shape = tuple(names.variables[parent].n_states for parent in inputs)
    n_rows, n_states = math.prod(shape), names.variables[index].n_states
    entries = top.all("TableEntry")
    if len(entries) != n_rows:
        top.fail(f"{len(entries):,} rows came where {amount(n_rows)} are expected: give each assignment one.")
    table = np.full((*shape, n_states), np.nan)
    for entry, row in zip(entries, _read_rows(entries, n_states), strict=True):
        states = tuple(state for part in entry.all("InputStates") for state in part.whole_numbers(MOST_CELLS))
        if len(states) != len(shape) or any(state >= size for state, size in zip(states, shape, strict=True)):
            entry.fail(f"{states[:5]} came where a state of each of {len(shape)} inputs is expected: correct them.")
        table[states] = row
    if np.isnan(table).any():
        top.fail("two rows came for the same states, and each takes one: leave one out.")
    return table_node(inputs, table, [variable.n_states for variable in names.variables])
