"""Search for the arcs that generated the data: arcs first, with complete tables, then decision graphs along them.

Decision graphs describe dependence with few parameters, but a search over leaves cannot reverse an arc, and compensates
for a wrong direction with more arcs. So arcs are searched for with complete tables, over Markov-equivalent DAGs as well
(BDeu), with a charge on each arc for the choice of the parent among all variables. This is done twice: from the initial
arcs, and from the arcs found on a sixteenth of the cases, an eighth, and so on, which escapes many local optima. Then
decision graphs are learned that may test the parents in the better result.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from leafwise.constraints import NO_LIMIT
from leafwise.counters.counter import Counter
from leafwise.network import Network
from leafwise.priors import Bdeu
from leafwise.search.leaf_search import LeafSearch, LeafSearchRun
from leafwise.search.problem import Problem, Step
from leafwise.search.run import check_inner, silence
from leafwise.search.table_arc_search import TableArcSearch, TableArcSearchRun
from leafwise.structure_priors import Arcs
from leafwise.workers import Workers

if TYPE_CHECKING:
    from leafwise.search.sharing import SharingRun

Matrix = NDArray[np.uint8]

EVERY = (1, 16, 8, 4, 2, 1)  # by stage: one of how many cases is used; each begins with the arcs of the one before
_AFRESH = (0, 1)  # except in these stages, which begin with the initial arcs
_WORTH = Bdeu(2.0)  # the equivalent sample size that other priors have in one leaf


@dataclass(frozen=True)
class RecoverySearch:
    """Settings: limits of the search over arcs, and `greedy`, the settings of the search for the graphs.

    The priors that `learn` gets are those of the graphs. Arcs are scored with BDeu, with an equivalent sample size of
    two, and each is charged log(n - 1) among n variables. Parents that a graph does not test are dropped, unless
    required.

    >>> RecoverySearch(LeafSearch(operators="BM"), seconds=60).max_steps is None
    True
    """

    greedy: LeafSearch = LeafSearch()
    max_steps: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_inner(self)

    @property
    def threads(self) -> int | None:
        return self.greedy.threads

    def begin(
        self, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> "RecoverySearchRun":
        """Begin a search with these settings, or resume one from its state."""
        return RecoverySearchRun(problem, counter, self, workers, state)


class RecoverySearchRun:
    """A search in progress. Iterate over its steps, or call `run`; after any step, `network` is the current network.

    Steps change arcs first, then leaves. During the search over arcs, leaves and score are those of complete tables,
    and `network` learns the graphs along the best arcs so far. `stopped` says why there are no more steps: "no operator
    gains"; "max_steps" or "seconds", if that ended the search over arcs; "" while there may be more.
    """

    def __init__(
        self,
        problem: Problem,
        counter: Counter,
        settings: RecoverySearch,
        workers: Workers,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        _ = problem.structure_prior.costs  # one that is not for graphs is refused before any work
        self.settings, self._problem, self._counter, self._workers = settings, problem, counter, workers
        self._stage, self._n_steps_before, self._seconds_before = 0, 0, 0.0
        self._best, self._best_score = problem.parents.is_parent, -math.inf
        self._arcs: TableArcSearchRun | None = None
        self._graphs: LeafSearchRun | SharingRun | None = None
        self.watch: Callable[[Any], None] = silence
        self.stopped = ""
        if state is not None:
            self._stage, self._best_score = state["stage"], float(state["best_score"])
            self._best = _matrix(state["best"], len(problem.variables))
            self._n_steps_before, self._seconds_before = state["n_steps_before"], state["seconds_before"]
        inner = None if state is None else state["inner"]
        if problem.parents.is_static or self._stage == len(EVERY):
            self._graphs = self._search_graphs(inner)
        else:
            self._arcs = self._search_arcs(problem.parents.is_parent, inner)

    def __iter__(self) -> Iterator[Step[Any]]:
        return self

    def __next__(self) -> Step[Any]:
        while not self.stopped:
            self._inner.watch = self.watch
            for step in self._inner:
                return step
            self._go_on()
        raise StopIteration

    def run(self, progress: Callable[["RecoverySearchRun"], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called about twenty times a second."""
        while not self.stopped:
            self._inner.run(None if progress is None else lambda _: progress(self))
            self._go_on()

    @property
    def _inner(self) -> "TableArcSearchRun | LeafSearchRun | SharingRun":
        """The inner search in progress."""
        inner = self._arcs if self._graphs is None else self._graphs
        assert inner is not None
        return inner

    @property
    def seconds(self) -> float:
        return self._seconds_before + self._inner.seconds

    @property
    def n_steps(self) -> int:
        return self._n_steps_before + self._inner.n_steps

    @property
    def n_leaves(self) -> int:
        return self._inner.n_leaves

    @property
    def n_arcs(self) -> int:
        return self._inner.n_arcs

    @property
    def log_score(self) -> float:
        return self._inner.log_score

    @property
    def network(self) -> Network:
        """The network of the best arcs so far, with decision graphs."""
        if self._graphs is not None:
            network = self._graphs.network
        else:
            search = self._search_graphs()
            search.run()
            network = search.network
            search.close()
        told = {"search": "recover", "steps": self.n_steps, "stopped": self.stopped}
        return replace(network, learned={**network.learned, **told})

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return dict(self.network.learned)

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values; within the search over arcs if limited."""
        inner, steps, seconds = self._arcs or self._inner, self._n_steps_before, self._seconds_before
        if inner is not self._inner:
            steps, seconds = steps - inner.n_steps, seconds - inner.seconds
        return {
            "stage": self._stage,
            "best": np.argwhere(self._best)[:, ::-1].tolist(),
            "best_score": str(self._best_score),
            "n_steps_before": steps,
            "seconds_before": seconds,
            "inner": inner.state(),
        }

    def _go_on(self) -> None:
        """Begin the next inner search, or set `stopped`."""
        ended = self._arcs
        if ended is None or self._graphs is not None:
            self.stopped = (ended or self._inner).stopped
            return
        is_limited = ended.stopped in ("max_steps", "seconds")
        self._best, self._best_score = self._best_arcs()
        self._n_steps_before += ended.n_steps
        self._seconds_before += ended.seconds
        if not is_limited:
            self._arcs, self._stage = None, self._stage + 1
        if is_limited or self._stage == len(EVERY):
            self._graphs = self._search_graphs()
        else:
            begin = self._problem.parents.is_parent if self._stage in _AFRESH else ended.is_parent
            self._arcs = self._search_arcs(begin)

    def _best_arcs(self) -> tuple[Matrix, float]:
        """The best arcs found on all cases, including those of the search in progress, and their score."""
        arcs = self._arcs
        if arcs is None or EVERY[self._stage] > 1 or arcs.log_score <= self._best_score:
            return self._best, self._best_score
        return arcs.is_parent, arcs.log_score

    def _search_arcs(self, is_parent: Matrix, state: Mapping[str, Any] | None = None) -> TableArcSearchRun:
        """The search over arcs of the current stage, from these arcs or from its state."""
        most, seconds = self.settings.max_steps, self.settings.seconds
        tables = TableArcSearch(
            patience=len(self._problem.variables),
            max_steps=None if most is None else most - self._n_steps_before,
            seconds=None if seconds is None else max(seconds - self._seconds_before, 0.0),
        )
        rules = self._problem.parents._replace(is_parent=is_parent, most_leaves=NO_LIMIT)
        problem = replace(self._problem, prior=_WORTH, structure_prior=Arcs(), parents=rules, start={})
        return TableArcSearchRun(problem, self._counter, tables, self._workers, state, EVERY[self._stage])

    def _search_graphs(self, state: Mapping[str, Any] | None = None) -> "LeafSearchRun | SharingRun":
        """The search for decision graphs that may test the parents in the best arcs so far."""
        rules, best = self._problem.parents, self._best_arcs()[0]
        problem = self._problem
        if not rules.is_static:
            own = rules._replace(allowed=best, is_parent=rules.kept)
            problem = replace(problem, parents=own, start={})
        return self.settings.greedy.begin(problem, self._counter, self._workers, state)


def _matrix(arcs: list[list[int]], n: int) -> Matrix:
    """Arcs (parent, child) as a matrix, [child, parent]."""
    matrix = np.zeros((n, n), np.uint8)
    for parent, child in arcs:
        matrix[child, parent] = 1
    return matrix
