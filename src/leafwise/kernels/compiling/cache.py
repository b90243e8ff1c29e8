"""Compiled kernels on disk, for the next process: a file that is damaged, or cannot be used, is as good as none.

Left alone, numba takes whatever its files hold, and gives up when a disk is full. Here every file ends in a digest of
what is before it; and each kernel has a file of its own, written before it is listed, so that two processes that
compile at the same time do not take each other's.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

from numba.core import caching

_caching: Any = caching  # it has no published types

# Kernels are made of parts from several files, so a change in any of them must make all of them anew. Left alone, numba
# looks only at the file of the kernel itself.
_SOURCES = sha256(
    b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.parent.rglob("*.py")))
).hexdigest()


class _Files(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """The files of one kernel: a list, and the code for each kind of arguments."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._base = filename_base
        self._version += _SOURCES  # what has another one is not even read

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for one kind of arguments."""
        name = f"{self._base}.{sha256(repr(key[:2]).encode()).hexdigest()[:16]}.nbc"  # by arguments and processor
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        return super()._load_data(name) if _is_whole(self._data_path(name)) else None

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[BytesIO]:
        with super()._open_for_write(path) as file:
            content = BytesIO()
            yield content
            file.write(content.getvalue() + _digest(content.getvalue()))


def _is_whole(path: str) -> bool:
    """Whether a file is there and ends in the digest of what is before it."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    return _digest(data[:-32]) == data[-32:]


def _digest(data: bytes) -> bytes:
    return sha256(_SOURCES.encode() + data).digest()


_listeners: list[Callable[[], None]] = []


def when_compiling(tell: Callable[[], None]) -> None:
    """Call this once, when a function is not on disk and has to be compiled."""
    _listeners.append(tell)


class _Cache(_caching.FunctionCache):  # type: ignore[misc]
    """The compiled code of one function."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = super().load_overload(sig, target_context)
        while found is None and _listeners:
            _listeners.pop()()
        return found

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            _warn(str(error))


def keep(dispatcher: Any) -> None:
    """Let a compiled function be looked for on disk before it is compiled, and be kept there afterwards."""
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
    except RuntimeError:  # numba finds no place it may write to
        _warn("there is no folder for them that can be written to")


@cache
def _warn(reason: str) -> None:
    logging.getLogger(__name__).warning(
        "compiled functions are not kept for the next process (%s): set NUMBA_CACHE_DIR to a folder with room.", reason
    )
