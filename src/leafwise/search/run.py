"""What all searches have in common: the interfaces of settings and of searches in progress, and checks of settings.

`Run` is the base class of searches: it contains their clock, their limits, and the common part of their summaries.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from leafwise.counters.counter import Counter
from leafwise.network import Network
from leafwise.search.problem import Problem
from leafwise.workers import Workers

MOMENT = 0.05  # seconds, between two calls of `progress`


class SearchRun(Protocol):
    """A search in progress: iterate over its steps, or call `run`; `network` is available at any time."""

    watch: Callable[[Any], None]  # called periodically during `next` if that may take long; an exception ends it

    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def run(self, progress: Callable[[Any], None] | None = None) -> None: ...
    def summary(self) -> dict[str, Any]: ...

    @property
    def seconds(self) -> float: ...
    @property
    def stopped(self) -> str:
        """Why there are no more steps; "" while there may be more."""

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
    """A search that can be resumed from its state."""

    def state(self) -> dict[str, Any]:
        """The state from which `Settings.begin` can resume the search, as plain values."""


class Settings(Protocol):
    """Settings of a search."""

    @property
    def threads(self) -> int | None: ...
    @property
    def seconds(self) -> float | None: ...
    def begin(
        self, problem: Problem, counter: Counter, workers: Workers, state: Mapping[str, Any] | None = None
    ) -> Resumable:
        """Begin a search with these settings, or resume one from its state."""


def check_numbers(settings: Any, **least: int) -> None:
    """Raise unless each named setting is None or at least this number; all but `seconds` must be integers."""
    for name, bound in least.items():
        value = getattr(settings, name)
        if value is None:
            continue
        if not value >= bound:
            raise ValueError(f"{name} is {value}, and must be at least {bound}: raise it, or leave it out")
        if name != "seconds" and not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}, and must be a whole number: give an int, or leave it out")


def check_operators(operators: str, what: str) -> None:
    """Raise a ValueError if there are operators that only greedy search by itself can use."""
    own = [letter for letter in operators if letter not in "CBIM"]
    if own:
        raise ValueError(
            f"operators are {operators!r}, and {what} goes without {', '.join(own)}: leave that out, or search greedily"
        )


def parting_or_sharing(search: Settings) -> list[str]:
    """The operators of a search, or of its inner search, that part leaves or make them share distributions."""
    return sorted(set(getattr(getattr(search, "greedy", search), "operators", "")) & set("ORT"))


def check_inner(settings: Any) -> None:
    """Check the limits of a search over arcs, and that its inner search over leaves, `greedy`, has none."""
    check_numbers(settings, max_steps=0, seconds=0)
    for name in ("max_steps", "seconds"):
        if getattr(settings.greedy, name) is not None:
            raise ValueError(f"{name} limits the search over arcs, not the searches inside: set it there")


class Clock:
    """The seconds spent within this context, in all; nested contexts count once."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._before, self._began, self._depth = seconds, 0.0, 0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._before += time.perf_counter() - self._began

    @property
    def seconds(self) -> float:
        """All seconds so far."""
        return self._before + (time.perf_counter() - self._began if self._depth else 0.0)


class Run(ABC):
    """Base class of searches in progress: the problem, the clock, and why there are no more steps."""

    def __init__(self, problem: Problem, counter: Counter, seconds: float = 0.0) -> None:
        self._problem, self._counter, self._clock, self.stopped = problem, counter, Clock(seconds), ""
        self.watch: Callable[[Any], None] = silence

    @property
    def seconds(self) -> float:
        """The seconds that it took so far."""
        return self._clock.seconds

    @property
    @abstractmethod
    def log_score(self) -> float: ...
    @property
    @abstractmethod
    def log_marginal_likelihood(self) -> float: ...
    @property
    @abstractmethod
    def n_leaves(self) -> int: ...
    @property
    @abstractmethod
    def n_parameters(self) -> int: ...
    @property
    @abstractmethod
    def n_arcs(self) -> int: ...

    def _is_over(self, seconds: float | None, what: str, n: int, most: int | None) -> bool:
        """Whether there are no more steps; sets `stopped` if a limit is reached."""
        if not self.stopped and seconds is not None and self.seconds >= seconds:
            self.stopped = "seconds"
        elif not self.stopped and most is not None and n >= most:
            self.stopped = what
        return self.stopped != ""

    def _found(self) -> dict[str, Any]:
        """The score and the size of the current network."""
        return {
            "log_score": self.log_score,
            "log_marginal_likelihood": self.log_marginal_likelihood,
            "leaves": self.n_leaves,
            "parameters": self.n_parameters,
            "arcs": self.n_arcs,
        }

    def _summary(
        self,
        how: Mapping[str, Any],
        n_tests: int,
        n_steps: int,
        taken: Mapping[str, Any],
        found: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What was learned and how, as plain values; without times, so that it is reproducible."""
        variables, targets = self._problem.variables, self._problem.targets
        return {
            "cases": round(self._counter.n_cases * self._counter.unit),
            "variables": len(variables),
            "target": variables[targets[0]].name if len(targets) < len(variables) else None,
            **how,
            **(self._found() if found is None else found),
            "tests": n_tests,
            **taken,
            "steps": n_steps,
            "stopped": self.stopped,
        }


def silence(_search: Any) -> None:
    """Do nothing: what `watch` is by default."""


def now_and_then(progress: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """A function that may be called at any rate, and calls `progress`, if given, at most twenty times a second."""
    told = time.perf_counter()

    def tell(search: Any) -> None:
        nonlocal told
        if progress is not None and time.perf_counter() - told > MOMENT:
            progress(search)
            told = time.perf_counter()

    return tell
