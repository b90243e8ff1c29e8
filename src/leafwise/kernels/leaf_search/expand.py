"""Creation of new leaves by operators, with their cases, histograms and best splits.

After a split only the smaller children are counted; the largest is the parent minus the others. After a merge the two
histograms are added. Several threads make leaves at the same time, each for other nodes; the memory that they allocate
from is protected by a lock.

If the rows are elsewhere (`rules.remote`), new leaves are planned and wait: the host has their sets cut, joined and
counted, many at a time, and has them scored. A set is then named by the number of its leaf, plus one, since no name may
be reused.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.compiling.atomics import atomic_exchange, lock, unlock
from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.counting import bits
from leafwise.kernels.counting.bits import size_of
from leafwise.kernels.counting.sets import copy, cut, cut_some, join, place
from leafwise.kernels.leaf_search.counting_together import count_leaf
from leafwise.kernels.leaf_search.leaf_lists import (
    drop_children,
    drop_merged,
    free_if_spent,
    link,
    next_free,
)
from leafwise.kernels.leaf_search.operators import choose_split
from leafwise.kernels.leaf_search.own_values import (
    SWITCH,
    first_kid,
    inherit,
    n_kids,
    n_pieces,
    piece_at,
    set_piece,
    states_of_piece,
)
from leafwise.kernels.leaf_search.regions import cut_region, has_state, join_regions, mask_words, share_of
from leafwise.kernels.leaf_search.splits import (
    ScoringScratch,
    base_of,
    child_of,
    clear_split,
    gains_nothing,
    histogram_of,
    make_scoring_scratch,
    score_splits,
)
from leafwise.kernels.leaf_search.state import (
    COMPLETE,
    FIRST_WANTED_SET,
    N_ARCS,
    N_JOINED,
    N_LEAVES,
    N_SLOTS,
    N_STALE,
    N_WORDS,
    POOL,
    SHORT,
    UNTESTED,
    WANTED_ARCS,
    WANTED_CELLS,
    WANTED_COUNTS,
    WANTED_LEAVES,
    WANTED_SETS,
    WANTED_WORDS,
    Pool,
    State,
)

LEAVES_TO_SCORE, LEAVES_WITH_CHILDREN, NODES_WITH_MERGED = range(3)  # rows of State.waiting


class Scratch(NamedTuple):
    """Scratch memory of one thread."""

    counting: bits.Scratch
    scoring: ScoringScratch
    groups: Array  # by state of a split's variable: the child that it goes to
    sizes: Array  # by child: its number of cases
    fill: Array  # by child: its number of cases so far
    taken: Array  # leaves that are part of a merge made ahead
    part: Array  # one histogram: a thread's part of a set that several threads count
    estimated_ns: Array  # one number: estimated work since it was last reset, in nanoseconds


def make_scratch(state: State, parts: bool) -> Scratch:
    """Allocate scratch memory for one thread; `parts` tells whether leaves may be parted, now or later."""
    n_states, cases = state.scoring.layout.n_states, state.cases
    most_states = max(2, n_states.max())
    return Scratch(
        bits.make_scratch(cases.n_cases, n_states, cases.data),
        make_scoring_scratch(state.scoring, parts),
        np.empty(most_states, np.int64),
        np.empty(most_states + 2, np.int64),
        np.empty(most_states + 2, np.int64),
        np.empty(2 * state.rules.merges_ahead, np.int64),
        np.empty(max(state.pool.sizes, default=0), np.int32),
        np.zeros(1),
    )


@bare
def _take_histogram(which: int, pool: Pool) -> int:
    at = pool.free[which]
    if at < 0:
        pool.used[0] += pool.sizes[which]
        return pool.used[0] - pool.sizes[which]
    pool.free[which] = next_free(at, pool.cells)
    return at


@bare
def _has_histograms(which: int, n: Int, pool: Pool) -> bool:
    at = pool.free[which]
    while n > 0 and at >= 0:
        at = next_free(at, pool.cells)
        n -= 1
    return pool.used[0] + n * pool.sizes[which] <= pool.cells.shape[0]


@bare
def _ask_for_room(
    n: Int, n_others: Int, n_cells: Int, n_counts: Int, n_words: Int, n_arcs: Int, sizes: Array, state: State
) -> None:
    wanted = state.wanted
    wanted[WANTED_LEAVES], wanted[WANTED_CELLS], wanted[WANTED_COUNTS] = n + n_others, n_cells, n_counts
    wanted[WANTED_SETS] = n
    wanted[WANTED_WORDS], wanted[WANTED_ARCS] = n_words, n_arcs
    for k in range(n):
        wanted[FIRST_WANTED_SET + k] = sizes[k]
    atomic_exchange(state.shared, SHORT, np.int64(1))


@bare
def add_leaf(target: int, cases: int, state: State) -> int:
    """Add a record for an uncounted leaf with this set of cases, and return its number; memory must suffice."""
    number = state.totals[N_LEAVES]
    leaf = state.leaves[number]
    state.totals[N_LEAVES] += 1
    leaf["target"], leaf["cases"], leaf["slot"] = target, cases, UNTESTED
    leaf["excluded"] = leaf["partner"] = leaf["histogram"] = leaf["max_children"] = leaf["ahead"] = -1
    leaf["gain"], leaf["exponent"], leaf["is_counted"], leaf["log_likelihood"] = np.inf, 0.0, 0, -np.inf
    leaf["states"], leaf["part"], leaf["partition"], leaf["n_outcomes"] = 0, 0, -1, state.nodes[target]["n_states"]
    leaf["region"], leaf["n_boxes"], leaf["n_words"] = 0, 1, 1
    leaf["test"], leaf["tests"], leaf["n_tests"] = -1, 0, 0
    leaf["counts"] = state.pool.used[1]
    state.pool.used[1] += state.nodes[target]["n_states"]
    for slot in range(N_SLOTS):
        clear_split(state.splits[N_SLOTS * number + slot], 0.0)
    return number


@bare
def set_exponent(leaf: Any, state: State) -> None:
    """Under BDeu, set the exponent of each state from the leaf's share of all parent assignments."""
    size, n_states = state.scoring.equivalent_sample_size, state.scoring.layout.n_states
    if size > 0.0:
        share = share_of(state.regions, leaf["region"], leaf["n_boxes"], n_states)
        leaf["exponent"] = size * share / n_states[leaf["target"]]


@bare
def _add_leaves(target: int, n: Int, is_parted: Int, sizes: Array, n_words: Int, n_arcs: Int, state: State) -> int:
    """Add records for n new leaves of these sizes, with their memory; return the first, or -1 if an array is too small.

    If a leaf is parted (1), they are preceded by a record for the piece that is split, which exists only as a test.
    """
    lock(state.shared, POOL)
    pool, node, totals = state.pool, state.nodes[target], state.totals
    which, n_counts = node["size_class"], (n + is_parted) * node["n_states"]
    first, cases = totals[N_LEAVES] + is_parted, -1
    if (
        first + n <= state.leaves.shape[0]
        and pool.used[1] + n_counts <= state.scoring.counts.shape[0]
        and totals[N_WORDS] + n_words <= state.regions.shape[0]
        and totals[N_ARCS] + n_arcs <= state.arcs.shape[0]
        and _has_histograms(which, n, pool)
    ):
        cases = first + 1 if state.rules.remote else place(sizes, n, state.cases)
    if cases >= 0:
        if is_parted:
            add_leaf(target, 0, state)
        for k in range(n):
            add_leaf(target, cases + k, state)
            state.leaves[first + k]["histogram"] = _take_histogram(which, pool)
        state.leaves[first]["region"], state.leaves[first]["tests"] = totals[N_WORDS], totals[N_ARCS]
        totals[N_WORDS] += n_words
        totals[N_ARCS] += n_arcs
    else:
        _ask_for_room(n, is_parted, n * pool.sizes[which], n_counts, n_words, n_arcs, sizes, state)
        first = -1
    unlock(state.shared, POOL)
    return first


@bare
def _count(leaf: Any, state: State, scratch: Scratch) -> None:
    scratch.estimated_ns[0] += count_leaf(leaf, state, scratch.part, scratch.counting)


@bare
def has_histogram(leaf: Any, state: State, scratch: Scratch) -> bool:
    """Have the leaf counted, here or by the host, if it has no histogram; return False if memory is short."""
    if leaf["histogram"] < 0:
        lock(state.shared, POOL)
        which = state.nodes[leaf["target"]]["size_class"]
        if _has_histograms(which, np.int64(1), state.pool):
            leaf["histogram"] = _take_histogram(which, state.pool)
        else:
            zero = np.int64(0)
            _ask_for_room(zero, zero, state.pool.sizes[which], zero, zero, zero, scratch.sizes, state)
        unlock(state.shared, POOL)
        if leaf["histogram"] < 0:
            return False
        if state.rules.remote:
            leaf["is_counted"] = 0
        else:
            _count(leaf, state, scratch)
    return True


@bare
def is_counted(leaf: Any, state: State) -> bool:
    """Return whether the leaf has a histogram, and no remote counter is yet to fill it in."""
    return leaf["histogram"] >= 0 and (not state.rules.remote or leaf["is_counted"] != 0)


@bare
def _wait(row: Int, what: Int, state: State) -> None:
    """Append an item to a row of `State.waiting`, for the host."""
    lock(state.shared, POOL)
    state.waiting[row, state.totals[N_STALE + row]] = what
    state.totals[N_STALE + row] += 1
    unlock(state.shared, POOL)


@bare
def _find_splits(at: Int, state: State, scratch: Scratch) -> None:
    score_splits(at, UNTESTED, -1, state, scratch.scoring)
    choose_split(at, state.nodes[state.leaves[at]["target"]], state)
    scratch.estimated_ns[0] += 4.0 * size_of(state.leaves[at]["target"], state.scoring.layout)


@bare
def score_leaf(at: Int, state: State, scratch: Scratch) -> None:
    """Find the best splits of a counted leaf."""
    _find_splits(at, state, scratch)
    free_if_spent(at, state)


@inlined
def score_again(at: Int, state: State, scratch: Scratch) -> bool:
    """Find the best splits of an existing leaf; False: not yet, since memory is short or it waits for the host."""
    leaf = state.leaves[at]
    drop_children(at, state)
    if gains_nothing(at, state):
        choose_split(at, state.nodes[leaf["target"]], state)
        return True
    if not has_histogram(leaf, state, scratch):
        return False
    if state.rules.weighs or not is_counted(leaf, state):
        _wait(np.int64(LEAVES_TO_SCORE), at, state)
        return False
    score_leaf(at, state, scratch)
    return True


@bare
def _list_possible(leaf: Any, split: Any, state: State, scratch: Scratch) -> None:
    """Set the mask of those states of the split's variable that can occur at the leaf."""
    variable, n_states, words, mask = (
        split["variable"],
        state.scoring.layout.n_states,
        state.regions,
        scratch.scoring.region.mask,
    )
    for k in range(mask_words(n_states[variable])):
        mask[k] = np.uint64(0)
    at = leaf["region"]
    for _ in range(leaf["n_boxes"]):
        entry, is_free = at + 1, True
        for _ in range(words[at]):
            n_mask = mask_words(n_states[words[entry]])
            if words[entry] == variable:
                is_free = False
                for k in range(n_mask):
                    mask[k] |= words[entry + 1 + k]
            entry += 1 + n_mask
        if is_free:
            for state_ in range(n_states[variable]):
                mask[state_ // 64] |= np.uint64(1) << np.uint64(state_ % 64)
        at = entry


@bare
def _kept_states(piece: Int, leaf: Any, split: Any, state: State) -> Int:
    """Return the mask of target states whose cases a piece of a leaf keeps; 0: all.

    It needs only the cases in its own states. If these are half of the leaf's or more, copying all of them is cheaper.
    """
    if piece == SWITCH:
        return np.int64(0)
    states, n, n_own = states_of_piece(piece, leaf, split["part"], state.scoring), np.int64(0), np.int64(0)
    for k in range(state.nodes[leaf["target"]]["n_states"]):
        count = state.scoring.counts[leaf["counts"] + k]
        n, n_own = n + count, n_own + count * (states >> k & 1)
    return states if 2 * n_own < n else np.int64(0)


@bare
def _size_pieces(leaf: Any, split: Any, counts: Array, state: State, scratch: Scratch) -> None:
    """Compute the number of cases of each new leaf of a parted one, from its counts for the tested variable."""
    n_classes, new = state.scoring.layout.n_states[leaf["target"]], np.int64(0)
    for number in range(n_pieces(split)):
        piece = piece_at(np.int64(number), split)
        states, is_split = _kept_states(piece, leaf, split, state), piece == split["piece"]
        for cell in range(counts.shape[0]):
            if states == 0 or states >> (cell % n_classes) & 1:
                scratch.sizes[new + (scratch.groups[cell // n_classes] if is_split else 0)] += counts[cell]
        new += n_kids(split) if is_split else np.int64(1)


@inlined
def _plan_split(leaf: Any, split: Any, state: State, scratch: Scratch) -> None:
    """Determine to which child each state goes, and the number of cases of each new leaf.

    In a complete split, states that cannot occur at the leaf go to the last child.
    """
    layout, groups, sizes = state.scoring.layout, scratch.groups, scratch.sizes
    n_classes, n_states = layout.n_states[leaf["target"]], layout.n_states[split["variable"]]
    block = leaf["histogram"] + base_of(split["variable"], leaf["target"], layout) * n_classes
    n, begin = n_kids(split), first_kid(split)
    is_partial = split["kind"] == COMPLETE and n < n_states
    if is_partial:
        _list_possible(leaf, split, state, scratch)
    for k in range(split["n_children"]):
        sizes[k] = 0
    n_before = 0
    for value in range(n_states):
        if is_partial:
            groups[value] = n - 1
            if has_state(scratch.scoring.region.mask, np.int64(0), np.int64(value)):
                groups[value] = n_before
                n_before += 1
        else:
            groups[value] = child_of(np.int64(value), split["kind"], split["state"], n_states)
        if split["part"] == 0:
            for k in range(n_classes):
                sizes[begin + groups[value]] += state.pool.cells[block + value * n_classes + k]
    if split["part"] != 0:
        _size_pieces(leaf, split, state.pool.cells[block : block + n_states * n_classes], state, scratch)


@inlined
def _cut_regions(leaf: Any, split: Any, first: Int, state: State, scratch: Scratch) -> None:
    """Compute the regions of new leaves, and for a complete split with impossible states their mask, for replay."""
    n_states, words, mask = state.scoring.layout.n_states, state.regions, scratch.scoring.region.mask
    variable, to = split["variable"], state.leaves[first]["region"]
    if split["part"] != 0:
        for new in range(first, first + split["n_children"]):
            whole = state.leaves[new]
            whole["region"], whole["n_boxes"], whole["n_words"] = leaf["region"], leaf["n_boxes"], leaf["n_words"]
            whole["exponent"] = leaf["exponent"]
        first += first_kid(split)
    if split["kind"] == COMPLETE and n_kids(split) < n_states[variable]:
        split["possible"] = to
        for k in range(mask_words(n_states[variable])):
            words[to] = mask[k]
            to += 1
    for child in range(n_kids(split)):
        for k in range(mask_words(n_states[variable])):
            mask[k] = np.uint64(0)
        for value in range(n_states[variable]):
            if scratch.groups[value] == child:
                mask[value // 64] |= np.uint64(1) << np.uint64(value % 64)
        new = state.leaves[first + child]
        n_boxes, end = cut_region(words, leaf["region"], leaf["n_boxes"], variable, mask, n_states, to)
        new["region"], new["n_boxes"], new["n_words"] = to, n_boxes, end - to
        to = end
        set_exponent(new, state)


@bare
def _copy_counts(whole: Array, states: Int, n_classes: Int, to: Array) -> None:
    """Copy the cells of a histogram for target states in a bit mask (0: all), and set the others to zero."""
    for cell in range(to.shape[0]):
        to[cell] = whole[cell] if states == 0 or states >> (cell % n_classes) & 1 else 0


@inlined
def _count_children(parent: Any, states: Int, begin: Int, n: Int, first: Int, state: State, scratch: Scratch) -> None:
    """Count the smaller of n children, and get the largest (the earliest of equal ones) by subtraction.

    They contain the parent's cases whose target is in `states`, a bit mask; 0: all.
    """
    sizes, largest = scratch.sizes[begin:], 0
    for k in range(1, n):
        if sizes[k] > sizes[largest]:
            largest = k
    rest, whole = histogram_of(state.leaves[first + largest], state), histogram_of(parent, state)
    _copy_counts(whole, states, state.nodes[parent["target"]]["n_states"], rest)
    for k in range(n):
        if k != largest:
            part_of_it = histogram_of(state.leaves[first + k], state)
            if sizes[k] == 0:
                for cell in range(rest.shape[0]):
                    part_of_it[cell] = 0
            else:
                _count(state.leaves[first + k], state, scratch)
                for cell in range(rest.shape[0]):
                    rest[cell] -= part_of_it[cell]


@bare
def _make_pieces(at: Int, first: Int, split: Any, state: State, scratch: Scratch) -> None:
    """Set the target states of the new leaves of a parted leaf, and cases and histograms of pieces that stay whole."""
    leaf, new = state.leaves[at], first
    for number in range(n_pieces(split)):
        piece = piece_at(np.int64(number), split)
        is_split = piece == split["piece"]
        for child in range(new, new + (n_kids(split) if is_split else 1)):
            set_piece(state.leaves[child], piece, at, leaf, split["part"], state.scoring)
            if is_split:
                state.leaves[child]["test"] = first - 1
        if is_split:
            new += n_kids(split)
        else:
            if not state.rules.remote:
                _keep_whole(leaf, _kept_states(piece, leaf, split, state), state.leaves[new], state, scratch)
            new += 1


@bare
def _keep_whole(leaf: Any, states: Int, whole: Any, state: State, scratch: Scratch) -> None:
    """Set the cases (all, or those with the target in `states`) and the counts of a piece that is not split."""
    cases, target, to = state.cases, leaf["target"], whole["cases"]
    n_classes = state.nodes[target]["n_states"]
    if states == 0:
        copy(cases.sets[leaf["cases"]], cases.sets[to], cases)
    else:
        for value in range(n_classes):
            scratch.groups[value] = 0
        cut_some(
            cases.sets[leaf["cases"]],
            target,
            states,
            target,
            scratch.groups,
            cases.sets[to : to + 1],
            cases,
            scratch.counting.by_rows.rows,
            scratch.fill,
        )
    _copy_counts(histogram_of(leaf, state), states, n_classes, histogram_of(whole, state))


@bare
def make_children(at: Int, slot: Int, state: State, scratch: Scratch) -> None:
    """Make the new leaves of one of the leaf's splits, scored or waiting for the host, unless memory is short."""
    leaf, split, cases = state.leaves[at], state.splits[N_SLOTS * at + slot], state.cases
    if not has_histogram(leaf, state, scratch):
        return
    if state.rules.remote and not leaf["is_counted"]:
        drop_children(at, state)
        _wait(np.int64(LEAVES_TO_SCORE), at, state)
        return
    n, n_states = split["n_children"], state.scoring.layout.n_states[split["variable"]]
    _plan_split(leaf, split, state, scratch)
    n_words, is_parted = np.int64(0), np.int64(split["part"] != 0)
    if state.rules.tracks_regions:
        n_words = mask_words(n_states) + n * (leaf["n_words"] + leaf["n_boxes"] * (1 + mask_words(n_states)))
    first = _add_leaves(leaf["target"], n, is_parted, scratch.sizes, n_words, np.int64(0), state)
    if first < 0:
        return
    begin, end = first_kid(split), first_kid(split) + n_kids(split)
    if not state.rules.remote:
        sets, groups, rows, fill = (
            state.leaves[first]["cases"],
            scratch.groups,
            scratch.counting.by_rows.rows,
            scratch.fill,
        )
        whole, kids = cases.sets[leaf["cases"]], cases.sets[sets + begin : sets + end]
        states = _kept_states(split["piece"], leaf, split, state) if is_parted else np.int64(0)
        if states != 0:
            cut_some(whole, leaf["target"], states, split["variable"], groups[:n_states], kids, cases, rows, fill)
        else:
            cut(whole, split["variable"], groups[:n_states], kids, cases, rows, fill)
        _count_children(leaf, states, begin, end - begin, first + begin, state, scratch)
    if state.rules.tracks_regions:
        _cut_regions(leaf, split, first, state, scratch)
    for child in range(first, first + n):
        state.leaves[child]["test"], state.leaves[child]["n_tests"] = at, 1
        inherit(state.leaves[child], leaf)
    if is_parted:
        _make_pieces(at, first, split, state, scratch)
    split["first_child"] = first
    if state.rules.weighs or state.rules.remote:
        _wait(np.int64(LEAVES_WITH_CHILDREN), N_SLOTS * at + slot, state)
    else:
        for child in range(first, first + n):
            score_leaf(child, state, scratch)


@inlined
def _join_cases(one: Any, two: Any, merged: Any, state: State) -> None:
    """Join the sets of two leaves, or ask the host to."""
    cases = state.cases
    if state.rules.remote:
        lock(state.shared, POOL)
        row = state.joined[state.totals[N_JOINED]]
        row[0], row[1], row[2] = one["cases"], two["cases"], merged["cases"]
        state.totals[N_JOINED] += 1
        unlock(state.shared, POOL)
    else:
        join(cases.sets[one["cases"]], cases.sets[two["cases"]], cases.sets[merged["cases"]], cases)


@inlined
def _join_tests(one: Any, two: Any, merged: Any, arcs: Array) -> None:
    """Write the sorted union of the tests that lead to two leaves."""
    a, b, n = 0, 0, 0
    while a < one["n_tests"] or b < two["n_tests"]:
        first = one["test"] if one["n_tests"] == 1 else arcs[one["tests"] + a]
        second = two["test"] if two["n_tests"] == 1 else arcs[two["tests"] + b]
        takes_first = b == two["n_tests"] or (a < one["n_tests"] and first <= second)
        takes_second = a == one["n_tests"] or (b < two["n_tests"] and second <= first)
        arcs[merged["tests"] + n] = first if takes_first else second
        a, b, n = a + takes_first, b + takes_second, n + 1
    merged["n_tests"] = n
    merged["test"] = arcs[merged["tests"]]


@bare
def make_union(first: Int, second: Int, state: State, scratch: Scratch) -> Int:
    """Make the union of two leaves, unscored, and uncounted if the rows are elsewhere; -1: memory is short."""
    one, two, cases = state.leaves[first], state.leaves[second], state.cases
    if not state.rules.remote:
        scratch.sizes[0] = cases.sets[one["cases"]]["size"] + cases.sets[two["cases"]]["size"]
    n_words = one["n_words"] + two["n_words"] if state.rules.tracks_regions else np.int64(0)
    n_arcs = one["n_tests"] + two["n_tests"]
    new = _add_leaves(one["target"], np.int64(1), np.int64(0), scratch.sizes, n_words, n_arcs, state)
    if new < 0:
        return np.int64(new)
    merged = state.leaves[new]
    inherit(merged, one)
    _join_cases(one, two, merged, state)
    if is_counted(one, state) and is_counted(two, state):
        both, a, b = histogram_of(merged, state), histogram_of(one, state), histogram_of(two, state)
        for cell in range(both.shape[0]):
            both[cell] = a[cell] + b[cell]
        merged["is_counted"] = 1
    elif not state.rules.remote:
        _count(merged, state, scratch)
    if state.rules.tracks_regions:
        n_boxes, end = join_regions(
            state.regions,
            one["region"],
            one["n_boxes"],
            two["region"],
            two["n_boxes"],
            state.scoring.layout.n_states,
            merged["region"],
            scratch.scoring.region,
        )
        merged["n_boxes"], merged["n_words"] = n_boxes, end - merged["region"]
        set_exponent(merged, state)
    _join_tests(one, two, merged, state.arcs)
    return np.int64(new)


@inlined
def make_merged(target: int, state: State, scratch: Scratch) -> bool:
    """Make the union of the node's best merge; False: not yet, since memory is short or it waits for the host."""
    node = state.nodes[target]
    at = node["merge_leaf"]
    first, second = state.leaves[at], state.leaves[at]["partner"]
    drop_merged(node, state)
    is_ahead = first["ahead"] >= 0 and first["ahead_with"] == second
    new = first["ahead"] if is_ahead else make_union(at, second, state, scratch)
    if new < 0:
        return False
    node["merged"], node["merged_first"], node["merged_second"] = new, at, second
    if is_ahead:
        first["ahead"] = -1
    elif state.rules.weighs or not is_counted(state.leaves[new], state):
        _wait(np.int64(NODES_WITH_MERGED), target, state)
        return False
    else:
        score_leaf(new, state, scratch)
    return True


@bare
def add_initial_leaf(target: int, cases: int, place: Array, state: State) -> None:
    """Add a leaf that a search begins with, uncounted and unscored; `place` contains its region and tests."""
    number = add_leaf(target, cases, state)
    leaf = state.leaves[number]
    leaf["region"], leaf["n_boxes"], leaf["n_words"], leaf["tests"], leaf["n_tests"] = (
        place[0],
        place[1],
        place[2],
        place[3],
        place[4],
    )
    if leaf["n_tests"] > 0:
        leaf["test"] = state.arcs[leaf["tests"]]
    set_exponent(leaf, state)
    link(number, state)


@bare
def _plan_all(splits: Array, groups: Array, largest: Array, kids: Array, state: State, scratch: Scratch) -> None:
    at, new = 0, np.int64(0)
    for k in range(splits.shape[0]):
        split, leaf = state.splits[splits[k]], state.leaves[splits[k] // N_SLOTS]
        _plan_split(leaf, split, state, scratch)
        for value in range(state.scoring.layout.n_states[split["variable"]]):
            groups[at] = scratch.groups[value]
            at += 1
        begin, end = first_kid(split), first_kid(split) + n_kids(split)
        largest[k] = begin
        for child in range(begin + 1, end):
            if scratch.sizes[child] > scratch.sizes[largest[k]]:
                largest[k] = child
        for child in range(split["n_children"]):
            kids[new] = child - begin if begin <= child < end else -1
            new += 1


@jit
def plan_splits(splits: Array, groups: Array, largest: Array, kids: Array, state: State, scratch: Scratch) -> None:
    """Determine for each split the child that each state goes to, split after split, and the split's largest child.

    The largest child (the earliest of equal ones) need not be counted. `kids` is set to the number of each new leaf
    among the children, or to -1 if it is a piece of a parted leaf that stays whole.
    """
    _plan_all(splits, groups, largest, kids, refer(state), refer(scratch))


@bare
def _take_counts(at: Int, place: Int, counts: Array, state: State) -> None:
    """Copy a leaf's histogram from `counts`, where it begins at `place`; -1: it was not counted elsewhere."""
    if place >= 0:
        out = histogram_of(state.leaves[at], state)
        for cell in range(out.shape[0]):
            out[cell] = counts[place + cell]
        state.leaves[at]["is_counted"] = 1


@bare
def _subtract(parent: Any, split: Any, largest: Int, state: State) -> None:
    """Compute the largest child of a split, its parent minus the other children; pieces that stay whole get a copy."""
    first, last = first_kid(split), first_kid(split) + n_kids(split) - 1
    rest = histogram_of(state.leaves[split["first_child"] + largest], state)
    whole = histogram_of(parent, state)
    for cell in range(rest.shape[0]):
        rest[cell] = whole[cell]
    for child in range(split["n_children"]):
        part_of_it = histogram_of(state.leaves[split["first_child"] + child], state)
        if not first <= child <= last:
            for cell in range(rest.shape[0]):
                part_of_it[cell] = whole[cell]
            state.leaves[split["first_child"] + child]["is_counted"] = 1
        elif child != largest:
            for cell in range(rest.shape[0]):
                rest[cell] -= part_of_it[cell]
    state.leaves[split["first_child"] + largest]["is_counted"] = 1


@jit
def fill_in(
    leaves: Array,
    begins: Array,
    splits: Array,
    largest: Array,
    places: Array,
    counts: Array,
    begin: int,
    end: int,
    scores: bool,
    state: State,
    scratch: Scratch,
) -> None:
    """Copy histograms that were counted elsewhere into the pool, and score their leaves while they are in a cache.

    Groups begin to end - 1 are processed; `begins` delimits them. The last groups are the children of `splits`: those
    not counted are computed by subtraction. Histograms are released later, when this can no longer be repeated after an
    interrupt.
    """
    state, scratch = refer(state), refer(scratch)
    n_others = begins.shape[0] - 1 - splits.shape[0]
    for k in range(begin, end):
        for j in range(begins[k], begins[k + 1]):
            _take_counts(leaves[j], places[j], counts, state)
        if k >= n_others:
            at = splits[k - n_others]
            _subtract(state.leaves[at // N_SLOTS], state.splits[at], largest[k - n_others], state)
        if scores:
            for j in range(begins[k], begins[k + 1]):
                _find_splits(leaves[j], state, scratch)
