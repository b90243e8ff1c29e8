"""Sampling from a network: forward, or exactly given evidence."""

import warnings

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Table, code_type
from leafwise.errors import Advice, check_type
from leafwise.inference.evidence import Given, Weights, mapping_of, weights_of
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, Limits
from leafwise.kernels.questions import routes
from leafwise.mixture import Mixture
from leafwise.network import Network, check_network

_LEAST = 20_000  # the least number of weighted cases to resample from


class Approximate(UserWarning):
    """Warns that a result is approximate where the result itself cannot show it."""


def sample(
    network: Network | Mixture, n_cases: int, seed: int, *, given: Given | None = None, limits: Limits = DEFAULT_LIMITS
) -> Table:
    """Draw cases; the same seed gives the same cases.

    `given`: evidence, as for `query`; cases are then drawn from the exact conditional distribution if that is within
    the limits. Otherwise they are resampled from weighted cases, with an `Approximate` warning.

    >>> from leafwise.examples import alarm
    >>> sample(alarm(), 1000, seed=1).n_cases
    1000
    >>> sample(alarm(), 3, seed=1, given={"BP": "LOW"}).codes[36].tolist()
    [0, 0, 0]
    """
    if isinstance(network, Mixture):
        return network.sample(n_cases, seed, given=given, limits=limits)
    check_network(network, "sample")
    for what, number in (("the number of cases", n_cases), ("the seed", seed)):
        check_type(number, (int, np.integer), what, "a whole number: give one such as 10.")
    if n_cases < 1:
        raise ValueError(f"sample got {n_cases} cases to draw, and the least is 1: ask for one or more.")
    if seed < 0:
        raise ValueError(f"sample got the seed {seed}, and the least is 0: use a seed of 0 or more.")
    if mapping_of(given):
        everything = [(index,) for index in range(len(network.variables))]
        weights = weights_of(network, given)
        question = Exact.of(network, weights, everything, limits)
        if question.refusal is not None:
            return _resampled(network, weights, n_cases, seed, question.refusal)
        return Table(network.variables, question.draw(n_cases, seed).astype(code_type(network.variables)))
    random = np.random.default_rng(seed)
    codes = np.zeros((len(network.variables), n_cases), code_type(network.variables))
    for index in network.order():
        node = network.nodes[index]
        if node is None:
            raise ValueError(
                f"the network has no distribution of {network.names[index]!r}, and sampling needs one for each "
                f"variable: learn all variables, without a target."
            )
        routes.draw(codes, *node.flat[:3], 0, index, cumulative(node.probabilities), random.random(n_cases))
    return Table(network.variables, codes)


def _resampled(network: Network, weights: Weights, n_cases: int, seed: int, refusal: str) -> Table:
    """Cases resampled by weight from more that were drawn: approximately distributed given the evidence."""
    from leafwise.inference.importance import proposed_cases  # which imports this module

    table, log_weights = proposed_cases(network, weights, max(_LEAST, 10 * n_cases), seed)
    weight = np.exp(log_weights - log_weights.max())
    worth = weight.sum() ** 2 / (weight**2).sum()
    places = (np.arange(n_cases) + np.random.default_rng(seed).random()) / n_cases
    chosen = np.searchsorted(weight.cumsum() / weight.sum(), places, side="right")
    np.random.default_rng(seed).shuffle(chosen)
    warnings.warn(
        Approximate(
            Advice(f"the cases are chosen by weight among {len(weight):,} that are worth {worth:,.0f} draws: ", refusal)
        ),
        stacklevel=3,
    )
    return Table(network.variables, np.ascontiguousarray(table.codes[:, chosen]))


def cumulative(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cumulative sums of each row; exactly one from its last possible state on, whatever the rounding."""
    sums = np.cumsum(probabilities, axis=1)
    with np.errstate(invalid="ignore"):  # evidence may leave a row of zeros
        return np.where(sums >= sums[:, -1:], 1.0, sums / sums[:, -1:])
