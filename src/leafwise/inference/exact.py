"""Exact answers: marginals, joint distributions, the probability of evidence, the best case, and cases drawn.

Knows factors and contractions. What an answer costs is known, and can be refused, before any work.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.errors import check_type
from leafwise.inference.contraction import Factor, Plan
from leafwise.inference.evidence import Weights
from leafwise.inference.factors import Scope, factors_of
from leafwise.kernels import contraction as kernel
from leafwise.network import Network

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most an exact answer may take: bytes of memory, and multiplications."""

    memory: float = 2**30
    operations: float = 1e10

    def __post_init__(self) -> None:
        if not self.memory > 0 or not self.operations >= 1:
            raise ValueError(
                f"the limits are {self.memory} bytes and {self.operations} multiplications, and the least are above 0 "
                f"and 1: raise them."
            )


DEFAULT_LIMITS = Limits()
IMPOSSIBLE = "the evidence is impossible under this network: leave some of it out, or correct it."


@dataclass(frozen=True)
class Exact:
    """A question ready to be answered: evidence and targets as factors, and the plan to multiply them.

    >>> from leafwise.examples import alarm
    >>> log_evidence, (marginal, joint) = Exact.of(alarm(), {}, [(0,), (0, 1)], Limits()).distributions()
    >>> round(log_evidence, 9), marginal.shape, joint.shape
    (0.0, (2,), (2, 3))
    """

    scope: Scope
    targets: tuple[tuple[int, ...], ...]  # each has a factor of ones, the last factors: its environment is the answer
    factors: tuple[Factor, ...]
    plan: Plan
    limits: Limits
    log_weight: float  # of the largest weights of evidence, which are left out of the factors

    @classmethod
    def of(cls, network: Network, weights: Weights, targets: Sequence[tuple[int, ...]], limits: Limits) -> "Exact":
        """Plan the answer. Whether it is affordable is asked afterwards."""
        check_type(
            limits, Limits, "what is given as limits", "leafwise.Limits: use for example Limits(operations=1e11)."
        )
        scope = Scope.of(network, weights, {variable for target in targets for variable in target})
        factors, extents = factors_of(scope, limits.memory / 8)
        for variable, weight in weights.items():
            if scope.is_free(variable):
                factors.append(scope.reduced(Factor((variable,), weight / weight.max())))
        for target in targets:
            free = tuple(filter(scope.is_free, target))
            shape = [extents[variable] for variable in free]
            factors.append(Factor(free, np.ones(shape) if len(free) < 2 else np.broadcast_to(1.0, shape)))
        plan = Plan.of([factor.indices for factor in factors], extents, limits.operations)
        log_weight = math.fsum(math.log(weight.max()) for weight in weights.values())
        return cls(scope, tuple(targets), tuple(factors), plan, limits, log_weight)

    @property
    def operations(self) -> float:
        """About how many multiplications it takes."""
        return self.plan.operations * (3 if self.targets else 1)

    @property
    def memory(self) -> float:
        """About how many bytes it takes."""
        return self.plan.numbers * (16 if self.targets else 8)

    @property
    def is_affordable(self) -> bool:
        """Whether that is within the limits."""
        within = self.operations <= self.limits.operations and self.memory <= self.limits.memory
        return self.plan.program is not None and within

    def log_evidence(self) -> float:
        """The log probability of the evidence; -inf if it is impossible."""
        return self._up(kernel.SUM)[2]

    def distributions(self) -> tuple[float, list[Floats]]:
        """The log probability of the evidence, and the joint distribution of each target given it."""
        kind, memory, log_evidence = self._up(kernel.SUM)
        if log_evidence == -math.inf:
            raise ValueError(IMPOSSIBLE)
        around = np.empty_like(memory)
        if not kernel.go_down(self.program, memory, self._asked, kind, around):
            kind, memory, log_evidence = self._up(kernel.LOG_SUM)
            kernel.go_down(self.program, memory, self._asked, kind, around)
        return log_evidence, [self._read(*pair, around, kind) for pair in zip(self._asked, self.targets, strict=True)]

    def best(self) -> tuple[float, NDArray[np.int64]]:
        """The log probability of the most probable states of the targets and what they depend on, and those states.

        The targets must be single variables.
        """
        _, memory, log_probability = self._up(kernel.MAX)
        if log_probability == -math.inf:
            raise ValueError(IMPOSSIBLE)
        return log_probability, self._states(memory, kernel.MAX, np.zeros((1, len(self.program.left))))[:, 0]

    def draw(self, n_cases: int, seed: int) -> NDArray[np.int64]:
        """States of the targets, single variables, drawn given the evidence: (n_targets, n_cases)."""
        kind, memory, log_evidence = self._up(kernel.SUM)
        if log_evidence == -math.inf:
            raise ValueError(IMPOSSIBLE)
        random = np.random.default_rng(seed)
        block = max(1, 2**22 // len(self.program.offset))  # cases at once: positions in all tensors are kept
        sizes = [min(block, n_cases - begin) for begin in range(0, n_cases, block)]
        n_steps = len(self.program.left)
        return np.hstack([self._states(memory, kind, random.random((size, n_steps))) for size in sizes])

    def joint_with(self, targets: NDArray[np.int64], known: Floats) -> tuple[Floats, Floats]:
        """The probability of each row of evidence, and jointly with it of each state of these targets.

        A row has one weight for each state of each of the targets, single variables of which nothing is known yet.
        """
        memory, totals = self.plan.memory(self.factors), np.zeros(len(known))
        return kernel.joint_with(self.program, memory, self._asked[targets], known, totals), totals

    @property
    def program(self) -> kernel.Program:
        """The steps of an answer that is affordable."""
        assert self.plan.program is not None
        return self.plan.program

    @property
    def _asked(self) -> NDArray[np.int64]:
        """The numbers of the targets' factors."""
        return np.arange(len(self.factors) - len(self.targets), len(self.factors))

    def _up(self, kind: int) -> tuple[int, Floats, float]:
        """The kind of numbers that was needed, the memory with all results, and the log of the whole product."""
        program = self.program
        memory = self.plan.memory(self.factors)
        log_scale = np.zeros(len(program.offset) - 1)
        if kind == kernel.SUM:
            if kernel.go_up(program, memory, log_scale, kind):
                return kind, memory, math.log(memory[-1]) + float(log_scale[-1]) + self.log_weight
            return self._up(kernel.LOG_SUM)
        leaves = memory[: program.offset[len(self.factors) + 1]]
        with np.errstate(divide="ignore"):
            np.log(leaves, out=leaves)
        kernel.go_up(program, memory, log_scale, kind)
        return kind, memory, float(memory[-1]) + self.log_weight

    def _read(self, factor: int, target: tuple[int, ...], around: Floats, kind: int) -> Floats:
        """The environment of a target's ones, made a distribution over all states of its variables."""
        offset = self.program.offset
        values = around[offset[factor] : offset[factor + 1]]
        if kind == kernel.LOG_SUM:
            values = np.exp(values - values.max())
        values = values / values.sum()
        n_states = [self.scope.network.variables[variable].n_states for variable in target]
        states = [self.scope.states[variable] for variable in target]
        out = np.zeros(n_states)
        if len(target) == 1:
            out[states[0]] = values
            return out
        axes, shape = self.plan.axes[factor], self.factors[factor].values.shape
        values = values.reshape([shape[axis] for axis in axes]).transpose(np.argsort(axes))
        out[np.ix_(*states)] = values.reshape([len(one) for one in states])
        return out

    def _states(self, memory: Floats, kind: int, uniform: Floats) -> NDArray[np.int64]:
        place = kernel.trace(self.program, memory, kind, uniform)
        pairs = zip(self._asked, self.targets, strict=True)
        return np.array([self.scope.states[target[0]][place[:, factor]] for factor, target in pairs])


def affordable(network: Network, weights: Weights, targets: Sequence[tuple[int, ...]], limits: Limits) -> Exact:
    """The question, ready for an exact answer, unless it costs more than the limits allow: then a ValueError."""
    question = Exact.of(network, weights, targets, limits)
    if not question.is_affordable:
        raise ValueError(
            f"an exact answer takes about {question.operations:.1e} multiplications and {_bytes(question.memory)}, "
            f"and the limits are {limits.operations:.1e} and {_bytes(limits.memory)}: raise them, give more evidence, "
            f"or use method='weighting' or 'gibbs' where there is a choice."
        )
    return question


def _bytes(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.3g} {unit}"
