"""Log probabilities of cases under a network, all cases at once, with missing cells summed out."""

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.data.encoding import NewReading, read_new
from leafwise.data.table import Table
from leafwise.inference.exact import DEFAULT_LIMITS, Limits
from leafwise.inference.holes import Holes
from leafwise.kernels.questions import routes
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network

Floats = NDArray[np.float64]


def log_probabilities(
    network: Network | Mixture, data: Any, *, limits: Limits = DEFAULT_LIMITS, **reading: Unpack[NewReading]
) -> Floats:
    """The natural log probability of each case, over the variables that have a node; -inf for impossible cases.

    `data`: a Table, or what `read` accepts. Missing cells are summed out exactly, within the limits; so are a state
    "(missing)" that a variable has only in a Table, and hidden variables. `reading`: arguments of `read`; with
    `missing="error"` missing cells are refused.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> log_probabilities(alarm(), sample(alarm(), 1000, seed=1)).shape
    (1000,)
    """
    if isinstance(network, Mixture):
        return network.log_probabilities(data, limits=limits, **reading)
    check_network(network, "log_probabilities")
    table = known_cases(network, data, **reading)
    pairs = zip(table.variables, network.variables, strict=True)
    gaps = [index for index, (there, known) in enumerate(pairs) if there != known]
    if not gaps:
        return _of_complete(network, table.codes)
    return Holes(network, limits).log_probabilities(table.codes)


def _of_complete(network: Network, codes: NDArray[np.uint8 | np.uint16]) -> Floats:
    modelled = [
        (index, graph, probabilities)
        for index, node in enumerate(network.nodes)
        if node is not None
        for graph, probabilities in (
            [(node.graph, node.probabilities)] if node.own is None else node.own.along_the_way()
        )
    ]
    if not modelled:
        return np.zeros(codes.shape[1])
    sizes = [probabilities.size for _, _, probabilities in modelled]
    with np.errstate(divide="ignore"):
        log_probability = np.log(np.concatenate([probabilities.ravel() for _, _, probabilities in modelled]))
    return routes.sum_log_probabilities(
        codes,
        *routes.flatten(graph for _, graph, _ in modelled),
        np.array([index for index, *_ in modelled], np.int32),
        np.array([probabilities.shape[1] for _, _, probabilities in modelled], np.int32),
        np.cumsum([0, *sizes[:-1]], dtype=np.int64),
        log_probability,
    )


def log_probabilities_by_turns(
    networks: Sequence[Network],
    weights: Floats,
    codes: NDArray[np.uint8 | np.uint16],
    distributions: Sequence[Sequence[Floats]] | None = None,
    seen: NDArray[np.bool_] | None = None,
) -> Floats:
    """Log probabilities of complete cases, each variable drawing its distribution from one of the networks.

    The network is drawn by the weights, independently for each variable of each case. `distributions`: for each network
    and node, those of the leaves, (leaves * states, kinds); by default the networks' own, one kind. `seen`: (networks,
    cases), the cases of which a network says nothing; NaN where all say nothing. The result is (kinds, cases).
    """
    places = [index for index, node in enumerate(networks[0].nodes) if node is not None]
    nodes = [node for index in places for network in networks if (node := network.nodes[index]) is not None]
    if distributions is None:
        rows = [node.probabilities.reshape(-1, 1) for node in nodes]
    else:
        rows = [own[place] for place in range(len(places)) for own in distributions]
    if not rows:
        return np.zeros((1, codes.shape[1]))
    with np.errstate(divide="ignore"):
        return routes.sum_log_means(
            codes,
            *routes.flatten(node.graph for node in nodes),
            np.array(places, np.int32),
            np.array([node.n_states for node in nodes[:: len(networks)]], np.int32),
            np.cumsum([0, *map(len, rows[:-1])], dtype=np.int64),
            np.concatenate(rows),
            weights,
            np.zeros((len(networks), codes.shape[1]), np.bool_) if seen is None else seen,
        )


def known_cases(network: Network, data: Any, **reading: Unpack[NewReading]) -> Table:
    """The cases of a Table with the network's variables, or of what `read` accepts; missing cells are unknown."""
    hidden = {variable.name for variable in network.variables if variable.hidden}
    if isinstance(data, Table) and hidden <= {*data.names} and not reading:
        check_variables(network, data, gaps=True)
        return data
    given: NewReading = {"missing": "unknown", **reading}
    return read_new(data, network.variables, **given)


def check_variables(network: Network, table: Table, *, gaps: bool = False) -> None:
    """Raise a ValueError unless the table has the network's variables in order; `gaps` allows a missing state."""
    if table.variables == network.variables:
        return
    if table.names != network.names:
        missing = [name for name in network.names if name not in table.names]
        what = f"lacks {missing[0]!r}" if missing else "has other variables, or another order of them,"
    else:
        pairs = zip(table.variables, network.variables, strict=True)
        other = [known.name for there, known in pairs if there != known and not (gaps and there == known.with_missing)]
        if not other:
            return
        what = f"has other states of {other[0]!r}"
    raise ValueError(
        f"the table {what} and cannot be used with this network, which needs its own variables and states: "
        f"read the data with variables=network.variables."
    )
