"""Search over DAGs with complete tables: arcs are added, deleted and reversed one by one.

This is COMP of the paper, and a continuation from the local optimum that it finds. The score is that of every other
search: a complete table is the decision graph with a leaf for each parent configuration, observed or not.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.constraints import NO_LIMIT
from leafwise.counters.counter import Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.errors import AdvisedError
from leafwise.kernels.arc_search import hill_climbing, moves
from leafwise.kernels.leaf_search.weights import log_likelihoods_of
from leafwise.network import Network, Node
from leafwise.prior_network import PriorNetwork
from leafwise.search.problem import Problem, Step
from leafwise.search.run import Run, check_numbers, now_and_then
from leafwise.search.table_nodes import Configurations, Copy, Exponents, TableNodes
from leafwise.structure_priors import Arcs, Kappa
from leafwise.workers import Workers

MOST_ROWS = 2**20  # parent configurations of one table
_AT_ONCE = 256  # most steps, and
_WORK = 20_000_000  # nanoseconds, roughly, between two checks of the clock

Arc = tuple[int, int]  # parent, child


@dataclass(frozen=True)
class TableArcSearch:
    """Settings of the search with complete tables.

    `turns`: with a score-equivalent prior (BDeu), an arc may be added to, or deleted from, any Markov-equivalent DAG:
    others are reversed first, which does not change the score, so that the directions at hand are no obstacle.

    `patience`: when no arc gains, variables are taken out, each once, those with the most arcs first: all arcs of a
    variable are deleted, then arcs are changed as long as that gains. The result is kept if it scores higher. The
    search ends when this many variables in a row were taken out in vain.

    Without either of them, it is plain greedy search: GREEDY.

    >>> TableArcSearch(max_steps=10).seconds is None
    True
    """

    turns: bool = True
    patience: int = 5
    max_steps: int | None = None
    seconds: float | None = None
    threads: int | None = None  # None: all cores; the network does not depend on it

    def __post_init__(self) -> None:
        check_numbers(self, patience=0, max_steps=0, seconds=0, threads=1)

    def begin(
        self, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> "TableArcSearchRun":
        """Begin a search with these settings, or resume one from its state."""
        if isinstance(problem.prior, PriorNetwork):
            raise ValueError(
                f"a search with complete tables got the prior {str(problem.prior)!r}, and it takes 'uniform' or "
                f"'bdeu:10': use another search, or another prior."
            )
        if not isinstance(problem.structure_prior, Arcs | Kappa):
            raise ValueError(
                f"a search with complete tables got the structure prior {str(problem.structure_prior)!r}, which is for "
                f"decision graphs: use 'auto', 'arcs', 'uniform' or 'kappa:0.1'."
            )
        _check_leaves(problem)
        return TableArcSearchRun(problem, counter, self, workers, state)


def _check_leaves(problem: Problem) -> None:
    """Raise an error if the tables over the initial parents have more leaves than is allowed."""
    rules = problem.parents
    for target in problem.targets if rules.most_leaves < NO_LIMIT else ():
        rows = math.prod(problem.n_states[rules.is_parent[target] > 0].tolist())
        if rows > rules.most_leaves:
            name, limit = problem.variables[target].name, ("max_leaves", rules.most_leaves)
            begins = (
                f"{name!r} begins with parents of {rows} configurations, each a leaf of a complete table, more than "
            )
            raise AdvisedError(begins, limit, ": raise it, drop arcs, or use a search with decision graphs")


GREEDY = TableArcSearch(turns=False, patience=0)  # the paper's search


@dataclass(frozen=True, slots=True)
class AddArc:
    """An arc is added after others were reversed: `turned`, in their new directions."""

    parent: int
    child: int
    gain: float
    turned: tuple[Arc, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteArc:
    """An arc is deleted after others were reversed: `turned`, in their new directions."""

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
    """A variable was taken out and put back: all arcs that were deleted and added thereby."""

    target: int
    deleted: tuple[Arc, ...]
    added: tuple[Arc, ...]
    gain: float


ArcOperator = Change | PutBack
_COUNTED: dict[str, type] = {"additions": AddArc, "deletions": DeleteArc, "reversals": ReverseArc}
_KINDS: dict[str, Callable[..., Any]] = {kind.__name__: kind for kind in (AddArc, DeleteArc, ReverseArc, PutBack)}
_SIZES = ("log_score", "log_marginal_likelihood", "leaves", "parameters", "arcs", "tests")
_PUT_BACK = moves.REVERSE + 1  # a kind of step
_CHANGES: dict[int, type[Change]] = {moves.ADD: AddArc, moves.DELETE: DeleteArc, moves.REVERSE: ReverseArc}


class TableArcSearchRun(Run):
    """A search in progress. Iterate over its steps, or call `run`; after any step, `network` is the current network.

    Each step makes the change with the largest gain. Gains within 1e-9 of each other are a tie: additions come before
    deletions before reversals, then the smaller child (before the reversal), then the smaller parent. `stopped` says
    why there are no more steps: "no operator gains", "max_steps", "seconds"; "" while there may be more.
    """

    def __init__(
        self,
        problem: Problem,
        counter: Counter,
        settings: TableArcSearch,
        workers: Workers,
        state: Mapping[str, Any] | None = None,
        every: int = 1,  # only every so many-th case is used
    ) -> None:
        super().__init__(problem, counter, 0.0 if state is None else state["seconds"])
        self.settings = settings
        if counter.unit != 1:
            raise ValueError(
                "the weights are not whole, or too large, and complete tables count whole cases: use whole weights, "
                "smaller ones, or a search with decision graphs"
            )
        if counter.local is None:
            raise ValueError(
                "complete tables are learned from rows in this process's memory, and the counter's rows are elsewhere: "
                "use another search, or give a table"
            )
        codes = counter.local.codes if every == 1 else np.ascontiguousarray(counter.local.codes[:, ::every])
        with self._clock:
            self._begin(codes, workers, state)

    def _begin(self, codes: NDArray[Any], workers: Workers, state: Mapping[str, Any] | None) -> None:
        problem, settings = self._problem, self.settings
        self._n_cases = codes.shape[1]
        rules, n = problem.parents, len(problem.variables)
        n_states, ancestors = problem.n_states, np.zeros((n, -(-n // 64)), np.uint64)
        prior = problem.structure_prior
        costs = (
            (prior.costs.log_kappa, 0.0) if isinstance(prior, Kappa) else (0.0, Arcs().arc_cost(len(problem.variables)))
        )
        self._log_kappa, self._arc_cost = costs
        self._targets = np.array(problem.targets)
        is_parent = rules.is_parent.copy()
        if state is not None:
            is_parent[:] = 0
            is_parent[tuple(np.array(state["arcs"], np.int64).reshape(-1, 2).T[::-1])] = 1
        if is_parent.any():
            self._check_start(is_parent, n_states)
            moves.change_arc(moves.STOP, 0, 0, is_parent, ancestors)
        limits = np.array([rules.most_parents, min(rules.most_leaves, MOST_ROWS)])
        may_be = rules.allowed | is_parent
        self._rules = moves.Rules(self._targets, rules.allowed, rules.fixed, may_be, limits, n_states)
        self._nodes = TableNodes(
            codes, problem.prior, costs, may_be, n_states, self._targets, rules.most_parents, workers
        )
        self._turns = settings.turns and self._nodes.is_score_equivalent and len(problem.targets) == n
        self._graph = hill_climbing.Graph(
            is_parent,
            ancestors,
            np.full(n, hill_climbing.UNKNOWN),
            np.zeros((n, n), np.uint8),
            np.full((n, n + 1), -1),
            np.zeros(n, np.bool_),
            np.empty(n, np.int64),
        )
        self._log = hill_climbing.Log(
            np.zeros((_AT_ONCE, 4), np.int64), np.empty(_AT_ONCE), np.empty((n * n, 2), np.int64), np.zeros(1, np.int64)
        )
        self._is_at_top = False  # whether no change of an arc gains
        self._score_then: float | None = None  # some steps ago: if these gained nothing, they cycle, by rounding errors
        self._n_in_vain = 0
        self._waits = np.ones(n, np.int64)  # by variable; 0: was taken out
        self._operators: list[ArcOperator] = []
        self._unread: list[tuple[Any, Any, Any]] = []  # logs of later steps
        self.n_steps, self._n_taken = 0, np.zeros(_PUT_BACK + 1, np.int64)  # in all, and of each kind
        self._deadline = math.inf
        if state is not None:
            self._go_on_from(state)

    def __iter__(self) -> Iterator[Step[ArcOperator]]:
        return self

    def __next__(self) -> Step[ArcOperator]:
        n_before = self.n_steps
        while self.n_steps == n_before:
            if not self._advance(1):
                raise StopIteration
            if self.n_steps == n_before:
                self.watch(self)
        return Step(self.operators[-1], self.log_score, self.n_leaves, self.n_arcs)

    def run(self, progress: Callable[["TableArcSearchRun"], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called about twenty times a second."""
        tell = now_and_then(progress)
        while self._advance(_AT_ONCE):
            tell(self)
        if progress is not None:
            progress(self)

    @property
    def operators(self) -> list[ArcOperator]:
        """All steps so far."""
        read: list[ArcOperator] = []
        for steps, gains, turned in self._unread:
            others, begin = [(parent, child) for parent, child in turned.tolist()], 0
            for (kind, parent, child, end), gain in zip(steps.tolist(), gains.tolist(), strict=True):
                read.append(_CHANGES[kind](parent, child, gain, tuple(others[begin:end])))
                begin = end
        self._operators += read
        self._unread = []
        return self._operators

    @property
    def is_parent(self) -> NDArray[np.uint8]:
        """The current arcs, [child, parent]."""
        return self._graph.is_parent.copy()

    @property
    def n_leaves(self) -> int:
        return int(self._entries()["n_rows"].sum())

    @property
    def n_arcs(self) -> int:
        return int(self._graph.is_parent[self._targets].sum())

    @property
    def n_parameters(self) -> int:
        return int((self._entries()["n_rows"] * (self._rules.n_states[self._targets] - 1)).sum())

    @property
    def log_score(self) -> float:
        return self.log_marginal_likelihood + self.n_parameters * self._log_kappa - self.n_arcs * self._arc_cost

    @property
    def log_marginal_likelihood(self) -> float:
        return math.fsum(self._entries()["log_likelihood"])

    @property
    def network(self) -> Network:
        """The current network: counts are copied at once, everything else is computed on access."""
        copies, costs, told = self._copies(), (self._log_kappa, self._arc_cost), self._told()
        tables = _Tables(copies, self._targets, self.is_parent, self._nodes.exponents, costs)
        about = self._problem.about(told) | {"learned": lambda: told | tables.sizes()}
        return Network.with_nodes_later(self._problem.variables, tables.nodes, **about)

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values."""
        return {
            "arcs": np.argwhere(self._graph.is_parent)[:, ::-1].tolist(),
            "operators": plain(self.operators),
            "is_at_top": self._is_at_top,
            "score_then": self._score_then,
            "n_in_vain": self._n_in_vain,
            "waits": self._waits.tolist(),
            "seconds": self.seconds,
        }

    def _go_on_from(self, state: Mapping[str, Any]) -> None:
        """Restore everything but the arcs, which are already set."""
        self._operators = operators_of(state["operators"])
        self.n_steps, changes = len(self._operators), count_changes(self._operators).values()
        self._n_taken[moves.ADD :] = *changes, self.n_steps - sum(changes)
        self._is_at_top, self._n_in_vain = state["is_at_top"], state["n_in_vain"]
        self._score_then = state["score_then"]
        self._waits[:] = state["waits"]

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return dict(self.network.learned)

    def _told(self) -> dict[str, Any]:
        """What was learned and how, with zeros for the sizes and scores of the tables."""
        how = {"search": "tables", "turns": self.settings.turns, "patience": self.settings.patience}
        taken = dict(zip((*_COUNTED, "put_back"), self._n_taken[moves.ADD :].tolist(), strict=True))
        return self._summary(how, 0, self.n_steps, taken, dict.fromkeys(_SIZES, 0))

    def _check_start(self, is_parent: NDArray[np.uint8], n_states: NDArray[np.int64]) -> None:
        """Refuse initial arcs that form a cycle, or that need tables beyond the limit."""
        names = [variable.name for variable in self._problem.variables]
        cycle = dag.find_cycle(dag.parent_lists(is_parent))
        if cycle:
            arrows = " -> ".join(names[variable] for variable in cycle)
            raise ValueError(f"the arcs to begin with close a cycle ({arrows}): leave one of them out")
        for target in self._problem.targets:
            rows = math.prod(n_states[is_parent[target] > 0].tolist())
            if rows > MOST_ROWS:
                raise ValueError(
                    f"{names[target]!r} begins with parents of {rows} configurations, and a "
                    f"complete table has at most {MOST_ROWS}: leave out some of them, or search with decision graphs"
                )

    def _advance(self, n: int) -> bool:
        """Take up to n steps, possibly none; False if there are no more, and `stopped` then says why."""
        with self._clock:
            self._note_steps()
            most = self.settings.max_steps
            if self._is_over(self.settings.seconds, "max_steps", self.n_steps, most):
                return False
            if self.settings.seconds is not None:
                self._deadline = time.perf_counter() + self.settings.seconds - self.seconds
            self._step(n if most is None else min(n, most - self.n_steps))
        return not self.stopped

    def _step(self, n: int) -> None:
        """Make up to n changes of arcs, each with the largest gain; if none gains, take out the next variable."""
        if not self._is_at_top:
            n_before = self.n_steps
            try:
                self._is_at_top = self._climb(min(n, _AT_ONCE - self.n_steps % _AT_ONCE), self._turns)
            finally:  # an interrupt must not lose the steps that were taken
                self._note_steps()
            if self.n_steps > n_before and self.n_steps % _AT_ONCE == 0:
                before, self._score_then = self._score_then, self.log_score
                if before is not None and self._score_then < before + hill_climbing.LEAST_GAIN:
                    self._is_at_top = True
        elif (variable := self._next_to_take_out()) is not None:
            self._take_out(variable)
        else:
            self.stopped = "no operator gains"

    def _climb(self, n: int, reorients: bool) -> bool:
        """Take up to n steps, or as many as `_WORK` allows; return whether no change gains after them."""
        self._note_steps()  # an interrupt may have left some
        nodes = self._nodes
        while (
            end := hill_climbing.climb(
                n, reorients, _WORK, self._graph, self._log, self._rules, nodes.memory, nodes.data, nodes.room
            )
        ) == hill_climbing.NEEDS_HOST:
            nodes.serve()
        return bool(end == hill_climbing.AT_OPTIMUM)

    def _note_steps(self) -> None:
        """Keep the steps in the log, which are converted to operators on access."""
        log, n = self._log, int(self._log.n[0])
        if n:
            steps = log.steps[:n].copy(), log.gains[:n].copy(), log.reoriented[: log.steps[n - 1, 3]].copy()
            unread, n_steps = [*self._unread, steps], self.n_steps + n
            n_taken = self._n_taken + np.bincount(steps[0][:, 0], minlength=len(self._n_taken))
            self._unread, self._n_taken, self.n_steps, log.n[0] = unread, n_taken, n_steps, 0  # no interrupt in between

    def _entries(self) -> NDArray[np.void]:
        """The entries of the cache for all targets with their current parents."""
        if (self._graph.entries[self._targets] < 0).any():
            self._climb(0, False)
        entries: NDArray[np.void] = self._nodes.memory.cache.entries[self._graph.entries[self._targets]]
        return entries

    def _copies(self) -> list[Copy]:
        """Copies of all targets' current tables."""
        entries, left, found, at_once = self._graph.entries, self._targets, list[Copy](), len(self._targets)
        while True:
            found.append(self._nodes.copy_of(left, entries[left]))
            if not found[-1].n_missing:
                return found
            left = found[-1].missing
            entries[left[:at_once]], at_once = hill_climbing.WITH_CASES, 1  # cases of some may evict those of others
            self._climb(0, False)

    def _next_to_take_out(self) -> int | None:
        """The variable with the most arcs that was not taken out yet; None if there is none, or no patience left."""
        if self._n_in_vain >= self.settings.patience:
            return None
        is_parent = self._graph.is_parent
        n_arcs = (is_parent.sum(axis=0) + is_parent.sum(axis=1)) * self._waits
        variable = int(n_arcs.argmax())
        return variable if n_arcs[variable] else None

    def _take_out(self, variable: int) -> None:
        """Delete all arcs of a variable, and change arcs as long as that gains; keep the result if it gained.

        If an interrupt or the deadline cuts this short, nothing has changed, and the variable is taken out again later.
        """
        kept, score, has_ended, then = self._graph, self.log_score, False, -math.inf
        is_parent, ancestors, entries = (array.copy() for array in kept[:3])
        graph = kept._replace(is_parent=is_parent, ancestors=ancestors, entries=entries)
        loose = is_parent > self._rules.fixed
        is_parent[variable, loose[variable]] = is_parent[loose[:, variable], variable] = 0
        entries[loose[:, variable] | (np.arange(len(entries)) == variable)] = hill_climbing.UNKNOWN
        moves.change_arc(moves.STOP, 0, 0, is_parent, ancestors)
        try:
            self._graph = graph
            while not has_ended and time.perf_counter() < self._deadline:
                has_ended = self._climb(_AT_ONCE, False)
                n, self._log.n[0] = int(self._log.n[0]), 0  # steps that are none of the search
                if n == _AT_ONCE:
                    has_ended = has_ended or self.log_score < then + hill_climbing.LEAST_GAIN
                    then = self.log_score
            if not has_ended:
                return
            gain, waits = self.log_score - score, np.where(np.arange(len(entries)) == variable, 0, self._waits)
            if not gain > hill_climbing.LEAST_GAIN:
                self._waits, self._n_in_vain = waits, self._n_in_vain + 1
                return
            gone, new = _new_arcs(is_parent, kept.is_parent), _new_arcs(kept.is_parent, is_parent)
            operators = [*self.operators, PutBack(variable, gone, new, gain)]
            n_taken = self._n_taken + (np.arange(len(self._n_taken)) == _PUT_BACK)
            self._operators, self._n_taken, self.n_steps = operators, n_taken, self.n_steps + 1  # no call from here on:
            self._waits, self._n_in_vain, self._is_at_top, kept = waits, 0, False, graph  # ... no interrupt in between
        finally:  # also after an interrupt: continue with the best network so far
            self._log.n[0], self._graph = 0, kept


class _Tables:
    """Complete tables at one time of the search, and what follows from them."""

    def __init__(
        self,
        copies: list[Copy],
        targets: NDArray[np.int64],
        is_parent: NDArray[np.uint8],
        exponents: Exponents,
        costs: tuple[float, float],
    ) -> None:
        self._copies, self._targets, self._is_parent = copies, targets, is_parent
        self._exponents, self._costs = exponents, costs

    @cached_property
    def _found(self) -> list[Configurations]:
        return [copy.configurations() for copy in self._copies]

    @cached_property
    def _n_states(self) -> list[int]:
        n_states: list[int] = self._copies[0].n_states.tolist()
        return n_states

    @cached_property
    def _parents(self) -> list[tuple[int, ...]]:
        into_targets = np.zeros_like(self._is_parent)
        into_targets[self._targets] = self._is_parent[self._targets]
        return dag.parent_lists(into_targets)

    @cached_property
    def _n_rows(self) -> list[int]:
        return [math.prod([self._n_states[parent] for parent in own]) for own in self._parents]

    def nodes(self) -> tuple[Node | None, ...]:
        """The nodes of a network."""
        parents, n_states, exponents = self._parents, self._n_states, self._exponents.of(np.array(self._n_rows))
        made: list[Node | None] = [None] * len(n_states)
        for own in self._found:
            for target, counts in own.tables(parents):
                graph = DecisionGraph.complete(parents[target], n_states)
                made[target] = Node.learned(parents[target], graph, counts, np.full(counts.shape, exponents[target]))
        return tuple(made)

    def sizes(self) -> dict[str, Any]:
        """The sizes and scores of the tables.

        The likelihood is computed from the tables: the last digits of the search's own value depend on its steps.
        """
        likelihood, (log_kappa, arc_cost), n_rows = self._log_likelihood(), self._costs, self._n_rows
        targets = self._targets.tolist()
        n_parameters = sum([n_rows[target] * (self._n_states[target] - 1) for target in targets])
        n_arcs = sum(map(len, self._parents))
        score = likelihood + (n_parameters * log_kappa - n_arcs * arc_cost)
        n_leaves = sum([n_rows[target] for target in targets])
        return dict(zip(_SIZES, (score, likelihood, n_leaves, n_parameters, n_arcs, self._n_tests()), strict=True))

    def _log_likelihood(self) -> float:
        of_nodes: list[float] = []
        exponents = self._exponents.of(np.array(self._n_rows))
        for own in self._found:
            cells = exponents[own.targets].repeat(own.sizes * own.widths)
            of_leaves = log_likelihoods_of(own.widths.repeat(own.sizes), own.counts, cells).tolist()
            ends = accumulate(own.sizes.tolist(), initial=0)
            of_nodes += [math.fsum(of_leaves[begin:end]) for begin, end in pairwise(ends)]
        return math.fsum(of_nodes)

    def _n_tests(self) -> int:
        """The number of tests in the tables as decision graphs: one of the first parent, one of the next per state."""
        n = 0
        for own in self._parents:
            width = 1
            for parent in own:
                n, width = n + width, width * self._n_states[parent]
        return n


def count_changes(operators: Sequence[ArcOperator]) -> dict[str, int]:
    """The numbers of steps that add, delete and reverse an arc."""
    return {name: sum(isinstance(operator, kind) for operator in operators) for name, kind in _COUNTED.items()}


def plain(operators: Sequence[ArcOperator]) -> list[list[Any]]:
    """Convert changes of arcs to plain values."""
    return [[type(operator).__name__, *astuple(operator)] for operator in operators]


def operators_of(rows: Sequence[Sequence[Any]]) -> list[Any]:
    """Convert back what `plain` returned, also if it was saved as JSON.

    >>> operators_of([["AddArc", 0, 1, 2.5, [[3, 4]]]])
    [AddArc(parent=0, child=1, gain=2.5, turned=((3, 4),))]
    """
    made = [
        [tuple(map(tuple, value)) if isinstance(value, list | tuple) else value for value in values]
        for _, *values in rows
    ]
    return [_KINDS[row[0]](*values) for row, values in zip(rows, made, strict=True)]


def _new_arcs(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> tuple[Arc, ...]:
    return tuple((parent, child) for child, parent in np.argwhere(after > before).tolist())
