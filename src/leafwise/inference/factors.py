"""A network with evidence as factors: small tables, or one matrix per parent where a decision graph is wide.

A conditional distribution is a sum over the paths ("ways") through its decision graph,

    p(x | parents) = sum over ways w of  theta[w, x] * product over parents p of  [p's state is possible on w],

so one more index, the way, turns a graph over thirty parents into thirty-one small matrices. States that evidence rules
out are first removed from every factor, which also closes ways.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.contraction import Factor
from leafwise.inference.evidence import Weights
from leafwise.kernels.questions import paths
from leafwise.network import Network, Node


@dataclass(frozen=True)
class Scope:
    """The variables relevant to a query, and the states that evidence leaves to each."""

    network: Network
    variables: tuple[int, ...]
    states: Mapping[int, NDArray[np.int64]]  # of each variable in the scope
    known: frozenset[int]  # the variables with evidence
    told: frozenset[int] = frozenset()  # those whose state will be supplied later

    @classmethod
    def of(cls, network: Network, weights: Weights, targets: Iterable[int], told: Iterable[int] = ()) -> "Scope":
        """The targets, the evidence variables, and all their ancestors: nothing else affects the answer."""
        told = frozenset(told)
        variables = _with_ancestors(network, {*weights, *targets, *told})
        states = {
            variable: np.flatnonzero(weights[variable])
            if variable in weights
            else np.arange(network.variables[variable].n_states)
            for variable in variables
        }
        for variable in variables:
            if network.nodes[variable] is None and variable not in told and len(states[variable]) > 1:
                raise ValueError(
                    f"the network has no distribution of {network.names[variable]!r}, which the question depends on: "
                    f"give its state, or learn all variables, without a target."
                )
        return cls(network, variables, states, frozenset(weights), told)

    def n_states(self, variables: Iterable[int]) -> int:
        """The total number of states that these variables have left."""
        return sum(len(self.states[variable]) for variable in variables)

    def n_assignments(self, variables: Iterable[int]) -> int:
        """The number of joint assignments that these variables have left."""
        return math.prod(len(self.states[variable]) for variable in variables)

    def is_free(self, variable: int) -> bool:
        """Whether a variable has more than one state left, and none will be supplied later."""
        return len(self.states[variable]) > 1 and variable not in self.told

    def reduced(self, factor: Factor) -> Factor:
        """A factor restricted to the states that evidence leaves, without axes of a single state."""
        free = tuple([variable for variable in factor.indices if len(self.states[variable]) > 1])
        if free == factor.indices and not self.known.intersection(free):
            return factor
        values = factor.values[np.ix_(*[self.states[variable] for variable in factor.indices])]
        return Factor(free, values.reshape([len(self.states[variable]) for variable in free]))


def factors_of(scope: Scope, most_numbers: float) -> tuple[list[Factor], dict[int, int]]:
    """The factors whose product is the joint distribution, and the extents of their indices.

    Variables are indices; ways through graphs are indices after the last variable. A factor with more than
    `most_numbers` numbers is left empty.
    """
    extents = {variable: len(states) for variable, states in scope.states.items()}
    out: list[Factor] = []
    for variable in scope.variables:
        node = scope.network.nodes[variable]
        if node is not None:
            way = len(scope.network.variables) + variable
            made = node_factors(scope, variable, node, way, most_numbers)
            out += made
            if way in made[0].indices:
                extents[way] = made[0].values.shape[0]
    return out, extents


def node_factors(scope: Scope, variable: int, node: Node, way: int, most_numbers: float) -> list[Factor]:
    """The factors of one node, if no variable of its family is supplied later."""
    table = scope.network.tables[variable]
    if table is not None:
        return [scope.reduced(Factor((*node.parents, variable), table))]
    probabilities = node.probabilities[:, scope.states[variable]]
    free = [parent for parent in node.parents if scope.is_free(parent)]
    size = scope.n_assignments(free) * probabilities.shape[1]
    width = scope.n_states(free) + probabilities.shape[1]
    most = int(min(size, most_numbers, 2**40) / width) + 1  # more ways than this would take more numbers than a table
    leaves, possible = ways_of(scope, node, free, most)
    if len(leaves) <= most:
        free = [parent for parent in free if not possible[parent].all()]  # the others are tested on no remaining way
        size = scope.n_assignments(free) * probabilities.shape[1]
        width = scope.n_states(free) + probabilities.shape[1]
        if len(leaves) * width < size:
            by_way = Factor((way, variable), probabilities[leaves])
            return [_lean(scope, by_way), *(Factor((way, parent), possible[parent]) for parent in free)]
    if size > most_numbers:
        return [Factor((*free, variable) if scope.is_free(variable) else tuple(free), np.zeros(0))]
    shape = [len(scope.states[parent]) for parent in free]
    values = probabilities[leaf_table(scope, node, free, shape)].reshape(*shape, -1)
    return [_lean(scope, Factor((*free, variable), values))]


def ways_of(
    scope: Scope, node: Node, parents: Sequence[int], most: int
) -> tuple[NDArray[np.int32], dict[int, NDArray[np.float64]]]:
    """The leaf at the end of each way, and for each of these parents which of its states are possible on it."""
    n_states = [scope.network.variables[parent].n_states for parent in node.parents]
    column = _columns(scope, node.parents, n_states)
    flags = np.zeros(sum(n_states), np.bool_)
    for parent in node.parents:
        flags[column[parent] + scope.states[parent]] = True
    ways = paths.paths_of(*node.flat[:3], column, flags, most)
    rows = ways[:, 1:]
    return ways[:, 0], {parent: rows[:, column[parent] + scope.states[parent]].astype(np.float64) for parent in parents}


def leaf_table(scope: Scope, node: Node, free: Sequence[int], shape: Sequence[int]) -> NDArray[np.int32]:
    """The leaf of each assignment of the free parents; the others have one state left, or do not matter."""
    left = [scope.states[parent] for parent in node.parents]
    column = _columns(scope, node.parents, [len(states) for states in left])
    states = np.concatenate([np.zeros(0, np.int64), *left])
    return paths.leaf_table(*node.flat[:3], column, states, np.array(free, np.int64), np.array(shape, np.int64))


def _columns(scope: Scope, parents: tuple[int, ...], widths: Sequence[int]) -> NDArray[np.int64]:
    """The first column of each variable in a row of flags, and of the next one; only parents have columns."""
    width = np.zeros(len(scope.network.variables) + 1, np.int64)
    width[[parent + 1 for parent in parents]] = widths
    return np.cumsum(width)


def _lean(scope: Scope, factor: Factor) -> Factor:
    """The factor without its last axis if evidence determines that variable."""
    if scope.is_free(factor.indices[-1]):
        return factor
    return Factor(factor.indices[:-1], factor.values[..., 0])


def _with_ancestors(network: Network, variables: set[int]) -> tuple[int, ...]:
    found = set(variables)
    waiting = list(variables)
    while waiting:
        node = network.nodes[waiting.pop()]
        new = set() if node is None else set(node.parents) - found
        found |= new
        waiting += new
    return tuple(sorted(found))
