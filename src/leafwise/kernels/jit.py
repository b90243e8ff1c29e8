"""The decorators that compile. Compiled code holds no interpreter lock, so threads run side by side.

`jit` is for functions that Python calls: kept on disk, compiled, for the next process. `part` is for functions that
only compiled ones call: they become part of these, and are optimised with them, all at once. `bare` parts are quicker
to call, and `inlined` ones, if called once, to compile.
"""

import logging
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import codegen, compiler

F = TypeVar("F", bound=Callable[..., Any])

_compile: Any = numba.njit  # its published types leave out the options about wrappers,
_codegen: Any = codegen  # ... and these
_compiler: Any = compiler

# Kernels are made of parts from several files, so a change in any of them must make all of them anew. Left alone, numba
# looks only at the file of the kernel itself.
_SOURCES = sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.rglob("*.py")))).hexdigest()


def jit(function: F) -> F:
    """Compile a function over plain arrays, when it is first called."""
    try:
        compiled = _compile(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
    except RuntimeError as error:  # numba finds no place it may write to
        logging.getLogger(__name__).warning("%s: it is compiled again in every process", error)
        return cast(F, _compile(nogil=True, no_cfunc_wrapper=True)(function))
    if compiled is not function:  # with NUMBA_DISABLE_JIT it is
        compiled._cache._cache_file._version += _SOURCES  # what has another one is not even read
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
