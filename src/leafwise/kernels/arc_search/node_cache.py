"""What is known of complete tables: an *entry* for each family, that is a target with certain parents.

An entry may hold cases besides: those of a *partition* by its parents, which targets share, with the target's counts in
each configuration that occurs, and histograms of the larger ones. A *histogram* has a block for each candidate, with
the target's counts for each of its states. All of it lies in few arrays, for compiled code takes its time to hand many
over; they are filled from the front, and emptied at once.
"""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import CountScores, Exponents, make_count_scores, make_exponents

ADDED, DELETED = range(2)  # places in Cache.gains

# Places in Memory.used and Memory.capacity, one for each array.
N_ENTRIES, N_PARENTS, N_PARTITIONS, N_CONFIGURATIONS, N_WHERE, N_CELLS, N_MASKS, N_LISTED = range(8)
MOST_TABLE_CELLS = 2**16  # of a table that is counted as a whole: a cache holds it

ENTRY = np.dtype(
    [
        ("target", np.int64),
        ("parents", np.int64),  # where they are, sorted
        ("n_parents", np.int64),
        ("n_rows", np.int64),  # of the table: all parent configurations, observed or not
        ("log_likelihood", np.float64),
        ("bound", np.float64),  # no addition gains more
        ("partition", np.int64),  # -1: the entry holds no cases
        ("counts", np.int64),  # where in `cells` they begin, configuration by configuration
        ("where", np.int64),  # where it says where in `cells` the histogram of each configuration begins
        ("next", np.int64),  # entry of the same bucket, or -1
    ],
    align=True,
)
PARTITION = np.dtype(
    [
        ("origin", np.int64),  # the partition it was split from,
        ("variable", np.int64),  # by this variable
        ("first", np.int64),  # of its configurations
        ("n", np.int64),
        ("child", np.int64),  # the last that was split from it, or -1
        ("next", np.int64),  # the one before of the same origin, or -1
        ("is_cut", np.int64),  # whether the sets of cases are there
    ],
    align=True,
)
CONFIGURATION = np.dtype(
    [
        ("code", np.int64),  # the parents' states as digits, that of the parent added last varying fastest
        ("size", np.int64),  # cases
        ("place", np.int64),  # of the set of them
        ("origin", np.int64),  # the configuration it was split from
    ],
    align=True,
)
VARIABLE = np.dtype(
    [
        ("n_states", np.int64),
        ("arity", np.int64),  # its place in `arities`: variables of as many states share it
        ("plane", np.int64),  # of state 1, or -1 if there is none
        ("exponent", np.float64),  # of a cell in a table of one row
        ("first", np.int64),  # of its candidates
        ("n", np.int64),
        ("n_cells", np.int64),  # of a histogram
        ("most_kept", np.int64),  # histograms of one node
    ],
    align=True,
)
CANDIDATE = np.dtype([("variable", np.int64), ("base", np.int64)])  # and where its block begins, counted in states
CONSTANTS = np.dtype(
    [
        ("n_targets", np.int64),
        ("n_cases", np.int64),
        ("most_parents", np.int64),
        ("most_kept", np.int64),  # cells, before all are forgotten
        ("least_for_threads", np.int64),  # nanoseconds of counting that are shared by threads
        ("derives_reversed", np.int64),  # whether the score of y given x follows from that of x given y
        ("counts_pairs_once", np.int64),  # whether each of two variables is a candidate of the other
        ("divides_exponent", np.int64),  # whether the exponent is divided evenly among the rows of a table
        ("log_kappa", np.float64),
        ("arc_cost", np.float64),
        ("by_case", np.int64),  # how far it is to the next case in `codes`,
        ("by_variable", np.int64),  # and to the next variable
    ],
    align=True,
)
PROGRESS = np.dtype(
    [
        ("kept", np.int64),  # cells and cases that are kept for later
        ("pending", np.int64),  # the entry that is being made, or -1
        ("origin", np.int64),  # the one it is made from, or -1
        ("to_count", np.int64),  # how long counting for it takes, in nanoseconds
        ("work", np.int64),  # done so far, in nanoseconds
        ("newest", np.int64),  # the entry made last, or -1
        ("by_tables", np.int64),  # whether the pending entry is counted table by table
        ("only_cases", np.int64),  # whether it is known but for its cases
    ],
    align=True,
)


class Cache(NamedTuple):
    """What searches read."""

    entries: Array
    gains: Array  # by [entry, ADDED or DELETED, the other end of the arc]


class Memory(NamedTuple):
    """What grows, and how much of it is in use."""

    cache: Cache
    buckets: Array  # the last entry of each
    parents: Array
    partitions: Array
    configurations: Array
    where: Array  # -1: no histogram
    cells: Array
    masks: Array  # sets of cases: the place of one is a row of `masks`, or -1 less where its list begins
    lists: Array
    used: Array  # how much of each array is in use,
    capacity: Array  # and how much there is
    progress: Array  # one record


class TableData(NamedTuple):
    """What does not change."""

    constants: Array  # one record
    variables: Array
    arities: Array  # all numbers of states that occur
    candidates: Array
    columns: Array  # codes, by [variable, case]
    codes: Array  # flat, in the order that is quicker for counting many variables at once
    words: Array  # bit planes: where a variable is in a state, for all states but the first
    series: Array  # log gamma near whole numbers


class Scratch(NamedTuple):
    """Room for what is needed for a moment; every thread has its own."""

    others: Array  # parents of another entry
    candidates: Array  # where those of an entry lie
    left: Array  # some of them, and where their blocks begin
    states: Array  # three arrays with a place for each state
    cells: Array  # a histogram
    rows: Array  # row numbers of cases
    classes: Array  # masks, one for each state of a target
    sums: Array
    exponents: Exponents
    keys: Array  # where in a table each case counts, but for its state of a candidate
    table: Array  # a target's counts in all configurations of its parents and a candidate, and those of its rows
    count_scores: CountScores


@part
def make_scratch(data: TableData) -> Scratch:
    """Room enough for any entry."""
    n, most_states, most_classes, most_cells = data.variables.shape[0], 1, 1, np.int64(1)
    for variable in data.variables:
        most_states = max(most_states, variable["n_states"])
        most_cells = max(most_cells, variable["n_cells"])
        if variable["plane"] >= 0:
            most_classes = max(most_classes, variable["n_states"])
    return Scratch(
        np.empty(n, np.int64),
        np.empty((4, n), np.int64),
        np.empty((2, n), np.int64),
        np.empty((3, most_states), np.int64),
        np.empty(most_cells, np.int32),
        np.empty(data.constants[0]["n_cases"], np.int32),
        np.empty((most_classes, data.words.shape[1]), np.uint64),
        np.empty(n),
        make_exponents(data.arities.shape[0] * (data.arities.shape[0] + 1)),
        np.empty(data.constants[0]["n_cases"], np.uint32),
        np.empty(2 * MOST_TABLE_CELLS, np.int32),
        make_count_scores(data.constants[0]["n_cases"]),
    )


@bare
def _bucket(target: Int, parents: Array, n_buckets: Int) -> Int:
    key = np.int64(target)
    for k in range(parents.shape[0]):
        key = (key * 1000003 + parents[k] + 1) % 2147483647
    return key % n_buckets


@bare
def _find_entry(target: Int, key: Array, entries: Array, pool: Array, buckets: Array) -> Int:
    entry, n = buckets[_bucket(target, key, buckets.shape[0])], key.shape[0]
    while entry >= 0:
        if entries[entry]["target"] == target and entries[entry]["n_parents"] == n:
            k, begin = 0, entries[entry]["parents"]
            while k < n and pool[begin + k] == key[k]:
                k += 1
            if k == n:
                break
        entry = entries[entry]["next"]
    return entry


@inlined
def find_entry(target: Int, parents: Array, memory: Memory) -> Int:
    """The entry of a target with these parents, sorted, or -1."""
    return _find_entry(target, parents, memory.cache.entries, memory.parents, memory.buckets)


@inlined
def without(parents: Array, k: Int, rest: Array) -> Array:
    """All but the k-th, written to `rest`."""
    for place in range(parents.shape[0] - 1):
        rest[place] = parents[place if place < k else place + 1]
    return rest[: parents.shape[0] - 1]


@bare
def new_entry(target: Int, parents: Array, memory: Memory, variables: Array) -> Int:
    """An entry for a target with these parents, which has none; there is room. Nothing gains as yet."""
    used, entry = memory.used, memory.used[N_ENTRIES]
    record, bucket = memory.cache.entries[entry], _bucket(target, parents, memory.buckets.shape[0])
    record["target"], record["parents"], record["n_parents"] = target, used[N_PARENTS], parents.shape[0]
    record["partition"], record["n_rows"] = -1, 1
    for k in range(parents.shape[0]):
        memory.parents[used[N_PARENTS]] = parents[k]
        used[N_PARENTS] += 1
        record["n_rows"] *= variables[parents[k]]["n_states"]
    record["next"], memory.buckets[bucket] = memory.buckets[bucket], entry
    used[N_ENTRIES] += 1
    clear_entry(entry, memory.cache)
    return entry


@bare
def clear_entry(entry: Int, cache: Cache) -> None:
    """Let nothing gain."""
    cache.entries[entry]["bound"] = -np.inf
    for variable in range(cache.gains.shape[2]):
        cache.gains[entry, ADDED, variable] = cache.gains[entry, DELETED, variable] = -np.inf


@inlined
def parents_of(entry: Int, memory: Memory) -> Array:
    """The parents of an entry, sorted."""
    record = memory.cache.entries[entry]
    return memory.parents[record["parents"] : record["parents"] + record["n_parents"]]


class Candidates(NamedTuple):
    """The variables that the histograms of an entry count."""

    variables: Array
    n_states: Array
    arities: Array
    starts: Array  # where in a histogram the block of each begins
    most_states: Int
    have_planes: bool  # all of them


@bare
def candidates_of(entry: Int, memory: Memory, data: TableData, found: Array) -> Candidates:
    """All but its target and its parents, which no entry made from it needs.

    It lies in `found`, and nobody counts who holds it: only `bare` parts may ask.
    """
    entries, parents, candidates, variables = memory.cache.entries, memory.parents, data.candidates, data.variables
    target, p = entries[entry]["target"], entries[entry]["parents"]
    first, n_classes, end = variables[target]["first"], variables[target]["n_states"], p + entries[entry]["n_parents"]
    n, most_states, have_planes = 0, np.int64(0), True
    for k in range(first, first + variables[target]["n"]):
        variable = candidates[k]["variable"]
        while p < end and parents[p] < variable:
            p += 1
        if variable != target and not (p < end and parents[p] == variable):
            n_states = variables[variable]["n_states"]
            found[0, n], found[1, n], found[2, n] = variable, n_states, variables[variable]["arity"]
            found[3, n] = candidates[k]["base"] * n_classes
            most_states = max(most_states, n_states)
            have_planes = have_planes and variables[variable]["plane"] >= 0
            n += 1
    return Candidates(found[0, :n], found[1, :n], found[2, :n], found[3, :n], most_states, have_planes)


@bare
def forget(memory: Memory, data: TableData) -> None:
    """Drop all cases and histograms but those of nodes without parents; what is known of gains stays."""
    used, n_targets = memory.used, data.constants[0]["n_targets"]
    for entry in range(n_targets, used[N_ENTRIES]):
        memory.cache.entries[entry]["partition"] = -1
    last = data.variables[memory.cache.entries[n_targets - 1]["target"]]
    used[N_PARTITIONS] = used[N_CONFIGURATIONS] = used[N_MASKS] = 1
    used[N_LISTED] = memory.progress[0]["kept"] = 0
    used[N_WHERE], used[N_CELLS] = n_targets, memory.where[n_targets - 1] + last["n_cells"]
    memory.partitions[0]["child"] = -1
