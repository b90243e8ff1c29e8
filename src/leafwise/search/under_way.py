"""What all searches have in common: settings that begin one, and what can be asked of it while it is under way."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from leafwise.counters.counter import Counter
from leafwise.network import Network
from leafwise.search.greedy import Problem
from leafwise.workers import Workers


class UnderWay(Protocol):
    """A search: iterate for its steps, or `run` it; `network` is there at any time."""

    seconds: float
    stopped: str  # why there are no more steps; "" while there may be

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def run(self, progress: Callable[[Any], None] | None = None) -> None: ...
    def summary(self) -> dict[str, Any]: ...

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


class Settings(Protocol):
    """How to search."""

    @property
    def threads(self) -> int | None: ...
    @property
    def seconds(self) -> float | None: ...
    def begin(self, problem: Problem, counter: Counter, workers: Workers) -> UnderWay:
        """The search with these settings."""
