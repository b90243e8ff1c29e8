"""The saved state of a search over leaves, from which it continues as if it had not stopped."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import DecisionGraph
from leafwise.learned_nodes import LearnedGraphs

Words = list[int]  # the number of a region's boxes, then its words


@dataclass(frozen=True)
class SavedState:
    """The state before a search was resumed. Graphs keep irrelevant tests, and leaves their order and regions."""

    graphs: Mapping[int, DecisionGraph] = field(default_factory=dict)
    regions: list[Words] = field(default_factory=list)  # of the leaves, graph after graph
    pieces: list[list[int]] = field(default_factory=list)  # as from `Leaves.pieces`
    parts: bool = False  # whether leaves may be parted by now
    arcs: list[list[int]] = field(default_factory=list)  # parent, child
    n_steps: int = 0
    n_merges: int = 0
    n_deleted: int = 0
    log_likelihood: float = 0.0  # before the first step
    gain: float = 0.0
    log_prior: float = 0.0
    refund: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "SavedState":
        """Convert from plain values."""
        graphs = LearnedGraphs(*(np.array(part, np.int64) for part in state["graphs"]))
        return cls(**{**state, "graphs": graphs.made()})

    def is_parent(self, n: int) -> NDArray[np.uint8]:
        """The arcs as a matrix, [child, parent]."""
        matrix = np.zeros((n, n), np.uint8)
        for parent, child in self.arcs:
            matrix[child, parent] = 1
        return matrix
