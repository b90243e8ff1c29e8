"""Mixtures of independent variables, fitted by EM to cases with holes."""

import math

import numpy as np

from leafwise.kernels.holes import Codes, Floats, Longs
from leafwise.kernels.jit import jit


@jit
def fit(codes: Codes, begin: Longs, exponents: Floats, n_rounds: int, shares: Floats, table: Floats) -> None:
    """From shares of the cases in each component, (cases, components), to better ones, so many rounds.

    The distributions of variable v are the rows from begin[v] to begin[v + 1] of the table; its last row holds the
    weights of the components. To each count an exponent is added. A code that is no state is a hole.
    """
    n_components, last = shares.shape[1], table.shape[0] - 1
    logs = np.empty_like(table)
    weight = np.empty(n_components)
    for _ in range(n_rounds):
        for row in range(table.shape[0]):
            table[row, :] = exponents[row]
        for case in range(codes.shape[1]):
            for v in range(codes.shape[0]):
                row = begin[v] + codes[v, case]
                if row < begin[v + 1]:
                    for k in range(n_components):
                        table[row, k] += shares[case, k]
            for k in range(n_components):
                table[last, k] += shares[case, k]
        for k in range(n_components):
            for v in range(codes.shape[0]):
                total = 0.0
                for row in range(begin[v], begin[v + 1]):
                    total += table[row, k]
                for row in range(begin[v], begin[v + 1]):
                    table[row, k] /= total
        total = 0.0
        for k in range(n_components):
            total += table[last, k]
        for k in range(n_components):
            table[last, k] /= total
        for row in range(table.shape[0]):
            for k in range(n_components):
                logs[row, k] = math.log(table[row, k])
        for case in range(codes.shape[1]):
            for k in range(n_components):
                weight[k] = logs[last, k]
            for v in range(codes.shape[0]):
                row = begin[v] + codes[v, case]
                if row < begin[v + 1]:
                    for k in range(n_components):
                        weight[k] += logs[row, k]
            largest = weight.max()
            total = 0.0
            for k in range(n_components):
                weight[k] = math.exp(weight[k] - largest)
                total += weight[k]
            for k in range(n_components):
                shares[case, k] = weight[k] / total
