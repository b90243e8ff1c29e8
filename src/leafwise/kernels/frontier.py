"""Greedy search over all nodes: they run ahead on their own, side by side, and the best steps are committed in order.

What a node does next depends on other nodes in one way only: an arc elsewhere can rule out a variable. So a node may
apply its own best operators ahead of time. These steps are *pending*; `advance` commits, again and again, the pending
step with the largest gain of all nodes, which is exactly the sequential search. Where a committed arc rules out the
variable of a pending split, the node is rolled back to before it, when it runs again or the step's turn has come.

One thread leads: it commits, and lets nodes run ahead when the best next step is not pending. The others help with the
latter, and go on with less urgent nodes while the first commits. Who changes a node must hold it; what a node does is
the same whoever runs it. What is noted of a node that runs (`next_gains`) is an upper bound, for splits and for merges,
so the leader may take a better step of another node meanwhile. It may not look while a run notes its outcome: N_BEGUN
counts those that have begun to, N_ENDED those that have done so.

Ties (gains closer than TIE) go to splits before merges, the smaller target, the older leaf, then as in `gains`.
"""

from typing import Any

import numpy as np

from leafwise.kernels.ancestry import add_arc
from leafwise.kernels.arrays import Array, Int
from leafwise.kernels.atomics import add, look, rest, swap, unlock
from leafwise.kernels.children import Scratch, make_children, make_merged, make_scratch, price_again
from leafwise.kernels.choices import begin_second, exchange, is_doubtful, take_second
from leafwise.kernels.gains import TIE
from leafwise.kernels.jit import bare, inlined, jit
from leafwise.kernels.nodes import (
    BLOCK,
    FINISHED,
    FULL,
    HUNGRY,
    MERGE,
    MERGED,
    N_BEGUN,
    N_BUSY,
    N_COMMITTED,
    N_ENDED,
    N_MERGED,
    N_QUEUED,
    N_SPLIT,
    N_STALE,
    N_STEPS,
    N_URGENT,
    NEXT,
    NO_LEAF,
    NOTHING,
    OVER,
    SHORT,
    SPLIT,
    Frontier,
    drop,
    drop_children,
    drop_merged,
    free_if_spent,
    is_stale,
    note_most,
    note_next,
    refresh,
    refresh_all,
)
from leafwise.kernels.references import refer
from leafwise.kernels.steps import apply_best, is_ready, is_ruled_out, roll_back, settle_doubts

CLOSED = 1 << 40  # in the place of the next in the queue
CREW = SHORT + 8  # numbers in Frontier.crew
SPARE_STEPS = 1024  # more than there are threads
_LITTLE = 5.0  # in log score
_MOMENT = 5e7  # nanoseconds, roughly, between two looks at the world outside


@inlined
def _next_wanted(at: Int, node: Any, least: float, frontier: Frontier) -> Int:
    """From this leaf on, the next that gains `least` and needs something, and that is not merged before its turn."""
    rules = frontier.rules
    while at >= 0:
        leaf = frontier.leaves[at]
        if leaf["gain"] > 0.0 and leaf["gain"] >= least:
            has_turn = at == node["split_leaf"] or rules.splits_first or not rules.merge
            if is_stale(leaf, frontier) or (leaf["first_child"] < 0 and has_turn):
                return at
        at = leaf["next"]
    return at


@bare
def _run_node(target: int, least: float, frontier: Frontier, scratch: Scratch) -> None:
    """Apply the node's best operators as long as they gain `least`, or until something must wait.

    Where new leaves wait for weights, those of all its leaves are made before it stops.
    """
    node, rules = frontier.nodes[target], frontier.rules
    if frontier.is_doubted[target]:
        settle_doubts(target, frontier)
    waits, following = False, np.int64(-1)
    while (
        node["best_kind"] != NOTHING
        and node["best_gain"] >= least
        and (rules.runs_ahead or node["first_pending"] < 0)
        and scratch.spent[0] < _MOMENT
        and not look(frontier.crew, SHORT)
    ):
        if not waits and is_ready(node, frontier):
            if look(frontier.totals, N_STEPS) + SPARE_STEPS > frontier.steps.shape[0]:
                swap(frontier.crew, SHORT, np.int64(1))
                return
            apply_best(target, frontier)
            continue
        if node["best_kind"] == MERGE:
            if not make_merged(target, frontier, scratch):
                return
            continue
        at = node["split_leaf"]
        if rules.weighs:
            at = _next_wanted(following if waits else node["head"], node, least, frontier)
            if at < 0:
                return
            waits, following = True, frontier.leaves[at]["next"]
        leaf = frontier.leaves[at]
        if is_stale(leaf, frontier):
            if not take_second(leaf, frontier):
                price_again(at, frontier, scratch)
            if not waits:
                refresh(target, np.int64(NO_LEAF), np.int64(NO_LEAF), np.int64(-1), frontier)
            continue
        is_second = not waits and is_doubtful(leaf, frontier)
        if is_second and not begin_second(leaf, least, frontier, scratch):
            return
        make_children(at, frontier, scratch)
        if is_second:
            exchange(leaf)
            return


@inlined
def _work_off(leads: bool, frontier: Frontier, scratch: Scratch) -> int:
    """Run nodes from the queue until there are no more, or, who leads, no more urgent ones; how many.

    The leader may open a new queue at any time. Who took a place in the old one finds any node at all there, which may
    run as well as others.
    """
    crew, queue, n = frontier.crew, frontier.queue, 0
    while scratch.spent[0] < _MOMENT and not look(crew, SHORT):
        if leads and look(crew, NEXT) >= max(crew[N_URGENT], 1):  # if none is, one of the others
            break
        place = add(crew, NEXT, np.int64(1))
        if place >= look(crew, N_QUEUED):
            break
        back = place - look(crew, N_URGENT)
        target = queue[place] if back < 0 else queue[queue.shape[0] - 1 - back]
        if swap(frontier.owners, target, np.int64(1)) == 0:
            _run_node(target, frontier.least[0 if back < 0 else 1], frontier, scratch)
            add(crew, N_BEGUN, np.int64(1))
            note_next(target, frontier)
            add(crew, N_ENDED, np.int64(1))
            unlock(frontier.owners, target)
            n += 1
    return n


@inlined
def _commit(target: int, frontier: Frontier) -> None:
    """The node's first pending step is now a step of the search."""
    node = frontier.nodes[target]
    number = node["first_pending"]
    step = frontier.steps[number]
    frontier.committed[frontier.totals[N_COMMITTED]] = number
    frontier.totals[N_COMMITTED] += 1
    node["first_pending"] = step["next"]
    if step["next"] >= 0:
        frontier.steps[step["next"]]["previous"] = -1
    else:
        node["last_pending"] = -1
    note_next(target, frontier)
    note_most(target, frontier)
    node["n_committed_leaves"] += step["n_new"] - 1 - (step["other"] >= 0)
    if step["other"] >= 0:
        drop(step["leaf"], np.int64(1), frontier)
        drop(step["other"], np.int64(1), frontier)
        return
    frontier.leaves[step["leaf"]]["first_child"] = -1  # the children live on
    drop(step["leaf"], np.int64(1), frontier)
    if not frontier.is_parent[target, step["variable"]]:
        add_arc(step["variable"], target, frontier)


@bare
def _best_of(gains: Array, most: Array) -> tuple[int, float]:
    """The node whose next step gains most, the first of a tie, and its gain; -1 if none gains."""
    best, best_gain = -1, 0.0
    for block in range(most.shape[0]):
        if most[block] > best_gain + TIE:
            for target in range(block * BLOCK, min(block * BLOCK + BLOCK, gains.shape[0])):
                if gains[target] > best_gain + TIE:
                    best, best_gain = target, gains[target]
    return best, best_gain


@bare
def _best_next(frontier: Frontier) -> tuple[int, float]:
    """The node whose next step is the best of all, and its gain; -1 if none gains."""
    split, gain = _best_of(frontier.next_gains[0], frontier.most_gains[0])
    if split >= 0 and frontier.rules.splits_first:
        return split, gain
    merge, gain_of_merge = _best_of(frontier.next_gains[1], frontier.most_gains[1])
    if merge >= 0 and (split < 0 or gain_of_merge > gain + TIE):
        return merge, gain_of_merge
    return split, gain


@inlined
def _is_served(target: int, frontier: Frontier) -> bool:
    """Take the node's second choice, or apply its best operator, if one of them is there."""
    node = frontier.nodes[target]
    is_split = node["best_kind"] == SPLIT
    if is_split and take_second(frontier.leaves[node["split_leaf"]], frontier):
        refresh(target, np.int64(NO_LEAF), np.int64(NO_LEAF), np.int64(-1), frontier)
    elif is_ready(node, frontier) and frontier.totals[N_STEPS] + SPARE_STEPS <= frontier.steps.shape[0]:
        apply_best(target, frontier)
    else:
        return False
    note_next(target, frontier)
    note_most(target, frontier)
    return True


@inlined
def _take_step(target: int, frontier: Frontier) -> int:
    """Commit the node's pending step; if there is none, or it is ruled out, get nearer to one. FULL: go on."""
    number = frontier.nodes[target]["first_pending"]
    if number < 0:
        return FULL if _is_served(target, frontier) else HUNGRY
    step = frontier.steps[number]
    if is_ruled_out(step, frontier):
        roll_back(target, number, frontier)
        note_next(target, frontier)
        note_most(target, frontier)
        return FULL
    _commit(target, frontier)
    return MERGED if step["other"] >= 0 and frontier.rules.stop_at_merge else FULL


@inlined
def _commit_all(n_steps: int, frontier: Frontier) -> int:
    """Commit best steps until there are n_steps (FULL), none gains (FINISHED), or the best is not pending (HUNGRY).

    It is never FULL while leaves are yet to price: their gains are infinite.
    """
    n_ended = -1
    while True:
        if look(frontier.crew, N_ENDED) != n_ended:
            n_ended = look(frontier.crew, N_ENDED)
            for first in range(0, frontier.nodes.shape[0], BLOCK):
                note_most(first, frontier)
        target, gain = _best_next(frontier)
        if frontier.totals[N_COMMITTED] >= n_steps and gain < np.inf:
            return FULL
        if target >= 0 and swap(frontier.owners, target, np.int64(1)) != 0:
            return HUNGRY
        is_sure = look(frontier.crew, N_BEGUN) == n_ended  # nothing was noted while it looked
        status = FULL
        if not is_sure:
            rest()
        elif target < 0:
            return FINISHED
        else:
            status = _take_step(target, frontier)
        if target >= 0:
            unlock(frontier.owners, target)
        if status != FULL:
            return status


@inlined
def _open_queue(share: float, frontier: Frontier) -> None:
    """Queue the nodes whose operators gain a share of what the next step does; as less urgent, a share of that.

    In the end all are: else one that gains little would be left alone, with all its merges still to make.
    """
    crew, queue = frontier.crew, frontier.queue
    swap(crew, NEXT, np.int64(CLOSED))
    best = _best_next(frontier)[1]
    least = share * best
    less = min(share * least, max(TIE, best - _LITTLE))
    frontier.least[0], frontier.least[1] = least, least if frontier.rules.weighs else less
    n_urgent, n_others = 0, 0
    for k in range(frontier.targets.shape[0]):
        target = frontier.targets[k]
        node = frontier.nodes[target]
        gain = node["best_gain"]
        if look(frontier.owners, target):
            continue
        if gain >= least or (frontier.is_doubted[target] and node["first_pending"] >= 0):
            queue[n_urgent] = target
            n_urgent += 1
        elif gain >= frontier.least[1]:
            n_others += 1
            queue[queue.shape[0] - n_others] = target
    swap(crew, N_URGENT, np.int64(n_urgent))
    swap(crew, N_QUEUED, np.int64(n_urgent + n_others))
    swap(crew, NEXT, np.int64(0))


@inlined
def _wait_for_others(frontier: Frontier) -> None:
    """Wait until nobody runs a node any more."""
    swap(frontier.crew, NEXT, np.int64(CLOSED))
    while look(frontier.crew, N_BUSY) > 0:
        rest()


@inlined
def _must_wait(frontier: Frontier) -> bool:
    """Whether room is short, or something waits for weights."""
    totals = frontier.totals
    return frontier.crew[SHORT] > 0 or totals[N_STALE] + totals[N_SPLIT] + totals[N_MERGED] > 0


@bare
def _advance(leads: bool, n_steps: int, share: float, priced: bool, frontier: Frontier, scratch: Scratch) -> int:
    frontier, scratch = refer(frontier), refer(scratch)
    crew, status = frontier.crew, HUNGRY
    if leads and priced:
        refresh_all(frontier)
    while True:
        if leads:
            if not _must_wait(frontier):
                status = _commit_all(n_steps, frontier)
            if status != HUNGRY or scratch.spent[0] >= _MOMENT or _must_wait(frontier):
                _wait_for_others(frontier)
                swap(crew, OVER, np.int64(1))
                return status
            _open_queue(share, frontier)
        else:
            while look(crew, NEXT) >= look(crew, N_QUEUED) and not look(crew, OVER):
                rest()
            if look(crew, OVER):
                return status
            add(crew, N_BUSY, np.int64(1))
        n_run = _work_off(leads, frontier, scratch)
        if not leads:
            add(crew, N_BUSY, np.int64(-1))
            scratch.spent[0] = 0.0
        elif frontier.rules.weighs:
            _wait_for_others(frontier)
        elif n_run == 0:
            rest()


@jit
def advance(leads: bool, n_steps: int, share: float, priced: bool, frontier: Frontier) -> int:
    """Commit steps until there are n_steps (FULL), none gains (FINISHED), or the leader must look up (HUNGRY).

    One thread leads, and the others come to help, with the same frontier. `priced`: leaves were priced since the last
    call.
    """
    return _advance(leads, n_steps, share, priced, frontier, make_scratch(frontier))


@jit
def free_spent(batch: Array, frontier: Frontier) -> None:
    """Give back those histograms that may not be needed again."""
    frontier = refer(frontier)
    for b in range(batch.shape[0]):
        free_if_spent(frontier.leaves[batch[b]], frontier)


@jit
def start_afresh(target: int, frontier: Frontier) -> None:
    """Forget what a node was about to do, and all its prices."""
    frontier = refer(frontier)
    node = frontier.nodes[target]
    if node["first_pending"] >= 0:
        roll_back(target, node["first_pending"], frontier)
    at = node["head"]
    while at >= 0:
        leaf = frontier.leaves[at]
        drop_children(leaf, frontier)
        leaf["gain"], leaf["room"] = np.inf, -1
        at = leaf["next"]
    drop_merged(node, frontier)
