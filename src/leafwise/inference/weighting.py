"""Likelihood weighting: cases drawn from above, in line with the evidence, and weighted by how probable it made them.

Knows networks, their parts, tables and kernels.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.estimates import Cells, Estimate, Found, cells_of, check, put_together
from leafwise.inference.evidence import Weights
from leafwise.inference.parts import Codes, Part, parts_of
from leafwise.kernels import sampling
from leafwise.network import Network
from leafwise.table import Table, code_type
from leafwise.workers import Workers

_STREAMS = 16  # each with random numbers of its own, so that any number of threads draws the same cases
_BLOCK = 1 << 16  # numbers drawn at a time, so that they stay in the cache
_NANOSECONDS = 20.0  # what a cell costs, roughly

Floats = NDArray[np.float64]


def weighting(
    network: Network,
    targets: Sequence[int],
    weights: Weights,
    *,
    n_samples: int,
    seed: int,
    joint: bool = False,
    threads: int | None = None,
) -> Estimate:
    """Estimate the distribution of each target given evidence, or with `joint` of all together; and of the evidence.

    The same seed gives the same answer, whatever the number of threads. Errors are those of ratios of means, and too
    small where the effective sample size is only a handful.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.evidence import weights_of
    >>> network = alarm()
    >>> given = weights_of(network, {"BP": "LOW"})
    >>> found = weighting(network, [network.names.index("CO")], given, n_samples=10_000, seed=1)
    >>> found.probabilities[0].round(1).tolist(), found.standard_errors[0].round(3).tolist()
    ([0.3, 0.1, 0.5], [0.007, 0.005, 0.007])
    """
    check(network, targets, joint, n_samples, 2, seed)
    parts = parts_of(network, targets, weights, joint)
    found: list[Found] = []
    log_evidence, variance = parts.log_constant, 0.0
    workers = Workers(threads)
    for part, stream in zip(parts.parts, np.random.SeedSequence(seed).spawn(len(parts.parts)), strict=True):
        cells = cells_of(part, joint)
        scale, total, squares = _sums(part, cells, n_samples, stream, workers)
        found += _tables(cells, total, squares)
        log_evidence += scale + np.log(total[-1] / n_samples)
        variance += max(0.0, (n_samples * squares[-1] / total[-1] ** 2 - 1) / (n_samples - 1))
    estimate = put_together(parts, targets, joint, n_samples, found)
    return replace(estimate, log_evidence=float(log_evidence), log_evidence_error=float(variance**0.5))


def weighted_cases(network: Network, weights: Weights, n: int, seed: int) -> tuple[Table, Floats]:
    """Cases of all variables that agree with the evidence, and the log weight of each.

    >>> from leafwise.examples import alarm
    >>> cases, log_weights = weighted_cases(alarm(), {0: np.array([1.0, 0.0])}, 100, seed=1)
    >>> cases.n_cases, int(cases.codes[0].max()), log_weights.shape
    (100, 0, (100,))
    """
    everything = range(len(network.variables))
    check(network, everything, False, n, 1, seed)
    parts = parts_of(network, everything, weights, joint=True)
    codes = np.zeros((len(everything), n), code_type(network.variables))
    codes[list(parts.known)] = np.array(list(parts.known.values()), codes.dtype)[:, None]
    log_weights = np.full(n, parts.log_constant)
    random = np.random.default_rng(seed)
    for part in parts.parts:  # one, or none where all is known
        begin = 0
        for block, log_weight in draws(part, n, random):
            end = begin + len(log_weight)
            codes[list(part.variables), begin:end] = block
            log_weights[begin:end] += log_weight
            begin = end
    _check_possible(log_weights.max(), n)
    return Table(network.variables, codes), log_weights


def draws(part: Part, n: int, random: np.random.Generator, most: int = 4096) -> Iterator[tuple[Codes, Floats]]:
    """Blocks of cases of a part, n in all and at most so many in each, and their log weights."""
    n_free = len(part.free)
    size = max(1, min(most, _BLOCK // n_free))
    for begin in range(0, n, size):
        codes = np.repeat(part.case, min(size, n - begin), axis=1)
        log_weight = np.zeros(codes.shape[1])
        sampling.draw_weighted(codes, part.flat, random.random((n_free, codes.shape[1])), log_weight)
        yield codes, log_weight


def _sums(
    part: Part, cells: Cells, n: int, seed: np.random.SeedSequence, workers: Workers
) -> tuple[float, Floats, Floats]:
    """The log of a scale, and on that scale the sums of weights and of their squares: in each cell, and last of all."""
    streams = seed.spawn(_STREAMS)
    shares = np.diff(np.arange(_STREAMS + 1) * n // _STREAMS)
    found: list[tuple[float, Floats]] = [(-np.inf, np.zeros((2, cells.n_cells + 1)))] * _STREAMS

    def run(begin: int, end: int) -> None:
        for k in range(begin, end):
            found[k] = _stream(part, cells, int(shares[k]), np.random.default_rng(streams[k]), workers.stopped)

    workers.run(run, shares * len(part.flat.root) * _NANOSECONDS)
    scale = max(stream for stream, _ in found)
    _check_possible(scale, n)
    factors = [(np.exp(stream - scale), sums) for stream, sums in found]
    total: Floats = sum(factor * sums[0] for factor, sums in factors)
    squares: Floats = sum(factor**2 * sums[1] for factor, sums in factors)
    return scale, total, squares


def _stream(
    part: Part, cells: Cells, n: int, random: np.random.Generator, stopped: threading.Event
) -> tuple[float, Floats]:
    """What n cases add to the sums, and the log of the scale."""
    scale = -np.inf
    sums = np.zeros((2, cells.n_cells + 1))
    for codes, log_weight in draws(part, n, random):
        if stopped.is_set():
            break
        largest = log_weight.max()
        if largest > scale:
            factor = np.exp(scale - largest)
            sums *= [[factor], [factor**2]]
            scale = largest
        if scale > -np.inf:
            weight = np.exp(log_weight - scale)
            both = np.stack([weight, weight**2])
            cells.add(codes[list(part.targets)], both, sums)
            sums[:, -1] += both.sum(axis=1)
    return float(scale), sums


def _tables(cells: Cells, total: Floats, squares: Floats) -> list[Found]:
    """Ratios of sums, and their errors by the delta method."""
    probabilities = total[:-1] / total[-1]
    with_state, others = squares[:-1], np.maximum(squares[-1] - squares[:-1], 0)
    errors = np.sqrt(with_state * (1 - probabilities) ** 2 + others * probabilities**2) / total[-1]
    size = float(total[-1] ** 2 / squares[-1])
    tables = zip(cells.asked, cells.tables(probabilities), cells.tables(errors), strict=True)
    return [Found(asked, table, error, size) for asked, table, error in tables]


def _check_possible(log_weight: float, n: int) -> None:
    if log_weight == -np.inf:
        raise ValueError(
            f"none of {n:,} cases agrees with the evidence, which is impossible or too improbable for so few: "
            f"draw more samples, or ask exactly."
        )
