"""Gibbs sampling: chains of cases in which each variable is drawn anew, again and again, given all others.

It copes with evidence far below its causes, where likelihood weighting finds next to no weight. Where variables
determine each other, a chain may never leave the states it began with. Chains begin independently, so their answers
then differ and the errors are large, unless all of them happened to begin alike and other variables still move. Knows
parts and kernels.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.estimates import Cells, Estimate, Found, cells_of, check, put_together
from leafwise.inference.evidence import Weights
from leafwise.inference.parts import Codes, Part, parts_of
from leafwise.inference.weighting import draws
from leafwise.kernels import sampling
from leafwise.network import Network
from leafwise.workers import Workers

_BATCHES = 4  # consecutive stretches of a chain, whose means tell how far it has forgotten where it was
_STARTS = 256  # cases drawn at a time to begin a chain with one of them,
_MOST_STARTS = 20_000  # until one agrees with the evidence
_BLOCK = 1 << 16  # random numbers drawn at a time
_NEGLIGIBLE = 1e-12  # an error that may be rounding
_NANOSECONDS = 500.0  # what drawing a variable costs, roughly

Floats = NDArray[np.float64]


def gibbs(
    network: Network,
    targets: Sequence[int],
    weights: Weights,
    *,
    n_samples: int,
    seed: int,
    joint: bool = False,
    chains: int = 8,
    burn_in: int = 200,
    threads: int | None = None,
) -> Estimate:
    """Estimate the distribution of each target given evidence, or with `joint` of all together.

    The samples are shared out among the chains, each of which first leaves out `burn_in` more; their number is rounded
    up to a multiple of 4 × chains. The same seed gives the same answer, whatever the number of threads.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.evidence import weights_of
    >>> network = alarm()
    >>> given = weights_of(network, {"BP": "LOW"})
    >>> found = gibbs(network, [network.names.index("CO")], given, n_samples=10_000, seed=1)
    >>> found.probabilities[0].round(1).tolist(), found.n_samples
    ([0.4, 0.1, 0.5], 10016)
    """
    if chains < 2 or burn_in < 0:
        raise ValueError(
            f"Gibbs sampling got {chains} chains and a burn-in of {burn_in}, and the least are 2 and 0: use more."
        )
    check(network, targets, joint, n_samples, chains * _BATCHES, seed)
    parts = parts_of(network, targets, weights, joint)
    n_sweeps = -(-n_samples // (chains * _BATCHES))  # in a batch
    n_kept = n_sweeps * _BATCHES * chains
    found: list[Found] = []
    workers = Workers(threads)
    for part, stream in zip(parts.parts, np.random.SeedSequence(seed).spawn(len(parts.parts)), strict=True):
        if part.targets:
            cells = cells_of(part, joint)
            chain = _Chain(part, cells, _blankets(part, cells), n_sweeps, burn_in, workers.stopped)
            found += _tables(cells, _means(chain, stream.spawn(chains), workers), n_kept, len(part.free) == 1)
        else:
            _start(part, np.random.default_rng(stream))  # is its evidence possible?
    return put_together(parts, targets, joint, n_kept, found)


@dataclass(frozen=True)
class _Chain:
    """What all chains of a part have in common."""

    part: Part
    cells: Cells
    blankets: sampling.Blankets
    n_sweeps: int  # in a batch
    burn_in: int
    stopped: threading.Event

    def run(self, random: np.random.Generator, sums: Floats) -> None:
        """Add up the distributions that the targets are drawn from, or their joint states, batch by batch."""
        case = _start(self.part, random)
        self._sweep(case, self.burn_in, random, np.zeros(self.cells.n_cells))
        for batch in sums:
            self._sweep(case, self.n_sweeps, random, batch)

    def _sweep(self, case: Codes, n: int, random: np.random.Generator, sums: Floats) -> None:
        n_free = len(self.blankets.variable)
        size = max(1, _BLOCK // n_free)
        for begin in range(0, n, size):
            if self.stopped.is_set():
                return
            uniform = random.random((min(size, n - begin), n_free))
            trace = np.empty((len(case), len(uniform) if self.cells.several else 0), case.dtype)
            sampling.sweep(case, self.part.flat, self.blankets, uniform, sums, trace)
            if self.cells.several:
                self.cells.add(trace[list(self.part.targets)], [np.ones(len(uniform))], [sums])


def _blankets(part: Part, cells: Cells) -> sampling.Blankets:
    """For each variable to draw, the graphs that test it and the cells its distributions go to."""
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
    columns = (part.free, begin, pairs % n_graphs, pair, cell)
    return sampling.Blankets(*(np.array(column, np.int32) for column in columns))


def _means(chain: _Chain, streams: list[np.random.SeedSequence], workers: Workers) -> Floats:
    """The mean of each batch of each chain, in each cell: (chains, batches, cells)."""
    sums = np.zeros((len(streams), _BATCHES, chain.cells.n_cells))

    def run(begin: int, end: int) -> None:
        for k in range(begin, end):
            chain.run(np.random.default_rng(streams[k]), sums[k])

    n_draws = (chain.n_sweeps * _BATCHES + chain.burn_in) * len(chain.blankets.variable)
    workers.run(run, np.full(len(streams), n_draws * _NANOSECONDS))
    return sums / chain.n_sweeps


def _start(part: Part, random: np.random.Generator) -> Codes:
    """A case to begin with, one column: chosen by weight among cases drawn from above."""
    for cases, log_weights in draws(part, _MOST_STARTS, random, _STARTS):
        if (largest := log_weights.max()) > -np.inf:
            sums = np.exp(log_weights - largest).cumsum()
            chosen = int(np.searchsorted(sums, random.random() * sums[-1], side="right"))
            return cases[:, chosen : chosen + 1].copy()
    raise ValueError(
        f"none of {_MOST_STARTS:,} cases drawn to begin a chain with agrees with the evidence, which is impossible or "
        f"very improbable: give less evidence, or ask exactly."
    )


def _tables(cells: Cells, means: Floats, n_samples: int, alone: bool) -> list[Found]:
    """Means over all chains. Their errors come from batches or from whole chains, whichever differ more.

    Batches are many, but those of a chain that is stuck agree with each other. `alone`: nothing else is unknown.
    """
    batches = means.reshape(-1, cells.n_cells)
    whole = means.mean(axis=1)
    variances = np.maximum(batches.var(axis=0, ddof=1) / len(batches), whole.var(axis=0, ddof=1) / len(whole))
    found = []
    tables = zip(cells.asked, cells.tables(batches.mean(axis=0)), cells.tables(variances), strict=True)
    for asked, table, variance in tables:
        if table.max() == 1 and not alone:
            found.append(Found(asked, table, _errors_of_starts(table, len(whole)), float(len(whole))))
        else:
            found.append(Found(asked, table, np.sqrt(variance), _size(table, variance, n_samples)))
    return found


def _errors_of_starts(table: Floats, chains: int) -> Floats:
    """The errors where no chain ever saw another state: this one is certain, or all chains are stuck where they began.

    Nothing tells which, so it is worth no more than one draw a chain and one of each cell.
    """
    shrunk = (table * chains + 1) / (chains + table.size)
    return np.sqrt(shrunk * (1 - shrunk) / chains)


def _size(table: Floats, variance: Floats, n_samples: int) -> float:
    """How many independent draws would err as much, in the cell where they are fewest; no more than there were."""
    uncertain = variance > _NEGLIGIBLE**2
    ratios = (table * (1 - table))[uncertain] / variance[uncertain]
    return float(ratios.min(initial=n_samples))
