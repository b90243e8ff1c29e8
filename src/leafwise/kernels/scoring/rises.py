"""Tables of log Γ(count + a) - log Γ(a), for exponents a that many leaves share."""

from leafwise.kernels.compiling.jit import jit
from leafwise.kernels.compiling.types import Array
from leafwise.kernels.scoring.dirichlet import log_gamma

MOST = 2**20  # counts: beyond that, a table is no quicker than Stirling's series


@jit
def fill(exponent: float, unit: float, values: Array) -> None:
    """Write the table of one exponent, for counts that stand for so many cases each."""
    first = log_gamma(exponent)
    for count in range(values.shape[0]):
        values[count] = log_gamma(count * unit + exponent) - first
