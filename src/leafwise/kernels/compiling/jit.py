"""Decorators that compile functions. Compiled code releases the interpreter lock, so threads run in parallel.

`jit` is for functions that Python calls; their code is kept on disk for the next process. `part` is for functions that
only compiled functions call: they are linked into these, and optimised with them as a whole. `bare` parts are quicker
to call, and `inlined` ones, if called once, quicker to compile. `separate` functions are called by compiled functions,
too, but are not part of them: several processes can compile them in parallel, and those that are not called need not be
compiled.

This relies on private parts of numba (`internals.py`). If a release has changed these, only its public interface is
used (`plain.py`): slower, with the same results. LEAFWISE_PLAIN_NUMBA=1 selects that.
"""

import logging
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

_config: Any = numba.config  # its published types are incomplete
F = TypeVar("F", bound=Callable[..., Any])

_KNOWN = range(61, 69)  # numba 0.61 to 0.68, of which the first and the last were tested
# Exceptions that changed private parts may raise
_CHANGED = (
    *(ImportError, AttributeError, TypeError, ValueError, LookupError, NotImplementedError, RuntimeError),
    *(AssertionError, numba.core.errors.NumbaError),
)


class _Pair(NamedTuple):
    numbers: Any
    step: Any


def _works() -> bool:
    """Return whether a kernel with a part, a separate function and a reference compiles and works."""
    try:
        from leafwise.kernels.compiling import internals

        @internals.bare
        def add(pair: Any, k: int) -> Any:
            pair.numbers[k] += pair.step
            return pair.numbers[k]

        @internals.separate
        def double(pair: Any, k: int) -> int:
            return 2 * pair.numbers[k]

        @internals.jit
        def total(pair: Any) -> Any:
            pair = internals.refer(pair)
            return add(pair, 0) + add(pair, 2) + double(pair, 1)

        pair = _Pair(np.arange(3), np.int64(5))
        internals.ready((double, internals.Packed(pair), 1))
        return bool(total(pair) == 14 and total(internals.Packed(pair)) == 24)
    except _CHANGED as error:
        logging.getLogger(__name__).warning(
            "numba %s has changed inside (%s): kernels are compiled in a slower way.", numba.__version__, error
        )
        return False


def _is_plain() -> bool:
    """Return whether to use only the public interface of numba."""
    if _config.DISABLE_JIT or os.environ.get("LEAFWISE_PLAIN_NUMBA") == "1":
        return True
    major, minor = map(int, numba.__version__.split(".")[:2])
    return not (major == 0 and minor in _KNOWN) and not _works()


chosen: Any = import_module(f"leafwise.kernels.compiling.{'plain' if _is_plain() else 'internals'}")


def jit(function: F) -> F:
    """Compile a function over plain arrays when it is first called."""
    return cast(F, chosen.jit(function))


def part(function: F) -> F:
    """Compile a function into the compiled functions that call it."""
    return cast(F, chosen.part(function))


def bare(function: F) -> F:
    """Compile a `part` that neither creates nor returns arrays, and so needs no reference counts, which take time."""
    return cast(F, chosen.bare(function))


def separate(function: F) -> F:
    """Compile a function on its own, for compiled functions to call after it was made `ready`.

    Callers can be compiled before it. Its arguments are numbers, arrays and references; it returns a number or nothing.
    """
    return cast(F, chosen.separate(function))


def ready(*calls: tuple[Any, ...]) -> None:
    """Make functions ready to be called with such arguments: all separate ones, and others that there is time for.

    Each call is a function followed by example arguments. What is not on disk is compiled, by several processes.
    """
    chosen.ready(*calls)


def inlined(function: F) -> F:
    """Compile a function as if it were written where it is called: quicker to compile, if it is called in one place."""
    return cast(F, chosen.inlined(function))
