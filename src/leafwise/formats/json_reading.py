"""Conversion of parsed JSON to a Network, or to an error that says what is wrong and where."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from leafwise.data.table import Variable
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.formats.tables import Room
from leafwise.network import Network, Node, TiedLeaf
from leafwise.own_tests import OwnTests, states_at

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
}
_MOST_COUNT = 2**53
_LARGEST = 1e308


class _Names(NamedTuple):
    """The variables, with lookups of variables by name and of states by label."""

    variables: tuple[Variable, ...]
    number: Mapping[str, int]
    state: Sequence[Mapping[str, int]]


def read_network(document: Mapping[str, Any], room: Room) -> Network:
    """The network in a parsed file."""
    variables = tuple(
        _read_variable(entry, f"variables[{k}]")
        for k, entry in enumerate(member_of(document, "variables", list, "file"))
    )
    names = _Names(
        variables,
        {variable.name: k for k, variable in enumerate(variables)},
        [{label: state for state, label in enumerate(variable.labels)} for variable in variables],
    )
    if len(names.number) < len(variables):
        raise ValueError("two variables have the same name, and a name stands for one variable: rename one.")
    nodes: list[Node | None] = [None] * len(variables)
    for k, entry in enumerate(member_of(document, "nodes", list, "file")):
        index = _number(names, member_of(entry, "variable", str, f"nodes[{k}]"), f"nodes[{k}]")
        if nodes[index] is not None:
            raise ValueError(f"variable {variables[index].name!r} has two nodes, and it takes one: leave one out.")
        nodes[index] = _read_node(entry, names, index, room)
    prior, structure_prior = (_optional_text(document, key) for key in ("prior", "structure_prior"))
    learned = member_of(document, "learned", dict, "file") if "learned" in document else {}
    groups = member_of(document, "ties", list, "file") if "ties" in document else []
    ties = tuple(_read_ties(group, names, nodes, f"ties[{k}]") for k, group in enumerate(groups))
    return Network(variables, tuple(nodes), prior, structure_prior, learned, ties)


def _read_ties(group: Any, names: _Names, nodes: Sequence[Node | None], where: str) -> tuple[TiedLeaf, ...]:
    ties = []
    for entry in _kind(group, list, where):
        index = _number(names, member_of(entry, "variable", str, where), where)
        leaf, node, state_of = member_of(entry, "leaf", int, where), nodes[index], names.state[index]
        if node is None or not 0 <= leaf < node.n_leaves:
            raise ValueError(
                f"the {where} name leaf {leaf} of {entry['variable']!r}, which has no such leaf: repair it."
            )
        labels = member_of(entry, "states", list, where)
        states = [state_of.get(label) if isinstance(label, str) else None for label in labels]
        if None in states:
            label = labels[states.index(None)]
            raise ValueError(f"the {where} name {_brief(label)}, no state of {entry['variable']!r}: use its labels.")
        ties.append(TiedLeaf(index, node.leaf_rows[leaf], tuple(state for state in states if state is not None)))
    return tuple(ties)


def member_of(entry: Any, key: str, kind: type, where: str) -> Any:
    """A member of an object, of the required type."""
    _kind(entry, dict, where)
    if key not in entry:
        raise ValueError(f'the {where} lacks "{key}", and it needs {_KINDS[kind]} there: add it.')
    return _kind(entry[key], kind, f'"{key}" of the {where}')


def _kind(value: Any, kind: type, where: str) -> Any:
    number: Any = value
    kinds: tuple[type, ...] = (int, float) if kind is float else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"the {where} is {_brief(value)}, and it must be {_KINDS[kind]}: repair the file.")
    if kind is float and abs(number) > _LARGEST:
        raise ValueError(f"the {where} is {_brief(value)}, too large for a number here: repair the file.")
    return value


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"


def _optional_text(document: Mapping[str, Any], key: str) -> str | None:
    value = document.get(key)
    return None if value is None else str(_kind(value, str, f'"{key}" of the file'))


def _read_variable(entry: Any, where: str) -> Variable:
    name = member_of(entry, "name", str, where)
    labels = [_kind(label, str, f"label of {name!r}") for label in member_of(entry, "labels", list, where)]
    cuts = [
        float(_kind(cut, float, f"cut of {name!r}"))
        for cut in _kind(entry.get("cuts", []), list, f'"cuts" of {name!r}')
    ]
    flags = (_kind(entry.get(key, False), bool, f'"{key}" of {name!r}') for key in ("missing", "ordered", "hidden"))
    return Variable(name, tuple(labels), tuple(cuts), *flags)


def _number(names: _Names, name: str, where: str) -> int:
    if name not in names.number:
        raise ValueError(
            f"the {where} names the variable {_brief(name)}, which is not among the variables: add it there."
        )
    return names.number[name]


def _read_node(entry: Any, names: _Names, index: int, room: Room) -> Node:
    where = f"node of {names.variables[index].name!r}"
    parents = [
        _number(names, _kind(name, str, f"parent in the {where}"), where)
        for name in member_of(entry, "parents", list, where)
    ]
    entries = member_of(entry, "graph", list, where)
    graph = _read_graph(entries, names, where, room)
    others = set(graph.tested) - {index, *parents}
    if others:
        name = names.variables[min(others)].name
        raise ValueError(f"the {where} tests {name!r}, which is not among its parents: add it to them.")
    holding = [entry for entry, test in zip(entries, graph.tests, strict=True) if test in (LEAF, index)]
    try:
        return _node_of(holding, names.variables[index].n_states, index, tuple(sorted(parents)), graph)
    except ValueError as error:
        raise ValueError(f"in the {where}: {error}") from None


def _read_graph(entries: list[Any], names: _Names, where: str, room: Room) -> DecisionGraph:
    tests: list[int] = []
    children: list[tuple[int, ...]] = []
    leaf = 0
    for number, entry in enumerate(entries):
        place = f"graph node {number} in the {where}"
        if "test" in _kind(entry, dict, place):
            tests.append(_number(names, member_of(entry, "test", str, place), place))
            room.take(names.variables[tests[-1]].n_states, _refuse)
            children.append(_read_arcs(member_of(entry, "arcs", list, place), names, tests[-1], place))
        else:
            if member_of(entry, "leaf", int, place) != leaf:
                raise ValueError(f"the {place} is leaf {entry['leaf']}, and leaf {leaf} is due: number them in order.")
            tests.append(LEAF)
            children.append(())
            leaf += 1
    return DecisionGraph(tuple(tests), tuple(children))


def _refuse(problem: str) -> NoReturn:
    raise ValueError(problem)


def _read_arcs(arcs: list[Any], names: _Names, variable: int, place: str) -> tuple[int, ...]:
    """The child of each state; the arcs must partition the states."""
    state_of = names.state[variable]
    child_of: dict[int, int] = {}
    others: list[int] = []
    for arc in arcs:
        to = member_of(arc, "to", int, f"arc of {place}")
        if "states" not in arc:
            others.append(to)
            continue
        for label in member_of(arc, "states", list, f"arc of {place}"):
            if not isinstance(label, str) or label not in state_of:
                raise ValueError(f"the {place} has an arc for {_brief(label)}, no state of its test: use its labels.")
            if state_of[label] in child_of:
                raise ValueError(f"the {place} has two arcs for the state {label!r}, and one is allowed: drop one.")
            child_of[state_of[label]] = to
    left = [state for state in range(names.variables[variable].n_states) if state not in child_of]
    if len(others) > 1 or bool(left) != bool(others):
        label = names.variables[variable].labels[left[0]] if left else ""
        what = f"no arc for the state {label!r}" if left and not others else "too many arcs without states"
        raise ValueError(f"the {place} has {what}, and its arcs must share out all states: repair the arcs.")
    child_of.update(dict.fromkeys(left, others[0] if others else 0))
    return tuple(child_of[state] for state in range(len(child_of)))


def _node_of(entries: list[Any], n_states: int, index: int, parents: tuple[int, ...], graph: DecisionGraph) -> Node:
    """The node, from the entries with a distribution: leaves and own-value tests."""
    has_own = index in graph.tests
    learned = ["counts" in entry for entry in entries]
    if not any(learned):
        rows = np.array([_numbers(entry, "probabilities", n_states) for entry in entries], np.float64)
        return Node.with_own_tests(OwnTests(graph, index, rows), parents) if has_own else Node(parents, graph, rows)
    if not all(learned):
        raise ValueError("some leaves have counts and some have none: give all of them counts, or none.")
    counts = np.array([_counts(entry, n_states) for entry in entries])
    exponents = np.array([_exponents(entry, n_states) for entry in entries], np.float64)
    if not has_own:
        return Node.learned(parents, graph, counts, exponents)
    states = states_at(graph, index, n_states)
    for row, place in enumerate(place for place, test in enumerate(graph.tests) if test in (LEAF, index)):
        if not isinstance(entries[row].get("exponents"), list):  # a single number is for all states that reach it
            exponents[row, [state for state in range(n_states) if state not in states[place]]] = 0
    return Node.with_own_tests(OwnTests.learned(graph, counts, exponents, index), parents)


def _named(entry: Any) -> str:
    return f"leaf {entry['leaf']}" if "leaf" in entry else f"own-value test of {entry['test']!r}"


def _numbers(entry: Any, key: str, n_states: int) -> list[float]:
    values = member_of(entry, key, list, _named(entry))
    if len(values) != n_states:
        raise ValueError(f"{_named(entry)} has {len(values)} {key}, and {n_states} are due: give each state one.")
    return [_kind(value, float, f'"{key}" of the {_named(entry)}') for value in values]


def _counts(entry: Any, n_states: int) -> list[float]:
    counts = _numbers(entry, "counts", n_states)
    if any(not 0 <= count <= _MOST_COUNT for count in counts):
        raise ValueError(f"{_named(entry)} has the counts {_brief(counts)}: give numbers from 0 on.")
    return counts


def _exponents(entry: Any, n_states: int) -> list[float]:
    exponents = entry.get("exponents", 1.0)
    if isinstance(exponents, list):
        return _numbers(entry, "exponents", n_states)
    return [_kind(exponents, float, f'"exponents" of the {_named(entry)}')] * n_states
