"""What a search over leaves has come to, in plain values: enough to go on from there as if it had not stopped."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.decision_graph import DecisionGraph
from leafwise.drawn_nodes import DrawnGraphs

Words = list[int]  # the number of a region's boxes, and the words it is made of


@dataclass(frozen=True)
class Taken:
    """The steps before a search went on. Graphs keep tests that do not matter, and leaves their order and regions."""

    graphs: Mapping[int, DecisionGraph] = field(default_factory=dict)
    regions: list[Words] = field(default_factory=list)  # of the leaves, graph after graph
    pieces: list[list[int]] = field(default_factory=list)  # those of them that are about some states only, and what
    parts: bool = False  # whether leaves are parted by now
    arcs: list[list[int]] = field(default_factory=list)  # parent, child
    n_steps: int = 0
    n_merges: int = 0
    n_deleted: int = 0
    log_likelihood: float = 0.0  # before the first step
    gain: float = 0.0
    log_prior: float = 0.0
    refund: float = 0.0
    seconds: float = 0.0
    sets: list[int] = field(default_factory=list)  # of cases, of the leaves: where a local counter holds them

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Taken":
        """From plain values."""
        graphs = DrawnGraphs(*(np.array(part, np.int64) for part in state["graphs"]))
        return cls(**{**state, "graphs": graphs.made()})

    def with_nodes_of(self, other: "Taken", gain: float, log_prior: float) -> "Taken":
        """The same with the graphs of other targets from another search, which parts leaves, and gain so much more."""
        regions: list[Words] = []
        pieces: list[list[int]] = []
        sets: list[int] = []
        of_targets = {t: (source, own) for source in (self, other) for t, own in source._leaves_of_targets().items()}
        for _, (source, (first, end, own_pieces)) in sorted(of_targets.items(), key=itemgetter(0)):
            pieces += [[place - first + len(regions), *about] for place, *about in own_pieces]
            regions += source.regions[first:end]
            sets += source.sets[first:end]
        return replace(
            self,
            graphs=dict(sorted({**self.graphs, **other.graphs}.items())),
            regions=regions,
            pieces=pieces,
            parts=True,
            arcs=[arc for arc in self.arcs if arc[1] not in other.graphs]
            + [arc for arc in other.arcs if arc[1] in other.graphs],
            gain=self.gain + gain,
            log_prior=self.log_prior + log_prior,
            sets=sets,
        )

    def _leaves_of_targets(self) -> dict[int, tuple[int, int, list[list[int]]]]:
        """For each target the places of its leaves, from one to another, and those of them that are pieces."""
        found, end, pieces = {}, 0, deque(self.pieces)
        for target in sorted(self.graphs):
            first, end = end, end + self.graphs[target].n_leaves
            own = []
            while pieces and pieces[0][0] < end:
                own.append(pieces.popleft())
            found[target] = first, end, own
        return found

    def is_parent(self, n: int) -> NDArray[np.uint8]:
        """The arcs as a matrix, [child, parent]."""
        matrix = np.zeros((n, n), np.uint8)
        for parent, child in self.arcs:
            matrix[child, parent] = 1
        return matrix
