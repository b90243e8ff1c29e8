"""What all searches have in common: settings that begin one, and what can be asked of it while it is under way."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from leafwise.counters.counter import Counter
from leafwise.network import Network
from leafwise.search.greedy import Problem
from leafwise.workers import Workers


class SearchRun(Protocol):
    """A search: iterate for its steps, or `run` it; `network` is there at any time."""

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def run(self, progress: Callable[[Any], None] | None = None) -> None: ...
    def summary(self) -> dict[str, Any]: ...

    @property
    def seconds(self) -> float: ...
    @property
    def stopped(self) -> str:
        """Why there are no more steps; "" while there may be."""

    @property
    def network(self) -> Network: ...
    @property
    def n_steps(self) -> int: ...
    @property
    def n_leaves(self) -> int: ...
    @property
    def n_arcs(self) -> int: ...
    @property
    def log_score(self) -> float: ...


class Resumable(SearchRun, Protocol):
    """A search that another one can go on from."""

    def state(self) -> dict[str, Any]:
        """What it takes to go on from here, in plain values, for `Settings.begin`."""


class Settings(Protocol):
    """How to search."""

    @property
    def threads(self) -> int | None: ...
    @property
    def seconds(self) -> float | None: ...
    def begin(
        self, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> Resumable:
        """The search with these settings; where another one was, if its state is given."""
