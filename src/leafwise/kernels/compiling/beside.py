"""Other processes that compile functions, and keep them on disk, while this one compiles others."""

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

_MOST = 3  # processes: there is not more to do


@contextmanager
def helped(calls: Calls) -> Iterator[None]:
    """While this lasts, other processes take calls from the end, one by one; at the end, none is under way.

    If there are none to be had, or they fail, nothing is lost: who does not find a function compiles it.
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
    """Whether there is an interpreter to start: in frozen programs there is none."""
    return bool(sys.executable) and not getattr(sys, "frozen", False)


def _start() -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", __name__]  # not from the folder that it happens to be in
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, env=environment)


def taken(calls: Calls) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Calls from the front, while there are any; another thread takes from the end."""
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
    except (IndexError, OSError):  # another one took the last; it is gone
        pass


def main() -> None:
    """Compile what standard input asks for, and say so each time."""
    from leafwise.kernels.compiling.internals import dispatcher_of

    while True:
        module, name, kinds = pickle.load(sys.stdin.buffer)
        dispatcher_of(getattr(import_module(module), name)).compile(kinds)
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
