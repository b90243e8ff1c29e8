"""Queries by name: distributions given evidence.

Here a method is chosen, or refused if it is too costly.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.frames import Columns, Framed, html_table
from leafwise.data.table import Variable, index_of
from leafwise.errors import Advice, check_type
from leafwise.inference.convergence import Mixing
from leafwise.inference.estimates import MOST_CELLS, Estimate, NoCaseError
from leafwise.inference.evidence import Given, Weights, weights_of
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits, affordable
from leafwise.inference.gibbs import gibbs
from leafwise.inference.importance import importance
from leafwise.inference.loopy import propagate
from leafwise.inference.weighting import weighting
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network

METHODS = ("auto", "exact", "weighting", "importance", "gibbs", "loopy")
_SHOWN = 20  # lines of an answer that are displayed
_ENOUGH = 400.0  # independent draws: with a smaller effective sample size, the next sampler is tried

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Framed):
    """Distributions given evidence, one per target or one joint table, and how they were computed.

    `method` is "exact", "weighting", "importance", "gibbs" or "loopy". Answers from samples have standard errors of the
    same shapes, 0.95 intervals (lower limits first, then upper), and an effective sample size; `warnings` are reasons
    why errors may be larger. `log_evidence` is the log probability of the evidence, if the method provides it. `mixing`
    has the convergence diagnostics of Gibbs chains. `note` says why the answer is not exact, or that its error is
    unknown.
    """

    variables: tuple[Variable, ...]
    distributions: tuple[Floats, ...]
    method: str
    log_evidence: float | None
    standard_errors: tuple[Floats, ...] | None = None
    effective_sample_size: float | None = None
    intervals: tuple[Floats, ...] | None = None
    warnings: tuple[str, ...] = ()
    log_evidence_error: float | None = None
    mixing: Mixing | None = None
    note: str | None = None

    def __getitem__(self, name: str) -> dict[str, float]:
        """The probability of each state of a single target."""
        if len(self.distributions) != len(self.variables):
            raise TypeError(f"{name!r} was asked for together with others: read distributions[0], with an axis each.")
        place = index_of(name, [variable.name for variable in self.variables])
        return dict(zip(self.variables[place].labels, self.distributions[place].tolist(), strict=True))

    def frame_columns(self) -> Columns:
        """One row for each state of each target, or for each joint state, with standard errors if sampled."""
        labels = [variable.labels for variable in self.variables]
        errors = () if self.standard_errors is None else (_flat(self.standard_errors),)
        columns: dict[str, Any]
        if len(self.distributions) == len(self.variables):
            names = [[variable.name] * variable.n_states for variable in self.variables]
            columns = {"variable": list(chain(*names)), "state": list(chain(*labels))}
        else:
            states = list(zip(*product(*labels), strict=True))
            columns = {variable.name: list(column) for variable, column in zip(self.variables, states, strict=True)}
        for name, values in zip(("probability", "standard_error"), (_flat(self.distributions), *errors), strict=False):
            while name in columns:  # a target has it
                name += "'"
            columns[name] = values
        return columns

    def _lines(self) -> list[tuple[str, ...]]:
        columns: Any = self.frame_columns().values()
        cells = ([f"{value:.4f}" for value in c] if isinstance(c, np.ndarray) else c for c in columns)
        return list(zip(*cells, strict=True))

    def __repr__(self) -> str:
        rows = self._lines()
        widths = [max(map(len, column)) for column in zip(*rows[:_SHOWN], strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows[:_SHOWN]]
        return "\n".join([f"Answer ({self.method})", *lines, *["..."] * (len(rows) > _SHOWN)])

    def _repr_html_(self) -> str:
        return html_table(f"Answer ({self.method})", list(self.frame_columns()), self._lines()[:_SHOWN])


def _flat(arrays: Sequence[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)])


def query(
    network: Network | Mixture,
    targets: str | Sequence[str],
    *,
    given: Given | None = None,
    joint: bool = False,
    method: str = "auto",
    limits: Limits = DEFAULT_LIMITS,
    n_samples: int = 100_000,
    seed: int = 1,
    seconds: float | None = None,
    error: float | None = None,
) -> Answer:
    """The distribution of each target given evidence, or with `joint` of all targets together.

    `targets`: the name of a variable, or several.
    `given`: evidence: names to a state, several states, or weights of states.
    `joint`: one distribution over all targets.
    `method`: "exact", "weighting", "importance", "gibbs", "loopy", or "auto": exact within the limits, else likelihood
    weighting, then adaptive importance sampling, then Gibbs sampling, until the effective sample size suffices.
    `limits`: the most an exact answer may take.
    `n_samples`: the number of samples to draw if the answer is not exact.
    `seed`: the same seed draws the same samples.
    `seconds`: exact if that takes no longer, else from as many adaptive samples as the time allows.
    `error`: adaptive samples, if not exact, until no standard error is larger.

    Sampled answers have intervals, and warnings where errors may be larger than these indicate.

    >>> from leafwise.examples import alarm
    >>> answer = query(alarm(), "LVFAILURE", given={"BP": "LOW", "CO": ["LOW", "NORMAL"]})
    >>> answer.method, round(answer["LVFAILURE"]["TRUE"], 4)
    ('exact', 0.1842)
    """
    if isinstance(network, Mixture):
        return network.query(
            targets,
            given=given,
            joint=joint,
            method=method,
            limits=limits,
            n_samples=n_samples,
            seed=seed,
            seconds=seconds,
            error=error,
        )
    check_network(network, "query")
    check_type(
        targets, (str, Sequence), "what is asked for", "the name of a variable, or several: query(network, 'rain')."
    )
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not known: use {', '.join(map(repr, METHODS[:-1]))} or 'loopy'.")
    wanted = wanted_of(network, [targets] if isinstance(targets, str) else list(targets), joint)
    if n_samples < 1 or seed < 0:
        raise ValueError(
            f"query got {n_samples} samples and the seed {seed}: give at least 1 sample, and a seed from 0 on."
        )
    weights = weights_of(network, given)
    variables = tuple(network.variables[index] for index in wanted)
    tables = [tuple(wanted)] if joint else [(index,) for index in wanted]
    anytime = _check_anytime(method, seconds, error)
    if method == "loopy":
        return _loopy(network, variables, wanted, weights, joint)
    if seconds is not None:
        limits = replace(limits, operations=min(limits.operations, Limits.within(seconds).operations))
    if method == "exact":
        return _exact(variables, affordable(network, weights, tables, limits))
    why = None
    if method == "auto" and (why := (question := Exact.of(network, weights, tables, limits)).refusal) is None:
        return _exact(variables, question)
    if method == "importance" or anytime:
        found = importance(
            network, wanted, weights, joint=joint, n_samples=n_samples, seed=seed, seconds=seconds, error=error
        )
        return _answer(variables, "importance", found, _with_shortfall(why, found, error))
    found, name = _best_estimate(
        method, lambda draw: draw(network, wanted, weights, joint=joint, n_samples=n_samples, seed=seed)
    )
    return _answer(variables, name, found, why)


def _with_shortfall(why: Advice | None, found: Estimate, error: float | None) -> Advice | None:
    """Why the answer is not exact, and by how much its errors exceed what was requested, if they do."""
    worst = max((float(table.max()) for table in found.standard_errors), default=0.0)
    if error is None or worst <= error:
        return why
    short = f"the largest standard error is {worst:.2g}, above the {error:g} that was asked for"
    return Advice(short) if why is None else Advice(why, "; ", short)


def _best_estimate(method: str, ask: Callable[[Any], Estimate]) -> tuple[Estimate, str]:
    """The estimate of the named sampler; or of the first with a sufficient size and no warnings, else of the best."""
    samplers = {"weighting": weighting, "importance": importance, "gibbs": gibbs}
    estimates: dict[str, Estimate] = {}
    for name in samplers if method == "auto" else [method]:
        try:
            found = ask(samplers[name])
        except NoCaseError:
            if method == name or (name == "gibbs" and not estimates):
                raise
            continue
        if method == name or (found.effective_sample_size >= _ENOUGH and not found.warnings):
            return found, name
        estimates[name] = found
    best = max(estimates, key=lambda name: (not estimates[name].warnings, estimates[name].effective_sample_size))
    return estimates[best], best


def wanted_of(network: Network, targets: Sequence[str], joint: bool) -> list[int]:
    """The numbers of the targets; a ValueError if one is named twice, or if they are too many for one table."""
    known = network.names
    wanted = [index_of(name, known) for name in targets]
    if len(set(targets)) < len(targets):
        twice = next(name for name, times in Counter(targets).items() if times > 1)
        raise ValueError(f"the target {twice!r} is named twice: name each target once.")
    if joint and (cells := math.prod(network.variables[index].n_states for index in wanted)) > MOST_CELLS:
        raise ValueError(
            f"the joint distribution of the {len(wanted)} targets has {cells:.2g} cells, and the most are "
            f"{MOST_CELLS:,}: ask for fewer targets, or for each alone."
        )
    return wanted


def _exact(variables: tuple[Variable, ...], question: Exact) -> Answer:
    log_evidence, distributions = question.distributions()
    return Answer(variables, tuple(distributions), "exact", log_evidence)


def _check_anytime(method: str, seconds: float | None, error: float | None) -> bool:
    """Whether time or errors decide when to stop; a ValueError if they cannot."""
    for name, value in (("seconds", seconds), ("error", error)):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} is {value}: give a finite number above 0.")
    if (seconds is None and error is None) or method in ("auto", "importance"):
        return seconds is not None or error is not None
    raise ValueError(f"method {method!r} does not stop by seconds or error: leave these out, or use method 'auto'.")


def _loopy(
    network: Network, variables: tuple[Variable, ...], wanted: Sequence[int], weights: Weights, joint: bool
) -> Answer:
    if joint and len(wanted) > 1:
        raise ValueError("loopy belief propagation has no joint distributions: ask for each target alone.")
    found = propagate(network, wanted, weights)
    return Answer(variables, found.distributions, "loopy", None, note=found.note)


def _answer(variables: tuple[Variable, ...], method: str, estimate: Estimate, why: str | None) -> Answer:
    return Answer(
        variables,
        estimate.probabilities,
        method,
        estimate.log_evidence,
        estimate.standard_errors,
        estimate.effective_sample_size,
        estimate.intervals,
        estimate.warnings,
        estimate.log_evidence_error,
        estimate.mixing,
        why,
    )
