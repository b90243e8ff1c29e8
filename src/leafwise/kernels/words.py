"""Single instructions on 64-bit words: how many ones, and where the lowest is. Without a compiler, plain Python."""

from typing import Any

from numba import types
from numba.extending import intrinsic, overload


def popcount(word: Any) -> int:
    """The number of ones in a word."""
    return int(word).bit_count()


def lowest(word: Any) -> int:
    """The position of the lowest one in a word that has any."""
    return (int(word) & -int(word)).bit_length() - 1


def _emit_ctpop(_context: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _emit_cttz(_context: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


_count_ones: Any = intrinsic(_emit_ctpop)
_count_trailing_zeros: Any = intrinsic(_emit_cttz)


@overload(popcount, strict=False)
def _compiled_popcount(word: Any) -> Any:
    return lambda word: _count_ones(word)


@overload(lowest, strict=False)
def _compiled_lowest(word: Any) -> Any:
    return lambda word: _count_trailing_zeros(word)
