"""Arcs that can be turned round for nothing, and the best change of an arc after some of them were.

Networks with the same arcs but for their directions, and the same pairs of unconnected parents, say the same; a prior
that is fair to all of them (BDeu) gives them the same score. The arcs that all of these networks agree on are *sure*;
the others link *neighbours*. A node can lose all its neighbours as parents, or all but one, whichever that is.
"""

import numpy as np

from leafwise.kernels.arc_search.moves import ADD, DELETE, STOP, Rules, find_order
from leafwise.kernels.arc_search.node_cache import ADDED, DELETED, Book
from leafwise.kernels.compiling.jit import bare, jit, part
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.scoring.dirichlet import TIE

PARENT, NEIGHBOUR = 1, 2  # kinds of links


@bare
def _label(node: int, parent: int, is_parent: Array, links: Array) -> None:
    """What links a node to one of its parents, and to all others that follow from that (Chickering, 1995).

    The node's parents that come later in order, and all arcs of earlier nodes, are labelled.
    """
    n, is_sure = is_parent.shape[0], False
    for other in range(n):
        if links[parent, other] == PARENT:
            if is_parent[node, other]:
                links[node, other] = PARENT
            else:
                is_sure = True
    for other in range(n):
        if is_parent[node, other] and other != parent and not is_parent[parent, other]:
            is_sure = True
    for other in range(n):
        if is_parent[node, other] and links[node, other] == 0:
            links[node, other] = PARENT if is_sure else NEIGHBOUR


@jit
def find_links(is_parent: Array, links: Array, is_stale: Array) -> None:
    """Write to links[node, other] whether it is a parent for sure or a neighbour, and whose links are others now."""
    n = is_parent.shape[0]
    order, new = np.empty(n, np.int64), np.zeros_like(links)
    find_order(is_parent, order)
    for k in range(n):
        node = order[k]
        for before in range(k - 1, -1, -1):
            if is_parent[node, order[before]] and new[node, order[before]] == 0:
                _label(node, order[before], is_parent, new)
    for node in range(n):
        for other in range(n):
            if new[node, other] == NEIGHBOUR:
                new[other, node] = NEIGHBOUR
    for node in range(n):
        for other in range(n):
            if links[node, other] != new[node, other]:
                links[node, other] = new[node, other]
                is_stale[node] = True


@jit
def turn(node: int, kept: int, links: Array, is_parent: Array, turned: Array) -> None:
    """Turn arcs so that of its neighbours only `kept` is a parent of the node, or none if that is -1.

    Neighbours are put in order, each time the one with the most neighbours before it: no new pairs of unconnected
    parents come about that way.
    """
    n = links.shape[0]
    for child in range(n):
        for parent in range(n):
            turned[child, parent] = is_parent[child, parent]
    n_before, is_placed = np.zeros(n, np.int64), np.zeros(n, np.bool_)
    now = node if kept < 0 else kept
    while now >= 0:
        is_placed[now] = True
        for other in range(n):
            if links[now, other] == NEIGHBOUR:
                turned[now, other], turned[other, now] = is_placed[other], not is_placed[other]
                n_before[other] += 1
        now = -1
        for other in range(n):
            if not is_placed[other] and n_before[other] > (n_before[now] if now >= 0 else 0):
                now = other
        if not is_placed[node]:
            now = node


@part
def _mark_below(node: int, kept: int, links: Array, is_below: Array) -> None:
    """Everything the node leads to, in some network that says the same and has this neighbour before it; and itself."""
    n, n_left = links.shape[0], 1
    stack = np.empty(n, np.int64)
    is_below[:] = False
    stack[0], is_below[node] = node, True
    if kept >= 0:
        is_below[kept] = True
    while n_left > 0:
        n_left -= 1
        now = stack[n_left]
        for child in range(n):
            if links[child, now] and not is_below[child]:
                stack[n_left], is_below[child] = child, True
                n_left += 1


@bare
def _may_turn(is_parent: Array, turned: Array, rules: Rules) -> bool:
    """Whether the arcs that differ may be turned."""
    n = turned.shape[0]
    for child in range(n):
        n_parents, n_rows, is_other = 0, 1, False
        for parent in range(n):
            if turned[child, parent]:
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
def _may_change(child: int, parent: int, row: int, deletes: int, is_parent: Array, rules: Rules, book: Book) -> bool:
    """Whether the arc may be deleted, or added, as far as that does not depend on others that are turned."""
    if deletes:
        return not rules.fixed[child, parent]
    return (
        rules.allowed[child, parent]
        and not is_parent[child, parent]
        and not is_parent[parent, child]
        and book.rows[row]["n_rows"] * rules.n_states[parent] <= rules.limits[1]
    )


@part
def best_turn(
    least: float, rows: Array, links: Array, is_parent: Array, rules: Rules, book: Book
) -> tuple[int, int, int, int, float]:
    """The best addition or deletion of an arc, after others were turned, that gains more than `least`.

    Its kind, parent, child, the neighbour that stays a parent of the child or -1, and its gain. rows[child, other] is
    the row of the book for the child with its sure parents and this neighbour, rows[child, n] for the former alone, or
    -1. Ties are broken as in best_move, then by the smaller neighbour.
    """
    n = is_parent.shape[0]
    turned, is_below = np.empty_like(is_parent), np.empty(n, np.bool_)
    kind, best_parent, best_child, best_kept, best = STOP, -1, -1, -1, least
    for deletes in range(2):
        which = DELETED if deletes else ADDED
        for child in range(n):
            for neighbour in range(n + 1):
                row, kept = rows[child, neighbour], neighbour if neighbour < n else -1
                if row < 0 or (not deletes and book.rows[row]["bound"] <= best + TIE):
                    continue
                is_marked = False
                for parent in range(n):
                    if book.gains[row, which, parent] <= best + TIE:
                        continue
                    if not _may_change(child, parent, row, deletes, is_parent, rules, book):
                        continue
                    if not is_marked:
                        is_marked = True
                        _mark_below(child, kept, links, is_below)
                    if not deletes and is_below[parent]:
                        continue
                    turn(child, kept, links, is_parent, turned)
                    if _may_turn(is_parent, turned, rules):
                        kind, best_parent, best_child, best_kept = DELETE if deletes else ADD, parent, child, kept
                        best = book.gains[row, which, parent]
    return kind, best_parent, best_child, best_kept, best
