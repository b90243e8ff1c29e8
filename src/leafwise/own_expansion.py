"""Expansion of a graph with own-value tests into one over the parents alone. Knows decision graphs."""

from collections.abc import Mapping

from leafwise.decision_graph import LEAF, DecisionGraph

Way = tuple[int, ...]  # the switches and leaves that an assignment of the parents reaches, as nodes of the graph
_Known = tuple[tuple[int, int], ...]  # parents with known states, as far as they are tested again below


def combinations(graph: DecisionGraph, target: int, most: int) -> tuple[DecisionGraph, tuple[Way, ...]]:
    """The graph over the parents whose leaves are the combinations of switches and leaves reached, and these.

    >>> graph = DecisionGraph((1, 0, 0, LEAF, LEAF), ((1, 2), (3, 4, 4), (3, 4, 4), (), ()))
    >>> combinations(graph, 0, 100)
    (DecisionGraph(tests=(1, -1, -1), children=((1, 2), (), ())), ((1, 3, 4), (2, 3, 4)))
    """
    product = _Product(graph, target, most)
    return product.made(product.build())


class TooManyCombinations(ValueError):
    """The graph over the parents alone would be too large."""


class _Product:
    """The product of all parts of a graph, which are traversed together: a parent's state advances all that test it.

    Known states of parents are dropped once nothing below tests them again, so that equal combinations share their
    subgraphs; tests all of whose outcomes are the same are omitted.
    """

    def __init__(self, graph: DecisionGraph, target: int, most: int) -> None:
        self.graph, self.target, self.most = graph, target, most
        self.below: list[frozenset[int]] = [frozenset()] * len(graph.tests)  # the parents tested at or below a node
        for node in reversed(range(len(graph.tests))):
            here = {graph.tests[node]} - {LEAF, target}
            self.below[node] = frozenset(here.union(*(self.below[child] for child in set(graph.children[node]))))
        self.tests: list[int] = []  # of the new graph, whose nodes come after their children
        self.children: list[tuple[int, ...]] = []
        self.ways: dict[int, Way] = {}  # of its leaves, in order of discovery
        self._known: dict[tuple[int, tuple[int, ...] | Way], int] = {}

    def build(self) -> int:
        """Build the graph, and return its root."""
        first = self._place((0,), {})
        built: dict[tuple[Way, _Known], int] = {}
        stack = [first]
        while stack:
            at = stack[-1]
            variable = self._next_test(at[0])
            if variable == LEAF:
                built[at] = self._add(LEAF, (), at[0])
            else:
                known, sizes = dict(at[1]), len(self._row_of(at[0], variable))
                outcomes = [self._place(at[0], {**known, variable: state}) for state in range(sizes)]
                waiting = [outcome for outcome in dict.fromkeys(outcomes) if outcome not in built]
                if waiting:
                    stack += reversed(waiting)
                    continue
                built[at] = self._add(variable, tuple(built[outcome] for outcome in outcomes), ())
            stack.pop()
            if len(built) > self.most:
                raise TooManyCombinations(
                    f"own-value tests make more than {self.most:,} combinations of distributions, too many for a graph "
                    f"over the parents: allow fewer leaves, or learn without own-value tests."
                )
        return built[first]

    def _next_test(self, way: Way) -> int:
        """The parent tested by the first part that has not ended, or LEAF if all have."""
        return next((test for node in way if (test := self.graph.tests[node]) not in (LEAF, self.target)), LEAF)

    def _row_of(self, way: Way, variable: int) -> tuple[int, ...]:
        return next(self.graph.children[node] for node in way if self.graph.tests[node] == variable)

    def _place(self, way: Way, known: Mapping[int, int]) -> tuple[Way, _Known]:
        """The nodes that the parts reach with these known states, and those of the states that are tested again."""
        reached, left = set(), list(way)
        passed = len(way) > 1  # then it already contains the parts of its switches
        for at, node in enumerate(left):  # which grows during the iteration
            test = self.graph.tests[node]
            if test == self.target and not (passed and at < len(way)):
                left += dict.fromkeys(self.graph.children[node])
            if test in known:
                left.append(self.graph.children[node][known[test]])
            else:
                reached.add(node)
        asked = frozenset().union(*(self.below[node] for node in reached if self.graph.tests[node] != self.target))
        return tuple(sorted(reached)), tuple(sorted((v, state) for v, state in known.items() if v in asked))

    def _add(self, test: int, children: tuple[int, ...], way: Way) -> int:
        if test != LEAF and len(set(children)) == 1:
            return children[0]
        key = (test, children or way)
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.tests)
            self.tests.append(test)
            self.children.append(children)
            if test == LEAF:
                self.ways[number] = way
        return number

    def made(self, root: int) -> tuple[DecisionGraph, tuple[Way, ...]]:
        """The graph below a root: tests before their children, then leaves in order of discovery."""
        kept = {root}
        for node in range(root, -1, -1):
            if node in kept:
                kept.update(self.children[node])
        tests = [node for node in sorted(kept, reverse=True) if self.tests[node] != LEAF]
        leaves = [node for node in self.ways if node in kept]
        number = {node: k for k, node in enumerate([*tests, *leaves])}
        return DecisionGraph(
            tuple(self.tests[node] for node in number),
            tuple(tuple(number[child] for child in self.children[node]) for node in number),
        ), tuple(self.ways[leaf] for leaf in leaves)
