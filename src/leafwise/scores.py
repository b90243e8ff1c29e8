"""Scores: the log marginal likelihood of counts (Equation 5), and what a node's structure adds (Equation 6)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.gains import log_likelihoods


@dataclass(frozen=True, slots=True)
class NodeScore:
    """The two parts of a node's log score."""

    log_marginal_likelihood: float
    log_prior: float

    @property
    def log_score(self) -> float:
        return self.log_marginal_likelihood + self.log_prior


def node_score(counts: NDArray[Any], exponents: NDArray[np.float64], log_kappa: float) -> NodeScore:
    """The score of one node from the counts and exponents of its leaves, one row each.

    >>> round(node_score(np.array([[3, 1]]), np.ones((1, 2)), 0.0).log_score, 4)
    -2.9957
    """
    n_leaves, n_states = counts.shape
    return NodeScore(math.fsum(log_likelihoods(counts, exponents)), n_leaves * (n_states - 1) * log_kappa)
