"""Linked lists of the leaves of nodes, and what is released when leaves go: histograms, sets of cases."""

from typing import Any

import numpy as np

from leafwise.kernels.compiling.atomics import lock, unlock
from leafwise.kernels.compiling.jit import bare
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.counting.sets import release
from leafwise.kernels.leaf_search.state import FALLBACK, N_DROPPED, N_SLOTS, POOL, State


@bare
def unlink(at: Int, state: State) -> None:
    """Remove a leaf from its node's list."""
    leaf = state.leaves[at]
    node = state.nodes[leaf["target"]]
    if leaf["previous"] >= 0:
        state.leaves[leaf["previous"]]["next"] = leaf["next"]
    else:
        node["head"] = leaf["next"]
    if leaf["next"] >= 0:
        state.leaves[leaf["next"]]["previous"] = leaf["previous"]
    else:
        node["tail"] = leaf["previous"]
    node["n_leaves"] -= 1


@bare
def relink(at: Int, state: State) -> None:
    """Undo `unlink`, after all later changes were undone: the leaf still refers to its neighbours."""
    leaf = state.leaves[at]
    node = state.nodes[leaf["target"]]
    if leaf["previous"] >= 0:
        state.leaves[leaf["previous"]]["next"] = at
    else:
        node["head"] = at
    if leaf["next"] >= 0:
        state.leaves[leaf["next"]]["previous"] = at
    else:
        node["tail"] = at
    node["n_leaves"] += 1


@bare
def link(at: Int, state: State) -> None:
    """Append a leaf to its node's list."""
    leaf = state.leaves[at]
    leaf["previous"] = state.nodes[leaf["target"]]["tail"]
    leaf["next"] = -1
    relink(at, state)


@bare
def _give_back(leaf: Any, state: State) -> None:
    """Put the leaf's histogram on the free list of its size; its first two cells become the link."""
    at = leaf["histogram"]
    if at >= 0:
        pool = state.pool
        which = state.nodes[leaf["target"]]["size_class"]
        pool.cells[at] = pool.free[which] >> 31
        pool.cells[at + 1] = pool.free[which] & 0x7FFFFFFF
        pool.free[which] = at
        leaf["histogram"] = -1


@bare
def next_free(at: Int, cells: Array) -> Any:
    """Return the free histogram after this one; -1: none."""
    return np.int64(cells[at]) << 31 | np.int64(cells[at + 1])


@bare
def free_histogram(leaf: Any, state: State) -> None:
    """Release the leaf's histogram."""
    lock(state.shared, POOL)
    _give_back(leaf, state)
    unlock(state.shared, POOL)


@bare
def free_if_spent(at: Int, state: State) -> None:
    """If plenty are in use, release the histogram of a leaf that no split improves; a merge must then recount it.

    If too many are in use and rows are local, release that of any leaf; a split must then recount it, too.
    """
    pool = state.pool
    if pool.used[0] > pool.plenty:
        for slot in range(FALLBACK if pool.used[0] <= pool.too_many or state.rules.remote else 0):
            if state.splits[N_SLOTS * at + slot]["variable"] >= 0:
                return
        free_histogram(state.leaves[at], state)


@bare
def _drop_too(first: int, n: int, end: int, dropped: Array) -> int:
    if first >= 0:
        for k in range(n):
            dropped[end + k] = first + k
        end += n
    return end


@bare
def drop(at: Int, n: Int, state: State) -> None:
    """Drop n leaves from `at` on, and everything that was made ahead below them."""
    lock(state.shared, POOL)
    begin = state.totals[N_DROPPED]
    end = begin
    for leaf in range(at, at + n):
        state.dropped[end] = leaf
        end += 1
    while begin < end:
        number = state.dropped[begin]
        leaf = state.leaves[number]
        _give_back(leaf, state)
        if leaf["cases"] > 0 and not state.rules.remote:  # otherwise the host releases what was dropped
            release(leaf["cases"], state.cases)
            leaf["cases"] = 0
        for slot in range(N_SLOTS):
            split = state.splits[N_SLOTS * number + slot]
            end = _drop_too(split["first_child"], split["n_children"], end, state.dropped)
            split["first_child"] = -1
        end = _drop_too(leaf["ahead"], 1, end, state.dropped)
        leaf["ahead"] = -1
        begin += 1
    state.totals[N_DROPPED] = end
    unlock(state.shared, POOL)


@bare
def drop_children_of(split: Any, state: State) -> None:
    """Drop the leaves that were made ahead for a split."""
    if split["first_child"] >= 0:
        drop(split["first_child"], split["n_children"], state)
        split["first_child"] = -1


@bare
def drop_fallback(at: Int, state: State) -> None:
    """Forget the leaf's fallback, and drop the leaves that were made for it."""
    drop_children_of(state.splits[N_SLOTS * at + FALLBACK], state)
    state.leaves[at]["excluded"] = -1


@bare
def drop_children(at: Int, state: State) -> None:
    """Drop all leaves that were made ahead for the leaf's splits."""
    for slot in range(FALLBACK):
        drop_children_of(state.splits[N_SLOTS * at + slot], state)
    drop_fallback(at, state)


@bare
def drop_ahead(at: Int, state: State) -> None:
    """Drop the union that was made ahead for the leaf."""
    if state.leaves[at]["ahead"] >= 0:
        drop(state.leaves[at]["ahead"], np.int64(1), state)
        state.leaves[at]["ahead"] = -1


@bare
def drop_merged(node: Any, state: State) -> None:
    """Drop the union that was made for the node's best merge."""
    if node["merged"] >= 0:
        drop(node["merged"], np.int64(1), state)
        node["merged"] = -1


@bare
def forget_scores(at: Int, state: State) -> None:
    """Mark the leaf as unscored, and drop everything that was made ahead for it."""
    drop_children(at, state)
    drop_ahead(at, state)
    state.leaves[at]["gain"], state.leaves[at]["max_children"] = np.inf, -1


@bare
def forget_all_scores(target: int, state: State) -> None:
    """Mark all leaves of a node as unscored, and drop everything that was made ahead for them."""
    at = state.nodes[target]["head"]
    while at >= 0:
        forget_scores(at, state)
        at = state.leaves[at]["next"]
