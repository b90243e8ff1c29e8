"""Gibbs chains: each variable is redrawn in turn given all others.

Where variables determine each other, such a chain would never leave its initial states. So before each sweep, a few
cases are sampled forward, and one of them may replace the current case, with probability proportional to its weight.
This leaves the stationary distribution unchanged and allows a move from any case to any other.
"""

import math
import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.estimates import Cells, NoCaseError
from leafwise.inference.forward import chosen, draws
from leafwise.inference.parts import Codes, Part
from leafwise.kernels.questions import sampling

_STARTS = 256  # candidates for the start of a chain that are sampled forward at a time,
_MOST_STARTS = 20_000  # and in total, until one is consistent with the evidence
_BLOCK = 1 << 16  # random numbers generated at a time
NANOSECONDS = 700.0  # to redraw one variable, roughly

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """What all chains over a part share."""

    part: Part
    blankets: sampling.Blankets
    stopped: threading.Event

    @classmethod
    def of(cls, part: Part, cells: Cells, stopped: threading.Event) -> "Chain":
        """Prepare a chain over a part; the cells determine what is accumulated."""
        return cls(part, _blankets(part, cells), stopped)

    def sweep(self, case: Codes, random: np.random.Generator, sums: Floats, log_weights: Floats, fresh: int) -> "Worth":
        """Sweep over a case once per log weight, which is filled in; the rows of `sums` share the sweeps.

        `fresh`: the number of cases sampled forward before each sweep. Returns the sums of their weights.
        """
        n_free, n = len(self.blankets.variable), len(log_weights)
        rows = np.arange(n) // -(-n // len(sums))
        size = max(1, _BLOCK // (n_free * (1 + fresh)))
        worth = Worth()
        for begin in range(0, n, size):
            if self.stopped.is_set():
                break
            here = slice(begin, begin + size)
            uniform = random.random((len(rows[here]), n_free + 1))
            n_fresh = fresh * len(uniform)
            offered = next(draws(self.part, n_fresh, random, n_fresh), (case[:, :0], np.zeros(0)))
            worth.add(offered[1])
            sampling.sweep(case, self.part.flat, self.blankets, uniform, *offered, rows[here], sums, log_weights[here])
        return worth


@dataclass
class Worth:
    """Sums of importance weights, in units of exp(`scale`), and of their squares."""

    scale: float = -np.inf
    total: float = 0.0
    squares: float = 0.0

    def add(self, log_weights: Floats) -> None:
        """Add more draws, given by their log weights."""
        if (scale := float(log_weights.max(initial=-np.inf))) > -np.inf:
            weights = np.exp(log_weights - scale)
            self.join(Worth(scale, float(weights.sum()), float((weights**2).sum())))

    def join(self, other: "Worth") -> None:
        """Add all draws of another sum."""
        if (scale := max(self.scale, other.scale)) > -np.inf:
            own, others = math.exp(self.scale - scale), math.exp(other.scale - scale)
            self.total = own * self.total + others * other.total
            self.squares = own**2 * self.squares + others**2 * other.squares
            self.scale = scale

    @property
    def size(self) -> float:
        """The effective sample size."""
        return self.total**2 / self.squares if self.squares else 0.0


def start(part: Part, random: np.random.Generator) -> Codes:
    """An initial case, as one column, chosen by weight among cases sampled forward."""
    for cases, log_weights in draws(part, _MOST_STARTS, random, _STARTS):
        if log_weights.max() > -np.inf:
            return chosen(cases, log_weights, random)
    raise NoCaseError(
        f"none of {_MOST_STARTS:,} cases drawn to begin a chain with agrees with the evidence, which is impossible or "
        f"very improbable: give less evidence, or ask exactly."
    )


def _blankets(part: Part, cells: Cells) -> sampling.Blankets:
    """For each variable to redraw, the graphs that test it and the cells that receive its distributions."""
    test, n_graphs = part.flat.test, len(part.flat.root)
    is_test = test >= 0
    pairs, pair_of_test = np.unique(
        test[is_test].astype(np.int64) * n_graphs + part.graph[is_test], return_inverse=True
    )
    pair = np.full(len(test), -1)
    pair[is_test] = pair_of_test
    first = {} if cells.several else dict(zip(part.targets, cells.first.tolist(), strict=True))
    cell = [first.get(variable, -1) for variable in part.free.tolist()]
    begin = np.searchsorted(pairs, [*(part.free.astype(np.int64) * n_graphs), n_graphs**2])
    joint = part.targets if cells.several else ()
    columns = (part.free, begin, pairs % n_graphs, pair, cell, joint)
    return sampling.Blankets(*(np.array(column, np.int32) for column in columns))
