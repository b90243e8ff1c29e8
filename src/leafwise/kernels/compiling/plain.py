"""Fallback for `internals.py` that uses only numba's public interface: slower to compile and to call, same results.

Every function is compiled and optimised on its own, and again in its callers; named tuples are passed as they are.
"""

from collections.abc import Callable
from copy import copy
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numba

from leafwise.kernels.compiling.sources import SOURCES, warn_not_kept

_config: Any = numba.config
_compile: Any = numba.njit


@cache
def _folder() -> str | None:
    """Return the cache folder for exactly these sources; None if it cannot be written to."""
    folder = Path(_config.CACHE_DIR or Path(__file__).parent / "__pycache__") / f"plain-{SOURCES[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=folder).close()
    except OSError as error:
        warn_not_kept(str(error))
        return None
    return str(folder)


def jit(function: Callable[..., Any]) -> Any:
    """Compile a function for Python to call, and keep it on disk."""
    if _config.DISABLE_JIT or _folder() is None:
        return _compile(nogil=True)(function)
    before, _config.CACHE_DIR = _config.CACHE_DIR, _folder()  # numba reads it once, in the next statement
    try:
        return _compile(nogil=True, cache=True)(function)
    finally:
        _config.CACHE_DIR = before


def part(function: Callable[..., Any]) -> Any:
    """Compile a function for compiled functions to call."""
    return _compile(nogil=True)(function)


bare = separate = part


def inlined(function: Callable[..., Any]) -> Any:
    """Inline a function where it is called."""
    return _compile(nogil=True, inline="always")(function)


def ready(*_calls: tuple[Any, ...]) -> None:
    """Do nothing: functions are compiled with those that call them."""


@part
def refer(fields: Any) -> Any:
    """Return the named tuple itself."""
    return fields


def Packed(fields: Any, _like: Any = None) -> Any:
    """Return the named tuple itself."""
    return fields


def another(fields: Any) -> Any:
    """Return the same tuple with copies of all arrays."""
    copies = (another(part) if isinstance(part, tuple) else copy(part) for part in fields)
    return type(fields)(*copies)
