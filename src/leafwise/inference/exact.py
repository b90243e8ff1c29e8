"""Exact inference: marginals, joint distributions, the probability of evidence, the best case, and samples.

The cost of an answer is known, and can be refused, before any work is done.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from leafwise.errors import Advice, AdvisedError, Argument, check_type
from leafwise.inference.contraction import Factor, Plan
from leafwise.inference.evidence import Weights
from leafwise.inference.factors import Scope, factors_of
from leafwise.kernels.questions import contraction as kernel
from leafwise.machine import n_bytes
from leafwise.network import Network

Floats = NDArray[np.float64]

OPERATIONS_A_SECOND = 5e8  # multiplications, roughly
_SECONDS = 20.0  # the default time limit of an exact answer


@dataclass(frozen=True, slots=True)
class Limits:
    """The most an exact answer may take: bytes of memory, and multiplications.

    The defaults are half of the machine's memory, and the multiplications of about 20 seconds.

    >>> Limits.within(seconds=2).operations
    1000000000.0
    """

    memory: float = field(default_factory=lambda: n_bytes() / 2)
    operations: float = _SECONDS * OPERATIONS_A_SECOND

    @classmethod
    def within(cls, seconds: float) -> "Limits":
        """The limits of an answer that takes about this many seconds."""
        return cls(operations=max(1.0, seconds * OPERATIONS_A_SECOND))

    def __post_init__(self) -> None:
        if not self.memory > 0 or not self.operations >= 1:
            raise ValueError(
                f"the limits are {self.memory} bytes and {self.operations} multiplications, and the least are above 0 "
                f"and 1: raise them."
            )


DEFAULT_LIMITS = Limits()


class TooCostly(AdvisedError):
    """An exact answer would exceed the limits."""


class Impossible(ValueError):
    """The evidence has probability zero."""


IMPOSSIBLE = "the evidence is impossible under this network: leave some of it out, or correct it."


@dataclass(frozen=True)
class Exact:
    """A query ready to be answered: evidence and targets as factors, and the plan to multiply them.

    >>> from leafwise.examples import alarm
    >>> log_evidence, (marginal, joint) = Exact.of(alarm(), {}, [(0,), (0, 1)], Limits()).distributions()
    >>> round(log_evidence, 9), marginal.shape, joint.shape
    (0.0, (2,), (2, 3))
    """

    scope: Scope
    targets: tuple[tuple[int, ...], ...]  # each has a factor of ones, after all others, whose environment is the answer
    factors: tuple[Factor, ...]
    plan: Plan
    limits: Limits
    log_weight: float  # log of the largest evidence weights, by which the factors were divided

    @classmethod
    def of(
        cls,
        network: Network,
        weights: Weights,
        targets: Sequence[tuple[int, ...]],
        limits: Limits,
        targets_last: bool = False,
    ) -> "Exact":
        """Plan the answer; `refusal` says whether it exceeds the limits.

        With `targets_last` everything else is eliminated before any target, as `best_targets` requires.
        """
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
        last = {v for target in targets for v in target} if targets_last or len(targets) == 1 else ()
        plan = Plan.of([factor.indices for factor in factors], extents, limits.operations, last)
        log_weight = math.fsum(math.log(weight.max()) for weight in weights.values())
        return cls(scope, tuple(targets), tuple(factors), plan, limits, log_weight)

    @property
    def operations(self) -> float:
        """The approximate number of multiplications."""
        return self.plan.operations * (3 if self.targets else 1)

    @property
    def memory(self) -> float:
        """The approximate memory in bytes."""
        return self.plan.numbers * (16 if self.targets else 8)

    @property
    def is_affordable(self) -> bool:
        """Whether the cost is within the limits."""
        return self.refusal is None

    @property
    def refusal(self) -> Advice | None:
        """What exceeds the limits, and which limit to raise; None if the answer is affordable."""
        limits, parts = self.limits, list[tuple[str, str, Argument]]()
        if self.operations > limits.operations:
            takes = f"{self.operations:.1e} multiplications"
            parts.append((takes, f"{limits.operations:.1e}", Argument("operations", of="Limits")))
        if self.plan.program is not None and self.memory > limits.memory:
            takes = f"{_bytes(self.memory)} of memory"
            parts.append((takes, _bytes(limits.memory), Argument("memory", of="Limits")))
        if not parts:
            return None
        takes, allowed = (" and ".join(texts) for texts in zip(*(part[:2] for part in parts), strict=True))
        limit = "limit is" if len(parts) == 1 else "limits are"
        names = Advice(parts[0][2], *(part for _, _, name in parts[1:] for part in (" and ", name)))
        return Advice(f"an exact answer takes about {takes}, and the {limit} {allowed}: raise ", names)

    def log_evidence(self) -> float:
        """The log probability of the evidence; -inf if it is impossible."""
        return self._up(kernel.SUM)[2]

    def distributions(self) -> tuple[float, list[Floats]]:
        """The log probability of the evidence, and the joint distribution of each target given the evidence."""
        kind, memory, log_evidence = self._up(kernel.SUM)
        if log_evidence == -math.inf:
            raise Impossible(IMPOSSIBLE)
        around = np.empty_like(memory)
        if not kernel.go_down(self.program, memory, self._asked, kind, around):
            kind, memory, log_evidence = self._up(kernel.LOG_SUM)
            kernel.go_down(self.program, memory, self._asked, kind, around)
        return log_evidence, [self._read(*pair, around, kind) for pair in zip(self._asked, self.targets, strict=True)]

    def best(self) -> tuple[float, NDArray[np.int64]]:
        """The log probability of the best case of all variables in scope, and the targets' states in it.

        The targets must be single variables.
        """
        _, memory, log_probability = self._up(kernel.MAX)
        if log_probability == -math.inf:
            raise Impossible(IMPOSSIBLE)
        return log_probability, self._states(memory, kernel.MAX, np.zeros((1, len(self.program.left))))[:, 0]

    def best_targets(self) -> tuple[float, NDArray[np.int64]]:
        """The log probability of the targets' jointly best states, all else summed out, and these states.

        The targets must be single variables, planned with `targets_last`.
        """
        wanted = {target[0] for target in self.targets}
        holders = Counter(index for factor in self.factors for index in factor.indices)
        sets: list[set[int]] = [set(factor.indices) for factor in self.factors] + [set()]
        kinds = []
        for left, right in zip(self.program.left.tolist(), self.program.right.tolist(), strict=True):
            union = sets[left] | sets[right]
            holders.subtract(sets[left] & sets[right])
            sets.append({index for index in union if holders[index] > 1})
            kinds.append(kernel.MAX if union <= wanted else kernel.LOG_SUM)
        memory = self.plan.memory(self.factors)
        leaves = memory[: self.program.offset[len(self.factors) + 1]]
        with np.errstate(divide="ignore"):
            np.log(leaves, out=leaves)
        kernel.go_up_by_kinds(self.program, memory, np.array(kinds, np.int64))
        log_probability = float(memory[-1]) + self.log_weight
        if log_probability == -math.inf:
            raise Impossible(IMPOSSIBLE)
        return log_probability, self._states(memory, kernel.MAX, np.zeros((1, len(self.program.left))))[:, 0]

    def draw(self, n_cases: int, seed: int) -> NDArray[np.int64]:
        """States of the targets, single variables, drawn given the evidence: (n_targets, n_cases)."""
        kind, memory, log_evidence = self._up(kernel.SUM)
        if log_evidence == -math.inf:
            raise Impossible(IMPOSSIBLE)
        random = np.random.default_rng(seed)
        block = max(1, 2**22 // len(self.program.offset))  # cases at a time, as positions in all tensors are stored
        sizes = [min(block, n_cases - begin) for begin in range(0, n_cases, block)]
        n_steps = len(self.program.left)
        return np.hstack([self._states(memory, kind, random.random((size, n_steps))) for size in sizes])

    def joint_with(self, targets: NDArray[np.int64], known: Floats) -> tuple[Floats, Floats]:
        """The joint probability of each row of evidence with each state of these targets; and of the row alone.

        A row has one weight for each state of each of the targets, single variables without other evidence.
        """
        memory, totals = self.plan.memory(self.factors), np.zeros(len(known))
        return kernel.joint_with(self.program, memory, self._asked[targets], known, totals), totals

    @property
    def program(self) -> kernel.Program:
        """The steps of an affordable answer."""
        assert self.plan.program is not None
        return self.plan.program

    @property
    def _asked(self) -> NDArray[np.int64]:
        """The numbers of the targets' factors."""
        return np.arange(len(self.factors) - len(self.targets), len(self.factors))

    def _up(self, kind: int) -> tuple[int, Floats, float]:
        """The upward pass: the kind of numbers used, the memory with all results, and the log of the product."""
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
        """A target's distribution over all states of its variables, from the environment of its factor of ones."""
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


def affordable(
    network: Network,
    weights: Weights,
    targets: Sequence[tuple[int, ...]],
    limits: Limits,
    targets_last: bool = False,
) -> Exact:
    """The planned query; a `TooCostly` error if it exceeds the limits."""
    question = Exact.of(network, weights, targets, limits, targets_last)
    if question.refusal is not None:
        raise TooCostly(question.refusal, ", give more evidence, or use another method where there is a choice.")
    return question


def _bytes(number: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.3g} {unit}"
