"""Priors: exponents of the Dirichlet distributions in the leaves, and what a structure costs before any data.

A parameter prior answers one question: the exponents of a leaf, and of the children it would have under every split.
They come as an array laid out like the leaf's histogram, whose last row is the leaf itself. Knows regions, layouts and
prior networks.
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from leafwise.formats.files import load
from leafwise.kernels.arrays import Layout
from leafwise.prior_network import PriorNetwork
from leafwise.regions import Region

Exponents = NDArray[np.float64]
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-100, 1e9


class ExponentPrior(Protocol):
    """A prior whose exponents depend on where a leaf is."""

    def leaf_exponents(self, target: int, region: Region, n_states: NDArray[np.int64]) -> Exponents:
        """The exponents of a leaf, one for each state of the target."""

    def exponents(self, target: int, region: Region, layout: Layout) -> Exponents:
        """The exponents of all would-be children of a leaf, and of the leaf, laid out like its histogram.

        Zero marks states of a candidate that cannot occur at the leaf.
        """


@dataclass(frozen=True, slots=True)
class Uniform:
    """All exponents one, whatever the leaf: the paper's uniform scoring function. Counts alone price everything."""

    def __str__(self) -> str:
        return "uniform"

    def leaf_exponents(self, target: int, region: Region, n_states: NDArray[np.int64]) -> Exponents:
        return np.ones(n_states[target])


@dataclass(frozen=True, slots=True)
class Bdeu:
    """A prior network that is uniform over all states, worth so many cases: U-PN in the paper, BDeu elsewhere."""

    equivalent_sample_size: float

    def __str__(self) -> str:
        size = self.equivalent_sample_size
        return f"bdeu:{int(size) if size.is_integer() else size}"

    def leaf_exponents(self, target: int, region: Region, n_states: NDArray[np.int64]) -> Exponents:
        r = int(n_states[target])
        return np.full(r, self.equivalent_sample_size * region.share(n_states) / r)

    def exponents(self, target: int, region: Region, layout: Layout) -> Exponents:
        which = layout.of_target[target]
        variables = layout.variables[layout.start[which] : layout.start[which + 1]]
        share = region.share(layout.n_states)
        out = np.append(np.repeat(share / layout.n_states[variables], layout.n_states[variables]), share)
        tested = region.tested()
        shares = region.shares(tested, layout.n_states)
        for rows, share_of_states in zip(layout.rows(target, tested), shares, strict=True):
            out[rows] = share_of_states
        r = layout.n_states[target]
        return np.repeat(out * (self.equivalent_sample_size / r), r)


ParameterPrior = Uniform | ExponentPrior


def parameter_prior(text: str) -> ParameterPrior:
    """The parameter prior of that name.

    >>> str(parameter_prior("bdeu:10"))
    'bdeu:10'
    """
    kind, _, size = text.partition(":")
    if text == "uniform":
        return Uniform()
    if kind == "bdeu" and (ess := _sample_size(size)) is not None:
        return Bdeu(ess)
    file, _, size = size.rpartition(":")
    if kind == "network" and file and (ess := _sample_size(size)) is not None:
        network = load(file)
        return PriorNetwork(network, ess, network.names, text)
    raise ValueError(
        f"prior {text!r} is not known: give 'uniform', 'bdeu:' and a sample size above 0 such as 'bdeu:10', or "
        f"'network:' with a file and a sample size such as 'network:alarm.bif:10'"
    )


def structure_prior_for(text: str, n_variables: int) -> str:
    """The structure prior of that name among so many variables: "auto" is kappa = 1/n, anything else is itself.

    A leaf of a graph can be left alone or test one of the n - 1 other variables. The parameter that a split adds pays
    for this choice among n.

    >>> structure_prior_for("auto", 50), structure_prior_for("uniform", 50)
    ('kappa:0.02', 'uniform')
    """
    return f"kappa:{1 / n_variables:.6g}" if text == "auto" else text


def log_kappa(text: str) -> float:
    """The log of kappa, of Equation 6, for a structure prior of that name; 0 is the uniform prior over structures.

    >>> log_kappa("uniform"), round(log_kappa("kappa:0.1"), 4)
    (0.0, -2.3026)
    """
    kind, _, number = text.partition(":")
    if text == "uniform":
        return 0.0
    if kind == "kappa" and (kappa := _positive(number)) is not None and kappa <= 1:
        return math.log(kappa)
    raise ValueError(
        f"structure prior {text!r} is not known: give 'auto', 'uniform', or 'kappa:' and a number above 0 and at "
        f"most 1, such as 'kappa:0.1'"
    )


def _sample_size(text: str) -> float | None:
    """An equivalent sample size with which scores keep their digits: log gamma of a larger one is too large itself."""
    size = _positive(text)
    if size is not None and not _SMALLEST_SIZE <= size <= _LARGEST_SIZE:
        raise ValueError(
            f"the prior has an equivalent sample size of {size:g}, and scores are exact for {_SMALLEST_SIZE:g} to "
            f"{_LARGEST_SIZE:g}: use one of these"
        )
    return size


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None
