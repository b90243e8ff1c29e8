"""Order in which to sum out the indices of a product of factors: compiled greedy elimination on bit rows.

Indices that share a factor are neighbours. Summing one out makes all its neighbours adjacent, and costs about the
product of their extents and its own. The order decides whether that stays small.
"""

import numpy as np
from numpy.typing import NDArray

from leafwise.kernels.compiling.jit import jit, part
from leafwise.kernels.compiling.words import lowest, popcount

FEWEST_JOINED = 0  # min-fill: next is the index whose elimination adds the fewest edges
SMALLEST = 1  # next is the index whose elimination makes the smallest product
LAST = 1e12  # bias of an index that must come after all others
_NEVER = 1e300

Bits = NDArray[np.uint64]
Floats = NDArray[np.float64]
Longs = NDArray[np.int64]


@part
def _joined(adjacent: Bits, v: int) -> float:
    """Return how many pairs of neighbours of v are not neighbours themselves."""
    missing = 0
    for word in range(adjacent.shape[1]):
        left = adjacent[v, word]
        while left:
            u = word * 64 + lowest(left)
            left &= left - np.uint64(1)
            for w in range(adjacent.shape[1]):
                missing += popcount(adjacent[v, w] & ~adjacent[u, w])
            missing -= 1  # u itself
    return missing / 2


@part
def _log_size(adjacent: Bits, log_extent: Floats, v: int) -> float:
    """Return the log of the size of the product that eliminating v makes."""
    total = log_extent[v]
    for word in range(adjacent.shape[1]):
        left = adjacent[v, word]
        while left:
            total += log_extent[word * 64 + lowest(left)]
            left &= left - np.uint64(1)
    return total


@part
def _neighbours(first: Longs, member: Longs, n: int) -> Bits:
    adjacent = np.zeros((n, (n + 63) // 64), np.uint64)
    for f in range(first.shape[0] - 1):
        for i in range(first[f], first[f + 1]):
            for j in range(first[f], first[f + 1]):
                if i != j:
                    adjacent[member[i], member[j] // 64] |= np.uint64(1) << np.uint64(member[j] % 64)
    return adjacent


@jit
def eliminate(first: Longs, member: Longs, log_extent: Floats, rule: int, bias: Floats, order: Longs) -> float:
    """Write an order of elimination; return the log of the sum of the sizes of the products it makes.

    Factor f has the indices member[first[f]:first[f + 1]]. The rule's value for an index is multiplied by its bias.
    """
    n = log_extent.shape[0]
    adjacent = _neighbours(first, member, n)
    rank = np.full(n, _NEVER)
    log_size = np.empty(n)
    stale = np.ones(n, np.bool_)
    gone = np.zeros(n, np.bool_)
    log_total = -_NEVER
    for step in range(n):
        best = -1
        for v in range(n):
            if gone[v]:
                continue
            if stale[v]:
                log_size[v] = _log_size(adjacent, log_extent, v)
                rank[v] = _joined(adjacent, v) if rule == FEWEST_JOINED else log_size[v]
                rank[v] = rank[v] * bias[v] if bias[v] < LAST else rank[v] + bias[v]
                stale[v] = False
            if best < 0 or rank[v] < rank[best] or (rank[v] == rank[best] and log_size[v] < log_size[best]):
                best = v
        order[step] = best
        log_total = np.logaddexp(log_total, log_size[best])
        gone[best] = True
        _take_out(adjacent, gone, stale, best, rank[best] > 0 or rule == SMALLEST, rule == FEWEST_JOINED)
    return log_total


@part
def _take_out(
    adjacent: Bits, gone: NDArray[np.bool_], stale: NDArray[np.bool_], v: int, joins: bool, pairs_count: bool
) -> None:
    """Join the neighbours of v, and mark every index whose rank this changes as stale."""
    n_words = adjacent.shape[1]
    for word in range(n_words):
        left = adjacent[v, word]
        while left:
            u = word * 64 + lowest(left)
            left &= left - np.uint64(1)
            stale[u] = True
            if joins:
                for w in range(n_words):
                    adjacent[u, w] |= adjacent[v, w]
                adjacent[u, u // 64] &= ~(np.uint64(1) << np.uint64(u % 64))
            adjacent[u, v // 64] &= ~(np.uint64(1) << np.uint64(v % 64))
    if joins and pairs_count:
        for w in range(adjacent.shape[0]):
            if not gone[w] and not stale[w]:
                shared = 0
                for word in range(n_words):
                    shared += popcount(adjacent[w, word] & adjacent[v, word])
                stale[w] = shared >= 2
