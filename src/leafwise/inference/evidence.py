"""Evidence: what is known about some variables in a query."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leafwise.data.new_data import in_bins, is_missing, known_state, positions
from leafwise.data.table import Variable, index_of
from leafwise.network import Network

Given = Mapping[str, Any]  # name to the label of a state, several labels, {label: weight}, or None: unknown
Weights = dict[int, NDArray[np.float64]]  # variable to a weight for each state, at least one of them positive


def weights_of(network: Network, given: Given | None) -> Weights:
    """Convert evidence to weights over states: 1 for each possible state, or weights as given.

    A number is converted to its bin if the variable has bins. None and NaN, as in a row with missing cells, mean that
    the variable is unknown, or in its missing state if it has one.

    >>> from leafwise.examples import alarm
    >>> weights_of(alarm(), {"HR": ["LOW", "HIGH"], "CO": {"LOW": 0.2, "NORMAL": 1}})
    {34: array([1., 0., 1.]), 35: array([0.2, 1. , 0. ])}
    >>> weights_of(alarm(), {"HR": "LOW", "CO": None, "BP": float("nan")})
    {34: array([1., 0., 0.])}
    """
    out: Weights = {}
    for name, what in mapping_of(given).items():
        index = index_of(name, network.names)
        variable = network.variables[index]
        if not _is_hole(variable, what):
            out[index] = _weights(variable, what)
        elif variable.missing:
            out[index] = np.eye(variable.n_states)[-1]
    return out


def mapping_of(given: object) -> Given:
    """The evidence, {} if there is none; a TypeError unless it is a mapping."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        shown = repr(given) if isinstance(given, str) else f"of type {type(given).__name__}"
        raise TypeError(
            f"what is given is {shown}, not a mapping: write it as {{'name': 'state'}}, "
            "and a row of a frame as dict(row)."
        )
    return given


def _is_hole(variable: Variable, what: Any) -> bool:
    """Whether a value stands for a missing cell, and no state has it as its label."""
    return not isinstance(what, str | Iterable) and is_missing(what) and str(what) not in variable.labels


def _weights(variable: Variable, what: Any) -> NDArray[np.float64]:
    weights = np.zeros(variable.n_states)
    given = list(what) if isinstance(what, Iterable) and not isinstance(what, str) else [what]
    texts = [str(label).lower() if isinstance(label, bool | np.bool_) else str(label) for label in given]
    known = {label: state for state, label in enumerate(variable.labels)}
    if not known.keys() >= set(texts):
        known = positions(variable)  # other spellings of numbers, which take longer to find
    states = [_state(variable, known, text) for text in texts]
    if isinstance(what, Mapping):
        if len(set(states)) < len(states):
            raise ValueError(f"the weights given of {variable.name!r} name a state twice: name every state once.")
        weights[states] = [_weight(variable, weight) for weight in what.values()]
    else:
        weights[states] = 1.0
    if not weights.any():
        raise ValueError(f"what is given of {variable.name!r} leaves no state: give at least one a weight above 0.")
    return weights


def _weight(variable: Variable, weight: Any) -> float:
    if not isinstance(weight, int | float | np.integer | np.floating) or not 0 <= weight < np.inf:
        raise ValueError(f"a state of {variable.name!r} got the weight {weight!r}: give a finite number from 0 on.")
    return float(weight)


def _state(variable: Variable, known: dict[str, int], text: str) -> int:
    state = known_state(text, variable, known)
    if state is None:
        some = ", ".join(map(repr, variable.labels[:8])) + ", ..." * (variable.n_states > 8)
        more = f", or give {in_bins(variable)}" if variable.cuts else ""
        raise ValueError(f"{variable.name!r} has no state {text!r}; its states are {some}: use one of them{more}.")
    return state
