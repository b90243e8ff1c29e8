"""A product of factors, summed or maximised over all indices, two factors at a time. Knows NumPy and kernels.

The order comes from eliminating one index after another (`kernels.elimination`): its cost is known before any work.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels import contraction as kernel
from leafwise.kernels import elimination, pairing

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Factor:
    """Numbers over some indices, one axis each, in this order."""

    indices: tuple[int, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class Plan:
    """In which order to multiply factors over indices of these extents, and what it costs.

    >>> plan = Plan.of([(0, 1), (1, 2), (1,)], {0: 2, 1: 3, 2: 4}, most_operations=1e6)
    >>> plan.operations, plan.program.left.tolist()
    (22.0, [0, 2, 5, 6])
    """

    axes: tuple[list[int], ...]  # of each factor: its axes in the order that the program takes
    program: kernel.Program | None  # None: the order alone says that it would be too costly
    operations: float  # multiplications
    numbers: float  # held at once

    @classmethod
    def of(cls, sets: Sequence[tuple[int, ...]], extents: dict[int, int], most_operations: float) -> "Plan":
        """The cheaper of two greedy orders, and if it is not too costly its steps."""
        used = sorted({index for one in sets for index in one})
        place = {index: number for number, index in enumerate(used)}
        first = np.cumsum([0, *map(len, sets)])
        member = np.array([place[index] for one in sets for index in one], np.int64)
        extent = np.array([extents[index] for index in used], np.int64)
        rules = (elimination.SMALLEST, elimination.FEWEST_JOINED)
        found = [elimination.eliminate(first, member, np.log(extent), rule) for rule in rules]
        order, log_operations = min(found, key=lambda one: one[1])
        if log_operations > math.log(most_operations):
            operations = math.exp(min(log_operations, 700.0))
            return cls((), None, operations, operations)
        steps, operations = pairing.pair_up(first, member, extent, order)
        program = kernel.Program(*steps[:4], *steps.dimension.T.copy())
        rank = dict(zip(order.tolist(), range(len(used)), strict=True))
        axes = [sorted(range(len(one)), key=lambda axis: -rank[place[one[axis]]]) for one in sets]
        return cls(tuple(axes), program, operations, float(program.offset[-1]))

    def memory(self, factors: Sequence[Factor]) -> Floats:
        """Room for all tensors, with the factors, and the unit behind them, at their places."""
        assert self.program is not None, "a plan that is too costly"
        offset = self.program.offset
        memory = np.empty(int(offset[-1]))
        for factor, axes, begin, end in zip(factors, self.axes, offset, offset[1:], strict=False):
            memory[begin:end] = factor.values.transpose(axes).ravel()
        memory[offset[len(factors)]] = 1.0
        return memory
