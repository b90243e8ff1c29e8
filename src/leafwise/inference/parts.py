"""The parts of a network that are relevant to a query, separated by the evidence.

Only targets, evidence variables and their ancestors are relevant. A variable is known if its evidence leaves one state:
tests of it have a single outcome, and what is connected only through known variables falls into separate parts. Parts
are independent given the evidence, so samples of one need not be consistent with the evidence of another.
"""

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import code_type
from leafwise.inference.evidence import Weights
from leafwise.inference.exact import IMPOSSIBLE, Impossible
from leafwise.inference.sampling import cumulative
from leafwise.kernels.questions import routes
from leafwise.kernels.questions.sampling import FlatPart
from leafwise.network import Network, Node

Codes = NDArray[Any]  # uint8 or uint16
Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Part:
    """Connected variables, known ones among them, renumbered together with their graphs."""

    variables: tuple[int, ...]  # parents first
    targets: tuple[int, ...]  # the places of the targets among the variables, in the order of the query
    flat: FlatPart
    graph: Ints  # the graph of each of its nodes
    case: Codes  # one column: the states of the known variables, zero for the others

    @property
    def free(self) -> Ints:
        """The variables that are not known."""
        return np.flatnonzero(~self.flat.known).astype(np.int32)

    @property
    def leaves(self) -> Ints:
        """The leaves that are reachable."""
        reached = np.union1d(self.flat.child, self.flat.root)
        return reached[self.flat.test[reached] < 0]

    @property
    def log_bound(self) -> float:
        """An upper bound on the log weight of a case."""
        most = np.full(len(self.flat.root), -np.inf)
        np.maximum.at(most, self.graph[self.leaves], self.flat.log_norm[self.leaves])
        return float(most.sum())

    def is_rigid(self, least: float) -> bool:
        """Whether a state has at most probability `least` in one context, and more in another.

        A variable redrawn by itself may then be stuck in its state.
        """
        leaves, flat = self.leaves, self.flat
        for graph in range(len(flat.root)):
            begin = flat.first[leaves[self.graph[leaves] == graph]]
            rows = flat.probability[begin[:, None] + np.arange(flat.n_states[graph])]
            if ((rows.max(axis=0) > least) & (rows.min(axis=0) <= least)).any():
                return True
        return False


@dataclass(frozen=True)
class Parts:
    """All parts, and what is known without sampling."""

    network: Network
    known: dict[int, int]  # the state of each variable that has a single one, by itself or given the evidence
    parts: tuple[Part, ...]
    log_constant: float  # the log probability of the evidence outside of all parts


def parts_of(network: Network, targets: Sequence[int], weights: Weights, joint: bool) -> Parts:
    """Separate what is relevant to the targets and the evidence into parts; with `joint`, all targets are in one."""
    known = {v: 0 for v, variable in enumerate(network.variables) if variable.n_states == 1}
    known |= {v: int(w.argmax()) for v, w in weights.items() if np.count_nonzero(w) == 1}
    nodes = _relevant(network, [*targets, *weights], known)
    scopes = {v: {v, *node.graph.tested} - known.keys() for v, node in nodes.items()}
    unions = _united([*scopes.values(), set(targets) - known.keys() if joint else set()])
    part_of = {v: number for number, union in enumerate(unions) for v in union}
    members: list[dict[int, Node]] = [{} for _ in unions]
    case = [known.get(v, 0) for v in range(len(network.variables))]
    log_constant = math.fsum(math.log(w.max()) for v, w in weights.items() if network.nodes[v] is None)
    for v, scope in scopes.items():
        if scope:
            members[part_of[min(scope)]][v] = nodes[v]
        else:
            log_constant += _log_weight(nodes[v], case, weights.get(v, np.ones(nodes[v].n_states)))
    if log_constant == -np.inf:
        raise Impossible(IMPOSSIBLE)
    parts = tuple(_part(network, own, targets, weights, known) for own in members)
    return Parts(network, known, parts, log_constant)


def _relevant(network: Network, variables: Iterable[int], known: Container[int]) -> dict[int, Node]:
    """The nodes of these variables and all their ancestors, in topological order."""
    nodes: dict[int, Node] = {}
    todo = list(variables)
    while todo:
        variable = todo.pop()
        node = network.nodes[variable]
        if node is None and variable not in known:
            raise ValueError(
                f"the network has no distribution of {network.names[variable]!r}, which the question depends on: "
                f"give its state, or learn all variables, without a target."
            )
        if node is not None and variable not in nodes:
            nodes[variable] = node
            todo += node.graph.tested
    return {variable: nodes[variable] for variable in network.order() if variable in nodes}


def _united(sets: Sequence[set[int]]) -> list[set[int]]:
    """Unite sets that share a member."""
    holders: dict[int, list[int]] = {}
    for number, members in enumerate(sets):
        for member in members:
            holders.setdefault(member, []).append(number)
    unions: list[set[int]] = []
    taken: set[int] = set()
    for start in holders:
        union: set[int] = set()
        todo = [start]
        while todo:
            for number in holders[todo.pop()]:
                if number not in taken:
                    taken.add(number)
                    todo += sets[number] - union
                    union |= sets[number]
        unions += [union] if union else []
    return unions


def _log_weight(node: Node, case: Sequence[int], weights: Floats) -> float:
    """The log probability of the evidence in the leaf that a case reaches."""
    _, log_norms = _weighted(node.probabilities[node.graph.leaf_of(case), None], weights)
    return float(log_norms[0])


def _weighted(probabilities: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Distributions times evidence weights, up to a factor, and the log of each row's sum without that factor.

    Distributions with rounding errors, as from files, are used unchanged, as in exact inference.
    """
    largest = weights.max()
    rows = probabilities * (weights / largest)
    with np.errstate(divide="ignore"):
        return rows, np.log(rows.sum(axis=1)) + np.log(largest)


def _part(
    network: Network, nodes: dict[int, Node], targets: Sequence[int], weights: Weights, known: dict[int, int]
) -> Part:
    """The part of these nodes; all other variables that they test are known."""
    place = {v: number for number, v in enumerate(nodes)}
    new = np.zeros(len(network.variables), np.int32)
    new[list(place)] = list(place.values())
    flat = _flat(nodes, weights, known, new)
    case = np.array([[known.get(v, 0)] for v in nodes], code_type(network.variables))
    asked = tuple(place[target] for target in targets if target in place and target not in known)
    graph = np.repeat(np.arange(len(nodes), dtype=np.int32), [len(node.graph.tests) for node in nodes.values()])
    return Part(tuple(nodes), asked, flat, graph, case)


def _flat(nodes: dict[int, Node], weights: Weights, known: dict[int, int], new: Ints) -> FlatPart:
    """The flat form of the graphs; `new` maps variables of the network to those of the part."""
    test, first, child, root = routes.flatten(node.graph for node in nodes.values())
    _skip_known(test, first, child, root, known)
    rows, log_norms = zip(
        *(_weighted(node.probabilities, weights.get(v, np.ones(node.n_states))) for v, node in nodes.items()),
        strict=True,
    )
    # Leaves are numbered in the order of their nodes, so their distributions are contiguous.
    lengths = np.repeat([row.shape[1] for row in rows], [row.shape[0] for row in rows])
    is_leaf = test < 0
    first[is_leaf] = np.cumsum(lengths) - lengths
    log_norm = np.zeros(len(test))
    log_norm[is_leaf] = np.concatenate(log_norms)
    return FlatPart(
        n_states=np.array([node.n_states for node in nodes.values()], np.int32),
        known=np.array([v in known for v in nodes]),
        root=root,
        test=np.where(is_leaf | np.isin(test, list(known)), -1, new[test]).astype(np.int32),
        first=first,
        child=child,
        probability=np.concatenate([row.ravel() for row in rows]),
        cumulative=np.concatenate([cumulative(row).ravel() for row in rows]),
        log_norm=log_norm,
    )


def _skip_known(test: Ints, first: Ints, child: Ints, root: Ints, known: dict[int, int]) -> None:
    """Redirect arcs to a test of a known variable to its outcome; such tests stay in place, but are unreachable."""
    stands = np.arange(len(test), dtype=np.int32)
    for node in np.flatnonzero(np.isin(test, list(known)))[::-1].tolist():  # children before their parents
        stands[node] = stands[child[first[node] + known[int(test[node])]]]
    child[:] = stands[child]
    root[:] = stands[root]
