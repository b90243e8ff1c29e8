"""Iterated local search: a node's graph is perturbed, searched from there, and kept if better.

It begins with greedy search under both schedules, and takes the better network. Each round then perturbs the graph of
one node (`perturbation`), and searches that node alone, with all other nodes fixed and any parents that keep the
network acyclic.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise import dag
from leafwise.counters.counter import Counter
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.network import Network, Node
from leafwise.scores import node_score
from leafwise.search.best_networks import BestNetworks, Nodes, nodes_of, plain_nodes
from leafwise.search.leaf_search import SCHEDULES, LeafSearch, LeafSearchRun
from leafwise.search.perturbation import Moves, perturbed
from leafwise.search.problem import Problem, Step
from leafwise.search.run import Run, check_numbers, check_operators, now_and_then
from leafwise.structure_priors import n_ordered
from leafwise.workers import Workers

Progress = Callable[[Any], None]

_MOST_MOVES = 5


@dataclass(frozen=True)
class LeafSearchRestarts:
    """Settings: how many rounds follow greedy search, for how long, and how many networks to keep.

    `greedy` sets the operators, the threads, and the schedule that comes first; both are used. A higher score is not
    always a better model. Under `kappa:x`, which charges for parameters but not for tests, many rounds on few cases
    find graphs with many tests and few leaves, which predict new cases less well (`python -m benchmarks restarts`); the
    default structure prior charges for every test.

    >>> LeafSearchRestarts(LeafSearch(operators="BM"), rounds=50).keep
    1
    """

    greedy: LeafSearch = LeafSearch()
    rounds: int = 100
    seed: int = 1
    keep: int = 1  # number of best distinct networks to keep
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_numbers(self, rounds=0, seed=0, keep=1, seconds=0)
        check_operators(self.greedy.letters, "search with restarts")
        for name in ("max_steps", "seconds"):
            value = getattr(self.greedy, name)
            if value is not None:
                raise ValueError(
                    f"{name} is {value} for the greedy searches inside, and each of these runs to its end: "
                    f"limit rounds, or seconds in all"
                )

    @property
    def threads(self) -> int | None:
        return self.greedy.threads

    def begin(
        self, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> "LeafSearchRestartsRun":
        """Begin a search with these settings, or resume one from its state."""
        return LeafSearchRestartsRun(problem, counter, self, workers, state)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A node's graph was perturbed, and searched from there."""

    target: int
    gain: float  # 0: nothing better was found, and the graph is unchanged


class LeafSearchRestartsRun(Run):
    """A search in progress. Iterate over its rounds, or call `run`; `network` is the best network so far, at any time.

    The two greedy searches run before the first round. `n_rounds` counts rounds, `n_steps` those that found something
    better. `stopped` says why there are no more rounds: "rounds", "seconds"; "" while there may be more.
    """

    def __init__(
        self,
        problem: Problem,
        counter: Counter,
        settings: LeafSearchRestarts,
        workers: Workers,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(problem, counter, 0.0 if state is None else state["seconds"])
        self.settings, self._workers = settings, workers
        self._n_states = [variable.n_states for variable in problem.variables]
        self._n_ordered = [n_ordered(variable) for variable in problem.variables]
        self._random = np.random.default_rng(settings.seed)
        self._schedules = [settings.greedy.schedule]
        if "M" in settings.greedy.letters:  # without merges, both are the same
            self._schedules += [schedule for schedule in SCHEDULES if schedule not in self._schedules]
        self._turns: list[int] = []
        self._tried: dict[int, set[int]] = {target: set() for target in problem.targets}
        self._kept = BestNetworks(settings.keep)
        self._nodes: Nodes = ()
        self._scores: dict[int, float] = {}
        self.n_rounds = self.n_steps = 0
        self._to_begin = list(self._schedules)
        self._inner: LeafSearchRun | None = None  # of the round in progress, and
        self._before: dict[str, Any] = {}  # ... the state before it
        self._inner_state: Mapping[str, Any] | None = None  # from which the search of the next round is resumed
        self._at_limit: dict[str, Any] | None = None  # the state to resume from, if time ran out within a search
        with self._clock:
            if state is not None:
                self._go_on_from(state)
            else:
                self._greedy = self._search(problem, self._to_begin[0])  # so that there is a network from the start
                self._adopt_all(self._greedy)

    def __iter__(self) -> Iterator[Step[Perturbation]]:
        return self

    def __next__(self) -> Step[Perturbation]:
        done = self._advance(self.watch)
        if done is None:
            raise StopIteration
        return Step(done, self.log_score, self.n_leaves, self.n_arcs)

    def run(self, progress: Progress | None = None) -> None:
        """Run all remaining rounds; `progress` is called about twenty times a second, first with the greedy search."""
        tell = now_and_then(progress)
        while self._advance(tell) is not None:
            tell(self)
        if progress is not None:
            progress(self)

    @property
    def n_leaves(self) -> int:
        return _sizes(self._nodes)["leaves"]

    @property
    def n_arcs(self) -> int:
        return _sizes(self._nodes)["arcs"]

    @property
    def n_parameters(self) -> int:
        return _sizes(self._nodes)["parameters"]

    @property
    def log_score(self) -> float:
        return math.fsum(self._scores.values())

    @property
    def log_marginal_likelihood(self) -> float:
        return self.log_score - self._problem.log_prior_of(self._nodes)

    @property
    def network(self) -> Network:
        """The best network so far."""
        return self._network(self._nodes, self.log_score)

    @property
    def networks(self) -> list[tuple[Network, float, float]]:
        """The best distinct networks, the best first, each with log score and posterior probability among them."""
        posteriors = self._kept.relative_posteriors()
        return [
            (self._network(nodes, log_score), log_score, posterior)
            for (nodes, log_score), posterior in zip(self._kept.found, posteriors, strict=True)
        ]

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, also within a round, as plain values."""
        if self._at_limit is not None:
            return {**self._at_limit, "seconds": self.seconds}
        tried = {target: set(trials) for target, trials in self._tried.items()}
        now: dict[str, Any] = {"n_rounds": self.n_rounds, "turns": self._turns, "random": self._drawn()}
        if self._inner is not None:
            now = {name: self._before[name] for name in now}
            tried[self._before["target"]].discard(self._before["trial"])
        return {
            **now,
            "n_steps": self.n_steps,
            "tried": [sorted(tried[target]) for target in self._problem.targets],
            "nodes": plain_nodes(self._nodes),
            "scores": [self._scores[target] for target in self._problem.targets],
            "kept": self._kept.state(),
            "to_begin": self._to_begin,
            "greedy": {**self._greedy.state(), "seconds": 0.0} if self._to_begin else None,  # counted here
            "inner": None if self._inner is None else {**self._inner.state(), "seconds": 0.0},
            "seconds": self.seconds,
        }

    def _go_on_from(self, state: Mapping[str, Any]) -> None:
        targets = self._problem.targets
        self.n_rounds, self.n_steps = state["n_rounds"], state["n_steps"]
        self._random.bit_generator.state, self._turns = state["random"], list(state["turns"])
        self._tried = {target: set(trials) for target, trials in zip(targets, state["tried"], strict=True)}
        self._scores = dict(zip(targets, state["scores"], strict=True))
        self._kept.go_on_from(state["kept"])
        self._take(nodes_of(state["nodes"]))
        self._to_begin, self._inner_state = list(state["to_begin"]), state["inner"]
        if self._to_begin:
            self._greedy = self._search(self._problem, self._to_begin[0], state["greedy"])

    def _drawn(self) -> dict[str, Any]:
        """The state of the random generator."""
        return dict(self._random.bit_generator.state)

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return self._told(self._nodes, self.log_score)

    def _network(self, nodes: Nodes, log_score: float) -> Network:
        return self._problem.network(nodes, self._told(nodes, log_score))

    def _told(self, nodes: Nodes, log_score: float) -> dict[str, Any]:
        """The summary for a network that was found, not necessarily the best."""
        operators, seed = self.settings.greedy.letters, self.settings.seed
        how = {"search": "restarts", "operators": operators, "seed": seed, **self._problem.counted}
        n_tests = sum(node.graph.n_tests for node in nodes if node is not None)
        return self._summary(how, n_tests, self.n_steps, {"rounds": self.n_rounds}) | {
            "log_score": log_score,
            "log_marginal_likelihood": log_score - self._problem.log_prior_of(nodes),
            **_sizes(nodes),
        }

    def _advance(self, tell: Progress) -> Perturbation | None:
        """Run one round, after the greedy searches; None if there are no more, and `stopped` then says why."""
        with self._clock:
            while self._to_begin and not self.stopped:
                self._begin(tell)
            taken_up = self._inner_state is not None  # a resumed round is completed first
            if not taken_up and self._is_over(self.settings.seconds, "rounds", self.n_rounds, self.settings.rounds):
                return None
            return self._round(tell)

    def _begin(self, tell: Progress) -> None:
        """Run the next greedy search of all nodes."""
        try:
            self._greedy.run(tell)
        finally:  # also after an interrupt
            self._note_limit(self._greedy)
            self._adopt_all(self._greedy)
        if self._greedy.stopped == "seconds":
            self.stopped = "seconds"
            return
        self._greedy.close()
        self._to_begin.pop(0)
        if self._to_begin:
            self._greedy = self._search(self._problem, self._to_begin[0])

    def _round(self, tell: Progress) -> Perturbation:
        """Perturb the graph of one node, and search from there."""
        self._before = {"n_rounds": self.n_rounds, "turns": list(self._turns), "random": self._drawn()}
        if not self._turns:
            self._turns = self._random.permutation(self._problem.targets).tolist()
        schedule = self._schedules[self.n_rounds // len(self._problem.targets) % len(self._schedules)]
        target = self._turns.pop()
        self.n_rounds += 1
        problem = self._problem_of(target)
        allowed = int.from_bytes(problem.parents.allowed[target].tobytes(), "little")
        trial = hash((SCHEDULES.index(schedule), problem.start[target], allowed))  # of numbers: equal in all processes
        if trial in self._tried[target]:
            return Perturbation(target, 0.0)
        self._tried[target].add(trial)
        self._before |= {"target": target, "trial": trial}
        self._inner = search = self._search(problem, schedule, self._inner_state)
        self._inner_state = None
        try:
            search.run(lambda _: tell(self))
            self._note_limit(search)
            self._inner = None
            return Perturbation(target, self._adopt(target, search))
        finally:
            self._inner = None
            search.close()

    def _note_limit(self, search: LeafSearchRun) -> None:
        """If a search ran out of time, keep the state before its result is taken: a resumed run completes it."""
        if search.stopped == "seconds":
            self._at_limit = self.state()

    def _problem_of(self, target: int) -> Problem:
        """The problem of searching one node from a perturbed graph, with all other nodes fixed."""
        rules, node = self._problem.parents, self._nodes[target]
        assert node is not None
        allowed, is_parent = np.zeros_like(rules.allowed), np.zeros_like(rules.is_parent)
        allowed[target] = rules.allowed[target] & ~self._ancestors[:, target]
        graph = self._perturb(node, np.flatnonzero(allowed[target]))
        is_parent[target, list(node.parents)] = rules.fixed[target, list(node.parents)]
        is_parent[target, list(graph.tested)] = 1
        own = rules._replace(allowed=allowed, is_parent=is_parent)
        return replace(self._problem, targets=(target,), parents=own, start={target: graph})

    def _perturb(self, node: Node, candidates: NDArray[np.int64]) -> DecisionGraph:
        """The node's graph, perturbed; it tests no more variables than the node may have parents."""
        rules, random = self._problem.parents, self._random
        new = [v for v in random.permutation(candidates).tolist() if v not in node.parents]
        variables = [*node.parents, *new[: rules.most_parents - len(node.parents)]]
        moves = Moves(self.settings.greedy.letters, self._n_states, variables, rules.most_leaves, self._n_ordered)
        return perturbed(node.graph, 1 + int(random.integers(_MOST_MOVES)), moves, random)

    def _search(self, problem: Problem, schedule: str, state: Mapping[str, Any] | None = None) -> LeafSearchRun:
        left = None if self.settings.seconds is None else max(0.0, self.settings.seconds - self.seconds)
        settings = replace(self.settings.greedy, schedule=schedule, seconds=left)
        return LeafSearchRun(problem, self._counter, settings, self._workers, state)

    def _adopt_all(self, search: LeafSearchRun) -> None:
        """Take the network of a search of all nodes, if it is better."""
        nodes = search.network.nodes
        scores = {target: self._score(target, nodes[target]) for target in self._problem.targets}
        log_score = math.fsum(scores.values())
        self._kept.offer(nodes, log_score, log_score - self._problem.log_prior_of(nodes))
        if not self._nodes or math.fsum(scores.values()) > self.log_score + TIE:
            self._scores = scores
            self._take(nodes)

    def _adopt(self, target: int, search: LeafSearchRun) -> float:
        """Take the node that a search found, if it is better; its network is offered to the best ones anyway."""
        about = self.log_score - self._scores[target] + search.log_score
        if search.log_score < self._scores[target] and not self._kept.wants(about):
            return 0.0
        found = search.node(target)
        graph, fixed = found.graph.simplified(), self._problem.parents.fixed[target]
        parents = tuple(p for p in found.parents if p in graph.tested or fixed[p])
        node = replace(found, parents=parents, graph=graph)
        nodes = (*self._nodes[:target], node, *self._nodes[target + 1 :])
        scores = {**self._scores, target: self._score(target, node)}
        gain = scores[target] - self._scores[target]
        log_score = math.fsum(scores.values())
        self._kept.offer(nodes, log_score, log_score - self._problem.log_prior_of(nodes))
        if gain <= TIE:
            return 0.0
        self._scores = scores
        self._take(nodes)
        self._tried[target].clear()
        self.n_steps += 1
        return gain

    def _take(self, nodes: Nodes) -> None:
        self._nodes = nodes
        given = [tuple(np.flatnonzero(row).tolist()) for row in self._problem.parents.is_parent]
        rows = [given[k] if node is None else node.parents for k, node in enumerate(nodes)]
        self._ancestors = dag.ancestor_matrix(rows)

    def _score(self, target: int, node: Node | None) -> float:
        assert node is not None
        assert node.counts is not None
        assert node.exponents is not None
        return node_score(node.counts, node.exponents, self._problem.log_prior(target, node.graph)).log_score


def _sizes(nodes: Nodes) -> dict[str, int]:
    there = [node for node in nodes if node is not None]
    return {
        "leaves": sum(node.graph.n_leaves for node in there),
        "parameters": sum(node.n_parameters for node in there),
        "arcs": sum(len(node.parents) for node in there),
    }
