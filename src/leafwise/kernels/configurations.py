"""Complete tables: splitting every parent configuration of a node alike.

A node's table is kept as its *configurations*: the states of its parents that occur in the data, one record each, with
the digits of the states in `code` (the parent added last varies fastest). Adding an arc splits all of them by the new
parent.
"""

from typing import Any, NamedTuple

import numpy as np

from leafwise.kernels.arrays import Array, Int
from leafwise.kernels.jit import jit, part

CONFIGURATION = np.dtype(
    [
        ("code", np.int64),
        ("size", np.int64),  # cases
        ("cases", np.int64),  # the counter's set
        ("histogram", np.int64),  # its number among those the node keeps, or -1
        ("origin", np.int64),  # the configuration it was split from
        ("less", np.int64),  # the sibling whose histogram is the origin's less this one's and others', or -1
    ],
    align=True,
)
# Places in Split.totals: how many configurations there are, how many of them are in each list, and histograms kept.
N_AFTER, N_CUTS, N_PARTS, N_COPIED, N_COUNTED, N_SMALL, N_PRICED, N_KEPT = range(8)

_LEAST_KEPT = 16  # cases: smaller configurations are counted anew as quickly as they are kept, if room is short


class Split(NamedTuple):
    """What becomes of a node's configurations when all of them are split by a variable."""

    after: Array
    counts: Array  # of the target in each
    cuts: Array  # the sets of cases to be cut,
    n_parts: Array  # into how many parts each,
    groups: Array  # which part each state goes to,
    sizes: Array  # and how many cases each part gets
    parts: Array  # which of `after` these parts are; the others take over all cases of their origin
    copied: Array  # which of `after` begin with the histogram of their origin,
    counted: Array  # which are to be counted,
    where: Array  # where their histograms begin if they are kept,
    small: Array  # or forgotten,
    priced: Array  # and where the histograms that are kept begin, if they are to be priced
    totals: Array


def make_split(room: int, n_classes: int) -> Split:
    """Room for splits into so many configurations, one to spare, of targets with up to so many states."""
    numbers = np.empty((10, room), np.int64)
    return Split(np.empty(room, CONFIGURATION), np.empty((room, n_classes), np.int64), *numbers, np.zeros(8, np.int64))  # type: ignore[call-arg]


@part
def _divide(
    before: Array, histograms: Array, begin: int, others: Array, n_states: int, n_classes: int, split: Split
) -> None:
    """The configurations after the split, and the cuts that it takes."""
    totals, n_others = split.totals, 0
    for c in range(before.shape[0]):
        which = before[c]["histogram"]
        if which >= 0:
            cross = histograms[which, begin:]
        else:
            cross = others[n_others, 0:]
            n_others += 1
        first = totals[N_AFTER]
        for state in range(n_states):
            size, at = 0, state * n_classes
            for k in range(n_classes):
                size += cross[at + k]
            n = totals[N_AFTER]
            split.groups[totals[N_CUTS] * n_states + state] = n - first if size > 0 else 0
            if size > 0:
                new = split.after[n]
                new["code"], new["size"] = before[c]["code"] * n_states + state, size
                new["origin"], new["cases"] = c, before[c]["cases"]
                for k in range(n_classes):
                    split.counts[n, k] = cross[at + k]
                totals[N_AFTER] += 1
        if totals[N_AFTER] - first > 1:
            for child in range(first, totals[N_AFTER]):
                split.parts[totals[N_PARTS]] = child
                split.sizes[totals[N_PARTS]] = split.after[child]["size"]
                totals[N_PARTS] += 1
            split.cuts[totals[N_CUTS]] = before[c]["cases"]
            split.n_parts[totals[N_CUTS]] = totals[N_AFTER] - first
            totals[N_CUTS] += 1


@part
def _place(new: Any, least: Int, most_kept: int, n_cells: int, split: Split) -> bool:
    """Whether there is room to keep a histogram for the configuration, and it is large enough to deserve it."""
    number = split.totals[N_KEPT]
    if new["size"] < least or number >= most_kept:
        return False
    new["histogram"] = number
    split.totals[N_KEPT] += 1
    if new["size"] > 1:
        split.priced[split.totals[N_PRICED]] = number * n_cells
        split.totals[N_PRICED] += 1
    return True


@part
def _note(item: int, items: Array, which: Int, totals: Array) -> None:
    items[totals[which]] = item
    totals[which] += 1


@part
def _find_sources(before: Array, n_cells: int, most_kept: int, split: Split) -> None:
    """Where each configuration gets its histogram from: for the largest of siblings by subtraction, if possible."""
    after, n = split.after, split.totals[N_AFTER]
    n_large = 0
    for c in range(n):
        n_large += after[c]["size"] > 1
    least = np.int64(1 if n_large <= most_kept else _LEAST_KEPT)
    first = 0
    while first < n:
        origin = before[after[first]["origin"]]
        end, largest = first, first
        while end < n and after[end]["origin"] == after[first]["origin"]:
            after[end]["histogram"] = after[end]["less"] = -1
            if after[end]["size"] > after[largest]["size"]:
                largest = end
            end += 1
        copies = origin["histogram"] >= 0 and after[largest]["size"] > 1
        if copies:
            copies = _place(after[largest], least, most_kept, n_cells, split)
        for c in range(first, end):
            if copies and c == largest:
                _note(c, split.copied, np.int64(N_COPIED), split.totals)
            elif copies or after[c]["size"] > 1:
                after[c]["less"] = largest if copies else -1
                if _place(after[c], least, most_kept, n_cells, split):
                    split.where[split.totals[N_COUNTED]] = after[c]["histogram"] * n_cells
                    _note(c, split.counted, np.int64(N_COUNTED), split.totals)
                else:
                    _note(c, split.small, np.int64(N_SMALL), split.totals)
        first = end


@jit
def plan_split(
    before: Array,
    histograms: Array,
    begin: int,
    others: Array,
    n_states: int,
    n_classes: int,
    n_cells: int,
    most_kept: int,
    split: Split,
) -> None:
    """Plan to split every configuration by a variable.

    The target's counts for each state of the variable are in the histograms, from `begin` on; for configurations
    without one they are in `others`, row by row.
    """
    split.totals[:] = 0
    _divide(before, histograms, begin, others, n_states, n_classes, split)
    _find_sources(before, n_cells, most_kept, split)


@jit
def subtract(which: Array, where: Array, cells: Array, after: Array, kept: Array) -> None:
    """Take the histograms of these configurations away from what their siblings copied."""
    for k in range(which.shape[0]):
        sibling = after[which[k]]["less"]
        if sibling >= 0:
            own, at = kept[after[sibling]["histogram"]], where[k]
            for c in range(kept.shape[1]):
                own[c] -= cells[at + c]


@jit
def derive(before: Array, old: Array, split: Split, after: Array, kept: Array) -> None:
    """Copy the histograms of origins where that was planned, and subtract those that were counted and kept."""
    for k in range(split.totals[N_COPIED]):
        new = after[split.copied[k]]
        to, source = new["histogram"], before[new["origin"]]["histogram"]
        for c in range(kept.shape[1]):
            kept[to, c] = old[source, c]
    n = split.totals[N_COUNTED]
    subtract(split.counted[:n], split.where[:n], kept.reshape(-1), after, kept)
