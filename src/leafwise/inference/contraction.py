"""A product of factors, summed or maximised over all indices, two factors at a time. Knows NumPy and kernels.

The order comes from eliminating one index after another (`kernels.elimination`): its cost is known before any work.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels import contraction as kernel
from leafwise.kernels import elimination

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Factor:
    """Numbers over some indices, one axis each, in this order."""

    indices: tuple[int, ...]
    values: Floats


@dataclass(frozen=True)
class Plan:
    """In which order to multiply factors over indices of these extents, and what it costs.

    >>> plan = Plan.of([(0, 1), (1, 2), (1,)], {0: 2, 1: 3, 2: 4}, most_operations=1e6)
    >>> plan.operations, len(plan.steps)
    (22.0, 4)
    """

    sets: tuple[tuple[int, ...], ...]  # the indices of each factor, then of the unit, then of each step's result
    steps: tuple[tuple[int, int], ...]
    extents: dict[int, int]
    operations: float  # multiplications
    numbers: float  # held at once
    complete: bool  # False: there are no steps, as the order alone says that they would be too costly

    @classmethod
    def of(cls, sets: Sequence[tuple[int, ...]], extents: dict[int, int], most_operations: float) -> "Plan":
        """The cheaper of two greedy orders."""
        order, log_operations = _order(sets, extents)
        if log_operations > math.log(most_operations):
            operations = math.exp(min(log_operations, 700.0))
            return cls(tuple(sets), (), extents, operations, operations, False)
        rank = {index: -place for place, index in enumerate(order)}  # the last to go is the outermost axis
        arranged = [tuple(sorted(one, key=rank.__getitem__)) for one in (*sets, ())]
        steps, operations = _paired(arranged, order, rank, extents)
        numbers = sum(_size(one, extents) for one in arranged)
        return cls(tuple(arranged), tuple(steps), extents, operations, numbers, True)

    @cached_property
    def program(self) -> kernel.Program:
        """The steps in the form that compiled loops take."""
        n_leaves = len(self.sets) - len(self.steps)
        first, rows = [0], []
        for step, (left, right) in enumerate(self.steps):
            rows += _dimensions(self.sets[left], self.sets[right], self.sets[n_leaves + step], self.extents)
            first.append(len(rows))
        sizes = [_size(one, self.extents) for one in self.sets]
        left, right = np.array(self.steps, np.int64).T.copy()
        dimensions = np.array(rows, np.int64).reshape(-1, 4).T.copy()
        return kernel.Program(np.cumsum([0, *sizes]), left, right, np.array(first), *dimensions)

    def memory(self, factors: Iterable[Factor]) -> Floats:
        """Room for all tensors, with the factors, and the unit, at their places."""
        program = self.program
        memory = np.empty(int(program.offset[-1]))
        for number, factor in enumerate(factors):
            axes = [factor.indices.index(index) for index in self.sets[number]]
            memory[program.offset[number] : program.offset[number + 1]] = factor.values.transpose(axes).ravel()
        memory[program.offset[len(self.sets) - len(self.steps) - 1]] = 1.0
        return memory


def _size(indices: Iterable[int], extents: dict[int, int]) -> int:
    return math.prod(extents[index] for index in indices)


def _order(sets: Sequence[tuple[int, ...]], extents: dict[int, int]) -> tuple[tuple[int, ...], float]:
    """The better of two greedy orders of elimination, and the log of about how many multiplications it takes."""
    used = sorted({index for one in sets for index in one})
    place = {index: number for number, index in enumerate(used)}
    first = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    member = np.array([place[index] for one in sets for index in one], np.int64)
    log_extent = np.log(np.array([extents[index] for index in used], np.float64))
    rules = (elimination.SMALLEST, elimination.FEWEST_JOINED)
    found = [elimination.eliminate(first, member, log_extent, rule) for rule in rules]
    order, log_operations = min(found, key=lambda one: one[1])
    return tuple(used[number] for number in order.tolist()), float(log_operations)


def _paired(
    arranged: list[tuple[int, ...]], order: Iterable[int], rank: dict[int, int], extents: dict[int, int]
) -> tuple[list[tuple[int, int]], float]:
    """The steps, two tensors at a time; an index is summed out as soon as one tensor alone has it.

    The list of tensors' indices is grown by the results.
    """
    unit = len(arranged) - 1
    holders: dict[int, set[int]] = {}
    for number, indices in enumerate(arranged):
        for index in indices:
            holders.setdefault(index, set()).add(number)
    alive = dict.fromkeys(range(unit))
    steps: list[tuple[int, int]] = []
    operations = 0.0

    def multiply(left: int, right: int) -> int:
        nonlocal operations
        union = {*arranged[left], *arranged[right]}
        operations += _size(union, extents)
        made = len(arranged)
        for index in union:
            holders[index] -= {left, right}
        kept = [index for index in union if holders[index]]
        for index in kept:
            holders[index].add(made)
        arranged.append(tuple(sorted(kept, key=rank.__getitem__)))
        steps.append((left, right))
        for gone in (left, right):
            alive.pop(gone, None)
        alive[made] = None
        return made

    for index in order:
        bucket = sorted(holders[index], key=lambda number: (_size(arranged[number], extents), number))
        if not bucket:
            continue
        made = bucket[0] if len(bucket) > 1 else multiply(bucket[0], unit)
        for number in bucket[1:]:
            made = multiply(made, number)
    scalars = list(alive) or [unit]
    made = scalars[0] if len(scalars) > 1 else multiply(scalars[0], unit)
    for number in scalars[1:]:
        made = multiply(made, number)
    return steps, operations


def _dimensions(
    left: tuple[int, ...], right: tuple[int, ...], out: tuple[int, ...], extents: dict[int, int]
) -> list[tuple[int, ...]]:
    """Extent and strides of the axes of one step, outermost first; axes that lie together in all three are one."""
    strides = [_strides(one, extents) for one in (left, right, out)]
    summed = [index for index in dict.fromkeys((*left, *right)) if index not in strides[2]]
    rows: list[tuple[int, ...]] = []
    for index in (*out, *summed):
        extent = extents[index]
        row = (extent, *(one.get(index, 0) for one in strides))
        if rows and all(above == stride * extent for above, stride in zip(rows[-1][1:], row[1:], strict=True)):
            row = (extent * rows.pop()[0], *row[1:])
        rows.append(row)
    return rows


def _strides(indices: tuple[int, ...], extents: dict[int, int]) -> dict[int, int]:
    strides, stride = {}, 1
    for index in reversed(indices):
        strides[index] = stride
        stride *= extents[index]
    return strides
