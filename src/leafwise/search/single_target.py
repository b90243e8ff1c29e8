"""Search for the graph of one target: greedily, and then again without complete splits.

A complete split gains much in one step, but leaves few cases in each of many leaves, often too few for further splits.
Without complete splits, greedy search takes more steps; its final score is higher on some data, and lower on others. So
both searches are run, and the more probable graph is kept. Their prior is the same, so scores differ by the log odds.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from leafwise.counters.counter import Counter
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.network import Network
from leafwise.search.leaf_search import AUTO, LeafSearch, LeafSearchRun
from leafwise.search.problem import Problem
from leafwise.search.run import Resumable, Settings, silence
from leafwise.workers import Workers


def begin(
    search: Settings, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
) -> Resumable:
    """Begin a search with these settings, or both searches for a single target; or resume it from its state."""
    if isinstance(search, LeafSearch) and _is_searched_twice(search, problem):
        return SingleTargetSearchRun(problem, counter, search, workers, state)
    return search.begin(problem, counter, workers, state)


def _is_searched_twice(search: LeafSearch, problem: Problem) -> bool:
    """Whether one target is learned, operators are "auto", and some candidate has more than one possible split.

    With two states, there is only one.
    """
    if search.operators != AUTO or len(problem.targets) > 1:
        return False
    candidates = problem.parents.allowed[problem.targets[0]] > 0
    return bool((problem.n_states[candidates] > 2).any())


class SingleTargetSearchRun:
    """Both searches in progress, one after the other. Iterate over their steps, or call `run`.

    `network` is the more probable one so far. Score, leaves and arcs are those of the current search, and at the end
    those of the network. `max_steps` limits each search, `seconds` both together. `stopped` says why there are no more
    steps; "" while there may be more.
    """

    def __init__(
        self,
        problem: Problem,
        counter: Counter,
        settings: LeafSearch,
        workers: Workers,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings, self._all = settings, (problem, counter, workers)
        self.watch: Callable[[Any], None] = silence
        self._first: tuple[Network, dict[str, Any], int, float] | None = None  # and its state, steps, seconds
        self._inner = LeafSearchRun(problem, counter, settings, workers, None if state is None else state["first"])
        self._second = None if state is None else state["second"]  # its saved state, until it is resumed
        self.stopped = ""
        if state is not None and state["first_has_ended"]:
            self._inner.run()  # takes no steps
            self._go_on()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self.stopped:
            self._inner.watch = self.watch
            for step in self._inner:
                return step
            self._go_on()
        raise StopIteration

    def run(self, progress: Callable[["SingleTargetSearchRun"], None] | None = None) -> None:
        """Take all remaining steps; `progress` is called about twenty times a second."""
        while not self.stopped:
            self._inner.run(None if progress is None else lambda _: progress(self))
            self._go_on()

    def _go_on(self) -> None:
        """Begin the second search after the first, or set `stopped`."""
        ended, (problem, counter, workers), left = self._inner, self._all, self.settings.seconds
        if self._first is not None:
            was_limited = self._first[0].learned["stopped"] == "max_steps"
            self.stopped = "max_steps" if was_limited else ended.stopped
            return
        if ended.stopped == "seconds" and self._second is None:  # otherwise the second has results
            self.stopped = ended.stopped
            return
        first = ended.network, ended.state(), ended.n_steps, ended.seconds
        ended.close()
        if left is not None:
            left = max(left - ended.seconds, 0.0)
        settings = replace(self.settings, operators=self.settings.letters.replace("C", ""), seconds=left)
        self._first, self._inner = first, LeafSearchRun(problem, counter, settings, workers, self._second)
        self._second = None

    @property
    def network(self) -> Network:
        """The more probable network so far; its `stopped` is that of both searches."""
        network = self._inner.network
        if self._first is None:
            return network
        best = network if _score(network) > _score(self._first[0]) + TIE else self._first[0]
        return replace(best, learned={**best.learned, "stopped": self.stopped})

    @property
    def seconds(self) -> float:
        return self._inner.seconds + (self._first[3] if self._first else 0.0)

    @property
    def n_steps(self) -> int:
        return self._inner.n_steps + (self._first[2] if self._first else 0)

    @property
    def n_leaves(self) -> int:
        return int(self.network.learned["leaves"]) if self.stopped else self._inner.n_leaves

    @property
    def n_arcs(self) -> int:
        return int(self.network.learned["arcs"]) if self.stopped else self._inner.n_arcs

    @property
    def log_score(self) -> float:
        return float(self.network.learned["log_score"]) if self.stopped else self._inner.log_score

    def summary(self) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        return dict(self.network.learned)

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values."""
        if self._first is None:
            return {"first": self._inner.state(), "first_has_ended": False, "second": self._second}
        has_ended = self._first[0].learned["stopped"] == "no operator gains"  # limits may be raised
        return {"first": self._first[1], "first_has_ended": has_ended, "second": self._inner.state()}


def _score(network: Network) -> float:
    return float(network.learned["log_score"])
