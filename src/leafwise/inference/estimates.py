"""Results of sampling: probabilities with their errors, of each part and combined."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.convergence import Mixing
from leafwise.inference.intervals import of_weights
from leafwise.inference.parts import Part, Parts
from leafwise.kernels.questions import sampling
from leafwise.network import Network

MOST_CELLS = 1_000_000  # of a joint distribution
HARMLESS = 0.8  # the share of the effective sample size that must remain if the heaviest case was missed
OUTWEIGHED = (
    "there may be cases that no sample met and that outweigh many: ask for more, by Gibbs sampling, or exactly."
)
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Distributions of targets given evidence, with standard errors and effective sample sizes.

    There is one table per target, over its states, or a single table over the states of all, with one axis each.
    """

    targets: tuple[int, ...]
    probabilities: tuple[Floats, ...]
    standard_errors: tuple[Floats, ...]  # of the same shapes
    intervals: tuple[Floats, ...]  # 0.95 intervals: lower and upper limits, (2, *shape)
    effective_sample_sizes: tuple[float, ...]  # of each table
    n_samples: int
    warnings: tuple[str, ...] = ()  # reasons why errors may be larger than stated
    log_evidence: float | None = None  # the log probability of the evidence; None with Gibbs sampling
    log_evidence_error: float | None = None
    mixing: Mixing | None = None  # of Gibbs chains

    @property
    def effective_sample_size(self) -> float:
        """The smallest effective sample size of the tables."""
        return min(self.effective_sample_sizes, default=float(self.n_samples))


@dataclass(frozen=True)
class Cells:
    """The cells in which states are counted: those of each target in turn, or one cell per joint state."""

    asked: tuple[tuple[int, ...], ...]  # the targets of each table
    shape: tuple[int, ...]  # the numbers of states of all targets

    @property
    def several(self) -> bool:
        """Whether a single table contains several targets."""
        return len(self.shape) > len(self.asked)

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return prod(self.shape) if self.several else sum(self.shape)

    @property
    def first(self) -> NDArray[np.int64]:
        """The first cell of each table."""
        sizes = np.array([self.n_cells] if self.several else self.shape, np.int64)
        return np.cumsum(sizes) - sizes

    def add(self, codes: NDArray[Any], weights: Iterable[Floats], sums: Iterable[Floats]) -> None:
        """Add each kind of weights to its sums; `codes` has a row for each target."""
        if self.several:
            codes = np.ravel_multi_index(tuple(codes), self.shape)[None]
        for weight, total in zip(weights, sums, strict=True):
            sampling.tally(codes, self.first, weight, total)

    def tables(self, values: Floats) -> list[Floats]:
        """The values of all cells, as one array per table."""
        if self.several:
            return [values.reshape(*values.shape[:-1], *self.shape)]
        return [values[..., begin : begin + size] for begin, size in zip(self.first, self.shape, strict=True)]


def cells_of(part: Part, joint: bool) -> Cells:
    """The cells for the targets of a part."""
    targets = tuple(part.variables[place] for place in part.targets)
    asked = (targets,) if joint and targets else tuple((target,) for target in targets)
    return Cells(asked, tuple(part.flat.n_states[list(part.targets)].tolist()))


@dataclass(frozen=True)
class Found:
    """One table over some unobserved targets, from one part."""

    targets: tuple[int, ...]
    probabilities: Floats
    standard_errors: Floats
    interval: Floats
    effective_sample_size: float


def weighted_tables(cells: Cells, total: Floats, squares: Floats, one: float, size: float) -> list[Found]:
    """Tables of ratios of weight sums, given sums of weights and of their squares in each cell, and last of all cases.

    `one` is the largest weight that a draw can have, and `size` the effective sample size. Errors are those of the
    delta method, or larger if the intervals require it.
    """
    outside, others = np.maximum(total[-1] - total[:-1], 0), np.maximum(squares[-1] - squares[:-1], 0)
    probabilities = total[:-1] / total[-1]
    intervals = of_weights(total[:-1], squares[:-1], outside, others, one)
    errors = np.sqrt(squares[:-1] * (1 - probabilities) ** 2 + others * probabilities**2) / total[-1]
    errors = np.maximum(errors, abs(intervals - probabilities).max(axis=0) / 2)
    tables = zip(cells.asked, *map(cells.tables, (probabilities, errors, intervals)), strict=True)
    return [Found(asked, table, error, interval, size) for asked, table, error, interval in tables]


class NoCaseError(ValueError):
    """No sampled case is consistent with the evidence; another method may find one."""


def check(network: Network, targets: Sequence[int], joint: bool, n_samples: int, least: int, seed: int) -> None:
    """Raise a ValueError unless sampling can answer this query."""
    if n_samples < least:
        raise ValueError(f"{n_samples} samples were asked for, and the least is {least}: ask for more.")
    if seed < 0:
        raise ValueError(f"sampling got the seed {seed}, and the least is 0: use a seed of 0 or more.")
    if len(set(targets)) < len(targets):
        twice = next(target for target, times in Counter(targets).items() if times > 1)
        raise ValueError(f"the target {network.names[twice]!r} is named twice: name each target once.")
    if joint and (n_cells := prod(network.variables[target].n_states for target in targets)) > MOST_CELLS:
        raise ValueError(
            f"the joint distribution of the {len(targets)} targets has {n_cells:,} cells, and the most are "
            f"{MOST_CELLS:,}: ask for fewer targets, or for each alone."
        )


def put_together(parts: Parts, targets: Sequence[int], joint: bool, n_samples: int, found: Iterable[Found]) -> Estimate:
    """Combine the tables of the parts, extended to the states that observed targets do not have."""
    by_targets = {table.targets: table for table in found}
    certain = Found((), np.ones(()), np.zeros(()), np.ones(2), n_samples)
    wide: list[Floats] = []
    sizes: list[float] = []
    for asked in [tuple(targets)] if joint else [(target,) for target in targets]:
        table = by_targets.get(tuple(target for target in asked if target not in parts.known), certain)
        place = (..., *(parts.known.get(target, slice(None)) for target in asked))
        wide.append(np.zeros((4, *(parts.network.variables[target].n_states for target in asked))))
        wide[-1][place] = table.probabilities, table.standard_errors, *table.interval
        sizes.append(table.effective_sample_size)
    probabilities, errors, intervals = (tuple(table[kind] for table in wide) for kind in (0, 1, slice(2, 4)))
    return Estimate(tuple(targets), probabilities, errors, intervals, tuple(sizes), n_samples)
