"""Loopy belief propagation on decision graphs: messages between graphs and variables, compiled.

A graph is a sum over ways (see `inference/factors.py`), so the messages of a node with thirty parents cost as much as
its ways have states, not a table over all assignments. A *slot* is a variable's place in a graph: the graph's own
variable first, then the parents it tests.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


class Messages(NamedTuple):
    """Graphs, their slots, and the messages from graphs to variables."""

    first_slot: Longs  # the slots of graph g: first_slot[g] to first_slot[g + 1]
    variable: Longs  # of each slot
    begin: Longs  # where the message of each slot begins; the end of the last
    is_own: NDArray[np.bool_]  # whether the first slot of graph g is its own variable; else that is known
    first_way: Longs  # the ways of graph g
    row: Longs  # where the numbers of graph g begin: one row a way, with the states of all slots side by side
    number: Floats  # own slot: the leaf's distribution; other slots: 1 for a state that the way allows, else 0
    slots: Longs  # the slots of each variable, one variable after the other
    first_of: Longs  # of each variable, its first in `slots`
    weight: Floats  # evidence: one number for each state of each variable
    weight_at: Longs
    message: Floats  # of each slot and state: what the graph says of the variable


@part
def _gather(m: Messages, slot: int, incoming: Floats) -> None:
    """What all other graphs, and the evidence, say of the slot's variable, so that it sums to one."""
    v = m.variable[slot]
    n = m.begin[slot + 1] - m.begin[slot]
    for s in range(n):
        incoming[s] = m.weight[m.weight_at[v] + s]
    for k in range(m.first_of[v], m.first_of[v + 1]):
        other = m.slots[k]
        if other != slot:
            total = 0.0
            for s in range(n):
                incoming[s] *= m.message[m.begin[other] + s]
                total += incoming[s]
            if total > 0.0:
                for s in range(n):
                    incoming[s] /= total


@part
def _update(m: Messages, g: int, incoming: Floats, sums: Floats, damping: float) -> float:
    """New messages of graph g to all its variables; the largest change of a number."""
    first, last = m.first_slot[g], m.first_slot[g + 1]
    start = m.begin[first]
    width = m.begin[last] - start
    for slot in range(first, last):
        _gather(m, slot, incoming[m.begin[slot] - start :])
    new = sums[:width]
    new[:] = 0.0
    each = sums[width : width + last - first]  # of one way: what its states weigh in each slot
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
    """Put new messages, each summing to one, in the place of the old ones; the largest change. -1: one is all zeros."""
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
    """Update all graphs, parents first, and back; the largest change on the way back. -1: all states are ruled out."""
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
    """The product of all messages to each variable and its evidence, made a distribution."""
    for v in range(m.first_of.shape[0] - 1):
        begin, end = m.weight_at[v], m.weight_at[v + 1]
        out[begin:end] = m.weight[begin:end]
        for k in range(m.first_of[v], m.first_of[v + 1]):
            total = 0.0
            for s in range(end - begin):
                out[begin + s] *= m.message[m.begin[m.slots[k]] + s]
                total += out[begin + s]
            if total > 0.0:
                for s in range(end - begin):
                    out[begin + s] /= total


@jit
def from_below(m: Messages, out: Floats) -> None:
    """What all graphs but a variable's own say of it, and its evidence; ones for a variable without a graph."""
    out[:] = 1.0
    for g in range(m.first_slot.shape[0] - 1):
        slot = m.first_slot[g]
        if m.is_own[g]:
            _gather(m, slot, out[m.weight_at[m.variable[slot]] :])
