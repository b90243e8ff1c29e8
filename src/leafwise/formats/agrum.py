"""Conversion to and from pyAgrum, which is optional and imported only here, on use."""

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from leafwise.data.table import Variable
from leafwise.formats.tables import MOST_CELLS, complete_table, fitted, table_node
from leafwise.network import Network

if TYPE_CHECKING:
    import pyagrum


def to_agrum(network: Network, most_cells: int = MOST_CELLS) -> "pyagrum.BayesNet":
    """Convert a network to a pyagrum.BayesNet; decision graphs become tables of at most `most_cells` cells."""
    gum = _pyagrum("to_agrum")
    tables = [complete_table(network, index, most_cells) for index in range(len(network.variables))]
    result = gum.BayesNet()
    try:
        for variable in network.variables:
            result.add(gum.LabelizedVariable(variable.name, variable.name, list(variable.labels)))
        for parent, child in network.arcs:
            result.addArc(parent, child)
    except gum.GumException as error:
        raise ValueError(f"pyAgrum does not take this network ({_one_line(error)}): rename what it names.") from None
    for index, table in enumerate(tables):
        # pyAgrum's arrays have the parents in reverse order, and the variable itself last.
        result.cpt(index)[:] = np.ascontiguousarray(table.transpose(*range(table.ndim - 2, -1, -1), table.ndim - 1))
    return result


def from_agrum(model: "pyagrum.BayesNet") -> Network:
    """Convert a pyagrum.BayesNet to a network of complete tables; variables keep their order."""
    ids = sorted(model.nodes())
    number = {node: k for k, node in enumerate(ids)}
    variables = tuple(Variable(model.variable(node).name(), tuple(model.variable(node).labels())) for node in ids)
    n_states = [variable.n_states for variable in variables]
    nodes = []
    for variable, node in zip(variables, ids, strict=True):
        cpt = model.cpt(node)
        parents = [number[model.idFromName(name)] for name in reversed(cpt.names[1:])]
        table = np.asarray(cpt.toarray(), np.float64)
        rows = fitted(table.reshape(-1, variable.n_states))
        if np.isnan(rows).any():
            raise ValueError(f"the distribution of {variable.name!r} has rows that do not sum to one: normalise them.")
        nodes.append(table_node(parents, rows.reshape(table.shape), n_states))
    return Network(variables, tuple(nodes))


def _pyagrum(what: str) -> Any:
    try:
        with warnings.catch_warnings():  # importing it warns, and a warning turned into an error would end the process
            warnings.simplefilter("ignore")
            import pyagrum
    except ModuleNotFoundError:
        raise ValueError(
            f"{what} needs the package pyagrum, which is not installed: pip install 'leafwise[pyagrum]'."
        ) from None
    return pyagrum


def _one_line(error: Exception) -> str:
    return " ".join(str(error).replace("[pyAgrum]", "").split())[:200]
