"""Search over DAGs whose nodes hold complete tables: arcs are added, deleted and reversed one by one.

The paper's COMP, and on from where it ends. The score is that of every other search: a complete table is the decision
graph in which each parent configuration is a leaf of its own, observed or not.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.counters.counter import Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels import arcs, turns
from leafwise.network import Network, Node
from leafwise.prior_network import PriorNetwork
from leafwise.priors import log_kappa
from leafwise.search.greedy import Problem
from leafwise.search.limits import check_numbers
from leafwise.search.table_nodes import TableNodes
from leafwise.workers import Workers

MOST_ROWS = 2**20  # parent configurations of one table
_LEAST_GAIN = 1e-6  # of several changes, whose gain is a sum of differences: more than it is off by
_MOMENT = 0.05  # seconds between two calls of `progress`

Arc = tuple[int, int]  # parent, child


@dataclass(frozen=True)
class Tables:
    """How to search with complete tables: how hard, and how far.

    `turns`: with a prior that gives networks that say the same the same score (BDeu), the directions of many arcs are
    a tie, and what they happen to be must not stand in the way of others. So an arc may be added or deleted after
    others were turned round, if that costs nothing.

    `patience`: where no arc gains, variables are taken out, each once, those with the most arcs first: a variable loses
    all its arcs, then arcs are changed as long as that gains. What comes of it stays if it scores higher. The search
    ends when so many variables in a row were taken out in vain.

    Without either of them it is plain greedy search: GREEDY.

    >>> Tables(max_steps=10).seconds is None
    True
    """

    turns: bool = True
    patience: int = 5
    max_steps: int | None = None
    seconds: float | None = None
    threads: int | None = None  # None: all cores; the network does not depend on it

    def __post_init__(self) -> None:
        check_numbers(self, patience=0, max_steps=0, seconds=0, threads=1)

    def begin(self, problem: Problem, counter: Counter, workers: Workers) -> "TableSearch":
        """The search with these settings."""
        if isinstance(problem.prior, PriorNetwork):
            raise ValueError(
                f"a search with complete tables got the prior {str(problem.prior)!r}, and it takes 'uniform' or "
                f"'bdeu:10': use another search, or another prior."
            )
        return TableSearch(problem, counter, self)


GREEDY = Tables(turns=False, patience=0)  # the paper's search


@dataclass(frozen=True, slots=True)
class AddArc:
    """A new arc, after others were turned round: these are named as they are now."""

    parent: int
    child: int
    gain: float
    turned: tuple[Arc, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteArc:
    """An arc that goes, after others were turned round."""

    parent: int
    child: int
    gain: float
    turned: tuple[Arc, ...] = ()


@dataclass(frozen=True, slots=True)
class ReverseArc:
    """The arc parent → child becomes child → parent."""

    parent: int
    child: int
    gain: float
    turned: tuple[Arc, ...] = ()


Change = AddArc | DeleteArc | ReverseArc


@dataclass(frozen=True, slots=True)
class PutBack:
    """A variable lost all its arcs, and others came: all arcs that are gone, and all that are new."""

    target: int
    deleted: tuple[Arc, ...]
    added: tuple[Arc, ...]
    gain: float


ArcOperator = Change | PutBack
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
    before reversals, then the smaller child (before the reversal), then the smaller parent. `stopped` says why there
    are no more steps: "no operator gains", "max_steps", "seconds"; "" while there may be.
    """

    def __init__(self, problem: Problem, counter: Counter, settings: Tables) -> None:
        began = time.perf_counter()
        self.settings, self._problem, self._counter = settings, problem, counter
        rules, n = problem.parents, len(problem.variables)
        self._n_states = [variable.n_states for variable in problem.variables]
        n_states = np.array(self._n_states)
        self._log_kappa = log_kappa(problem.structure_prior)
        self._targets = np.array(problem.targets)
        self._is_parent = rules.is_parent.copy()
        self._check_start(n_states)
        limits = np.array([rules.most_parents, min(rules.most_leaves, MOST_ROWS)])
        self._rules = arcs.Rules(self._targets, rules.allowed, rules.fixed, limits, n_states)
        self._may_be = rules.allowed | rules.is_parent
        self._nodes = TableNodes(
            counter,
            problem.prior,
            self._log_kappa,
            self._may_be,
            n_states,
            self._targets,
            rules.most_parents,
        )
        self._rows = np.zeros(n, np.int64)  # of the book, for each target as it is
        self._ancestors = np.zeros((n, -(-n // 64)), np.uint64)
        arcs.change_arc(arcs.STOP, 0, 0, self._is_parent, self._ancestors)
        self._find_rows(problem.targets)
        self._turns = settings.turns and self._nodes.is_fair and len(problem.targets) == n
        self._links = np.zeros_like(self._is_parent)
        self._turned_rows = np.full((n, n + 1), -1)  # for each target as it may be after turning arcs
        self._is_at_top = False  # nothing gains, as far as is known
        self._n_in_vain = 0
        self._waits = np.ones(n, np.int64)  # 0: was taken out
        self.operators: list[ArcOperator] = []
        self._deadline = math.inf
        self.stopped = ""
        self.seconds = time.perf_counter() - began

    def __iter__(self) -> Iterator[ArcStep]:
        return self

    def __next__(self) -> ArcStep:
        n_before = self.n_steps
        while self.n_steps == n_before:
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
    def n_leaves(self) -> int:
        return int(self._nodes.book.n_rows[self._rows[self._targets]].sum())

    @property
    def n_arcs(self) -> int:
        return int(self._is_parent[self._targets].sum())

    @property
    def n_parameters(self) -> int:
        n_rows = self._nodes.book.n_rows[self._rows[self._targets]]
        return int((n_rows * (self._nodes.n_states[self._targets] - 1)).sum())

    @property
    def log_score(self) -> float:
        return self.log_marginal_likelihood + self.n_parameters * self._log_kappa

    @property
    def log_marginal_likelihood(self) -> float:
        return math.fsum(self._nodes.book.log_likelihood[self._rows[self._targets]])

    @property
    def network(self) -> Network:
        """The network as it is now."""
        n_states = self._nodes.n_states
        nodes: list[Node | None] = [None] * len(n_states)
        for target in self._problem.targets:
            parents, counts = self._nodes.table(target, self._parents(target))
            graph = DecisionGraph.complete(parents, n_states.tolist())
            exponents = np.full(counts.shape, self._nodes.exponent(target, len(counts)))
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
            "turns": self.settings.turns,
            "patience": self.settings.patience,
            "log_score": self.log_score,
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "leaves": self.n_leaves,
            "parameters": self.n_parameters,
            "arcs": self.n_arcs,
            "additions": kinds.count(AddArc),
            "deletions": kinds.count(DeleteArc),
            "reversals": kinds.count(ReverseArc),
            "put_back": kinds.count(PutBack),
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
        """Take one step, or fail to; where there are no more, `stopped` says why."""
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
        """Change the arc that gains most; where there is none, take out the next variable."""
        change = None if self._is_at_top else self._best_change()
        self._is_at_top = change is None
        if change is not None:
            self._make(change)
            self.operators.append(change)
        elif (variable := self._next_to_take_out()) is not None:
            self._take_out(variable)
        else:
            self.stopped = "no operator gains"

    def _best_change(self) -> Change | None:
        move = self._best_move()
        turn = self._best_turn(0.0 if move is None else move.gain) if self._turns else None
        return turn or move

    def _best_move(self) -> Change | None:
        """The best change of one arc."""
        nodes = self._nodes
        kind, parent, child, gain = arcs.best_move(
            self._is_parent, self._ancestors, self._rows, self._rules, nodes.book
        )
        return None if kind == arcs.STOP else _CHANGES[kind](parent, child, gain)

    def _best_turn(self, least: float) -> Change | None:
        """The best change that gains more than this after arcs were turned."""
        for node in turns.find_links(self._is_parent, self._links).tolist():
            self._find_turned_rows(node)
        kind, parent, child, kept, gain = turns.best_turn(
            max(least, _LEAST_GAIN), self._turned_rows, self._links, self._is_parent, self._rules, self._nodes.book
        )
        if kind == arcs.STOP:
            return None
        turned = np.empty_like(self._is_parent)
        turns.turn(child, kept, self._links, self._is_parent, turned)
        return _CHANGES[kind](parent, child, gain, _new_arcs(self._is_parent, turned))

    def _find_turned_rows(self, node: int) -> None:
        """Price a node with its sure parents, alone and with one neighbour each."""
        links, rows = self._links[node], self._turned_rows[node]
        linked = links.nonzero()[0].tolist()
        sure = [other for other in linked if links[other] == turns.PARENT]
        n_rows = math.prod(self._n_states[parent] for parent in sure)
        rows[:] = -1
        rows[-1] = self._nodes.row(node, frozenset(sure))
        for neighbour in linked:
            is_allowed = self._may_be[node, neighbour] and n_rows * self._n_states[neighbour] <= self._rules.limits[1]
            if links[neighbour] == turns.NEIGHBOUR and is_allowed:
                rows[neighbour] = self._nodes.row(node, frozenset((*sure, neighbour)))

    def _make(self, change: Change) -> None:
        """Change arcs."""
        parent, child = change.parent, change.child
        for new_parent, new_child in change.turned:
            self._is_parent[new_child, new_parent], self._is_parent[new_parent, new_child] = 1, 0
        if change.turned:
            arcs.change_arc(arcs.STOP, 0, 0, self._is_parent, self._ancestors)
        arcs.change_arc(_KINDS[type(change)], parent, child, self._is_parent, self._ancestors)
        self._find_rows({child, *(end for arc in change.turned for end in arc)})
        if isinstance(change, ReverseArc):
            self._find_rows({parent})

    def _find_rows(self, changed: Iterable[int]) -> None:
        for target in changed:
            self._rows[target] = self._nodes.row(target, self._parents(target))

    def _parents(self, target: int) -> frozenset[int]:
        return frozenset(self._is_parent[target].nonzero()[0].tolist())

    def _next_to_take_out(self) -> int | None:
        """The variable with the most arcs of those that were not taken out."""
        n_arcs = (self._is_parent.sum(axis=0) + self._is_parent.sum(axis=1)) * self._waits
        variable = int(n_arcs.argmax())
        return variable if n_arcs[variable] and self._n_in_vain < self.settings.patience else None

    def _take_out(self, variable: int) -> None:
        """Delete all arcs of a variable, and change arcs as long as that gains; undo it all unless it gained."""
        before, rows, score, gain = self._is_parent.copy(), self._rows.copy(), self.log_score, 0.0
        loose = before > self._rules.fixed
        children = np.flatnonzero(loose[:, variable]).tolist()
        self._waits[variable] = 0
        self._n_in_vain += 1
        try:
            self._is_parent[variable, loose[variable]] = self._is_parent[children, variable] = 0
            arcs.change_arc(arcs.STOP, 0, 0, self._is_parent, self._ancestors)
            self._find_rows([*children, *{variable}.intersection(self._problem.targets)])
            while (change := self._best_move()) is not None and time.perf_counter() < self._deadline:
                self._make(change)
            gain = self.log_score - score
        finally:  # whatever happened, an interrupt even: the best network so far is the one to go on with
            if gain > _LEAST_GAIN:
                gone, new = _new_arcs(self._is_parent, before), _new_arcs(before, self._is_parent)
                self.operators.append(PutBack(variable, gone, new, gain))
                self._n_in_vain, self._is_at_top = 0, False
            else:
                self._is_parent[:], self._rows[:] = before, rows
                arcs.change_arc(arcs.STOP, 0, 0, self._is_parent, self._ancestors)


def _new_arcs(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> tuple[Arc, ...]:
    return tuple((parent, child) for child, parent in np.argwhere(after > before).tolist())
