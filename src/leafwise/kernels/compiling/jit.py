"""The decorators that compile. Compiled code holds no interpreter lock, so threads run side by side.

`jit` is for functions that Python calls: kept on disk, compiled, for the next process. `part` is for functions that
only compiled ones call: they become part of these, and are optimised with them, all at once. `bare` parts are quicker
to call, and `inlined` ones, if called once, to compile.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import codegen, compiler

from leafwise.kernels.compiling.cache import keep

F = TypeVar("F", bound=Callable[..., Any])

_compile: Any = numba.njit  # its published types leave out the options about wrappers,
_codegen: Any = codegen  # ... and these
_compiler: Any = compiler


def jit(function: F) -> F:
    """Compile a function over plain arrays, when it is first called."""
    compiled = _compile(nogil=True, no_cfunc_wrapper=True)(function)
    if compiled is not function:  # with NUMBA_DISABLE_JIT it is
        keep(compiled)
    return cast(F, compiled)


class _Draft(_codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of a part, as it is before it is optimised: left alone, numba would do that here and in every caller."""

    def _optimize_final_module(self) -> None:
        """Left to the caller."""

    def _finalize_final_module(self) -> None:
        self._finalized = True

    @property
    def codegen(self) -> "_Draft":
        """For numba's `get_executable`, which asks it to set the environment, and nothing else."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """What Python's ways in and out need. A part has none."""


class _PartCompiler(_compiler.Compiler):  # type: ignore[misc]
    def __init__(self, typing: Any, target: Any, _library: None, *others: Any) -> None:
        super().__init__(typing, target, _Draft(target.codegen(), "part"), *others)


_PART = {"nogil": True, "no_cfunc_wrapper": True, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}


def part(function: F) -> F:
    """Compile a function into the compiled functions that call it."""
    return cast(F, _compile(**_PART)(function))


def bare(function: F) -> F:
    """A `part` that neither makes nor returns arrays: nobody counts who holds which, as takes long in small steps."""
    return cast(F, _compile(**_PART, _nrt=False)(function))


def inlined(function: F) -> F:
    """Compile a function as if it were written where it is called: quicker to compile, if it is called in one place."""
    return cast(F, _compile(nogil=True, inline="always")(function))
