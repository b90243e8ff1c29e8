"""Hidden causes: variables that nobody observed. Where learning begins with them, and how many states they get."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import DecisionGraph
from leafwise.inference.holes import Codes
from leafwise.kernels.parameters import mixtures
from leafwise.network import Network, Node
from leafwise.search.run import Resumable
from leafwise.table import Variable, count_states

Floats = NDArray[np.float64]
_ROUNDS = 60  # of EM, from random weights
_MOST_CASES = 50_000  # that a mixture is fitted to: it is only where learning begins
SIZES = (0, 2, 4, 8, 16, 32, 64, 128)  # numbers of states that are tried one after the other
_CASES = 2.0  # that the prior of each distribution is worth


def hidden_variables(n_states: Sequence[int], names: Sequence[str]) -> tuple[Variable, ...]:
    """Variables with so many states, called hidden1, hidden2 and so on, and otherwise where these names are taken.

    >>> [variable.name for variable in hidden_variables([4, 4], ["age", "hidden1"])]
    ['hidden2', 'hidden3']
    """
    free = (name for k in range(1, len(n_states) + len(names) + 1) if (name := f"hidden{k}") not in names)
    return tuple(
        Variable(name, tuple(map(str, range(1, n + 1))), hidden=True) for name, n in zip(free, n_states, strict=False)
    )


def first_network(variables: tuple[Variable, ...], codes: Codes, seed: int) -> Network:
    """What the first completions are drawn from: every variable by itself, or given a hidden cause.

    With hidden causes this is a mixture of independent variables for each cause, over variables that are dealt out to
    the causes at random. A hole is a code that is no state.

    >>> rain = Variable("rain", ("no", "yes"))
    >>> network = first_network((rain,), np.array([[0, 1, 1, 9]], np.uint8), seed=1)
    >>> network["rain"].probabilities.tolist()
    [[0.4, 0.6]]
    """
    random = np.random.default_rng(seed)
    hidden = [k for k, variable in enumerate(variables) if variable.hidden]
    observed = random.permutation([k for k, variable in enumerate(variables) if not variable.hidden])
    n_states = count_states(variables)
    cases = codes
    if codes.shape[1] > _MOST_CASES:
        cases = codes[:, np.sort(random.permutation(codes.shape[1])[:_MOST_CASES])]
    nodes: dict[int, Node] = {}
    for place, cause in enumerate(hidden or [-1]):
        own = np.sort(observed[place :: max(1, len(hidden))])
        n_components = 1 if cause < 0 else int(n_states[cause])
        tables = _mixture(cases[own], n_states[own], n_components, random)
        graph = DecisionGraph.single() if cause < 0 else DecisionGraph.complete([cause], n_states.tolist())
        for variable, table in zip(own.tolist(), tables, strict=False):
            nodes[variable] = Node(() if cause < 0 else (cause,), graph, table)
        if cause >= 0:
            nodes[cause] = Node((), DecisionGraph.single(), tables[-1].T)
    return Network(variables, tuple(nodes[k] for k in range(len(variables))))


def _mixture(codes: Codes, n_states: NDArray[np.int64], n_components: int, random: np.random.Generator) -> list[Floats]:
    """For each variable its distribution in every component, (components, states), and last the components' weights."""
    begin = np.concatenate([[0], np.cumsum(n_states)])
    exponents = np.append(_CASES / np.repeat(n_states, n_states), _CASES / n_components)
    shares = random.dirichlet(np.ones(n_components), codes.shape[1])
    table = np.empty((len(exponents), n_components))
    mixtures.fit(np.ascontiguousarray(codes), begin, exponents, _ROUNDS if n_components > 1 else 1, shares, table)
    ends = [*begin.tolist(), len(table)]
    return [np.ascontiguousarray(table[a:b].T) for a, b in pairwise(ends)]


class HiddenChoice:
    """A search under way with more and more states of a hidden cause, none at first, as long as the score rises.

    `begin` gives the search with so many states that may take so many seconds; where another one was, if its state is
    given.
    """

    def __init__(
        self,
        begin: Callable[[int, float | None, Mapping[str, Any] | None], Resumable],
        most_seconds: float | None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self._begin, self._most_seconds = begin, most_seconds
        self.stopped = ""
        self.watch: Callable[[Any], None] = _silence  # called now and then while somebody waits for the next step
        self._size = self._size_of_best = 0  # places in SIZES
        self._steps_before, self._seconds_before = 0, 0.0  # of searches that came to their end
        if state is not None:
            self._steps_before, self._seconds_before = state["n_steps"], state["seconds"]
            self._size, self._size_of_best = state["size"], state["size_of_best"]
        self._tried = self._best = self._search(self._size, None if state is None else state["tried"])
        if self._size_of_best < self._size and state is not None:
            self._best = self._search(self._size_of_best, state["best"])
            self._best.run()  # it is at its end, and says why

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self.stopped:
            if hasattr(self._tried, "watch"):
                self._tried.watch = self.watch
            step = next(iter(self._tried), None)
            if step is not None:
                return step
            self._choose()
        raise StopIteration

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Try all that is to be tried; `progress` is called as by the searches themselves, with each of them."""
        while not self.stopped:
            self._tried.run(progress)
            self._choose()

    def _choose(self) -> None:
        """Keep the better of two searches, and begin the next one if that is the new one."""
        is_better = self._tried is self._best or self._tried.log_score > self._best.log_score
        if is_better:
            self._best, self._size_of_best = self._tried, self._size
        if not is_better or self._size + 1 == len(SIZES):
            self.stopped = self._best.stopped
        elif self._most_seconds is not None and self.seconds >= self._most_seconds:
            self.stopped = "seconds"
        else:
            self._steps_before, self._seconds_before = self.n_steps, self.seconds
            self._size += 1
            self._tried = self._search(self._size, None)

    def _search(self, size: int, state: Mapping[str, Any] | None) -> Resumable:
        """With so many states, in the time that those before have left."""
        left = None if self._most_seconds is None else max(0.0, self._most_seconds - self._seconds_before)
        return self._begin(SIZES[size], left, state)

    def state(self) -> dict[str, Any]:
        """What it takes to go on from here, in plain values."""
        return {
            "size": self._size,
            "size_of_best": self._size_of_best,
            "tried": self._tried.state(),
            "best": None if self._best is self._tried else self._best.state(),
            "n_steps": self._steps_before,
            "seconds": self._seconds_before,
        }

    @property
    def n_steps(self) -> int:
        """Those of all searches."""
        return self._steps_before + self._tried.n_steps

    @property
    def seconds(self) -> float:
        return self._seconds_before + self._tried.seconds

    @property
    def _now(self) -> Resumable:
        """What is shown: the best, once it has a score."""
        return self._best if math.isfinite(self._best.log_score) else self._tried

    @property
    def network(self) -> Network:
        """The best so far."""
        return self._now.network

    @property
    def n_leaves(self) -> int:
        return self._now.n_leaves

    @property
    def n_arcs(self) -> int:
        return self._now.n_arcs

    @property
    def log_score(self) -> float:
        return self._now.log_score

    def summary(self) -> dict[str, Any]:
        """What was learned and how, of the best."""
        return self._now.summary()


def _silence(_search: Any) -> None:
    """Tell nobody."""
