"""Search for networks in which given groups of variables share one graph and its parameters.

The stacked columns of each group are one problem; all other variables are another.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leafwise.constraints import NO_LIMIT, Family, ParentRules
from leafwise.counters.counter import Counter
from leafwise.data.table import Table, code_type
from leafwise.decision_graph import LEAF, DecisionGraph
from leafwise.network import Network, Node, TiedLeaf
from leafwise.own_tests import OwnTests
from leafwise.search.leaf_search import LeafSearch, LeafSearchRun
from leafwise.search.problem import Problem, Step
from leafwise.search.run import silence
from leafwise.workers import Workers


class _Enough(Exception):
    """Raised between two steps when a limit is reached."""


@dataclass(frozen=True)
class _Part:
    """The search for the graph of one group, or for those of all variables that are in none."""

    families: Sequence[Family]  # of the group, each a variable and its parents; empty for the other variables
    run: LeafSearchRun

    def step(self, step: Step[Any]) -> Any:
        """The operator of a step, in terms of the network's variables: those of the group's first family."""
        operator: Any = step.operator
        if not self.families:
            return operator
        child, parents = self.families[0]
        if hasattr(operator, "variable"):
            operator = replace(operator, variable=parents[operator.variable - 1])
        return replace(operator, target=child)

    def nodes(self) -> dict[int, Node]:
        """The current nodes of the variables."""
        found = {place: node for place, node in enumerate(self.run.network.nodes) if node is not None}
        return {child: _of_family(found[0], child, parents) for child, parents in self.families} or found

    def ties(self) -> Iterator[tuple[TiedLeaf, ...]]:
        """The ties of a group: each leaf is tied to the same leaf of all other variables in the group."""
        node = self.run.network.nodes[0] if self.families else None
        if node is None:
            return
        for row in range(len((node.own or node).probabilities)):
            states = tuple(range(node.n_states)) if node.own is None else node.own.states[node.own.places[row]]
            if len(states) > 1 and (node.own is None or not node.own.is_switch(row)):
                yield tuple(TiedLeaf(child, row, states) for child, _ in sorted(self.families))


def _of_family(node: Node, child: int, parents: Sequence[int]) -> Node:
    """Convert the node of a stacked table (the child first, then its parents) to that of one family."""
    names, whole = (child, *parents), node.whole_graph
    tests = tuple(test if test == LEAF else names[test] for test in whole.tests)
    graph, own = DecisionGraph(tests, whole.children), node.own
    if own is not None:
        assert own.counts is not None
        assert own.exponents is not None
        return Node.with_own_tests(OwnTests.learned(graph, own.counts, own.exponents, child), tuple(sorted(parents)))
    assert node.counts is not None
    assert node.exponents is not None
    return Node.learned(tuple(sorted(parents)), graph, node.counts, node.exponents)


class TiedSearchRun:
    """The searches for all groups, and for the other variables, in progress one after the other."""

    def __init__(self, problem: Problem, parts: Sequence[_Part], settings: LeafSearch) -> None:
        self._problem, self._parts, self.settings = problem, parts, settings
        self.seconds, self.stopped = 0.0, ""
        self.watch: Callable[[Any], None] = silence

    def __iter__(self) -> Iterator[Step[Any]]:
        return self

    def __next__(self) -> Step[Any]:
        began, most = time.perf_counter(), self.settings.seconds
        if self.settings.max_steps is not None and self.n_steps >= self.settings.max_steps:
            self.stopped = "max_steps"
        elif most is not None and self.seconds >= most:
            self.stopped = "seconds"
        if not self.stopped:
            for part in self._parts:
                part.run.watch = self.watch
                for step in part.run:
                    self.seconds += time.perf_counter() - began
                    return Step(part.step(step), self.log_score, self.n_leaves, self.n_arcs)
            self.stopped = "no operator gains"
        raise StopIteration

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called periodically."""
        if self.settings.max_steps is not None:
            for _ in self:
                if progress is not None:
                    progress(self)
            return
        began, before = time.perf_counter(), self.seconds

        def look(_search: Any) -> None:
            self.seconds = before + time.perf_counter() - began
            if progress is not None:
                progress(self)
            if self.settings.seconds is not None and self.seconds >= self.settings.seconds:
                raise _Enough

        try:
            for part in self._parts:
                part.run.run(look)
            self.stopped = "no operator gains"
        except _Enough:
            self.stopped = "seconds"

    @property
    def n_steps(self) -> int:
        return sum(part.run.n_steps for part in self._parts)

    @property
    def n_leaves(self) -> int:
        return sum(part.run.n_leaves * max(len(part.families), 1) for part in self._parts)

    @property
    def n_arcs(self) -> int:
        return sum(part.run.n_arcs * max(len(part.families), 1) for part in self._parts)

    @property
    def log_score(self) -> float:
        """The log score of all graphs and distributions; shared ones count once."""
        return math.fsum(part.run.log_score for part in self._parts)

    @property
    def network(self) -> Network:
        """The current network; the nodes of a group are alike."""
        nodes = {place: node for part in self._parts for place, node in part.nodes().items()}
        ties = tuple(tie for part in self._parts for tie in part.ties())
        variables = self._problem.variables
        prior, structure_prior = str(self._problem.prior), str(self._problem.structure_prior)
        names = [variable.name for variable in variables]
        tied = {"tied": [[names[child] for child, _ in part.families] for part in self._parts if part.families]}
        whole = Network(variables, tuple(map(nodes.get, range(len(variables)))), prior, structure_prior, tied, ties)
        return replace(whole, learned=self._learned(whole))

    def _learned(self, network: Network) -> dict[str, Any]:
        parts = [part.run.network.learned for part in self._parts]
        summed = ("log_score", "log_marginal_likelihood", "splits", "merges", "deleted_parents")
        return {
            **parts[-1],
            "variables": len(network.variables),
            "target": None,
            **self._problem.counted,
            **{name: math.fsum(part[name] for part in parts) for name in summed[:2]},
            **{name: sum(part[name] for part in parts) for name in summed[2:]},
            "leaves": network.n_leaves,
            "parameters": network.n_parameters,
            "arcs": len(network.arcs),
            "tests": network.n_tests,
            **network.learned,
            "steps": self.n_steps,
            "stopped": self.stopped,
        }

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return dict(self.network.learned)


def begin_tied(
    problem: Problem,
    table: Table,
    groups: Sequence[Sequence[Family]],
    search: LeafSearch,
    workers: Workers,
    count: Callable[[Table], Counter],
) -> TiedSearchRun:
    """Begin the search for a network in which the variables of each group share a graph and its parameters."""
    plain = replace(search, max_steps=None, seconds=None)
    parts = []
    for families in groups:
        stacked = _stacked(table, families)
        n = stacked.n_variables
        allowed = np.zeros((n, n), np.uint8)
        allowed[0, 1:] = 1
        rules = ParentRules(allowed, allowed.copy(), allowed.copy(), NO_LIMIT, problem.parents.most_leaves)
        candidates = allowed.sum(axis=1, dtype=np.int64)
        own = replace(
            problem, variables=stacked.variables, targets=(0,), parents=rules, n_candidates=candidates, start={}
        )
        parts.append(_Part(families, LeafSearchRun(own, count(stacked), plain, workers)))
    tied = {child for families in groups for child, _ in families}
    others = tuple(target for target in problem.targets if target not in tied)
    if others:
        rest = replace(problem, targets=others)
        parts.append(_Part((), LeafSearchRun(rest, count(table), plain, workers)))
    return TiedSearchRun(problem, parts, search)


def _stacked(table: Table, families: Sequence[Family]) -> Table:
    """The cases of all families of a group, stacked: a column for the child, then one for each parent."""
    child, parents = families[0]
    variables = tuple(table.variables[place] for place in (child, *parents))
    columns = [np.concatenate(column) for column in zip(*(table.codes[[c, *ps]] for c, ps in families), strict=True)]
    return Table(variables, np.ascontiguousarray(np.stack(columns), dtype=code_type(variables)))
