"""Hidden variables: the network that learning begins with, and the search for their number of states."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Variable, count_states
from leafwise.decision_graph import DecisionGraph
from leafwise.inference.holes import Codes
from leafwise.kernels.parameters import mixtures
from leafwise.network import Network, Node
from leafwise.search.run import Resumable, silence

Floats = NDArray[np.float64]
_ROUNDS = 60  # of EM, from random responsibilities
_MOST_CASES = 50_000  # to which a mixture is fitted: it is only a starting point
SIZES = (0, 2, 4, 8, 16, 32, 64, 128)  # numbers of states, in the order in which they are tried; 0: no hidden variable
_CASES = 2.0  # equivalent sample size of the prior of each distribution


def hidden_variables(n_states: Sequence[int], names: Sequence[str]) -> tuple[Variable, ...]:
    """Hidden variables with these numbers of states, named hidden1, hidden2 and so on; taken names are skipped.

    >>> [variable.name for variable in hidden_variables([4, 4], ["age", "hidden1"])]
    ['hidden2', 'hidden3']
    """
    free = (name for k in range(1, len(n_states) + len(names) + 1) if (name := f"hidden{k}") not in names)
    return tuple(
        Variable(name, tuple(map(str, range(1, n + 1))), hidden=True) for name, n in zip(free, n_states, strict=False)
    )


def first_network(variables: tuple[Variable, ...], codes: Codes, seed: int) -> Network:
    """The network that the first completions are sampled from: variables are independent, or children of a hidden one.

    The observed variables are divided among the hidden ones at random, and a mixture model is fitted for each hidden
    variable. A code that is no state stands for a missing cell.

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
    """Fit a mixture by EM: by variable, the distributions, (components, states); last the weights of the components."""
    begin = np.concatenate([[0], np.cumsum(n_states)])
    exponents = np.append(_CASES / np.repeat(n_states, n_states), _CASES / n_components)
    shares = random.dirichlet(np.ones(n_components), codes.shape[1])
    table = np.empty((len(exponents), n_components))
    mixtures.fit(np.ascontiguousarray(codes), begin, exponents, _ROUNDS if n_components > 1 else 1, shares, table)
    ends = [*begin.tolist(), len(table)]
    return [np.ascontiguousarray(table[a:b].T) for a, b in pairwise(ends)]


class HiddenChoice:
    """Searches in progress with increasing numbers of states of a hidden variable, as long as the score increases.

    `begin` begins the search with a number of states and a limit of seconds, or resumes one from its state.
    """

    def __init__(
        self,
        begin: Callable[[int, float | None, Mapping[str, Any] | None], Resumable],
        most_seconds: float | None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self._begin, self._most_seconds = begin, most_seconds
        self.stopped = ""
        self.watch: Callable[[Any], None] = silence
        self._size = self._size_of_best = 0  # indices in SIZES
        self._steps_before, self._seconds_before = 0, 0.0  # of finished searches
        if state is not None:
            self._steps_before, self._seconds_before = state["n_steps"], state["seconds"]
            self._size, self._size_of_best = state["size"], state["size_of_best"]
        self._tried = self._best = self._search(self._size, None if state is None else state["tried"])
        if self._size_of_best < self._size and state is not None:
            self._best = self._search(self._size_of_best, state["best"])
            self._best.run()  # takes no steps, but sets `stopped`

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        while not self.stopped:
            self._tried.watch = self.watch
            step = next(iter(self._tried), None)
            if step is not None:
                return step
            self._choose()
        raise StopIteration

    def run(self, progress: Callable[[Any], None] | None = None) -> None:
        """Run all remaining searches; `progress` is called by each of them, with itself."""
        while not self.stopped:
            self._tried.run(progress)
            self._choose()

    def _choose(self) -> None:
        """Keep the better of two searches; begin the next one if that is the latest, otherwise set `stopped`."""
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
        """The search with SIZES[size] states, limited to the time that is left."""
        left = None if self._most_seconds is None else max(0.0, self._most_seconds - self._seconds_before)
        return self._begin(SIZES[size], left, state)

    def state(self) -> dict[str, Any]:
        """The state from which the search can be resumed, as plain values."""
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
        """The steps of all searches."""
        return self._steps_before + self._tried.n_steps

    @property
    def seconds(self) -> float:
        return self._seconds_before + self._tried.seconds

    @property
    def _now(self) -> Resumable:
        """The search that is reported: the best one, or the latest as long as that has no score."""
        return self._best if math.isfinite(self._best.log_score) else self._tried

    @property
    def network(self) -> Network:
        """The best network so far."""
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
        """What was learned and how, by the best search."""
        return self._now.summary()
