"""Own-value tests (Section 6 of the paper): decision graphs that test, besides parents, their own variable.

Such a test partitions the states that can reach it. It has a switch, a distribution over the parts; below each part is
a distribution over its states, so that equalities between probabilities of different states can be expressed. The
probability of a state is the product of the switches on its path and of its leaf. Knows decision graphs alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.own_expansion import combinations

MOST_COMBINATIONS = 2**16  # of switches and leaves reached by parent assignments, in the expanded graph
_MOST_CELLS = 2**23  # and these times the number of states
_SUM_TOLERANCE = 1e-6  # distributions in files are rounded

Floats = NDArray[np.float64]
States = tuple[int, ...]


def frozen(array: NDArray[Any], dtype: type[np.generic]) -> NDArray[Any]:
    """A private, read-only copy."""
    array = np.array(array, dtype=dtype, order="C")
    array.flags.writeable = False
    return array


def frozen_counts(counts: NDArray[Any]) -> NDArray[Any]:
    """A private, read-only copy of counts: integers, or expected counts."""
    return frozen(counts, np.float64 if np.asarray(counts).dtype.kind == "f" else np.int64)


def same(one: NDArray[Any] | None, other: NDArray[Any] | None) -> bool:
    """Whether two arrays are equal to the last bit, or both absent."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)


@dataclass(frozen=True, eq=False)
class OwnTests:
    """A graph that tests its own variable, the target, and its distributions, one row each, in node order.

    Every own-value test (its switch) and every leaf has a distribution. Rows have a column for each state of the
    target, with 0 for the states that cannot reach the node. A switch's row contains, for each state, the probability
    of its part; counts and exponents are those of states, for switches as for leaves.

    >>> graph = DecisionGraph((1, 0, 0, LEAF, LEAF), ((1, 2), (3, 4, 4), (3, 4, 4), (), ()))  # y: 0 or not, given x
    >>> counts = np.array([[6, 1, 2], [0, 3, 4], [6, 0, 0], [0, 4, 6]])
    >>> own = OwnTests.learned(graph, counts, np.where(counts > 0, 1.0, [[1, 1, 1], [1, 1, 1], [0] * 3, [0] * 3]), 0)
    >>> own.n_parameters, own.n_tests, own.n_leaves
    (3, 3, 2)
    >>> own.probabilities.round(2).tolist()
    [[0.58, 0.42, 0.42], [0.1, 0.9, 0.9], [1.0, 0.0, 0.0], [0.0, 0.42, 0.58]]
    >>> own.expanded()[1].round(2).tolist()
    [[0.58, 0.17, 0.24], [0.1, 0.38, 0.52]]
    """

    graph: DecisionGraph
    target: int
    probabilities: Floats  # (n_distributions, n_states)
    counts: NDArray[Any] | None = None  # integers, or expected counts; None: the distributions were given, not learned
    exponents: Floats | None = None

    def __post_init__(self) -> None:
        """Freeze private copies of the arrays, and check everything that does not depend on other variables."""
        object.__setattr__(self, "probabilities", frozen(self.probabilities, np.float64))
        if (self.counts is None) != (self.exponents is None):
            raise ValueError("own-value tests got counts or exponents alone, and take both or neither: give the other.")
        if self.counts is not None and self.exponents is not None:
            object.__setattr__(self, "counts", frozen_counts(self.counts))
            object.__setattr__(self, "exponents", frozen(self.exponents, np.float64))
        _check_graph(self)
        _check_rows(self)

    @classmethod
    def learned(cls, graph: DecisionGraph, counts: NDArray[Any], exponents: Floats, target: int) -> "OwnTests":
        """Estimate posterior means: of a leaf's states, and of a switch's parts, with counts and exponents summed."""
        weights = np.asarray(counts) + np.asarray(exponents)
        if weights.ndim != 2:
            raise ValueError(f"counts and exponents have {weights.ndim} dimensions: give a row for each distribution.")
        parts = parts_of(graph, target, states_at(graph, target, weights.shape[1]))
        return cls(graph, target, _posterior_means(parts, weights), counts, exponents)

    @property
    def n_states(self) -> int:
        """The number of states of the target."""
        return int(self.probabilities.shape[1])

    @property
    def n_tests(self) -> int:
        """The number of tests, of parents and of the target."""
        return self.graph.n_tests

    @property
    def n_leaves(self) -> int:
        """The number of leaves, including those of one state."""
        return self.graph.n_leaves

    @cached_property
    def n_parameters(self) -> int:
        """The number of free parameters: one less than the parts of each switch, or the states of each leaf."""
        return sum(len(parts) - 1 for parts in self.parts)

    @property
    def parents(self) -> States:
        """The tested variables except the target, sorted."""
        return tuple(variable for variable in self.graph.tested if variable != self.target)

    @cached_property
    def places(self) -> States:
        """The nodes of the graph that have a distribution: row k is that of `places[k]`."""
        return tuple(node for node, test in enumerate(self.graph.tests) if test in (LEAF, self.target))

    @cached_property
    def states(self) -> tuple[States, ...]:
        """For each node of the graph, the states of the target that can reach it."""
        return states_at(self.graph, self.target, self.n_states)

    @cached_property
    def parts(self) -> tuple[tuple[States, ...], ...]:
        """The outcomes of each distribution: a switch's parts, or a leaf's states as singletons; by first state."""
        return parts_of(self.graph, self.target, self.states)

    @cached_property
    def leaf_rows(self) -> States:
        """The rows of the leaves, in order."""
        return tuple(row for row, place in enumerate(self.places) if self.graph.tests[place] == LEAF)

    def is_switch(self, row: int) -> bool:
        """Whether a row belongs to an own-value test."""
        return self.graph.tests[self.places[row]] != LEAF

    def over_parts(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values, (distributions, states), over parts; each sum is at the first state of its part."""
        return _over_parts(self.parts, values)

    def partitions(self) -> list[tuple[States, ...]]:
        """The parts of each partition: a maximal subgraph all of whose own-value tests have the same children.

        These tests act as one switch that depends on parents.
        """
        return [tuple(self.states[child] for child in dict.fromkeys(end)) for end in self._tops.values()]

    @property
    def n_shared(self) -> int:
        """The number of arcs to switches, and to leaves of two states or more, beyond the first arc to each.

        As in a search, arcs to the root of a partition lead to a test, not to a switch. The partition itself has an
        arc to the graph of its switch, whose leaves are the own-value tests, and one to each part of several states.
        """
        graph, tops = self.graph, self._tops
        held = {place for place, parts in zip(self.places, self.parts, strict=True) if len(parts) > 1}
        above = [set(row) for test, row in zip(graph.tests, graph.children, strict=True) if test != self.target]
        n_arcs = sum(len(held.intersection(below).difference(tops)) for below in [{0}, *above])
        n_arcs += sum((top in held) + len(held.intersection(end).difference(tops)) for top, end in tops.items())
        return n_arcs - len(held)

    @cached_property
    def _tops(self) -> dict[int, tuple[int, ...]]:
        """The root of each partition, and the children of its own-value tests, state by state."""
        graph, ends = self.graph, dict[int, States | None]()  # the children of own-value tests, passed up if all agree
        for node in reversed(range(len(graph.tests))):
            below = {ends[child] for child in graph.children[node]}
            ends[node] = below.pop() if len(below) == 1 else None
            if graph.tests[node] == self.target:
                ends[node] = tuple(graph.children[node][state] for state in self.states[node])
        tops = {0} | {
            child for node in range(len(graph.tests)) for child in graph.children[node] if ends[child] != ends[node]
        }
        return {top: end for top in sorted(tops) if (end := ends[top]) is not None}

    def expanded(self) -> tuple[DecisionGraph, Floats]:
        """The same conditional distribution as a graph over parents alone, with a full row in each leaf.

        Its leaves are the combinations of switches and leaves that some assignment of the parents reaches, in the
        order in which a traversal of the parents' states discovers them.
        """
        graph, takes = self._combinations
        factors = np.where(self.reached, self.probabilities, 1.0)
        return graph, np.array([factors[row].prod(axis=0) for row in takes])

    def along_the_way(self) -> Iterator[tuple[DecisionGraph, Floats]]:
        """Graphs that also test the target, with a row in each leaf: p(k | j) is the product of the rows reached.

        The first graph leads to the first distribution on the path of (j, k), the second to the second one, and so on;
        rows are ones if the path has ended before.
        """
        graph, behind = self.graph, [set[int]() for _ in self.graph.tests]  # possible numbers of switches above a node
        behind[0].add(0)
        for node, test in enumerate(graph.tests):
            for child in graph.children[node]:
                behind[child] |= {n + (test == self.target) for n in behind[node]}
        row_of = {place: row for row, place in enumerate(self.places)}
        for level in range(max(map(max, behind)) + 1):
            places = [(node, n) for node, every in enumerate(behind) for n in sorted(every) if n <= level]
            number = {place: k for k, place in enumerate(places)}
            tests, children, rows = [], [], []
            for node, n in places:
                is_own = graph.tests[node] == self.target
                is_end = graph.tests[node] == LEAF or (is_own and n == level)
                tests.append(LEAF if is_end else graph.tests[node])
                children.append(() if is_end else tuple(number[child, n + is_own] for child in graph.children[node]))
                if is_end:
                    rows.append(self.probabilities[row_of[node]] if n == level else np.ones(self.n_states))
            yield DecisionGraph(tuple(tests), tuple(children)), np.array(rows)

    def folded(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum values of the expanded graph's leaves, such as counts, for each distribution."""
        sums = np.zeros((len(self.places), self.n_states), values.dtype)
        for row, here in zip(self._combinations[1], values, strict=True):
            sums[row] += here
        return np.where(self.reached, sums, 0)

    @cached_property
    def _combinations(self) -> tuple[DecisionGraph, list[NDArray[np.int64]]]:
        """The expanded graph, and for each of its leaves the rows of its distributions."""
        graph, ways = combinations(self.graph, self.target, min(MOST_COMBINATIONS, _MOST_CELLS // self.n_states))
        row_of = {place: row for row, place in enumerate(self.places)}
        return graph, [np.array([row_of[place] for place in way]) for way in ways]

    @cached_property
    def reached(self) -> NDArray[np.bool_]:
        """For each distribution, a mask of the states that can reach it."""
        mask = np.zeros(self.probabilities.shape, np.bool_)
        for row, place in enumerate(self.places):
            mask[row, list(self.states[place])] = True
        return mask

    def __eq__(self, other: object) -> bool:
        """Equal graphs and, to the last bit, arrays."""
        if not isinstance(other, OwnTests):
            return NotImplemented
        return (
            self.graph == other.graph
            and self.target == other.target
            and all(
                same(getattr(self, name), getattr(other, name)) for name in ("probabilities", "counts", "exponents")
            )
        )

    def __hash__(self) -> int:
        """Agrees with equality."""
        return hash((self.graph, self.target))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the cached properties."""
        return OwnTests, (self.graph, self.target, self.probabilities, self.counts, self.exponents)


def states_at(graph: DecisionGraph, target: int, n_states: int) -> tuple[States, ...]:
    """For each node of a graph, the states of the target that can reach it; a ValueError if paths disagree.

    >>> states_at(DecisionGraph((0, LEAF, LEAF), ((1, 2, 2), (), ())), 0, 3)
    ((0, 1, 2), (0,), (1, 2))
    """
    sizes = {test: len(row) for test, row in zip(graph.tests, graph.children, strict=False)} | {target: n_states}
    graph.validate([sizes.get(test, 0) for test in range(max(graph.tests, default=LEAF) + 1)])
    found: dict[int, States] = {0: tuple(range(n_states))}
    for node, test in enumerate(graph.tests):
        if not found[node]:
            raise ValueError(f"no state of the target reaches node {node} of the graph: leave the node out.")
        for part, child in graph.arcs(node):
            below = tuple(state for state in found[node] if state in part) if test == target else found[node]
            if found.setdefault(child, below) != below:
                raise ValueError(
                    f"arcs lead the states {found[child]} and {below} of the target to node {child}, where a "
                    f"distribution has one set of states: give each set a node of its own."
                )
    return tuple(found[node] for node in range(len(graph.tests)))


def parts_of(graph: DecisionGraph, target: int, states: tuple[States, ...]) -> tuple[tuple[States, ...], ...]:
    """The parts of each own-value test, and the states of each leaf as singletons; in node order."""
    found: list[tuple[States, ...]] = []
    for node, test in enumerate(graph.tests):
        if test == LEAF:
            found.append(tuple((state,) for state in states[node]))
        elif test == target:
            below = dict.fromkeys(graph.children[node][state] for state in states[node])
            found.append(tuple(states[child] for child in below))
            if len(below) < 2:
                raise ValueError(
                    f"node {node} tests the target and sends the states {states[node]}, all that reach it, one way: "
                    f"leave the test out."
                )
    return tuple(found)


def _first_states(every: tuple[tuple[States, ...], ...], n_states: int) -> NDArray[np.int64]:
    """For each distribution and state, the first state of its part; itself for a state that cannot reach it."""
    first = np.tile(np.arange(n_states), (len(every), 1))
    for row, parts in enumerate(every):
        for part in parts:
            first[row, list(part)] = part[0]
    return first


def _over_parts(every: tuple[tuple[States, ...], ...], values: NDArray[Any]) -> NDArray[Any]:
    if len(every) != len(values):
        raise ValueError(f"counts and exponents have {len(values)} rows for {len(every)} distributions: match them.")
    sums = np.zeros_like(values)
    np.add.at(sums, (np.arange(len(every))[:, None], _first_states(every, values.shape[1])), values)
    return sums


def _posterior_means(every: tuple[tuple[States, ...], ...], weights: Floats) -> Floats:
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # such means are refused later
        sums = _over_parts(every, weights)
        means: Floats = sums / sums.sum(axis=1, keepdims=True)
    return np.take_along_axis(means, _first_states(every, means.shape[1]), axis=1)


def _check_graph(own: OwnTests) -> None:
    """Raise a ValueError unless the graph tests its own variable, and has one row for each distribution."""
    graph, shape = own.graph, own.probabilities.shape
    if len(shape) != 2 or shape[0] != len(own.places):
        raise ValueError(
            f"the probabilities have the shape {shape}, and the graph has {len(own.places)} own-value tests and "
            f"leaves: give one row for each."
        )
    if len(own.parts) == graph.n_leaves:
        raise ValueError(f"the graph has no test of its own variable {own.target}: use Node without own-value tests.")


def _check_rows(own: OwnTests) -> None:
    """Raise a ValueError unless the arrays are well-formed."""
    for array, name in ((own.counts, "counts"), (own.exponents, "exponents")):
        if array is not None:
            _check_zeros(own, array, name)
    if own.counts is not None and own.exponents is not None:
        here = own.exponents[own.reached]
        if not (own.counts >= 0).all() or not ((here > 0) & np.isfinite(here)).all():
            raise ValueError("own-value tests need counts of at least 0 and finite exponents above 0: check both.")
        if not np.array_equal(own.probabilities, _posterior_means(own.parts, own.counts + own.exponents)):
            raise ValueError("the probabilities are not those of the counts and exponents: use OwnTests.learned.")
    _check_zeros(own, own.probabilities, "probabilities")
    for row, parts in enumerate(own.parts):
        values = own.probabilities[row]
        shares = values[[part[0] for part in parts]]
        if not (values >= 0).all() or abs(shares.sum() - 1) > _SUM_TOLERANCE:
            raise ValueError(
                f"distribution {row} does not sum to one over its parts, and every one must: normalise it."
            )
        if any((values[list(part)] != share).any() for part, share in zip(parts, shares, strict=True)):
            raise ValueError(f"distribution {row} gives the states of a part different numbers: give them its switch.")


def _check_zeros(own: OwnTests, array: NDArray[Any], name: str) -> None:
    if array.shape != own.probabilities.shape:
        raise ValueError(f"the {name} have the shape {array.shape}, not {own.probabilities.shape}: match them.")
    if (array[~own.reached] != 0).any():
        raise ValueError(f"the {name} of a state that cannot reach its distribution are not 0: set them to 0.")
