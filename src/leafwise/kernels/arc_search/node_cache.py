"""Cache of complete tables: an *entry* for each family, that is, a target with certain parents.

An entry may also have cases: those of a *partition* by its parents, which targets share, with the target's counts in
each observed configuration, and histograms of the larger ones. A *histogram* has a block for each candidate, with the
target's counts for each of its states. Everything is in few arrays, since passing many to compiled code takes time;
they are filled from the front, and cleared all at once.
"""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import CountScores, Exponents, make_count_scores, make_exponents

ADDED, DELETED = range(2)  # indices into Cache.gains

# Indices into Memory.used and Memory.capacity, one per array.
N_ENTRIES, N_PARENTS, N_PARTITIONS, N_CONFIGURATIONS, N_WHERE, N_CELLS, N_MASKS, N_LISTED = range(8)
MOST_TABLE_CELLS = 2**16  # of a table that is counted as a whole: fits into a CPU cache

ENTRY = np.dtype(
    [
        ("target", np.int64),
        ("parents", np.int64),  # offset in Memory.parents, where they are sorted
        ("n_parents", np.int64),
        ("n_rows", np.int64),  # of the table: parent configurations, observed or not
        ("log_likelihood", np.float64),
        ("bound", np.float64),  # the largest gain of an addition
        ("partition", np.int64),  # -1: the entry has no cases
        ("counts", np.int64),  # offset in `cells`, configuration by configuration
        ("where", np.int64),  # offset in `where`, which has the offset in `cells` of each configuration's histogram
        ("next", np.int64),  # next entry of the same bucket, or -1
    ],
    align=True,
)
PARTITION = np.dtype(
    [
        ("origin", np.int64),  # the partition it was split from,
        ("variable", np.int64),  # by this variable
        ("first", np.int64),  # its first configuration
        ("n", np.int64),
        ("child", np.int64),  # the latest one that was split from it, or -1
        ("next", np.int64),  # the one before it with the same origin, or -1
        ("is_cut", np.int64),  # whether its sets of cases exist
    ],
    align=True,
)
CONFIGURATION = np.dtype(
    [
        ("code", np.int64),  # the parents' states as digits; that of the parent added last varies fastest
        ("size", np.int64),  # number of cases
        ("place", np.int64),  # of its set of cases (see counts.py)
        ("origin", np.int64),  # the configuration it was split from, as an index within the origin of its partition
    ],
    align=True,
)
VARIABLE = np.dtype(
    [
        ("n_states", np.int64),
        ("arity", np.int64),  # index of its number of states in `arities`
        ("plane", np.int64),  # of state 1, or -1 if it has no planes
        ("exponent", np.float64),  # of a cell in a table of one row
        ("first", np.int64),  # its first candidate
        ("n", np.int64),
        ("n_cells", np.int64),  # of a histogram
        ("most_kept", np.int64),  # histograms per entry
    ],
    align=True,
)
CANDIDATE = np.dtype([("variable", np.int64), ("base", np.int64)])  # base: offset of its block, in states
CONSTANTS = np.dtype(
    [
        ("n_targets", np.int64),
        ("n_cases", np.int64),
        ("most_parents", np.int64),
        ("most_kept", np.int64),  # cells and cases; with more, all are evicted
        ("least_for_threads", np.int64),  # nanoseconds of counting; more is shared by threads
        ("derives_reversed", np.int64),  # whether the entry of y given x is derived from that of x given y
        ("counts_pairs_once", np.int64),  # whether any two variables are candidates of each other, and counted once
        ("divides_exponent", np.int64),  # whether the exponent is divided evenly among the rows of a table
        ("log_kappa", np.float64),
        ("arc_cost", np.float64),
        ("by_case", np.int64),  # stride of cases in `codes`,
        ("by_variable", np.int64),  # and of variables
    ],
    align=True,
)
PROGRESS = np.dtype(
    [
        ("kept", np.int64),  # number of cells and cases that are kept
        ("pending", np.int64),  # the entry in progress, or -1
        ("origin", np.int64),  # the one it is made from, or -1
        ("to_count", np.int64),  # estimated nanoseconds of counting for it; 0: none is left
        ("work", np.int64),  # estimated nanoseconds of all work so far
        ("newest", np.int64),  # the latest entry, or -1
        ("by_tables", np.int64),  # whether the pending entry is counted table by table
        ("only_cases", np.int64),  # whether only its cases are missing
    ],
    align=True,
)


class Cache(NamedTuple):
    """The part of the cache that searches read."""

    entries: Array
    gains: Array  # [entry, ADDED or DELETED, parent]


class Memory(NamedTuple):
    """Growing arrays, and how much of each is in use."""

    cache: Cache
    buckets: Array  # of the hash table of entries: the latest entry of each
    parents: Array
    partitions: Array
    configurations: Array
    where: Array  # offsets of histograms in `cells`; -1: none
    cells: Array
    masks: Array  # sets of cases, as bit masks or lists (see counts.py)
    lists: Array
    used: Array  # of each array: length in use,
    capacity: Array  # and in total
    progress: Array  # one record


class TableData(NamedTuple):
    """The data, and all that is constant."""

    constants: Array  # one record
    variables: Array
    arities: Array  # the distinct numbers of states
    candidates: Array
    columns: Array  # codes, by [variable, case]
    codes: Array  # flat, in the order that is faster for counting many variables at once
    words: Array  # bit planes of all states but the first of each variable
    series: Array  # Taylor series of log gamma around integers


class Scratch(NamedTuple):
    """Scratch memory of one thread."""

    others: Array  # parents of another entry
    candidates: Array  # of an entry: the arrays of Candidates
    left: Array  # some of them, and the offsets of their blocks
    states: Array  # three arrays by state
    cells: Array  # a histogram
    rows: Array  # row numbers of cases
    classes: Array  # masks, one per state of a target
    sums: Array
    exponents: Exponents
    keys: Array  # by case: its cell in a table, except for the state of a candidate
    table: Array  # a target's counts by configuration of its parents and a candidate, then their totals
    count_scores: CountScores


@part
def make_scratch(data: TableData) -> Scratch:
    """Allocate scratch memory for any entry."""
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
    """Return the entry of a target with these sorted parents, or -1."""
    return _find_entry(target, parents, memory.cache.entries, memory.parents, memory.buckets)


@inlined
def without(parents: Array, k: Int, rest: Array) -> Array:
    """Return all parents but the k-th, written to `rest`."""
    for place in range(parents.shape[0] - 1):
        rest[place] = parents[place if place < k else place + 1]
    return rest[: parents.shape[0] - 1]


@bare
def new_entry(target: Int, parents: Array, memory: Memory, variables: Array) -> Int:
    """Add an entry, for which there is memory, for a target with these parents; all gains are minus infinity."""
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
    """Set all gains of an entry to minus infinity."""
    cache.entries[entry]["bound"] = -np.inf
    for variable in range(cache.gains.shape[2]):
        cache.gains[entry, ADDED, variable] = cache.gains[entry, DELETED, variable] = -np.inf


@inlined
def parents_of(entry: Int, memory: Memory) -> Array:
    """Return the parents of an entry, sorted."""
    record = memory.cache.entries[entry]
    return memory.parents[record["parents"] : record["parents"] + record["n_parents"]]


class Candidates(NamedTuple):
    """The variables that are counted in the histograms of an entry."""

    variables: Array
    n_states: Array
    arities: Array
    starts: Array  # offset of the block of each in a histogram
    most_states: Int
    have_planes: bool  # whether all of them do


@bare
def candidates_of(entry: Int, memory: Memory, data: TableData, found: Array) -> Candidates:
    """Return the candidates of an entry, except for its parents, which no entry made from it needs.

    They refer to `found` without reference counts, so only `bare` functions may call this.
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
    """Evict the cases and histograms of all entries that have parents; their gains remain."""
    used, n_targets = memory.used, data.constants[0]["n_targets"]
    for entry in range(n_targets, used[N_ENTRIES]):
        memory.cache.entries[entry]["partition"] = -1
    last = data.variables[memory.cache.entries[n_targets - 1]["target"]]
    used[N_PARTITIONS] = used[N_CONFIGURATIONS] = used[N_MASKS] = 1
    used[N_LISTED] = memory.progress[0]["kept"] = 0
    used[N_WHERE], used[N_CELLS] = n_targets, memory.where[n_targets - 1] + last["n_cells"]
    memory.partitions[0]["child"] = -1
