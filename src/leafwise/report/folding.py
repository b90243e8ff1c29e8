"""Large decision graphs on a page: which tests are shown, and what is in those that are folded. Knows shown graphs.

Tests are opened from the root down, next always the one below which the leaves tell most. A network does not know how
many cases come to a test where leaves are shared. Unless cases are given, those of a leaf are thought to come along its
arcs in equal numbers; what is said of a fold does not rest on that.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import LEAF
from leafwise.report.shown_graph import ShownGraph
from leafwise.table import many

_MOST_STATES = 3  # of a fold: shares of more are not told
_NEARLY_ALL = 0.99  # of the cases in the leaves below a fold: so many are between the ends of its ranges


@dataclass(frozen=True)
class Fold:
    """What is below a test that is folded: how much, and what share a state has there, from the least to the most.

    If cases are given, that is the share of those that come there. Else it is the state's probability in the leaves,
    but for those that hold the last hundredth of the cases.
    """

    n_tests: int
    n_leaves: int
    n_cases: int | None
    least: NDArray[np.float64]
    most: NDArray[np.float64]

    @property
    def size(self) -> str:
        """How much it is, in words."""
        cases = "" if self.n_cases is None else f"{many(self.n_cases, 'case')}, "
        return f"{cases}{many(self.n_tests, 'test')}, {many(self.n_leaves, 'leaf', 'leaves')}"

    @property
    def states(self) -> list[int]:
        """Of which states shares are told: the likeliest, or of two states the last, which says what the other does.

        Of none where no case comes.
        """
        if self.n_cases == 0:
            return []
        if len(self.most) == 2:
            return [1]
        return sorted(np.argsort(-self.most, kind="stable")[:_MOST_STATES].tolist())

    def share(self, state: int) -> str:
        """A state's share, in percent."""
        if self.n_cases is not None:
            return f"{100 * self.most[state]:.1f} %"
        least, most = (f"{100 * ends[state]:.0f}" for ends in (self.least, self.most))
        return f"{most} %" if least == most else f"{least} to {most} %"

    @classmethod
    def below(cls, shown: ShownGraph, place: int, starts: Iterable[int]) -> "Fold":
        """All that can be reached from a place, and the given cases that come there from some tests."""
        graph = shown.graph
        found, tops = {place}, [place]
        for top in tops:  # grows while it is read
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
    """The leaves with most cases, which together hold nearly all."""
    if n_cases is None or not n_cases[leaves].any():
        return leaves
    ordered = sorted(leaves, key=lambda leaf: -n_cases[leaf])
    before = np.cumsum(n_cases[ordered]) - n_cases[ordered]
    return [leaf for leaf, cases in zip(ordered, before, strict=True) if cases < _NEARLY_ALL * n_cases[leaves].sum()]


def in_order(shown: ShownGraph, worth: Sequence[float], top: int = 0) -> Iterator[int]:
    """The tests from a place down, in the order in which they are opened: what is worth most of what can be."""
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
    """How many of n tests to open, at least one, if more and more tests fit less and less.

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
    """What the leaves below each place tell of the variable, in nats, summed over the cases that come there."""
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
    """Of as many cases, in nats, summed over them."""
    seen = cases[cases > 0]
    return float(seen.sum() * np.log(seen.sum()) - (seen * np.log(seen)).sum()) if len(seen) else 0.0
