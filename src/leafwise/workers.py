"""Threads for compiled loops: a kernel over a range of requests is run in shares of about equal cost."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

_MOST_THREADS = 256
_WORTH_A_THREAD = 150_000.0  # nanoseconds: what handing work over and waiting for it costs, a few times over


class Workers:
    """A fixed number of threads. Each request is done whole by one of them, so results do not depend on the number."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = min(n_threads or _n_cores(), _MOST_THREADS)
        self.stopped = threading.Event()  # set when a run is interrupted: long kernels look at it, and end
        self._pool = ThreadPoolExecutor(self.n_threads - 1) if self.n_threads > 1 else None

    def run(self, kernel: Callable[[int, int], Any], costs: NDArray[np.float64]) -> None:
        """Call kernel(begin, end) so that the ranges cover all requests; costs are nanoseconds, roughly."""
        n = len(costs)
        if self._pool is None or n < 2 or (total := costs.cumsum())[-1] < _WORTH_A_THREAD:
            kernel(0, n)
            return
        shares = np.arange(1, self.n_threads) * (total[-1] / self.n_threads)
        cuts = [0, *np.searchsorted(total, shares).tolist(), n]
        ranges = [(b, e) for b, e in pairwise(cuts) if b < e]
        waiting = [self._pool.submit(kernel, begin, end) for begin, end in ranges[1:]]
        try:
            kernel(*ranges[0])
            for future in waiting:
                future.result()
        except KeyboardInterrupt:
            self.stopped.set()
            wait(waiting)
            raise

    def together(self, work: Callable[[bool], T]) -> T:
        """Call work(True) here and work(False) in all other threads, which it lets end; what the first returns."""
        waiting = [self._pool.submit(work, False) for _ in range(self.n_threads - 1)] if self._pool else []
        found = work(True)
        for future in waiting:
            future.result()
        return found


def _n_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
