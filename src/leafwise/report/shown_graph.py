"""Decision graphs in words: the names of tests, arcs and leaves, in all displays."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.binning import cut_texts
from leafwise.data.dates import date_labels
from leafwise.data.new_data import is_dated
from leafwise.data.table import Table, Variable, brief, many
from leafwise.decision_graph import DecisionGraph
from leafwise.network import Network, Node, TiedLeaf

_FEW_STATES = 3  # the most states that are listed in full
_FEW_TIES = 3  # the most tied leaves that are listed


@dataclass(frozen=True)
class ShownArc:
    """An arc of a test: its states in short and in full, and for an own-value test the share of its switch."""

    states: str
    full: str
    child: int
    share: float | None = None


@dataclass(frozen=True)
class ShownGraph:
    """The decision graph of a variable, with its own-value tests, as it is displayed.

    If `smallest`, identical leaves without cases are merged into the last of them. With cases `given`, the number of
    them that reach each test is known.
    """

    network: Network
    index: int
    node: Node
    smallest: bool = False
    given: Table | None = None

    @cached_property
    def graph(self) -> DecisionGraph:
        whole = self.node.whole_graph
        if not self.stands_for:
            return whole
        place = {whole.leaves[leaf]: whole.leaves[last] for leaf, last in self.stands_for.items()}
        children = tuple(tuple(place.get(child, child) for child in row) for row in whole.children)
        return DecisionGraph(whole.tests, children).simplified()

    @cached_property
    def stands_for(self) -> dict[int, int]:
        """For each leaf that is not displayed, the one that stands for it."""
        if not self.smallest or self.n_cases is None or self.node.own is not None:
            return {}
        unseen = [leaf for leaf in np.flatnonzero(self.n_cases == 0).tolist() if not self.tied(leaf)]
        last = {self.probabilities[leaf].tobytes(): leaf for leaf in unseen}  # the last, as arcs lead to later places
        pairs = [(leaf, last[self.probabilities[leaf].tobytes()]) for leaf in unseen]
        return {leaf: one for leaf, one in pairs if leaf != one}

    @property
    def variable(self) -> Variable:
        return self.network.variables[self.index]

    @cached_property
    def leaf_numbers(self) -> dict[int, int]:
        """The number of the leaf at each place that has one."""
        numbers = (leaf for leaf in range(self.node.n_leaves) if leaf not in self.stands_for)
        return dict(zip(self.graph.leaves, numbers, strict=True))

    def is_own(self, place: int) -> bool:
        """Whether a place tests the variable itself."""
        return self.graph.tests[place] == self.index

    def test_name(self, place: int) -> str:
        """The name of a test."""
        name = self.network.variables[self.graph.tests[place]].name
        return f"{name} itself" if self.is_own(place) else name

    def arcs(self, place: int) -> Iterator[ShownArc]:
        """The arcs of a test; for an own-value test, those of the states that can reach it."""
        tested = self.network.variables[self.graph.tests[place]]
        if not self.is_own(place) or self.node.own is None:
            for states, child in self.graph.arcs(place):
                full = f"{tested.name} = {', '.join(tested.labels[state] for state in sorted(states))}"
                yield ShownArc(arc_states(tested, states), full, child)
            return
        row = self.node.own.places.index(place)
        parts = self.node.own.parts[row]
        several = [part for part in parts if len(part) > 1]
        for part in parts:
            share, child = float(self.node.own.probabilities[row, part[0]]), self.graph.children[place][part[0]]
            listed = ", ".join(tested.labels[state] for state in part)
            text = arc_states(tested, frozenset(part)).removeprefix("= ")
            text = "other states" if several == [part] else text
            yield ShownArc(text, f"{tested.name} itself: {listed}: {share:.6g}", child, share)

    @cached_property
    def probabilities(self) -> NDArray[np.float64]:
        """The distributions of the leaves, one row each."""
        return (self.node.own or self.node).probabilities[list(self.node.leaf_rows)]

    @cached_property
    def flows(self) -> dict[tuple[int, int], NDArray[np.float64]]:
        """How many of the given cases pass each arc, by state: keys are where it begins and where it ends."""
        if self.given is None:
            return {}
        codes, n_states = self.given.codes, self.variable.n_states
        found: dict[tuple[int, int], NDArray[np.float64]] = {}
        rows: list[list[NDArray[np.int64]]] = [[] for _ in self.graph.tests]
        rows[0] = [np.arange(self.given.n_cases)]
        for place, children in enumerate(self.graph.children):  # which come after it
            if children:
                own = np.concatenate(rows[place])
                ends = np.array(children)[codes[self.graph.tests[place], own]]
                for child in sorted(set(children)):
                    which = own[ends == child]
                    found[place, child] = np.bincount(codes[self.index, which], minlength=n_states).astype(np.float64)
                    rows[child].append(which)
        return found

    @cached_property
    def cases(self) -> list[str]:
        """The number of cases in each leaf, in words; empty if unknown."""
        if self.n_cases is None:
            return [""] * self.node.n_leaves
        return [many(round(number), "case") for number in self.n_cases]

    @cached_property
    def n_cases(self) -> NDArray[np.float64] | None:
        """The number of cases in each leaf; None if unknown."""
        counts = (self.node.own or self.node).counts
        return None if counts is None else counts[list(self.node.leaf_rows)].sum(axis=1).astype(np.float64)

    def states(self, leaf: int) -> tuple[int, ...]:
        """The states over which a leaf has a distribution."""
        own = self.node.own
        return tuple(range(self.variable.n_states)) if own is None else own.states[self.graph.leaves[leaf]]

    def tied(self, leaf: int) -> str:
        """The leaves with which a leaf shares its distribution, in words; "" if there are none."""
        here = self._ties.get(self.node.leaf_rows[leaf])
        if here is None:
            return ""
        tied, group = here
        others = [self._other(tied, other) for other in group if other != tied]
        more = f" and {len(others) - _FEW_TIES} more" if len(others) > _FEW_TIES else ""
        return f"tied with {', '.join(others[:_FEW_TIES])}{more}"

    @cached_property
    def _ties(self) -> dict[int, tuple[TiedLeaf, tuple[TiedLeaf, ...]]]:
        return {
            tied.leaf: (tied, group) for group in self.network.ties for tied in group if tied.variable == self.index
        }

    def _other(self, tied: TiedLeaf, other: TiedLeaf) -> str:
        node, variable = self.network.nodes[other.variable], self.network.variables[other.variable]
        assert node is not None  # ties were validated by the network
        name = f"leaf {node.leaf_rows.index(other.leaf)}" + (f" of {variable.name}" if node is not self.node else "")
        pairs = sorted(zip(tied.states, other.states, strict=True))
        labels = [(self.variable.labels[one], variable.labels[two]) for one, two in pairs]
        if all(one == two for one, two in labels):
            return name
        return f"{name} ({', '.join(f'{one} as {two}' for one, two in labels if one != two)})"


def given_cases(network: Network, index: int, data: Any) -> Table | None:
    """Cases in the states of the network's variables, from a Table or what `read` accepts.

    Cases that lack a cell needed by the graph of the variable are omitted.
    """
    from leafwise.data.encoding import read_new
    from leafwise.inference.likelihood import check_variables

    if data is None:
        return None
    table = read_new(data, network.variables, missing="infer")  # missing cells become a state, not summed out
    check_variables(network, table, gaps=True)
    node = network.nodes[index]
    needed = [index, *(() if node is None else node.parents)]
    limits = np.array([network.variables[variable].n_states for variable in needed])
    is_whole = (table.codes[needed] < limits[:, None]).all(axis=0)
    if not is_whole.any():
        names = ", ".join(brief(network.names[variable]) for variable in needed)
        raise ValueError(f"no case shows all that this graph is about ({names}): give cases that do, or leave them out")
    return table if is_whole.all() else Table(table.variables, np.ascontiguousarray(table.codes[:, is_whole]))


def arc_states(variable: Variable, states: frozenset[int]) -> str:
    """The states of an arc: "= a, b", "≠ a" for all but a, "= a, b, c, … (12 states)"; a range if they are ordered.

    >>> arc_states(Variable("x", ("a", "b", "c")), frozenset({0, 2}))
    '≠ b'
    >>> age = Variable("age", ("< 30", "30 to 56", ">= 56"), cuts=(30.0, 56.0))
    >>> arc_states(age, frozenset({0, 1})), arc_states(age, frozenset({1})), arc_states(age, frozenset({0, 2}))
    ('< 56', '= 30 to 56', '< 30 or >= 56')
    >>> size = Variable("size", ("S", "M", "L", "XL"), ordered=True)
    >>> arc_states(size, frozenset({0, 1})), arc_states(size, frozenset({1, 2, 3})), arc_states(size, frozenset({0, 3}))
    ('≤ M', '≥ M', '= S, XL')
    """
    if variable.cuts:
        return _range(variable, sorted(states))
    if variable.ordered and (text := _span(variable, sorted(states))):
        return text
    others = [state for state in range(variable.n_states) if state not in states]
    if len(others) <= _FEW_STATES and len(others) < len(states) and others:
        return f"≠ {', '.join(variable.labels[state] for state in others)}"
    labels = [variable.labels[state] for state in sorted(states)]
    if len(labels) <= _FEW_STATES + 1:
        return f"= {', '.join(labels)}"
    return f"= {', '.join(labels[:_FEW_STATES])}, … ({len(labels)} states)"


def _span(variable: Variable, states: list[int]) -> str:
    """Consecutive states of a variable with ordered states; "" for others."""
    n, labels = variable.n_states - variable.missing, variable.labels
    own = [state for state in states if state < n]
    if len(own) < 2 or own[-1] - own[0] >= len(own) or len(own) == n:
        return ""
    text = f"= {labels[own[0]]} to {labels[own[-1]]}"
    if own[0] == 0 or own[-1] == n - 1:
        text = f"≤ {labels[own[-1]]}" if own[0] == 0 else f"≥ {labels[own[0]]}"
    return f"{text} or {labels[-1]}" if len(own) < len(states) else text


def _range(variable: Variable, states: list[int]) -> str:
    """The states of a binned variable, as ranges of its numbers or dates."""
    n_bins, cuts = len(variable.cuts) + 1, cut_texts(variable.cuts, date_labels if is_dated(variable) else None)
    bins = [state for state in states if state < n_bins]
    parts = []
    for first in [state for state in bins if state - 1 not in bins]:
        last = next(state for state in range(first, n_bins) if state + 1 not in bins)
        if first == 0 and last == n_bins - 1:
            parts.append("any date" if is_dated(variable) else "any number")
        elif first == 0:
            parts.append(f"< {cuts[last]}")
        elif last == n_bins - 1:
            parts.append(f">= {cuts[first - 1]}")
        else:
            parts.append(f"{cuts[first - 1]} to {cuts[last]}")
    parts += [variable.labels[state] for state in states if state >= n_bins]
    text = " or ".join(parts)
    return text if text.startswith(("<", ">")) else f"= {text}"
