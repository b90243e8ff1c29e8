"""The input of every search, and the report of a step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import fsum
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from leafwise.constraints import ParentRules
from leafwise.data.table import Variable, count_states
from leafwise.decision_graph import DecisionGraph
from leafwise.kernels.counting.arrays import Layout
from leafwise.network import Network, Node
from leafwise.priors import ParameterPrior
from leafwise.scores import log_prior
from leafwise.search.histograms import make_layout
from leafwise.structure_priors import StructurePrior

_MOST_CELLS = 2**30  # 4 GiB of counts

O_co = TypeVar("O_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Step(Generic[O_co]):
    """One operator, and the network's score and size after it; every row of a complete table is a leaf."""

    operator: O_co
    log_score: float
    n_leaves: int
    n_arcs: int


@dataclass(frozen=True)
class Problem:
    """The input of a search: variables, targets, priors, constraints, and initial graphs."""

    variables: tuple[Variable, ...]
    targets: tuple[int, ...]
    prior: ParameterPrior
    structure_prior: StructurePrior
    parents: ParentRules
    n_candidates: NDArray[np.int64]  # by variable: number of those that its graph may test, apart from cycles
    start: Mapping[int, DecisionGraph]  # other targets begin with a single leaf

    @property
    def counted(self) -> dict[str, list[int]]:
        """The numbers of candidates that the structure prior counts, unless they are all other variables."""
        is_all = bool((self.n_candidates == len(self.variables) - 1).all())
        return {} if is_all else {"candidates": self.n_candidates.tolist()}

    @cached_property
    def n_states(self) -> NDArray[np.int64]:
        """The numbers of states of the variables."""
        return count_states(self.variables)

    def log_prior(self, target: int, graph: DecisionGraph) -> float:
        """The log structure prior of a target's graph."""
        n_states, n_candidates = self.variables[target].n_states, int(self.n_candidates[target])
        return self.structure_prior.log_prior(graph, n_states, self.variables, n_candidates)

    def layout(self) -> Layout:
        """The layout of all histograms; a ValueError if the initial ones alone have too many cells."""
        n_states, targets = self.n_states, np.array(self.targets)
        layout = make_layout(self.parents.allowed | self.parents.is_parent, n_states, targets)
        n_cells = int((layout.n_rows[layout.of_target[targets]] * n_states[targets]).sum())
        if n_cells > _MOST_CELLS:
            largest = sorted(self.variables, key=lambda variable: -variable.n_states)[:2]
            which = " and ".join(f"{variable.name!r} ({variable.n_states} states)" for variable in largest)
            raise ValueError(
                f"counting all pairs of variables takes {n_cells} cells, more than the limit of {_MOST_CELLS}: "
                f"bin or drop those with the most states, such as {which}, or allow fewer parents"
            )
        return layout

    def about(self, learned: Mapping[str, Any]) -> dict[str, Any]:
        """What a learned network contains besides its variables and nodes."""
        return {"prior": str(self.prior), "structure_prior": str(self.structure_prior), "learned": learned}

    def network(self, nodes: Sequence[Node | None], learned: Mapping[str, Any]) -> Network:
        """The network of these nodes."""
        return Network(self.variables, tuple(nodes), **self.about(learned))

    def log_prior_of(self, nodes: Sequence[Node | None]) -> float:
        """The log structure prior of the graphs of all nodes that are not None."""
        return fsum(self.log_prior(target, node.graph) for target, node in enumerate(nodes) if node is not None)

    def log_prior_of_network(self, network: Network) -> float:
        """The log structure prior of a network, including own-value tests and ties."""
        targets = [target for target, node in enumerate(network.nodes) if node is not None]
        return fsum(
            log_prior(network, target, self.structure_prior, int(self.n_candidates[target])) for target in targets
        )
