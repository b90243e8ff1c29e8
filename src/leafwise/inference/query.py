"""Questions put by name: distributions given evidence, the best explanation, mutual information.

Here a method is chosen, and refused when it costs too much. Knows the exact and the approximate ways.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.errors import check_type
from leafwise.frames import Columns, Framed, html_table
from leafwise.inference.estimates import MOST_CELLS, Estimate
from leafwise.inference.evidence import Given, weights_of
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits, affordable
from leafwise.inference.gibbs import gibbs
from leafwise.inference.weighting import weighting
from leafwise.network import Network, check_network
from leafwise.table import Variable, index_of, shortened

METHODS = ("auto", "exact", "weighting", "gibbs")
_SHOWN = 20  # lines of an answer
_ENOUGH = 400.0  # independent draws: an answer of weighting that is worth fewer is left to Gibbs sampling

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Framed):
    """Distributions given evidence: one a target, or one of all targets with an axis each. How they were found.

    `method` is "exact", "weighting" or "gibbs"; the last two have standard errors, of the same shapes, and say how many
    independent draws they are worth. `log_evidence` is the log probability of the evidence where the method tells.
    """

    variables: tuple[Variable, ...]
    distributions: tuple[Floats, ...]
    method: str
    log_evidence: float | None
    standard_errors: tuple[Floats, ...] | None = None
    effective_sample_size: float | None = None

    def __getitem__(self, name: str) -> dict[str, float]:
        """The probability of each state of a target that was asked for alone."""
        if len(self.distributions) != len(self.variables):
            raise TypeError(f"{name!r} was asked for together with others: read distributions[0], with an axis each.")
        place = index_of(name, [variable.name for variable in self.variables])
        return dict(zip(self.variables[place].labels, self.distributions[place].tolist(), strict=True))

    def frame_columns(self) -> Columns:
        """A row for each state of each target, or for each joint state; samples have their standard errors."""
        labels = [variable.labels for variable in self.variables]
        errors = () if self.standard_errors is None else (np.concatenate([e.ravel() for e in self.standard_errors]),)
        columns: dict[str, Any]
        if len(self.distributions) == len(self.variables):
            names = [[variable.name] * variable.n_states for variable in self.variables]
            columns = {"variable": list(chain(*names)), "state": list(chain(*labels))}
        else:
            states = list(zip(*product(*labels), strict=True))
            columns = {variable.name: list(column) for variable, column in zip(self.variables, states, strict=True)}
        columns["probability"] = np.concatenate([shares.ravel() for shares in self.distributions])
        return columns | dict(zip(("standard_error",), errors, strict=False))

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

    `targets`: the name of a variable, or several.
    `given`: evidence: names to a state, several states, or weights of states.
    `joint`: one distribution over all targets.
    `method`: "exact", "weighting", "gibbs", or "auto": exact within the limits, else by weighted samples, or where
    these are worth too little by Gibbs sampling.
    `limits`: the most an exact answer may take.
    `n_samples`: how many samples to draw, where it is not exact.
    `seed`: the same seed draws the same samples.

    >>> from leafwise.examples import alarm
    >>> answer = query(alarm(), "LVFAILURE", given={"BP": "LOW", "CO": ["LOW", "NORMAL"]})
    >>> answer.method, round(answer["LVFAILURE"]["TRUE"], 4)
    ('exact', 0.1842)
    """
    check_network(network, "query")
    check_type(
        targets, (str, Sequence), "what is asked for", "the name of a variable, or several: query(network, 'rain')."
    )
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not known: use {', '.join(map(repr, METHODS[:-1]))} or 'gibbs'.")
    names, known = [targets] if isinstance(targets, str) else list(targets), network.names
    wanted = [index_of(name, known) for name in names]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise ValueError(f"the target {name!r} is named twice: name each target once.")
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
    if method != "gibbs":
        estimate = weighting(network, wanted, weights, joint=joint, n_samples=n_samples, seed=seed)
        if method == "weighting" or estimate.effective_sample_size >= _ENOUGH:
            return _answer(variables, "weighting", estimate)
    return _answer(variables, "gibbs", gibbs(network, wanted, weights, joint=joint, n_samples=n_samples, seed=seed))


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
    )


@dataclass(frozen=True, repr=False)
class Explanation(Framed):
    """The most probable states of everything that is not known for sure."""

    states: Mapping[str, str]
    log_probability: float  # of these states and the evidence together
    log_posterior: float  # of these states given the evidence

    def frame_columns(self) -> Columns:
        """A row for each variable."""
        return {"variable": list(self.states), "state": list(self.states.values())}

    def __repr__(self) -> str:
        states = shortened([f"{name}={state}" for name, state in self.states.items()])
        return f"Explanation(log posterior {self.log_posterior:.4f}: {states})"

    def _repr_html_(self) -> str:
        return html_table(f"log posterior {self.log_posterior:.4f}", ["variable", "state"], list(self.states.items()))


def explain(network: Network, *, given: Given | None = None, limits: Limits = DEFAULT_LIMITS) -> Explanation:
    """The most probable explanation: the states of all variables together that are most probable given evidence.

    >>> from leafwise.examples import alarm
    >>> best = explain(alarm(), given={"BP": "LOW"})
    >>> best.states["CO"], round(best.log_posterior, 3)
    ('HIGH', -3.23)
    """
    check_network(network, "explain")
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
    check_network(network, "mutual_information")
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
