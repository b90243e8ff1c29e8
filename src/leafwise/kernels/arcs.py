"""Changes of single arcs: the best of them all, and the ancestors that say which of them would close a cycle."""

import numpy as np

from leafwise.kernels.arrays import Array
from leafwise.kernels.gains import TIE
from leafwise.kernels.jit import jit, part
from leafwise.kernels.tables import Prices

STOP, ADD, DELETE, REVERSE = range(4)


@part
def _is_above(ancestor: int, variable: int, ancestors: Array) -> bool:
    return (ancestors[variable, ancestor >> 6] >> np.uint64(ancestor & 63)) & np.uint64(1) != np.uint64(0)


@part
def _has_way_round(parent: int, child: int, is_parent: Array, ancestors: Array) -> bool:
    """Whether the parent leads to the child by more than the arc between them."""
    for other in range(is_parent.shape[0]):
        if is_parent[child, other] and other != parent and _is_above(parent, other, ancestors):
            return True
    return False


@part
def _has_room(child: int, parent: int, n_parents: Array, n_rows: Array, n_states: Array, limits: Array) -> bool:
    return n_parents[child] < limits[0] and n_rows[child] * n_states[parent] <= limits[1]


@jit
def best_move(
    targets: Array,
    variables: Array,
    allowed: Array,
    kept: Array,
    is_parent: Array,
    ancestors: Array,
    n_parents: Array,
    limits: Array,
    prices: Prices,
    tabu: Array,
    least: float,
) -> tuple[int, int, int, float]:
    """The best change of one arc that gains more than `least`: its kind, parent, child and gain.

    Additions come before deletions before reversals, then the child that comes first in `targets`, then the parent that
    comes first in `variables`; a later one wins only by gaining more than TIE over the best so far. `limits` are the
    most parents and the most rows of a table; tabu[i, j], which is tabu[j, i], rules out changes between i and j.
    """
    n_states, n_rows, additions = prices.layout.n_states, prices.n_rows, prices.additions
    n = n_states.shape[0]
    kind, best_parent, best_child, best = STOP, -1, -1, least
    for t in range(targets.shape[0]):
        child = targets[t]
        if prices.bounds[child] <= best + TIE:
            continue
        for v in range(n):
            parent = variables[v]
            if (
                additions[child, parent] > best + TIE
                and allowed[child, parent]
                and not is_parent[child, parent]
                and not tabu[child, parent]
                and not _is_above(child, parent, ancestors)
                and _has_room(child, parent, n_parents, n_rows, n_states, limits)
            ):
                kind, best_parent, best_child, best = ADD, parent, child, additions[child, parent]
    for reverse in range(2):
        for t in range(targets.shape[0]):
            child = targets[t]
            if n_parents[child] == 0:
                continue
            for v in range(n):
                parent = variables[v]
                if not is_parent[child, parent] or kept[child, parent] or tabu[child, parent]:
                    continue
                gain = prices.deletions[child, parent]
                if reverse:
                    if not allowed[parent, child] or not _has_room(parent, child, n_parents, n_rows, n_states, limits):
                        continue
                    gain += additions[parent, child]
                if gain > best + TIE and not (reverse and _has_way_round(parent, child, is_parent, ancestors)):
                    kind, best_parent, best_child = REVERSE if reverse else DELETE, parent, child
                    best = gain
    return kind, best_parent, best_child, best


@part
def _inherit(child: int, parent: int, ancestors: Array) -> None:
    for word in range(ancestors.shape[1]):
        ancestors[child, word] |= ancestors[parent, word]
    ancestors[child, parent >> 6] |= np.uint64(1) << np.uint64(parent & 63)


@part
def _find_ancestors(is_parent: Array, ancestors: Array) -> None:
    """All ancestors afresh: a node is done once all its parents are."""
    n = is_parent.shape[0]
    waits = np.zeros(n, np.int64)
    ready = np.empty(n, np.int64)
    n_ready, at = 0, 0
    for node in range(n):
        for word in range(ancestors.shape[1]):
            ancestors[node, word] = np.uint64(0)
        for parent in range(n):
            waits[node] += is_parent[node, parent]
        if waits[node] == 0:
            ready[n_ready] = node
            n_ready += 1
    while at < n_ready:
        parent = ready[at]
        at += 1
        for node in range(n):
            if is_parent[node, parent]:
                _inherit(node, parent, ancestors)
                waits[node] -= 1
                if waits[node] == 0:
                    ready[n_ready] = node
                    n_ready += 1


@jit
def change_arc(kind: int, parent: int, child: int, is_parent: Array, ancestors: Array) -> None:
    """Make the move, and keep the ancestors up to date; STOP finds them from the arcs as they are."""
    if kind == ADD:
        is_parent[child, parent] = 1
        for node in range(is_parent.shape[0]):
            if node == child or _is_above(child, node, ancestors):
                _inherit(node, parent, ancestors)
        return
    if kind != STOP:
        is_parent[child, parent] = 0
    if kind == REVERSE:
        is_parent[parent, child] = 1
    _find_ancestors(is_parent, ancestors)
