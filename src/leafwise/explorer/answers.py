"""The queries of the page: all marginals given evidence, and the most probable explanation, as plain JSON values.

Exact if that is within the limits, else from samples, with standard errors.
"""

from typing import Any

from leafwise.inference.estimates import NoCaseError
from leafwise.inference.exact import Limits, TooCostly
from leafwise.inference.explanation import explain
from leafwise.inference.query import Answer, query
from leafwise.network import Network

AT_ONCE = Limits.within(seconds=4)  # an exact answer that a user will wait for
FEW_SAMPLES, FEW_SWEEPS = 20_000, 4_000
_WORTH = 50.0  # independent draws: with a smaller effective sample size, answers are not shown

Given = dict[str, list[str]]


def read_given(network: Network, asked: Any) -> Given:
    """The page's evidence, {variable: [state, ...]} by number, as names and labels; a ValueError if it is invalid.

    >>> from leafwise.examples import alarm
    >>> read_given(alarm(), {"given": {"0": [1]}})
    {'HISTORY': ['FALSE']}
    """
    given = asked.get("given") if isinstance(asked, dict) else None
    if not isinstance(given, dict):
        raise ValueError('the request is not {"given": {variable: [state, ...]}}: send that.')
    out: Given = {}
    for key, states in given.items():
        if not key.isdecimal() or int(key) >= len(network.variables):
            raise ValueError(f"the evidence names the variable {key!r}: use numbers below {len(network.variables)}.")
        labels = network.variables[int(key)].labels
        known = isinstance(states, list) and all(type(state) is int and 0 <= state < len(labels) for state in states)
        if not known or not states:
            raise ValueError(
                f"the evidence gives variable {key} the states {states!r}: use numbers below {len(labels)}."
            )
        out[network.names[int(key)]] = [labels[state] for state in states]
    return out


def marginals(network: Network, given: Given, limits: Limits = AT_ONCE, n_samples: int = FEW_SAMPLES) -> dict[str, Any]:
    """The distribution of every variable given evidence, the method, and standard errors if sampled.

    >>> from leafwise.examples import alarm
    >>> found = marginals(alarm(), {"LVFAILURE": ["TRUE"]})
    >>> found["method"], found["values"][0], found["errors"]
    ('exact', [0.9, 0.1], None)
    """
    answer = _answer(network, given, limits, n_samples)
    errors = None if answer.standard_errors is None else [_digits(row, 6) for row in answer.standard_errors]
    intervals = None if answer.intervals is None else [[_digits(end, 6) for end in ends] for ends in answer.intervals]
    return {
        "method": answer.method,
        "log_evidence": answer.log_evidence,
        "worth": None if answer.effective_sample_size is None else round(answer.effective_sample_size),
        "values": [_digits(row, 8) for row in answer.distributions],
        "errors": errors,
        "intervals": intervals,
        "warnings": list(answer.warnings),
    }


def _answer(network: Network, given: Given, limits: Limits, n_samples: int) -> Answer:
    names = list(network.names)
    try:
        return query(network, names, given=given, method="exact", limits=limits)
    except TooCostly:
        found = list[Answer]()
    for method, n in (("weighting", n_samples), ("importance", n_samples), ("gibbs", FEW_SWEEPS)):
        try:
            found.append(query(network, names, given=given, method=method, n_samples=n))
        except NoCaseError:
            if method == "gibbs" and not found:
                raise
            continue
        if (found[-1].effective_sample_size or 0.0) >= _WORTH and not found[-1].warnings:
            return found[-1]
    return max(found, key=lambda answer: (not answer.warnings, answer.effective_sample_size or 0.0))


def _digits(row: Any, digits: int) -> list[float]:
    return [round(value, digits) for value in row.tolist()]


def explanation(network: Network, given: Given, limits: Limits = AT_ONCE) -> dict[str, Any]:
    """The most probable states of all variables, by number, and their probability given the evidence."""
    best = explain(network, given=given, limits=limits)
    states = [variable.labels.index(best.states[variable.name]) for variable in network.variables]
    note = None if best.note is None else best.note.partition(": raise ")[0] + ": give more evidence."
    return {"states": states, "log_posterior": best.log_posterior, "note": note}
