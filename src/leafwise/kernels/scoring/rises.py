"""Tables of log Γ(count + a) - log Γ(a), for exponents a that many leaves share."""

from typing import NamedTuple

from leafwise.kernels.compiling.jit import bare, jit
from leafwise.kernels.compiling.types import Array, Int
from leafwise.kernels.scoring.dirichlet import log_gamma

MOST = 2**20  # counts: beyond that, a table is no quicker than Stirling's series


@jit
def fill(exponent: float, unit: float, values: Array) -> None:
    """Write the table of one exponent, for counts that stand for so many cases each."""
    first = log_gamma(exponent)
    for count in range(values.shape[0]):
        values[count] = log_gamma(count * unit + exponent) - first


class Rises(NamedTuple):
    """log Γ(count + a) - log Γ(a), a row for each exponent a: from a table for small counts; else it is reckoned.

    Exponents that differ by whole numbers share a table.
    """

    values: Array
    starts: Array  # for each row: where its table begins, and
    lengths: Array  # ... how many counts it has
    bases: Array  # what is to be subtracted from what is there
    exponents: Array
    log_gammas: Array
    unit: float  # cases that one count stands for


class Row(NamedTuple):
    """What a row of `Rises` says of its exponent: to be had once for many counts."""

    start: Int
    length: Int
    base: float
    exponent: float
    log_gamma: float


@bare
def row_at(row: Int, rises: Rises) -> Row:
    """That row."""
    return Row(rises.starts[row], rises.lengths[row], rises.bases[row], rises.exponents[row], rises.log_gammas[row])


@bare
def rise_in(row: Row, count: Int, rises: Rises) -> float:
    """log Γ(count + a) - log Γ(a) for the row's exponent a."""
    if count < row.length:
        return rises.values[row.start + count] - row.base
    return log_gamma(count * rises.unit + row.exponent) - row.log_gamma


@bare
def rise(row: Int, count: Int, rises: Rises) -> float:
    """The same, of a row that is looked up for this count alone."""
    if count < rises.lengths[row]:
        return rises.values[rises.starts[row] + count] - rises.bases[row]
    return log_gamma(count * rises.unit + rises.exponents[row]) - rises.log_gammas[row]
