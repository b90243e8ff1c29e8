"""Markov-equivalent DAGs: the best change of an arc in any DAG that is equivalent to the current one.

Two DAGs are equivalent if they have the same adjacencies and the same v-structures; a score-equivalent prior (BDeu)
then gives them the same score. Arcs that all DAGs of a class share are *compelled*, the others *reversible*: they link
*neighbours*. Together they are the completed partially directed graph (CPDAG) of the class, which contains DAGs in
which none of a node's neighbours is its parent, or any single one of them.
"""

import numpy as np

from leafwise.kernels.arc_search.moves import ADD, DELETE, STOP, Rules, find_order
from leafwise.kernels.arc_search.node_cache import ADDED, DELETED, Cache
from leafwise.kernels.compiling.jit import bare, jit, part
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.scoring.dirichlet import TIE

COMPELLED, REVERSIBLE = 1, 2  # arcs of a CPDAG: cpdag[child, parent]; in both directions between neighbours


@bare
def _label(node: int, parent: int, is_parent: Array, cpdag: Array) -> None:
    """Label the arc from one of a node's parents, and its other arcs if their labels follow (Chickering, 1995).

    Arcs from parents that are later in topological order, and all arcs into earlier nodes, have labels already.
    """
    n, is_compelled = is_parent.shape[0], False
    for other in range(n):
        if cpdag[parent, other] == COMPELLED:
            if is_parent[node, other]:
                cpdag[node, other] = COMPELLED
            else:
                is_compelled = True
    for other in range(n):
        if is_parent[node, other] and other != parent and not is_parent[parent, other]:
            is_compelled = True
    for other in range(n):
        if is_parent[node, other] and cpdag[node, other] == 0:
            cpdag[node, other] = COMPELLED if is_compelled else REVERSIBLE


@jit
def find_cpdag(is_parent: Array, cpdag: Array, is_stale: Array) -> None:
    """Update the CPDAG to that of a DAG, and mark the nodes at which it changes as stale."""
    n = is_parent.shape[0]
    order, new = np.empty(n, np.int64), np.zeros_like(cpdag)
    find_order(is_parent, order)
    for k in range(n):
        node = order[k]
        for before in range(k - 1, -1, -1):
            if is_parent[node, order[before]] and new[node, order[before]] == 0:
                _label(node, order[before], is_parent, new)
    for node in range(n):
        for other in range(n):
            if new[node, other] == REVERSIBLE:
                new[other, node] = REVERSIBLE
    for node in range(n):
        for other in range(n):
            if cpdag[node, other] != new[node, other]:
                cpdag[node, other] = new[node, other]
                is_stale[node] = True


@jit
def reorient(node: int, kept: int, cpdag: Array, is_parent: Array, reoriented: Array) -> None:
    """Write the equivalent DAG in which `kept` is the only neighbour that is a parent of the node; -1: none is.

    Reversible arcs are directed by a maximum cardinality search from `kept` and the node on, which creates no
    v-structures.
    """
    n = cpdag.shape[0]
    for child in range(n):
        for parent in range(n):
            reoriented[child, parent] = is_parent[child, parent]
    n_before, is_placed = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    now = node if kept < 0 else kept
    while now >= 0:
        is_placed[now] = True
        for other in range(n):
            if cpdag[now, other] == REVERSIBLE:
                reoriented[now, other], reoriented[other, now] = is_placed[other], not is_placed[other]
                n_before[other] += 1
        now = -1
        for other in range(n):
            if not is_placed[other] and n_before[other] > (n_before[now] if now >= 0 else 0):
                now = other
        if not is_placed[node]:
            now = node


@part
def _mark_descendants(node: int, kept: int, cpdag: Array, is_descendant: Array) -> None:
    """Mark the node, `kept`, and possible descendants of the node in equivalent DAGs in which `kept` is its parent."""
    n, n_left = cpdag.shape[0], 1
    stack = np.empty(n, np.int64)
    is_descendant[:] = False
    stack[0], is_descendant[node] = node, True
    if kept >= 0:
        is_descendant[kept] = True
    while n_left > 0:
        n_left -= 1
        now = stack[n_left]
        for child in range(n):
            if cpdag[child, now] and not is_descendant[child]:
                stack[n_left], is_descendant[child] = child, True
                n_left += 1


@bare
def _may_reorient(is_parent: Array, reoriented: Array, rules: Rules) -> bool:
    """Return whether the rules allow the arcs that differ, and the tables of their nodes."""
    n = reoriented.shape[0]
    for child in range(n):
        n_parents, n_rows, is_other = 0, 1, False
        for parent in range(n):
            if reoriented[child, parent]:
                n_parents += 1
                n_rows *= rules.n_states[parent]
                if not is_parent[child, parent]:
                    is_other = True
                    if not rules.allowed[child, parent] or rules.fixed[parent, child]:
                        return False
        if is_other and (n_parents > rules.limits[0] or n_rows > rules.limits[1]):
            return False
    return True


@bare
def _may_change(
    child: int, parent: int, entry: int, deletes: int, is_parent: Array, rules: Rules, cache: Cache
) -> bool:
    """Return whether the rules allow to delete or add the arc, as far as that does not depend on reversed arcs."""
    if deletes:
        return not rules.fixed[child, parent]
    return (
        rules.allowed[child, parent]
        and not is_parent[child, parent]
        and not is_parent[parent, child]
        and cache.entries[entry]["n_rows"] * rules.n_states[parent] <= rules.limits[1]
    )


@part
def best_reoriented_move(
    least: float, entries: Array, cpdag: Array, is_parent: Array, rules: Rules, cache: Cache
) -> tuple[int, int, int, int, float]:
    """Return the best addition or deletion of an arc in any equivalent DAG that gains more than `least`.

    This is its kind, parent, child, the neighbour that remains a parent of the child or -1, and its gain.
    entries[child, other] is the cache entry of the child with its compelled parents and this neighbour,
    entries[child, n] with the former alone, or -1. In a tie, additions come first, then the smaller child, the smaller
    neighbour (none comes last), and the smaller parent.
    """
    n = is_parent.shape[0]
    reoriented, is_descendant = np.empty_like(is_parent), np.empty(n, np.bool_)
    kind, best_parent, best_child, best_kept, best = STOP, -1, -1, -1, least
    for deletes in range(2):
        which = DELETED if deletes else ADDED
        for child in range(n):
            for neighbour in range(n + 1):
                entry, kept = entries[child, neighbour], neighbour if neighbour < n else -1
                if entry < 0 or (not deletes and cache.entries[entry]["bound"] <= best + TIE):
                    continue
                is_marked = False
                for parent in range(n):
                    if cache.gains[entry, which, parent] <= best + TIE:
                        continue
                    if not _may_change(child, parent, entry, deletes, is_parent, rules, cache):
                        continue
                    if not is_marked:
                        is_marked = True
                        _mark_descendants(child, kept, cpdag, is_descendant)
                    if not deletes and is_descendant[parent]:
                        continue
                    reorient(child, kept, cpdag, is_parent, reoriented)
                    if _may_reorient(is_parent, reoriented, rules):
                        kind, best_parent, best_child, best_kept = DELETE if deletes else ADD, parent, child, kept
                        best = cache.gains[entry, which, parent]
    return kind, best_parent, best_child, best_kept, best
