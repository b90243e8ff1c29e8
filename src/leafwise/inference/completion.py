"""Cases with missing cells, completed several times over, and counted in expectation.

Exact where a case is small enough for that, else by Gibbs sampling, which goes on from what was drawn last. Knows
networks and holes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import DecisionGraph
from leafwise.inference.holes import Codes, Floats, Holes
from leafwise.kernels.questions import routes
from leafwise.network import Network
from leafwise.table import Variable, count_states

_ROOM = 2**12  # numbers: to eliminate in more of them takes longer than to draw cell by cell
_SWEEPS = 3  # in which each cell is drawn once
_PROBED = 200  # cases: if most of them are too large, all are taken to be


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
        self._threads, self._seeds = threads, np.random.SeedSequence(seed)
        missing = codes >= count_states(variables)[:, None]
        self.n_missing, self._lacking = int(missing.sum()), missing.any(axis=0)
        self._codes = codes
        self._complete = np.ascontiguousarray(codes[:, ~self._lacking])
        self._shown = np.ascontiguousarray(codes[:, self._lacking])
        self._drawn = self._shown
        self._known: _Known | None = None

    def draw(self, network: Network, n_draws: int) -> Codes:
        """All cases, completed so many times: first each once, then each once more, and so on."""
        holes = Holes(network, threads=self._threads, room=_ROOM)
        seeds = self._seeds.spawn(1)[0].generate_state(2).tolist()
        shown = np.tile(self._shown, n_draws)
        drawn = np.tile(self._drawn, n_draws)[:, : shown.shape[1]]
        small = np.flatnonzero(np.tile(self._about(holes).is_small, n_draws))
        drawn[:, small] = holes.draw(np.ascontiguousarray(shown[:, small]), seeds[0])
        large = np.delete(np.arange(shown.shape[1]), small)
        if len(large):
            before = np.ascontiguousarray(drawn[:, large])
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
        known = self._about(holes)
        counts, logs = holes.expected_counts(np.ascontiguousarray(self._shown[:, known.is_small]))
        log_probability = float(logs.sum()) if known.is_small.all() else np.nan
        for own, more, node in zip(counts, known.counts_of_complete, network.nodes, strict=True):
            if own is not None and more is not None and node is not None:
                own += more
                log_probability += float((more[more > 0] * np.log(node.probabilities[more > 0])).sum())
        if not known.is_small.all():
            n_draws = self._drawn.shape[1] // self._shown.shape[1]
            drawn = self._drawn[:, np.tile(~known.is_small, n_draws)]
            for own, more in zip(counts, leaf_counts(network, drawn), strict=True):
                if own is not None and more is not None:
                    own += more / n_draws
        return counts, log_probability

    def _about(self, holes: Holes) -> "_Known":
        """What depends on the graphs alone: found out once for networks that have the same."""
        graphs = [None if node is None else node.graph for node in holes.network.nodes]
        if self._known is None or any(a is not b for a, b in zip(graphs, self._known.graphs, strict=True)):
            n_shown = self._shown.shape[1]
            probed = self._shown[:, :: max(1, n_shown // _PROBED)]
            is_small = np.zeros(n_shown, np.bool_)
            if 2 * np.count_nonzero(holes.are_small(probed)) >= probed.shape[1]:
                is_small = holes.are_small(self._shown)
            self._known = _Known(graphs, leaf_counts(holes.network, self._complete), is_small)
        return self._known


@dataclass(frozen=True)
class _Known:
    """What is known of cases and graphs: how often complete cases reach each leaf, and which others are small."""

    graphs: list[DecisionGraph | None]
    counts_of_complete: list[Floats | None]
    is_small: NDArray[np.bool_]


def leaf_counts(network: Network, codes: Codes) -> list[Floats | None]:
    """How often complete cases reach each leaf of each node with each state.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> leaf_counts(alarm(), sample(alarm(), 100, seed=1).codes)[2].shape
    (3, 3)
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
