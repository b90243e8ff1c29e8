"""Merges made ahead: a node that waits for remote counts prepares what it will probably merge next.

With splits first, a node merges two leaves, may then split their union, and has to wait for the counts of the children;
then it merges the next two. Most merges do not depend on the split before. A node that waits therefore makes the unions
of its other leaves as well, and their children are counted in the same round. A union that turns out not to be the next
one is dropped together with the leaf that it was made for.
"""

from typing import Any

from leafwise.kernels.compiling.jit import bare
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.leaf_search.expand import Scratch, is_counted, make_children, make_union, score_leaf
from leafwise.kernels.leaf_search.leaf_lists import drop_ahead
from leafwise.kernels.leaf_search.operators import best_split, is_stale
from leafwise.kernels.leaf_search.state import State
from leafwise.kernels.scoring.dirichlet import TIE


@bare
def _is_in(at: Int, some: Array, n: Int) -> bool:
    for k in range(n):
        if some[k] == at:
            return True
    return False


@bare
def _next_merge(node: Any, least: float, taken: Array, n: Int, state: State) -> Int:
    """Return the first leaf of the best merge of two leaves not taken that no split improves; -1: none gains."""
    best, best_gain, at = -1, TIE, node["head"]
    while at >= 0:
        leaf = state.leaves[at]
        other, gain = leaf["partner"], leaf["merge_gain"]
        if gain > best_gain and gain >= least and other >= 0 and leaf["gain"] <= 0.0:
            if state.leaves[other]["gain"] <= 0.0 and not _is_in(at, taken, n) and not _is_in(other, taken, n):
                best, best_gain = at, gain
        at = leaf["next"]
    return best


@bare
def _make_ahead(at: Int, least: float, state: State, scratch: Scratch) -> bool:
    """Make the union of a leaf and its partner, and the children of its best split; False: memory is short."""
    leaf = state.leaves[at]
    other, version = leaf["partner"], state.nodes[leaf["target"]]["version"]
    is_there = leaf["ahead"] >= 0 and leaf["ahead_with"] == other
    if not is_there or state.leaves[leaf["ahead"]]["version"] != version:  # an outdated union would have to be rescored
        drop_ahead(at, state)
        if not is_counted(leaf, state) or not is_counted(state.leaves[other], state):
            return True
        new = make_union(at, other, state, scratch)
        if new < 0:
            return False
        score_leaf(new, state, scratch)
        leaf["ahead"], leaf["ahead_with"] = new, other
    union = state.leaves[leaf["ahead"]]
    if union["gain"] > 0.0 and union["gain"] >= least and not is_stale(leaf["ahead"], state):
        if best_split(leaf["ahead"], state)["first_child"] < 0:
            make_children(leaf["ahead"], union["slot"], state, scratch)
    return True


@bare
def make_merges_ahead(target: int, least: float, state: State, scratch: Scratch) -> None:
    """Make unions that gain `least` of leaves that no split improves, best first, each leaf in at most one of them."""
    node, n = state.nodes[target], 0
    while node["merges_known"] and n < scratch.taken.shape[0]:
        at = _next_merge(node, least, scratch.taken, n, state)
        if at < 0 or not _make_ahead(at, least, state, scratch):
            return
        scratch.taken[n], scratch.taken[n + 1] = at, state.leaves[at]["partner"]
        n += 2
