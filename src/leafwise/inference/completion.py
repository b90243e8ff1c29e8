"""Cases with missing cells, completed several times over, and counted in expectation.

Exact where a case is small enough for that, else by Gibbs sampling, which goes on from what was drawn last. Knows
networks and holes.
"""

from collections.abc import Sequence

import numpy as np

from leafwise.decision_graph import DecisionGraph
from leafwise.inference.holes import Codes, Floats, Holes
from leafwise.kernels import routes
from leafwise.network import Network
from leafwise.table import Variable, count_states

_ROOM = 2**14  # numbers: to eliminate in more of them takes longer than to draw cell by cell
_SWEEPS = 10  # in which each cell is drawn once


class Completions:
    """Cases with holes, to be completed by one network after another. A hole is a code that is no state.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> codes = sample(alarm(), 100, seed=1).codes.copy()
    >>> codes[3, :50] = 9
    >>> completions = Completions(alarm().variables, codes, seed=1)
    >>> completions.draw(alarm(), 2).shape, completions.n_missing
    ((37, 200), 50)
    """

    def __init__(self, variables: Sequence[Variable], codes: Codes, seed: int, threads: int | None = None) -> None:
        self._threads = threads
        missing = codes >= count_states(variables)[:, None]
        self._lacking = missing.any(axis=0)
        self.n_missing = int(missing.sum())
        self.n_large = 0  # cases that were too large for an exact answer when they were last counted
        self._seeds = np.random.SeedSequence(seed)
        self._codes = codes
        self._complete = np.ascontiguousarray(codes[:, ~self._lacking])
        self._shown = np.ascontiguousarray(codes[:, self._lacking])
        self._drawn = self._shown
        self._counted: tuple[list[DecisionGraph | None], list[Floats | None]] | None = None

    def draw(self, network: Network, n_draws: int) -> Codes:
        """All cases, completed so many times: first each once, then each once more, and so on."""
        holes = Holes(network, threads=self._threads, room=_ROOM)
        shown = np.tile(self._shown, n_draws)
        seeds = self._seeds.spawn(1)[0].generate_state(2).tolist()
        drawn, logs = holes.draw_small(shown, seeds[0])
        large = np.flatnonzero(np.isnan(logs))
        if len(large):
            before = np.ascontiguousarray(self._drawn[:, large % self._drawn.shape[1]])
            drawn[:, large] = holes.redraw(np.ascontiguousarray(shown[:, large]), before, seeds[1], _SWEEPS)[0]
        self._drawn = drawn
        completed = np.tile(self._codes, n_draws)
        completed[:, np.tile(self._lacking, n_draws)] = drawn
        return completed

    def expected_counts(self, network: Network) -> tuple[list[Floats | None], float]:
        """How often each leaf is reached with each state, in expectation, and the log probability of what is shown.

        Cases that are too large are counted as they were drawn last, and then the log probability is NaN.
        """
        holes = Holes(network, threads=self._threads, room=_ROOM)
        counts, logs = holes.expected_counts_of_small(self._shown)
        large = np.flatnonzero(np.isnan(logs))
        self.n_large = len(large)
        log_probability = float(logs.sum())
        for own, more, node in zip(counts, self._counts_of_complete(holes), network.nodes, strict=True):
            if own is not None and more is not None and node is not None:
                own += more
                log_probability += float((more[more > 0] * np.log(node.probabilities[more > 0])).sum())
        if self.n_large:
            n_draws = self._drawn.shape[1] // self._shown.shape[1]
            places = large + self._shown.shape[1] * np.arange(n_draws)[:, None]
            for own, more in zip(counts, leaf_counts(network, self._drawn[:, places.ravel()]), strict=True):
                if own is not None and more is not None:
                    own += more / n_draws
        return counts, log_probability

    def _counts_of_complete(self, holes: Holes) -> list[Floats | None]:
        """Of the cases that lack nothing: they depend on the graphs alone."""
        graphs = [None if node is None else node.graph for node in holes.network.nodes]
        if self._counted is None or any(a is not b for a, b in zip(graphs, self._counted[0], strict=True)):
            self._counted = graphs, leaf_counts(holes.network, self._complete)
        return self._counted[1]


def leaf_counts(network: Network, codes: Codes) -> list[Floats | None]:
    """How often complete cases reach each leaf of each node with each state.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> leaf_counts(alarm(), sample(alarm(), 100, seed=1).codes)[2].shape
    (2, 2)
    """
    counts: list[Floats | None] = []
    for target, node in enumerate(network.nodes):
        if node is None:
            counts.append(None)
            continue
        flat = node.flat
        found = routes.leaf_counts(
            codes, flat.test, flat.first, flat.child, 0, node.graph.n_leaves, target, node.n_states
        )
        counts.append(found.astype(np.float64))
    return counts
