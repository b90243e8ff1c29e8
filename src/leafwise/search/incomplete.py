"""Learning from incomplete cases: structural EM (Friedman 1998) with sampled completions.

Each round samples completions of every case from the current network, given its observed cells, and searches on all of
them, each with the weight of a fraction of a case. The graph of a variable is learned from the cases in which it is
observed, since values sampled for it only reflect the current network. The parameters of the network found are then
fitted by EM, with expected counts over all cases. Cells are assumed to be missing at random: whether a cell is missing
may depend on the observed cells of its case, but not on its own value.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import Counter
from leafwise.data.table import count_states
from leafwise.formats import json
from leafwise.inference.completion import Completions
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.network import Network
from leafwise.own_expansion import TooManyCombinations
from leafwise.scores import score_as_learned, score_with
from leafwise.search.problem import Problem
from leafwise.search.run import Resumable, Settings, silence
from leafwise.structure_priors import Kappa
from leafwise.tied_leaves import Rows, first_exponents, later_rows, pooled, with_rows, without_ties_of
from leafwise.workers import Workers

Codes = NDArray[Any]
Floats = NDArray[np.float64]
Progress = Callable[[Any], None]

MOST_ROUNDS = 60
_LEAST_PATIENCE, _MOST_PATIENCE = 3, 10  # limits of the patience: rounds in a row that do not raise the score by
_RISE = 1e-4  # of itself
_PATIENT = 30_000  # divided by the number of cases, this is the patience: with few cases, scores vary more by chance
_EM_ROUNDS = 2  # for the parameters, after each search,
_LAST_EM_ROUNDS = 50  # and at most of the best network at the end
_ENOUGH = 1e-5  # nats per case: EM that gains less has converged


@dataclass(frozen=True)
class Incomplete:
    """Cases with missing cells, and how to complete them."""

    codes: Codes  # a number that is no state stands for a missing cell
    first: Network  # the first completions are sampled from it
    n_draws: int  # completions of each case in later rounds
    seed: int


@dataclass(frozen=True, slots=True)
class CompletedRound:
    """One round: the best score after it and its gain, and the size of the network that it found."""

    target: None
    gain: float
    log_score: float
    n_leaves: int
    n_arcs: int


@dataclass(frozen=True)
class Fitted:
    """A network whose parameters come from expected counts, and its score.

    The score is the Cheeseman–Stutz approximation (1996): the marginal likelihood of the expected counts, times the
    likelihood of the observed cells over that of the expected counts, under the same parameters. Without missing cells,
    it is the exact marginal likelihood. It is NaN if some cases are too large for their likelihood to be computed.
    """

    network: Network
    log_likelihood: float  # of the observed cells, under the parameters before the last iteration of EM
    log_marginal_likelihood: float
    log_posterior: float  # of these parameters, up to a constant: EM increases it
    log_completed: float  # the log marginal likelihood of the expected counts alone, always available


def expectation_maximization(network: Network, completions: Completions, n_rounds: int) -> Iterator[Fitted]:
    """Fit the parameters of a network by EM; yields the result of each iteration.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> from leafwise.learner import learn
    >>> codes = sample(alarm(), 200, seed=1).codes.copy()
    >>> codes[5:9, :100] = 9
    >>> network = learn(sample(alarm(), 200, seed=2))
    >>> rounds = list(expectation_maximization(network, Completions(network.variables, codes, seed=1), 3))
    >>> rounds[0].log_posterior < rounds[1].log_posterior < rounds[2].log_posterior
    True
    """
    for _ in range(n_rounds):
        counts, log_likelihood = completions.expected_counts(network)
        log_evidence, log_posterior, log_of_counts = 0.0, log_likelihood, 0.0
        rows: dict[int, Rows] = {}
        for target, (node, found) in enumerate(zip(network.nodes, counts, strict=True)):
            holder = None if node is None else node.own or node
            if node is not None and holder is not None and found is not None and holder.exponents is not None:
                rows[target] = (found if node.own is None else node.own.folded(found)), holder.exponents
        for target, (found, exponents) in pooled(network.ties, rows, first_exponents).items():
            log_evidence += score_with(network, target, found, exponents, Kappa()).log_score
            logs = _log_parameters(network, target)
            log_posterior += float((exponents * logs).sum())
            log_of_counts += float((found * logs).sum())
        network = with_rows(network, rows, first_exponents)
        log_marginal_likelihood = log_evidence + log_likelihood - log_of_counts
        yield Fitted(network, log_likelihood, log_marginal_likelihood, log_posterior, log_evidence)


def _log_parameters(network: Network, target: int) -> Floats:
    """The log probabilities of a node; 0 for states that cannot occur, and in rows tied to one that counts instead."""
    node = network.nodes[target]
    assert node is not None
    logs = np.log(node.probabilities) if node.own is None else np.zeros(node.own.probabilities.shape)
    if node.own is not None:
        np.log(node.own.probabilities, out=logs, where=node.own.reached)
    logs[later_rows(network, target)] = 0.0
    return logs


def weight_of_shown(problem: Problem, shown: NDArray[np.bool_], n_draws: int) -> float:
    """The weight of the cases in which a target is observed, if its candidates are observed in a share s of all cases.

    A parent that the current network lacks is sampled independently of the target, so its gain appears s times as large
    as where both are observed; a weight of 1/s would compensate for that. But the gain that an irrelevant parent has by
    chance is s + (1 - s) / n_draws times that of complete cases, so 1/s is too much with few draws. The weight is the
    geometric mean of both corrections. Use it only if an exact score can reject networks that were found by chance.

    >>> from leafwise.examples import alarm
    >>> from leafwise.learner import start_search
    >>> from leafwise.inference.sampling import sample
    >>> problem = start_search(sample(alarm(), 10, seed=1))._problem
    >>> shown = np.arange(370).reshape(37, 10) % 10 > 1
    >>> [round(weight_of_shown(problem, shown, n), 3) for n in (1, 5)]
    [1.118, 1.22]
    """
    n_graphs = problem.parents.allowed[list(problem.targets)].sum(axis=0, dtype=np.int64)
    n_graphs[[variable.hidden for variable in problem.variables]] = 0  # sampled in all cases
    share = float(n_graphs @ shown.mean(axis=1) / n_graphs.sum()) if n_graphs.any() else 1.0
    return 1 / math.sqrt(share * (share + (1 - share) / n_draws)) if share > 0 else 1.0


class IncompleteSearch:
    """A search in progress. Iterate over its rounds, or call `run`; `network` is the best network so far, at any time.

    At first every case is completed once, since randomness helps to find a structure. When three (with many cases) to
    ten (with few) rounds in a row have not raised the score by a ten-thousandth, every case is completed several times,
    until three rounds in a row have not. If some cases are too large for their likelihood to be computed, scores cannot
    be compared, and the latest network is kept. `stopped` says why there are no more rounds: "no round gains",
    "rounds", "seconds"; "" while there may be more.

    With `of_targets`, the network of this search serves only to complete the cases, and that of `of_targets` is learned
    at the end.
    """

    def __init__(
        self,
        problem: Problem,
        incomplete: Incomplete,
        count: Callable[[Codes, float, NDArray[np.bool_]], Counter],
        settings: Settings,
        workers: Workers,
        of_targets: Problem | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.seconds, self._since = 0.0, time.perf_counter()
        self._of_targets = of_targets
        self.settings, self._problem, self._count, self._workers = settings, problem, count, workers
        self._incomplete, self._present = incomplete, incomplete.first
        self._shown = incomplete.codes < count_states(problem.variables)[:, None]
        self._completions = Completions(problem.variables, incomplete.codes, incomplete.seed, settings.threads)
        self._search: Resumable | None = None  # of the round in progress, and
        self._before = self._completions.mark()  # ... the state of sampling before it
        self._search_state: Mapping[str, Any] | None = None  # from which the search of the next round is resumed
        self._best: Network | None = None
        self._is_exact = False  # whether the best network's score is exact
        self._parts = True  # whether partial splits are used, if the settings have them
        self._n_draws = 1
        cases = incomplete.codes.shape[1]
        self._patience = min(max(_PATIENT // cases, _LEAST_PATIENCE), _MOST_PATIENCE)
        self.n_rounds = self._n_vain = 0
        self.log_score = -math.inf
        self._ended = ""  # why there are no more rounds; "" while there may be more
        self.stopped = ""
        self.watch: Progress = silence
        if state is not None:
            self._go_on_from(state)
        self.seconds = self._used()

    def __iter__(self) -> Iterator[CompletedRound]:
        return self

    def __next__(self) -> CompletedRound:
        done = self._advance(self.watch)
        if done is None:
            raise StopIteration
        return done

    def run(self, progress: Progress | None = None) -> None:
        """Run all remaining rounds; `progress` is called during their searches, and after each."""
        tell = silence if progress is None else lambda _search: progress(self)
        while self._advance(tell) is not None:
            tell(self)

    @property
    def n_steps(self) -> int:
        return self.n_rounds

    @property
    def n_leaves(self) -> int:
        return self.network.n_leaves if self._search is None else self._search.n_leaves

    @property
    def n_arcs(self) -> int:
        return len(self.network.arcs) if self._search is None else self._search.n_arcs

    @property
    def network(self) -> Network:
        """The best network so far."""
        found = self._incomplete.first if self._best is None else self._best
        if self._best is None and self._search is not None:  # interrupted in the first round: fit now
            found, log_score = self._search.network, self._search.log_score
            if _can_complete(found):
                fitted = next(expectation_maximization(found, self._completions, 1))
                found, log_score = fitted.network, self._score_of(fitted)[0]
            found = self._labelled(found, self._search.summary(), log_score)
        found = self._of_target(found)
        return replace(found, learned={**found.learned, "rounds": self.n_rounds, "stopped": self.stopped})

    def _of_target(self, found: Network) -> Network:
        """With `of_targets`, the network of its target alone, with sizes and score; otherwise the network itself."""
        (target,) = (None,) if self._of_targets is None else self._of_targets.targets
        others = [k for k, node in enumerate(found.nodes) if k != target and node is not None]
        if target is None or not others:
            return found
        nodes = tuple(node if k == target else None for k, node in enumerate(found.nodes))
        alone = replace(found, nodes=nodes, ties=without_ties_of(found, others))
        told: dict[str, Any] = {"target": alone.names[target], "arcs": len(alone.arcs), "tests": alone.n_tests}
        told |= {"leaves": alone.n_leaves, "parameters": alone.n_parameters}
        score = score_as_learned(alone, target, self._problem.structure_prior)
        if score is not None:
            told |= {"log_score": score.log_score, "log_marginal_likelihood": score.log_marginal_likelihood}
        return replace(alone, learned={**found.learned, **told})

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return dict(self.network.learned)

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, also within a round, as plain values."""
        present, best = self._present, self._best
        return {
            "n_rounds": self.n_rounds,
            "n_vain": self._n_vain,
            "patience": self._patience,
            "n_draws": self._n_draws,
            "present": None if present is self._incomplete.first else json.dumps(present),
            "best": None if best is None else json.dumps(best),
            "log_score": None if self._best is None else self.log_score,
            "is_exact": self._is_exact,
            "parts": self._parts,
            "completions": self._completions.state(self._before),
            "search": None if self._search is None else {**self._search.state(), "seconds": 0.0},  # counted here
            "ended": self._ended,
            "stopped": self.stopped if self._ended else "",
            "seconds": self._used(),
        }

    def _go_on_from(self, state: Mapping[str, Any]) -> None:
        self.n_rounds, self._n_vain, self._patience = state["n_rounds"], state["n_vain"], state["patience"]
        self._n_draws = state["n_draws"]
        if state["present"] is not None:
            self._present = json.loads(state["present"])
        if state["best"] is not None:
            self._best, self.log_score = json.loads(state["best"]), state["log_score"]
        self._is_exact, self._search_state = state["is_exact"], state["search"]
        self._parts = state.get("parts", True)
        self._completions.go_on_from(state["completions"])
        self._before = self._completions.mark()
        self._ended, self.stopped, self.seconds = state["ended"], state["stopped"], state["seconds"]

    def _advance(self, tell: Progress) -> CompletedRound | None:
        """Run one round; None if there are no more, and `stopped` then says why."""
        self._since = time.perf_counter()
        try:
            left = None if self.settings.seconds is None else self.settings.seconds - self._used()
            if not self.stopped and left is not None and left <= 0 and self._best is not None:
                self.stopped = "seconds"
            if self.stopped:
                return None
            done = None if self._ended else self._round(tell, None if left is None else max(0.0, left))
            if self._n_vain >= self._patience and self._n_draws < self._incomplete.n_draws:
                self._n_draws, self._n_vain, self._patience = self._incomplete.n_draws, 0, _LEAST_PATIENCE
                self._present = self._best or self._present
            elif self._n_vain >= self._patience or self.n_rounds >= MOST_ROUNDS:
                self._end(tell)
            return done
        finally:
            self.seconds = self._used()

    def _used(self) -> float:
        """All seconds so far, including those of the current call."""
        return self.seconds + time.perf_counter() - self._since

    def _round(self, tell: Progress, seconds: float | None) -> CompletedRound:
        """Complete all cases, search, and fit the parameters of the network found."""
        began = time.perf_counter()
        search = self._search_completed(self._problem, tell, seconds)
        found = search.network
        if not _can_complete(found):
            self._parts, self._search = False, None
            left = None if seconds is None else max(0.0, seconds - (time.perf_counter() - began))
            search = self._search_completed(self._problem, tell, left)
            found = search.network
        for fitted in expectation_maximization(found, self._completions, _EM_ROUNDS):
            if math.isnan(fitted.log_likelihood):  # sampling errors outweigh another iteration
                break
        before = self.log_score
        self._offer(fitted, search)
        self._present, self._search, self._before = fitted.network, None, self._completions.mark()
        self.n_rounds += 1
        gain = self.log_score - before if before > -math.inf else 0.0
        return CompletedRound(None, gain, self.log_score, fitted.network.n_leaves, len(fitted.network.arcs))

    def _search_completed(self, problem: Problem, tell: Progress, seconds: float | None) -> Resumable:
        if self._search is None:  # otherwise it was interrupted, and continues
            self._before = self._completions.mark()
            completed = self._completions.draw(self._present, self._n_draws)
            settings: Any = self.settings  # all of them have `seconds`
            weight = weight_of_shown(problem, self._shown, self._n_draws) if self._is_exact else 1.0
            weight = weight if problem is self._problem else 1.0  # the network of targets is not refitted
            counter = self._count(completed, weight / self._n_draws, np.tile(self._shown, self._n_draws))
            settings = replace(settings, seconds=seconds)
            if not self._parts:
                settings = replace(settings, operators=settings.operators.replace("O", ""))
            self._search = settings.begin(problem, counter, self._workers, self._search_state)
            self._search_state = None
        self._search.run(tell)
        return self._search

    def _offer(self, fitted: Fitted, search: Resumable) -> None:
        """Keep the network of a round if it is better, or if the best so far has no exact score."""
        log_score, is_exact = self._score_of(fitted)
        gain = log_score - self.log_score if is_exact and self._is_exact else math.inf if is_exact else 0.0
        self._n_vain = 0 if gain > _RISE * abs(self.log_score) else self._n_vain + 1
        if gain > TIE or not self._is_exact:
            self._is_exact, self.log_score = is_exact, log_score
            self._best = self._labelled(fitted.network, search.summary(), self.log_score)

    def _score_of(self, fitted: Fitted) -> tuple[float, bool]:
        """The score of a network, and whether it is exact; otherwise it is that of the expected counts alone."""
        log_prior = self._log_prior(fitted.network)
        log_score = fitted.log_marginal_likelihood + log_prior
        is_exact = math.isfinite(log_score)
        return (log_score if is_exact else fitted.log_completed + log_prior), is_exact

    def _end(self, tell: Progress) -> None:
        """After the last round: fit the best network, and learn that of targets, if any."""
        if not self._ended:
            self._fit_best()
            self._ended = "no round gains" if self._n_vain >= self._patience else "rounds"
        self._learn_targets(tell)
        self.stopped = self._ended

    def _fit_best(self) -> None:
        """Fit the parameters of the best network by EM, until it converges."""
        assert self._best is not None
        last, n_cases = -math.inf, self._incomplete.codes.shape[1]
        for fitted in expectation_maximization(self._best, self._completions, _LAST_EM_ROUNDS):
            self._best = fitted.network
            if not fitted.log_posterior - last > _ENOUGH * n_cases:
                break
            last = fitted.log_posterior
        if self._is_exact:
            self.log_score = fitted.log_marginal_likelihood + self._log_prior(self._best)
            self._best = self._labelled(self._best, dict(self._best.learned), self.log_score)

    def _learn_targets(self, tell: Progress) -> None:
        """With `of_targets`, learn its network from completions sampled from the best network."""
        if self._of_targets is not None:
            self._present = self._best or self._present
            search = self._search_completed(self._of_targets, tell, None)
            self.log_score, self._search, self._before = search.log_score, None, self._completions.mark()
            self._best = self._labelled(search.network, search.summary(), self.log_score)

    def _labelled(self, network: Network, summary: dict[str, Any], log_score: float) -> Network:
        """The network with a summary of how it was learned."""
        hidden = [variable.name for variable in network.variables if variable.hidden]
        learned = {
            **summary,
            "cases": self._incomplete.codes.shape[1],
            "missing": self._completions.n_missing - len(hidden) * self._incomplete.codes.shape[1],
            **({"hidden": hidden} if hidden else {}),
            "completions": self._incomplete.n_draws,
            "seed": self._incomplete.seed,
            "log_score": log_score,
            "log_marginal_likelihood": log_score - self._log_prior(network),
            "rounds": self.n_rounds,
            "stopped": self.stopped,
        }
        return replace(network, learned=learned)

    def _log_prior(self, network: Network) -> float:
        return self._problem.log_prior_of_network(network)


def _can_complete(network: Network) -> bool:
    """Whether a network can complete cases: with own-value tests, expanded graphs may be too large for that."""
    try:
        return all(node is None or node.graph is not None for node in network.nodes)
    except TooManyCombinations:
        return False
