"""The book of complete tables: what is known of nodes with certain parents, a row for each.

A row may hold cases besides: those of a *partition* by the row's parents, which targets share, with the target's counts
in each configuration that occurs, and histograms of the larger ones. A *histogram* has a block for each candidate, with
the target's counts for each of its states. All of it lies in few arrays, for compiled code takes its time to hand many
over; they are filled from the front, and emptied at once.
"""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.jit import bare, inlined, part
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import Exponents, Worths, make_exponents, make_worths

ADDED, DELETED = range(2)  # places in Book.gains

# Places in Memory.used, by [what, 0]: how much of each array is in use, with how much there is in [what, 1];
N_ROWS, N_PARENTS, N_PARTITIONS, N_CONFIGURATIONS, N_WHERE, N_CELLS, N_MASKS, N_LISTED = range(8)
# cells and cases that are kept for later; the row that is being made, or -1, the one it is made from, or -1, and how
# long counting for it takes, in nanoseconds; work done, likewise; whether rows were made for the sake of another; and
# whether the row that is being made is counted table by table, or is known but for its cases.
KEPT, PENDING, ORIGIN, TO_COUNT, WORK, IS_ON_THE_WAY, BY_TABLES, ONLY_CASES = range(8, 16)
MOST_TABLE_CELLS = 2**16  # of a table that is counted as a whole: a cache holds it

ROW = np.dtype(
    [
        ("target", np.int64),
        ("parents", np.int64),  # where they are, sorted
        ("n_parents", np.int64),
        ("n_rows", np.int64),  # of the table: all parent configurations, observed or not
        ("log_likelihood", np.float64),
        ("bound", np.float64),  # no addition gains more
        ("partition", np.int64),  # -1: the row holds no cases
        ("counts", np.int64),  # where in `cells` they begin, configuration by configuration
        ("where", np.int64),  # where it says where in `cells` the histogram of each configuration begins
        ("next", np.int64),  # row of the same bucket, or -1
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
        ("kind", np.int64),  # variables of the same number of states are of one kind
        ("plane", np.int64),  # of state 1, or -1 if there is none
        ("exponent", np.float64),  # of a cell when there is one row
        ("first", np.int64),  # of its candidates
        ("n", np.int64),
        ("n_cells", np.int64),  # of a histogram
        ("most_kept", np.int64),  # histograms of one node
    ],
    align=True,
)
CANDIDATE = np.dtype([("variable", np.int64), ("base", np.int64)])  # and where its block begins, counted in states
NUMBERS = np.dtype(
    [
        ("n_targets", np.int64),
        ("n_cases", np.int64),
        ("most_parents", np.int64),
        ("most_kept", np.int64),  # cells, before all are forgotten
        ("worth_threads", np.int64),  # nanoseconds of counting
        ("exchanges", np.int64),  # whether three variables that are all linked have one score, whatever the order
        ("shares", np.int64),  # whether each of two variables counts the other, so that once will do
        ("divides", np.int64),  # whether the exponent is divided evenly among rows
        ("log_kappa", np.float64),
        ("arc_cost", np.float64),
        ("by_case", np.int64),  # how far it is to the next case in `codes`,
        ("by_variable", np.int64),  # and to the next variable
    ],
    align=True,
)


class Book(NamedTuple):
    """What searches read."""

    rows: Array
    gains: Array  # by [row, ADDED or DELETED, the other end of the arc]


class Memory(NamedTuple):
    """What grows, and how much of it is in use."""

    book: Book
    buckets: Array  # the last row of each
    parents: Array
    partitions: Array
    configurations: Array
    where: Array  # -1: no histogram
    cells: Array
    masks: Array  # sets of cases: the place of one is a row of `masks`, or -1 less where its list begins
    lists: Array
    used: Array


class Setting(NamedTuple):
    """What does not change."""

    numbers: Array  # one record
    variables: Array
    kinds: Array  # how many states
    candidates: Array
    columns: Array  # codes, by [variable, case]
    codes: Array  # flat, in the order that is quicker for counting many variables at once
    words: Array  # bit planes: where a variable is in a state, for all states but the first
    series: Array  # log gamma near whole numbers


class Scratch(NamedTuple):
    """Room for what is needed for a moment; every thread has its own."""

    others: Array  # parents of another row
    candidates: Array  # see Counted
    left: Array  # some of them, and where their blocks begin
    states: Array  # three arrays with a place for each state
    cells: Array  # a histogram
    rows: Array  # numbers of cases
    classes: Array  # masks, one for each state of a target
    sums: Array
    exponents: Exponents
    keys: Array  # where in a table each case counts, but for its state of a candidate
    table: Array  # a target's counts in all configurations of its parents and a candidate, and those of its rows
    worths: Worths


@part
def make_scratch(setting: Setting) -> Scratch:
    """Room enough for any row."""
    n, most_states, most_classes, most_cells = setting.variables.shape[0], 1, 1, np.int64(1)
    for variable in setting.variables:
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
        np.empty(setting.numbers[0]["n_cases"], np.int32),
        np.empty((most_classes, setting.words.shape[1]), np.uint64),
        np.empty(n),
        make_exponents(setting.kinds.shape[0] * (setting.kinds.shape[0] + 1)),
        np.empty(setting.numbers[0]["n_cases"], np.uint32),
        np.empty(2 * MOST_TABLE_CELLS, np.int32),
        make_worths(setting.numbers[0]["n_cases"]),
    )


@bare
def _bucket(target: Int, parents: Array, n_buckets: Int) -> Int:
    key = np.int64(target)
    for k in range(parents.shape[0]):
        key = (key * 1000003 + parents[k] + 1) % 2147483647
    return key % n_buckets


@bare
def _find_row(target: Int, key: Array, rows: Array, pool: Array, buckets: Array) -> Int:
    row, n = buckets[_bucket(target, key, buckets.shape[0])], key.shape[0]
    while row >= 0:
        if rows[row]["target"] == target and rows[row]["n_parents"] == n:
            k, begin = 0, rows[row]["parents"]
            while k < n and pool[begin + k] == key[k]:
                k += 1
            if k == n:
                break
        row = rows[row]["next"]
    return row


@inlined
def find_row(target: Int, parents: Array, memory: Memory) -> Int:
    """The row for a target with these parents, sorted, or -1."""
    return _find_row(target, parents, memory.book.rows, memory.parents, memory.buckets)


@inlined
def without(parents: Array, k: Int, rest: Array) -> Array:
    """All but the k-th, written to `rest`."""
    for place in range(parents.shape[0] - 1):
        rest[place] = parents[place if place < k else place + 1]
    return rest[: parents.shape[0] - 1]


@bare
def new_row(target: Int, parents: Array, memory: Memory, variables: Array) -> Int:
    """A row for a target with these parents, which has none; there is room. Nothing gains as yet."""
    used, row = memory.used, memory.used[N_ROWS, 0]
    record, bucket = memory.book.rows[row], _bucket(target, parents, memory.buckets.shape[0])
    record["target"], record["parents"], record["n_parents"] = target, used[N_PARENTS, 0], parents.shape[0]
    record["partition"], record["n_rows"] = -1, 1
    for k in range(parents.shape[0]):
        memory.parents[used[N_PARENTS, 0]] = parents[k]
        used[N_PARENTS, 0] += 1
        record["n_rows"] *= variables[parents[k]]["n_states"]
    record["next"], memory.buckets[bucket] = memory.buckets[bucket], row
    used[N_ROWS, 0] += 1
    clear_row(row, memory.book)
    return row


@bare
def clear_row(row: Int, book: Book) -> None:
    """Let nothing gain."""
    book.rows[row]["bound"] = -np.inf
    for variable in range(book.gains.shape[2]):
        book.gains[row, ADDED, variable] = book.gains[row, DELETED, variable] = -np.inf


@inlined
def parents_of(row: Int, memory: Memory) -> Array:
    """The parents of a row, sorted."""
    record = memory.book.rows[row]
    return memory.parents[record["parents"] : record["parents"] + record["n_parents"]]


class Counted(NamedTuple):
    """What histograms count."""

    variables: Array
    n_states: Array
    kinds: Array
    starts: Array  # where in a histogram the block of each begins
    most_states: Int
    have_planes: bool  # all of them


@bare
def candidates_of(row: Int, memory: Memory, setting: Setting, found: Array) -> Counted:
    """What the histograms of a row count: all but its target and its parents, which no row made from it needs.

    It lies in `found`, and nobody counts who holds it: only `bare` parts may ask.
    """
    rows, parents, candidates, variables = memory.book.rows, memory.parents, setting.candidates, setting.variables
    target, p = rows[row]["target"], rows[row]["parents"]
    first, n_classes, end = variables[target]["first"], variables[target]["n_states"], p + rows[row]["n_parents"]
    n, most_states, have_planes = 0, np.int64(0), True
    for k in range(first, first + variables[target]["n"]):
        variable = candidates[k]["variable"]
        while p < end and parents[p] < variable:
            p += 1
        if variable != target and not (p < end and parents[p] == variable):
            n_states = variables[variable]["n_states"]
            found[0, n], found[1, n], found[2, n] = variable, n_states, variables[variable]["kind"]
            found[3, n] = candidates[k]["base"] * n_classes
            most_states = max(most_states, n_states)
            have_planes = have_planes and variables[variable]["plane"] >= 0
            n += 1
    return Counted(found[0, :n], found[1, :n], found[2, :n], found[3, :n], most_states, have_planes)


@bare
def forget(memory: Memory, setting: Setting) -> None:
    """Drop all cases and histograms but those of nodes without parents; what is known of gains stays."""
    used, n_targets = memory.used, setting.numbers[0]["n_targets"]
    for row in range(n_targets, used[N_ROWS, 0]):
        memory.book.rows[row]["partition"] = -1
    last = setting.variables[memory.book.rows[n_targets - 1]["target"]]
    used[N_PARTITIONS, 0] = used[N_CONFIGURATIONS, 0] = used[N_MASKS, 0] = 1
    used[N_LISTED, 0] = used[KEPT, 0] = 0
    used[N_WHERE, 0], used[N_CELLS, 0] = n_targets, memory.where[n_targets - 1] + last["n_cells"]
    memory.partitions[0]["child"] = -1
