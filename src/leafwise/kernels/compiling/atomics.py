"""Atomic operations on 64-bit integers, and spin locks, for threads in compiled code; without a compiler, under a lock.

All operations are sequentially consistent. A *lock* is one integer of an array: 0 is unlocked, 1 is locked.
"""

import os
import time
from threading import Lock
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from leafwise.kernels.compiling.jit import bare
from leafwise.kernels.compiling.types import Array, Int

_ONE_AT_A_TIME = Lock()


def atomic_load(array: Array, at: int) -> int:
    """Return array[at] (atomic load)."""
    return int(array[at])


def atomic_add(array: Array, at: int, value: Int) -> int:
    """Add to array[at]; return the previous value (atomic fetch and add)."""
    with _ONE_AT_A_TIME:
        before = int(array[at])
        array[at] = before + value
    return before


def atomic_exchange(array: Array, at: int, value: Int) -> int:
    """Store a value in array[at]; return the previous value (atomic exchange)."""
    with _ONE_AT_A_TIME:
        before = int(array[at])
        array[at] = value
    return before


def yield_thread() -> None:
    """Yield the processor to other threads."""
    time.sleep(0)


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


def _emit_load(_context: Any, array: Any, _at: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_pointer(context, builder, signature, arguments), "seq_cst", 8)

    return types.int64(array, types.intp), generate


def _emitter(instruction: str) -> Any:
    def emit(_context: Any, array: Any, _at: Any, _value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer = _pointer(context, builder, signature, arguments)
            return builder.atomic_rmw(instruction, pointer, arguments[2], "seq_cst")

        return types.int64(array, types.intp, types.int64), generate

    return intrinsic(emit)


_load: Any = intrinsic(_emit_load)
_add, _exchange = _emitter("add"), _emitter("xchg")
_yield: Any = types.ExternalFunction("sched_yield" if os.name == "posix" else "SwitchToThread", types.int32())


@overload(atomic_load, strict=False)
def _compiled_load(array: Any, at: Any) -> Any:
    return lambda array, at: _load(array, at)


@overload(atomic_add, strict=False)
def _compiled_add(array: Any, at: Any, value: Any) -> Any:
    return lambda array, at, value: _add(array, at, value)


@overload(atomic_exchange, strict=False)
def _compiled_exchange(array: Any, at: Any, value: Any) -> Any:
    return lambda array, at, value: _exchange(array, at, value)


@overload(yield_thread, strict=False)
def _compiled_yield() -> Any:
    def yield_() -> None:
        _yield()

    return yield_


@bare
def lock(locks: Array, which: int) -> None:
    """Acquire a lock: spin until it is unlocked, yielding to other threads."""
    while atomic_exchange(locks, which, np.int64(1)) != 0:
        yield_thread()


@bare
def unlock(locks: Array, which: int) -> None:
    """Release a lock."""
    atomic_exchange(locks, which, np.int64(0))
