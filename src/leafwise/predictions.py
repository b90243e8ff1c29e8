"""Predictions: the distribution of one variable in every case, given the observed cells of the others.

Knows networks, the reading of new data, and inference.
"""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import Reading, read_new
from leafwise.data.frames import Categories, Columns, Framed, html_table
from leafwise.data.table import Table, Variable, code_type, index_of
from leafwise.inference.exact import DEFAULT_LIMITS, Limits
from leafwise.inference.holes import Holes
from leafwise.inference.likelihood import log_probabilities
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network

Floats = NDArray[np.float64]
_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Framed):
    """The probabilities of a variable's states in every case; NaN for cases that the network holds impossible."""

    variable: Variable
    probabilities: Floats  # (cases, states)

    @property
    def codes(self) -> NDArray[np.int64]:
        """The most probable state of each case, the first of equals."""
        best: NDArray[np.int64] = np.nan_to_num(self.probabilities).argmax(axis=1)
        return best

    @property
    def labels(self) -> list[str]:
        """The label of the most probable state of each case."""
        return [self.variable.labels[code] for code in self.codes.tolist()]

    def frame_columns(self) -> Columns:
        labels = Categories(self.codes, self.variable.labels, self.variable.ordered)
        shares = {
            f"p({label})": column for label, column in zip(self.variable.labels, self.probabilities.T, strict=True)
        }
        return {self.variable.name: labels, **shares}

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        return f"Predictions of {self.variable.name!r} for {len(self):,} cases: to_pandas() has them"

    def _repr_html_(self) -> str:
        rows = [
            [label, *(f"{share:.4f}" for share in shares)]
            for label, shares in zip(self.labels[:_SHOWN], self.probabilities.tolist(), strict=False)
        ]
        more = [["…"] * (self.variable.n_states + 1)] if len(self) > _SHOWN else []
        return html_table(repr(self), list(self.frame_columns()), [*rows, *more])


def predict(
    network: Network | Mixture,
    data: object,
    target: str,
    *,
    unseen: str = "error",
    limits: Limits = DEFAULT_LIMITS,
    **reading: Unpack[Reading],
) -> Predictions:
    """The distribution of a target in every case of a file, a frame, an array or a Table.

    The target's own cells are ignored, and its column may be absent. Missing cells are summed over.
    `unseen`: how labels that the network does not know are treated: "error", or "missing".
    `reading`: other arguments of `read`, such as `na`; with `missing="error"`, missing cells are an error.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> found = predict(alarm(), sample(alarm(), 3, seed=1), "SHUNT")
    >>> found.labels, found.probabilities.round(3).tolist()
    (['NORMAL', 'NORMAL', 'NORMAL'], [[0.95, 0.05], [0.95, 0.05], [0.95, 0.05]])
    """
    if isinstance(network, Mixture):
        return predict_by_mixture(network, data, target, unseen=unseen, limits=limits, **reading)
    check_network(network, "predict")
    place = index_of(target, network.names)
    given: Reading = {"missing": "unknown", **reading}
    table = read_new(data, network.variables, optional=(target,), unseen=unseen, **given)
    with np.errstate(invalid="ignore"):
        return Predictions(network.variables[place], np.exp(log_posteriors(network, table, place, limits)))


def predict_by_mixture(
    mixture: Mixture,
    data: object,
    target: str,
    *,
    unseen: str = "error",
    limits: Limits = DEFAULT_LIMITS,
    **reading: Unpack[Reading],
) -> Predictions:
    """`predict` for a mixture of networks."""
    place = index_of(target, mixture.names)
    given: Reading = {"missing": "unknown", **reading}
    table = read_new(data, mixture.variables, optional=(target,), unseen=unseen, **given)
    with np.errstate(invalid="ignore"):
        return Predictions(mixture.variables[place], np.exp(mixture_log_posteriors(mixture, table, place, limits)))


def mixture_log_posteriors(
    mixture: Mixture, table: Table, target: int, limits: Limits = DEFAULT_LIMITS, *, by_rest: bool = True
) -> Floats:
    """log p(target | everything else) of each case; groups are weighted by the probability of everything else.

    If only the target was learned, or without `by_rest`, groups have the weights of the mixture.
    """
    whole = by_rest and all(node is not None for node in mixture.members[0].nodes)
    if whole and _is_known(mixture, table, target):
        total = log_joint(mixture, table, target)
    else:
        total = np.full((table.n_cases, mixture.variables[target].n_states), -np.inf)
        for network, weight in mixture.components:
            if weight > 0:
                there = table if network.variables == mixture.variables else _with_causes(table, network)
                own = log_posteriors(network, there, target, limits) + np.log(weight)
                if whole:
                    own = np.nan_to_num(own, nan=-np.inf) + _log_rest(network, there, target, limits)[:, None]
                total = np.logaddexp(total, own)
    with np.errstate(invalid="ignore"):
        found: Floats = total - np.logaddexp.reduce(total, axis=1, keepdims=True)
    return found


def _log_rest(network: Network, table: Table, target: int, limits: Limits) -> Floats:
    """The log probability of each case without its target."""
    if _is_known(network, table, target):
        total: Floats = np.logaddexp.reduce(log_joint(network, table, target), axis=1)
        return total
    return Holes(network, limits).log_probabilities(_with_holes(network, table, target))


def _is_known(model: Network | Mixture, table: Table, target: int) -> bool:
    """Whether all variables except the target are observed in every case."""
    pairs = zip(table.variables, model.variables, strict=True)
    return all(v == target or there == known for v, (there, known) in enumerate(pairs))


def log_joint(model: Network | Mixture, table: Table, target: int) -> Floats:
    """The log probability of each case with every state of the target, (cases, states)."""
    codes: NDArray[Any] = table.codes.astype(code_type(model.variables))
    logs = []
    for state in range(model.variables[target].n_states):
        codes[target] = state
        logs.append(log_probabilities(model, Table(model.variables, codes)))
    return np.stack(logs, axis=1)


def _with_causes(table: Table, network: Network) -> Table:
    """The table with a network's additional hidden causes, missing in every case."""
    causes = network.variables[table.n_variables :]
    variables = (*table.variables, *(cause.with_missing for cause in causes))
    nothing = np.array([cause.n_states for cause in causes])[:, None].repeat(table.n_cases, axis=1)
    codes: NDArray[Any] = np.concatenate([table.codes, nothing]).astype(code_type(variables))
    return Table(variables, codes)


def log_posteriors(network: Network, table: Table, target: int, limits: Limits = DEFAULT_LIMITS) -> Floats:
    """log p(target | everything else) of each case, ignoring the target's cell; NaN if all states are impossible.

    Only the target's Markov blanket is used if it is observed; otherwise missing cells are summed over exactly.
    """
    nodes, own = network.nodes, network.nodes[target]
    if own is None:
        raise ValueError(f"the network has no distribution of {network.names[target]!r}: learn it as a target")
    near = {
        place: node
        for place, node in enumerate(nodes)
        if node is not None and (place == target or target in node.parents)
    }
    tested = {variable for node in near.values() for variable in node.graph.tested} | set(near)
    local = Network(network.variables, tuple(near.get(place) for place in range(len(nodes))))
    missing = _missing(network, table, target)
    hard = missing[sorted(tested - {target})].any(axis=0)
    joint = np.empty((table.n_cases, own.n_states))
    plain = np.where(missing[:, ~hard], 0, table.codes[:, ~hard]).astype(code_type(network.variables))
    for state in range(own.n_states):
        plain[target] = state
        joint[~hard, state] = log_probabilities(local, Table(network.variables, np.ascontiguousarray(plain)))
    if hard.any():
        codes = np.ascontiguousarray(_with_holes(network, table, target)[:, hard])
        with np.errstate(divide="ignore"):
            joint[hard] = np.log(Holes(network, limits).marginals(codes).of(target))
    with np.errstate(invalid="ignore"):
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def _with_holes(network: Network, table: Table, target: int) -> NDArray[np.uint16]:
    """The codes, with a number that is no state in missing cells and for the target."""
    hole = max(variable.n_states for variable in network.variables)
    codes = np.where(_missing(network, table, target), hole, table.codes).astype(np.uint16)
    codes[target] = hole
    return codes


def _missing(network: Network, table: Table, target: int) -> NDArray[np.bool_]:
    """A mask of cells, except the target's, in a missing state that the network's variables do not have."""
    pairs = zip(table.variables, network.variables, strict=True)
    last = [there.n_states - 1 if there.n_states > known.n_states else -1 for there, known in pairs]
    last[target] = -1
    found: NDArray[np.bool_] = table.codes == np.array(last)[:, None]
    return found
