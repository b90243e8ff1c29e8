"""What counting shares: the layout of histograms, and the data of a table laid out for counting.

A *histogram* of a target lies flat in an array: for each candidate variable (`Layout`) one row of the target's counts
for each state, and after them one row with the totals.

The data are there three times. By columns, for cutting sets of cases. As *planes*, for counting large sets: a column
with few states is one bit mask for each state but the first, whose counts follow by subtraction. By rows, for counting
small sets: each case has the same bits, one for each plane, side by side.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from leafwise.kernels.compiling.types import Array


class Layout(NamedTuple):
    """Which variables a histogram covers, and where: targets with the same candidates share a layout."""

    of_target: Array  # the layout of each target
    start: Array  # layout l covers entries start[l] to start[l + 1] of the next two
    variables: Array
    bases: Array  # the row, counted in states, at which the variable's block begins
    n_rows: Array  # for each layout: all states of its variables
    n_states: Array  # for each variable of the table

    def rows(self, target: int, variables: list[int]) -> list[slice]:
        """Which rows of the target's histogram belong to each of these variables; candidates are sorted."""
        begin, end = self.start[self.of_target[target]], self.start[self.of_target[target] + 1]
        bases = self.bases[begin + np.searchsorted(self.variables[begin:end], variables)]
        return [slice(base, base + self.n_states[v]) for v, base in zip(variables, bases, strict=True)]


class Planes(NamedTuple):
    """The data of a table, laid out for counting."""

    columns: Array  # codes, (n_variables, n_cases)
    words: Array  # bit planes, (n_planes, n_words) uint64
    first: Array  # the plane of state 1 of each variable, or -1 where a variable has none
    rows: Array  # the bits of each case, `width` words; then a row without any, and words to spare
    width: int
    ones: Array  # how many cases have each bit
    are_binary: bool  # all variables
    values: Array  # for each variable, and one more: the number of its first value, a variable's state
    counts: Array  # how many cases have each value
    usual: Array  # the most common state of each variable


def grown(array: Array, length: int, make: Callable[..., Array] = np.zeros) -> Array:
    """The array with room for `length` rows or twice as many as it had; memory is not touched before it is used."""
    new = make((max(length, 2 * len(array)), *array.shape[1:]), array.dtype)
    new[: len(array)] = array
    return new


def count_up(sizes: Array) -> Array:
    """0, 1, ... up to each of these sizes, one after the other."""
    ends = np.cumsum(sizes)
    places: Array = np.arange(sizes.sum()) - (ends - sizes).repeat(sizes)
    return places
