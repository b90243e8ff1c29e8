"""Scores: the log marginal likelihood of counts (Equation 5), and the log prior of a node's structure."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.leaf_search.weights import log_likelihoods
from leafwise.network import Network, Node, known_groups
from leafwise.priors import Symmetric, parameter_prior
from leafwise.structure_priors import Partners, StructurePrior, log_prior_of_tie
from leafwise.tied_leaves import later_rows, leaves_to_share


@dataclass(frozen=True, slots=True)
class NodeScore:
    """The two parts of a node's log score."""

    log_marginal_likelihood: float
    log_prior: float

    @property
    def log_score(self) -> float:
        return self.log_marginal_likelihood + self.log_prior


class NodeScores(dict[str, NodeScore]):
    """The scores of nodes, by name."""

    @property
    def total(self) -> float:
        """The sum of all log scores."""
        return math.fsum(score.log_score for score in self.values())


def log_prior(network: Network, target: int, prior: StructurePrior, n_candidates: int | None = None) -> float:
    """The log prior of a node's structure; the number of variables it may test defaults to `candidates`.

    >>> from leafwise.examples import alarm
    >>> from leafwise.structure_priors import Kappa
    >>> round(log_prior(alarm(), 0, Kappa(0.5)) / math.log(0.5))  # HISTORY, given LVFAILURE, has two parameters
    2
    """
    node, variables = network.nodes[target], network.variables
    if node is None:
        raise ValueError(f"{variables[target].name!r} has no distribution, and so no structure: learn it, too.")
    n_candidates = candidates(network, target) if n_candidates is None else n_candidates
    known = known_groups(network)
    if any(target in group[1:] for group in known):  # its graph is that of the group's first
        return 0.0
    if node.own is None:
        value = prior.log_prior(node.graph, node.n_states, variables, n_candidates)
    else:
        value = prior.own_log_prior(node.own, variables, n_candidates)
    return value + _log_prior_of_ties(network, target, prior, known)


def _log_prior_of_ties(network: Network, target: int, prior: StructurePrior, known: list[tuple[int, ...]]) -> float:
    """The log prior of a node's ties; its leaves that are not the first of their group have no parameters of their own.

    Ties in known groups were not chosen, and are not charged: the first variable of a group represents all.
    """
    copies = {variable for group in known for variable in group[1:]}
    left = [[tied for tied in group if tied.variable not in copies] for group in network.ties]
    chosen = [group for group in left if len(group) > 1]
    if not chosen:
        return 0.0
    costs = prior.costs
    later = [tied for group in chosen for tied in group[1:] if tied.variable == target]
    refund = -sum(len(tied.states) - 1 for tied in later) * costs.log_kappa
    firsts = [[(tied.variable, tied.states) for tied in group] for group in chosen if group[0].variable == target]
    if not firsts:
        return refund
    leaves = [found for found in leaves_to_share(network) if found[0] not in copies]
    choices, partners = costs._replace(log_kappa=0.0), Partners(leaves, network.variables)
    return refund + math.fsum(log_prior_of_tie(choices, group, partners) for group in firsts)


def candidates(network: Network, target: int) -> int:
    """The number of variables that a target's graph may test: as recorded in the network, or all others."""
    counted = network.learned.get("candidates")
    if isinstance(counted, list) and len(counted) == len(network.variables) and isinstance(counted[target], int):
        return int(counted[target])
    return len(network.variables) - 1


def node_score(counts: NDArray[Any], exponents: NDArray[np.float64], log_prior: float) -> NodeScore:
    """The score of a node from the counts and exponents of its leaves, one row each, and its log prior.

    >>> round(node_score(np.array([[3, 1]]), np.ones((1, 2)), 0.0).log_score, 4)
    -2.9957
    """
    return NodeScore(math.fsum(log_likelihoods(counts, exponents)), log_prior)


def score_with(
    network: Network, target: int, counts: NDArray[Any], exponents: NDArray[np.float64], prior: StructurePrior
) -> NodeScore:
    """The score of a network's node with these counts and exponents, one row for each of its distributions.

    Those of tied leaves must be pooled; they count for the first leaf of a group only.
    """
    node = network.nodes[target]
    later = later_rows(network, target)
    if node is not None and node.own is not None:
        counts, exponents = node.own.over_parts(counts), node.own.over_parts(exponents)
    counts, exponents = np.delete(counts, later, axis=0), np.delete(exponents, later, axis=0)
    return node_score(counts, exponents, log_prior(network, target, prior))


def score_as_learned(network: Network, target: int, prior: StructurePrior) -> NodeScore | None:
    """The score of a node with the counts it was learned with; None if it was not learned."""
    node = network.nodes[target]
    counts = None if node is None else (node.own or node).counts
    exponents = None if node is None else scored_exponents(network, node)
    if counts is None or exponents is None:
        return None
    return score_with(network, target, counts, exponents, prior)


def scored_exponents(network: Network, node: Node) -> NDArray[np.float64] | None:
    """The exponents with which the search scored a node; None if it was not learned.

    Those of its leaves may differ from the network's prior (`empirical_bayes`).
    """
    exponents = (node.own or node).exponents
    if exponents is None or network.prior is None or not network.prior.startswith("symmetric:"):
        return exponents
    prior = parameter_prior(network.prior)
    assert isinstance(prior, Symmetric)
    return np.where(exponents > 0, prior.exponent(node.n_states), 0.0)  # 0 for states that cannot reach a leaf
