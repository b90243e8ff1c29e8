"""Entropy, mutual information, the value of an observation, and feature importance, in nats.

Exact where possible, else estimated from samples.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import NewReading
from leafwise.data.table import index_of
from leafwise.errors import Advice
from leafwise.inference.compiled import CompiledQuery
from leafwise.inference.evidence import Given, Weights, weights_of
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits, affordable
from leafwise.inference.holes import Holes
from leafwise.inference.importance import proposed_cases
from leafwise.inference.likelihood import known_cases
from leafwise.inference.query import query
from leafwise.inference.sampling import Approximate, sample
from leafwise.network import Network, check_network

Floats = NDArray[np.float64]
_CASES = 100_000  # drawn if an exact answer is too costly
_DRAWN = 10_000  # cases drawn from the network if no data are given


def entropy(network: Network, targets: str | Sequence[str], *, given: Given | None = None) -> float:
    """The entropy of a target given evidence, or the joint entropy of several; 0 if they are certain.

    >>> from leafwise.examples import alarm
    >>> round(entropy(alarm(), "CO"), 4), round(entropy(alarm(), "CO", given={"HR": "LOW"}), 4)
    (0.8987, 0.2846)
    """
    table = query(network, targets, given=given, joint=True).distributions[0]
    held = table[table > 0]
    return max(0.0, float(-(held @ np.log(held))))


def mutual_information(
    network: Network,
    one: str,
    others: str | Sequence[str] | None = None,
    *,
    given: Given | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> dict[str, float]:
    """The mutual information between one variable and each of others, or all others, given evidence.

    Beyond the limits of exact inference it is estimated from samples, with an `Approximate` warning.

    >>> from leafwise.examples import alarm
    >>> {name: round(value, 4) for name, value in mutual_information(alarm(), "CO", ["BP", "HISTORY"]).items()}
    {'BP': 0.1234, 'HISTORY': 0.0408}
    """
    check_network(network, "mutual_information")
    _, names, tables = _pairs(network, one, others, given, limits)
    information = {}
    for name, joint in zip(names, tables, strict=True):
        held = joint > 0
        apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
        information[name] = max(0.0, float(joint[held] @ np.log(joint[held] / apart[held])))
    return information


@dataclass(frozen=True)
class InformationValue:
    """The value of observing a variable for a target."""

    information: float  # the mutual information in nats: the expected decrease of the target's entropy
    entropy_after: float  # the expected entropy of the target after the observation
    best_guess: float  # the expected probability of the target's most probable state
    gain: float | None  # the expected increase in utility of the best decision, if utilities are given


def value_of_information(
    network: Network,
    target: str,
    candidates: str | Sequence[str] | None = None,
    *,
    given: Given | None = None,
    utilities: Mapping[str, Mapping[str, float]] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> dict[str, InformationValue]:
    """The value of observing each candidate before judging the target, the most informative first.

    `utilities` gives each decision a value in each state of the target, {"treat": {"TRUE": 10, "FALSE": -1}, ...}; then
    `gain` is the expected increase in utility of the best decision once the candidate is observed.

    >>> from leafwise.examples import alarm
    >>> found = value_of_information(alarm(), "LVFAILURE", ["HISTORY", "CVP", "BP"])
    >>> {name: round(value.information, 4) for name, value in found.items()}
    {'HISTORY': 0.1421, 'CVP': 0.0974, 'BP': 0.0149}
    """
    check_network(network, "value_of_information")
    index, names, tables = _pairs(network, target, candidates, given, limits)
    worth = None if utilities is None else _worth(network, index, utilities)
    out = {}
    for name, joint in zip(names, tables, strict=True):
        margin, shown = joint.sum(axis=1), joint.sum(axis=0)
        held = joint > 0
        left = max(0.0, float(-(joint[held] @ np.log((joint / np.where(shown > 0, shown, 1.0))[held]))))
        before = float(-(margin[margin > 0] @ np.log(margin[margin > 0])))
        gain = None if worth is None else float((worth @ joint).max(axis=0).sum() - (worth @ margin).max())
        out[name] = InformationValue(max(0.0, before - left), left, float(joint.max(axis=0).sum()), gain)
    return dict(sorted(out.items(), key=lambda item: -item[1].information))


@dataclass(frozen=True)
class Effect:
    """The effect of a cause on a variable: the state that changes most, and its share in each state of the cause."""

    name: str
    information: float  # nats
    label: str
    shares: tuple[float, ...]


def strongest_effects(network: Network, cause: str, most: int = 5) -> list[Effect]:
    """The variables that change most with a cause, such as a hidden one, the most informative first.

    >>> from leafwise.examples import alarm
    >>> [(effect.name, effect.label) for effect in strongest_effects(alarm(), "HYPOVOLEMIA", 2)]
    [('LVEDVOLUME', 'HIGH'), ('PCWP', 'HIGH')]
    """
    check_network(network, "strongest_effects")
    shown = [v.name for v in network.variables if not v.hidden and v.name != cause]
    _, names, tables = _pairs(network, cause, shown, None, DEFAULT_LIMITS)
    found = []
    for name, joint in zip(names, tables, strict=True):
        of_cause = joint.sum(axis=1, keepdims=True)
        held = joint > 0
        apart = of_cause * joint.sum(axis=0, keepdims=True)
        information = max(0.0, float(joint[held] @ np.log(joint[held] / apart[held])))
        shares = joint / np.where(of_cause > 0, of_cause, 1.0)
        state = int((shares.max(axis=0) - shares.min(axis=0)).argmax())
        label = network.variables[index_of(name, network.names)].labels[state]
        found.append(Effect(name, information, label, tuple(shares[:, state].tolist())))
    return sorted(found, key=lambda effect: -effect.information)[:most]


def _worth(network: Network, target: int, utilities: Mapping[str, Mapping[str, float]]) -> Floats:
    """The utilities, decisions by states of the target."""
    variable = network.variables[target]
    rows = []
    for decision, values in utilities.items():
        if set(values) != set(variable.labels):
            raise ValueError(
                f"the utilities of {decision!r} are for the states {sorted(values)}, and {variable.name!r} has "
                f"{sorted(variable.labels)}: give one number for each state."
            )
        rows.append([float(values[label]) for label in variable.labels])
    if not rows:
        raise ValueError("there is no decision among the utilities: name at least one.")
    return np.array(rows)


def _pairs(
    network: Network, one: str, others: str | Sequence[str] | None, given: Given | None, limits: Limits
) -> tuple[int, list[str], list[Floats]]:
    """The joint distribution of one variable with each of the others, given evidence."""
    chosen = index_of(one, network.names)
    others = [others] if isinstance(others, str) else others
    names = [name for name in network.names if name != one] if others is None else list(others)
    targets = [index_of(name, network.names) for name in names]
    weights = weights_of(network, given)
    refusal = Exact.of(network, weights, [(chosen,), *((v,) for v in targets)], limits).refusal
    if refusal is not None:
        return chosen, names, _sampled_pairs(network, chosen, targets, weights, refusal)
    shares = affordable(network, weights, [(chosen,)], limits).distributions()[1][0]
    states = np.flatnonzero(shares)
    rest = {v: weight for v, weight in weights.items() if v != chosen}
    asked = [v for v in dict.fromkeys(targets) if v != chosen]
    question = CompiledQuery.of(network, rest, [(v,) for v in asked], [chosen], limits)
    rows = {v: np.zeros((len(states), network.variables[v].n_states)) for v in asked}
    log_evidence = np.full(len(states), np.nan)
    if question.is_affordable:
        log_evidence, found = question.answers(states[:, None])
        rows = dict(zip(asked, found, strict=True))
    for k in np.flatnonzero(np.isnan(log_evidence)).tolist():  # too costly together, or numbers too small
        known = {**rest, chosen: np.eye(len(shares))[states[k]]}
        found = affordable(network, known, [(v,) for v in asked], limits).distributions()[1]
        for v, row in zip(asked, found, strict=True):
            rows[v][k] = row
    tables = []
    for v in targets:
        joint = np.diag(shares) if v == chosen else np.zeros((len(shares), network.variables[v].n_states))
        if v != chosen:
            joint[states] = shares[states, None] * rows[v]
        tables.append(joint)
    return chosen, names, tables


def _sampled_pairs(
    network: Network, chosen: int, targets: Sequence[int], weights: Weights, refusal: str
) -> list[Floats]:
    table, log_weights = proposed_cases(network, weights, _CASES, seed=1)
    weight = np.exp(log_weights - log_weights.max())
    worth = weight.sum() ** 2 / (weight**2).sum()
    warnings.warn(
        Approximate(
            Advice(
                f"estimated from samples worth {worth:,.0f} draws, so values below about {1 / worth:.1g} nats mean "
                "nothing: ",
                refusal,
            )
        ),
        stacklevel=4,
    )
    out = []
    for v in targets:
        shape = network.variables[chosen].n_states, network.variables[v].n_states
        cells = table.codes[chosen].astype(np.int64) * shape[1] + table.codes[v]
        out.append(np.bincount(cells, weight, shape[0] * shape[1]).reshape(shape) / weight.sum())
    return out


@dataclass(frozen=True)
class Importance:
    """The importance of a feature for a target, in nats per case: alone, and beyond all other features."""

    alone: float  # the gain in predicting the target from this feature over no feature
    beyond: float  # the loss in predicting it from all features but this one
    standard_error: float  # of `beyond`


def feature_importance(
    network: Network,
    target: str,
    *,
    data: object = None,
    seed: int = 1,
    limits: Limits = DEFAULT_LIMITS,
    **reading: Unpack[NewReading],
) -> dict[str, Importance]:
    """The importance of each feature for a target, the largest first, on data or on cases drawn from the network.

    `beyond` is the mean of log p(target | all features) − log p(target | all but this one): 0 for features outside the
    target's Markov blanket. `alone` is the mean of log p(target | this feature) − log p(target). On data that the
    network was not learned from, the importance of a misleading feature is negative. `data`: a Table, or what `read`
    accepts; `reading`: arguments of `read`.

    >>> from leafwise.examples import alarm
    >>> found = feature_importance(alarm(), "LVFAILURE")
    >>> list(found)[:3], found["MINVOL"].beyond
    (['HISTORY', 'STROKEVOLUME', 'LVEDVOLUME'], 0.0)
    """
    check_network(network, "feature_importance")
    index = index_of(target, network.names)
    given = next((name for name, node in zip(network.names, network.nodes, strict=True) if node is None), None)
    if given is not None:
        raise ValueError(
            f"the network has no distribution of {given!r}, and importance needs one for each variable: learn all "
            f"variables, without a target."
        )
    cases = sample(network, _DRAWN, seed) if data is None else known_cases(network, data, **reading)
    n_states = np.array([variable.n_states for variable in network.variables])[:, None]
    usable = cases.codes[index] < n_states[index]
    codes = cases.codes[:, usable].astype(np.uint16)
    if codes.shape[1] == 0:
        raise ValueError(f"{target!r} is missing in all cases, and its importance needs some: give cases that have it.")
    hole = np.uint16(int(n_states.max()))
    codes = np.where(codes < n_states, codes, hole).astype(np.uint16)
    asked = Holes(network, limits)
    impossible = np.flatnonzero(usable)[np.isneginf(asked.log_probabilities(codes))]
    if len(impossible):
        raise ValueError(
            f"row {impossible[0] + 1} is impossible under this network, so importance is undefined: leave the row "
            f"out, or correct it."
        )

    def log_conditional(hidden: Sequence[int]) -> Floats:
        some = codes.copy()
        some[list(hidden)] = hole
        without = some.copy()
        without[index] = hole
        found: Floats = asked.log_probabilities(some) - asked.log_probabilities(without)
        return found

    everything = log_conditional([])
    features = [v for v in range(len(n_states)) if v != index]
    blanket = _tested_with(network, index)
    nothing = log_conditional(features)
    out = {}
    for v in features:
        alone = log_conditional([other for other in features if other != v])
        worse = everything - log_conditional([v]) if v in blanket or (codes == hole).any() else np.zeros(1)
        error = float(worse.std() / np.sqrt(len(worse)))
        out[network.names[v]] = Importance(float((alone - nothing).mean()), float(worse.mean()), error)
    return dict(sorted(out.items(), key=lambda item: (-item[1].beyond, -item[1].alone)))


def _tested_with(network: Network, index: int) -> set[int]:
    """The Markov blanket of a variable, by the graphs: its parents, its children and their parents."""
    families = [{v, *node.graph.tested} for v, node in enumerate(network.nodes) if node is not None]
    return set().union(*(family for family in families if index in family)) - {index}
