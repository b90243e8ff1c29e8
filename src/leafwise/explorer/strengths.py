"""Arc strengths for the map, from sampled cases; and arc confidence, if known."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from leafwise.inference.sampling import sample
from leafwise.network import Network

_CASES = 5000


def strengths(network: Network) -> list[float | None]:
    """For each arc, the approximate share of the child's uncertainty that the parent removes; None if unknown.

    That is their mutual information divided by the child's entropy, in cases drawn from the network.

    >>> from leafwise.examples import alarm
    >>> found = strengths(alarm())
    >>> len(found), min(found) >= 0, max(found) <= 1
    (46, True, True)
    """
    if any(node is None for node in network.nodes):
        return [None] * len(network.arcs)
    codes = sample(network, _CASES, seed=1).codes
    return [_share(codes[parent], codes[child]) for parent, child in network.arcs]


def shares(network: Network) -> list[float] | None:
    """For each arc, the share of networks that connect its ends, if the network is a consensus with these shares."""
    told = network.learned.get("confidence")
    rows = told.get("arcs") if isinstance(told, Mapping) else None
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 4 for row in rows):
        return None
    known = {(str(parent), str(child)): share for parent, child, share, _ in rows}
    found: list[Any] = [known.get(arc) for arc in network.named_arcs]
    return found if all(isinstance(share, float) and 0 <= share <= 1 for share in found) else None


def _share(parent: np.ndarray, child: np.ndarray) -> float:
    n_child = int(child.max()) + 1
    joint = np.bincount(parent.astype(np.int64) * n_child + child, minlength=(int(parent.max()) + 1) * n_child)
    both, one, other = (_entropy(counts) for counts in (joint, np.bincount(parent), np.bincount(child)))
    return round(float(np.clip((one + other - both) / other, 0, 1)), 4) if other > 0 else 0.0


def _entropy(counts: np.ndarray) -> float:
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares @ np.log(shares)))
