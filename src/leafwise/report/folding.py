"""Folding of large decision graphs: which tests are shown, and a summary of each folded part.

Tests are opened from the root down, always the one below which the leaves are most informative. If leaves are shared, a
network does not record how many cases reach a test. Unless cases are given, those of a leaf are assumed to be spread
evenly over the arcs that lead to it; the summaries do not depend on this.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import many
from leafwise.decision_graph import LEAF
from leafwise.report.shown_graph import ShownGraph

_MOST_STATES = 3  # states of a fold whose shares are shown
_NEARLY_ALL = 0.99  # the share of a fold's cases in the leaves that its ranges cover


@dataclass(frozen=True)
class Fold:
    """A summary of what is below a folded test: its size, and the range of each state's share.

    If cases are given, both ends of the range are the share among the cases that reach it. Otherwise they are the
    state's smallest and largest probability in the leaves, except those with the last hundredth of the cases.
    """

    n_tests: int
    n_leaves: int
    n_cases: int | None
    least: NDArray[np.float64]
    most: NDArray[np.float64]

    @property
    def size(self) -> str:
        """Its size in words."""
        cases = "" if self.n_cases is None else f"{many(self.n_cases, 'case')}, "
        return f"{cases}{many(self.n_tests, 'test')}, {many(self.n_leaves, 'leaf', 'leaves')}"

    @property
    def states(self) -> list[int]:
        """The states whose shares are shown: the most probable ones, or of two states the last; none without cases."""
        if self.n_cases == 0:
            return []
        if len(self.most) == 2:
            return [1]
        return sorted(np.argsort(-self.most, kind="stable")[:_MOST_STATES].tolist())

    def share(self, state: int) -> str:
        """A state's share in percent."""
        if self.n_cases is not None:
            return f"{100 * self.most[state]:.1f} %"
        least, most = (f"{100 * ends[state]:.0f}" for ends in (self.least, self.most))
        return f"{most} %" if least == most else f"{least} to {most} %"

    @classmethod
    def below(cls, shown: ShownGraph, place: int, starts: Iterable[int]) -> "Fold":
        """The summary of all that is reachable from a place, with the given cases that reach it from `starts`."""
        graph = shown.graph
        found, tops = {place}, [place]
        for top in tops:  # grows during the loop
            new = set(graph.children[top]) - found
            found |= new
            tops += new
        leaves = [shown.leaf_numbers[at] for at in sorted(found) if graph.tests[at] == LEAF]
        size = len(found) - len(leaves), len(leaves)
        if shown.given is not None:
            cases = np.sum([shown.flows[at, place] for at in starts if place in graph.children[at]], axis=0)
            shares = cases / max(cases.sum(), 1)
            return cls(*size, round(cases.sum()), shares, shares)
        rows = shown.probabilities[_nearly_all(leaves, shown.n_cases)]
        return cls(*size, None, rows.min(axis=0), rows.max(axis=0))


def _nearly_all(leaves: list[int], n_cases: NDArray[np.float64] | None) -> list[int]:
    """The leaves with the most cases that together contain nearly all."""
    if n_cases is None or not n_cases[leaves].any():
        return leaves
    ordered = sorted(leaves, key=lambda leaf: -n_cases[leaf])
    before = np.cumsum(n_cases[ordered]) - n_cases[ordered]
    return [leaf for leaf, cases in zip(ordered, before, strict=True) if cases < _NEARLY_ALL * n_cases[leaves].sum()]


def in_order(shown: ShownGraph, worth: Sequence[float], top: int = 0) -> Iterator[int]:
    """The tests from a place down in the order of opening: always the reachable one of the largest worth."""
    graph = shown.graph
    heap, seen = [(-worth[top], top)], {top}
    while heap:
        _, place = heapq.heappop(heap)
        if graph.tests[place] == LEAF:
            continue
        yield place
        for child in sorted(set(graph.children[place]) - seen):
            seen.add(child)
            heapq.heappush(heap, (-worth[child], child))


def most_that_fit(n: int, fits: Callable[[int], bool]) -> int:
    """How many of n tests to open, at least one, if fitting is monotone in their number.

    >>> most_that_fit(100, lambda k: k <= 37), most_that_fit(5, lambda k: True), most_that_fit(5, lambda k: False)
    (37, 5, 1)
    """
    low, high = min(1, n), n
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def information(shown: ShownGraph) -> list[float]:
    """The information of the leaves below each place about the variable, in nats summed over the cases there."""
    graph = shown.graph
    n_into = Counter(child for row in graph.children for child in set(row))
    n_cases = np.ones(len(shown.probabilities)) if shown.n_cases is None else shown.n_cases
    nothing = np.zeros(shown.variable.n_states)
    came = [nothing] * len(graph.tests)
    for (_, end), flow in shown.flows.items():
        came[end] = came[end] + flow
    states, left, told = [nothing] * len(graph.tests), [0.0] * len(graph.tests), [0.0] * len(graph.tests)
    for place in reversed(range(len(graph.tests))):
        if graph.tests[place] == LEAF:
            leaf = shown.leaf_numbers[place]
            states[place] = came[place] if shown.flows else n_cases[leaf] * shown.probabilities[leaf]
            left[place] = _entropy(states[place])
        for child in set(graph.children[place]):
            flow = shown.flows.get((place, child), states[child] / n_into[child])
            states[place] = states[place] + flow
            left[place] += left[child] * flow.sum() / max(states[child].sum(), 1e-300)
        told[place] = _entropy(states[place]) - left[place]
    return told


def _entropy(cases: NDArray[np.float64]) -> float:
    """The entropy of counts in nats, summed over the cases."""
    seen = cases[cases > 0]
    return float(seen.sum() * np.log(seen.sum()) - (seen * np.log(seen)).sum()) if len(seen) else 0.0
