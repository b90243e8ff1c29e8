"""Conversion to and from pgmpy, which is optional and imported only here, on use."""

from typing import TYPE_CHECKING, Any

import numpy as np

from leafwise.data.table import Variable
from leafwise.formats.tables import MOST_CELLS, complete_table, fitted, table_node
from leafwise.network import Network

if TYPE_CHECKING:
    from pgmpy.models import DiscreteBayesianNetwork


def to_pgmpy(network: Network, most_cells: int = MOST_CELLS) -> "DiscreteBayesianNetwork":
    """Convert a network to a DiscreteBayesianNetwork; decision graphs become tables of at most `most_cells` cells."""
    models, cpds = _pgmpy()
    tables = [complete_table(network, index, most_cells) for index in range(len(network.variables))]
    labels = {variable.name: list(variable.labels) for variable in network.variables}
    result = models.DiscreteBayesianNetwork()
    result.add_nodes_from(network.names)
    result.add_edges_from((network.names[parent], network.names[child]) for parent, child in network.arcs)
    for name, node, table in zip(network.names, network.nodes, tables, strict=True):
        parents = [network.names[parent] for parent in (node.parents if node else ())]
        values = table.reshape(-1, table.shape[-1]).T
        known = {each: labels[each] for each in (name, *parents)}
        cpd = cpds.TabularCPD(name, len(values), values, parents or None, list(table.shape[:-1]) or None, known)
        result.add_cpds(cpd)
    return result


def from_pgmpy(model: "DiscreteBayesianNetwork") -> Network:
    """Convert a DiscreteBayesianNetwork to a network of complete tables; names and states become text."""
    names = list(model.nodes())
    number = {name: k for k, name in enumerate(names)}
    cpds = [model.get_cpds(name) for name in names]
    for name, cpd in zip(names, cpds, strict=True):
        if cpd is None:
            raise ValueError(f"{name!r} has no distribution, and each variable takes one: add a TabularCPD for it.")
    variables = tuple(
        Variable(str(name), tuple(map(str, cpd.state_names[name]))) for name, cpd in zip(names, cpds, strict=True)
    )
    n_states = [variable.n_states for variable in variables]
    nodes = []
    for name, variable, cpd in zip(names, variables, cpds, strict=True):
        table = np.moveaxis(np.asarray(cpd.values, np.float64), 0, -1)
        parents = cpd.variables[1:]
        table = _in_the_order_of_states(table, [model.get_cpds(parent) for parent in parents], cpd)
        rows = fitted(table.reshape(-1, variable.n_states))
        if np.isnan(rows).any():
            raise ValueError(f"the distribution of {name!r} has rows that do not sum to one: normalise them.")
        nodes.append(table_node([number[parent] for parent in parents], rows.reshape(table.shape), n_states))
    return Network(variables, tuple(nodes))


def _in_the_order_of_states(table: "np.ndarray[Any, Any]", parents: list[Any], cpd: Any) -> "np.ndarray[Any, Any]":
    """The table with each parent's states in the parent's own order, from which pgmpy lets a child differ."""
    for axis, parent in enumerate(parents):
        here, there = cpd.state_names[parent.variable], parent.state_names[parent.variable]
        if set(here) != set(there):
            raise ValueError(
                f"the distribution of {cpd.variable!r} has other states of {parent.variable!r} than that one's own: "
                f"give both the same state_names."
            )
        table = np.take(table, [list(here).index(state) for state in there], axis=axis)
    return table


def _pgmpy() -> tuple[Any, Any]:
    try:
        import pgmpy.factors.discrete
        import pgmpy.models
    except ModuleNotFoundError:
        raise ValueError(
            "to_pgmpy needs the package pgmpy, which is not installed: pip install 'leafwise[pgmpy]'."
        ) from None
    return pgmpy.models, pgmpy.factors.discrete
