"""Inference the slow and obvious way: the full joint table, one entry a combination of states."""

import numpy as np


def joint_table(network):
    """The probability of every combination of states of all variables, an axis each."""
    shape = [variable.n_states for variable in network.variables]
    table = np.ones(shape)
    for case in np.ndindex(*shape):
        for variable, node in enumerate(network.nodes):
            table[case] *= node.probabilities[node.graph.leaf_of(case), case[variable]]
    return table


def weighted(table, weights):
    """The table times the weights of evidence."""
    for variable, weight in weights.items():
        table = table * weight.reshape([-1 if axis == variable else 1 for axis in range(table.ndim)])
    return table


def marginal(table, variables):
    """The sums over all other variables, with an axis for each of these in this order."""
    summed = table.sum(axis=tuple(axis for axis in range(table.ndim) if axis not in variables))
    return summed.transpose(np.argsort(np.argsort(variables)))
