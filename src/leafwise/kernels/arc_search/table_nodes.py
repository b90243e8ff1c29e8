"""The rows of the book: made from rows with one parent less, and priced.

A row that takes more memory than there is, or counting that is worth threads, is left to the caller: functions then
return -1, and are called again after that was seen to. Whatever was finished is in the book.
"""

import math

import numpy as np

from leafwise.kernels.arc_search import counts as cases
from leafwise.kernels.arc_search import node_cache as book
from leafwise.kernels.arc_search import partitions as splits
from leafwise.kernels.arc_search.node_cache import ADDED, DELETED, Counted, Memory, Scratch, Setting
from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring import dirichlet as tables
from leafwise.kernels.scoring.dirichlet import Exponents

_MOST_MASKS = 33  # of a partition, as smaller sets are lists
_CELL_COST, _WORTH_COST = 0.7, 8.0  # nanoseconds: to clear one and to price it; to reckon what a count is worth


@inlined
def _first_exponents(target: Int, setting: Setting) -> Int:
    """The place of a target's exponents: for its table with a parent more of each kind, and as it is."""
    return setting.variables[target]["kind"] * (setting.kinds.shape[0] + 1)


@bare
def _set_exponents(kind: Int, target: Int, n_rows: Int, setting: Setting, exponents: Exponents) -> Int:
    """Those of a target's table with so many rows; their place."""
    own, place = setting.variables[target], _first_exponents(target, setting) + kind
    cell = own["exponent"] / (n_rows if setting.numbers[0]["divides"] else 1)
    tables.set_exponents(place, own["n_states"], cell, exponents)
    return place


@bare
def _merge_rows(
    configurations: Array,
    counts: Int,
    cells: Array,
    n_classes: Int,
    stride: Int,
    radix: Int,
    keys: Array,
    merged: Array,
    where: Array,
) -> int:
    """Add up the counts of configurations whose codes differ in one digit only; how many sums, and where they are.

    `keys` is a hash table with open addresses.
    """
    for at in range(keys.shape[0]):
        keys[at] = -1
    n = 0
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
    return n


@bare
def _log_likelihood_without(
    parent: Int, stride: Int, row: Int, memory: Memory, setting: Setting, scratch: Scratch
) -> float:
    """That of a row without a parent, whose digit in the codes of configurations counts so much.

    What memory is free is used: `_is_short` saw to it that there is enough.
    """
    record, configurations = memory.book.rows[row], splits.configurations_of(row, memory)
    target, radix = record["target"], setting.variables[parent]["n_states"]
    n_classes, fewer = setting.variables[target]["n_states"], record["n_rows"] // radix
    keys, merged = memory.where[memory.used[book.N_WHERE, 0] :], memory.cells[memory.used[book.N_CELLS, 0] :]
    room = min(fewer, 2 * configurations.shape[0] + 1)
    keys, where = keys[:room], keys[room:]
    n = _merge_rows(configurations, record["counts"], memory.cells, n_classes, stride, radix, keys, merged, where)
    return _log_likelihood(where[:n], np.int64(1), target, fewer, merged, setting, scratch)


@bare
def _log_likelihood(
    where: Array, n: Int, target: Int, n_rows: Int, cells: Array, setting: Setting, scratch: Scratch
) -> float:
    """That of a table with so many rows; n of them begin at each of `where`, and the others are empty."""
    exponents = scratch.exponents
    scratch.left[0, 0], scratch.left[1, 0], scratch.sums[0] = 0, n, 0.0
    starts, n_here, sums = scratch.left[0, :1], scratch.left[1, :1], scratch.sums[:1]
    at = _set_exponents(setting.kinds.shape[0], target, n_rows, setting, exponents)
    n_classes = setting.variables[target]["n_states"]
    tables.add_log_likelihoods(where, starts, n_here, n_classes, cells, at, starts, exponents, setting.series, sums)
    return float(sums[0])


@bare
def _settle_deletions(row: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """The log likelihood of a row, and what all deletions gain; digits are those of the partition's variables."""
    record, parents, rows = memory.book.rows[row], book.parents_of(row, memory), memory.book.rows
    target, n_rows, partition, stride = record["target"], record["n_rows"], record["partition"], np.int64(1)
    n = memory.partitions[partition]["n"]
    kappa = (setting.variables[target]["n_states"] - 1) * setting.numbers[0]["log_kappa"]
    scratch.others[0] = record["counts"]
    now = _log_likelihood(scratch.others[:1], n, target, n_rows, memory.cells, setting, scratch)
    record["log_likelihood"] = now
    for _ in range(parents.shape[0]):
        parent, k = memory.partitions[partition]["variable"], 0
        partition, radix = memory.partitions[partition]["origin"], setting.variables[parent]["n_states"]
        while parents[k] != parent:
            k += 1
        other = book.find_row(target, book.without(parents, k, scratch.others), memory)
        if other >= 0:
            value = rows[other]["log_likelihood"]
        else:
            value = _log_likelihood_without(parent, stride, row, memory, setting, scratch)
        refund = (n_rows // radix - n_rows) * kappa + setting.numbers[0]["arc_cost"]
        memory.book.gains[row, DELETED, parent] = value - now + refund
        stride *= radix


@inlined
def _price(
    where: Array, target: Int, counted: Counted, cells: Array, setting: Setting, exponents: Exponents, sums: Array
) -> None:
    """Add to sums[c], for each candidate, the log likelihood of these histograms when split by it."""
    n_classes, starts, n_states = setting.variables[target]["n_states"], counted.starts, counted.n_states
    first, kinds = _first_exponents(target, setting), counted.kinds
    tables.add_log_likelihoods(where, starts, n_states, n_classes, cells, first, kinds, exponents, setting.series, sums)


@inlined
def _price_one(
    c: Int, new: Int, largest: Int, counted: Counted, memory: Memory, setting: Setting, scratch: Scratch, sums: Array
) -> None:
    """Count and price the c-th configuration, whose histogram is not kept, and subtract it from one that is."""
    record, configurations = memory.book.rows[new], splits.configurations_of(new, memory)
    target, size, place = record["target"], configurations[c]["size"], configurations[c]["place"]
    if size == 1:  # whose price is the same for all
        rows = cases.rows_of(place, size, memory.masks, memory.lists, scratch.rows)
        cases.add_rows(rows, target, counted.variables, counted.starts, np.int64(-1), setting, memory.cells, largest)
        return
    n_classes, n_cells = setting.variables[target]["n_states"], setting.variables[target]["n_cells"]
    cells, where, totals = scratch.cells, scratch.others[:1], record["counts"] + c * n_classes
    where[0] = 0
    most = cases.count(
        place,
        size,
        target,
        counted,
        totals,
        memory.masks,
        memory.lists,
        setting,
        scratch.classes,
        memory.cells,
        cells,
        where[0],
        where[0],
    )
    if most < counted.most_states or not counted.have_planes:
        cases.count_rows(place, size, target, counted, most, memory, setting, scratch, cells, where[0])
    _price(where, target, counted, cells, setting, scratch.exponents, sums)
    for k in range(n_cells if largest >= 0 else 0):
        memory.cells[largest + k] -= cells[k]


@inlined
def _price_small(
    row: Int, new: Int, counted: Counted, memory: Memory, setting: Setting, scratch: Scratch, sums: Array
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
                _price_one(c, new, at, counted, memory, setting, scratch, sums)
        first = end


@bare
def _set_all_exponents(row: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """Those of a row with one parent more, of each kind."""
    record = memory.book.rows[row]
    for kind in range(setting.kinds.shape[0]):
        _set_exponents(kind, record["target"], record["n_rows"] * setting.kinds[kind], setting, scratch.exponents)


@bare
def _set_worths(kind: Int, new: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """Those of a row with one parent more, of this kind: no cell counts more than the row's own."""
    record, configurations = memory.book.rows[new], splits.configurations_of(new, memory)
    own, most_in_cell, most_in_row = setting.variables[record["target"]], 0, 0
    for c in range(configurations.shape[0]):
        most_in_row = max(most_in_row, configurations[c]["size"])
    for k in range(record["counts"], record["counts"] + configurations.shape[0] * own["n_states"]):
        most_in_cell = max(most_in_cell, memory.cells[k])
    n_rows = record["n_rows"] * setting.kinds[kind]
    cell = own["exponent"] / (n_rows if setting.numbers[0]["divides"] else 1)
    tables.set_worths(cell, cell * own["n_states"], most_in_cell, most_in_row, setting.series, scratch.worths)


@bare
def _count_tables(begin: Int, end: Int, new: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """Count and price whole tables, each with one of some candidates; their log likelihoods are put among the gains."""
    record, counted = memory.book.rows[new], book.candidates_of(new, memory, setting, scratch.candidates)
    target, n_rows, worths = record["target"], record["n_rows"], scratch.worths
    n_classes, last = setting.variables[target]["n_states"], min(end, counted.variables.shape[0])
    single = setting.numbers[0]["n_cases"] * math.log(n_classes)  # all cases apart
    cases.set_keys(book.parents_of(new, memory), target, setting, scratch.keys)
    for kind in range(setting.kinds.shape[0]):
        _set_worths(kind, new, memory, setting, scratch)
        n, step = n_rows * setting.kinds[kind], n_rows * n_classes
        table, totals = scratch.table[: n * n_classes], scratch.table[n * n_classes : n * (n_classes + 1)]
        for c in range(begin, last):
            if counted.kinds[c] == kind:
                column = setting.columns[counted.variables[c]]
                worth = cases.count_table(scratch.keys, column, step, table, worths.of[0])
                cases.add_classes(table, n_rows, n_classes, totals)
                worth -= tables.worth(totals, worths.of[1])
                memory.book.gains[new, ADDED, counted.variables[c]] = worth * worths.unit[0] - single


@bare
def _settle_additions(row: Int, new: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """What all additions gain; a row with a single case has the same log likelihood however it is split."""
    record, configurations = memory.book.rows[new], splits.configurations_of(new, memory)
    target, n_classes = record["target"], setting.variables[record["target"]]["n_states"]
    n, n_single, gains = configurations.shape[0], 0, memory.book.gains
    counted = book.candidates_of(new, memory, setting, scratch.candidates)
    variables, n_states, sums = counted.variables, counted.n_states, scratch.sums[: counted.variables.shape[0]]
    if memory.used[book.BY_TABLES, 0]:
        for c in range(sums.shape[0]):
            sums[c] = gains[new, ADDED, variables[c]]
    else:
        where = memory.where[record["where"] : record["where"] + n]
        for c in range(n):
            n_single += configurations[c]["size"] == 1 and where[c] < 0
        for c in range(sums.shape[0]):
            sums[c] = 0.0
        _set_all_exponents(new, memory, setting, scratch)
        _price_small(row, new, counted, memory, setting, scratch, sums)
        _price(where, target, counted, memory.cells, setting, scratch.exponents, sums)
    now = record["log_likelihood"] + n_single * math.log(n_classes)
    kappa = record["n_rows"] * (n_classes - 1) * setting.numbers[0]["log_kappa"]
    for c in range(sums.shape[0]):
        gain = sums[c] - now + (n_states[c] - 1) * kappa - setting.numbers[0]["arc_cost"]
        gains[new, ADDED, variables[c]] = gain
        record["bound"] = max(record["bound"], gain)


@bare
def _exchange(target: Int, parents: Array, memory: Memory, setting: Setting, scratch: Scratch) -> Int:
    """The row of a target with one parent, from that of the parent with the target as its parent; -1 if there is none.

    Under a prior that is fair to both directions, three variables that are all linked have one score, whatever the
    order: so gains add up.
    """
    other, used = scratch.others[:1], memory.used
    other[0] = target
    turned = book.find_row(parents[0], other, memory)
    if turned < 0 or used[book.N_ROWS, 0] == used[book.N_ROWS, 1] or used[book.N_PARENTS, 0] == used[book.N_PARENTS, 1]:
        return np.int64(-1)
    parent, rows, gains = parents[0], memory.book.rows, memory.book.gains
    alone, alone_parent = book.find_row(target, other[:0], memory), book.find_row(parent, other[:0], memory)
    row, n_states = book.new_row(target, parents, memory, setting.variables), setting.variables["n_states"]
    gain, more = gains[alone, ADDED, parent], (n_states[parent] - 1) * (n_states[target] - 1)
    gains[row, DELETED, parent] = -gain
    cost = setting.numbers[0]["arc_cost"] - more * setting.numbers[0]["log_kappa"]
    rows[row]["log_likelihood"] = rows[alone]["log_likelihood"] + gain + cost
    for third in range(n_states.shape[0]):
        if third != target and third != parent:
            gain = gains[turned, ADDED, third] + gains[alone, ADDED, third] - gains[alone_parent, ADDED, third]
            gains[row, ADDED, third] = gain
            rows[row]["bound"] = max(rows[row]["bound"], gain)
    return row


@bare
def _is_by_tables(row: Int, variable: Int, start: Int, memory: Memory, setting: Setting) -> bool:
    """Whether it is quicker to count a row that is split by a variable table by table than by histograms."""
    record, n_states, n_cases = memory.book.rows[row], setting.variables["n_states"], setting.numbers[0]["n_cases"]
    own, n_rows = setting.variables[record["target"]], record["n_rows"] * n_states[variable]
    if n_rows * own["n_states"] * setting.kinds[-1] > book.MOST_TABLE_CELLS:
        return False
    configurations, n_left = splits.configurations_of(row, memory), n_cases
    n = n_counted = min(configurations.shape[0] * n_states[variable], n_cases)
    most, n_worths = 0, setting.kinds.shape[0] if setting.numbers[0]["divides"] else 1
    for c in range(configurations.shape[0]):
        at, largest = memory.where[record["where"] + c] + start, 0
        if at >= start:  # the largest part follows from the others
            for state in range(n_states[variable]):
                size = 0
                for k in range(own["n_states"]):
                    size += memory.cells[at + state * own["n_states"] + k]
                largest = max(largest, size)
            n_left -= largest
            n_counted -= 1
        most = max(most, largest if at >= start else configurations[c]["size"])
    by_histograms = cases.ROW_COST * own["n"] * n_left
    if own["plane"] >= 0:
        by_plane = cases.PLANE_COST + cases.WORD_COST * setting.words.shape[1]
        by_histograms = min(by_histograms, by_plane * n_counted * own["n_cells"])
    by_tables = cases.TABLE_COST * own["n"] * n_cases + _CELL_COST * (n_rows - n) * own["n_cells"]
    by_tables += _WORTH_COST * n_worths * 2 * most
    return bool(by_tables < by_histograms)


@inlined
def _is_short(row: Int, variable: Int, by_tables: bool, memory: Memory, setting: Setting, room: Array) -> bool:
    """Whether there is too little room to split all configurations of a row; `room` says how much it may take."""
    record, n_cases, own = (
        memory.book.rows[row],
        setting.numbers[0]["n_cases"],
        setting.variables[memory.book.rows[row]["target"]],
    )
    n = min(memory.partitions[record["partition"]]["n"] * setting.variables[variable]["n_states"], n_cases)
    room[book.N_ROWS], room[book.N_PARENTS], room[book.N_PARTITIONS] = 1, record["n_parents"] + 1, 1
    room[book.N_CONFIGURATIONS], room[book.N_WHERE] = n, 4 * n + 1
    room[book.N_CELLS] = (3 * n + 1) * own["n_states"]
    if not by_tables:
        room[book.N_CELLS] += min(n, own["most_kept"]) * own["n_cells"]
    n_uncut, partition = 1, record["partition"]
    while not memory.partitions[partition]["is_cut"]:
        n_uncut, partition = n_uncut + 1, memory.partitions[partition]["origin"]
    room[book.N_MASKS], room[book.N_LISTED] = n_uncut * _MOST_MASKS, n_uncut * n_cases
    for k in range(room.shape[0]):
        if memory.used[k, 0] + room[k] > memory.used[k, 1]:
            return True
    return False


@bare
def _count_some(begin: Int, end: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """For the row that is being made: count the histograms of some configurations, or tables with some candidates."""
    new, row = memory.used[book.PENDING, 0], memory.used[book.ORIGIN, 0]
    if row < 0:
        splits.count_root(new, memory, setting, scratch)
    elif memory.used[book.BY_TABLES, 0]:
        _count_tables(begin, end, new, memory, setting, scratch)
    else:
        splits.count_some(begin, end, row, new, memory, setting, scratch)


@inlined
def _finish(memory: Memory, setting: Setting, scratch: Scratch) -> bool:
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
        most = max(setting.numbers[0]["n_cases"], setting.variables.shape[0])  # configurations, or candidates
        _count_some(none + 1, most, memory, setting, scratch)
    _settle_deletions(new, memory, setting, scratch)
    if memory.book.rows[new]["n_parents"] < setting.numbers[0]["most_parents"] and not used[book.ONLY_CASES, 0]:
        if row >= 0 and not used[book.BY_TABLES, 0]:
            splits.derive(row, new, memory, setting)
        _settle_additions(row, new, memory, setting, scratch)
    is_last = new + 1 >= setting.numbers[0]["n_targets"]
    used[book.PENDING, 0], used[book.BY_TABLES, 0], used[book.ONLY_CASES, 0] = none if is_last else new + 1, 0, 0
    return True


@bare
def _extend(
    row: Int, variable: Int, only_cases: bool, memory: Memory, setting: Setting, scratch: Scratch, room: Array
) -> bool:
    """Begin to make the row with one parent more, of which all but the cases may be known; whether there is room."""
    target, old, used = memory.book.rows[row]["target"], book.parents_of(row, memory), memory.used
    parents, k = scratch.others[: old.shape[0] + 1], 0
    may_grow = parents.shape[0] < setting.numbers[0]["most_parents"] and not only_cases
    counted = book.candidates_of(row, memory, setting, scratch.candidates)
    while counted.variables[k] != variable:
        k += 1
    start, k = counted.starts[k], 0
    by_tables = may_grow and _is_by_tables(row, variable, start, memory, setting)
    if _is_short(row, variable, by_tables, memory, setting, room):
        return False
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
    elif not only_cases:
        book.clear_row(new, memory.book)
    splits.divide(row, new, variable, start, memory, setting, scratch)
    n: Int = np.int64(0)
    n_cells = setting.variables[target]["n_cells"]
    if may_grow and not by_tables:
        splits.cut(memory.book.rows[new]["partition"], memory, setting, scratch)
        n = splits.plan(row, new, memory, setting)
    else:
        for k in range(memory.book.rows[new]["where"], used[book.N_WHERE, 0]):
            memory.where[k] = -1
    used[book.PENDING, 0], used[book.ORIGIN, 0], used[book.BY_TABLES, 0] = new, row, by_tables
    used[book.ONLY_CASES, 0] = only_cases
    used[book.TO_COUNT, 0] = n * n_cells * setting.words.shape[1] // 10
    if by_tables:
        used[book.TO_COUNT, 0] = np.int64(cases.TABLE_COST * counted.variables.shape[0] * setting.numbers[0]["n_cases"])
    n_configurations = memory.partitions[memory.book.rows[new]["partition"]]["n"]
    used[book.WORK, 0] += used[book.TO_COUNT, 0] + 2 * n_configurations * n_cells
    return True


@bare
def _nearest(target: Int, parents: Array, memory: Memory, scratch: Scratch) -> tuple[Int, Int]:
    """A row with cases, and a parent to add to it, on the way to one with these parents."""
    left, key, rows = parents, scratch.others, memory.book.rows
    while True:
        for k in range(left.shape[0]):
            row = book.find_row(target, book.without(left, k, key), memory)
            if row >= 0 and rows[row]["partition"] >= 0:
                return row, left[k]
        left = left[: left.shape[0] - 1]


@inlined
def find(
    target: Int, parents: Array, needs_cases: Int, memory: Memory, setting: Setting, scratch: Scratch, room: Array
) -> Int:
    """The row for a target with these parents, sorted; made if need be, from one with all but one of them; or -1."""
    row: Int = np.int64(-1)
    used, numbers, none = memory.used, setting.numbers, np.int64(-1)
    while _finish(memory, setting, scratch):
        if used[book.PENDING, 0] >= 0:
            continue
        row = book.find_row(target, parents, memory)
        is_known = row >= 0
        if is_known and needs_cases and memory.book.rows[row]["partition"] < 0:
            row = none
        elif row < 0 and numbers[0]["exchanges"] and parents.shape[0] == 1 and not needs_cases:
            row = _exchange(target, parents, memory, setting, scratch)
        if row >= 0:
            break
        if used[book.KEPT, 0] > numbers[0]["most_kept"] and not used[book.IS_ON_THE_WAY, 0]:
            book.forget(memory, setting)
        origin, parent = _nearest(target, parents, memory, scratch)
        only_cases = bool(is_known and memory.book.rows[origin]["n_parents"] + 1 == parents.shape[0])
        if not _extend(origin, parent, only_cases, memory, setting, scratch, room):
            break
        used[book.IS_ON_THE_WAY, 0] = 1
    if row >= 0:
        used[book.IS_ON_THE_WAY, 0] = 0
    return row


@jit
def plant(targets: Array, memory: Memory, setting: Setting) -> None:
    """Rows without parents for all targets: the first rows of the book. They are counted as they are finished."""
    used, nobody, n_words = memory.used, np.empty(0, np.int64), memory.masks.shape[1]
    whole, root, n_cases = memory.configurations[0], memory.partitions[0], setting.numbers[0]["n_cases"]
    whole["code"], whole["size"], whole["place"], whole["origin"] = 0, n_cases, 0, 0
    root["first"], root["n"], root["child"], root["next"], root["origin"], root["is_cut"] = 0, 1, -1, -1, -1, 1
    used[book.N_PARTITIONS, 0] = used[book.N_CONFIGURATIONS, 0] = used[book.N_MASKS, 0] = 1
    used[book.PENDING, 0], used[book.ORIGIN, 0], used[book.TO_COUNT, 0] = 0, -1, 1
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
    """Count what is to count for the row that is being made; or some rows without parents."""
    row, scratch = memory.used[book.ORIGIN, 0], book.make_scratch(setting)
    if row >= 0:
        _count_some(np.int64(begin), np.int64(end), memory, setting, scratch)
    for root in range(begin, end if row < 0 else begin):
        splits.count_root(np.int64(root), memory, setting, scratch)
