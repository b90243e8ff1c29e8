"""Tables of log Γ(count + a) - log Γ(a), for exponents a that many leaves share."""

from leafwise.kernels.arrays import Array
from leafwise.kernels.jit import jit
from leafwise.kernels.tables import log_gamma

MOST = 2**20  # counts: beyond that, a table is no quicker than Stirling's series


@jit
def fill(values: Array, exponents: Array) -> None:
    """Write the rows of a table."""
    for row in range(values.shape[0]):
        first = log_gamma(exponents[row])
        for count in range(values.shape[1]):
            values[row, count] = log_gamma(count + exponents[row]) - first
