"""Gibbs sampling: distributions from several chains with different starts, and whether they agree.

It can handle evidence far below its causes, where likelihood weighting finds almost no weight.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from leafwise.inference import convergence
from leafwise.inference.chains import NANOSECONDS, Chain, Worth, start
from leafwise.inference.estimates import Cells, Estimate, Found, cells_of, check, put_together
from leafwise.inference.evidence import Weights
from leafwise.inference.intervals import of_draws
from leafwise.inference.parts import Part, parts_of
from leafwise.network import Network
from leafwise.workers import Workers

_LEAST_ROWS, _MOST_ROWS = 4, 1000  # the number of consecutive stretches of a chain whose means are stored,
_MOST_NUMBERS = 1 << 22  # within this many numbers
_FRESH = 4  # cases sampled forward before each sweep; they cost about half as much as the sweep
_MOST_R_HAT, _LEAST_SIZE = 1.01, 400.0  # as Vehtari et al. (2021) recommend
_SLOW = 10.0  # samples per independent draw
_LARGEST_R_HAT = 4.0  # beyond this, chains are worth one draw or less
_FEW_RETURNS, _SELDOM = 100, 10.0  # a state drawn less often in a chain is treated as impossible

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

    The samples, rounded up, are divided among the chains, each of which discards `burn_in` more at the start. The same
    seed gives the same answer for any number of threads.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.evidence import weights_of
    >>> network = alarm()
    >>> given = weights_of(network, {"BP": "LOW"})
    >>> found = gibbs(network, [network.names.index("CO")], given, n_samples=10_000, seed=1)
    >>> found.probabilities[0].round(1).tolist(), found.n_samples, found.warnings
    ([0.3, 0.1, 0.5], 10000, ())
    """
    if chains < 2 or burn_in < 0:
        raise ValueError(
            f"Gibbs sampling got {chains} chains and a burn-in of {burn_in}, and the least are 2 and 0: use more."
        )
    check(network, targets, joint, n_samples, chains * _LEAST_ROWS, seed)
    parts = parts_of(network, targets, weights, joint)
    found: list[Found] = []
    mixing = convergence.Mixing()
    warnings: list[str] = []
    n_kept = n_samples
    workers = Workers(threads)
    for part, stream in zip(parts.parts, np.random.SeedSequence(seed).spawn(len(parts.parts)), strict=True):
        if part.targets:
            cells = cells_of(part, joint)
            run = _Run.of(part, cells, n_samples, burn_in, stream.spawn(chains), workers)
            found += _tables(cells, run)
            mixing = mixing.worse(run.mixing)
            warnings += run.warnings()
            n_kept = run.n_samples
        else:
            start(part, np.random.default_rng(stream))  # raises an error if its evidence is impossible
    estimate = put_together(parts, targets, joint, n_kept, found)
    return replace(estimate, mixing=mixing, warnings=tuple(dict.fromkeys(warnings)))


@dataclass(frozen=True)
class _Run:
    """The results of the chains of a part."""

    part: Part
    seen: NDArray[np.intp]  # the cells of all states with positive probability in some sweep
    means: Floats  # mean conditional distributions, or frequencies of joint states: (chains, rows, seen)
    log_weights: Floats  # (chains, rows, 1)
    log_variance: float  # variance of the log weights of all sweeps
    n_samples: int
    n_fresh: float  # the effective sample size of the cases sampled forward

    @classmethod
    def of(
        cls,
        part: Part,
        cells: Cells,
        n_samples: int,
        burn_in: int,
        streams: list[np.random.SeedSequence],
        workers: Workers,
    ) -> "_Run":
        """Run the chains, each with its own stream of random numbers."""
        chains = len(streams)
        n_sweeps = -(-n_samples // chains)
        most_rows = max(_LEAST_ROWS, min(_MOST_ROWS, _MOST_NUMBERS // (chains * cells.n_cells)))
        every = -(-n_sweeps // most_rows)
        n_rows = max(_LEAST_ROWS, -(-n_sweeps // every))
        sums = np.zeros((chains, n_rows, cells.n_cells))
        log_weights = np.zeros((chains, n_rows * every))
        fresh = [Worth() for _ in streams]
        chain = Chain.of(part, cells, workers.stopped)

        def run(begin: int, end: int) -> None:
            for k in range(begin, end):
                random = np.random.default_rng(streams[k])
                case = start(part, random)
                chain.sweep(case, random, np.zeros((1, cells.n_cells)), np.zeros(burn_in), _FRESH)
                fresh[k] = chain.sweep(case, random, sums[k], log_weights[k], _FRESH)

        n_draws = (n_rows * every + burn_in) * len(part.free)
        workers.run(run, np.full(chains, n_draws * NANOSECONDS))
        seen = np.flatnonzero(sums.any(axis=(0, 1)))
        together = Worth()
        for worth in fresh:
            together.join(worth)
        means, of_rows = sums[:, :, seen] / every, log_weights.reshape(chains, n_rows, every).mean(2, keepdims=True)
        return cls(part, seen, means, of_rows, float(log_weights.var()), log_weights.size, together.size)

    @property
    def is_exact(self) -> bool:
        """Whether the part has a single unobserved variable, whose conditional distribution is then the answer."""
        return len(self.part.free) == 1

    @cached_property
    def mixing(self) -> convergence.Mixing:
        """The convergence diagnostics of the cells and of the case weights."""
        if self.is_exact:
            return convergence.Mixing()
        return convergence.Mixing.of(self.means).worse(convergence.Mixing.of(self.log_weights))

    @cached_property
    def n_returns(self) -> float:
        """The number of independent cases drawn, if no more can be relied on; else infinity."""
        if self.is_exact:
            return np.inf
        n_drawn = len(self.means) + self.n_fresh
        least = 0.0 if n_drawn >= _FEW_RETURNS else _SELDOM * len(self.means) / self.n_samples
        return n_drawn if self.part.is_rigid(least) else np.inf

    @cached_property
    def n_draws(self) -> float:
        """The number of independent cases this is worth, judging by their weights."""
        variance = float(convergence.variance_of_mean(self.log_weights)[0])
        size = self.log_variance / variance if variance > 0 else np.inf
        return min(size, self.n_samples, self.n_returns)

    @property
    def worth(self) -> float:
        """The smallest effective sample size."""
        return min(self.mixing.bulk_size, self.mixing.tail_size)

    @property
    def is_slow(self) -> bool:
        """Whether the effective size is small even for the number of samples: any state may be affected."""
        return self.worth < min(_LEAST_SIZE, self.n_samples / _SLOW)

    def warnings(self) -> Iterator[str]:
        """Reasons why the errors may be larger than stated."""
        if self.mixing.r_hat > _MOST_R_HAT:
            yield (
                f"the chains disagree (R-hat is {self.mixing.r_hat:.4g}, and {_MOST_R_HAT} is the most for a sure "
                f"answer): ask for more samples, or exactly."
            )
        if self.worth < _LEAST_SIZE:
            yield (
                f"the chains are worth {self.worth:.3g} independent draws, and {_LEAST_SIZE:.0f} are the least for a "
                f"sure answer: ask for more samples, or exactly."
            )
        if self.n_returns < _FEW_RETURNS:
            yield (
                f"some variables all but determine others, and only {self.n_returns:.3g} independent cases were drawn: "
                f"there may be states that no chain has reached; give less evidence, or ask exactly."
            )


def _tables(cells: Cells, run: _Run) -> list[Found]:
    """The means over all chains, with their errors."""
    probabilities, variances = np.zeros((2, cells.n_cells))
    probabilities[run.seen] = run.means.mean(axis=(0, 1))
    variances[run.seen] = convergence.variance_of_mean(run.means)
    if run.is_exact:
        sizes, intervals = np.full(len(probabilities), float(run.n_samples)), np.stack([probabilities] * 2)
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            sizes = np.where(variances > 0, probabilities * (1 - probabilities) / variances, run.n_samples)
        sizes = (
            np.minimum(sizes, min(run.n_returns, run.worth if run.is_slow else np.inf))
            / min(run.mixing.r_hat, _LARGEST_R_HAT) ** 2
        )
        intervals = of_draws(probabilities, sizes, np.minimum(sizes, run.n_draws))
    errors = np.maximum(np.sqrt(variances), abs(intervals - probabilities).max(axis=0) / 2)
    tables = zip(cells.asked, *map(cells.tables, (probabilities, errors, intervals, sizes)), strict=True)
    return [
        Found(asked, table, error, interval, min(float(size.min()), run.n_draws))
        for asked, table, error, interval, size in tables
    ]
