"""The log probability of cases under a network, all cases at once, missing cells summed over.

Knows networks, tables, kernels, and exact inference.
"""

import math
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from leafwise.encoding import Reading, read_new
from leafwise.inference.exact import DEFAULT_LIMITS, Limits, affordable
from leafwise.kernels import routes
from leafwise.network import Network, check_network
from leafwise.table import Table

Floats = NDArray[np.float64]
_FEW = 4096  # completions of a case: written out, they take less time than planning how to sum over them
_AT_ONCE = 2**24  # cells written out at a time


def log_probabilities(
    network: Network, data: Any, *, limits: Limits = DEFAULT_LIMITS, **reading: Unpack[Reading]
) -> Floats:
    """The natural log of each case's probability, summed over the variables that have a node.

    `data`: a Table, or what `read` takes. A case that the network holds impossible gets -inf.
    `reading`: arguments of `read`. With `missing="unknown"` missing cells are summed over, exactly, within the limits;
    so is a state "(missing)" that a variable has only in a Table.

    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> log_probabilities(alarm(), sample(alarm(), 1000, seed=1)).shape
    (1000,)
    """
    check_network(network, "log_probabilities")
    if isinstance(data, Table):
        table = data
        check_variables(network, table, gaps=True)
    else:
        table = read_new(data, network.variables, **reading)
    pairs = zip(table.variables, network.variables, strict=True)
    gaps = [index for index, (there, known) in enumerate(pairs) if there != known]
    if not gaps:
        return _of_complete(network, table.codes)
    is_missing = np.stack([table.codes[index] == network.variables[index].n_states for index in gaps])
    out = np.empty(table.n_cases)
    patterns, which = np.unique(is_missing, axis=1, return_inverse=True)
    for pattern, missing in enumerate(patterns.T):
        cases = np.flatnonzero(which.ravel() == pattern)
        unknown = [index for index, flag in zip(gaps, missing, strict=True) if flag]
        out[cases] = _with_unknown(network, table.codes[:, cases], unknown, limits)
    return out


def _of_complete(network: Network, codes: NDArray[np.uint8 | np.uint16]) -> Floats:
    modelled = [(index, node) for index, node in enumerate(network.nodes) if node is not None]
    if not modelled:
        return np.zeros(codes.shape[1])
    sizes = [node.probabilities.size for _, node in modelled]
    with np.errstate(divide="ignore"):
        log_probability = np.log(np.concatenate([node.probabilities.ravel() for _, node in modelled]))
    return routes.sum_log_probabilities(
        codes,
        *routes.flatten(node.graph for _, node in modelled),
        np.array([index for index, _ in modelled], np.int32),
        np.array([node.n_states for _, node in modelled], np.int32),
        np.cumsum([0, *sizes[:-1]], dtype=np.int64),
        log_probability,
    )


def _with_unknown(
    network: Network, codes: NDArray[np.uint8 | np.uint16], unknown: Sequence[int], limits: Limits
) -> Floats:
    """The log probabilities of cases in which the same variables are unknown."""
    for index in unknown:
        if network.nodes[index] is None:
            raise ValueError(
                f"{network.names[index]!r} is missing in some case, and the network has no distribution of it to sum "
                f"over: leave such cases out with missing='drop', or learn all variables, without a target."
            )
    codes = codes.copy()
    codes[unknown] = 0
    unknown = [index for index in unknown if network.variables[index].n_states > 1]
    shape = [network.variables[index].n_states for index in unknown]
    n_completions = math.prod(shape)
    if n_completions > _FEW:
        return np.array([_by_contraction(network, case, unknown, limits) for case in codes.T])
    states = np.indices(shape).reshape(len(shape), n_completions).astype(codes.dtype)
    block = max(1, _AT_ONCE // (len(codes) * n_completions))
    found = []
    for begin in range(0, codes.shape[1], block):
        some = np.repeat(codes[:, begin : begin + block], n_completions, axis=1)
        some[unknown] = np.tile(states, some.shape[1] // n_completions)
        found.append(_log_sums(_of_complete(network, some).reshape(-1, n_completions)))
    return np.concatenate(found)


def _log_sums(logs: Floats) -> Floats:
    largest = logs.max(axis=1)
    with np.errstate(divide="ignore"):
        return np.where(
            largest > -np.inf,
            largest + np.log(np.exp(logs - np.maximum(largest, -1e300)[:, None]).sum(axis=1)),
            -np.inf,
        )


def _by_contraction(
    network: Network, case: NDArray[np.uint8 | np.uint16], unknown: Sequence[int], limits: Limits
) -> float:
    weights = {
        index: np.eye(variable.n_states)[case[index]]
        for index, variable in enumerate(network.variables)
        if index not in unknown
    }
    return affordable(network, weights, [], limits).log_evidence()


def check_variables(network: Network, table: Table, *, gaps: bool = False) -> None:
    """Raise a ValueError unless the table has the network's variables, in order; `gaps`: or with a missing state."""
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
