"""The decorators that compile. Compiled code holds no interpreter lock, so threads run side by side.

`jit` is for functions that Python calls: kept on disk, compiled, for the next process. `part` is for functions that
only compiled ones call: they become part of these, and are optimised with them, all at once. `bare` parts are quicker
to call, and `inlined` ones, if called once, to compile. `separate` functions are for compiled ones, too, but are not
part of them: several processes can compile them side by side, and what is not called need not be compiled.

That takes more than numba promises (`internals.py`). A release that has changed these parts is met by what it does
promise (`plain.py`): slower, with the same answers. LEAFWISE_PLAIN_NUMBA=1 asks for that.
"""

import logging
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np

_config: Any = numba.config  # its published types leave out much
F = TypeVar("F", bound=Callable[..., Any])

_KNOWN = range(61, 69)  # numba 0.61 to 0.68, of which the first and the last were tried
# What changed parts may raise
_CHANGED = (
    *(ImportError, AttributeError, TypeError, ValueError, LookupError, NotImplementedError, RuntimeError),
    *(AssertionError, numba.core.errors.NumbaError),
)


class _Pair(NamedTuple):
    numbers: Any
    step: Any


def _works() -> bool:
    """Whether a function compiled by numba's private parts, out of a part, by a reference, gives what it should."""
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
    """Whether to keep to what numba promises."""
    if _config.DISABLE_JIT or os.environ.get("LEAFWISE_PLAIN_NUMBA") == "1":
        return True
    major, minor = map(int, numba.__version__.split(".")[:2])
    return not (major == 0 and minor in _KNOWN) and not _works()


chosen: Any = import_module(f"leafwise.kernels.compiling.{'plain' if _is_plain() else 'internals'}")


def jit(function: F) -> F:
    """Compile a function over plain arrays, when it is first called."""
    return cast(F, chosen.jit(function))


def part(function: F) -> F:
    """Compile a function into the compiled functions that call it."""
    return cast(F, chosen.part(function))


def bare(function: F) -> F:
    """A `part` that neither makes nor returns arrays: nothing counts references, which takes long in small steps."""
    return cast(F, chosen.bare(function))


def separate(function: F) -> F:
    """Compile a function alone, for compiled ones to call after it was made `ready`; they do not wait to be compiled.

    Its arguments are numbers, arrays and references, and it returns a number, or nothing.
    """
    return cast(F, chosen.separate(function))


def ready(*calls: tuple[Any, ...]) -> None:
    """Make functions ready to be called with such arguments: all separate ones, and others that there is time for.

    What is not on disk is compiled, by several processes.
    """
    chosen.ready(*calls)


def inlined(function: F) -> F:
    """Compile a function as if it were written where it is called: quicker to compile, if it is called in one place."""
    return cast(F, chosen.inlined(function))
