"""Tied leaves: pooling of the counts and exponents of leaves that share a distribution. Knows networks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.network import Network, TiedLeaf, all_ties

Rows = tuple[NDArray[Any], NDArray[np.float64]]  # counts and exponents of a node's distributions
Combine = Callable[[NDArray[np.float64], NDArray[Any]], NDArray[np.float64]]  # of exponents of leaves and their counts


def leaves_to_share(network: Network) -> Iterator[tuple[int, tuple[int, ...], int]]:
    """The leaves that can be shared: variables, states, and the number of the variable's leaves over these."""
    for variable, node in enumerate(network.nodes):
        if node is not None and node.own is None and node.n_states > 1:
            yield variable, tuple(range(node.n_states)), node.n_leaves
        elif node is not None and node.own is not None:
            for row in node.own.leaf_rows:
                if len(node.own.parts[row]) > 1:
                    yield variable, node.own.states[node.own.places[row]], 1


def pooled(
    ties: Sequence[Sequence[TiedLeaf]], rows: Mapping[int, Rows], combine: Combine
) -> dict[int, tuple[NDArray[Any], NDArray[np.float64]]]:
    """Counts and exponents by variable, pooled over tied leaves: counts are added, exponents combined.

    >>> rows = {0: (np.array([[3, 1], [0, 0]]), np.ones((2, 2))), 1: (np.array([[2, 5]]), np.ones((1, 2)))}
    >>> found = pooled([[TiedLeaf(0, 0, (0, 1)), TiedLeaf(1, 0, (1, 0))]], rows, first_exponents)
    >>> found[0][0].tolist(), found[1][0].tolist()
    ([[8, 3], [0, 0]], [[3, 8]])
    """
    found = {variable: (counts.copy(), exponents.copy()) for variable, (counts, exponents) in rows.items()}
    for group in ties:
        every = [[array[tied.leaf, list(tied.states)] for array in rows[tied.variable]] for tied in group]
        counts, exponents = (np.array(values) for values in zip(*every, strict=True))
        together = counts.sum(axis=0), combine(exponents, counts)
        for tied in group:
            for array, values in zip(found[tied.variable], together, strict=True):
                array[tied.leaf, list(tied.states)] = values
    return found


def first_exponents(exponents: NDArray[np.float64], counts: NDArray[Any]) -> NDArray[np.float64]:
    """The exponents of one leaf, for priors that give every leaf the same."""
    one: NDArray[np.float64] = exponents[0]
    return one


def added_exponents(exponents: NDArray[np.float64], counts: NDArray[Any]) -> NDArray[np.float64]:
    """The sums of the exponents, for priors with a total equivalent sample size."""
    sums: NDArray[np.float64] = exponents.sum(axis=0)
    return sums


def weighted_exponents(exponents: NDArray[np.float64], counts: NDArray[Any]) -> NDArray[np.float64]:
    """The means of the exponents, weighted by the cases of each leaf."""
    weights = counts.sum(axis=1) + 1e-9
    means: NDArray[np.float64] = (exponents * weights[:, None]).sum(axis=0) / weights.sum()
    return means


def later_rows(network: Network, variable: int) -> list[int]:
    """The rows of a variable's distributions that are tied, and not the first of their group."""
    return [tied.leaf for group in all_ties(network) for tied in group[1:] if tied.variable == variable]


def without_ties_of(network: Network, variables: Collection[int]) -> tuple[tuple[TiedLeaf, ...], ...]:
    """The ties that are left if the leaves of some variables are untied."""
    left = [tuple(tied for tied in group if tied.variable not in variables) for group in network.ties]
    return tuple(group for group in left if len(group) > 1)


def with_rows(network: Network, rows: Mapping[int, Rows], combine: Combine, **others: Any) -> Network:
    """The network with other counts and exponents for some variables, pooled by ties; ties with others are dropped."""
    nodes, ties = list(network.nodes), tuple(g for g in network.ties if all(tied.variable in rows for tied in g))
    for variable, (counts, exponents) in pooled(ties, rows, combine).items():
        node = nodes[variable]
        if node is not None:
            nodes[variable] = node.relearned(counts, exponents)
    return replace(network, nodes=tuple(nodes), ties=ties, **others)
