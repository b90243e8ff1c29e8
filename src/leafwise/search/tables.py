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

from leafwise.counters.counter import Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels import arcs
from leafwise.network import Network, Node
from leafwise.priors import log_kappa
from leafwise.search.greedy import Problem
from leafwise.search.table_nodes import TableNodes
from leafwise.workers import Workers

MOST_ROWS = 2**20  # parent configurations of one table
_MOMENT = 0.05  # seconds between two calls of `progress`


@dataclass(frozen=True)
class Tables:
    """How to search with complete tables: only how far.

    >>> Tables(max_steps=10).seconds is None
    True
    """

    max_steps: int | None = None
    seconds: float | None = None
    threads: int | None = None  # None: all cores; the network does not depend on it

    def __post_init__(self) -> None:
        for name, least in (("max_steps", 0), ("seconds", 0), ("threads", 1)):
            value = getattr(self, name)
            if value is not None and not value >= least:
                raise ValueError(f"{name} is {value}, and must be at least {least}: raise it, or leave it out")


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


ArcOperator = AddArc | DeleteArc | ReverseArc
_OPERATORS = {arcs.ADD: AddArc, arcs.DELETE: DeleteArc, arcs.REVERSE: ReverseArc}


@dataclass(frozen=True, slots=True)
class TableStep:
    """One operator, and the network's size and score after it; every row of a table is a leaf."""

    operator: ArcOperator
    log_score: float
    n_leaves: int
    n_arcs: int


class TableSearch:
    """A search under way. Iterate for its steps, or `run` it; `network` is the network so far, after any step.

    Each step takes the arc that gains most. Gains within 1e-9 of each other are a tie: additions come before deletions
    before reversals, then the smaller child (before the reversal), then the smaller parent. `stopped` says why there
    are no more steps: "no operator gains", "max_steps", "seconds"; "" while there may be.
    """

    def __init__(self, problem: Problem, counter: Counter, settings: Tables, workers: Workers) -> None:
        began = time.perf_counter()
        self.settings, self._problem, self._counter = settings, problem, counter
        rules = problem.parents
        n_states = np.array([variable.n_states for variable in problem.variables])
        self._log_kappa = log_kappa(problem.structure_prior)
        self._targets = np.array(problem.targets)
        self._is_parent = np.zeros_like(rules.is_parent)
        self._is_parent[self._targets] = rules.is_parent[self._targets]
        self._check_start(n_states)
        self._ancestors = np.zeros((len(n_states), -(-len(n_states) // 64)), np.uint64)
        arcs.change_arc(np.int64(arcs.STOP), np.int64(0), np.int64(0), self._is_parent, self._ancestors)
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
        self.stopped = ""
        self.seconds = time.perf_counter() - began

    def __iter__(self) -> Iterator[TableStep]:
        return self

    def __next__(self) -> TableStep:
        if not self._advance():
            raise StopIteration
        return TableStep(self.operators[-1], self.log_score, self.n_leaves, self.n_arcs)

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
        kinds = [type(operator) for operator in self.operators]
        return {
            "cases": self._counter.n_cases,
            "variables": len(names),
            "target": names[self._problem.targets[0]] if len(self._problem.targets) < len(names) else None,
            "search": "tables",
            "log_score": self.log_score,
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "leaves": self.n_leaves,
            "parameters": self.n_parameters,
            "arcs": self.n_arcs,
            "additions": kinds.count(AddArc),
            "deletions": kinds.count(DeleteArc),
            "reversals": kinds.count(ReverseArc),
            "steps": self.n_steps,
            "stopped": self.stopped,
        }

    def _check_start(self, n_states: Any) -> None:
        for target in self._problem.targets:
            rows = math.prod(n_states[self._is_parent[target] > 0].tolist())
            if rows > MOST_ROWS:
                raise ValueError(
                    f"{self._problem.variables[target].name!r} begins with parents of {rows} configurations, and a "
                    f"complete table has at most {MOST_ROWS}: leave out some of them, or search with decision graphs"
                )

    def _advance(self) -> bool:
        """Take one step; where there is none, `stopped` says why."""
        began = time.perf_counter()
        if self.stopped:
            return False
        if self.settings.seconds is not None and self.seconds >= self.settings.seconds:
            self.stopped = "seconds"
        elif self.n_steps == self.settings.max_steps:
            self.stopped = "max_steps"
        else:
            self._step()
        self.seconds += time.perf_counter() - began
        return not self.stopped

    def _step(self) -> None:
        nodes, rules = self._nodes, self._problem.parents
        kind, parent, child, gain = arcs.best_move(
            self._targets,
            rules.allowed,
            rules.kept,
            self._is_parent,
            self._ancestors,
            nodes.n_parents,
            self._limits,
            nodes.prices,
        )
        if kind == arcs.STOP:
            self.stopped = "no operator gains"
            return
        arcs.change_arc(kind, parent, child, self._is_parent, self._ancestors)
        if kind == arcs.ADD:
            nodes.add(child, parent)
        else:
            nodes.delete(child, parent)
        if kind == arcs.REVERSE:
            nodes.add(parent, child)
        self.operators.append(_OPERATORS[kind](parent, child, gain))
