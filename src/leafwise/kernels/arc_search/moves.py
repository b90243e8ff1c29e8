"""Changes of single arcs: the best one, and the ancestors, by which cycles are avoided."""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.arc_search.node_cache import ADDED, DELETED, Cache
from leafwise.kernels.compiling.jit import bare, jit, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import TIE

STOP, ADD, DELETE, REVERSE = range(4)


class Rules(NamedTuple):
    """Constraints on networks."""

    targets: Array  # the variables that may have parents
    allowed: Array  # allowed[child, parent]
    fixed: Array  # arcs that may not be deleted
    may_be: Array  # arcs that may ever exist: those that are allowed, or in the initial network
    limits: Array  # most parents, and most rows of a table
    n_states: Array


@bare
def _is_above(ancestor: Int, variable: Int, ancestors: Array) -> bool:
    return (ancestors[variable, ancestor >> 6] >> np.uint64(ancestor & 63)) & np.uint64(1) != np.uint64(0)


@bare
def _has_way_round(parent: int, child: int, is_parent: Array, ancestors: Array) -> bool:
    """Return whether another directed path leads from the parent to the child, besides the arc."""
    for other in range(is_parent.shape[0]):
        if is_parent[child, other] and other != parent and _is_above(parent, other, ancestors):
            return True
    return False


@bare
def best_move(
    is_parent: Array, ancestors: Array, entries: Array, rules: Rules, cache: Cache, pool: Array
) -> tuple[int, Int, Int, float]:
    """Return the best change of one arc that gains: its kind, parent, child and gain.

    Additions come before deletions before reversals, then the smaller child, then the smaller parent; a later one wins
    only if it gains more than TIE over the best so far. `entries` are the cache entries for the current parents of all
    targets, -1 for other variables; nodes with the most parents offer no additions. `pool` contains the parents.
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
    """Order the nodes topologically, parents first."""
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
    """Compute all ancestors from the arcs."""
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
    """Change an arc, and update the ancestors; STOP only computes them from the arcs."""
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
