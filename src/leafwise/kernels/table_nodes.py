"""The rows of the book: made from rows with one parent less, and priced.

A row that takes more memory than there is, or counting that is worth threads, is left to the caller: functions then
return -1, and are called again after that was seen to. Whatever was finished is in the book.
"""

import math

import numpy as np

from leafwise.kernels import book, cases, tables
from leafwise.kernels import configurations as splits
from leafwise.kernels.arrays import Array, Int
from leafwise.kernels.book import ADDED, DELETED, Counted, Memory, Setting
from leafwise.kernels.jit import bare, inlined, jit, part
from leafwise.kernels.tables import Exponents

_MOST_MASKS = 33  # of a partition, as smaller sets are lists


@bare
def _set_exponents(size: Int, target: Int, n_rows: Int, most: Int, setting: Setting, exponents: Exponents) -> None:
    """Those of a target's table with so many rows."""
    own = setting.variables[target]
    cell = own["exponent"] / (n_rows if setting.numbers[0]["divides"] else 1)
    tables.set_exponents(size, own["n_states"], cell, most, exponents)


@part
def _merge_rows(
    configurations: Array,
    counts: Int,
    cells: Array,
    n_classes: Int,
    stride: Int,
    radix: Int,
    keys: Array,
    merged: Array,
) -> Array:
    """Add up the counts of configurations whose codes differ in one digit only; where the sums are.

    `keys` is a hash table with open addresses.
    """
    for at in range(keys.shape[0]):
        keys[at] = -1
    where, n = np.empty(configurations.shape[0], np.int64), 0
    for c in range(configurations.shape[0]):
        code = configurations[c]["code"]
        key = code // (stride * radix) * stride + code % stride
        at = key % keys.shape[0]
        while keys[at] >= 0 and keys[at] != key:
            at = (at + 1) % keys.shape[0]
        if keys[at] < 0:
            keys[at] = key
            where[n] = at * n_classes
            n += 1
            for k in range(n_classes):
                merged[at * n_classes + k] = 0
        for k in range(n_classes):
            merged[at * n_classes + k] += cells[counts + c * n_classes + k]
    return where[:n]


@part
def _settle_deletions(row: Int, memory: Memory, setting: Setting) -> None:
    """The log likelihood of a row, and what all deletions gain; digits are those of the partition's variables."""
    record, parents, one = memory.book.rows[row], book.parents_of(row, memory), np.int64(1)
    target, n_rows, configurations = record["target"], record["n_rows"], splits.configurations_of(row, memory)
    n_classes, n, most = setting.variables[target]["n_states"], configurations.shape[0], setting.numbers[0]["n_cases"]
    exponents, where, key, zero = (
        tables.make_exponents(one),
        np.empty(n, np.int64),
        np.empty_like(parents),
        np.zeros(1, np.int64),
    )
    once, value = np.ones(1, np.int64), np.zeros(1)
    kappa = (n_classes - 1) * setting.numbers[0]["log_kappa"]
    for c in range(n):
        where[c] = record["counts"] + c * n_classes
    _set_exponents(one - 1, target, n_rows, most, setting, exponents)
    tables.add_log_likelihoods(where, zero, once, n_classes, memory.cells, zero, exponents, setting.series, value)
    now = value[0]
    record["log_likelihood"] = now
    partition, stride = record["partition"], one
    for _ in range(parents.shape[0]):
        parent = memory.partitions[partition]["variable"]
        partition, radix, k = memory.partitions[partition]["origin"], setting.variables[parent]["n_states"], 0
        fewer = n_rows // radix
        while parents[k] != parent:
            k += 1
        other = book.find_row(target, book.without(parents, k, key), memory)
        if other >= 0:
            value[0] = memory.book.rows[other]["log_likelihood"]
        else:
            room = min(fewer, 2 * n + 1)
            keys, merged = np.empty(room, np.int64), np.empty(room * n_classes, np.int32)
            sums = _merge_rows(configurations, record["counts"], memory.cells, n_classes, stride, radix, keys, merged)
            _set_exponents(one - 1, target, fewer, most, setting, exponents)
            value[0] = 0.0
            tables.add_log_likelihoods(sums, zero, once, n_classes, merged, zero, exponents, setting.series, value)
        memory.book.gains[row, DELETED, parent] = value[0] - now + (fewer - n_rows) * kappa
        stride *= radix


@bare
def _price(
    where: Array, counted: Counted, n_classes: Int, cells: Array, exponents: Exponents, series: Array, sums: Array
) -> None:
    """Add to sums[c], for each candidate, the log likelihood of these histograms when split by it."""
    tables.add_log_likelihoods(
        where, counted.starts, counted.n_states, n_classes, cells, counted.kinds, exponents, series, sums
    )


@part
def _price_one(
    c: Int,
    new: Int,
    largest: Int,
    counted: Counted,
    exponents: Exponents,
    memory: Memory,
    setting: Setting,
    sums: Array,
) -> None:
    """Count and price the c-th configuration, whose histogram is not kept, and subtract it from one that is."""
    record, configurations = memory.book.rows[new], splits.configurations_of(new, memory)
    target, size, place = record["target"], configurations[c]["size"], configurations[c]["place"]
    if size == 1:  # whose price is the same for all
        rows = cases.rows_of(place, size, memory.masks, memory.lists)
        cases.add_rows(rows, target, counted.variables, counted.starts, np.int64(-1), setting, memory.cells, largest)
        return
    n_classes, n_cells = setting.variables[target]["n_states"], setting.variables[target]["n_cells"]
    scratch, nowhere = np.empty(n_cells, np.int32), np.zeros(1, np.int64)
    classes, totals = np.empty((n_classes, setting.words.shape[1]), np.uint64), record["counts"] + c * n_classes
    most = cases.count(
        place,
        size,
        target,
        counted,
        totals,
        memory.masks,
        memory.lists,
        setting,
        classes,
        memory.cells,
        scratch,
        nowhere[0],
    )
    if most < counted.most_states or not counted.have_planes:
        cases.count_rows(place, size, target, counted, most, memory, setting, scratch, nowhere[0])
    _price(nowhere, counted, n_classes, scratch, exponents, setting.series, sums)
    for k in range(n_cells if largest >= 0 else 0):
        memory.cells[largest + k] -= scratch[k]


@part
def _price_small(
    row: Int, new: Int, counted: Counted, exponents: Exponents, memory: Memory, setting: Setting, sums: Array
) -> None:
    """Count and price configurations whose histograms are not kept, and subtract them from the largest parts."""
    configurations, where, first = splits.configurations_of(new, memory), memory.where, 0
    own, origins = memory.book.rows[new]["where"], memory.book.rows[max(row, 0)]["where"]
    while first < configurations.shape[0]:
        end, largest = splits.family(first, configurations)
        at = where[own + largest]
        if row < 0 or where[origins + configurations[first]["origin"]] < 0:
            at = np.int64(-1)
        for c in range(first, end):
            if where[own + c] < 0 and (at >= 0 or configurations[c]["size"] > 1):
                _price_one(c, new, at, counted, exponents, memory, setting, sums)
        first = end


@part
def _settle_additions(row: Int, new: Int, memory: Memory, setting: Setting) -> None:
    """What all additions gain; a row with a single case has the same log likelihood however it is split."""
    record, configurations = memory.book.rows[new], splits.configurations_of(new, memory)
    target, n_classes = record["target"], setting.variables[record["target"]]["n_states"]
    where, n, n_single, most = np.empty(configurations.shape[0], np.int64), 0, 0, np.int64(0)
    places, gains, kinds = memory.where, memory.book.gains, setting.kinds
    for c in range(configurations.shape[0]):
        at, size = places[record["where"] + c], configurations[c]["size"]
        most = max(most, size)
        n_single += size == 1
        if at >= 0 and size > 1:
            where[n] = at
            n += 1
    exponents = tables.make_exponents(kinds.shape[0])
    for kind in range(kinds.shape[0]):
        _set_exponents(kind, target, record["n_rows"] * kinds[kind], most, setting, exponents)
    counted = book.candidates_of(new, memory, setting)
    sums = np.zeros(counted.variables.shape[0])
    _price_small(row, new, counted, exponents, memory, setting, sums)
    _price(where[:n], counted, n_classes, memory.cells, exponents, setting.series, sums)
    now = record["log_likelihood"] + n_single * math.log(n_classes)
    kappa = record["n_rows"] * (n_classes - 1) * setting.numbers[0]["log_kappa"]
    variables, n_states = counted.variables, counted.n_states
    for c in range(sums.shape[0]):
        gain = sums[c] - now + (n_states[c] - 1) * kappa
        gains[new, ADDED, variables[c]] = gain
        record["bound"] = max(record["bound"], gain)


@part
def _exchange(target: Int, parents: Array, memory: Memory, setting: Setting) -> Int:
    """The row of a target with one parent, from that of the parent with the target as its parent; -1 if there is none.

    Under a prior that is fair to both directions, three variables that are all linked have one score, whatever the
    order: so gains add up.
    """
    other, used = np.empty(1, np.int64), memory.used
    other[0] = target
    turned = book.find_row(parents[0], other, memory)
    if turned < 0 or used[book.N_ROWS, 0] == used[book.N_ROWS, 1] or used[book.N_PARENTS, 0] == used[book.N_PARENTS, 1]:
        return np.int64(-1)
    parent, rows, gains = parents[0], memory.book.rows, memory.book.gains
    alone, alone_parent = book.find_row(target, other[:0], memory), book.find_row(parent, other[:0], memory)
    row, n_states = book.new_row(target, parents, memory, setting.variables), setting.variables["n_states"]
    gain, more = gains[alone, ADDED, parent], (n_states[parent] - 1) * (n_states[target] - 1)
    gains[row, DELETED, parent] = -gain
    rows[row]["log_likelihood"] = rows[alone]["log_likelihood"] + gain - more * setting.numbers[0]["log_kappa"]
    for third in range(n_states.shape[0]):
        if third != target and third != parent:
            gain = gains[turned, ADDED, third] + gains[alone, ADDED, third] - gains[alone_parent, ADDED, third]
            gains[row, ADDED, third] = gain
            rows[row]["bound"] = max(rows[row]["bound"], gain)
    return row


@bare
def _is_short(row: Int, variable: Int, memory: Memory, setting: Setting, room: Array) -> bool:
    """Whether there is too little room to split all configurations of a row; `room` says how much it may take."""
    record, n_cases, own = (
        memory.book.rows[row],
        setting.numbers[0]["n_cases"],
        setting.variables[memory.book.rows[row]["target"]],
    )
    n = min(memory.partitions[record["partition"]]["n"] * setting.variables[variable]["n_states"], n_cases)
    room[book.N_ROWS], room[book.N_PARENTS], room[book.N_PARTITIONS] = 1, record["n_parents"] + 1, 1
    room[book.N_CONFIGURATIONS], room[book.N_WHERE] = n, n
    room[book.N_CELLS] = min(n, own["most_kept"]) * own["n_cells"] + n * own["n_states"]
    room[book.N_MASKS], room[book.N_LISTED] = _MOST_MASKS, n_cases
    for k in range(room.shape[0]):
        if memory.used[k, 0] + room[k] > memory.used[k, 1]:
            return True
    return False


@inlined
def _finish(memory: Memory, setting: Setting) -> bool:
    """Finish the row that is being made, if there is one; False where counting for it is left to threads.

    Before all others, rows without parents are made.
    """
    used, none = memory.used, np.int64(-1)
    if used[book.PENDING, 0] < 0:
        return True
    new, row = used[book.PENDING, 0], used[book.ORIGIN, 0]
    if used[book.TO_COUNT, 0] > setting.numbers[0]["worth_threads"]:
        return False
    if used[book.TO_COUNT, 0] > 0:
        splits.count_some(none + 1, setting.numbers[0]["n_cases"], row, new, memory, setting)
    book.clear_row(new, memory.book)
    _settle_deletions(new, memory, setting)
    if memory.book.rows[new]["n_parents"] < setting.numbers[0]["most_parents"]:
        if row >= 0:
            splits.derive(row, new, memory, setting)
        _settle_additions(row, new, memory, setting)
    is_last = new + 1 >= setting.numbers[0]["n_targets"]
    used[book.PENDING, 0] = none if is_last else new + 1
    return True


@part
def _extend(row: Int, variable: Int, memory: Memory, setting: Setting, room: Array) -> bool:
    """Begin to make the row with one parent more; whether there is room for it."""
    if _is_short(row, variable, memory, setting, room):
        return False
    target, old, used = memory.book.rows[row]["target"], book.parents_of(row, memory), memory.used
    parents, k = np.empty(old.shape[0] + 1, np.int64), 0
    while k < old.shape[0] and old[k] < variable:
        parents[k] = old[k]
        k += 1
    parents[k] = variable
    while k < old.shape[0]:
        parents[k + 1] = old[k]
        k += 1
    new = book.find_row(target, parents, memory)
    if new < 0:
        new = book.new_row(target, parents, memory, setting.variables)
    counted, k = book.candidates_of(row, memory, setting), 0
    while counted.variables[k] != variable:
        k += 1
    splits.divide(row, new, variable, counted.starts[k], memory, setting)
    n: Int = np.int64(0)
    n_cells = setting.variables[target]["n_cells"]
    if parents.shape[0] < setting.numbers[0]["most_parents"]:
        n = splits.plan(row, new, memory, setting)
    else:
        for k in range(memory.book.rows[new]["where"], used[book.N_WHERE, 0]):
            memory.where[k] = -1
    used[book.PENDING, 0], used[book.ORIGIN, 0] = new, row
    used[book.TO_COUNT, 0] = n * n_cells * setting.words.shape[1] // 10
    n_configurations = memory.partitions[memory.book.rows[new]["partition"]]["n"]
    used[book.WORK, 0] += used[book.TO_COUNT, 0] + 2 * n_configurations * n_cells
    return True


@part
def _nearest(target: Int, parents: Array, memory: Memory) -> tuple[Int, Int]:
    """A row with cases, and a parent to add to it, on the way to one with these parents."""
    left, key, rows = parents, np.empty_like(parents), memory.book.rows
    while True:
        for k in range(left.shape[0]):
            row = book.find_row(target, book.without(left, k, key), memory)
            if row >= 0 and rows[row]["partition"] >= 0:
                return row, left[k]
        left = left[: left.shape[0] - 1]


@inlined
def find(target: Int, parents: Array, needs_cases: Int, memory: Memory, setting: Setting, room: Array) -> Int:
    """The row for a target with these parents, sorted; made if need be, from one with all but one of them; or -1."""
    row: Int = np.int64(-1)
    used, numbers, none = memory.used, setting.numbers, np.int64(-1)
    while _finish(memory, setting):
        if used[book.PENDING, 0] >= 0:
            continue
        row = book.find_row(target, parents, memory)
        if row >= 0 and needs_cases and memory.book.rows[row]["partition"] < 0:
            row = none
        elif row < 0 and numbers[0]["exchanges"] and parents.shape[0] == 1 and not needs_cases:
            row = _exchange(target, parents, memory, setting)
        if row >= 0:
            break
        if used[book.KEPT, 0] > numbers[0]["most_kept"] and not used[book.IS_ON_THE_WAY, 0]:
            book.forget(memory, setting)
        origin, parent = _nearest(target, parents, memory)
        if not _extend(origin, parent, memory, setting, room):
            break
        used[book.IS_ON_THE_WAY, 0] = 1
    if row >= 0:
        used[book.IS_ON_THE_WAY, 0] = 0
    return row


@jit
def plant(targets: Array, memory: Memory, setting: Setting) -> None:
    """Rows without parents for all targets: the first rows of the book."""
    used, nobody, n_words = memory.used, np.empty(0, np.int64), memory.masks.shape[1]
    whole, root, n_cases = memory.configurations[0], memory.partitions[0], setting.numbers[0]["n_cases"]
    whole["code"], whole["size"], whole["place"], whole["origin"] = 0, n_cases, 0, 0
    root["first"], root["n"], root["child"], root["next"], root["origin"] = 0, 1, -1, -1, -1
    used[book.N_PARTITIONS, 0] = used[book.N_CONFIGURATIONS, 0] = used[book.N_MASKS, 0] = 1
    used[book.PENDING, 0], used[book.ORIGIN, 0] = 0, -1
    for word in range(n_words):
        memory.masks[0, word] = ~np.uint64(0) if 64 * (word + 1) <= n_cases else np.uint64(0)
    if n_cases & 63:
        memory.masks[0, n_cases >> 6] = ~np.uint64(0) >> np.uint64(64 - (n_cases & 63))
    for target in targets:
        row = book.new_row(target, nobody, memory, setting.variables)
        record, own = memory.book.rows[row], setting.variables[target]
        record["partition"], record["counts"], record["where"] = 0, used[book.N_CELLS, 0], used[book.N_WHERE, 0]
        cases.count_states(target, setting, memory.cells, record["counts"])
        memory.where[used[book.N_WHERE, 0]] = used[book.N_CELLS, 0] + own["n_states"]
        used[book.N_WHERE, 0] += 1
        used[book.N_CELLS, 0] += own["n_states"] + own["n_cells"]


@jit
def count_pending(begin: int, end: int, memory: Memory, setting: Setting) -> None:
    """Count the histograms of some configurations of the row that is being made; or some rows without parents."""
    new, row, none = memory.used[book.PENDING, 0], memory.used[book.ORIGIN, 0], np.int64(-1)
    if row >= 0:
        splits.count_some(np.int64(begin), np.int64(end), row, new, memory, setting)
    for root in range(begin, end if row < 0 else begin):
        splits.count_some(none + 1, none + 2, none, np.int64(root), memory, setting)
