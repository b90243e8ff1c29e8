"""Complete tables: splitting every parent configuration of a node alike, by a parent that is added.

The largest part of a configuration gets its histogram by subtraction, the others are counted.
"""

import numpy as np

from leafwise.kernels.arc_search import counts as cases
from leafwise.kernels.arc_search import node_cache as book
from leafwise.kernels.arc_search.node_cache import Memory, Scratch, Setting
from leafwise.kernels.compiling.jit import bare, inlined
from leafwise.kernels.compiling.types import Array, Int

_LEAST_KEPT = 16  # cases: smaller configurations are counted anew as quickly as they are kept, if room is short


@inlined
def configurations_of(row: Int, memory: Memory) -> Array:
    """All configurations of a row."""
    partition = memory.partitions[memory.book.rows[row]["partition"]]
    return memory.configurations[partition["first"] : partition["first"] + partition["n"]]


@inlined
def _find_child(partition: Int, variable: Int, partitions: Array) -> Int:
    """The partition split by a variable, or -1."""
    child = partitions[partition]["child"]
    while child >= 0 and partitions[child]["variable"] != variable:
        child = partitions[child]["next"]
    return child


@inlined
def _new_child(partition: Int, variable: Int, partitions: Array, used: Array) -> Int:
    """A partition split by a variable, without configurations so far."""
    child = used[book.N_PARTITIONS, 0]
    used[book.N_PARTITIONS, 0] += 1
    new = partitions[child]
    new["origin"], new["variable"], new["first"], new["n"] = partition, variable, used[book.N_CONFIGURATIONS, 0], 0
    new["child"], new["next"], new["is_cut"] = -1, partitions[partition]["child"], 0
    partitions[partition]["child"] = child
    return child


@bare
def _cut_once(partition: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """Cut the cases of the origin of a partition."""
    used, n_cases, own, first = memory.used, setting.numbers[0]["n_cases"], memory.partitions[partition], 0
    n_states = setting.variables[own["variable"]]["n_states"]
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
            elif cases.is_sparse(new["size"], n_cases):
                new["place"] = -1 - used[book.N_LISTED, 0]
                used[book.N_LISTED, 0] += new["size"]
            else:
                new["place"] = used[book.N_MASKS, 0]
                used[book.N_MASKS, 0] += 1
            places[new["code"] % n_states] = new["place"]
        if end > first + 1:
            cases.cut(old["place"], old["size"], own["variable"], places, memory.masks, memory.lists, setting, scratch)
        first = end
    own["is_cut"] = 1


@bare
def cut(partition: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """See to it that the cases of all configurations are there; rows that are counted otherwise need none."""
    partitions = memory.partitions
    while not partitions[partition]["is_cut"]:
        first = partition
        while not partitions[partitions[first]["origin"]]["is_cut"]:
            first = partitions[first]["origin"]
        _cut_once(first, memory, setting, scratch)


@bare
def _cross(
    place: Int, size: Int, target: Int, variable: Int, memory: Memory, setting: Setting, scratch: Scratch, block: Array
) -> None:
    """A target's counts for each state of a variable, in a set of cases."""
    for k in range(block.shape[0]):
        block[k] = 0
    left, rows = scratch.left, cases.rows_of(place, size, memory.masks, memory.lists, scratch.rows)
    left[0, 0], left[1, 0] = variable, 0
    cases.add_rows(rows, target, left[0, :1], left[1, :1], np.int64(1), setting, block, np.int64(0))


@bare
def divide(row: Int, new: Int, variable: Int, start: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """Give a new row its partition, made if need be, and the target's counts in all configurations.

    `start` is where the variable's block begins in the histograms of the row that it is made from.
    """
    used, rows, where, cells = memory.used, memory.book.rows, memory.where, memory.cells
    partitions, configurations, target = memory.partitions, memory.configurations, rows[row]["target"]
    n_states, n_classes = setting.variables[variable]["n_states"], setting.variables[target]["n_states"]
    origin, begin = rows[row]["partition"], rows[row]["where"]
    partition = _find_child(origin, variable, partitions)
    is_new = partition < 0
    if is_new:
        partition = _new_child(origin, variable, partitions, used)
    rows[new]["partition"], rows[new]["where"] = partition, used[book.N_WHERE, 0]
    rows[new]["counts"] = used[book.N_CELLS, 0]
    block, sizes = scratch.cells[: n_states * n_classes], scratch.states[0, :n_states]
    first = partitions[origin]["first"]
    for c in range(first, first + partitions[origin]["n"]):
        at = where[begin + c - first]
        if at < 0:
            cut(origin, memory, setting, scratch)
            place, size = configurations[c]["place"], configurations[c]["size"]
            _cross(place, size, target, variable, memory, setting, scratch, block)
        for state in range(n_states):
            sizes[state] = 0
            for k in range(state * n_classes, (state + 1) * n_classes):
                if at >= 0:
                    block[k] = cells[at + start + k]
                sizes[state] += block[k]
            if sizes[state] == 0:
                continue
            for k in range(state * n_classes, (state + 1) * n_classes):
                cells[used[book.N_CELLS, 0]] = block[k]
                used[book.N_CELLS, 0] += 1
            if is_new:
                made = configurations[used[book.N_CONFIGURATIONS, 0]]
                made["code"] = configurations[c]["code"] * n_states + state
                made["size"], made["origin"] = sizes[state], c - first
                used[book.N_CONFIGURATIONS, 0] += 1
    if is_new:
        partitions[partition]["n"] = used[book.N_CONFIGURATIONS, 0] - partitions[partition]["first"]
    used[book.N_WHERE, 0] += partitions[partition]["n"]


@bare
def family(c: int, configurations: Array) -> tuple[int, int]:
    """The end of the configurations of the same origin as the c-th, which is their first; and the largest of them."""
    end, largest = c, c
    while end < configurations.shape[0] and configurations[end]["origin"] == configurations[c]["origin"]:
        if configurations[end]["size"] > configurations[largest]["size"]:
            largest = end
        end += 1
    return end, largest


@bare
def plan(row: Int, new: Int, memory: Memory, setting: Setting) -> Int:
    """Say where the histograms of all configurations of a new row begin; how many are to be counted."""
    used, own, n_to_count = memory.used, setting.variables[memory.book.rows[new]["target"]], 0
    configurations, most, n, n_large = configurations_of(new, memory), own["most_kept"], 0, 0
    where, origins = memory.book.rows[new]["where"], memory.book.rows[row]["where"]
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
                memory.where[where + c] = used[book.N_CELLS, 0]
                used[book.N_CELLS, 0] += own["n_cells"]
                n += 1
                n_to_count += c != largest or origin < 0
        first = end
    used[book.KEPT, 0] += n * own["n_cells"] + 2 * setting.numbers[0]["n_cases"]
    return n_to_count


@bare
def count_some(begin: Int, end: Int, row: Int, new: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """Count the histograms of some configurations of a new row: those that do not follow from others."""
    rows, where, masks, lists, cells = memory.book.rows, memory.where, memory.masks, memory.lists, memory.cells
    counted = book.candidates_of(new, memory, setting, scratch.candidates)
    configurations, first = configurations_of(new, memory), 0
    target, own, counts = rows[new]["target"], rows[new]["where"], rows[new]["counts"]
    n_classes, origins, none = setting.variables[target]["n_states"], rows[row]["where"], np.int64(0)
    while first < configurations.shape[0]:
        last, largest = family(first, configurations)
        origin = where[origins + configurations[first]["origin"]]
        for c in range(max(first, begin), min(last, end)):
            at, totals = where[own + c], counts + c * n_classes
            size, place = configurations[c]["size"], configurations[c]["place"]
            if at >= 0 and (origin < 0 or c != largest):
                most = cases.count(
                    place, size, target, counted, totals, masks, lists, setting, scratch.classes, cells, cells, at, none
                )
                if most < counted.most_states or not counted.have_planes:
                    cases.count_rows(place, size, target, counted, most, memory, setting, scratch, cells, at)
        first = last


@bare
def count_root(root: Int, memory: Memory, setting: Setting, scratch: Scratch) -> None:
    """Count the histogram of a row without parents, and put what variables have counted of each other in both."""
    cells, variables, target = memory.cells, setting.variables, memory.book.rows[root]["target"]
    counted, none = book.candidates_of(root, memory, setting, scratch.candidates), np.int64(0)
    n_cases, n_classes, at = setting.numbers[0]["n_cases"], variables[target]["n_states"], memory.where[root]
    shares, first = setting.numbers[0]["shares"], none
    if shares:  # those before have counted this one
        first = setting.candidates[target]["base"] * n_classes
        counted = book.Counted(
            counted.variables[target:],
            counted.n_states[target:],
            counted.kinds[target:],
            counted.starts[target:],
            counted.most_states,
            counted.have_planes,
        )
    totals, masks, lists = memory.book.rows[root]["counts"], memory.masks, memory.lists
    most = cases.count(
        none, n_cases, target, counted, totals, masks, lists, setting, scratch.classes, cells, cells, at, first
    )
    if most < counted.most_states or not counted.have_planes:
        cases.count_rows(none, n_cases, target, counted, most, memory, setting, scratch, cells, at)
    for c in range(counted.variables.shape[0] if shares else 0):
        n_states, start = counted.n_states[c], at + counted.starts[c]
        to = memory.where[counted.variables[c]] + setting.candidates[target]["base"] * n_states
        for k in range(n_classes):
            for state in range(n_states):
                cells[to + k * n_states + state] = cells[start + state * n_classes + k]


@bare
def derive(row: Int, new: Int, memory: Memory, setting: Setting) -> None:
    """Copy the histograms of origins to their largest parts, and subtract those of the other parts that are kept."""
    configurations, cells, first = configurations_of(new, memory), memory.cells, 0
    where, origins = memory.book.rows[new]["where"], memory.book.rows[row]["where"]
    n_cells = setting.variables[memory.book.rows[new]["target"]]["n_cells"]
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
