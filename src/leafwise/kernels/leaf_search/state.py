"""The state of a search over leaves: every field of it, once.

Every node (a target) keeps a list of its leaves in order of creation. A leaf knows its best splits, and the leaves that
these make may already be there (`first_child`). The search log is a list of steps; those of a node that are applied but
not committed are *pending*.
"""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.types import Array
from leafwise.kernels.counting.arrays import Layout
from leafwise.kernels.counting.sets import Cases
from leafwise.kernels.scoring.rises import Rises

LEAF = np.dtype(
    [
        # what is looked at again and again comes first: it is in one cache line
        ("gain", np.float64),  # of the best split; 0: none gains, inf: to be scored; may be a bound (is_stale)
        ("merge_gain", np.float64),  # of the best merge with a later leaf of the node; perhaps a bound (`partner`)
        ("log_likelihood", np.float64),  # log marginal likelihood of the leaf's cases
        ("next", np.int64),  # in the node's list
        ("partner", np.int64),  # of the best merge; -1: there is none; NO_LEAF: it went, and no other was sought
        ("counts", np.int64),  # where the target's counts begin
        ("test", np.int64),  # the test that leads here, by the record it was made of; where several do,
        ("n_tests", np.int64),  # ... how many they are,
        ("tests", np.int64),  # ... and where the list of them begins
        ("exponent", np.float64),  # of each state, where all states have the same
        ("exponents", np.int64),  # where the exponents of the states begin, where they differ
        ("target", np.int64),
        ("states", np.int64),  # those of the target's that it is about, as bits; 0: all
        ("part", np.int64),  # of a switch: the states of its first outcome, as bits; 0: it is no switch
        ("partition", np.int64),  # of a switch: the leaf that was parted; else -1
        ("n_outcomes", np.int64),  # that it has a distribution of
        ("slot", np.int64),  # which of its splits is the best
        ("max_children", np.int64),  # the limit under which it was scored; -1: yet to be scored
        ("version", np.int64),  # of the node, when it was scored
        ("excluded", np.int64),  # the variable that the fallback split leaves out; -1: no fallback is known
        ("histogram", np.int64),  # where it begins; -1: there is none, and it is counted when needed
        ("is_counted", np.int64),  # whether the host has filled it in; only where it is the host who counts
        ("cases", np.int64),  # the set of its cases
        ("region", np.int64),  # where its boxes begin (regions.py),
        ("n_boxes", np.int64),  # ... how many they are,
        ("n_words", np.int64),  # ... and how many words they take
        ("previous", np.int64),  # in the node's list
        ("ahead", np.int64),  # the leaf that a merge with another makes, which was made ahead; -1: none was,
        ("ahead_with", np.int64),  # ... and that other leaf
    ],
    align=True,
)

SPLIT = np.dtype(
    [
        ("gain", np.float64),  # without what the node charges for its slot
        ("variable", np.int64),  # -1: there is none
        ("kind", np.int64),
        ("state", np.int64),
        ("part", np.int64),  # the states by which the leaf is parted, as bits, before a piece is split; 0: it is not
        ("piece", np.int64),  # which (own_values.py)
        ("n_children", np.int64),
        ("first_child", np.int64),  # the leaves it makes, once they are there; -1 before
        ("possible", np.int64),  # where the states that can occur are, if not all of them can; else -1
    ],
    align=True,
)
COMPLETE, ONE_STATE, BELOW, BELOW_OR_MISSING = range(4)  # kinds of splits
# The splits of leaf k are 3 k + slot: on variables that the node's graph tests already, on others, and on others but
# for the one that another node is about to rule out.
TESTED, UNTESTED, FALLBACK = range(3)
N_SLOTS = 3

NODE = np.dtype(
    [
        ("split_gain", np.float64),  # of the best leaf's best split
        ("merge_gain", np.float64),
        ("best_gain", np.float64),  # of the best operator, of either kind
        ("best_kind", np.int64),
        ("n_states", np.int64),  # of the target
        ("size_class", np.int64),  # of its histograms, among those of all nodes
        ("max_children", np.int64),  # that a split may have
        ("head", np.int64),  # the list of leaves
        ("tail", np.int64),
        ("n_leaves", np.int64),
        ("n_committed_leaves", np.int64),
        ("n_parents", np.int64),  # committed arcs
        ("split_leaf", np.int64),
        ("merge_leaf", np.int64),  # the older leaf of the best merge; its partner is the other
        ("merged", np.int64),  # the leaf that a merge makes, once it is there; -1 before
        ("merged_first", np.int64),  # ... and of which two
        ("merged_second", np.int64),
        ("merges_known", np.int64),
        ("first_pending", np.int64),  # a linked list of steps
        ("last_pending", np.int64),
        ("n_candidates", np.int64),  # variables that its graph may test: what the structure prior counts
        ("n_tests", np.int64),  # of its graph, pending steps included
        ("n_tested", np.int64),  # variables
        ("tested_cost", np.float64),  # what the structure prior charges for another test of one of these,
        ("untested_cost", np.float64),  # ... for a test of another variable,
        ("later_cost", np.float64),  # ... and, at least, for one of another, now or when it is tested already
        ("version", np.int64),  # counts the changes of which variables are tested, and of what leaves leave out
    ],
    align=True,
)
NOTHING, SPLIT_STEP, MERGE_STEP = range(3)  # best_kind

STEP = np.dtype(
    [
        ("gain", np.float64),
        ("log_prior", np.float64),  # the part of the gain that is the structure prior's
        ("target", np.int64),
        ("leaf", np.int64),
        ("other", np.int64),  # the second leaf of a merge; -1: a split
        ("variable", np.int64),
        ("kind", np.int64),
        ("state", np.int64),
        ("part", np.int64),
        ("piece", np.int64),
        ("possible", np.int64),
        ("is_first_test", np.int64),  # of the variable, in the node's graph
        ("first_new", np.int64),
        ("n_new", np.int64),
        ("previous", np.int64),  # among the pending steps of its node
        ("next", np.int64),
    ],
    align=True,
)

# What a call came back for: no operator gains; it needs the host (memory, counts, weights); enough steps; a merge.
FINISHED, NEEDS_HOST, AT_STEP_LIMIT, MERGED, CONTINUE = range(5)
# Places in State.totals.
N_COMMITTED, N_STEPS, N_LEAVES, N_DROPPED, N_WORDS, N_ARCS, N_JOINED, N_STALE, N_SPLIT, N_MERGED = range(10)
N_TOTALS = N_MERGED + 1
NO_LEAF = -2  # in the place of a leaf that went
BLOCK = 16  # nodes
# Places in State.shared, each in a cache line of its own.
POOL, NEXT, N_URGENT, N_QUEUED, N_BUSY, N_BEGUN, N_ENDED, OVER, SHORT, N_IDLE = range(0, 80, 8)
# Then come sets that several threads count, each in a place of its own: OFFERS, with OFFER numbers to the next. In it:
OFFERS, N_OFFERS, OFFER = 80, 4, 56
TAKEN, N_PARTS, NEXT_PART, N_COUNTED, N_HELPING, ADDING = range(0, 48, 8)
PARTED_SET, PARTED_TARGET, PARTED_TO, PARTED_LENGTH = range(48, 52)
N_SHARED = OFFERS + N_OFFERS * OFFER
CLOSED = 1 << 40  # in the place of the next in the queue
# Places in State.wanted: how much more of each is needed; then the sizes of sets of cases.
WANTED_LEAVES, WANTED_CELLS, WANTED_COUNTS, WANTED_WORDS, WANTED_ARCS, WANTED_SETS, FIRST_WANTED_SET = range(7)
SPARE_STEPS = 1024  # more than there are threads


class Pool(NamedTuple):
    """Where histograms live."""

    cells: Array
    free: Array  # for each size, where the first free histogram is; -1: none. It holds where the next one is
    sizes: Array
    used: Array  # so many cells, and so many of the leaves' own counts
    plenty: int  # cells: beyond that, histograms that may not be needed again are given back,
    too_many: int  # ... and beyond that all of them, once they are scored, if rows are here to count again


class Scoring(NamedTuple):
    """What gains depend on besides counts: priors, operators, and what may be tested."""

    layout: Layout
    allowed: Array  # allowed[target, variable]: may the target's graph test the variable, as long as there is no cycle?
    descendants: Array  # descendants[target] is a row of bits: what it may not test, or there were one
    counts: Array  # the target's counts in each leaf
    rises: Rises
    cell_rises: Array  # for each number of states of a target: the row of `rises` for a cell,
    total_rises: Array  # ... and that for a leaf's total
    multiples: Array  # multiples[r, n]: that for n states of a target with r; none where these have no tables
    arities: Array  # for each variable: its number of states, among the different ones
    n_ordered: Array  # for each variable: how many of its states have an order; 0: none
    log_ways: Array  # for each variable: what the structure prior charges for the way a test splits it
    equivalent_sample_size: float  # of BDeu; 0: another prior
    log_kappa: float
    shared_cost: float  # for an arc that leads to a leaf to which others lead; once it leads to a test, nothing
    charges_tests: bool
    charges_parents: bool
    complete: bool
    binary: bool
    ordered: bool
    own: bool  # graphs may test their own variable
    has_all_pairs: bool  # all variables are binary, and histograms have a block for each


class State(NamedTuple):
    """All that changes while operators are applied."""

    leaves: Array
    splits: Array
    nodes: Array
    targets: Array  # the nodes that are searched
    pool: Pool
    cases: Cases
    scoring: Scoring
    exponents: Array  # of leaves whose states have different ones
    regions: Array  # words
    arcs: Array  # lists of tests
    tested: Array  # tested[target] is a row of bits: the variables that its graph tests
    ancestors: Array  # ancestors[i] is a row of bits
    spare_bits: Array  # two such rows
    is_parent: Array  # committed
    steps: Array  # all steps, pending ones among them, in the order they were applied
    committed: Array  # the numbers of those that are committed, in order
    dropped: Array  # leaves that will not be needed again
    waiting: Array  # for the host: leaves to score again, leaves with new children, nodes with a new merged leaf
    joined: Array  # sets of cases that the host shall join: the two, and the name of their union
    totals: Array
    wanted: Array
    next_gains: Array  # for each node, what its next step gains: a row for splits and one for merges; 0: it is not one
    most_gains: Array  # ... and the most of each BLOCK of nodes
    next_tests: Array  # the variable that this step tests, if it is a split
    may_be_invalid: Array  # whether some of its pending steps may be ruled out; only a hint
    owners: Array  # whether a thread holds the node: nobody else changes it
    queue: Array  # the nodes to run ahead, urgent ones from the front and the others from the back,
    least: Array  # ... as long as their operators gain the first of these, or the second
    shared: Array  # what threads tell each other
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
    weighs: bool  # exponents come from the host: new leaves wait for them before they are scored
    remote: bool  # counts come from the host, too, since the rows are elsewhere
    merges_ahead: int  # that a node which waits for counts gets ready
    tracks_regions: bool  # exponents, or the ways to split, depend on where a leaf is
