"""Search for the graph of one target: greedily, and then once more without complete splits.

A complete split gains much in one step, and leaves few cases in each of many leaves, too few to go on from. A greedy
search that may not make any gets there more slowly, and further on some data, on others less far. So both are searched
for, and the more probable graph is kept. Either has the same prior, so their scores are log odds.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from leafwise.counters.counter import Counter
from leafwise.kernels.scoring.dirichlet import TIE
from leafwise.network import Network
from leafwise.search.leaf_search import AUTO, LeafSearch, LeafSearchRun
from leafwise.search.problem import Problem
from leafwise.search.run import Resumable, Settings
from leafwise.workers import Workers


def begin(
    search: Settings, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
) -> Resumable:
    """The search with these settings, or both of a single target; where another one was, if its state is given."""
    if isinstance(search, LeafSearch) and _is_searched_twice(search, problem):
        return SingleTargetSearchRun(problem, counter, search, workers, state)
    return search.begin(problem, counter, workers, state)


def _is_searched_twice(search: LeafSearch, problem: Problem) -> bool:
    """Whether one target is learned, nobody named operators, and some candidate can be split in several ways.

    Of two states there is but one split.
    """
    if search.operators != AUTO or len(problem.targets) > 1:
        return False
    candidates = problem.parents.allowed[problem.targets[0]] > 0
    return bool((problem.n_states[candidates] > 2).any())


class SingleTargetSearchRun:
    """Both searches under way, one after the other. Iterate for their steps, or `run` them.

    `network` is the more probable one so far, and score, leaves and arcs are those of the search under way, in the end
    those of the network. Limits: `max_steps` holds for each search, `seconds` for both together. `stopped` says why
    there are no more steps; "" while there may be.
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
        self._first: tuple[Network, dict[str, Any], int, float] | None = None  # once it has ended: its steps, seconds
        self._inner = LeafSearchRun(problem, counter, settings, workers, None if state is None else state["first"])
        self._second = None if state is None else state["second"]  # where that was, until it goes on
        self.stopped = ""
        if state is not None and state["first_has_ended"]:
            self._inner.run()  # which takes no steps
            self._go_on()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self.stopped:
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
        """From the first search to the second; or this is the end."""
        ended, (problem, counter, workers), left = self._inner, self._all, self.settings.seconds
        if self._first is not None:
            was_limited = self._first[0].learned["stopped"] == "max_steps"
            self.stopped = "max_steps" if was_limited else ended.stopped
            return
        if ended.stopped == "seconds" and self._second is None:  # else what the second found counts
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
        """The more probable one so far; what it says of why the search stopped is of both searches."""
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
        """What was learned and how, in plain values. No times: the same data and options give the same."""
        return dict(self.network.learned)

    def state(self) -> dict[str, Any]:
        """What it takes to go on from here, in plain values."""
        if self._first is None:
            return {"first": self._inner.state(), "first_has_ended": False, "second": self._second}
        has_ended = self._first[0].learned["stopped"] == "no operator gains"  # no limit, which may be another
        return {"first": self._first[1], "first_has_ended": has_ended, "second": self._inner.state()}


def _score(network: Network) -> float:
    return float(network.learned["log_score"])
