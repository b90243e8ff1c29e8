"""Counting in shards: several counters hold the rows, each executes all requests, and their histograms are summed.

Knows the interface of counters, and nothing of where they are.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leafwise.counters.counter import Counter, Integers, Session
from leafwise.kernels.counting.arrays import Layout


class ShardedCounter:
    """A `Counter` of the rows of several others, which have the same variables.

    >>> from leafwise.counters.cpu import CpuCounter
    >>> from leafwise.examples import alarm
    >>> from leafwise.inference.sampling import sample
    >>> ShardedCounter([CpuCounter(sample(alarm(), n, seed=n)) for n in (200, 300)]).n_cases
    500
    """

    lookahead = 0.3  # every batch goes to all shards, so few large batches are better
    overlaps = False
    local = None

    def __init__(self, shards: Sequence[Counter]) -> None:
        if not shards:
            raise ValueError("there are no shards: give one counter at least")
        first = shards[0]
        if any(shard.variables != first.variables or shard.unit != first.unit for shard in shards):
            raise ValueError("the shards have different variables or units: all must have the same")
        self.variables, self.unit, self._shards = first.variables, first.unit, shards
        self.n_cases = sum(shard.n_cases for shard in shards)

    def session(self) -> "ShardedSession":
        return ShardedSession([shard.session() for shard in self._shards])

    def copying(self, variables: list[int]) -> "ShardedCounter":
        return ShardedCounter([shard.copying(variables) for shard in self._shards])


class ShardedSession:
    """A session with each of the shards."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._sessions = sessions

    def cut(self, parents: Integers, variables: Integers, groups: Integers, children: Integers) -> None:
        for session in self._sessions:
            session.cut(parents, variables, groups, children)

    def join(self, first: Integers, second: Integers, unions: Integers) -> None:
        for session in self._sessions:
            session.join(first, second, unions)

    def count(self, of: Integers, targets: Integers, layout: Layout) -> NDArray[np.int32]:
        counts = self._sessions[0].count(of, targets, layout)
        for session in self._sessions[1:]:
            counts += session.count(of, targets, layout)
        return counts

    def release(self, gone: Integers) -> None:
        for session in self._sessions:
            session.release(gone)

    def close(self) -> None:
        for session in self._sessions:
            session.close()
