"""Mixtures of products of independent variables, fitted by EM to cases with missing cells."""

import numpy as np

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.questions.holes import Codes, Floats, Longs


@part
def _maximize(codes: Codes, begin: Longs, exponents: Floats, shares: Floats, table: Floats) -> None:
    """M step: fit the distributions to the responsibilities (`shares`) of the components."""
    n_components, n_variables = shares.shape[1], codes.shape[0]
    for row in range(table.shape[0]):
        table[row, :] = exponents[row]
    for case in range(codes.shape[1]):
        for v in range(n_variables):
            row = begin[v] + codes[v, case]
            if row < begin[v + 1]:
                table[row] += shares[case]
        table[begin[n_variables]] += shares[case]
    for v in range(n_variables):
        for k in range(n_components):
            table[begin[v] : begin[v + 1], k] /= table[begin[v] : begin[v + 1], k].sum()
    table[begin[n_variables]] /= table[begin[n_variables]].sum()


@part
def _expect(codes: Codes, begin: Longs, logs: Floats, shares: Floats) -> None:
    """E step: compute the responsibilities of the components for each case."""
    n_variables = codes.shape[0]
    for case in range(codes.shape[1]):
        weight = shares[case]
        weight[:] = logs[begin[n_variables]]
        for v in range(n_variables):
            row = begin[v] + codes[v, case]
            if row < begin[v + 1]:
                weight += logs[row]
        weight[:] = np.exp(weight - weight.max())
        weight /= weight.sum()


@jit
def fit(codes: Codes, begin: Longs, exponents: Floats, n_rounds: int, shares: Floats, table: Floats) -> None:
    """Improve the responsibilities of components for cases, (cases, components), by n_rounds of EM; also set `table`.

    The distributions of variable v are rows begin[v] to begin[v + 1] - 1 of the table; its last row contains the
    weights of the components. An exponent is added to each count. A code that is not a state is a missing cell.
    """
    for _ in range(n_rounds):
        _maximize(codes, begin, exponents, shares, table)
        _expect(codes, begin, np.log(table), shares)
