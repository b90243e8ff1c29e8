"""Regions: the parent assignments that reach a leaf, as a union of disjoint boxes.

A box maps each variable tested on the path to the set of its possible states (bits of an integer); other variables are
free. Shares of the parent space are computed as sums of products of small fractions. Knows nothing else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Box = dict[int, int]
States = Sequence[int] | NDArray[np.int64]  # the number of states of each variable


def flags_of(bits: int, n_states: int) -> NDArray[np.uint8]:
    """For each state, 1 if it is in the set, else 0.

    >>> flags_of(0b1101, 5).tolist()
    [1, 0, 1, 1, 0]
    """
    raw = np.frombuffer(bits.to_bytes(-(-n_states // 8), "little"), np.uint8)
    return np.unpackbits(raw, count=n_states, bitorder="little")


def set_of(flags: NDArray[np.bool_]) -> int:
    """The set of the flagged states.

    >>> bin(set_of(np.array([True, False, True, True])))
    '0b1101'
    """
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def bits_of(states: Iterable[int]) -> int:
    """The set of these states."""
    return sum(1 << state for state in states)


@dataclass(frozen=True, slots=True)
class Region:
    """A union of disjoint boxes.

    >>> whole = Region.everything()
    >>> part = whole.cut(0, 0b011, 3)
    >>> part.share([3, 2]), part.join(whole.cut(0, 0b100, 3)).share([3, 2])
    (0.6666666666666666, 1.0)
    """

    boxes: tuple[Box, ...]

    @classmethod
    def everything(cls) -> "Region":
        return cls(({},))

    def cut(self, variable: int, states: int, n_states: int) -> "Region":
        """The part in which the variable has one of these states."""
        everything = (1 << n_states) - 1
        cut = [(box, box.get(variable, everything) & states) for box in self.boxes]
        return Region(tuple({**box, variable: left} for box, left in cut if left))

    def join(self, other: "Region") -> "Region":
        """The union with a disjoint region; boxes that differ in one variable only are merged."""
        boxes = [*self.boxes, *other.boxes]
        sums = [sum(map(hash, box.items())) for box in boxes]  # minus the hash of one item: the key of the others
        for variable in sorted({variable for box in boxes for variable in box}):
            place: dict[int, int] = {}
            kept: list[Box] = []
            kept_sums: list[int] = []
            for box, total in zip(boxes, sums, strict=True):
                if variable in box:
                    rest = total - hash((variable, box[variable]))
                    at = place.setdefault(rest, len(kept))
                    if at < len(kept) and {**kept[at], variable: box[variable]} == box:
                        both = kept[at][variable] | box[variable]
                        kept[at] = {**box, variable: both}
                        kept_sums[at] = rest + hash((variable, both))
                        continue
                kept.append(box)
                kept_sums.append(total)
            boxes, sums = kept, kept_sums
        return Region(tuple(boxes))

    def tested(self) -> list[int]:
        """The variables that some box restricts."""
        return sorted({variable for box in self.boxes for variable in box})

    def possible(self, variable: int, n_states: int) -> int:
        """The set of states that the variable can have in this region."""
        everything = (1 << n_states) - 1
        states = 0
        for box in self.boxes:
            states |= box.get(variable, everything)
        return states

    def share(self, n_states: States) -> float:
        """The share of all parent assignments in this region."""
        return sum(self._volumes(n_states))

    def shares(self, variables: Sequence[int], n_states: States) -> list[NDArray[np.float64]]:
        """For each variable and state, the share of all parent assignments that have it and are in this region."""
        volumes = np.array(self._volumes(n_states))
        out = []
        for variable in variables:
            r = int(n_states[variable])
            everything = (1 << r) - 1
            states = [box.get(variable, everything) for box in self.boxes]
            weights = volumes / np.array([one.bit_count() for one in states])
            known: dict[int, float] = {}
            for one, weight in zip(states, weights.tolist(), strict=True):
                known[one] = known.get(one, 0.0) + weight
            shares = np.zeros(r)
            for one, weight in known.items():
                shares += flags_of(one, r) * weight
            out.append(shares)
        return out

    def _volumes(self, n_states: States) -> list[float]:
        volumes = []
        for box in self.boxes:
            volume = 1.0
            for variable in sorted(box):
                volume *= box[variable].bit_count() / int(n_states[variable])
            volumes.append(volume)
        return volumes
