"""The one decorator that compiles: cached on disk, and free of the interpreter lock so that threads run side by side."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile a function over plain arrays; the compiled code is kept on disk for the next process."""
    return cast(F, numba.njit(cache=True, nogil=True)(function))
