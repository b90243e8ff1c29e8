"""The most probable explanation (MPE) of all variables, and MAP of some: exact, or by search among samples."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from leafwise.data.frames import Columns, Framed, html_table
from leafwise.data.table import shortened
from leafwise.errors import Advice
from leafwise.inference.evidence import Given, Weights, weights_of
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits, TooCostly, affordable
from leafwise.inference.importance import best_case, proposed_cases
from leafwise.inference.query import wanted_of
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network

METHODS = ("auto", "exact", "search")
_CASES = 100_000


@dataclass(frozen=True, repr=False)
class Explanation(Framed):
    """The most probable states of the targets, or of all variables.

    `method` is "exact", or "search" if that is too costly: then `note` says why, and the log posterior is an estimate.
    """

    states: Mapping[str, str]
    log_probability: float  # of these states and the evidence
    log_posterior: float  # of these states given the evidence
    method: str = "exact"
    note: str | None = None

    def frame_columns(self) -> Columns:
        """One row for each variable."""
        return {"variable": list(self.states), "state": list(self.states.values())}

    def __repr__(self) -> str:
        states = shortened([f"{name}={state}" for name, state in self.states.items()])
        return f"Explanation(log posterior {self.log_posterior:.4f}: {states})"

    def _repr_html_(self) -> str:
        return html_table(f"log posterior {self.log_posterior:.4f}", ["variable", "state"], list(self.states.items()))


def explain(
    network: Network | Mixture,
    targets: str | Sequence[str] | None = None,
    *,
    given: Given | None = None,
    method: str = "auto",
    limits: Limits = DEFAULT_LIMITS,
    seed: int = 1,
) -> Explanation:
    """The most probable explanation: the jointly most probable states of all variables given evidence.

    With `targets`, their maximum a posteriori (MAP) states: all other variables are summed out. `method` is "exact",
    "search" among samples, or "auto": exact within the limits, else by search.

    >>> from leafwise.examples import alarm
    >>> best = explain(alarm(), given={"BP": "LOW"})
    >>> best.states["CO"], round(best.log_posterior, 3)
    ('HIGH', -3.23)
    >>> best = explain(alarm(), ["CO", "TPR"], given={"BP": "LOW"})
    >>> dict(best.states), round(best.log_posterior, 3)
    ({'CO': 'HIGH', 'TPR': 'LOW'}, -0.707)
    """
    if isinstance(network, Mixture):
        return network.explain(targets, given=given, method=method, limits=limits, seed=seed)
    check_network(network, "explain")
    if method not in METHODS:
        raise ValueError(f"method {method!r} is not known: use 'auto', 'exact' or 'search'.")
    weights = weights_of(network, given)
    wanted = list(range(len(network.variables)))
    if targets is not None:
        wanted = wanted_of(network, [targets] if isinstance(targets, str) else list(targets), joint=False)
        if not wanted:
            raise ValueError("explain got no targets: name one or more, or leave targets out to explain all variables.")
    why = None
    if method != "search":
        try:
            question = affordable(network, weights, [(v,) for v in wanted], limits, targets_last=targets is not None)
            return _exact(network, wanted, question, whole=targets is None)
        except TooCostly as refusal:
            if method == "exact":
                raise
            why = refusal.advice
    found = _everything(network, weights, seed) if targets is None else _some(network, wanted, weights, seed)
    note = "the best found among samples, not known to be the best"
    return Explanation(*found, "search", note if why is None else Advice(note, ": ", why))


def _exact(network: Network, wanted: Sequence[int], question: Exact, whole: bool) -> Explanation:
    log_probability, states = question.best() if whole else question.best_targets()
    labels = _labels(network, wanted, states.tolist())
    return Explanation(labels, log_probability, log_probability - question.log_evidence())


def _labels(network: Network, wanted: Sequence[int], states: Sequence[int]) -> dict[str, str]:
    return {network.names[v]: network.variables[v].labels[state] for v, state in zip(wanted, states, strict=True)}


def _log_mean(log_weights: np.ndarray) -> float:
    largest = float(log_weights.max())
    return largest + math.log(float(np.exp(log_weights - largest).mean()))


def _everything(network: Network, weights: Weights, seed: int) -> tuple[dict[str, str], float, float]:
    states, log_probability = best_case(network, weights, seed)
    log_evidence = _log_mean(proposed_cases(network, weights, _CASES, seed)[1])
    labels = _labels(network, range(len(states)), states.tolist())
    return labels, log_probability, log_probability - log_evidence


def _some(network: Network, wanted: Sequence[int], weights: Weights, seed: int) -> tuple[dict[str, str], float, float]:
    """The states of the targets with the largest total weight among sampled cases."""
    table, log_weights = proposed_cases(network, weights, _CASES, seed)
    cases, which = np.unique(table.codes[list(wanted)], axis=1, return_inverse=True)
    shares = np.bincount(which.ravel(), np.exp(log_weights - log_weights.max()))
    best = int(shares.argmax())
    log_posterior = math.log(shares[best] / shares.sum())
    labels = _labels(network, wanted, cases[:, best].tolist())
    return labels, log_posterior + _log_mean(log_weights), log_posterior
