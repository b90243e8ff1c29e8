"""Greedy search over arcs, with decision graphs as local structures.

A change of an arc is scored by relearning the decision graphs of the nodes that it affects (Friedman & Goldszmidt,
1996; described in Section 4.2 of the paper).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leafwise import dag
from leafwise.constraints import ParentRules
from leafwise.counters.counter import Counter
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.network import Network, Node
from leafwise.prior_network import PriorNetwork
from leafwise.search.leaf_search import LeafSearch, LeafSearchRun
from leafwise.search.problem import Problem, Step
from leafwise.search.run import Run, check_inner, check_operators, silence
from leafwise.search.table_arc_search import AddArc, Change, DeleteArc, ReverseArc, count_changes, operators_of, plain
from leafwise.workers import Workers

Parents = tuple[int, ...]  # sorted

_BATCH = 512  # graphs learned in one search


@dataclass(frozen=True)
class GraphArcSearch:
    """Settings of the search over arcs; `greedy` are those of the search for each node's decision graph.

    >>> GraphArcSearch(LeafSearch(operators="B")).max_steps is None
    True
    """

    greedy: LeafSearch = LeafSearch()
    max_steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_inner(self)
        check_operators(self.greedy.letters, "search over arcs")

    @property
    def threads(self) -> int | None:
        return self.greedy.threads

    def begin(
        self, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> "GraphArcSearchRun":
        """Begin a search with these settings, or resume one from its state."""
        return GraphArcSearchRun(problem, counter, self, workers, state)


class GraphArcSearchRun(Run):
    """A search in progress. Iterate over its steps, or call `run`; after any step, `network` is the current network.

    Each step makes the change with the largest gain; ties go to additions, then deletions, then reversals, then to the
    smaller child, then to the smaller parent. Parents that a learned graph does not test are dropped, unless required.
    """

    def __init__(
        self,
        problem: Problem,
        counter: Counter,
        settings: GraphArcSearch,
        workers: Workers,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(problem, counter, 0.0 if state is None else state["seconds"])
        self.settings, self._workers = settings, workers
        self._scores: dict[tuple[int, Parents], float] = {}
        self._nodes: dict[tuple[int, Parents], Node] = {}
        self._found_with: dict[tuple[int, Parents], Parents] = {}  # the parents before untested ones were dropped
        n = len(problem.variables)
        self._parents: list[Parents] = [()] * n
        for target in problem.targets:
            self._parents[target] = tuple(np.flatnonzero(problem.parents.is_parent[target]).tolist())
        self._gains: list[dict[int, float]] = [{} for _ in range(n)]  # of adding or deleting the arc from another
        self.operators: list[Change] = []
        if state is not None:
            self._go_on_from(state)

    def __iter__(self) -> Iterator[Step[Change]]:
        return self

    def __next__(self) -> Step[Change]:
        if not self._advance():
            raise StopIteration
        return Step(self.operators[-1], self.log_score, self.n_leaves, self.n_arcs)

    def run(self, progress: Callable[["GraphArcSearchRun"], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called after each, and between its batches of graphs."""
        self.watch = silence if progress is None else progress
        while self._advance():
            if progress is not None:
                progress(self)

    @property
    def n_steps(self) -> int:
        return len(self.operators)

    @property
    def n_leaves(self) -> int:
        return sum(self._node(target, self._parents[target]).graph.n_leaves for target in self._problem.targets)

    @property
    def n_arcs(self) -> int:
        return sum(map(len, self._parents))

    @property
    def n_parameters(self) -> int:
        return sum(self._node(target, self._parents[target]).n_parameters for target in self._problem.targets)

    @property
    def log_score(self) -> float:
        return math.fsum(self._score(target, self._parents[target]) for target in self._problem.targets)

    @property
    def log_marginal_likelihood(self) -> float:
        targets, log_prior = self._problem.targets, self._problem.log_prior
        return self.log_score - math.fsum(log_prior(t, self._node(t, self._parents[t]).graph) for t in targets)

    @property
    def network(self) -> Network:
        """The current network."""
        nodes: list[Node | None] = [None] * len(self._problem.variables)
        for target in self._problem.targets:
            parents = self._parents[target]
            nodes[target] = replace(self._node(target, parents), parents=parents)
        return self._problem.network(nodes, self.summary())

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values: all scores, but no graphs."""
        return {
            "parents": self._parents,
            "operators": plain(self.operators),
            "scores": [[*key, score] for key, score in self._scores.items()],
            "found_with": [[*key, parents] for key, parents in self._found_with.items()],
            "seconds": self.seconds,
        }

    def _go_on_from(self, state: Mapping[str, Any]) -> None:
        self._parents = [tuple(parents) for parents in state["parents"]]
        self.operators = operators_of(state["operators"])
        self._scores = {(target, tuple(parents)): score for target, parents, score in state["scores"]}
        self._found_with = {(target, tuple(left)): tuple(parents) for target, left, parents in state["found_with"]}

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        greedy = self.settings.greedy
        how = {"search": "edges", "operators": greedy.letters, "schedule": greedy.schedule, **self._problem.counted}
        n_tests = sum(self._node(target, self._parents[target]).graph.n_tests for target in self._problem.targets)
        return self._summary(how, n_tests, self.n_steps, count_changes(self.operators))

    def _advance(self) -> bool:
        """Take one step; False if there is none, and `stopped` then says why."""
        with self._clock:
            if self._is_over(self.settings.seconds, "max_steps", self.n_steps, self.settings.max_steps):
                return False
            best = self._best()
            if best is None:
                self.stopped = self.stopped or "no operator gains"
                return False
            self._make(best)
            return True

    def _best(self) -> Change | None:
        """The change with the largest gain, the first one if tied; None if none gains, or if time runs out before."""
        changes = self._changes()
        self._find_gains(changes)
        best: Change | None = None
        for change in () if self.stopped else changes:
            gain = self._gains[change.child][change.parent]
            if isinstance(change, ReverseArc):
                gain += self._gains[change.parent][change.child]
            if gain > (TIE if best is None else best.gain + TIE):
                best = replace(change, gain=gain)
        return best

    def _find_gains(self, changes: list[Change]) -> None:
        """Compute the gains of adding or deleting the arcs of these changes, unless they are known or time runs out."""
        arcs = [(change.child, change.parent) for change in changes]
        arcs += [(change.parent, change.child) for change in changes if isinstance(change, ReverseArc)]
        new = {arc: _toggled(self._parents[arc[0]], arc[1]) for arc in arcs if arc[1] not in self._gains[arc[0]]}
        self._learn_all([(child, parents) for (child, _), parents in new.items()])
        if self.stopped:
            return
        for (child, other), parents in new.items():
            self._gains[child][other] = self._score(child, parents) - self._score(child, self._parents[child])

    def _changes(self) -> list[Change]:
        """All changes that are allowed and create no cycle, in the order of ties; their gains are not set."""
        rules, targets = self._problem.parents, self._problem.targets
        above = dag.ancestor_matrix(self._parents)
        additions: list[Change] = [
            AddArc(parent, child, 0.0)
            for child in targets
            if len(self._parents[child]) < rules.most_parents
            for parent in np.flatnonzero(rules.allowed[child] & ~above[:, child]).tolist()
            if parent not in self._parents[child]
        ]
        old = [(p, c) for c in targets for p in self._parents[c] if not rules.fixed[c, p]]
        reversals = [
            ReverseArc(parent, child, 0.0)
            for parent, child in old
            if parent in targets and rules.allowed[parent, child] and len(self._parents[parent]) < rules.most_parents
            if not any(above[other, parent] for other in self._parents[child])
        ]
        return [*additions, *(DeleteArc(parent, child, 0.0) for parent, child in old), *reversals]

    def _make(self, change: Change) -> None:
        self.operators.append(change)
        self._toggle(change.child, change.parent)
        if isinstance(change, ReverseArc):
            self._toggle(change.parent, change.child)

    def _toggle(self, target: int, other: int) -> None:
        """Add or delete an arc into a target, then drop parents that its graph does not test, unless they are fixed."""
        parents = _toggled(self._parents[target], other)
        score, node = self._score(target, parents), self._node(target, parents)
        kept = self._problem.parents.fixed[target]
        left = tuple(p for p in parents if p in node.graph.tested or kept[p])
        self._scores[target, left] = score  # the graph tests no others
        self._nodes[target, left] = node
        self._found_with[target, left] = self._found_with.get((target, parents), parents)
        self._parents[target] = left
        self._gains[target] = {}

    def _node(self, target: int, parents: Parents) -> Node:
        """The node of a target with these parents; relearned on demand, since usually only its score is needed."""
        key = target, parents
        if key not in self._nodes:
            learned = self._learn_batch([(target, self._found_with.get(key, parents))])
            self._nodes[key] = learned.node(len(self._problem.variables))
        return self._nodes[key]

    def _score(self, target: int, parents: Parents) -> float:
        self._learn_all([(target, parents)])
        return self._scores[target, parents]

    def _learn_all(self, wanted: list[tuple[int, Parents]]) -> None:
        """Score the graphs of all (target, parents) that are not scored yet, by learning them in batches.

        If time runs out between two batches, `stopped` is set, and the rest stay unscored.
        """
        new = [key for key in dict.fromkeys(wanted) if key not in self._scores]
        for begin in range(0, len(new), _BATCH):
            end = begin + _BATCH
            batch = new[begin:end]
            scores = self._learn_batch(batch).node_log_scores()
            self._scores.update(zip(batch, scores.values(), strict=True))
            if end < len(new):
                self.watch(self)
                if self._is_over(self.settings.seconds, "max_steps", self.n_steps, None):
                    return

    def _learn_batch(self, batch: list[tuple[int, Parents]]) -> LeafSearchRun:
        """Learn a batch of (target, parents) in one search: each is the node of a copy of its target.

        The copies follow all variables, and are nobody's parents.
        """
        n, rules = len(self._problem.variables), self._problem.parents
        copied = [target for target, _ in batch]
        allowed = np.zeros((n + len(batch), n + len(batch)), np.uint8)
        for k, (_, parents) in enumerate(batch):
            allowed[n + k, list(parents)] = 1
        nothing = np.zeros_like(allowed)
        prior = self._problem.prior
        problem = replace(
            self._problem,
            prior=replace(prior, copies=tuple(copied)) if isinstance(prior, PriorNetwork) else prior,
            variables=(*self._problem.variables, *(self._problem.variables[target] for target in copied)),
            targets=tuple(range(n, n + len(batch))),
            parents=ParentRules(allowed, nothing, nothing, rules.most_parents, rules.most_leaves),
            n_candidates=np.append(self._problem.n_candidates, self._problem.n_candidates[copied]),
            start={},
        )
        search = LeafSearchRun(problem, self._counter.copying(copied), self.settings.greedy, self._workers)
        search.run()
        return search


def _toggled(parents: Parents, other: int) -> Parents:
    """The parents with `other` added, or removed if it is one of them."""
    return tuple(sorted({other}.symmetric_difference(parents)))
