"""Single instructions on 64-bit words: how many ones, and where the lowest is. Plain Python where nothing is compiled."""

from typing import Any

from numba import types
from numba.extending import intrinsic, overload


def popcount(word: Any) -> int:
    """The number of ones in a word."""
    return int(word).bit_count()


def lowest(word: Any) -> int:
    """The position of the lowest one in a word that has any."""
    return (int(word) & -int(word)).bit_length() - 1


@intrinsic  # type: ignore[untyped-decorator]
def _count_ones(_context: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _count_trailing_zeros(_context: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


@overload(popcount, strict=False)  # type: ignore[untyped-decorator]
def _compiled_popcount(word: Any) -> Any:
    return lambda word: _count_ones(word)


@overload(lowest, strict=False)  # type: ignore[untyped-decorator]
def _compiled_lowest(word: Any) -> Any:
    return lambda word: _count_trailing_zeros(word)
