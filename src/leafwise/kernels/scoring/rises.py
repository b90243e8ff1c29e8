"""Tables of log Γ(count + a) - log Γ(a), for exponents a that many leaves share."""

from typing import NamedTuple

from leafwise.kernels.compiling.jit import bare, jit
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import log_gamma

MOST = 2**20  # length of a table: beyond that, it is no quicker than Stirling's series


@jit
def fill(exponent: float, unit: float, values: Array) -> None:
    """Write the table of one exponent, for counts that represent `unit` cases each."""
    first = log_gamma(exponent)
    for count in range(values.shape[0]):
        values[count] = log_gamma(count * unit + exponent) - first


class Rises(NamedTuple):
    """log Γ(count + a) - log Γ(a), a row for each exponent a: from a table for small counts, computed otherwise.

    Exponents that differ by integers share a table.
    """

    values: Array
    starts: Array  # by row: index in `values` of the entry for count 0
    lengths: Array  # by row: number of counts in the table
    bases: Array  # by row: subtracted from the entries
    exponents: Array
    log_gammas: Array  # by row: log Γ of the exponent
    unit: float  # cases that one count represents


class Row(NamedTuple):
    """The fields of one row of `Rises`, to load them once for many counts."""

    start: Int
    length: Int
    base: float
    exponent: float
    log_gamma: float


@bare
def row_at(row: Int, rises: Rises) -> Row:
    """Return a row."""
    return Row(rises.starts[row], rises.lengths[row], rises.bases[row], rises.exponents[row], rises.log_gammas[row])


@bare
def rise_in(row: Row, count: Int, rises: Rises) -> float:
    """Return log Γ(count + a) - log Γ(a) for the row's exponent a."""
    if count < row.length:
        return rises.values[row.start + count] - row.base
    return log_gamma(count * rises.unit + row.exponent) - row.log_gamma


@bare
def rise(row: Int, count: Int, rises: Rises) -> float:
    """Return the same, for a row that is used for a single count."""
    if count < rises.lengths[row]:
        return rises.values[rises.starts[row] + count] - rises.bases[row]
    return log_gamma(count * rises.unit + rises.exponents[row]) - rises.log_gammas[row]
