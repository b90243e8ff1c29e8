"""Cases with missing cells: repeated completion, and expected counts.

Exact for cases that are small enough, else by Gibbs sampling, which continues from the previous completions.
"""

import base64
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Variable, count_states
from leafwise.decision_graph import DecisionGraph
from leafwise.inference.holes import Codes, Floats, Holes
from leafwise.kernels.questions import routes
from leafwise.network import Network, Node

_ROOM = 2**12  # numbers: elimination that needs more is slower than drawing cell by cell
_SWEEPS = 3  # each redraws every missing cell once,
_FIRST_SWEEPS = 30  # and the number without previous completions
DRAWS = 5  # completions of each case that is counted as drawn
_PROBED = 200  # cases: if most of these are too large, all are treated as too large


class Completions:
    """Cases with missing cells, completed by one network after another. A missing cell is a code that is no state.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> codes = sample(alarm(), 100, seed=1).codes.copy()
    >>> codes[3, :50] = 9
    >>> completions = Completions(alarm().variables, codes, seed=1)
    >>> completions.draw(alarm(), 2).shape, completions.n_missing
    ((37, 200), 50)
    """

    def __init__(self, variables: Sequence[Variable], codes: Codes, seed: int, threads: int | None = None) -> None:
        self._threads, self._seed, self._n_drawn = threads, seed, 0
        self._n_states = count_states(variables)
        missing = codes >= self._n_states[:, None]
        self.n_missing, self._lacking = int(missing.sum()), missing.any(axis=0)
        self._codes = codes
        self._complete = np.ascontiguousarray(codes[:, ~self._lacking])
        self._shown = np.ascontiguousarray(codes[:, self._lacking])
        self._drawn = self._shown
        self._known: _Known | None = None

    def draw(self, network: Network, n_draws: int) -> Codes:
        """All cases, completed `n_draws` times: all of them once, then all of them again, and so on."""
        holes = Holes(network, threads=self._threads, room=_ROOM)
        seeds = np.random.SeedSequence(self._seed, spawn_key=(self._n_drawn,)).generate_state(2).tolist()
        self._n_drawn += 1
        shown = np.tile(self._shown, n_draws)
        drawn = np.tile(self._drawn, n_draws)[:, : shown.shape[1]]
        small = np.flatnonzero(np.tile(self._about(holes).is_small, n_draws))
        drawn[:, small] = holes.draw(np.ascontiguousarray(shown[:, small]), seeds[0])
        large = np.delete(np.arange(shown.shape[1]), small)
        if len(large):
            before, n_sweeps = np.ascontiguousarray(drawn[:, large]), _SWEEPS
            new = before >= self._n_states[:, None]
            if new.any():  # not completed before: chains start at random states and need longer to forget them
                anywhere = np.random.default_rng(seeds[1]).integers(0, self._n_states[:, None], before.shape)
                before, n_sweeps = np.where(new, anywhere, before).astype(before.dtype), _FIRST_SWEEPS
            drawn[:, large] = holes.redraw(np.ascontiguousarray(shown[:, large]), before, seeds[1], n_sweeps)[0]
        self._drawn = drawn
        completed = np.tile(self._codes, n_draws)
        completed[:, np.tile(self._lacking, n_draws)] = drawn
        return completed

    def mark(self) -> tuple[int, Codes]:
        """The position of the draws, for `state`."""
        return self._n_drawn, self._drawn

    def state(self, mark: tuple[int, Codes]) -> dict[str, Any]:
        """The position of the draws and the latest completions, as plain values."""
        n_drawn, drawn = mark
        cells = zlib.compress(np.ascontiguousarray(drawn[self._holes_in(drawn)]).tobytes(), 1)
        return {"n_drawn": n_drawn, "n_draws": self._n_times(drawn), "cells": base64.b64encode(cells).decode()}

    def go_on_from(self, state: Mapping[str, Any]) -> None:
        """Continue from a saved state."""
        self._n_drawn, self._drawn = state["n_drawn"], np.tile(self._shown, state["n_draws"])
        cells = zlib.decompress(base64.b64decode(state["cells"]))
        self._drawn[self._holes_in(self._drawn)] = np.frombuffer(cells, self._drawn.dtype)

    def _n_times(self, drawn: Codes) -> int:
        return int(drawn.shape[1]) // int(self._shown.shape[1])

    def _holes_in(self, drawn: Codes) -> NDArray[np.bool_]:
        return np.tile(self._shown >= self._n_states[:, None], self._n_times(drawn))

    def expected_counts(self, network: Network) -> tuple[list[Floats | None], float]:
        """Expected counts of each leaf by state, and the log probability of the observed cells.

        Cases that are too large are counted as they were last drawn, or are drawn now if they never were; the log
        probability is then NaN.
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
            if self._n_drawn == 0:
                self.draw(network, DRAWS)
            n_draws = self._n_times(self._drawn)
            drawn = self._drawn[:, np.tile(~known.is_small, n_draws)]
            for own, more in zip(counts, leaf_counts(network, drawn), strict=True):
                if own is not None and more is not None:
                    own += more / n_draws
        return counts, log_probability

    def _about(self, holes: Holes) -> "_Known":
        """What depends on the graphs alone, computed once for networks with the same graphs."""
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
    """Per set of graphs: the counts of complete cases in each leaf, and which other cases are small."""

    graphs: list[DecisionGraph | None]
    counts_of_complete: list[Floats | None]
    is_small: NDArray[np.bool_]


def leaf_counts(network: Network, codes: Codes) -> list[Floats | None]:
    """The counts of complete cases in each leaf of each node, by state.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> leaf_counts(alarm(), sample(alarm(), 100, seed=1).codes)[2].shape
    (3, 3)
    """
    return [
        None if node is None else counts_in_leaves(node, target, codes).astype(np.float64)
        for target, node in enumerate(network.nodes)
    ]


def counts_in_leaves(node: Node, target: int, codes: Codes) -> NDArray[np.int64]:
    """The counts of complete cases in each leaf of a node, by state of its variable."""
    flat, n_leaves = node.flat, node.graph.n_leaves
    return routes.leaf_counts(codes, flat.test, flat.first, flat.child, 0, n_leaves, target, node.n_states)
