"""Prior networks (Section 3 of the paper): prior knowledge as a network with an equivalent sample size.

The exponent of a state in a leaf is that size times the probability, under the prior network, of the state together
with reaching the leaf. Knows inference, regions and layouts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from leafwise.data.table import Variable, index_of
from leafwise.errors import check_type
from leafwise.inference.exact import DEFAULT_LIMITS, Exact, affordable
from leafwise.kernels.counting.arrays import Layout
from leafwise.network import Network, check_network
from leafwise.regions import Region, flags_of

Exponents = NDArray[np.float64]
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-100, 1e5  # beyond these, rounding errors exceed the tolerance for ties


@dataclass(frozen=True)
class PriorNetwork:
    """A network and its equivalent sample size; `names` are the variables to be learned, in their order.

    >>> from leafwise import learn, sample
    >>> from leafwise.examples import alarm
    >>> str(PriorNetwork(learn(sample(alarm(), 50, seed=1)), 10))
    'network:given:10'
    """

    network: Network
    equivalent_sample_size: float
    names: tuple[str, ...] = ()  # empty: all of the network's
    text: str = ""  # as it was specified; "": by the network itself
    copies: tuple[int, ...] = ()  # the originals of targets after the last variable, which are copies

    def __post_init__(self) -> None:
        check_network(self.network, "PriorNetwork")
        object.__setattr__(self, "equivalent_sample_size", sample_size(self.equivalent_sample_size))
        object.__setattr__(self, "names", self.names or self.network.names)
        object.__setattr__(self, "text", self.text or f"network:given:{self.equivalent_sample_size:g}")
        for name, node in zip(self.network.names, self.network.nodes, strict=True):
            if node is None or not (node.probabilities > 0).all():
                raise ValueError(
                    f"the prior network gives {name!r} no distribution, or some of its states the probability 0, which "
                    f"no data could change: give every state of every variable a probability above 0."
                )

    def __str__(self) -> str:
        return self.text

    def variables(self, names: Sequence[str]) -> tuple[Variable, ...]:
        """The prior network's variables of these names."""
        return tuple(self.network.variables[index_of(name, self.network.names)] for name in names)

    def leaf_exponents(self, target: int, region: Region, n_states: NDArray[np.int64]) -> Exponents:
        return self._joint(target, region)[1]

    def exponents(self, target: int, region: Region, layout: Layout) -> Exponents:
        joint, leaf = self._joint(target, region)
        which = layout.of_target[target]
        candidates = layout.variables[layout.start[which] : layout.start[which + 1]]
        own = [self._original(v) for v in candidates.tolist()]
        rows = [joint[self._column[v] : self._column[v + 1]] for v in own]
        return np.concatenate([*rows, leaf[None]]).ravel()

    def _original(self, variable: int) -> int:
        return variable if variable < len(self.names) else self.copies[variable - len(self.names)]

    @cached_property
    def _question(self) -> Exact:
        """A query for every variable: the targets' factors of ones, whose environments are read, also take evidence."""
        return affordable(self.network, {}, [(v,) for v in range(len(self.network.variables))], DEFAULT_LIMITS)

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """The index of each learned variable in the prior network."""
        return np.array([index_of(name, self.network.names) for name in self.names])

    @cached_property
    def _column(self) -> NDArray[np.int64]:
        """The first column of each learned variable in a row of states."""
        return np.cumsum([0, *(self.network.variables[place].n_states for place in self._places)])

    def _joint(self, target: int, region: Region) -> tuple[Exponents, Exponents]:
        """The exponents in a region: of all variables' states with each of the target's, and of the target's alone."""
        target = self._original(target)
        begin, end = self._column[target], self._column[target + 1]
        n_states = int(end - begin)
        known = np.ones((len(region.boxes), n_states, self._column[-1]))
        for box, rows in zip(region.boxes, known, strict=True):
            for variable, states in box.items():
                first, last = self._column[variable], self._column[variable + 1]
                rows[:, first:last] = flags_of(states, last - first)
        known[:, :, begin:end] = np.eye(n_states)
        joint, totals = self._question.joint_with(self._places, known.reshape(-1, self._column[-1]))
        worth = self.equivalent_sample_size
        return joint.reshape(known.shape).sum(axis=0).T * worth, totals.reshape(known.shape[:2]).sum(axis=0) * worth


def sample_size(size: object) -> float:
    """An equivalent sample size; an error if scores would lose digits, as log gamma of large ones does."""
    check_type(size, Real, "the equivalent sample size", "a number of cases: use for example 10")
    try:
        found = float(size)  # type: ignore[arg-type]
    except OverflowError:
        found = math.inf
    if not _SMALLEST_SIZE <= found <= _LARGEST_SIZE:
        raise ValueError(
            f"the prior has an equivalent sample size of {found:g}, and scores are exact for {_SMALLEST_SIZE:g} to "
            f"{_LARGEST_SIZE:g}: use one of these"
        )
    return found
