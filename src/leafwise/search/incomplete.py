"""Learning from incomplete cases: structural EM (Friedman 1998), with completions that are drawn.

Each round completes every case several times, by draws from the present network given what the case shows, and
searches on all completions, each of which counts as a share of a case. The network found gets its parameters by
expected counts, as EM would have them. Cells are taken to be missing at random: that a cell is missing may depend on
what the case shows, but not on what the cell would have shown.
"""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import Counter
from leafwise.inference.completion import Completions
from leafwise.network import Network, Node
from leafwise.scores import node_score
from leafwise.search.greedy import Problem
from leafwise.search.under_way import Settings, UnderWay
from leafwise.workers import Workers

Codes = NDArray[Any]
Floats = NDArray[np.float64]
Progress = Callable[[Any], None]

MOST_ROUNDS = 20
PATIENCE = 3  # rounds in a row without a higher score
_EM_ROUNDS = 5  # for the parameters, after each search,
_LAST_EM_ROUNDS = 50  # and of the best network
_ENOUGH = 1e-5  # nats a case: EM that gains less is at its end


@dataclass(frozen=True)
class Incomplete:
    """What is to be completed, and how."""

    codes: Codes  # a hole is a number that is no state
    start: Network  # from which the first completions are drawn
    n_draws: int
    seed: int


@dataclass(frozen=True, slots=True)
class CompletedRound:
    """One round, and the network's size and score after it."""

    target: None
    gain: float
    log_score: float
    n_leaves: int
    n_arcs: int


@dataclass(frozen=True)
class Fitted:
    """A network whose parameters come from expected counts, and its score.

    The score is that of Cheeseman and Stutz (1996): the marginal likelihood of the expected counts as if they had been
    observed, times the likelihood of what is shown over that of the expected counts, under the best parameters. With
    no holes it is the ordinary one. NaN where some cases were too large for their likelihood.
    """

    network: Network
    log_likelihood: float  # of what is shown, under the parameters before the last step
    log_marginal_likelihood: float
    log_posterior: float  # of these parameters: what EM makes rise


def expectation_maximization(network: Network, completions: Completions, n_rounds: int) -> Iterator[Fitted]:
    """The network after each round of EM for its parameters.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> from leafwise.learner import learn
    >>> codes = sample(alarm(), 200, seed=1).codes.copy()
    >>> codes[5:9, :100] = 9
    >>> network = learn(sample(alarm(), 200, seed=2))
    >>> rounds = list(expectation_maximization(network, Completions(network.variables, codes, 1, seed=1), 3))
    >>> rounds[0].log_posterior < rounds[1].log_posterior < rounds[2].log_posterior
    True
    """
    for _ in range(n_rounds):
        counts, log_likelihood = completions.expected_counts(network)
        log_evidence, log_posterior, log_of_counts = 0.0, log_likelihood, 0.0
        nodes: list[Node | None] = []
        for node, found in zip(network.nodes, counts, strict=True):
            if node is None or found is None or node.exponents is None:
                nodes.append(node)
                continue
            logs = np.log(node.probabilities)
            log_evidence += node_score(found, node.exponents, 0.0).log_score
            log_posterior += float((node.exponents * logs).sum())
            log_of_counts += float((found * logs).sum())
            nodes.append(Node.learned(node.parents, node.graph, found, node.exponents))
        network = replace(network, nodes=tuple(nodes))
        yield Fitted(network, log_likelihood, log_evidence + log_likelihood - log_of_counts, log_posterior)


class IncompleteSearch:
    """A search under way. Iterate for its rounds, or `run` it; `network` is the best so far, at any time.

    `stopped` says why there are no more rounds: "no round gains" after three rounds in a row without a higher score,
    "rounds" after twenty, or "seconds"; "" while there may be.
    """

    def __init__(
        self,
        problem: Problem,
        incomplete: Incomplete,
        count: Callable[[Codes, float], Counter],
        settings: Settings,
        workers: Workers,
    ) -> None:
        self.settings, self._problem, self._count, self._workers = settings, problem, count, workers
        self.seed = incomplete.seed
        self.completions = Completions(
            problem.variables, incomplete.codes, incomplete.n_draws, incomplete.seed, settings.threads
        )
        self.seconds, self._since = 0.0, time.perf_counter()
        self.n_rounds = self._n_vain = 0
        self.stopped = ""
        self._present = incomplete.start
        self._search: UnderWay | None = None
        self._best: Fitted | None = None
        self._best_summary: dict[str, Any] = {}
        self.log_score = -math.inf
