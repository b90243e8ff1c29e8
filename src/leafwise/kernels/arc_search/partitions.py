"""Partitions of cases by parent configurations: an added parent splits all configurations of a node.

The histogram of the largest part of a configuration follows by subtraction, the others are counted.
"""

import numpy as np

from leafwise.kernels.arc_search import counts as counting
from leafwise.kernels.arc_search.node_cache import (
    N_CELLS,
    N_CONFIGURATIONS,
    N_LISTED,
    N_MASKS,
    N_PARTITIONS,
    N_WHERE,
    Candidates,
    Memory,
    Scratch,
    TableData,
    candidates_of,
)
from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array, Int

_LEAST_KEPT = 16  # cases: if memory is short, smaller configurations are recounted, which is as quick as keeping them


@inlined
def configurations_of(entry: Int, memory: Memory) -> Array:
    """Return all configurations of an entry."""
    partition = memory.partitions[memory.cache.entries[entry]["partition"]]
    return memory.configurations[partition["first"] : partition["first"] + partition["n"]]


@inlined
def _find_child(partition: Int, variable: Int, partitions: Array) -> Int:
    """Return the partition that was split by a variable from this one, or -1."""
    child = partitions[partition]["child"]
    while child >= 0 and partitions[child]["variable"] != variable:
        child = partitions[child]["next"]
    return child


@inlined
def _new_child(partition: Int, variable: Int, partitions: Array, used: Array) -> Int:
    """Add a partition that is split by a variable from this one, as yet without configurations."""
    child = used[N_PARTITIONS]
    used[N_PARTITIONS] += 1
    new = partitions[child]
    new["origin"], new["variable"], new["first"], new["n"] = partition, variable, used[N_CONFIGURATIONS], 0
    new["child"], new["next"], new["is_cut"] = -1, partitions[partition]["child"], 0
    partitions[partition]["child"] = child
    return child


@bare
def _cut_once(partition: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Make the sets of cases of a partition, whose origin has them."""
    used, n_cases, own, first = memory.used, data.constants[0]["n_cases"], memory.partitions[partition], 0
    n_states = data.variables[own["variable"]]["n_states"]
    configurations, places = memory.configurations[own["first"] : own["first"] + own["n"]], scratch.states[1, :n_states]
    while first < configurations.shape[0]:
        end, _ = family(first, configurations)
        old = memory.configurations[memory.partitions[own["origin"]]["first"] + configurations[first]["origin"]]
        for state in range(n_states):
            places[state] = 0
        for c in range(first, end):
            new = configurations[c]
            if end == first + 1:
                new["place"] = old["place"]
            elif counting.is_sparse(new["size"], n_cases):
                new["place"] = -1 - used[N_LISTED]
                used[N_LISTED] += new["size"]
            else:
                new["place"] = used[N_MASKS]
                used[N_MASKS] += 1
            places[new["code"] % n_states] = new["place"]
        if end > first + 1:
            counting.cut(old["place"], old["size"], own["variable"], places, memory.masks, memory.lists, data, scratch)
        first = end
    own["is_cut"] = 1


@bare
def cut(partition: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Make the sets of cases of a partition unless they exist; whole tables do not need them."""
    partitions = memory.partitions
    while not partitions[partition]["is_cut"]:
        first = partition
        while not partitions[partitions[first]["origin"]]["is_cut"]:
            first = partitions[first]["origin"]
        _cut_once(first, memory, data, scratch)


@bare
def _cross(
    place: Int, size: Int, target: Int, variable: Int, memory: Memory, data: TableData, scratch: Scratch, block: Array
) -> None:
    """Count a target's states for each state of a variable in a set of cases, into `block`."""
    for k in range(block.shape[0]):
        block[k] = 0
    left, rows = scratch.left, counting.rows_of(place, size, memory.masks, memory.lists, scratch.rows)
    left[0, 0], left[1, 0] = variable, 0
    counting.add_rows(rows, target, left[0, :1], left[1, :1], np.int64(1), data, block, np.int64(0))


@bare
def divide(entry: Int, new: Int, variable: Int, start: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Set the partition of a new entry, which is made if needed, and the target's counts in all configurations.

    `start` is the offset of the variable's block in the histograms of `entry`, from which the new one is made.
    """
    used, entries, where, cells = memory.used, memory.cache.entries, memory.where, memory.cells
    partitions, configurations, target = memory.partitions, memory.configurations, entries[entry]["target"]
    n_states, n_classes = data.variables[variable]["n_states"], data.variables[target]["n_states"]
    origin, begin = entries[entry]["partition"], entries[entry]["where"]
    partition = _find_child(origin, variable, partitions)
    is_new = partition < 0
    if is_new:
        partition = _new_child(origin, variable, partitions, used)
    entries[new]["partition"], entries[new]["where"] = partition, used[N_WHERE]
    entries[new]["counts"] = used[N_CELLS]
    block, sizes = scratch.cells[: n_states * n_classes], scratch.states[0, :n_states]
    first = partitions[origin]["first"]
    for c in range(first, first + partitions[origin]["n"]):
        at = where[begin + c - first]
        if at < 0:
            cut(origin, memory, data, scratch)
            place, size = configurations[c]["place"], configurations[c]["size"]
            _cross(place, size, target, variable, memory, data, scratch, block)
        for state in range(n_states):
            sizes[state] = 0
            for k in range(state * n_classes, (state + 1) * n_classes):
                if at >= 0:
                    block[k] = cells[at + start + k]
                sizes[state] += block[k]
            if sizes[state] == 0:
                continue
            for k in range(state * n_classes, (state + 1) * n_classes):
                cells[used[N_CELLS]] = block[k]
                used[N_CELLS] += 1
            if is_new:
                made = configurations[used[N_CONFIGURATIONS]]
                made["code"] = configurations[c]["code"] * n_states + state
                made["size"], made["origin"] = sizes[state], c - first
                used[N_CONFIGURATIONS] += 1
    if is_new:
        partitions[partition]["n"] = used[N_CONFIGURATIONS] - partitions[partition]["first"]
    used[N_WHERE] += partitions[partition]["n"]


@bare
def family(c: int, configurations: Array) -> tuple[int, int]:
    """Return the end of the configurations with the same origin as the c-th, their first, and the largest of them."""
    end, largest = c, c
    while end < configurations.shape[0] and configurations[end]["origin"] == configurations[c]["origin"]:
        if configurations[end]["size"] > configurations[largest]["size"]:
            largest = end
        end += 1
    return end, largest


@bare
def plan(entry: Int, new: Int, memory: Memory, data: TableData) -> Int:
    """Allocate histograms for the larger configurations of a new entry; return how many must be counted."""
    used, own, n_to_count = memory.used, data.variables[memory.cache.entries[new]["target"]], 0
    configurations, most, n, n_large = configurations_of(new, memory), own["most_kept"], 0, 0
    where, origins = memory.cache.entries[new]["where"], memory.cache.entries[entry]["where"]
    for c in range(configurations.shape[0]):
        n_large += configurations[c]["size"] > 1
    least = 2 if n_large <= most else _LEAST_KEPT
    first = 0
    while first < configurations.shape[0]:
        end, largest = family(first, configurations)
        origin = memory.where[origins + configurations[first]["origin"]]
        for c in range(first, end):
            memory.where[where + c] = -1
            if end == first + 1 and origin >= 0:
                memory.where[where + c] = origin  # the same cases
            elif configurations[c]["size"] >= least and n < most:
                memory.where[where + c] = used[N_CELLS]
                used[N_CELLS] += own["n_cells"]
                n += 1
                n_to_count += c != largest or origin < 0
        first = end
    memory.progress[0]["kept"] += n * own["n_cells"] + 2 * data.constants[0]["n_cases"]
    return n_to_count


@bare
def count_some(begin: Int, end: Int, entry: Int, new: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Count the histograms of configurations begin to end - 1 of a new entry, unless they follow by subtraction."""
    entries, where, masks, lists, cells = memory.cache.entries, memory.where, memory.masks, memory.lists, memory.cells
    candidates = candidates_of(new, memory, data, scratch.candidates)
    configurations, first = configurations_of(new, memory), 0
    target, own, counts = entries[new]["target"], entries[new]["where"], entries[new]["counts"]
    n_classes, origins, none = data.variables[target]["n_states"], entries[entry]["where"], np.int64(0)
    while first < configurations.shape[0]:
        last, largest = family(first, configurations)
        origin = where[origins + configurations[first]["origin"]]
        for c in range(max(first, begin), min(last, end)):
            at, totals = where[own + c], counts + c * n_classes
            size, place = configurations[c]["size"], configurations[c]["place"]
            if at >= 0 and (origin < 0 or c != largest):
                most = counting.count(
                    place, size, target, candidates, totals, masks, lists, data, scratch.classes, cells, cells, at, none
                )
                if most < candidates.most_states or not candidates.have_planes:
                    counting.count_rows(place, size, target, candidates, most, memory, data, scratch, cells, at)
        first = last


@bare
def count_root(root: Int, memory: Memory, data: TableData, scratch: Scratch) -> None:
    """Count the histogram of an entry without parents; if pairs are counted once, copy blocks to the others'."""
    cells, variables, target = memory.cells, data.variables, memory.cache.entries[root]["target"]
    candidates, none = candidates_of(root, memory, data, scratch.candidates), np.int64(0)
    n_cases, n_classes, at = data.constants[0]["n_cases"], variables[target]["n_states"], memory.where[root]
    is_once, first = data.constants[0]["counts_pairs_once"], none
    if is_once:  # earlier variables have counted this one
        first = data.candidates[target]["base"] * n_classes
        candidates = Candidates(
            candidates.variables[target:],
            candidates.n_states[target:],
            candidates.arities[target:],
            candidates.starts[target:],
            candidates.most_states,
            candidates.have_planes,
        )
    totals, masks, lists = memory.cache.entries[root]["counts"], memory.masks, memory.lists
    most = counting.count(
        none, n_cases, target, candidates, totals, masks, lists, data, scratch.classes, cells, cells, at, first
    )
    if most < candidates.most_states or not candidates.have_planes:
        counting.count_rows(none, n_cases, target, candidates, most, memory, data, scratch, cells, at)
    for c in range(candidates.variables.shape[0] if is_once else 0):
        n_states, start = candidates.n_states[c], at + candidates.starts[c]
        to = memory.where[candidates.variables[c]] + data.candidates[target]["base"] * n_states
        for k in range(n_classes):
            for state in range(n_states):
                cells[to + k * n_states + state] = cells[start + state * n_classes + k]


@bare
def derive(entry: Int, new: Int, memory: Memory, data: TableData) -> None:
    """Copy the histograms of configurations to their largest parts, and subtract those of other parts that are kept."""
    configurations, cells, first = configurations_of(new, memory), memory.cells, 0
    where, origins = memory.cache.entries[new]["where"], memory.cache.entries[entry]["where"]
    n_cells = data.variables[memory.cache.entries[new]["target"]]["n_cells"]
    while first < configurations.shape[0]:
        end, largest = family(first, configurations)
        source, to = memory.where[origins + configurations[first]["origin"]], memory.where[where + largest]
        if source >= 0 and to >= 0 and end > first + 1:
            whole, rest = cells[source : source + n_cells], cells[to : to + n_cells]
            for k in range(n_cells):
                rest[k] = whole[k]
            for c in range(first, end):
                at = memory.where[where + c]
                if c != largest and at >= 0:
                    part = cells[at : at + n_cells]
                    for k in range(n_cells):
                        rest[k] -= part[k]
        first = end
