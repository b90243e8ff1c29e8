"""Operators: changes to the leaves of a decision graph (Section 4.1), as values with their gain."""

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
    """Two new leaves: one for the states of an ordered variable below some state, one for the others.

    The state for missing cells, if there is one, may be in either.
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
    """An own-value test of a leaf, and a split of one of its pieces on a variable (Section 6).

    `part` is a set of the target's states; the pieces are the switch (is the value in `part`?), the part and the rest.
    """

    target: int
    leaf: int
    variable: int
    part: frozenset[int]
    piece: str  # the one that is split: "switch", "part" or "rest"
    groups: tuple[frozenset[int], ...]
    gain: float


@dataclass(frozen=True, slots=True)
class Merge:
    """Two leaves are merged into one."""

    target: int
    leaf: int
    other: int
    gain: float

    def apply(self, graph: DecisionGraph) -> DecisionGraph:
        return graph.merge(self.leaf, self.other)


@dataclass(frozen=True, slots=True)
class RelabelledMerge:
    """Two leaves of a variable share one distribution, in which their states are paired."""

    target: int
    leaf: int
    other: int
    states: tuple[tuple[int, int], ...]  # pairs of a state of `leaf` and one of `other`
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
