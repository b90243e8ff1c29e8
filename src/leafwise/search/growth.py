"""From the log of a search to decision graphs, and to operators as values.

Every leaf that ever was has a number of its own (its place in the search's arrays); so has every test of a starting
graph, below zero. A split turns a leaf into a test of its new leaves; a merge, or the deletion of a parent, makes one
number stand for another.
"""

from functools import cache
from typing import NamedTuple

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.kernels.gains import COMPLETE
from leafwise.operators import BinarySplit, CompleteSplit, Merge, Operator


class LoggedStep(NamedTuple):
    """The first fields of a step in the log; leaves go by their numbers."""

    gain: float
    target: int
    leaf: int
    other: int  # the second leaf of a merge; -1: a split
    variable: int
    state: int
    first_new: int
    n_new: int


@cache
def usual_groups(n_states: int, state: int) -> tuple[int, ...]:
    """The child of each state: its own in a complete split, the first for one state of a binary split."""
    return tuple(range(n_states)) if state == COMPLETE else tuple(int(s != state) for s in range(n_states))


class Growth:
    """The decision graph of one node while it grows."""

    def __init__(self, target: int, start: DecisionGraph, leaves: list[int]) -> None:
        self._target = target
        number = iter(leaves)
        self._order = [next(number) if test == LEAF else -1 - node for node, test in enumerate(start.tests)]
        self._tests: dict[int, int] = {}
        self._children: dict[int, tuple[int, ...]] = {}
        self._stands_for: dict[int, int] = {}
        for at, test, row in zip(self._order, start.tests, start.children, strict=True):
            if test != LEAF:
                self._tests[at] = test
                self._children[at] = tuple(self._order[child] for child in row)
        self.leaves = list(leaves)

    def operator(self, step: "LoggedStep", groups: tuple[int, ...]) -> Operator:
        """The logged step as a value, in terms of the graph before it; `groups` gives each state's child."""
        leaf = self.leaves.index(step.leaf)
        if step.other >= 0:
            return Merge(self._target, leaf, self.leaves.index(step.other), step.gain)
        if step.state != COMPLETE:
            return BinarySplit(self._target, leaf, step.variable, step.state, len(groups), step.gain)
        parts = [frozenset(s for s in range(len(groups)) if groups[s] == k) for k in range(step.n_new)]
        return CompleteSplit(self._target, leaf, step.variable, tuple(parts), step.gain)

    def follow(self, step: "LoggedStep", groups: tuple[int, ...]) -> None:
        """Change the graph as the step did."""
        new = range(step.first_new, step.first_new + step.n_new)
        self.leaves.remove(step.leaf)
        if step.other >= 0:
            self.leaves.remove(step.other)
            self._stands_for[step.leaf] = self._stands_for[step.other] = step.first_new
        else:
            self._tests[step.leaf] = step.variable
            self._children[step.leaf] = tuple([step.first_new + group for group in groups])
        self._order.extend(new)
        self.leaves.extend(new)

    def delete(self, variable: int) -> None:
        """Leave out the tests of a variable that does not matter: its state 0 speaks for all."""
        for at in [at for at, test in self._tests.items() if test == variable]:
            self._stands_for[at] = self._children.pop(at)[0]
            del self._tests[at]

    def graph(self) -> DecisionGraph:
        """The graph as it is now; its leaves are in the order of `leaves`."""
        root = self._resolve(self._order[0])
        children: dict[int, tuple[int, ...]] = {}
        needed = {root}
        for at in self._order:
            if at in needed and at in self._tests:
                children[at] = tuple([self._resolve(child) for child in self._children[at]])
                needed.update(children[at])
        order = [at for at in self._order if at in needed]
        number = {at: k for k, at in enumerate(order)}
        return DecisionGraph(
            tuple([self._tests.get(at, LEAF) for at in order]),
            tuple([tuple([number[child] for child in children.get(at, ())]) for at in order]),
        )

    def _resolve(self, at: int) -> int:
        while at in self._stands_for:
            at = self._stands_for[at]
        return at
