"""A product of factors, summed or maximized over all indices, two factors at a time.

The order comes from eliminating one index after another (`kernels.elimination`); its cost is known before any work is
done.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.questions import contraction as kernel
from leafwise.kernels.questions import contraction_plan as pairing
from leafwise.kernels.questions import elimination

Floats = NDArray[np.float64]
_MOST_TRIALS = 32
_SPREADS = (0.1, 0.3)  # standard deviations of the log biases
_HOPELESS = math.log(1e3)  # an order this far above the limit is not improved any further


@dataclass(frozen=True, slots=True)
class Factor:
    """Numbers over some indices, with one axis for each, in this order."""

    indices: tuple[int, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class Plan:
    """The order in which to multiply factors over indices of given extents, and its cost.

    >>> plan = Plan.of([(0, 1), (1, 2), (1,)], {0: 2, 1: 3, 2: 4}, most_operations=1e6)
    >>> plan.operations, plan.program.left.tolist()
    (25.0, [0, 1, 2, 6, 7])
    """

    axes: tuple[list[int], ...]  # of each factor: its axes in the order that the program expects
    program: kernel.Program | None  # None if the elimination order alone is too costly
    operations: float  # multiplications
    numbers: float  # in memory at once

    @classmethod
    def of(
        cls,
        sets: Sequence[tuple[int, ...]],
        extents: dict[int, int],
        most_operations: float,
        last: Collection[int] = (),
    ) -> "Plan":
        """The cheapest order found, with its steps unless it is too costly; indices in `last` are eliminated last."""
        used = sorted({index for one in sets for index in one})
        place = {index: number for number, index in enumerate(used)}
        first = np.cumsum([0, *map(len, sets)])
        member = np.array([place[index] for one in sets for index in one], np.int64)
        extent = np.array([extents[index] for index in used], np.int64)
        is_last = np.array([index in last for index in used], np.bool_)
        order, log_operations = _order(first, member, np.log(extent), is_last, math.log(most_operations))
        if log_operations > math.log(most_operations):
            too_many = math.exp(min(log_operations, 700.0))
            return cls((), None, too_many, too_many)
        operations = np.zeros(1)
        program = pairing.program_of(pairing.pair_up(first, member, extent, order, operations))
        rank = dict(zip(order.tolist(), range(len(used)), strict=True))
        axes = [sorted(range(len(one)), key=lambda axis: -rank[place[one[axis]]]) for one in sets]
        return cls(tuple(axes), program, float(operations[0]), float(program.offset[-1]))

    def memory(self, factors: Sequence[Factor]) -> Floats:
        """Memory for all tensors, with the factors, and the unit after them, in their places."""
        assert self.program is not None, "a plan that is too costly"
        offset = self.program.offset
        memory = np.empty(int(offset[-1]))
        for factor, axes, begin, end in zip(factors, self.axes, offset, offset[1:], strict=False):
            memory[begin:end] = factor.values.transpose(axes).ravel()
        memory[offset[len(factors)]] = 1.0
        return memory


def _order(
    first: NDArray[np.int64],
    member: NDArray[np.int64],
    log_extent: Floats,
    is_last: NDArray[np.bool_],
    log_most: float,
) -> tuple[NDArray[np.int64], float]:
    """The cheapest of several greedy orders: two, and randomized ones if much depends on the order."""
    n = len(log_extent)
    random = np.random.default_rng(1)
    best: tuple[NDArray[np.int64], float] = (np.zeros(0, np.int64), math.inf)
    for trial in range(1 + _MOST_TRIALS):
        bias = np.exp(random.normal(0.0, _SPREADS[trial % 2], n)) if trial else np.ones(n)
        bias[is_last] = elimination.LAST
        for rule in (elimination.SMALLEST, elimination.FEWEST_JOINED):
            order = np.empty(n, np.int64)
            log_operations = elimination.eliminate(first, member, log_extent, rule, bias, order)
            if log_operations < best[1]:
                best = order, log_operations
        worth = math.exp(min(best[1], 100.0)) / (2 * n**2 + 1)  # trials may take a fifth of the time of the work itself
        if trial >= worth or best[1] > log_most + _HOPELESS:
            break
    return best
