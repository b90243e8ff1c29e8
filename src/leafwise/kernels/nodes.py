"""The nodes of a network under search: their leaves, in linked lists, and their best operators.

Every node keeps a list of its leaves in order of creation. A leaf knows its best split; the leaves that split makes may
already be counted (`first_child`). Leaves that are not needed any more are noted in `dropped`.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.arrays import Array, Int
from leafwise.kernels.atomics import lock, unlock
from leafwise.kernels.gains import TIE, Pricing, may_test, merge_gain
from leafwise.kernels.jit import bare
from leafwise.kernels.sets import Cases, release

NODE = np.dtype(
    [
        ("split_gain", np.float64),  # of the best leaf's best split
        ("merge_gain", np.float64),
        ("best_gain", np.float64),  # of the best operator, of either kind
        ("best_kind", np.int64),
        ("n_states", np.int64),  # of the target
        ("size_class", np.int64),  # of its histograms, among those of all nodes
        ("room", np.int64),  # the most children that a split may have
        ("head", np.int64),  # the list of leaves
        ("tail", np.int64),
        ("n_leaves", np.int64),
        ("n_committed_leaves", np.int64),
        ("n_parents", np.int64),
        ("split_leaf", np.int64),
        ("merge_leaf", np.int64),  # the older leaf of the best merge; its partner is the other
        ("merged", np.int64),  # the leaf that a merge makes, once it is there; -1 before
        ("merged_first", np.int64),  # ... and of which two
        ("merged_second", np.int64),
        ("merges_known", np.int64),
        ("first_pending", np.int64),  # steps that are applied and not committed, a linked list
        ("last_pending", np.int64),
    ],
    align=True,
)

STEP = np.dtype(
    [
        ("gain", np.float64),
        ("target", np.int64),
        ("leaf", np.int64),
        ("other", np.int64),  # the second leaf of a merge; -1: a split
        ("variable", np.int64),
        ("state", np.int64),
        ("first_new", np.int64),
        ("n_new", np.int64),
        ("previous", np.int64),  # among the pending steps of its node
        ("next", np.int64),
    ],
    align=True,
)

FINISHED, HUNGRY, FULL, MERGED = range(4)
N_COMMITTED, N_STEPS, N_LEAVES, N_DROPPED, N_STALE, N_SPLIT, N_MERGED = range(7)  # places in Frontier.totals
NOTHING, SPLIT, MERGE = range(3)
BLOCK = 16  # nodes
NO_LEAF = -2  # in the place of a leaf that went
# Places in Frontier.crew, each in a cache line of its own.
POOL, NEXT, N_URGENT, N_QUEUED, N_BUSY, N_BEGUN, N_ENDED, OVER, SHORT = range(0, 72, 8)


class Pool(NamedTuple):
    """Where histograms live."""

    cells: Array
    free: Array  # for each size, where the first free histogram is; -1: none. It holds where the next one is
    sizes: Array
    used: Array  # so many cells, and so many of the leaves' own counts
    plenty: int  # cells: beyond that, histograms that may not be needed again are given back


class Frontier(NamedTuple):
    """All that changes while operators are applied."""

    leaves: Array
    nodes: Array
    targets: Array  # the nodes that are searched
    pool: Pool
    cases: Cases
    pricing: Pricing
    exponents: Array  # the leaves' own exponents; empty for the uniform prior
    groups: Array  # for splits where some state cannot occur: the child of each state
    ancestors: Array  # ancestors[i] is a row of bits
    spare_bits: Array  # two such rows
    is_parent: Array
    steps: Array  # all steps, pending ones among them, in the order they were applied
    committed: Array  # the numbers of those that are committed, in order
    dropped: Array  # leaves that will not be needed again
    made: Array  # what waits for weights: leaves to price again, leaves with new children, nodes with a new merged leaf
    totals: Array
    wanted: Array  # where room is short: how much of each
    next_gains: Array  # for each node, what its next step gains: a row for splits and one for merges; 0: it is not one
    most_gains: Array  # ... and the most of each BLOCK of nodes
    next_tests: Array  # the variable that this step tests, if it is a split
    is_doubted: Array  # whether some of its pending steps may be ruled out; only a hint
    owners: Array  # whether a thread holds the node: nobody else changes it
    queue: Array  # the nodes to run ahead, urgent ones from the front and the others from the back,
    least: Array  # ... as long as their operators gain the first of these, or the second
    crew: Array  # what threads tell each other
    rules: "Rules"


class Rules(NamedTuple):
    """What the search may do."""

    merge: bool
    splits_first: bool
    most_parents: int
    most_leaves: int
    limits_leaves: bool
    most_children: int  # of any split at all
    runs_ahead: bool  # false where what a node may do depends on its own size
    stop_at_merge: bool  # come back after each merge, to look for parents that no longer matter
    weighs: bool  # what a leaf is worth depends on where it is: new leaves wait for weights before they are priced


@bare
def is_stale(leaf: Any, frontier: Frontier) -> bool:
    """Whether the leaf, which gains, is yet to price, or its split is not allowed now; its gain is an upper bound."""
    target = leaf["target"]
    return leaf["room"] != frontier.nodes[target]["room"] or not may_test(target, leaf["variable"], frontier.pricing)


@bare
def _offer_partner(leaf: Any, other: Int, frontier: Frontier) -> None:
    node = frontier.nodes[leaf["target"]]
    gain = merge_gain(
        leaf,
        frontier.leaves[other],
        node["n_states"],
        frontier.pricing.counts,
        frontier.exponents,
        frontier.pricing.log_factorial,
        frontier.pricing.log_kappa,
    )
    if gain > leaf["merge_gain"] + TIE:
        leaf["merge_gain"] = gain
        leaf["partner"] = other


@bare
def _find_partner(leaf: Any, frontier: Frontier) -> None:
    """The best merge of this leaf with a later one of its node."""
    leaf["merge_gain"] = 0.0
    leaf["partner"] = -1
    other = leaf["next"]
    while other >= 0:
        _offer_partner(leaf, other, frontier)
        other = frontier.leaves[other]["next"]


@bare
def _refresh_split(target: int, frontier: Frontier) -> None:
    """The node's best split, from what its leaves know."""
    node = frontier.nodes[target]
    node["split_gain"] = 0.0
    node["split_leaf"] = -1
    at = node["head"]
    while at >= 0:
        leaf = frontier.leaves[at]
        if leaf["gain"] > node["split_gain"] + TIE:
            node["split_gain"] = leaf["gain"]
            node["split_leaf"] = at
        at = leaf["next"]


@bare
def _refresh_merge(target: int, gone: Int, gone_too: Int, first_new: Int, frontier: Frontier) -> None:
    """The node's best merge, after two leaves went (or NO_LEAF) and those from first_new on came, at the list's end."""
    node = frontier.nodes[target]
    node["merge_gain"] = 0.0
    node["merge_leaf"] = -1
    is_new = False
    at = node["head"]
    while at >= 0:
        leaf = frontier.leaves[at]
        is_new = is_new or at == first_new
        if is_new or not node["merges_known"] or leaf["partner"] == gone or leaf["partner"] == gone_too:
            _find_partner(leaf, frontier)
        else:
            other = first_new
            while other >= 0:
                _offer_partner(leaf, other, frontier)
                other = frontier.leaves[other]["next"]
        if leaf["merge_gain"] > node["merge_gain"] + TIE:
            node["merge_gain"] = leaf["merge_gain"]
            node["merge_leaf"] = at
        at = leaf["next"]
    node["merges_known"] = 1


@bare
def refresh(target: int, gone: Int, gone_too: Int, first_new: Int, frontier: Frontier) -> None:
    """The node's best operators after its leaves changed; with splits first, a merge only where no split gains."""
    node = frontier.nodes[target]
    rules = frontier.rules
    _refresh_split(target, frontier)
    if node["split_gain"] == np.inf:  # some leaf is yet to price, or even to count
        node["merges_known"] = 0
    elif rules.merge and (node["merges_known"] or not rules.splits_first or node["split_leaf"] < 0):
        _refresh_merge(target, gone, gone_too, first_new, frontier)
    node["best_kind"], node["best_gain"] = NOTHING, 0.0
    if node["split_leaf"] >= 0:
        node["best_kind"], node["best_gain"] = SPLIT, node["split_gain"]
        if rules.splits_first:
            return
    if rules.merge and node["merge_gain"] > node["best_gain"] + TIE:
        node["best_kind"], node["best_gain"] = MERGE, node["merge_gain"]


@bare
def note_next(target: int, frontier: Frontier) -> None:
    """Note what the node's next step (pending, or else its best operator) gains."""
    node = frontier.nodes[target]
    gain, is_merge, test = node["best_gain"], node["best_kind"] == MERGE, np.int64(-1)
    if node["first_pending"] >= 0:
        step = frontier.steps[node["first_pending"]]
        gain, is_merge, test = step["gain"], step["other"] >= 0, step["variable"]
    elif node["split_leaf"] >= 0:
        test = frontier.leaves[node["split_leaf"]]["variable"]
    frontier.next_tests[target] = test
    frontier.next_gains[0, target] = 0.0 if is_merge else gain
    frontier.next_gains[1, target] = gain if is_merge else 0.0


@bare
def note_most(target: int, frontier: Frontier) -> None:
    """Note the most of the block that the node is in, after its next gain changed."""
    block = target // BLOCK
    for kind in range(2):
        most = 0.0
        for other in range(block * BLOCK, min(block * BLOCK + BLOCK, frontier.nodes.shape[0])):
            most = max(most, frontier.next_gains[kind, other])
        frontier.most_gains[kind, block] = most


@bare
def refresh_all(frontier: Frontier) -> None:
    """All nodes' best operators, after leaves were priced."""
    for k in range(frontier.targets.shape[0]):
        refresh(frontier.targets[k], np.int64(NO_LEAF), np.int64(NO_LEAF), np.int64(-1), frontier)
        note_next(frontier.targets[k], frontier)
        note_most(frontier.targets[k], frontier)


@bare
def unlink(at: int, frontier: Frontier) -> None:
    """Take a leaf out of its node's list."""
    leaf = frontier.leaves[at]
    node = frontier.nodes[leaf["target"]]
    if leaf["previous"] >= 0:
        frontier.leaves[leaf["previous"]]["next"] = leaf["next"]
    else:
        node["head"] = leaf["next"]
    if leaf["next"] >= 0:
        frontier.leaves[leaf["next"]]["previous"] = leaf["previous"]
    else:
        node["tail"] = leaf["previous"]
    node["n_leaves"] -= 1


@bare
def relink(at: int, frontier: Frontier) -> None:
    """Undo `unlink`: the leaf still knows its neighbours, provided that later changes were undone before."""
    leaf = frontier.leaves[at]
    node = frontier.nodes[leaf["target"]]
    if leaf["previous"] >= 0:
        frontier.leaves[leaf["previous"]]["next"] = at
    else:
        node["head"] = at
    if leaf["next"] >= 0:
        frontier.leaves[leaf["next"]]["previous"] = at
    else:
        node["tail"] = at
    node["n_leaves"] += 1


@bare
def link(at: int, frontier: Frontier) -> None:
    """Append a leaf to its node's list."""
    leaf = frontier.leaves[at]
    leaf["previous"] = frontier.nodes[leaf["target"]]["tail"]
    leaf["next"] = -1
    relink(at, frontier)


@bare
def _give_back(leaf: Any, frontier: Frontier) -> None:
    """Put the leaf's histogram among the free ones of its size, a list whose links are in the first two cells."""
    at = leaf["histogram"]
    if at >= 0:
        pool = frontier.pool
        which = frontier.nodes[leaf["target"]]["size_class"]
        pool.cells[at] = pool.free[which] >> 31
        pool.cells[at + 1] = pool.free[which] & 0x7FFFFFFF
        pool.free[which] = at
        leaf["histogram"] = -1


@bare
def next_free(at: int, cells: Array) -> Any:
    """The free histogram after this one."""
    return np.int64(cells[at]) << 31 | np.int64(cells[at + 1])


@bare
def free_histogram(leaf: Any, frontier: Frontier) -> None:
    """Give the leaf's histogram back."""
    lock(frontier.crew, POOL)
    _give_back(leaf, frontier)
    unlock(frontier.crew, POOL)


@bare
def free_if_spent(leaf: Any, frontier: Frontier) -> None:
    """Where there are plenty, give back the histogram of a leaf that no split improves; a merge must count again."""
    if leaf["gain"] == 0.0 and frontier.pool.used[0] > frontier.pool.plenty:
        free_histogram(leaf, frontier)


@bare
def _drop_too(first: int, n: int, end: int, dropped: Array) -> int:
    if first >= 0:
        for k in range(n):
            dropped[end + k] = first + k
        end += n
    return end


@bare
def drop(at: int, n: Int, frontier: Frontier) -> None:
    """Give up n leaves from this one on, and all that was made ahead below them."""
    lock(frontier.crew, POOL)
    begin = frontier.totals[N_DROPPED]
    end = begin
    for leaf in range(at, at + n):
        frontier.dropped[end] = leaf
        end += 1
    while begin < end:
        leaf = frontier.leaves[frontier.dropped[begin]]
        _give_back(leaf, frontier)
        if leaf["cases"] > 0:
            release(leaf["cases"], frontier.cases)
            leaf["cases"] = 0
        end = _drop_too(leaf["first_child"], leaf["n_children"], end, frontier.dropped)
        end = _drop_too(leaf["second_child"], leaf["second_n_children"], end, frontier.dropped)
        begin += 1
    frontier.totals[N_DROPPED] = end
    unlock(frontier.crew, POOL)


@bare
def drop_children(leaf: Any, frontier: Frontier) -> None:
    """Give up what was made ahead for the leaf."""
    if leaf["first_child"] >= 0:
        drop(leaf["first_child"], leaf["n_children"], frontier)
        leaf["first_child"] = -1
    drop_second(leaf, frontier)


@bare
def drop_second(leaf: Any, frontier: Frontier) -> None:
    """Forget the leaf's second choice, and give up what was made for it."""
    if leaf["second_child"] >= 0:
        drop(leaf["second_child"], leaf["second_n_children"], frontier)
        leaf["second_child"] = -1
    leaf["without"] = -1


@bare
def drop_merged(node: Any, frontier: Frontier) -> None:
    """Give up the leaf that the node's best merge would have made."""
    if node["merged"] >= 0:
        drop(node["merged"], np.int64(1), frontier)
        node["merged"] = -1
