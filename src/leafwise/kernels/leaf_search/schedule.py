"""Greedy search over all nodes: speculative execution of nodes in parallel, and commits in order of gain.

What a node does next depends on other nodes in one way only: an arc elsewhere can rule out a variable. A node may
therefore apply its own best operators ahead of time. These steps are *pending*. `advance` repeatedly commits the
pending step with the largest gain of all nodes, which is exactly the sequential search. If a committed arc rules out
the variable of a pending split, the node is rolled back to before that step when it runs again, or when the step's turn
has come.

One thread is the leader: it commits steps, and when the best next step is not pending, it fills the work queue with
nodes to run ahead. Helper threads take nodes from the queue, and continue with less urgent ones while the leader
commits. A thread must hold a node's lock (`owners`) to change it. What a node does does not depend on which thread runs
it.

While a node runs, the gains published for it (`next_gains`) are upper bounds, for splits and for merges separately, so
the leader may meanwhile commit a better step of another node. Outcomes are published as under a seqlock: N_BEGUN and
N_ENDED count the publications that have begun and ended, and the leader trusts what it has read only if no publication
was in progress.

Ties (gains closer than TIE) go to splits before merges, the smaller target, the older leaf, then as in `splits`.
"""

from typing import Any

import numpy as np

from leafwise.kernels.compiling.atomics import atomic_add, atomic_exchange, atomic_load, unlock, yield_thread
from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.leaf_search.acyclic import add_arc
from leafwise.kernels.leaf_search.apply import (
    apply_best,
    is_ready,
    is_ruled_out,
    roll_back,
    roll_back_invalid,
    set_costs,
)
from leafwise.kernels.leaf_search.counting_together import help_count
from leafwise.kernels.leaf_search.expand import (
    Scratch,
    add_initial_leaf,
    is_counted,
    make_children,
    make_merged,
    score_again,
)
from leafwise.kernels.leaf_search.fallback import is_contested, slot_to_prepare, take_fallback
from leafwise.kernels.leaf_search.leaf_lists import drop, drop_merged, forget_all_scores, free_if_spent
from leafwise.kernels.leaf_search.merges_ahead import make_merges_ahead
from leafwise.kernels.leaf_search.operators import (
    best_next,
    best_split,
    is_stale,
    note_most,
    note_next,
    refresh_all,
    refresh_node,
)
from leafwise.kernels.leaf_search.state import (
    AT_STEP_LIMIT,
    BLOCK,
    CLOSED,
    CONTINUE,
    FINISHED,
    MERGE_STEP,
    MERGED,
    N_BEGUN,
    N_BUSY,
    N_COMMITTED,
    N_ENDED,
    N_IDLE,
    N_MERGED,
    N_QUEUED,
    N_SPLIT,
    N_STALE,
    N_STEPS,
    N_URGENT,
    NEEDS_HOST,
    NEXT,
    NOTHING,
    OVER,
    SHORT,
    SPARE_STEPS,
    SPLIT_STEP,
    State,
)
from leafwise.kernels.scoring.dirichlet import TIE

_TAIL_GAIN = 5.0  # in log score: nodes that gain at most this much less than the best are queued, too
_TIME_SLICE_NS = 5e7  # estimated time after which the leader returns to Python, to check the clock and interrupts


@inlined
def _next_wanted(at: Int, node: Any, least: float, state: State) -> Int:
    """Return the first leaf from `at` on that gains `least` and must be rescored or needs children; -1 if none does.

    If merges compete with splits, only the node's best leaf qualifies for children: others may be merged before their
    turn.
    """
    rules = state.rules
    while at >= 0:
        leaf = state.leaves[at]
        if leaf["gain"] > 0.0 and leaf["gain"] >= least:
            has_turn = at == node["split_leaf"] or rules.splits_first or not rules.merge
            if is_stale(at, state) or (best_split(at, state)["first_child"] < 0 and has_turn):
                return at
        at = leaf["next"]
    return at


@inlined
def _needs_answers(at: Int, state: State) -> bool:
    """Return whether what the leaf needs next comes from the host: weights, or counts.

    Rescoring a leaf that is already counted needs neither.
    """
    rules = state.rules
    return rules.weighs or (rules.remote and not (is_stale(at, state) and is_counted(state.leaves[at], state)))


@bare
def _run_node(target: int, least: float, state: State, scratch: Scratch) -> None:
    """Apply the node's best operators as long as they gain `least`, or until something must wait.

    If new leaves wait for the host, the children of all its leaves that qualify are planned before it stops.
    """
    node, rules = state.nodes[target], state.rules
    if state.may_be_invalid[target]:
        roll_back_invalid(target, state)
    waits, following = False, np.int64(-1)
    while (
        node["best_kind"] != NOTHING
        and node["best_gain"] >= least
        and (rules.runs_ahead or node["first_pending"] < 0)
        and scratch.estimated_ns[0] < _TIME_SLICE_NS
        and not atomic_load(state.shared, SHORT)
    ):
        if not waits and is_ready(node, state):
            if atomic_load(state.totals, N_STEPS) + SPARE_STEPS > state.steps.shape[0]:
                atomic_exchange(state.shared, SHORT, np.int64(1))
                return
            apply_best(target, state, scratch)
            continue
        if node["best_kind"] == MERGE_STEP:
            if not make_merged(target, state, scratch):
                return
            continue
        at = node["split_leaf"]
        if waits or _needs_answers(at, state):
            at = _next_wanted(following if waits else node["head"], node, least, state)
            if at < 0:
                make_merges_ahead(target, least, state, scratch)
                return
            waits, following = True, state.leaves[at]["next"]
        if is_stale(at, state):
            if take_fallback(at, state) or score_again(at, state, scratch):
                refresh_node(target, state)
                following = at
            continue
        slot, is_fallback = state.leaves[at]["slot"], not waits and is_contested(at, state)
        if is_fallback:
            slot = slot_to_prepare(at, least, state, scratch)
            if slot < 0:
                return
        make_children(at, slot, state, scratch)
        if is_fallback:
            return


@inlined
def _run_queue(leads: bool, state: State, scratch: Scratch) -> int:
    """Run nodes from the work queue until it is empty or, for the leader, has no more urgent ones; return their number.

    A helper thread may hold an index into a queue that has since been refilled. That is harmless, since every entry is
    a node that may run.
    """
    shared, queue, n = state.shared, state.queue, 0
    while scratch.estimated_ns[0] < _TIME_SLICE_NS and not atomic_load(shared, SHORT):
        if leads and atomic_load(shared, NEXT) >= max(shared[N_URGENT], 1):  # if none is urgent, one of the others
            break
        place = atomic_add(shared, NEXT, np.int64(1))
        if place >= atomic_load(shared, N_QUEUED):
            break
        back = place - atomic_load(shared, N_URGENT)
        target = queue[place] if back < 0 else queue[queue.shape[0] - 1 - back]
        if atomic_exchange(state.owners, target, np.int64(1)) == 0:
            _run_node(target, state.least[0 if back < 0 else 1], state, scratch)
            atomic_add(shared, N_BEGUN, np.int64(1))
            note_next(target, state)
            atomic_add(shared, N_ENDED, np.int64(1))
            unlock(state.owners, target)
            n += 1
    return n


@inlined
def _commit(target: int, state: State) -> None:
    """Commit the node's first pending step."""
    node = state.nodes[target]
    number = node["first_pending"]
    step = state.steps[number]
    state.committed[state.totals[N_COMMITTED]] = number
    state.totals[N_COMMITTED] += 1
    node["first_pending"] = step["next"]
    if step["next"] >= 0:
        state.steps[step["next"]]["previous"] = -1
    else:
        node["last_pending"] = -1
    note_next(target, state)
    note_most(target, state)
    node["n_committed_leaves"] += step["n_new"] - 1 - (step["other"] >= 0)
    if step["other"] >= 0:
        drop(step["leaf"], np.int64(1), state)
        drop(step["other"], np.int64(1), state)
        return
    best_split(step["leaf"], state)["first_child"] = -1  # the children must not be dropped with it
    drop(step["leaf"], np.int64(1), state)
    if not state.is_parent[target, step["variable"]]:
        add_arc(step["variable"], target, state)


@inlined
def _make_step_available(target: int, state: State, scratch: Scratch) -> bool:
    """Take the node's fallback, or apply its best operator, if either is ready; return whether one was."""
    node = state.nodes[target]
    if node["best_kind"] == SPLIT_STEP and take_fallback(node["split_leaf"], state):
        refresh_node(target, state)
    elif is_ready(node, state) and state.totals[N_STEPS] + SPARE_STEPS <= state.steps.shape[0]:
        apply_best(target, state, scratch)
    else:
        return False
    note_next(target, state)
    note_most(target, state)
    return True


@inlined
def _take_step(target: int, state: State, scratch: Scratch) -> int:
    """Commit the node's first pending step; if there is none or it is ruled out, get closer to one. Return a status."""
    number = state.nodes[target]["first_pending"]
    if number < 0:
        return CONTINUE if _make_step_available(target, state, scratch) else NEEDS_HOST
    step = state.steps[number]
    if is_ruled_out(step, state):
        roll_back(target, number, state)
        note_next(target, state)
        note_most(target, state)
        return CONTINUE
    _commit(target, state)
    return MERGED if step["other"] >= 0 and state.rules.stop_at_merge else CONTINUE


@inlined
def _commit_all(n_steps: int, state: State, scratch: Scratch) -> int:
    """Commit best steps until n_steps are committed, none gains, or the best is not pending (NEEDS_HOST).

    The step limit is not reported as long as leaves are unscored, since their gains are infinite.
    """
    n_ended = -1
    while True:
        if atomic_load(state.shared, N_ENDED) != n_ended:
            n_ended = atomic_load(state.shared, N_ENDED)
            for first in range(0, state.nodes.shape[0], BLOCK):
                note_most(first, state)
        target, gain = best_next(state)
        if state.totals[N_COMMITTED] >= n_steps and gain < np.inf:
            return AT_STEP_LIMIT
        if target >= 0 and atomic_exchange(state.owners, target, np.int64(1)) != 0:
            return NEEDS_HOST
        is_sure = atomic_load(state.shared, N_BEGUN) == n_ended  # no outcome was published since n_ended was read
        status = CONTINUE
        if not is_sure:
            yield_thread()
        elif target < 0:
            return FINISHED
        else:
            status = _take_step(target, state, scratch)
        if target >= 0:
            unlock(state.owners, target)
        if status != CONTINUE:
            return status


@inlined
def _fill_queue(share: float, state: State) -> None:
    """Queue as urgent the nodes whose operators gain `share` times the next step's gain; as less urgent, share² times.

    Nodes to roll back are urgent, too. Near the end of the search all nodes that gain are queued (_TAIL_GAIN), so that
    no single thread is left with one node's merges. If weights come from the host, only urgent nodes are queued; with
    remote counts, all queued nodes are urgent.
    """
    shared, queue = state.shared, state.queue
    atomic_exchange(shared, NEXT, np.int64(CLOSED))
    best = best_next(state)[1]
    least, tail = share * best, max(TIE, best - _TAIL_GAIN)
    less = min(share * least, tail)
    if state.rules.remote:
        least = less = min(least, tail)
    elif state.rules.weighs:
        less = least
    state.least[0], state.least[1] = least, less
    n_urgent, n_others = 0, 0
    for k in range(state.targets.shape[0]):
        target = state.targets[k]
        node = state.nodes[target]
        gain = node["best_gain"]
        if atomic_load(state.owners, target):
            continue
        if gain >= least or (state.may_be_invalid[target] and node["first_pending"] >= 0):
            queue[n_urgent] = target
            n_urgent += 1
        elif gain >= state.least[1]:
            n_others += 1
            queue[queue.shape[0] - n_others] = target
    atomic_exchange(shared, N_URGENT, np.int64(n_urgent))
    atomic_exchange(shared, N_QUEUED, np.int64(n_urgent + n_others))
    atomic_exchange(shared, NEXT, np.int64(0))


@inlined
def _help(state: State, scratch: Scratch) -> None:
    """Help to count a set that is counted by several threads, or yield if there is none."""
    if not help_count(state, scratch.part, scratch.counting):
        yield_thread()


@inlined
def _wait_for_others(state: State, scratch: Scratch) -> None:
    """Close the work queue, and help to count until no helper thread is running a node."""
    atomic_exchange(state.shared, NEXT, np.int64(CLOSED))
    atomic_add(state.shared, N_IDLE, np.int64(1))
    while atomic_load(state.shared, N_BUSY) > 0:
        _help(state, scratch)
    atomic_add(state.shared, N_IDLE, np.int64(-1))


@inlined
def _needs_host(state: State) -> bool:
    """Return whether an array is too small, or something waits for counts or weights."""
    totals = state.totals
    return state.shared[SHORT] > 0 or totals[N_STALE] + totals[N_SPLIT] + totals[N_MERGED] > 0


@bare
def _advance(leads: bool, n_steps: int, share: float, scored: bool, state: State, scratch: Scratch) -> int:
    shared, status = state.shared, NEEDS_HOST
    if leads and scored:
        refresh_all(state)
    while True:
        if leads:
            if not _needs_host(state):
                status = _commit_all(n_steps, state, scratch)
            if status != NEEDS_HOST or scratch.estimated_ns[0] >= _TIME_SLICE_NS or _needs_host(state):
                _wait_for_others(state, scratch)
                atomic_exchange(shared, OVER, np.int64(1))
                return status
            _fill_queue(share, state)
        else:
            atomic_add(shared, N_IDLE, np.int64(1))
            while atomic_load(shared, NEXT) >= atomic_load(shared, N_QUEUED) and not atomic_load(shared, OVER):
                _help(state, scratch)
            atomic_add(shared, N_IDLE, np.int64(-1))
            if atomic_load(shared, OVER):
                return status
            atomic_add(shared, N_BUSY, np.int64(1))
        n_run = _run_queue(leads, state, scratch)
        if not leads:
            atomic_add(shared, N_BUSY, np.int64(-1))
            scratch.estimated_ns[0] = 0.0
        elif state.rules.weighs or state.rules.remote:
            _wait_for_others(state, scratch)
        elif n_run == 0:
            _help(state, scratch)


@jit
def advance(leads: bool, n_steps: int, share: float, scored: bool, state: State, scratch: Scratch) -> int:
    """Commit steps until n_steps are committed, none gains, or the leader must return to Python; return the reason.

    One thread calls this as the leader; helper threads call it with the same state, and return when the leader has.
    `share` is the fraction of the next step's gain down to which nodes run ahead. `scored` tells whether the host
    scored leaves since the last call.
    """
    scratch = refer(scratch)
    scratch.estimated_ns[0] = 0.0
    return _advance(leads, n_steps, share, scored, refer(state), scratch)


@jit
def add_initial_leaves(targets: Array, cases: Array, places: Array, state: State) -> None:
    """Add records for the leaves that a search begins with, all of them unscored; memory must suffice.

    `cases` contains their sets; a row of `places` contains the index of a leaf's region, the number of its boxes and
    words, the index of the list of tests that lead to it, and their number.
    """
    state = refer(state)
    for k in range(state.nodes.shape[0]):
        set_costs(state.nodes[k], state.scoring)
    for k in range(targets.shape[0]):
        add_initial_leaf(targets[k], cases[k], places[k], state)


@jit
def refresh_nodes(targets: Array, begin: int, end: int, state: State) -> None:
    """Update the best operators of targets[begin:end], after some of their leaves were scored."""
    state = refer(state)
    for k in range(begin, end):
        refresh_node(targets[k], state)
        note_next(targets[k], state)


@jit
def free_spent(batch: Array, state: State) -> None:
    """Release those histograms of the leaves in `batch` that may not be needed again."""
    state = refer(state)
    for b in range(batch.shape[0]):
        free_if_spent(batch[b], state)


@jit
def drop_leaves(leaves: Array, state: State) -> None:
    """Drop these leaves, and everything that was made ahead below them."""
    state = refer(state)
    for k in range(leaves.shape[0]):
        drop(leaves[k], np.int64(1), state)


@jit
def start_afresh(targets: Array, state: State) -> None:
    """Roll back all pending steps of these nodes, and mark all their leaves as unscored."""
    state = refer(state)
    for k in range(targets.shape[0]):
        node = state.nodes[targets[k]]
        if node["first_pending"] >= 0:
            roll_back(targets[k], node["first_pending"], state)
        node["version"] += 1
        forget_all_scores(targets[k], state)
        drop_merged(node, state)
        set_costs(node, state.scoring)
