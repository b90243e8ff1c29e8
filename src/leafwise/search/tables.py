"""Greedy search over DAGs whose nodes hold complete tables: arcs are added, deleted and reversed one by one.

The paper's COMP. The score is that of every other search: a complete table is the decision graph in which each parent
configuration is a leaf of its own, observed or not.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.counters.counter import Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels import arcs
from leafwise.network import Network, Node
from leafwise.priors import log_kappa
from leafwise.search.greedy import Problem
from leafwise.search.limits import check_numbers
from leafwise.search.table_nodes import Memory, TableNodes
from leafwise.workers import Workers

MOST_ROWS = 2**20  # parent configurations of one table
_LEAST_GAIN = 1e-6  # of a detour, whose gain is a sum of differences: more than it is off by
_MOMENT = 0.05  # seconds between two calls of `progress`


@dataclass(frozen=True)
class Tables:
    """How to search with complete tables: how far, and how hard.

    Where no arc gains, up to `patience` arcs are changed that lose least, until together they gain: a detour. On the
    way, two variables whose arc was changed are left alone for the next 2/5 of that many changes. 0 stops at once,
    at the first local maximum; 100 finds a better one, in two to five times as long.

    `ties`: which variables come first where arcs gain the same, as most do in both directions under BDeu. 0: as they
    are in the table; 1: the other way round; others: in an order drawn with this seed.

    >>> Tables(max_steps=10).seconds is None
    True
    """

    patience: int = 0
    ties: int = 0
    max_steps: int | None = None
    seconds: float | None = None
    threads: int | None = None  # None: all cores; the network does not depend on it

    def order(self, n_variables: int) -> NDArray[np.int64]:
        """All variables, in the order that breaks ties."""
        if self.ties > 1:
            return np.random.default_rng(self.ties).permutation(n_variables)
        return np.arange(n_variables)[:: -1 if self.ties else 1].copy()

    def __post_init__(self) -> None:
        check_numbers(self, patience=0, ties=0, max_steps=0, seconds=0, threads=1)

    def begin(self, problem: Problem, counter: Counter, workers: Workers) -> "TableSearch":
        """The search with these settings."""
        return TableSearch(problem, counter, self, workers)


@dataclass(frozen=True, slots=True)
class AddArc:
    """A new arc."""

    parent: int
    child: int
    gain: float


@dataclass(frozen=True, slots=True)
class DeleteArc:
    """An arc that goes."""

    parent: int
    child: int
    gain: float


@dataclass(frozen=True, slots=True)
class ReverseArc:
    """The arc parent → child becomes child → parent."""

    parent: int
    child: int
    gain: float


Change = AddArc | DeleteArc | ReverseArc


@dataclass(frozen=True, slots=True)
class Detour:
    """Changes of which the first lose, or gain nothing, and which together gain."""

    changes: tuple[Change, ...]
    gain: float


ArcOperator = Change | Detour
_CHANGES: dict[int, type[Change]] = {arcs.ADD: AddArc, arcs.DELETE: DeleteArc, arcs.REVERSE: ReverseArc}
_KINDS = {change: kind for kind, change in _CHANGES.items()}


@dataclass(frozen=True, slots=True)
class ArcStep:
    """One change of arcs, and the network's size and score after it; every row of a complete table is a leaf."""

    operator: ArcOperator
    log_score: float
    n_leaves: int
    n_arcs: int


class TableSearch:
    """A search under way. Iterate for its steps, or `run` it; `network` is the network so far, after any step.

    Each step takes the arc that gains most. Gains within 1e-9 of each other are a tie: additions come before deletions
    before reversals, then the smaller child (before the reversal), then the smaller parent, or as the setting `ties`
    says. `stopped` says why there are no more steps: "no operator gains", "max_steps", "seconds"; "" while there may
    be.
    """

    def __init__(self, problem: Problem, counter: Counter, settings: Tables, workers: Workers) -> None:
        began = time.perf_counter()
        self.settings, self._problem, self._counter = settings, problem, counter
        rules = problem.parents
        n_states = np.array([variable.n_states for variable in problem.variables])
        self._log_kappa = log_kappa(problem.structure_prior)
        self._targets = np.array(problem.targets)
        self._is_parent = rules.is_parent.copy()
        self._check_start(n_states)
        self._ancestors = np.zeros((len(n_states), -(-len(n_states) // 64)), np.uint64)
        arcs.change_arc(arcs.STOP, 0, 0, self._is_parent, self._ancestors)
        self._order = settings.order(len(n_states))
        self._targets_in_order = self._order[np.isin(self._order, self._targets)]
        self._tabu = np.zeros_like(rules.allowed)
        self._limits = np.array([rules.most_parents, min(rules.most_leaves, MOST_ROWS)])
        self._nodes = TableNodes(
            counter,
            workers,
            problem.prior,
            self._log_kappa,
            rules.allowed | rules.is_parent,
            n_states,
            self._targets,
            rules.most_parents,
        )
        self._nodes.build({i: tuple(np.flatnonzero(self._is_parent[i]).tolist()) for i in problem.targets})
        self.operators: list[ArcOperator] = []
        self._deadline = math.inf
        self.stopped = ""
        self.seconds = time.perf_counter() - began

    def __iter__(self) -> Iterator[ArcStep]:
        return self

    def __next__(self) -> ArcStep:
        if not self._advance():
            raise StopIteration
        return ArcStep(self.operators[-1], self.log_score, self.n_leaves, self.n_arcs)

    def run(self, progress: Callable[["TableSearch"], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called about twenty times a second."""
        told = time.perf_counter()
        while self._advance():
            if progress is not None and time.perf_counter() - told > _MOMENT:
                progress(self)
                told = time.perf_counter()
        if progress is not None:
            progress(self)

    @property
    def n_steps(self) -> int:
        return len(self.operators)

    @property
    def changes(self) -> list[Change]:
        """All changes of arcs so far, those of detours among them."""
        steps = [step.changes if isinstance(step, Detour) else (step,) for step in self.operators]
        return [change for step in steps for change in step]

    @property
    def n_leaves(self) -> int:
        return int(self._nodes.prices.n_rows[self._targets].sum())

    @property
    def n_arcs(self) -> int:
        return int(self._nodes.n_parents.sum())

    @property
    def n_parameters(self) -> int:
        return int((self._nodes.prices.n_rows * (self._nodes.n_states - 1))[self._targets].sum())

    @property
    def log_score(self) -> float:
        return self.log_marginal_likelihood + self.n_parameters * self._log_kappa

    @property
    def log_marginal_likelihood(self) -> float:
        return math.fsum(self._nodes.prices.log_likelihood[self._targets])

    @property
    def network(self) -> Network:
        """The network as it is now."""
        n_states = self._nodes.n_states
        nodes: list[Node | None] = [None] * len(n_states)
        for target in self._problem.targets:
            parents, counts = self._nodes.table(target)
            graph = DecisionGraph.complete(parents, n_states.tolist())
            exponents = np.full(counts.shape, self._nodes.exponent(target))
            nodes[target] = Node.learned(parents, graph, counts, exponents)
        return Network(
            self._problem.variables,
            tuple(nodes),
            str(self._problem.prior),
            self._problem.structure_prior,
            self.summary(),
        )

    def summary(self) -> dict[str, Any]:
        """What was learned and how, in plain values. No times: the same data and options give the same."""
        names = [variable.name for variable in self._problem.variables]
        kinds = [type(change) for change in self.changes]
        return {
            "cases": self._counter.n_cases,
            "variables": len(names),
            "target": names[self._problem.targets[0]] if len(self._problem.targets) < len(names) else None,
            "search": "tables",
            "patience": self.settings.patience,
            "ties": self.settings.ties,
            "log_score": self.log_score,
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "leaves": self.n_leaves,
            "parameters": self.n_parameters,
            "arcs": self.n_arcs,
            "additions": kinds.count(AddArc),
            "deletions": kinds.count(DeleteArc),
            "reversals": kinds.count(ReverseArc),
            "detours": sum(isinstance(operator, Detour) for operator in self.operators),
            "steps": self.n_steps,
            "stopped": self.stopped,
        }

    def _check_start(self, n_states: Any) -> None:
        """Refuse arcs that close a cycle, and tables beyond all bounds."""
        names = [variable.name for variable in self._problem.variables]
        cycle = dag.find_cycle([tuple(np.flatnonzero(row).tolist()) for row in self._is_parent])
        if cycle:
            arrows = " -> ".join(names[variable] for variable in cycle)
            raise ValueError(f"the arcs to begin with close a cycle ({arrows}): leave one of them out")
        for target in self._problem.targets:
            rows = math.prod(n_states[self._is_parent[target] > 0].tolist())
            if rows > MOST_ROWS:
                raise ValueError(
                    f"{names[target]!r} begins with parents of {rows} configurations, and a "
                    f"complete table has at most {MOST_ROWS}: leave out some of them, or search with decision graphs"
                )

    def _advance(self) -> bool:
        """Take one step; where there is none, `stopped` says why."""
        began = time.perf_counter()
        if self.stopped:
            return False
        if self.settings.seconds is not None:
            self._deadline = began + self.settings.seconds - self.seconds
        if began >= self._deadline:
            self.stopped = "seconds"
        elif self.n_steps == self.settings.max_steps:
            self.stopped = "max_steps"
        else:
            self._step()
        self.seconds += time.perf_counter() - began
        return not self.stopped

    def _step(self) -> None:
        """Change the arc that gains most, or make a detour."""
        change = self._best(0.0)
        if change is not None:
            self._make(change)
            self.operators.append(change)
        elif not self._make_detour():
            self.stopped = "no operator gains" if time.perf_counter() < self._deadline else "seconds"

    def _make_detour(self) -> bool:
        """Change arcs that lose least, until they gain. Out of patience, or of time, all is as before: False."""
        memory: Memory = []
        changes: list[Change] = []
        arcs_before, tenure, gain = self._is_parent.copy(), max(1, self.settings.patience * 2 // 5), 0.0
        while gain <= _LEAST_GAIN and len(changes) < self.settings.patience:
            change = self._best(-math.inf) if time.perf_counter() < self._deadline else None
            if change is None:
                break
            memory += self._nodes.remember(tuple({change.child, change.parent}.intersection(self._problem.targets)))
            self._make(change)
            changes.append(change)
            gain += change.gain
            self._forbid(changes[-1], 1)
            if len(changes) > tenure:
                self._forbid(changes[-1 - tenure], 0)
        self._tabu[:] = 0
        if gain > _LEAST_GAIN:
            self.operators.append(Detour(tuple(changes), gain))
            return True
        self._is_parent[:] = arcs_before
        self._nodes.recall(memory[::-1])
        return False

    def _forbid(self, change: Change, value: int) -> None:
        self._tabu[change.child, change.parent] = self._tabu[change.parent, change.child] = value

    def _best(self, least: float) -> Change | None:
        """The best change that gains more than this."""
        nodes, rules = self._nodes, self._problem.parents
        kind, parent, child, gain = arcs.best_move(
            self._targets_in_order,
            self._order,
            rules.allowed,
            rules.fixed,
            self._is_parent,
            self._ancestors,
            nodes.n_parents,
            self._limits,
            nodes.prices,
            self._tabu,
            least,
        )
        return None if kind == arcs.STOP else _CHANGES[kind](parent, child, gain)

    def _make(self, change: Change) -> None:
        kind, parent, child = _KINDS[type(change)], change.parent, change.child
        arcs.change_arc(kind, parent, child, self._is_parent, self._ancestors)
        if kind == arcs.ADD:
            self._nodes.add(child, parent)
        else:
            self._nodes.delete(child, parent)
        if kind == arcs.REVERSE:
            self._nodes.add(parent, child)
