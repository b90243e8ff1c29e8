"""Arrays for counting: the layout of histograms, and the data of a table laid out for counting.

A *histogram* of a target is a flat array: for each candidate variable (`Layout`) one row of the target's counts for
each state of the candidate, and after them one row with the totals.

The data are stored three times. As columns, to cut sets of cases. As bit *planes*, to count large sets: a column with
few states has one bit mask for each state but the first, whose counts follow by subtraction. As rows, to count small
sets: the bits of a case, one for each plane, are contiguous.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.types import Array


class Layout(NamedTuple):
    """The variables that histograms cover, and their positions; targets with the same candidates share a layout."""

    of_target: Array  # by target: its layout
    start: Array  # layout l consists of entries start[l] to start[l + 1] - 1 of the next two arrays
    variables: Array  # candidates, sorted
    bases: Array  # the row (one per state) at which the variable's block begins
    n_rows: Array  # by layout: number of rows without the totals
    n_states: Array  # by variable of the table

    def rows(self, target: int, variables: list[int]) -> list[slice]:
        """Return the rows of the target's histogram that belong to each of these variables."""
        begin, end = self.start[self.of_target[target]], self.start[self.of_target[target] + 1]
        bases = self.bases[begin + np.searchsorted(self.variables[begin:end], variables)]
        return [slice(base, base + self.n_states[v]) for v, base in zip(variables, bases, strict=True)]


class Planes(NamedTuple):
    """The data of a table, laid out for counting."""

    columns: Array  # codes, (n_variables, n_cases)
    words: Array  # bit planes, (n_planes, n_words) uint64
    first: Array  # by variable: the plane of its state 1; -1: it has no planes
    rows: Array  # bits of each case, `width` words; then an empty row, and spare words
    width: int  # words per row
    ones: Array  # by plane: number of cases whose bit is set
    are_binary: bool  # whether all variables are binary
    values: Array  # by variable, and one more: index of its state 0 in `counts`
    counts: Array  # number of cases in each state, variable after variable
    usual: Array  # by variable: its most common state


def grown(array: Array, length: int, make: Callable[..., Array] = np.zeros) -> Array:
    """Return a copy with at least `length` rows, and at least twice as many as before."""
    new = make((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def count_up(sizes: Array) -> Array:
    """Return 0, 1, ... up to each of these sizes (exclusive), one after the other."""
    ends = np.cumsum(sizes)
    places: Array = np.arange(sizes.sum()) - (ends - sizes).repeat(sizes)
    return places
