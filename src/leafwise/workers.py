"""A thread pool for compiled loops: a kernel over a range of requests is run in shares of about equal cost."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from leafwise.machine import n_cores

T = TypeVar("T")

_MOST_THREADS = 256
_WORTH_A_THREAD = 400_000.0  # least nanoseconds per thread: several times the cost of submitting and waiting
_WORTH_A_SHARE = 100_000.0  # the same per share, times the number of threads, which take shares one at a time
_SHARES = 3  # most shares per thread


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    """A persistent thread pool: starting a thread takes longer than most tasks."""
    return ThreadPoolExecutor(n_threads, "leafwise")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


class Workers:
    """A fixed number of threads. Each request is processed by one of them, so results do not depend on the number.

    The pool is shared; the caller itself does the work of tasks that no thread has started in time.
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = min(n_threads or n_cores(), _MOST_THREADS)
        self.stopped = threading.Event()  # set when a run is interrupted; long kernels check it, and end

    def run(self, kernel: Callable[[int, int], Any], costs: NDArray[np.float64]) -> None:
        """Call kernel(begin, end) on ranges that cover all requests; `costs` are their nanoseconds, roughly."""
        n = len(costs)
        if self.n_threads == 1 or n < 2 or (total := costs.cumsum())[-1] < _WORTH_A_THREAD:
            kernel(0, n)
            return
        n_threads = min(self.n_threads, 1 + int(total[-1] / _WORTH_A_THREAD))
        n_shares = max(n_threads, min(_SHARES * n_threads, int(total[-1] / (_WORTH_A_SHARE * n_threads))))
        cuts = [0, *np.searchsorted(total, np.arange(1, n_shares) * (total[-1] / n_shares)).tolist(), n]
        ranges = iter([(b, e) for b, e in pairwise(cuts) if b < e])

        def work() -> None:
            for begin, end in ranges:  # shared by all threads, each of which takes the next range when it is free
                kernel(begin, end)

        waiting = [self._submit(work) for _ in range(n_threads - 1)]
        try:
            work()
            _finish(waiting)
        except KeyboardInterrupt:
            self.stopped.set()
            for _ in ranges:
                pass  # leave none for the other threads
            _finish(waiting)
            raise

    def ahead(self, work: Callable[[], T]) -> Callable[[], T]:
        """Start work in another thread, if there is one, and return a function that waits for its result."""
        if self.n_threads == 1:
            return cache(work)
        future = self._submit(work)
        return cache(lambda: work() if future.cancel() else future.result())

    def together(self, work: Callable[[bool], T], most: int = _MOST_THREADS) -> T:
        """Call work(True) here and work(False) in other threads, at most `most` in total; return the former's result.

        work(True) must not return before the others can end.
        """
        waiting = [self._submit(work, False) for _ in range(min(most, self.n_threads) - 1)]
        found = work(True)
        _finish(waiting)
        return found

    def _submit(self, work: Callable[..., T], *given: Any) -> Future[T]:
        try:
            return _pool(self.n_threads - 1).submit(work, *given)
        except KeyboardInterrupt:
            _pool.cache_clear()  # the interrupt may have left a lock of the pool held
            raise


def _finish(waiting: list[Future[Any]]) -> None:
    """Cancel tasks that have not started, and wait for the others."""
    for future in waiting:
        if not future.cancel():
            future.result()
