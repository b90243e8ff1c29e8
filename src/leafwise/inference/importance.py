"""Adaptive importance sampling: proposals that adapt to the evidence, leaf by leaf.

Every leaf has a distribution to draw from beside its own. These are initialized with messages of loopy belief
propagation from the evidence below (Yuan & Druzdzel, 2003), and learn from the cases drawn so far (Cheng & Druzdzel,
2000). Then they are fixed, so the cases that count are independent, and errors are those of weighted means.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Table, code_type
from leafwise.inference import loopy
from leafwise.inference.chains import NANOSECONDS as _NANOSECONDS_OF_SWEEP
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
)
from leafwise.inference.evidence import Weights
from leafwise.inference.forward import chosen, draws
from leafwise.inference.intervals import of_weights
from leafwise.inference.parts import Codes, Part, parts_of
from leafwise.inference.sampling import cumulative
from leafwise.kernels.questions import importance as kernel
from leafwise.network import Network
from leafwise.workers import Workers

_STREAMS = 16  # each with its own random numbers, so that any number of threads draws the same cases
_BLOCK = 1 << 16  # random numbers per block, so that they stay in the cache
_NANOSECONDS = 30.0  # per cell, roughly
_ROUNDS, _ROUND = 6, 2500  # of adaptation, and the cases of each
_OWN = 0.3  # the share of cases that are drawn from the network's own distributions
_HEAVY = 0.05  # the largest share of the total weight that a single case may have without a warning
_FEW = 100.0  # independent draws
_PRIOR = 20.0  # the previous distribution counts as this many draws
_SPREAD = 2.0  # standard errors by which a state may have been drawn too seldom
_KEPT, _SWEEPS = 8, 4  # cases of each stream that are continued as Markov chains, and for how long
_SURE = 3.0  # standard errors beyond which a difference is certain
_DRAWING = 0.6  # the share of the time for drawing the cases that count; the rest is for chains and scouts
_SCOUTS = 2  # cases from the network's own distributions, per case that counts, to search for the largest weight
_DEFENCE = 0.05  # the share of its own distribution in a leaf's proposal: bounds the leaf's weights by its inverse
_FIRST_TURN = 8192  # cases before errors and the clock are first checked
_MOST_SAMPLES = 10**9
_CASES, _STARTS = 20_000, 20  # drawn to search for the most probable one, and the best of them, which are improved

Floats = NDArray[np.float64]


def importance(
    network: Network,
    targets: Sequence[int],
    weights: Weights,
    *,
    n_samples: int = 100_000,
    seed: int = 1,
    joint: bool = False,
    seconds: float | None = None,
    error: float | None = None,
    threads: int | None = None,
) -> Estimate:
    """Estimate the distribution of each target given evidence, or with `joint` of all together, and the evidence.

    With `seconds` or `error`, draw until the time is up or no standard error exceeds `error`, whichever comes first.
    The same seed gives the same answer for any number of threads, unless time decides.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.evidence import weights_of
    >>> network = alarm()
    >>> given = weights_of(network, {"BP": "LOW"})
    >>> found = importance(network, [network.names.index("CO")], given, error=0.01)
    >>> bool(found.standard_errors[0].max() < 0.01), found.probabilities[0].round(1).tolist()
    (True, [0.3, 0.1, 0.5])
    """
    check(network, targets, joint, n_samples, 2, seed)
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    parts = parts_of(network, targets, weights, joint)
    found: list[Found] = []
    warnings: list[str] = []
    log_evidence, variance, n_drawn = parts.log_constant, 0.0, 0
    workers = Workers(threads)
    n = len(parts.parts)
    for part, stream, n_left in zip(parts.parts, np.random.SeedSequence(seed).spawn(n), range(n, 0, -1), strict=True):
        cells = cells_of(part, joint)
        learning, drawing, scouting = stream.spawn(3)
        run = _Run(part, cells, _learned(network, part, weights, learning), drawing.spawn(_STREAMS), workers)
        now = time.monotonic()
        end = now + (deadline - now) / n_left
        run.draw_until(_MOST_SAMPLES if seconds or error else n_samples, run.leaving_time(now, end), error or 0.0)
        followed = run.followed(scouting, end)
        found += run.tables(followed)
        warnings += run.warnings(followed)
        log_evidence += run.scale + np.log(run.total[-1] / run.n)
        variance += max(0.0, (run.n * run.squares[-1] / run.total[-1] ** 2 - 1) / (run.n - 1))
        n_drawn = max(n_drawn, run.n)
    estimate = put_together(parts, targets, joint, n_drawn or n_samples, found)
    if estimate.effective_sample_size < _FEW:
        warnings.append(
            f"the samples are worth {estimate.effective_sample_size:.3g} independent draws, and {_FEW:.0f} are the "
            f"least for a sure answer: ask for more, by Gibbs sampling, or exactly."
        )
    return replace(
        estimate,
        warnings=tuple(dict.fromkeys(warnings)),
        log_evidence=float(log_evidence),
        log_evidence_error=float(variance**0.5),
    )


def proposed_cases(network: Network, weights: Weights, n: int, seed: int) -> tuple[Table, Floats]:
    """Cases of all variables that are consistent with the evidence, and the log weight of each."""
    everything = range(len(network.variables))
    parts = parts_of(network, everything, weights, joint=True)
    codes = np.zeros((len(everything), n), code_type(network.variables))
    codes[list(parts.known)] = np.array(list(parts.known.values()), codes.dtype)[:, None]
    log_weights = np.full(n, parts.log_constant)
    learning, drawing = np.random.SeedSequence(seed).spawn(2)
    for part in parts.parts:  # one, or none if everything is observed
        begin = 0
        proposal = _learned(network, part, weights, learning)
        for block, log_weight in _draws(part, proposal, n, np.random.default_rng(drawing)):
            end = begin + len(log_weight)
            codes[list(part.variables), begin:end] = block
            log_weights[begin:end] += log_weight
            begin = end
    _check_possible(log_weights.max(), n)
    return Table(network.variables, codes), log_weights


def best_case(network: Network, weights: Weights, seed: int) -> tuple[Codes, float]:
    """The most probable case found: the best samples, improved by changing one variable at a time.

    Returns its states, and their joint log probability with the evidence.
    """
    table, _ = proposed_cases(network, weights, _CASES, seed)
    parts = parts_of(network, range(len(network.variables)), weights, joint=True)
    best, log_best = table.codes[:, 0].copy(), parts.log_constant
    for part in parts.parts:
        log_joint = _log_joint(network, part, weights)
        variables = list(part.variables)
        cases = np.ascontiguousarray(table.codes[variables])
        logs = np.zeros(cases.shape[1])
        kernel.add_logs(cases, part.flat, log_joint, logs)
        log_best = -math.inf
        for case in np.argsort(-logs, kind="stable")[:_STARTS].tolist():
            start = cases[:, case : case + 1].copy()
            climbed = kernel.climb(start, part.flat, log_joint, part.free) + parts.log_constant
            if climbed > log_best:
                log_best, best[variables] = climbed, start[:, 0]
    return best, float(log_best)


@dataclass(frozen=True)
class _Proposal:
    """The cumulative distribution to draw from in each leaf, and the log ratio of network to proposal for each state.

    With `own`, some cases are drawn from the network's own distributions. Weights are those of the mixture of both, so
    that what the proposal overlooks is found, and no weight is far above what it is without a proposal.
    """

    cumulative: Floats
    log_ratio: Floats
    own: "_Proposal | None" = None

    def draw(self, part: Part, codes: Codes, uniform: Floats) -> Floats:
        """Fill the cases, some of them from the network's own distributions, and return their log weights."""
        log_weight = np.zeros(codes.shape[1])
        if self.own is None:
            kernel.draw_proposed(codes, part.flat, self.cumulative, self.log_ratio, uniform, log_weight)
            return log_weight
        cut = round((1 - _OWN) * codes.shape[1])
        for proposal, here in ((self, slice(0, cut)), (self.own, slice(cut, None))):
            some, ignored = np.ascontiguousarray(codes[:, here]), log_weight[here].copy()
            drawn = np.ascontiguousarray(uniform[:, here])
            kernel.draw_proposed(some, part.flat, proposal.cumulative, proposal.log_ratio, drawn, ignored)
            codes[:, here] = some
        return self.log_weights(part, codes)

    def log_weights(self, part: Part, codes: Codes) -> Floats:
        """The log weights of cases under the mixture, wherever they were drawn."""
        assert self.own is not None
        proposed, own = np.zeros((2, codes.shape[1]))
        kernel.add_logs(codes, part.flat, self.log_ratio, proposed)
        kernel.add_logs(codes, part.flat, self.own.log_ratio, own)
        mixed: Floats = -np.logaddexp(np.log1p(-_OWN) - proposed, np.log(_OWN) - own)
        return mixed


@dataclass(frozen=True)
class _Followed:
    """What the continued chains and the scouts found.

    The chains start at cases drawn by weight, so that they sample the posterior. For rare states, the means of the
    distributions along the way, with their errors, are more informative than the cases themselves. `one` is the weight
    that a missed case may have, in units of the largest weight drawn.
    """

    means: Floats
    errors: Floats
    one: float
    bounded: bool  # whether `one` is a bound; if not, it is the largest weight that was found

    def apart(self, probabilities: Floats) -> Floats:
        """By how much the means certainly differ from these probabilities."""
        apart: Floats = np.maximum(abs(self.means - probabilities) - _SURE * self.errors, 0)
        return apart


def _shapes(network: Network, part: Part) -> list[tuple[int, int]]:
    """The numbers of leaves and states of each graph of a part, in the order of their distributions."""
    nodes = [network.nodes[variable] for variable in part.variables]
    return [(len(node.probabilities), node.n_states) for node in nodes if node is not None]


def _log_joint(network: Network, part: Part, weights: Weights) -> Floats:
    """The log of each state's probability and evidence weight, in each leaf."""
    rows = []
    for variable in part.variables:
        node = network.nodes[variable]
        assert node is not None
        with np.errstate(divide="ignore"):
            own = np.log(node.probabilities)
            rows.append((own + np.log(weights.get(variable, np.ones(node.n_states)))).ravel())
    return np.concatenate(rows)


def _by_graph(flat: Floats, shapes: list[tuple[int, int]]) -> list[Floats]:
    cuts = np.cumsum([n * r for n, r in shapes])[:-1]
    return [rows.reshape(shape) for rows, shape in zip(np.split(flat, cuts), shapes, strict=True)]


def _normal(rows: Floats) -> Floats:
    """Rows normalized to distributions; rows of zeros, which do not matter, become uniform."""
    totals = rows.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(rows, totals, out=np.full_like(rows, 1 / rows.shape[1]), where=totals > 0)
    return shares


def _proposal(part: Part, log_joint: Floats, shapes: list[tuple[int, int]], wanted: list[Floats]) -> _Proposal:
    """A proposal from these distributions, mixed with the network's own; observed variables are not drawn."""
    cumulatives, log_ratios = [], []
    for known, logs, rows in zip(part.flat.known, _by_graph(log_joint, shapes), wanted, strict=True):
        own = _normal(np.exp(logs - np.maximum(logs.max(axis=1, keepdims=True), -1e300)))
        mixed = (1 - _DEFENCE) * np.where(own > 0, rows, 0.0) + _DEFENCE * own
        mixed = _normal(mixed)
        cumulatives.append(cumulative(mixed).ravel())
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = logs - (0.0 if known else np.log(mixed))
        log_ratios.append(np.where(np.isnan(ratio), -np.inf, ratio).ravel())
    return _Proposal(np.concatenate(cumulatives), np.concatenate(log_ratios))


def _learned(network: Network, part: Part, weights: Weights, seed: np.random.SeedSequence) -> _Proposal:
    """The best proposal of several rounds: from belief propagation, the network itself, and the cases drawn."""
    shapes, log_joint = _shapes(network, part), _log_joint(network, part, weights)
    own = [
        _normal(np.exp(logs - np.maximum(logs.max(axis=1, keepdims=True), -1e300)))
        for logs in _by_graph(log_joint, shapes)
    ]
    hints = _hints(network, part, weights)
    hinted = [_normal(rows * hints.get(v, 1.0)) for v, rows in zip(part.variables, own, strict=True)]
    best: tuple[float, _Proposal] | None = None
    random = np.random.default_rng(seed)
    wanted, start = hinted, [own] if hints else []
    for _ in range(_ROUNDS):
        proposal = _proposal(part, log_joint, shapes, wanted)
        counts, worth = _counted(part, proposal, random)
        if best is None or worth > best[0]:
            best, basis = (worth, proposal), wanted
        if start:
            wanted = start.pop()
            continue
        if worth <= 1.0:
            break
        pairs = zip(basis, _by_graph(counts, shapes), strict=True)
        wanted = [_normal(_PRIOR * rows + worth * seen + _spread(rows, worth * seen)) for rows, seen in pairs]
    assert best is not None
    return replace(best[1], own=_proposal(part, log_joint, shapes, own))


def _spread(rows: Floats, seen: Floats) -> Floats:
    """A margin for states whose counts may be low by chance: too small a proposal makes weights too large."""
    spread: Floats = _SPREAD * np.sqrt(rows * seen.sum(axis=1, keepdims=True))
    return spread


def _hints(network: Network, part: Part, weights: Weights) -> dict[int, Floats]:
    """The messages of the evidence below each variable, by loopy belief propagation; {} if that fails."""
    try:
        return loopy.from_below(network, part.variables, weights)
    except loopy.TooManyWays:
        return {}


def _counted(part: Part, proposal: _Proposal, random: np.random.Generator) -> tuple[Floats, float]:
    """The weight shares of sampled cases by leaf and state, and their effective sample size."""
    counts, blocks = np.zeros(len(proposal.log_ratio)), list(_draws(part, proposal, _ROUND, random))
    largest = max(log_weight.max() for _, log_weight in blocks)
    if largest == -np.inf:
        return counts, 0.0
    total = squares = 0.0
    for codes, log_weight in blocks:
        weight = np.exp(log_weight - largest)
        kernel.count_leaves(codes, part.flat, weight, counts)
        total += weight.sum()
        squares += (weight**2).sum()
    return counts / total, float(total**2 / squares)


def _draws(part: Part, proposal: _Proposal, n: int, random: np.random.Generator) -> Iterator[tuple[Codes, Floats]]:
    """Blocks of cases of a part, `n` in total, with their log weights."""
    n_free = len(part.free)
    size = max(1, min(4096, _BLOCK // n_free))
    for begin in range(0, n, size):
        codes = np.repeat(part.case, min(size, n - begin), axis=1)
        log_weight = proposal.draw(part, codes, random.random((n_free, codes.shape[1])))
        yield codes, log_weight


class _Run:
    """Sampling in progress: sums of weights and of their squares for each stream."""

    def __init__(
        self, part: Part, cells: Cells, proposal: _Proposal, seeds: list[np.random.SeedSequence], workers: Workers
    ) -> None:
        self.part, self.cells, self.proposal, self.workers = part, cells, proposal, workers
        self.randoms = [np.random.default_rng(seed) for seed in seeds]
        self.choices = [np.random.default_rng(seed.spawn(1)[0]) for seed in seeds]
        self.kept = np.repeat(np.repeat(part.case[None], len(seeds), axis=0), _KEPT, axis=2)  # cases drawn by weight
        self.sums = np.zeros((len(seeds), 2, cells.n_cells + 1))  # the last cell is the total
        self.scales = np.full(len(seeds), -np.inf)
        self.n = 0

    @property
    def scale(self) -> float:
        return float(self.scales.max())

    @property
    def streams(self) -> Floats:
        """The sums of all streams, on a common scale."""
        factor = np.exp(self.scales - self.scale)
        sums: Floats = self.sums * np.stack([factor, factor**2], axis=1)[:, :, None]
        return sums

    def draw_until(self, most: int, deadline: float, error: float) -> None:
        """Draw in turns, each as long as all before, until there are enough, time is up, or errors are small."""
        turn = most if deadline == math.inf and error == 0 else min(most, _FIRST_TURN)
        while True:
            began = time.monotonic()
            self._turn(turn)
            _check_possible(self.scale, self.n)
            took = time.monotonic() - began
            left = deadline - time.monotonic()
            if self.n >= most or left <= 0:
                return
            if error > 0 and max((float(table.standard_errors.max()) for table in self.tables()), default=0.0) <= error:
                return
            if not self.cells.asked:
                return
            turn = max(_STREAMS, min(self.n, most - self.n, int(turn * min(left / max(took, 1e-9), 64.0))))

    def _turn(self, n: int) -> None:
        self._share_out(n, self._stream)
        self.n += n

    def _share_out(self, n: int, stream: Callable[[int, int], None]) -> None:
        """Let each stream, by its number, draw its share of the cases."""
        shares = np.diff(np.arange(_STREAMS + 1) * n // _STREAMS)

        def run(begin: int, end: int) -> None:
            for k in range(begin, end):
                stream(k, int(shares[k]))

        self.workers.run(run, shares * len(self.part.flat.root) * _NANOSECONDS)

    def _stream(self, k: int, n: int) -> None:
        for codes, log_weight in _draws(self.part, self.proposal, n, self.randoms[k]):
            if self.workers.stopped.is_set():
                return
            largest = log_weight.max()
            if largest > self.scales[k]:
                factor = np.exp(self.scales[k] - largest)
                self.sums[k] *= [[factor], [factor**2]]
                self.scales[k] = largest
            if largest > -np.inf:
                weight = np.exp(log_weight - self.scales[k])
                both = np.stack([weight, weight**2])
                self.cells.add(codes[list(self.part.targets)], both, self.sums[k])
                self.sums[k, :, -1] += both.sum(axis=1)
                new = self.choices[k].random(_KEPT) * self.sums[k, 0, -1] < weight.sum()
                self.kept[k][:, new] = chosen(codes, log_weight, self.choices[k], int(new.sum()))

    def leaving_time(self, now: float, end: float) -> float:
        """The time at which to stop drawing, so that enough is left to search for what was missed."""
        following = _STREAMS * _KEPT * _SWEEPS * len(self.part.free) * _NANOSECONDS_OF_SWEEP * 1e-9
        return now + max(0.0, end - now - following) * _DRAWING

    def followed(self, seed: np.random.SeedSequence, deadline: float) -> _Followed:
        """Search for what the cases lack: continue some of them as Markov chains, and sample others forward."""
        n = self.cells.n_cells
        if not self.cells.asked:
            return _Followed(self.total[:-1] / self.total[-1], np.zeros(n), 1.0, True)
        following, scouting = seed.spawn(2)
        sums, met = self._chains(following, deadline)
        n_rows = 1 if self.cells.several else len(sums)  # joint states have no distributions along the way
        errors = sums.std(axis=0, ddof=1) / n_rows**0.5 if n_rows > 1 else np.full(n, np.inf)
        one, bounded = self._heaviest(met, scouting, deadline)
        return _Followed(sums.mean(axis=0) / _SWEEPS, errors / _SWEEPS, one, bounded)

    def _chains(self, seed: np.random.SeedSequence, deadline: float) -> tuple[Floats, list[Codes]]:
        """The sums of each chain, or one row of sums for joint states; and all cases visited.

        No further chain starts when the time is up, but there is always a first one.
        """
        chain = Chain.of(self.part, self.cells, self.workers.stopped)
        cases = np.concatenate([kept for kept, scale in zip(self.kept, self.scales, strict=True) if scale > -np.inf], 1)
        n_rows = 1 if self.cells.several else cases.shape[1]
        sums = np.zeros((n_rows, self.cells.n_cells))
        met: list[Codes] = []
        for place, stream in enumerate(seed.spawn(cases.shape[1])):
            if place > 0 and time.monotonic() >= deadline:
                return sums[:place], met
            case, random = cases[:, place : place + 1].copy(), np.random.default_rng(stream)
            for _ in range(_SWEEPS):
                chain.sweep(case, random, sums[place % n_rows, None], np.zeros(1), fresh=0)
                met.append(case.copy())
        return sums, met

    def _heaviest(self, met: list[Codes], seed: np.random.SeedSequence, deadline: float) -> tuple[float, bool]:
        """The weight that a missed case may have, in units of the largest weight, and whether it is a bound."""
        if len(self.part.free) == 1:  # its states are all possible cases
            free = self.part.free[0]
            every = np.repeat(self.part.case, self.part.flat.n_states[free], axis=1)
            every[free] = np.arange(every.shape[1])
            return self._on_scale(self.proposal.log_weights(self.part, every).max()), True
        scouts, n_scouts = self._scouts(seed, deadline)
        one = self._on_scale(self.proposal.log_weights(self.part, np.concatenate(met + scouts, axis=1)).max())
        # on weights relative to all forward samples: this many per case that counts
        bound = self._on_scale(self.part.log_bound - math.log(n_scouts / self.n + _OWN))
        bounded = self.size(bound) >= HARMLESS * self.size()
        return max(one, bound) if bounded else one, bounded

    def _on_scale(self, log_weight: float) -> float:
        return max(1.0, math.exp(min(log_weight - self.scale, 300.0)))

    def _scouts(self, seed: np.random.SeedSequence, deadline: float) -> tuple[list[Codes], int]:
        """The heaviest case of each block sampled forward, and the number of cases sampled until time was up."""
        randoms = [np.random.default_rng(stream) for stream in seed.spawn(_STREAMS)]
        heavy: list[list[Codes]] = [[] for _ in randoms]
        n_drawn = np.zeros(_STREAMS, np.int64)

        def stream(k: int, n: int) -> None:
            for codes, log_weight in draws(self.part, n, randoms[k]):
                heavy[k].append(codes[:, [int(log_weight.argmax())]])
                n_drawn[k] += len(log_weight)
                if self.workers.stopped.is_set() or time.monotonic() >= deadline:
                    return

        self._share_out(_SCOUTS * self.n, stream)
        return [case for cases in heavy for case in cases], int(n_drawn.sum())

    @property
    def total(self) -> Floats:
        sums: Floats = self.streams[:, 0].sum(axis=0)
        return sums

    @property
    def squares(self) -> Floats:
        sums: Floats = self.streams[:, 1].sum(axis=0)
        return sums

    def size(self, one: float = 1.0) -> float:
        """The effective sample size; smaller if a case of weight `one`, above all drawn, may have been missed."""
        missed = one if one > 1 else 0.0
        return float((self.total[-1] + missed) ** 2 / (self.squares[-1] + missed**2))

    def tables(self, followed: _Followed | None = None) -> list[Found]:
        """Ratios of sums, with errors by the delta method, or from the variation between streams if that is larger.

        Intervals extend to the means of the chains where these differ with certainty.
        """
        one = 1.0 if followed is None else followed.one
        total, squares, streams = self.total, self.squares, self.streams[:, 0]
        probabilities = total[:-1] / total[-1]
        with_state, others = squares[:-1], np.maximum(squares[-1] - squares[:-1], 0)
        variances = (with_state * (1 - probabilities) ** 2 + others * probabilities**2) / total[-1] ** 2
        apart = streams[:, :-1] - probabilities * streams[:, -1:]
        between = (apart**2).sum(axis=0) / total[-1] ** 2 * _STREAMS / (_STREAMS - 1)
        intervals = of_weights(total[:-1], with_state, np.maximum(total[-1] - total[:-1], 0), others, one)
        if followed is not None:
            means = np.where(followed.apart(probabilities) > 0, followed.means, probabilities)
            intervals = np.stack([np.minimum(intervals[0], means), np.maximum(intervals[1], means)])
        errors = np.sqrt(np.maximum(variances, between))
        errors = np.maximum(errors, abs(intervals - probabilities).max(axis=0) / 2)
        tables = zip(self.cells.asked, *map(self.cells.tables, (probabilities, errors, intervals)), strict=True)
        return [Found(asked, table, error, interval, self.size(one)) for asked, table, error, interval in tables]

    def warnings(self, followed: _Followed) -> Iterator[str]:
        """Reasons why errors may be larger than stated; the largest weight is one on the common scale."""
        if self.total[-1] * _HEAVY <= 1:
            yield (
                f"a single case has {1 / self.total[-1]:.0%} of all weight, so others of its kind may not have been "
                f"met: ask for more, by Gibbs sampling, or exactly."
            )
        if not followed.bounded or self.size(followed.one) < HARMLESS * self.size():
            yield OUTWEIGHED


def _check_possible(log_weight: float, n: int) -> None:
    if log_weight == -np.inf:
        raise NoCaseError(
            f"none of {n:,} cases agrees with the evidence, which is impossible or too improbable for so few: "
            f"draw more samples, or ask exactly."
        )
