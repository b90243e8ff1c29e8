"""Hill climbing over arcs, until Python is needed: for memory, threads, or the clock."""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.arc_search import equivalence, moves, table_nodes
from leafwise.kernels.arc_search.moves import Rules
from leafwise.kernels.arc_search.node_cache import Memory, Scratch, TableData, make_scratch
from leafwise.kernels.compiling.jit import bare, inlined, jit, part
from leafwise.kernels.compiling.types import Array, Int

LEAST_GAIN = 1e-6  # of several changes, whose gain is a sum of differences: more than its rounding error

# Why a climb returned: it needs memory or threads; no change gains; it took all requested steps; the clock is due.
NEEDS_HOST, AT_OPTIMUM, DONE, PAUSE = range(4)
UNKNOWN, WITH_CASES = -1, -2  # entries that must be found; the second one with its cases
ALL, COMPELLED = -2, -1  # which parents a target has; otherwise the compelled ones and a neighbour, given by number


class Graph(NamedTuple):
    """The arcs, and what is derived from them."""

    is_parent: Array  # is_parent[child, parent]
    ancestors: Array
    entries: Array  # by target: the cache entry for its current parents, UNKNOWN or WITH_CASES
    cpdag: Array  # which arcs are compelled, and which are reversible
    reoriented_entries: Array  # by target and neighbour: its entries in equivalent DAGs, as in best_reoriented_move
    is_stale: Array  # by target: whether these must be found again
    parents: Array  # scratch


class Log(NamedTuple):
    """Steps taken."""

    steps: Array  # kind, parent, child, and the number of reoriented arcs so far
    gains: Array
    reoriented: Array  # parent, child
    n: Array  # number of steps


@inlined
def _parents(target: Int, way: Int, graph: Graph) -> Array:
    """Return the current parents of a target if `way` is ALL, otherwise its compelled ones and this neighbour."""
    n, is_parent, cpdag = 0, graph.is_parent, graph.cpdag
    for other in range(is_parent.shape[0]):
        if is_parent[target, other] if way == ALL else cpdag[target, other] == equivalence.COMPELLED or other == way:
            graph.parents[n] = other
            n += 1
    return graph.parents[:n]


@bare
def _may_reorient(target: Int, neighbour: Int, graph: Graph, rules: Rules) -> bool:
    """Return whether a neighbour may be a parent of the target in addition to the compelled ones."""
    if graph.cpdag[target, neighbour] != equivalence.REVERSIBLE or not rules.may_be[target, neighbour]:
        return False
    n_rows = rules.n_states[neighbour]
    for other in range(rules.n_states.shape[0]):
        if graph.cpdag[target, other] == equivalence.COMPELLED:
            n_rows *= rules.n_states[other]
    return n_rows <= rules.limits[1]


@bare
def _next_missing(at: Int, reorients: bool, graph: Graph, rules: Rules) -> Int:
    """Return the number of the next entry, from `at` on, that must be found; -1 if there are no more.

    Each target has n + 2 of them: ALL, COMPELLED, and one per neighbour; those that may not be parents are set to -1.
    """
    n = graph.is_parent.shape[0]
    first, way = at // (n + 2), at % (n + 2) + ALL
    for k in range(first, rules.targets.shape[0]):
        target = rules.targets[k]
        if way == ALL:
            if graph.entries[target] < 0:
                return k * (n + 2)
            way = COMPELLED
        if reorients and graph.is_stale[target]:
            while way < n:
                if way == COMPELLED or _may_reorient(target, way, graph, rules):
                    return k * (n + 2) + way - ALL
                graph.reoriented_entries[target, way] = -1
                way += 1
        way = ALL
    return np.int64(-1)


@bare
def _find_entries(
    reorients: bool,
    graph: Graph,
    rules: Rules,
    memory: Memory,
    data: TableData,
    scratch: Scratch,
    room: Array,
) -> bool:
    """Find all missing entries; False: memory or threads are needed first."""
    n = graph.is_parent.shape[0]
    at = _next_missing(np.int64(0), reorients, graph, rules)
    while at >= 0:
        target, way = rules.targets[at // (n + 2)], at % (n + 2) + ALL
        needs_cases = np.int64(graph.entries[target] == WITH_CASES)
        entry = table_nodes.find(target, _parents(target, way, graph), needs_cases, memory, data, scratch, room)
        if entry < 0:
            return False
        if way == ALL:
            graph.entries[target] = entry
        else:
            graph.reoriented_entries[target, way if way >= 0 else n] = entry
        at = _next_missing(at + 1, reorients, graph, rules)
    if reorients:
        for node in range(n):
            graph.is_stale[node] = False
    return True


@part
def _reorient(child: int, kept: int, graph: Graph, log: Log) -> None:
    """Change to an equivalent DAG, and log the arcs that differ."""
    reoriented, n = np.empty_like(graph.is_parent), log.steps[log.n[0], 3]
    equivalence.reorient(child, kept, graph.cpdag, graph.is_parent, reoriented)
    for node in range(reoriented.shape[0]):
        for parent in range(reoriented.shape[0]):
            if reoriented[node, parent] > graph.is_parent[node, parent]:
                log.reoriented[n, 0], log.reoriented[n, 1] = parent, node
                graph.is_parent[node, parent], graph.is_parent[parent, node] = 1, 0
                graph.entries[node] = graph.entries[parent] = UNKNOWN
                n += 1
    log.steps[log.n[0], 3] = n
    moves.change_arc(np.int64(moves.STOP), np.int64(0), np.int64(0), graph.is_parent, graph.ancestors)


@inlined
def _step(reorients: bool, graph: Graph, log: Log, rules: Rules, memory: Memory) -> bool:
    """Make the change with the largest gain, and log it; return whether there is one."""
    kind, parent, child, gain = moves.best_move(
        graph.is_parent, graph.ancestors, graph.entries, rules, memory.cache, memory.parents
    )
    n = log.n[0]
    log.steps[n, 3] = log.steps[n - 1, 3] if n > 0 else 0
    if reorients:
        other = equivalence.best_reoriented_move(
            max(gain, LEAST_GAIN), graph.reoriented_entries, graph.cpdag, graph.is_parent, rules, memory.cache
        )
        if other[0] != moves.STOP:
            kind, parent, child, kept, gain = other
            _reorient(child, kept, graph, log)
    if kind == moves.STOP:
        return False
    moves.change_arc(kind, parent, child, graph.is_parent, graph.ancestors)
    graph.entries[child] = UNKNOWN
    if kind == moves.REVERSE:
        graph.entries[parent] = UNKNOWN
    log.steps[n, 0], log.steps[n, 1], log.steps[n, 2], log.gains[n] = kind, parent, child, gain
    log.n[0] += 1
    return True


@inlined
def _is_full(log: Log) -> bool:
    """Return whether there may be no room for the next step, which gets half of the room for arcs."""
    n = log.n[0]
    return n == log.gains.shape[0] or (n > 0 and 2 * log.steps[n - 1, 3] > log.reoriented.shape[0])


@jit
def climb(
    most_steps: int,
    reorients: bool,
    most_work: int,
    graph: Graph,
    log: Log,
    rules: Rules,
    memory: Memory,
    data: TableData,
    room: Array,
) -> int:
    """Climb until `most_steps` are logged, and find all entries; return why it ended."""
    scratch = make_scratch(data)
    end = memory.progress[0]["work"] + most_work
    while True:
        if reorients:
            equivalence.find_cpdag(graph.is_parent, graph.cpdag, graph.is_stale)
        if not _find_entries(reorients, graph, rules, memory, data, scratch, room):
            return NEEDS_HOST
        if log.n[0] >= most_steps:
            return DONE
        if memory.progress[0]["work"] > end or _is_full(log):
            return PAUSE
        if not _step(reorients, graph, log, rules, memory):
            return AT_OPTIMUM
