"""State of a search over leaves: every record and array, defined once.

Each node (a target) has a doubly linked list of its leaves, in order of creation. A leaf stores its best splits; the
children of a split may have been made ahead of time (`first_child`). The log of the search is an array of steps. Steps
that a node has applied but that are not committed yet are *pending*.
"""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.types import Array
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.counting.sets import Cases
from leafwise.kernels.scoring.rises import Rises

LEAF = np.dtype(
    [
        # fields that are read most often come first and share one cache line
        ("gain", np.float64),  # of the best split; 0: no split gains; inf: not scored; an upper bound if `is_stale`
        ("merge_gain", np.float64),  # of the best merge with a later leaf; an upper bound if `partner` is NO_LEAF
        ("log_likelihood", np.float64),  # log marginal likelihood of the leaf's cases
        ("next", np.int64),  # next leaf in the node's list; -1: none
        ("partner", np.int64),  # the later leaf of the best merge; -1: none; NO_LEAF: gone, and not yet replaced
        ("counts", np.int64),  # index of the target's counts in Scoring.counts
        ("test", np.int64),  # first test that leads here, named by the leaf that it split; -1: none (root)
        ("n_tests", np.int64),  # number of tests that lead here; more than one after merges
        ("tests", np.int64),  # index of the sorted list of these tests in State.arcs, if there are several
        ("exponent", np.float64),  # BDeu: exponent of each state of the target
        ("exponents", np.int64),  # prior network: index of the states' exponents in State.exponents
        ("target", np.int64),
        ("states", np.int64),  # states of the target that the leaf is about, as a bit mask; 0: all
        ("part", np.int64),  # switch: bit mask of the states of its first outcome; 0: not a switch
        ("partition", np.int64),  # switch: the leaf that was parted; -1: not a switch
        ("n_outcomes", np.int64),  # number of outcomes that the leaf has a distribution over
        ("slot", np.int64),  # slot of the best split: TESTED or UNTESTED
        ("max_children", np.int64),  # limit on the children of a split when the leaf was scored; -1: not scored
        ("version", np.int64),  # the node's version when the leaf was scored
        ("excluded", np.int64),  # variable that the fallback split excludes; -1: no fallback is known
        ("histogram", np.int64),  # index of its first cell in Pool.cells; -1: none, counted on demand
        ("is_counted", np.int64),  # remote rows only: whether the host has filled in the histogram
        ("cases", np.int64),  # the set of its cases: index in Cases.sets, or name on a remote counter
        ("region", np.int64),  # index of its boxes in State.regions (regions.py)
        ("n_boxes", np.int64),  # number of boxes
        ("n_words", np.int64),  # number of 64-bit words that the boxes occupy
        ("previous", np.int64),  # previous leaf in the node's list; -1: none
        ("ahead", np.int64),  # union of this leaf and `ahead_with`, made ahead of time; -1: none
        ("ahead_with", np.int64),
    ],
    align=True,
)

SPLIT = np.dtype(
    [
        ("gain", np.float64),  # before subtracting what the node charges for the slot
        ("variable", np.int64),  # -1: no split
        ("kind", np.int64),  # COMPLETE, ONE_STATE, BELOW or BELOW_OR_MISSING
        ("state", np.int64),  # the state of the first child, or the threshold below which states go to it
        ("part", np.int64),  # bit mask of states by which the leaf is parted before a piece is split; 0: not parted
        ("piece", np.int64),  # the piece that is split: SWITCH, PART or REST (own_values.py)
        ("n_children", np.int64),  # number of new leaves, including pieces that stay whole
        ("first_child", np.int64),  # number of the first new leaf, if they have been made; -1: not yet
        ("possible", np.int64),  # index in State.regions of the mask of possible states; -1: all are possible
    ],
    align=True,
)
COMPLETE, ONE_STATE, BELOW, BELOW_OR_MISSING = range(4)  # kinds of splits
# The splits of leaf k are at 3 k + slot. Slots: the best split on a variable that the node's graph already tests, the
# best on another variable, and the best on another variable except the contested one (fallback.py).
TESTED, UNTESTED, FALLBACK = range(3)
N_SLOTS = 3

NODE = np.dtype(
    [
        ("split_gain", np.float64),  # of the best split of any leaf
        ("merge_gain", np.float64),  # of the best merge
        ("best_gain", np.float64),  # of the best operator of either kind
        ("best_kind", np.int64),  # NOTHING, SPLIT_STEP or MERGE_STEP
        ("n_states", np.int64),  # of the target
        ("size_class", np.int64),  # index of its histograms' size in Pool.sizes
        ("max_children", np.int64),  # limit on the children of the next split
        ("head", np.int64),  # first leaf of the list; -1: none
        ("tail", np.int64),  # last leaf of the list; -1: none
        ("n_leaves", np.int64),  # including pending steps
        ("n_committed_leaves", np.int64),
        ("n_parents", np.int64),  # committed arcs
        ("split_leaf", np.int64),  # leaf of the best split; -1: none
        ("merge_leaf", np.int64),  # older leaf of the best merge, the other is its partner; -1: none
        ("merged", np.int64),  # union of `merged_first` and `merged_second`, if it has been made; -1: not yet
        ("merged_first", np.int64),
        ("merged_second", np.int64),
        ("merges_known", np.int64),  # whether the leaves' merge gains and partners are valid
        ("first_pending", np.int64),  # linked list of pending steps; -1: none
        ("last_pending", np.int64),
        ("n_candidates", np.int64),  # number of variables that its graph may test, for the structure prior
        ("n_tests", np.int64),  # tests in its graph, including pending steps
        ("n_tested", np.int64),  # distinct variables among these tests
        ("tested_cost", np.float64),  # charged by the structure prior for another test of a tested variable
        ("untested_cost", np.float64),  # charged for a test of an untested variable
        ("later_cost", np.float64),  # least charge for a now untested variable: now, or once another leaf tests it
        ("version", np.int64),  # incremented when the set of tested variables or the leaves' pruning threshold changes
    ],
    align=True,
)
NOTHING, SPLIT_STEP, MERGE_STEP = range(3)  # best_kind

STEP = np.dtype(
    [
        ("gain", np.float64),
        ("log_prior", np.float64),  # structure prior's share of the gain
        ("target", np.int64),
        ("leaf", np.int64),  # the leaf that is split, or the first leaf of a merge
        ("other", np.int64),  # second leaf of a merge; -1: a split
        ("variable", np.int64),  # variable, kind, state, part, piece and possible: as in SPLIT
        ("kind", np.int64),
        ("state", np.int64),
        ("part", np.int64),
        ("piece", np.int64),
        ("possible", np.int64),
        ("is_first_test", np.int64),  # whether it is the first test of the variable in the node's graph
        ("first_new", np.int64),  # number of the first new leaf
        ("n_new", np.int64),  # number of new leaves
        ("previous", np.int64),  # previous pending step of the node; -1: none
        ("next", np.int64),  # next pending step of the node; -1: none
    ],
    align=True,
)

# Why `advance` returned: no operator gains; the host is needed (memory, counts, weights, time); the step limit is
# reached; a merge was committed. CONTINUE is internal.
FINISHED, NEEDS_HOST, AT_STEP_LIMIT, MERGED, CONTINUE = range(5)
# Indices in State.totals. The last three are the lengths of the rows of State.waiting.
N_COMMITTED, N_STEPS, N_LEAVES, N_DROPPED, N_WORDS, N_ARCS, N_JOINED, N_STALE, N_SPLIT, N_MERGED = range(10)
N_TOTALS = N_MERGED + 1
NO_LEAF = -2  # replaces the number of a leaf that is gone
BLOCK = 16  # nodes per entry of State.most_gains
# Indices in State.shared, each in a cache line of its own. POOL: lock of all shared memory. NEXT, N_URGENT, N_QUEUED:
# next position in the work queue, number of urgent entries, number of all entries. N_BUSY: helper threads that are
# running nodes. N_BEGUN, N_ENDED: number of runs whose outcome has begun, and finished, to be published. OVER: the
# leader thread has returned. SHORT: an array is too small. N_IDLE: threads that can help to count.
POOL, NEXT, N_URGENT, N_QUEUED, N_BUSY, N_BEGUN, N_ENDED, OVER, SHORT, N_IDLE = range(0, 80, 8)
# Then come N_OFFERS places, of OFFER numbers each, for sets that several threads count together (counting_together.py).
# Within a place TAKEN and ADDING are locks, the other four are atomic counters, and the PARTED_* numbers are plain:
# they are written before N_PARTS is set.
OFFERS, N_OFFERS, OFFER = 80, 4, 56
TAKEN, N_PARTS, NEXT_PART, N_COUNTED, N_HELPING, ADDING = range(0, 48, 8)
PARTED_SET, PARTED_TARGET, PARTED_TO, PARTED_LENGTH = range(48, 52)
N_SHARED = OFFERS + N_OFFERS * OFFER
CLOSED = 1 << 40  # value of NEXT that closes the queue
# Indices in State.wanted: by how much each array is too short; then the sizes of the sets of cases.
WANTED_LEAVES, WANTED_CELLS, WANTED_COUNTS, WANTED_WORDS, WANTED_ARCS, WANTED_SETS, FIRST_WANTED_SET = range(7)
SPARE_STEPS = 1024  # spare entries of State.steps; more than there are threads


class Pool(NamedTuple):
    """Memory pool of histograms, with a free list for each size."""

    cells: Array
    free: Array  # by size class: index of the first free histogram, which contains a link to the next; -1: none
    sizes: Array  # by size class: number of cells
    used: Array  # number of cells handed out so far, and number of entries of Scoring.counts in use
    plenty: int  # cells in use beyond which histograms that may not be needed again are released
    too_many: int  # cells in use beyond which all histograms are released once scored, if rows are local


class Scoring(NamedTuple):
    """Everything that gains depend on besides counts: priors, operators, and the variables that may be tested."""

    layout: Layout
    allowed: Array  # allowed[target, variable]: whether the target's graph may test the variable, apart from cycles
    descendants: Array  # descendants[target] is a row of bits: testing one of these would create a cycle
    counts: Array  # target's counts in each leaf; a leaf's begin at its `counts`
    rises: Rises
    cell_rises: Array  # by number of states of a target: the row of `rises` for a cell
    total_rises: Array  # by number of states of a target: the row of `rises` for a leaf's total
    multiples: Array  # multiples[r, n]: the row for n states together of a target with r; empty without tables
    arities: Array  # by variable: index of its number of states among the distinct ones
    n_ordered: Array  # by variable: number of its states that are ordered; 0: none
    log_ways: Array  # by variable: charged by the structure prior for the way in which a test splits it
    equivalent_sample_size: float  # of BDeu; 0: another prior
    log_kappa: float
    shared_cost: float  # charged for an arc that leads to a shared leaf; refunded when that leaf is split
    charges_tests: bool
    charges_parents: bool
    complete: bool  # complete splits are allowed
    binary: bool  # splits of one state against the others are allowed
    ordered: bool  # splits at a threshold are allowed
    own: bool  # graphs may test their own variable
    has_all_pairs: bool  # all variables are binary, and histograms contain a block for each


class State(NamedTuple):
    """Everything that changes while operators are applied."""

    leaves: Array  # of LEAF
    splits: Array  # of SPLIT, N_SLOTS per leaf
    nodes: Array  # of NODE
    targets: Array  # nodes that are searched
    pool: Pool
    cases: Cases
    scoring: Scoring
    exponents: Array  # prior network: exponents of leaves, one per state; else empty
    regions: Array  # words: boxes of leaves, and masks of possible states
    arcs: Array  # lists of tests that lead to leaves
    tested: Array  # tested[target] is a row of bits: variables that its graph tests, including pending steps
    ancestors: Array  # ancestors[i] is a row of bits
    spare_bits: Array  # two rows of bits, scratch memory of acyclic.py
    is_parent: Array  # is_parent[target, variable]: committed arcs
    steps: Array  # of STEP: all steps, pending ones included, in the order in which they were applied
    committed: Array  # numbers of the committed steps, in order
    dropped: Array  # leaves that will not be needed again
    waiting: Array  # for the host, a row each: leaves to rescore, splits with new children, nodes with a new union
    joined: Array  # sets of cases for the host to join: the two, and the name of their union
    totals: Array  # N_COMMITTED and so on
    wanted: Array  # WANTED_LEAVES and so on: what an allocation that failed needs
    next_gains: Array  # [kind, node]: gain of the node's next step if it is a split (0) or a merge (1); else 0
    most_gains: Array  # [kind, block]: maximum over each BLOCK of nodes
    next_tests: Array  # by node: variable that its next step tests; -1: none
    may_be_invalid: Array  # by node: hint that some of its pending steps may be ruled out
    owners: Array  # by node: lock; only the thread that holds it changes the node
    queue: Array  # work queue of nodes to run ahead: urgent ones from the front, the others from the back
    least: Array  # gain that operators of urgent nodes (0) and of others (1) need to be applied
    shared: Array  # atomics that threads share: POOL and so on
    rules: "Rules"


class Rules(NamedTuple):
    """What the search may do."""

    merge: bool
    splits_first: bool  # merge only if no split gains anywhere
    most_parents: int
    most_leaves: int
    limits_leaves: bool
    most_children: int  # of any split
    runs_ahead: bool  # whether a node may have several pending steps; not if there are limits, or parents are deleted
    stop_at_merge: bool  # return after each merge, so that the host can look for parents that have become irrelevant
    weighs: bool  # exponents come from the host, so new leaves wait for them before they are scored
    remote: bool  # counts come from the host, too, since the rows are elsewhere
    merges_ahead: int  # number of merges that a node prepares while it waits for counts
    tracks_regions: bool  # exponents or splits depend on the regions of leaves
