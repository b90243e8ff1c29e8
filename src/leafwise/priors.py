"""Parameter priors: exponents of the Dirichlet distributions in the leaves.

Compiled code computes those of most priors. Only a prior network has to be queried for those of each leaf, and of the
children that it would have under every split. Knows regions and prior networks.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leafwise.formats.files import load
from leafwise.prior_network import PriorNetwork, sample_size
from leafwise.regions import Region

Exponents = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Uniform:
    """All exponents are one, in every leaf: the paper's uniform scoring function."""

    def __str__(self) -> str:
        return "uniform"

    def exponent(self, n_states: int) -> float:
        """The exponent of each state of a target, in every leaf."""
        return 1.0

    def leaf_exponents(self, target: int, region: Region, n_states: NDArray[np.int64]) -> Exponents:
        return np.ones(n_states[target])


@dataclass(frozen=True, slots=True)
class Symmetric:
    """A number of cases in each leaf, spread evenly over the target's states; two cases and two states are uniform."""

    cases: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cases", sample_size(self.cases))

    def __str__(self) -> str:
        return f"symmetric:{_plain(self.cases)}"

    def exponent(self, n_states: int) -> float:
        """The exponent of each state of a target, in every leaf."""
        return self.cases / n_states

    def leaf_exponents(self, target: int, region: Region, n_states: NDArray[np.int64]) -> Exponents:
        r = int(n_states[target])
        return np.full(r, self.exponent(r))


@dataclass(frozen=True, slots=True)
class Bdeu:
    """A uniform prior network with an equivalent sample size: U-PN in the paper, BDeu elsewhere."""

    equivalent_sample_size: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "equivalent_sample_size", sample_size(self.equivalent_sample_size))

    def __str__(self) -> str:
        return f"bdeu:{_plain(self.equivalent_sample_size)}"

    def leaf_exponents(self, target: int, region: Region, n_states: NDArray[np.int64]) -> Exponents:
        r = int(n_states[target])
        return np.full(r, self.equivalent_sample_size * region.share(n_states) / r)


ParameterPrior = Uniform | Symmetric | Bdeu | PriorNetwork


def parameter_prior(text: str | ParameterPrior) -> ParameterPrior:
    """The parameter prior of this name; a prior is returned as it is.

    >>> str(parameter_prior("bdeu:10"))
    'bdeu:10'
    """
    if not isinstance(text, str):
        return text
    kind, _, size = text.partition(":")
    if text == "uniform":
        return Uniform()
    if text == "auto":
        return Symmetric()
    if kind == "symmetric" and (cases := _positive(size)) is not None:
        return Symmetric(cases)
    if kind == "bdeu" and (ess := _positive(size)) is not None:
        return Bdeu(ess)
    file, _, size = size.rpartition(":")
    if kind == "network" and file and (ess := _positive(size)) is not None:
        network = load(file)
        return PriorNetwork(network, ess, network.names, text)
    raise ValueError(
        f"prior {text!r} is not known: give 'auto', 'uniform', 'symmetric:' or 'bdeu:' and a number of cases above 0 "
        f"such as 'bdeu:10', or 'network:' with a file and a sample size such as 'network:alarm.bif:10'"
    )


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < math.inf else None
