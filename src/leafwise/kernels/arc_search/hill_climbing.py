"""Greedy search over arcs, step after step, until something needs Python: memory, threads, the clock."""

from typing import NamedTuple

import numpy as np

from leafwise.kernels.arc_search import equivalence as turns
from leafwise.kernels.arc_search import moves as arcs
from leafwise.kernels.arc_search import node_cache as book
from leafwise.kernels.arc_search import table_nodes
from leafwise.kernels.arc_search.moves import Rules
from leafwise.kernels.arc_search.node_cache import Memory, Scratch, Setting
from leafwise.kernels.compiling.jit import bare, inlined, jit, part
from leafwise.kernels.compiling.types import Array, Int

LEAST_GAIN = 1e-6  # of several changes, whose gain is a sum of differences: more than it is off by

# Why a climb came back: it needs room or threads; no change gains; all steps it was to take are taken; it is time to
# look at the clock.
HELP, TOP, DONE, PAUSE = range(4)
UNKNOWN, WITH_CASES = -1, -2  # rows that are to be found
ALL, SURE = -2, -1  # which parents a target has


class Graph(NamedTuple):
    """The arcs, and what follows from them."""

    is_parent: Array  # is_parent[child, parent]
    ancestors: Array
    rows: Array  # of the book, for each target as it is; or UNKNOWN, or WITH_CASES: not known if it has them
    links: Array  # which arcs can be turned round for nothing
    turned_rows: Array  # of the book, for each target as it may be after turning arcs
    is_stale: Array  # for each target: whether those are not known yet
    parents: Array  # scratch


class Log(NamedTuple):
    """Steps taken."""

    steps: Array  # kind, parent, child, and how many of the arcs below were turned so far
    gains: Array
    turned: Array  # parent, child
    n: Array  # how many steps


@inlined
def _parents(target: Int, way: Int, graph: Graph) -> Array:
    """The parents of a target as they are, if `way` is ALL; only those that are sure, if SURE; and this neighbour."""
    n, is_parent, links = 0, graph.is_parent, graph.links
    for other in range(is_parent.shape[0]):
        if is_parent[target, other] if way == ALL else links[target, other] == turns.PARENT or other == way:
            graph.parents[n] = other
            n += 1
    return graph.parents[:n]


@bare
def _may_turn(target: Int, neighbour: Int, graph: Graph, rules: Rules) -> bool:
    """Whether a neighbour may be a parent of the target, besides those that are sure."""
    if graph.links[target, neighbour] != turns.NEIGHBOUR or not rules.may_be[target, neighbour]:
        return False
    n_rows = rules.n_states[neighbour]
    for other in range(rules.n_states.shape[0]):
        if graph.links[target, other] == turns.PARENT:
            n_rows *= rules.n_states[other]
    return n_rows <= rules.limits[1]


@bare
def _next_wanted(at: Int, with_turns: bool, graph: Graph, rules: Rules) -> Int:
    """The next row, from the one at `at` on, that has to be found; -1 where there are no more.

    There are as many for each target as there are ways to have parents.
    """
    n = graph.is_parent.shape[0]
    first, way = at // (n + 2), at % (n + 2) + ALL
    for k in range(first, rules.targets.shape[0]):
        target = rules.targets[k]
        if way == ALL:
            if graph.rows[target] < 0:
                return k * (n + 2)
            way = SURE
        if with_turns and graph.is_stale[target]:
            while way < n:
                if way == SURE or _may_turn(target, way, graph, rules):
                    return k * (n + 2) + way - ALL
                graph.turned_rows[target, way] = -1
                way += 1
        way = ALL
    return np.int64(-1)


@bare
def _know_all(
    with_turns: bool,
    graph: Graph,
    rules: Rules,
    memory: Memory,
    setting: Setting,
    scratch: Scratch,
    room: Array,
) -> bool:
    """See to it that all rows are known; whether that went well."""
    n = graph.is_parent.shape[0]
    at = _next_wanted(np.int64(0), with_turns, graph, rules)
    while at >= 0:
        target, way = rules.targets[at // (n + 2)], at % (n + 2) + ALL
        needs_cases = np.int64(graph.rows[target] == WITH_CASES)
        row = table_nodes.find(target, _parents(target, way, graph), needs_cases, memory, setting, scratch, room)
        if row < 0:
            return False
        if way == ALL:
            graph.rows[target] = row
        else:
            graph.turned_rows[target, way if way >= 0 else n] = row
        at = _next_wanted(at + 1, with_turns, graph, rules)
    if with_turns:
        for node in range(n):
            graph.is_stale[node] = False
    return True


@part
def _turn(child: int, kept: int, graph: Graph, log: Log) -> None:
    """Turn arcs, and write them to the log."""
    turned, n = np.empty_like(graph.is_parent), log.steps[log.n[0], 3]
    turns.turn(child, kept, graph.links, graph.is_parent, turned)
    for node in range(turned.shape[0]):
        for parent in range(turned.shape[0]):
            if turned[node, parent] > graph.is_parent[node, parent]:
                log.turned[n, 0], log.turned[n, 1] = parent, node
                graph.is_parent[node, parent], graph.is_parent[parent, node] = 1, 0
                graph.rows[node] = graph.rows[parent] = UNKNOWN
                n += 1
    log.steps[log.n[0], 3] = n
    arcs.change_arc(np.int64(arcs.STOP), np.int64(0), np.int64(0), graph.is_parent, graph.ancestors)


@inlined
def _step(with_turns: bool, graph: Graph, log: Log, rules: Rules, memory: Memory) -> bool:
    """Change the arc that gains most; whether there is one."""
    kind, parent, child, gain = arcs.best_move(
        graph.is_parent, graph.ancestors, graph.rows, rules, memory.book, memory.parents
    )
    n = log.n[0]
    log.steps[n, 3] = log.steps[n - 1, 3] if n > 0 else 0
    if with_turns:
        other = turns.best_turn(
            max(gain, LEAST_GAIN), graph.turned_rows, graph.links, graph.is_parent, rules, memory.book
        )
        if other[0] != arcs.STOP:
            kind, parent, child, kept, gain = other
            _turn(child, kept, graph, log)
    if kind == arcs.STOP:
        return False
    arcs.change_arc(kind, parent, child, graph.is_parent, graph.ancestors)
    graph.rows[child] = UNKNOWN
    if kind == arcs.REVERSE:
        graph.rows[parent] = UNKNOWN
    log.steps[n, 0], log.steps[n, 1], log.steps[n, 2], log.gains[n] = kind, parent, child, gain
    log.n[0] += 1
    return True


@inlined
def _is_full(log: Log) -> bool:
    """Whether there may be no room for the next step: half of the room for arcs is for one step."""
    n = log.n[0]
    return n == log.gains.shape[0] or (n > 0 and 2 * log.steps[n - 1, 3] > log.turned.shape[0])


@jit
def climb(
    most_steps: int,
    with_turns: bool,
    most_work: int,
    graph: Graph,
    log: Log,
    rules: Rules,
    memory: Memory,
    setting: Setting,
    room: Array,
) -> int:
    """Take so many steps, and find all rows; or say what came in between."""
    scratch = book.make_scratch(setting)
    end = memory.used[book.WORK, 0] + most_work
    while True:
        if with_turns:
            turns.find_links(graph.is_parent, graph.links, graph.is_stale)
        if not _know_all(with_turns, graph, rules, memory, setting, scratch, room):
            return HELP
        if log.n[0] >= most_steps:
            return DONE
        if memory.used[book.WORK, 0] > end or _is_full(log):
            return PAUSE
        if not _step(with_turns, graph, log, rules, memory):
            return TOP
