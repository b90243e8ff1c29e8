"""Likelihood weighting: cases sampled forward, consistent with the evidence, and weighted by its likelihood."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Table, code_type
from leafwise.inference.chains import Chain
from leafwise.inference.estimates import (
    HARMLESS,
    OUTWEIGHED,
    Cells,
    Estimate,
    Found,
    NoCaseError,
    cells_of,
    check,
    put_together,
    weighted_tables,
)
from leafwise.inference.evidence import Weights
from leafwise.inference.forward import chosen, draws
from leafwise.inference.parts import Codes, Part, parts_of
from leafwise.network import Network
from leafwise.workers import Workers

_STREAMS = 16  # each with its own random numbers, so that any number of threads draws the same cases
_NANOSECONDS = 20.0  # per cell, roughly
_FEW = 100.0  # independent draws
_SWEEPS = 20

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
    """Estimate the distribution of each target given evidence, or with `joint` of all together, and the evidence.

    The same seed gives the same answer for any number of threads.

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
    warnings: list[str] = []
    log_evidence, variance = parts.log_constant, 0.0
    workers = Workers(threads)
    for part, stream in zip(parts.parts, np.random.SeedSequence(seed).spawn(len(parts.parts)), strict=True):
        cells = cells_of(part, joint)
        sums = _sums(part, cells, n_samples, stream, workers)
        one, warning = _largest(part, cells, sums, workers)
        found += weighted_tables(cells, sums.total, sums.squares, one, sums.size(one))
        log_evidence += sums.scale + np.log(sums.total[-1] / n_samples)
        variance += max(0.0, (n_samples / sums.size(one) - 1) / (n_samples - 1))
        warnings += warning
    estimate = put_together(parts, targets, joint, n_samples, found)
    if estimate.effective_sample_size < _FEW:
        warnings.append(
            f"the samples are worth {estimate.effective_sample_size:.3g} independent draws, and {_FEW:.0f} are the "
            f"least for a sure answer: ask for more, by Gibbs sampling, or exactly."
        )
    return replace(
        estimate,
        log_evidence=float(log_evidence),
        log_evidence_error=float(variance**0.5),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def weighted_cases(network: Network, weights: Weights, n: int, seed: int) -> tuple[Table, Floats]:
    """Cases of all variables that are consistent with the evidence, and the log weight of each.

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
    for part in parts.parts:  # one, or none if everything is observed
        begin = 0
        for block, log_weight in draws(part, n, random):
            end = begin + len(log_weight)
            codes[list(part.variables), begin:end] = block
            log_weights[begin:end] += log_weight
            begin = end
    _check_possible(log_weights.max(), n)
    return Table(network.variables, codes), log_weights


@dataclass(frozen=True)
class _Sums:
    """Sums of weights and of their squares in each cell, with the total last, in units of exp(`scale`)."""

    scale: float  # the largest weight drawn is 1
    total: Floats
    squares: Floats
    kept: list[Codes]  # some cases drawn by weight

    def size(self, one: float = 1.0) -> float:
        """The effective sample size; smaller if a case of weight `one`, above all drawn, may have been missed."""
        missed = one if one > 1 else 0.0
        return float((self.total[-1] + missed) ** 2 / (self.squares[-1] + missed**2))


def _sums(part: Part, cells: Cells, n: int, seed: np.random.SeedSequence, workers: Workers) -> _Sums:
    streams = seed.spawn(_STREAMS)
    shares = np.diff(np.arange(_STREAMS + 1) * n // _STREAMS)
    found: list[tuple[float, Floats, Codes]] = [(-np.inf, np.zeros((2, cells.n_cells + 1)), part.case)] * _STREAMS

    def run(begin: int, end: int) -> None:
        for k in range(begin, end):
            found[k] = _stream(part, cells, int(shares[k]), streams[k], workers.stopped)

    workers.run(run, shares * len(part.flat.root) * _NANOSECONDS)
    scale = max(stream for stream, _, _ in found)
    _check_possible(scale, n)
    factors = [(np.exp(stream - scale), sums) for stream, sums, _ in found]
    total: Floats = sum(factor * sums[0] for factor, sums in factors)
    squares: Floats = sum(factor**2 * sums[1] for factor, sums in factors)
    return _Sums(scale, total, squares, [case for stream, _, case in found if stream > -np.inf])


def _stream(
    part: Part, cells: Cells, n: int, seed: np.random.SeedSequence, stopped: threading.Event
) -> tuple[float, Floats, Codes]:
    """The log scale, the sums of `n` cases, and one of these, drawn by weight."""
    random, choice = np.random.default_rng(seed), np.random.default_rng(seed.spawn(1)[0])
    scale, kept = -np.inf, part.case
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
            if choice.random() * sums[0, -1] < weight.sum():
                kept = chosen(codes, log_weight, choice)
    return float(scale), sums, kept


def _largest(part: Part, cells: Cells, sums: _Sums, workers: Workers) -> tuple[float, list[str]]:
    """The largest weight a case may have, and a warning if a single such case would change the answer.

    With the warning, it is the largest weight found by continuing some cases as Markov chains.
    """
    bound = _weight(part.log_bound - sums.scale)
    if sums.size(bound) >= HARMLESS * sums.size():
        return bound, []
    chain = Chain.of(part, cells, workers.stopped)
    log_weights = np.empty((len(sums.kept), _SWEEPS))
    for seed, (case, row) in enumerate(zip(sums.kept, log_weights, strict=True)):
        chain.sweep(case, np.random.default_rng(seed), np.zeros((1, cells.n_cells)), row, fresh=0)
    return max(1.0, _weight(log_weights.max() - sums.scale)), [OUTWEIGHED]


def _weight(log_weight: float) -> float:
    """The weight, capped where nothing else would count."""
    return float(np.exp(min(log_weight, 300.0)))


def _check_possible(log_weight: float, n: int) -> None:
    if log_weight == -np.inf:
        raise NoCaseError(
            f"none of {n:,} cases agrees with the evidence, which is impossible or too improbable for so few: "
            f"draw more samples, or ask exactly."
        )
