"""Loopy belief propagation on decision graphs: messages between graphs and variables, compiled.

A graph is a sum over paths (see `inference/factors.py`), so the cost of the messages of a node with thirty parents is
proportional to the number of states on its paths, not to a table over all assignments. A *slot* is a variable's place
in a graph: the graph's own variable first, then the parents it tests.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]
_THIN = 1e-290  # smaller numbers lose digits


class Messages(NamedTuple):
    """Graphs, their slots, and the messages from graphs to variables."""

    first_slot: Longs  # the slots of graph g: first_slot[g] to first_slot[g + 1] - 1
    variable: Longs  # by slot
    begin: Longs  # by slot, and one more: index of its message
    is_own: NDArray[np.bool_]  # by graph: whether its first slot is its own variable, which otherwise is known
    first_way: Longs  # the paths of graph g: first_way[g] to first_way[g + 1] - 1
    row: Longs  # by graph: index of its numbers, one row per path, with the states of all slots side by side
    number: Floats  # own slot: the leaf's distribution; other slots: 1 for a state that the path allows, else 0
    slots: Longs  # the slots of each variable, variable after variable
    first_of: Longs  # by variable, and one more: index in `slots` of its first slot
    weight: Floats  # evidence: a weight for each state of each variable
    weight_at: Longs  # by variable, and one more: index of its first weight
    message: Floats  # by slot and state: message of the graph to the variable


@part
def _multiply(m: Messages, v: int, omitted: int, out: Floats) -> None:
    """Multiply the evidence and the messages to variable v, except for that of one slot, normalized."""
    n = m.weight_at[v + 1] - m.weight_at[v]
    for s in range(n):
        out[s] = m.weight[m.weight_at[v] + s]
    for k in range(m.first_of[v], m.first_of[v + 1]):
        slot = m.slots[k]
        if slot != omitted:
            total = 0.0
            for s in range(n):
                value = out[s] * m.message[m.begin[slot] + s]
                if value < _THIN and out[s] > 0.0 and m.message[m.begin[slot] + s] > 0.0:
                    _add_logs(m, v, omitted, out)
                    return
                out[s] = value
                total += value
            if total > 0.0:
                for s in range(n):
                    out[s] /= total


@part
def _add_logs(m: Messages, v: int, omitted: int, out: Floats) -> None:
    """Do the same by logs: a state may be far less probable than another one that a later message rules out."""
    n = m.weight_at[v + 1] - m.weight_at[v]
    largest, total = -np.inf, 0.0
    for s in range(n):
        weight = m.weight[m.weight_at[v] + s]
        out[s] = math.log(weight) if weight > 0.0 else -np.inf
        for k in range(m.first_of[v], m.first_of[v + 1]):
            if m.slots[k] != omitted:
                message = m.message[m.begin[m.slots[k]] + s]
                out[s] += math.log(message) if message > 0.0 else -np.inf
        largest = max(largest, out[s])
    for s in range(n):
        out[s] = math.exp(out[s] - largest) if out[s] > -np.inf else 0.0
        total += out[s]
    for s in range(n if total > 0.0 else 0):
        out[s] /= total


@part
def _update(m: Messages, g: int, incoming: Floats, sums: Floats, damping: float) -> float:
    """Compute new messages of graph g to all its variables; return the largest change, or -1 (see `_replace`)."""
    first, last = m.first_slot[g], m.first_slot[g + 1]
    start = m.begin[first]
    width = m.begin[last] - start
    for slot in range(first, last):
        _multiply(m, m.variable[slot], slot, incoming[m.begin[slot] - start :])
    new = sums[:width]
    new[:] = 0.0
    each = sums[width : width + last - first]  # of one path: total weight of its states in each slot
    for way in range(m.first_way[g + 1] - m.first_way[g]):
        at = m.row[g] + way * width
        n_zero, product = 0, 1.0
        for slot in range(first, last):
            total = 0.0
            for k in range(m.begin[slot] - start, m.begin[slot + 1] - start):
                total += m.number[at + k] * incoming[k]
            each[slot - first] = total
            if total > 0.0:
                product *= total
            else:
                n_zero += 1
        if n_zero > 1 or product == 0.0:
            continue
        for slot in range(first, last):
            own = each[slot - first]
            if n_zero == 1 and own > 0.0:
                continue
            rest = product / own if own > 0.0 else product
            for k in range(m.begin[slot] - start, m.begin[slot + 1] - start):
                new[k] += m.number[at + k] * rest
    return _replace(m, first, last, new, damping)


@part
def _replace(m: Messages, first: int, last: int, new: Floats, damping: float) -> float:
    """Replace old messages by new ones, normalized; return the largest change, or -1 if one message is all zeros."""
    change, start = 0.0, m.begin[first]
    for slot in range(first, last):
        total = 0.0
        for k in range(m.begin[slot], m.begin[slot + 1]):
            total += new[k - start]
        if total == 0.0:
            return -1.0
        for k in range(m.begin[slot], m.begin[slot + 1]):
            value = (1.0 - damping) * new[k - start] / total + damping * m.message[k]
            change = max(change, abs(value - m.message[k]))
            m.message[k] = value
    return change


@jit
def sweep(m: Messages, damping: float, widest: int) -> float:
    """Update all graphs, parents first, and back; return the largest change on the way back, or -1 (see `_replace`)."""
    incoming, sums = np.empty(widest), np.empty(2 * widest)
    n = m.first_slot.shape[0] - 1
    change = 0.0
    for k in range(2 * n):
        g = k if k < n else 2 * n - 1 - k
        moved = _update(m, g, incoming, sums, damping)
        if moved < 0.0:
            return -1.0
        change = max(change, moved) if k >= n else 0.0
    return change


@jit
def beliefs(m: Messages, out: Floats) -> None:
    """Multiply all messages to each variable and its evidence, and normalize."""
    for v in range(m.first_of.shape[0] - 1):
        _multiply(m, v, -1, out[m.weight_at[v] :])


@jit
def from_below(m: Messages, out: Floats) -> None:
    """Multiply for each variable its evidence and the messages of all graphs but its own; ones if it has no graph."""
    out[:] = 1.0
    for g in range(m.first_slot.shape[0] - 1):
        slot = m.first_slot[g]
        if m.is_own[g]:
            _multiply(m, m.variable[slot], slot, out[m.weight_at[m.variable[slot]] :])
