"""Cache entries: made from entries with one parent less, counted, and scored for every arc to add or delete.

If an entry needs more memory than there is, or counting that threads should share, `find` returns -1, and is called
again once the caller has provided it. Whatever was finished is in the cache.
"""

import math

import numpy as np

from leafwise.kernels.arc_search import counts as counting
from leafwise.kernels.arc_search import partitions
from leafwise.kernels.arc_search.node_cache import (
    ADDED,
    DELETED,
    MOST_TABLE_CELLS,
    N_CELLS,
    N_CONFIGURATIONS,
    N_ENTRIES,
    N_LISTED,
    N_MASKS,
    N_PARENTS,
    N_PARTITIONS,
    N_WHERE,
    Candidates,
    Memory,
    Scratch,
    TableData,
    candidates_of,
    clear_entry,
    find_entry,
    forget,
    make_scratch,
    new_entry,
    parents_of,
    without,
)
from leafwise.kernels.compiling.jit import bare, inlined, jit
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring import dirichlet
from leafwise.kernels.scoring.dirichlet import Exponents

_MOST_MASKS = 33  # per partition, since smaller sets are lists
_CELL_COST, _SCORE_COST = 0.7, 8.0  # nanoseconds: to clear and score a cell; to compute the score of a count


@inlined
def _first_exponents(target: Int, data: TableData) -> Int:
    """Return the index of a target's exponents: of its table with a parent more, by arity, then of its table."""
    return data.variables[target]["arity"] * (data.arities.shape[0] + 1)


@bare
def _set_exponents(arity: Int, target: Int, n_rows: Int, data: TableData, exponents: Exponents) -> Int:
    """Set the exponents of a target's table with n_rows rows; return their index."""
    own, place = data.variables[target], _first_exponents(target, data) + arity
    cell = own["exponent"] / (n_rows if data.constants[0]["divides_exponent"] else 1)
    dirichlet.set_exponents(place, own["n_states"], cell, exponents)
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
    """Sum the counts of configurations whose codes differ in one digit only; return how many rows that makes.

    `keys` is a hash table with open addressing, `merged` has the sums, and `where` the offsets of rows.
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
    parent: Int, stride: Int, entry: Int, memory: Memory, data: TableData, scratch: Scratch
) -> float:
    """Return the log likelihood without a parent, whose digit in the codes of configurations has this stride.

    Unused memory serves as scratch memory; `_is_short` has checked that there is enough.
    """
    record, configurations = memory.cache.entries[entry], partitions.configurations_of(entry, memory)
    target, radix = record["target"], data.variables[parent]["n_states"]
    n_classes, fewer = data.variables[target]["n_states"], record["n_rows"] // radix
    keys, merged = memory.where[memory.used[N_WHERE] :], memory.cells[memory.used[N_CELLS] :]
    room = min(fewer, 2 * configurations.shape[0] + 1)
    keys, where = keys[:room], keys[room:]
    n = _merge_rows(configurations, record["counts"], memory.cells, n_classes, stride, radix, keys, merged, where)
    return _log_likelihood(where[:n], np.int64(1), target, fewer, merged, data, scratch)


@bare
def _log_likelihood(
    where: Array, n: Int, target: Int, n_rows: Int, cells: Array, data: TableData, scratch: Scratch
) -> float:
    """Return the log likelihood of a table with n_rows rows; n of them begin at each of `where`, others are empty."""
    exponents = scratch.exponents
    scratch.left[0, 0], scratch.left[1, 0], scratch.sums[0] = 0, n, 0.0
    starts, n_here, sums = scratch.left[0, :1], scratch.left[1, :1], scratch.sums[:1]
    at = _set_exponents(data.arities.shape[0], target, n_rows, data, exponents)
    n_classes = data.variables[target]["n_states"]
    dirichlet.add_log_likelihoods(where, starts, n_here, n_classes, cells, at, starts, exponents, data.series, sums)
    return float(sums[0])


@bare
def _settle_deletions(entry: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Set the log likelihood of an entry, and the gains of all deletions, from the last digit of codes to the first."""
    record, parents, entries = memory.cache.entries[entry], parents_of(entry, memory), memory.cache.entries
    target, n_rows, partition, stride = record["target"], record["n_rows"], record["partition"], np.int64(1)
    n = memory.partitions[partition]["n"]
    kappa = (data.variables[target]["n_states"] - 1) * data.constants[0]["log_kappa"]
    scratch.others[0] = record["counts"]
    now = _log_likelihood(scratch.others[:1], n, target, n_rows, memory.cells, data, scratch)
    record["log_likelihood"] = now
    for _ in range(parents.shape[0]):
        parent, k = memory.partitions[partition]["variable"], 0
        partition, radix = memory.partitions[partition]["origin"], data.variables[parent]["n_states"]
        while parents[k] != parent:
            k += 1
        other = find_entry(target, without(parents, k, scratch.others), memory)
        if other >= 0:
            value = entries[other]["log_likelihood"]
        else:
            value = _log_likelihood_without(parent, stride, entry, memory, data, scratch)
        refund = (n_rows // radix - n_rows) * kappa + data.constants[0]["arc_cost"]
        memory.cache.gains[entry, DELETED, parent] = value - now + refund
        stride *= radix


@inlined
def _score(
    where: Array, target: Int, candidates: Candidates, cells: Array, data: TableData, exponents: Exponents, sums: Array
) -> None:
    """Add to sums[c], for each candidate, the log likelihood of these histograms if split by it."""
    n_classes, starts, n_states = data.variables[target]["n_states"], candidates.starts, candidates.n_states
    first, arities = _first_exponents(target, data), candidates.arities
    dirichlet.add_log_likelihoods(
        where, starts, n_states, n_classes, cells, first, arities, exponents, data.series, sums
    )


@inlined
def _score_one(
    c: Int,
    new: Int,
    largest: Int,
    candidates: Candidates,
    memory: Memory,
    data: TableData,
    scratch: Scratch,
    sums: Array,
) -> None:
    """Count and score the c-th configuration, whose histogram is not kept; subtract it from the one at `largest`."""
    record, configurations = memory.cache.entries[new], partitions.configurations_of(new, memory)
    target, size, place = record["target"], configurations[c]["size"], configurations[c]["place"]
    if size == 1:  # its score is the same for all candidates
        rows = counting.rows_of(place, size, memory.masks, memory.lists, scratch.rows)
        counting.add_rows(
            rows, target, candidates.variables, candidates.starts, np.int64(-1), data, memory.cells, largest
        )
        return
    n_classes, n_cells = data.variables[target]["n_states"], data.variables[target]["n_cells"]
    cells, where, totals = scratch.cells, scratch.others[:1], record["counts"] + c * n_classes
    where[0] = 0
    most = counting.count(
        place,
        size,
        target,
        candidates,
        totals,
        memory.masks,
        memory.lists,
        data,
        scratch.classes,
        memory.cells,
        cells,
        where[0],
        where[0],
    )
    if most < candidates.most_states or not candidates.have_planes:
        counting.count_rows(place, size, target, candidates, most, memory, data, scratch, cells, where[0])
    _score(where, target, candidates, cells, data, scratch.exponents, sums)
    for k in range(n_cells if largest >= 0 else 0):
        memory.cells[largest + k] -= cells[k]


@inlined
def _score_small(
    entry: Int, new: Int, candidates: Candidates, memory: Memory, data: TableData, scratch: Scratch, sums: Array
) -> None:
    """Count and score configurations whose histograms are not kept, and subtract them from those of largest parts."""
    configurations, where, first = partitions.configurations_of(new, memory), memory.where, 0
    own, origins = memory.cache.entries[new]["where"], memory.cache.entries[max(entry, 0)]["where"]
    while first < configurations.shape[0]:
        end, largest = partitions.family(first, configurations)
        at = where[own + largest]
        if entry < 0 or where[origins + configurations[first]["origin"]] < 0:
            at = np.int64(-1)
        for c in range(first, end):
            if where[own + c] < 0 and (at >= 0 or configurations[c]["size"] > 1):
                _score_one(c, new, at, candidates, memory, data, scratch, sums)
        first = end


@bare
def _set_all_exponents(entry: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Set the exponents of an entry with one parent more, of each arity."""
    record = memory.cache.entries[entry]
    for arity in range(data.arities.shape[0]):
        _set_exponents(arity, record["target"], record["n_rows"] * data.arities[arity], data, scratch.exponents)


@bare
def _set_count_scores(arity: Int, new: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Set the scores of counts for an entry with one parent more, of this arity, up to the largest in the entry."""
    record, configurations = memory.cache.entries[new], partitions.configurations_of(new, memory)
    own, most_in_cell, most_in_row = data.variables[record["target"]], 0, 0
    for c in range(configurations.shape[0]):
        most_in_row = max(most_in_row, configurations[c]["size"])
    for k in range(record["counts"], record["counts"] + configurations.shape[0] * own["n_states"]):
        most_in_cell = max(most_in_cell, memory.cells[k])
    n_rows = record["n_rows"] * data.arities[arity]
    cell = own["exponent"] / (n_rows if data.constants[0]["divides_exponent"] else 1)
    dirichlet.set_count_scores(
        cell, cell * own["n_states"], most_in_cell, most_in_row, data.series, scratch.count_scores
    )


@bare
def _count_tables(begin: Int, end: Int, new: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Count and score whole tables with candidates begin to end - 1; log likelihoods are put in the place of gains."""
    record, candidates = memory.cache.entries[new], candidates_of(new, memory, data, scratch.candidates)
    target, n_rows, count_scores = record["target"], record["n_rows"], scratch.count_scores
    n_classes, last = data.variables[target]["n_states"], min(end, candidates.variables.shape[0])
    single = data.constants[0]["n_cases"] * math.log(n_classes)  # scores are in excess of this
    for arity in range(data.arities.shape[0]):
        _set_count_scores(arity, new, memory, data, scratch)
        counting.set_keys(parents_of(new, memory), target, data.arities[arity], data, scratch.keys)
        n = n_rows * data.arities[arity]
        table, totals = scratch.table[: n * n_classes], scratch.table[n * n_classes : n * (n_classes + 1)]
        for c in range(begin, last):
            if candidates.arities[c] == arity:
                column = data.columns[candidates.variables[c]]
                score = counting.count_table(scratch.keys, column, n_rows, table, count_scores.of[0])
                counting.add_classes(table, totals)
                score -= dirichlet.total_score(totals, count_scores.of[1])
                memory.cache.gains[new, ADDED, candidates.variables[c]] = score * count_scores.unit[0] - single


@bare
def _settle_additions(entry: Int, new: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Set gains of all additions; a configuration with a single case has the same log likelihood in all of them."""
    record, configurations = memory.cache.entries[new], partitions.configurations_of(new, memory)
    target, n_classes = record["target"], data.variables[record["target"]]["n_states"]
    n, n_single, gains = configurations.shape[0], 0, memory.cache.gains
    candidates = candidates_of(new, memory, data, scratch.candidates)
    variables, n_states, sums = candidates.variables, candidates.n_states, scratch.sums[: candidates.variables.shape[0]]
    if memory.progress[0]["by_tables"]:
        for c in range(sums.shape[0]):
            sums[c] = gains[new, ADDED, variables[c]]
    else:
        where = memory.where[record["where"] : record["where"] + n]
        for c in range(n):
            n_single += configurations[c]["size"] == 1 and where[c] < 0
        for c in range(sums.shape[0]):
            sums[c] = 0.0
        _set_all_exponents(new, memory, data, scratch)
        _score_small(entry, new, candidates, memory, data, scratch, sums)
        _score(where, target, candidates, memory.cells, data, scratch.exponents, sums)
    now = record["log_likelihood"] + n_single * math.log(n_classes)
    kappa = record["n_rows"] * (n_classes - 1) * data.constants[0]["log_kappa"]
    for c in range(sums.shape[0]):
        gain = sums[c] - now + (n_states[c] - 1) * kappa - data.constants[0]["arc_cost"]
        gains[new, ADDED, variables[c]] = gain
        record["bound"] = max(record["bound"], gain)


@bare
def _derive_reversed(target: Int, parents: Array, memory: Memory, data: TableData, scratch: Scratch) -> Int:
    """Return a new entry of a target with one parent, derived from that of the parent given the target; or -1.

    Under a score-equivalent prior, three variables that are all adjacent have the same score in any order, so the gains
    follow from known ones. -1: there is no such entry, or no room.
    """
    other, used, capacity = scratch.others[:1], memory.used, memory.capacity
    other[0] = target
    reverse = find_entry(parents[0], other, memory)
    if reverse < 0 or used[N_ENTRIES] == capacity[N_ENTRIES] or used[N_PARENTS] == capacity[N_PARENTS]:
        return np.int64(-1)
    parent, entries, gains = parents[0], memory.cache.entries, memory.cache.gains
    alone, alone_parent = find_entry(target, other[:0], memory), find_entry(parent, other[:0], memory)
    entry, n_states = new_entry(target, parents, memory, data.variables), data.variables["n_states"]
    gain, more = gains[alone, ADDED, parent], (n_states[parent] - 1) * (n_states[target] - 1)
    gains[entry, DELETED, parent] = -gain
    cost = data.constants[0]["arc_cost"] - more * data.constants[0]["log_kappa"]
    entries[entry]["log_likelihood"] = entries[alone]["log_likelihood"] + gain + cost
    for third in range(n_states.shape[0]):
        if third != target and third != parent:
            gain = gains[reverse, ADDED, third] + gains[alone, ADDED, third] - gains[alone_parent, ADDED, third]
            gains[entry, ADDED, third] = gain
            entries[entry]["bound"] = max(entries[entry]["bound"], gain)
    return entry


@bare
def _is_by_tables(entry: Int, variable: Int, start: Int, memory: Memory, data: TableData) -> bool:
    """Return whether it is faster to count an entry, split by a variable, by whole tables than by histograms."""
    record, n_states, n_cases = memory.cache.entries[entry], data.variables["n_states"], data.constants[0]["n_cases"]
    own, n_rows = data.variables[record["target"]], record["n_rows"] * n_states[variable]
    if n_rows * own["n_states"] * data.arities[-1] > MOST_TABLE_CELLS:
        return False
    configurations, n_left = partitions.configurations_of(entry, memory), n_cases
    n = n_counted = min(configurations.shape[0] * n_states[variable], n_cases)
    most, n_tables = 0, data.arities.shape[0] if data.constants[0]["divides_exponent"] else 1
    for c in range(configurations.shape[0]):
        at, largest = memory.where[record["where"] + c] + start, 0
        if at >= start:  # the largest part follows by subtraction
            for state in range(n_states[variable]):
                size = 0
                for k in range(own["n_states"]):
                    size += memory.cells[at + state * own["n_states"] + k]
                largest = max(largest, size)
            n_left -= largest
            n_counted -= 1
        most = max(most, largest if at >= start else configurations[c]["size"])
    by_histograms = counting.ROW_COST * own["n"] * n_left
    if own["plane"] >= 0:
        by_plane = counting.PLANE_COST + counting.WORD_COST * data.words.shape[1]
        by_histograms = min(by_histograms, by_plane * n_counted * own["n_cells"])
    by_tables = counting.TABLE_COST * own["n"] * n_cases + _CELL_COST * (n_rows - n) * own["n_cells"]
    by_tables += _SCORE_COST * n_tables * 2 * most
    return bool(by_tables < by_histograms)


@inlined
def _is_short(entry: Int, variable: Int, by_tables: bool, memory: Memory, data: TableData, room: Array) -> bool:
    """Return whether memory is short for splitting all configurations of an entry; set `room` to what it may need."""
    record, n_cases, own = (
        memory.cache.entries[entry],
        data.constants[0]["n_cases"],
        data.variables[memory.cache.entries[entry]["target"]],
    )
    n = min(memory.partitions[record["partition"]]["n"] * data.variables[variable]["n_states"], n_cases)
    room[N_ENTRIES], room[N_PARENTS], room[N_PARTITIONS] = 1, record["n_parents"] + 1, 1
    room[N_CONFIGURATIONS], room[N_WHERE] = n, 4 * n + 1
    room[N_CELLS] = (3 * n + 1) * own["n_states"]
    if not by_tables:
        room[N_CELLS] += min(n, own["most_kept"]) * own["n_cells"]
    n_uncut, partition = 1, record["partition"]
    while not memory.partitions[partition]["is_cut"]:
        n_uncut, partition = n_uncut + 1, memory.partitions[partition]["origin"]
    room[N_MASKS], room[N_LISTED] = n_uncut * _MOST_MASKS, n_uncut * n_cases
    for k in range(room.shape[0]):
        if memory.used[k] + room[k] > memory.capacity[k]:
            return True
    return False


@bare
def _count_some(begin: Int, end: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Count for the pending entry: histograms of configurations, or tables with candidates, begin to end - 1."""
    new, entry = memory.progress[0]["pending"], memory.progress[0]["origin"]
    if entry < 0:
        partitions.count_root(new, memory, data, scratch)
    elif memory.progress[0]["by_tables"]:
        _count_tables(begin, end, new, memory, data, scratch)
    else:
        partitions.count_some(begin, end, entry, new, memory, data, scratch)


@inlined
def _finish(memory: Memory, data: TableData, scratch: Scratch) -> bool:
    """Finish the pending entry, if there is one; return False if counting for it is left to threads.

    Entries without parents are pending one after the other, before all others.
    """
    progress, none = memory.progress[0], np.int64(-1)
    if progress["pending"] < 0:
        return True
    new, entry = progress["pending"], progress["origin"]
    if progress["to_count"] > data.constants[0]["least_for_threads"]:
        return False
    if progress["to_count"] > 0:
        most = max(data.constants[0]["n_cases"], data.variables.shape[0])  # of configurations, or of candidates
        _count_some(none + 1, most, memory, data, scratch)
    _settle_deletions(new, memory, data, scratch)
    if memory.cache.entries[new]["n_parents"] < data.constants[0]["most_parents"] and not progress["only_cases"]:
        if entry >= 0 and not progress["by_tables"]:
            partitions.derive(entry, new, memory, data)
        _settle_additions(entry, new, memory, data, scratch)
    is_last = new + 1 >= data.constants[0]["n_targets"]
    progress["pending"], progress["by_tables"], progress["only_cases"] = none if is_last else new + 1, 0, 0
    return True


@bare
def _extend(
    entry: Int, variable: Int, only_cases: bool, memory: Memory, data: TableData, scratch: Scratch, room: Array
) -> bool:
    """Begin to make the entry with one parent more, or to make its cases again; False: memory is short."""
    target, old, progress = memory.cache.entries[entry]["target"], parents_of(entry, memory), memory.progress[0]
    parents, k = scratch.others[: old.shape[0] + 1], 0
    may_grow = parents.shape[0] < data.constants[0]["most_parents"] and not only_cases
    candidates = candidates_of(entry, memory, data, scratch.candidates)
    while candidates.variables[k] != variable:
        k += 1
    start, k = candidates.starts[k], 0
    by_tables = may_grow and _is_by_tables(entry, variable, start, memory, data)
    if _is_short(entry, variable, by_tables, memory, data, room):
        return False
    while k < old.shape[0] and old[k] < variable:
        parents[k] = old[k]
        k += 1
    parents[k] = variable
    while k < old.shape[0]:
        parents[k + 1] = old[k]
        k += 1
    new = find_entry(target, parents, memory)
    if new < 0:
        new = new_entry(target, parents, memory, data.variables)
    elif not only_cases:
        clear_entry(new, memory.cache)
    partitions.divide(entry, new, variable, start, memory, data, scratch)
    n: Int = np.int64(0)
    n_cells = data.variables[target]["n_cells"]
    if may_grow and not by_tables:
        partitions.cut(memory.cache.entries[new]["partition"], memory, data, scratch)
        n = partitions.plan(entry, new, memory, data)
    else:
        for k in range(memory.cache.entries[new]["where"], memory.used[N_WHERE]):
            memory.where[k] = -1
    progress["pending"], progress["origin"], progress["by_tables"] = new, entry, by_tables
    progress["only_cases"] = only_cases
    progress["to_count"] = n * n_cells * data.words.shape[1] // 10
    if by_tables:
        progress["to_count"] = np.int64(
            counting.TABLE_COST * candidates.variables.shape[0] * data.constants[0]["n_cases"]
        )
    n_configurations = memory.partitions[memory.cache.entries[new]["partition"]]["n"]
    progress["work"] += progress["to_count"] + 2 * n_configurations * n_cells
    return True


@bare
def _nearest(target: Int, parents: Array, memory: Memory, scratch: Scratch) -> tuple[Int, Int]:
    """Return an entry with cases, and a parent to add to it, on the way to the entry with these parents."""
    left, key, entries = parents, scratch.others, memory.cache.entries
    while True:
        for k in range(left.shape[0]):
            entry = find_entry(target, without(left, k, key), memory)
            if entry >= 0 and entries[entry]["partition"] >= 0:
                return entry, left[k]
        left = left[: left.shape[0] - 1]


@inlined
def find(
    target: Int, parents: Array, needs_cases: Int, memory: Memory, data: TableData, scratch: Scratch, room: Array
) -> Int:
    """Return the entry of a target with these sorted parents, made if needed; -1: memory or threads are needed."""
    entry: Int = np.int64(-1)
    progress, constants, none = memory.progress[0], data.constants[0], np.int64(-1)
    while _finish(memory, data, scratch):
        if progress["pending"] >= 0:
            continue
        entry = find_entry(target, parents, memory)
        is_known = entry >= 0
        if is_known and needs_cases and memory.cache.entries[entry]["partition"] < 0:
            entry = none
        elif entry < 0 and constants["derives_reversed"] and parents.shape[0] == 1 and not needs_cases:
            entry = _derive_reversed(target, parents, memory, data, scratch)
        if entry >= 0:
            break
        origin, parent = _nearest(target, parents, memory, scratch)
        if progress["kept"] > constants["most_kept"] and origin != progress["newest"]:  # it may be on the way
            forget(memory, data)
            continue
        only_cases = bool(is_known and memory.cache.entries[origin]["n_parents"] + 1 == parents.shape[0])
        if not _extend(origin, parent, only_cases, memory, data, scratch, room):
            break
        progress["newest"] = progress["pending"]
    return entry


@jit
def add_roots(targets: Array, memory: Memory, data: TableData) -> None:
    """Write the planes, and add the first entries: all targets without parents, to be counted when finished."""
    counting.pack(data)
    used, progress, nobody, n_words = memory.used, memory.progress[0], np.empty(0, np.int64), memory.masks.shape[1]
    whole, root, n_cases = memory.configurations[0], memory.partitions[0], data.constants[0]["n_cases"]
    whole["code"], whole["size"], whole["place"], whole["origin"] = 0, n_cases, 0, 0
    root["first"], root["n"], root["child"], root["next"], root["origin"], root["is_cut"] = 0, 1, -1, -1, -1, 1
    used[N_PARTITIONS] = used[N_CONFIGURATIONS] = used[N_MASKS] = 1
    progress["pending"], progress["origin"], progress["to_count"], progress["newest"] = 0, -1, 1, -1
    for bucket in range(memory.buckets.shape[0]):
        memory.buckets[bucket] = -1
    for word in range(n_words):
        memory.masks[0, word] = ~np.uint64(0) if 64 * (word + 1) <= n_cases else np.uint64(0)
    if n_cases & 63:
        memory.masks[0, n_cases >> 6] = ~np.uint64(0) >> np.uint64(64 - (n_cases & 63))
    for target in targets:
        entry = new_entry(target, nobody, memory, data.variables)
        record, own = memory.cache.entries[entry], data.variables[target]
        record["partition"], record["counts"], record["where"] = 0, used[N_CELLS], used[N_WHERE]
        counting.count_states(target, data, memory.cells, record["counts"])
        memory.where[used[N_WHERE]] = used[N_CELLS] + own["n_states"]
        used[N_WHERE] += 1
        used[N_CELLS] += own["n_states"] + own["n_cells"]


@inlined
def _partition_of(entry: Int, entries: Array) -> Int:
    """Return the partition of an entry, or -1 if the entry has no cases or is not known."""
    return entries[entry]["partition"] if entry >= 0 else np.int64(-1)


@jit
def copy_tables(
    of: Array, entries: Array, partitions: Array, configurations: Array, cells: Array, variables: Array
) -> Array:
    """Copy the parents, codes and counts of these entries, if they have cases, into one array (see `Copy`)."""
    n, n_missing, n_parents, n_codes, n_counts = of.shape[0], 0, 0, 0, 0
    for entry in of:
        partition = _partition_of(entry, entries)
        if partition < 0:
            n_missing += 1
            continue
        n_parents += entries[entry]["n_parents"]
        n_codes += partitions[partition]["n"]
        n_counts += partitions[partition]["n"] * variables[entries[entry]["target"]]["n_states"]
    out = np.zeros(1 + 2 * n + n_parents + n_codes + n_counts, np.int64)
    out[0], parent = n_missing, 1 + 2 * n
    code = parent + n_parents
    count = code + n_codes
    for k in range(n):
        partition = _partition_of(of[k], entries)
        if partition < 0:
            continue
        record = entries[of[k]]
        first, size = partitions[partition]["first"], partitions[partition]["n"]
        out[1 + k], out[1 + n + k] = size, record["n_parents"]
        for _ in range(record["n_parents"]):
            out[parent], partition = partitions[partition]["variable"], partitions[partition]["origin"]
            parent += 1
        for c in range(first, first + size):
            out[code] = configurations[c]["code"]
            code += 1
        for cell in range(record["counts"], record["counts"] + size * variables[record["target"]]["n_states"]):
            out[count] = cells[cell]
            count += 1
    return out


@jit
def count_pending(begin: int, end: int, memory: Memory, data: TableData) -> None:
    """Count for the pending entry (see `_count_some`), or count entries begin to end - 1, without parents."""
    entry, scratch = memory.progress[0]["origin"], make_scratch(data)
    if entry >= 0:
        _count_some(np.int64(begin), np.int64(end), memory, data, scratch)
    for root in range(begin, end if entry < 0 else begin):
        partitions.count_root(np.int64(root), memory, data, scratch)
