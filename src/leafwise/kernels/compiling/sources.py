"""The disk cache of compiled kernels: a digest of their sources, listeners, and a warning if it cannot be written."""

import logging
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

# Kernels contain parts from several files, so a change in any file must invalidate all of them.
SOURCES = sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.parent.rglob("*.py")))).hexdigest()

_listeners: list[Callable[[], None]] = []


def when_compiling(tell: Callable[[], None]) -> None:
    """Call this once, when a function is not on disk and has to be compiled."""
    _listeners.append(tell)


def tell_all() -> None:
    """Call all listeners, once."""
    while _listeners:
        _listeners.pop()()


@cache
def warn_not_kept(reason: str) -> None:
    """Warn once that the next process will have to compile again."""
    logging.getLogger(__name__).warning(
        "compiled functions are not kept for the next process (%s): set NUMBA_CACHE_DIR to a folder with room.", reason
    )
