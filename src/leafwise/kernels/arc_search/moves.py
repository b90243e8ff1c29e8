"""Changes of single arcs: the best of them all, and the ancestors that say which of them would close a cycle."""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.arc_search.node_cache import ADDED, DELETED, Cache
from leafwise.kernels.compiling.jit import bare, jit, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import TIE

STOP, ADD, DELETE, REVERSE = range(4)


class Rules(NamedTuple):
    """What networks may be."""

    targets: Array  # the variables that may have parents
    allowed: Array  # allowed[child, parent]
    fixed: Array  # arcs that may not go
    may_be: Array  # arcs that may ever be there: those that are allowed, or there from the start
    limits: Array  # the most parents, and the most rows of a table
    n_states: Array


@bare
def _is_above(ancestor: Int, variable: Int, ancestors: Array) -> bool:
    return (ancestors[variable, ancestor >> 6] >> np.uint64(ancestor & 63)) & np.uint64(1) != np.uint64(0)


@bare
def _has_way_round(parent: int, child: int, is_parent: Array, ancestors: Array) -> bool:
    """Whether the parent leads to the child by more than the arc between them."""
    for other in range(is_parent.shape[0]):
        if is_parent[child, other] and other != parent and _is_above(parent, other, ancestors):
            return True
    return False


@bare
def best_move(
    is_parent: Array, ancestors: Array, entries: Array, rules: Rules, cache: Cache, pool: Array
) -> tuple[int, Int, Int, float]:
    """The best change of one arc that gains: its kind, parent, child and gain.

    Additions come before deletions before reversals, then the smaller child, then the smaller parent; a later one wins
    only by gaining more than TIE over the best so far. `entries` are those of the cache for all targets as they are,
    -1 for other variables; those of nodes with the most parents offer no additions. `pool` holds their parents.
    """
    best_parent: Int = np.int64(-1)
    best_child: Int = np.int64(-1)
    kind, best = STOP, 0.0
    for child in rules.targets:
        entry = entries[child]
        if cache.entries[entry]["bound"] <= best + TIE:
            continue
        for parent in range(is_parent.shape[0]):
            if (
                cache.gains[entry, ADDED, parent] > best + TIE
                and rules.allowed[child, parent]
                and not is_parent[child, parent]
                and not _is_above(child, parent, ancestors)
                and cache.entries[entry]["n_rows"] * rules.n_states[parent] <= rules.limits[1]
            ):
                kind, best_parent, best_child, best = ADD, parent, child, cache.gains[entry, ADDED, parent]
    for reverse in range(2):
        for child in rules.targets:
            begin = cache.entries[entries[child]]["parents"]
            for k in range(begin, begin + cache.entries[entries[child]]["n_parents"]):
                parent = pool[k]
                if rules.fixed[child, parent]:
                    continue
                gain = cache.gains[entries[child], DELETED, parent]
                if reverse:
                    if not rules.allowed[parent, child] or entries[parent] < 0:
                        continue
                    if cache.entries[entries[parent]]["n_rows"] * rules.n_states[child] > rules.limits[1]:
                        continue
                    gain += cache.gains[entries[parent], ADDED, child]
                if gain > best + TIE and not (reverse and _has_way_round(parent, child, is_parent, ancestors)):
                    kind, best_parent, best_child = REVERSE if reverse else DELETE, parent, child
                    best = gain
    return kind, best_parent, best_child, best


@bare
def _inherit(child: Int, parent: Int, ancestors: Array) -> None:
    for word in range(ancestors.shape[1]):
        ancestors[child, word] |= ancestors[parent, word]
    ancestors[child, parent >> 6] |= np.uint64(1) << np.uint64(parent & 63)


@part
def find_order(is_parent: Array, order: Array) -> None:
    """All nodes, parents first."""
    n = is_parent.shape[0]
    waits, n_ready = np.zeros(n, np.int64), 0
    for node in range(n):
        for parent in range(n):
            waits[node] += is_parent[node, parent]
        if waits[node] == 0:
            order[n_ready] = node
            n_ready += 1
    for k in range(n):
        for node in range(n):
            if is_parent[node, order[k]]:
                waits[node] -= 1
                if waits[node] == 0:
                    order[n_ready] = node
                    n_ready += 1


@part
def _find_ancestors(is_parent: Array, ancestors: Array) -> None:
    """All ancestors afresh."""
    n = is_parent.shape[0]
    order = np.empty(n, np.int64)
    find_order(is_parent, order)
    ancestors[:] = np.uint64(0)
    for k in range(n):
        for node in range(n):
            if is_parent[node, order[k]]:
                _inherit(node, order[k], ancestors)


@jit
def change_arc(kind: Int, parent: Int, child: Int, is_parent: Array, ancestors: Array) -> None:
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
