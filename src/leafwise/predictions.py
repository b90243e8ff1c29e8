"""Predictions: the distribution of one variable in every case, given all that is known of the others.

Knows networks, how new data are read, and inference. All rows go through `log_posteriors`: the one place to change
where many questions of one form can be answered in a better way.
"""

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.encoding import Reading, read_new
from leafwise.frames import Categories, Columns, Framed, html_table
from leafwise.inference.exact import DEFAULT_LIMITS, Limits
from leafwise.inference.holes import Holes
from leafwise.inference.likelihood import log_probabilities
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network
from leafwise.table import Table, Variable, code_type, index_of

Floats = NDArray[np.float64]
_SHOWN = 5


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(Framed):
    """For every case the probabilities of a variable's states; a case that the network holds impossible has NaN."""

    variable: Variable
    probabilities: Floats  # (cases, states)

    @property
    def codes(self) -> NDArray[np.int64]:
        """The most probable state of each case, the first of equals."""
        best: NDArray[np.int64] = np.nan_to_num(self.probabilities).argmax(axis=1)
        return best

    @property
    def labels(self) -> list[str]:
        """Its label."""
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

    What the cases say of the target itself does not count, and they need not have it. Missing cells are summed over.
    `unseen`: what a label is that the network does not know: "error", or "missing".
    `reading`: other arguments of `read`, such as `na`; with `missing="error"` missing cells are refused.

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
    """The same for a mixture of networks."""
    place = index_of(target, mixture.names)
    given: Reading = {"missing": "unknown", **reading}
    table = read_new(data, mixture.variables, optional=(target,), unseen=unseen, **given)
    with np.errstate(invalid="ignore"):
        return Predictions(mixture.variables[place], np.exp(mixture_log_posteriors(mixture, table, place, limits)))


def mixture_log_posteriors(
    mixture: Mixture, table: Table, target: int, limits: Limits = DEFAULT_LIMITS, *, by_rest: bool = True
) -> Floats:
    """log p(target | everything else) of each case: each member weighs what it says of everything else.

    Where the target alone was learned, or without `by_rest`, members have the weights of the mixture.
    """
    whole = by_rest and all(node is not None for node in mixture.members[0].nodes)
    total = None
    for member, weight in zip(mixture.members, mixture.weights, strict=True):
        if weight > 0:
            own = log_posteriors(member, table, target, limits) + np.log(weight)
            if whole:
                own = np.nan_to_num(own, nan=-np.inf) + _log_rest(member, table, target, limits)[:, None]
            total = own if total is None else np.logaddexp(total, own)
    assert total is not None  # weights sum to one
    with np.errstate(invalid="ignore"):
        found: Floats = total - np.logaddexp.reduce(total, axis=1, keepdims=True)
    return found


def _log_rest(network: Network, table: Table, target: int, limits: Limits) -> Floats:
    """The log probability of each case without its target."""
    own, known = network.variables[target], network.variables
    if all(v == target or there == known[v] for v, there in enumerate(table.variables)):
        codes: NDArray[Any] = table.codes.astype(code_type(known))
        total = np.full(table.n_cases, -np.inf)
        for state in range(own.n_states):
            codes[target] = state
            total = np.logaddexp(total, log_probabilities(network, Table(network.variables, codes)))
        return total
    variables = (*table.variables[:target], own.with_missing, *table.variables[target + 1 :])
    codes = table.codes.astype(code_type(variables))
    codes[target] = own.n_states
    return log_probabilities(network, Table(variables, codes), limits=limits)


def log_posteriors(network: Network, table: Table, target: int, limits: Limits = DEFAULT_LIMITS) -> Floats:
    """log p(target | everything else) of each case, whatever state the target is in; NaN where all are impossible.

    Only the target's Markov blanket counts where it is known; what is missing there is summed over, exactly.
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
        hole = max(variable.n_states for variable in network.variables)
        codes = np.where(missing[:, hard], hole, table.codes[:, hard]).astype(np.uint16)
        codes[target] = hole
        with np.errstate(divide="ignore"):
            joint[hard] = np.log(Holes(network, limits).marginals(codes).of(target))
    with np.errstate(invalid="ignore"):
        return joint - np.logaddexp.reduce(joint, axis=1, keepdims=True)


def _missing(network: Network, table: Table, target: int) -> NDArray[np.bool_]:
    """Which cells, but for the target's, are in a missing state that the network's variables do not have."""
    pairs = zip(table.variables, network.variables, strict=True)
    last = [there.n_states - 1 if there.n_states > known.n_states else -1 for there, known in pairs]
    last[target] = -1
    found: NDArray[np.bool_] = table.codes == np.array(last)[:, None]
    return found
