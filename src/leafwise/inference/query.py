"""Questions put by name: distributions given evidence, the best explanation, mutual information.

Here a method is chosen, and refused when it costs too much. Knows the exact and the approximate ways.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.inference.convergence import Mixing
from leafwise.inference.estimates import MOST_CELLS, Estimate
from leafwise.inference.evidence import Given, weights_of
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits, affordable
from leafwise.inference.gibbs import gibbs
from leafwise.inference.weighting import weighting
from leafwise.network import Network
from leafwise.table import Variable, index_of

METHODS = ("auto", "exact", "weighting", "gibbs")
_ENOUGH = 400.0  # independent draws: an answer of weighting that is worth fewer is left to Gibbs sampling

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Answer:
    """Distributions given evidence: one a target, or one of all targets with an axis each. How they were found.

    `method` is "exact", "weighting" or "gibbs"; the last two have standard errors, of the same shapes, intervals that
    hold with a probability of 0.95, their lower and upper limits first, and say how many independent draws they are
    worth. `warnings` say why they may be further off. `log_evidence` is the log probability of the evidence where the
    method tells. `mixing` tells how far the chains of Gibbs sampling agree.
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

    def __getitem__(self, name: str) -> dict[str, float]:
        """The probability of each state of a target that was asked for alone."""
        if len(self.distributions) != len(self.variables):
            raise TypeError(f"{name!r} was asked for together with others: read distributions[0], with an axis each.")
        place = index_of(name, [variable.name for variable in self.variables])
        return dict(zip(self.variables[place].labels, self.distributions[place].tolist(), strict=True))


def query(
    network: Network,
    targets: str | Sequence[str],
    *,
    given: Given | None = None,
    joint: bool = False,
    method: str = "auto",
    limits: Limits = DEFAULT_LIMITS,
    n_samples: int = 100_000,
    seed: int = 1,
) -> Answer:
    """The distribution of each target given evidence, or with `joint` of all targets together.

    `given` maps names to a state, several states, or weights of states. `method` is "exact", "weighting", "gibbs", or
    "auto": exact within the limits, else by weighted samples, or where these are worth too little by Gibbs sampling.
    An answer from samples has intervals, and warnings where it may be further off than they say.

    >>> from leafwise.examples import alarm
    >>> answer = query(alarm(), "LVFAILURE", given={"BP": "LOW", "CO": ["LOW", "NORMAL"]})
    >>> answer.method, round(answer["LVFAILURE"]["TRUE"], 4)
    ('exact', 0.1842)
    """
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not known: use {', '.join(map(repr, METHODS[:-1]))} or 'gibbs'.")
    names, known = [targets] if isinstance(targets, str) else list(targets), network.names
    wanted = [index_of(name, known) for name in names]
    if len(set(names)) < len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise ValueError(f"the target {twice!r} is named twice: name each target once.")
    if n_samples < 1 or seed < 0:
        raise ValueError(
            f"query got {n_samples} samples and the seed {seed}: give at least 1 sample, and a seed from 0 on."
        )
    if joint and (cells := math.prod(network.variables[index].n_states for index in wanted)) > MOST_CELLS:
        raise ValueError(
            f"the joint distribution of the {len(wanted)} targets has {cells:.2g} cells, and the most are "
            f"{MOST_CELLS:,}: ask for fewer targets, or for each alone."
        )
    weights = weights_of(network, given or {})
    variables = tuple(network.variables[index] for index in wanted)
    tables = [tuple(wanted)] if joint else [(index,) for index in wanted]
    if method == "exact":
        return _exact(variables, affordable(network, weights, tables, limits))
    if method == "auto" and (question := Exact.of(network, weights, tables, limits)).is_affordable:
        return _exact(variables, question)
    estimates: dict[str, Estimate] = {}
    if method != "gibbs":
        found = weighting(network, wanted, weights, joint=joint, n_samples=n_samples, seed=seed)
        if method == "weighting" or (found.effective_sample_size >= _ENOUGH and not found.warnings):
            return _answer(variables, "weighting", found)
        estimates["weighting"] = found
    estimates["gibbs"] = gibbs(network, wanted, weights, joint=joint, n_samples=n_samples, seed=seed)
    best = max(estimates, key=lambda name: (not estimates[name].warnings, estimates[name].effective_sample_size))
    return _answer(variables, best, estimates[best])


def _exact(variables: tuple[Variable, ...], question: Exact) -> Answer:
    log_evidence, distributions = question.distributions()
    return Answer(variables, tuple(distributions), "exact", log_evidence)


def _answer(variables: tuple[Variable, ...], method: str, estimate: Estimate) -> Answer:
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
    )


@dataclass(frozen=True)
class Explanation:
    """The most probable states of everything that is not known for sure."""

    states: Mapping[str, str]
    log_probability: float  # of these states and the evidence together
    log_posterior: float  # of these states given the evidence


def explain(network: Network, *, given: Given | None = None, limits: Limits = DEFAULT_LIMITS) -> Explanation:
    """The most probable explanation: the states of all variables together that are most probable given evidence.

    >>> from leafwise.examples import alarm
    >>> best = explain(alarm(), given={"BP": "LOW"})
    >>> best.states["CO"], round(best.log_posterior, 3)
    ('HIGH', -3.23)
    """
    weights = weights_of(network, given or {})
    everything = range(len(network.variables))
    question = affordable(network, weights, [(variable,) for variable in everything], limits)
    log_probability, states = question.best()
    labels = {network.names[v]: network.variables[v].labels[states[v]] for v in everything}
    return Explanation(labels, log_probability, log_probability - question.log_evidence())


def mutual_information(
    network: Network,
    one: str,
    others: str | Sequence[str] | None = None,
    *,
    given: Given | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> dict[str, float]:
    """The mutual information, in nats, between one variable and each of others, or of all others, given evidence.

    >>> from leafwise.examples import alarm
    >>> {name: round(value, 4) for name, value in mutual_information(alarm(), "CO", ["BP", "HISTORY"]).items()}
    {'BP': 0.1234, 'HISTORY': 0.0408}
    """
    chosen = index_of(one, network.names)
    others = [others] if isinstance(others, str) else others
    names = [name for name in network.names if name != one] if others is None else list(others)
    targets = [(index_of(name, network.names),) for name in names]
    weights = weights_of(network, given or {})
    _, (shares, *margins) = affordable(network, weights, [(chosen,), *targets], limits).distributions()
    information = np.zeros(len(names))
    for state in np.flatnonzero(shares):
        known = {**weights, chosen: np.eye(len(shares))[state]}
        _, conditionals = affordable(network, known, targets, limits).distributions()
        for place, (conditional, margin) in enumerate(zip(conditionals, margins, strict=True)):
            held = conditional > 0
            information[place] += shares[state] * (conditional[held] @ np.log(conditional[held] / margin[held]))
    return dict(zip(names, np.maximum(information, 0.0).tolist(), strict=True))
