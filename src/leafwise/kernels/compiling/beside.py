"""Helper processes that compile functions, and keep them on disk, while this process compiles others."""

import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread
from typing import Any

from leafwise.machine import n_cores

Calls = deque[tuple[Any, tuple[Any, ...]]]  # functions, and the types of their arguments

_MOST = 3  # helper processes; there is no work for more


@contextmanager
def helped(calls: Calls) -> Iterator[None]:
    """Have helper processes take calls from the end of the queue, one by one; on exit, none is in progress.

    If they cannot be started, or fail, nothing is lost: a function that is not on disk is compiled when it is needed.
    """
    children: list[subprocess.Popen[bytes]] = []
    feeders: list[Thread] = []
    try:
        with suppress(OSError):
            for _ in range(min(_MOST, n_cores() - 1, len(calls) - 1) if _can_start() else 0):
                children.append(_start())
                feeders.append(Thread(target=_feed, args=(children[-1], calls)))
                feeders[-1].start()
        yield
        for feeder in feeders:
            feeder.join()
    finally:
        for child in children:
            child.kill()
        for feeder in filter(Thread.is_alive, feeders):
            feeder.join()
        for child in children:
            child.communicate()


def _can_start() -> bool:
    """Return whether there is an interpreter to start; in frozen programs there is none."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", __name__]  # -P: modules in the current folder are not imported
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, env=environment)


def taken(calls: Calls) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield calls from the front of the queue until it is empty; other threads take from its end."""
    while True:
        try:
            yield calls.popleft()
        except IndexError:
            return


def _feed(child: subprocess.Popen[bytes], calls: Calls) -> None:
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        while calls:
            function, kinds = calls.pop()
            pickle.dump((function.__module__, function.__name__, kinds), child.stdin)
            child.stdin.flush()
            if not child.stdout.readline():
                return
    except (IndexError, OSError):  # another thread took the last call; the process is gone
        pass


def main() -> None:
    """Compile the functions named on standard input, and confirm each with a line."""
    from leafwise.kernels.compiling.internals import dispatcher_of

    while True:
        module, name, kinds = pickle.load(sys.stdin.buffer)
        dispatcher_of(getattr(import_module(module), name)).compile(kinds)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
