"""Operators: the changes to the leaves of a decision graph (Section 4.1), as values that know their gain."""

from dataclasses import dataclass

from leafwise.decision_graph import DecisionGraph


@dataclass(frozen=True, slots=True)
class CompleteSplit:
    """One new leaf for each state of a variable that can occur at the leaf."""

    target: int
    leaf: int
    variable: int
    groups: tuple[frozenset[int], ...]
    gain: float

    def apply(self, graph: DecisionGraph) -> DecisionGraph:
        return graph.split(self.leaf, self.variable, self.groups)


@dataclass(frozen=True, slots=True)
class BinarySplit:
    """Two new leaves: one for a state of a variable, one for all its other states."""

    target: int
    leaf: int
    variable: int
    state: int
    n_states: int
    gain: float

    def apply(self, graph: DecisionGraph) -> DecisionGraph:
        others = frozenset(range(self.n_states)) - {self.state}
        return graph.split(self.leaf, self.variable, (frozenset({self.state}), others))


@dataclass(frozen=True, slots=True)
class OrderedSplit:
    """Two new leaves: one for the states of a variable below some state, one for the others, in their order.

    Where missing cells are a state, it may go with either.
    """

    target: int
    leaf: int
    variable: int
    groups: tuple[frozenset[int], ...]
    gain: float

    def apply(self, graph: DecisionGraph) -> DecisionGraph:
        return graph.split(self.leaf, self.variable, self.groups)


@dataclass(frozen=True, slots=True)
class PartialSplit:
    """A leaf is parted by its own value, and one of the pieces is split on a variable (Section 6).

    `part` holds some of the target's states; the piece is the switch (is it one of them?), the part or the rest.
    """

    target: int
    leaf: int
    variable: int
    part: frozenset[int]
    piece: str  # "switch", "part" or "rest"
    groups: tuple[frozenset[int], ...]
    gain: float


@dataclass(frozen=True, slots=True)
class Merge:
    """Two leaves become one."""

    target: int
    leaf: int
    other: int
    gain: float

    def apply(self, graph: DecisionGraph) -> DecisionGraph:
        return graph.merge(self.leaf, self.other)


@dataclass(frozen=True, slots=True)
class RelabelledMerge:
    """Two leaves of a variable share one distribution, each of its places being a state of one and one of the other."""

    target: int
    leaf: int
    other: int
    states: tuple[tuple[int, int], ...]  # a state of `leaf`, and the one of `other` that goes with it
    gain: float


@dataclass(frozen=True, slots=True)
class Tie:
    """Two leaves of different variables, whose states have the same labels, share one distribution."""

    target: int
    leaf: int
    other_target: int
    other: int
    gain: float


Operator = CompleteSplit | BinarySplit | OrderedSplit | PartialSplit | Merge | RelabelledMerge | Tie
