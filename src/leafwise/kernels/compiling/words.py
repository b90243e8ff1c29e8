"""Few instructions on 64-bit words: how many ones, where the lowest is, which of 64 codes are equal to one.

Without a compiler, plain Python.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload


def popcount(word: Any) -> int:
    """The number of ones in a word."""
    return int(word).bit_count()


def lowest(word: Any) -> int:
    """The position of the lowest one in a word that has any."""
    return (int(word) & -int(word)).bit_length() - 1


def which_equal(codes: Any, at: int, code: int) -> Any:
    """Of the 64 codes from `at` on, those that are equal to this one, as a word."""
    return np.packbits(codes[at : at + 64] == code, bitorder="little").view(np.uint64)[0]


def _emit_ctpop(_context: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _emit_cttz(_context: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


def _emit_equal(_context: Any, codes: Any, _at: Any, _code: Any) -> Any:
    if codes.layout != "C":
        return None  # the codes do not follow each other

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(codes)(context, builder, arguments[0])
        many = ir.VectorType(context.get_value_type(codes.dtype), 64)
        first = builder.gep(array.data, [arguments[1]])
        found = builder.load(builder.bitcast(first, many.as_pointer()), align=1)
        code = context.cast(builder, arguments[2], signature.args[2], codes.dtype)
        one = builder.insert_element(ir.Constant(many, ir.Undefined), code, ir.IntType(32)(0))
        places = ir.Constant(ir.VectorType(ir.IntType(32), 64), None)
        all_ = builder.shuffle_vector(one, ir.Constant(many, ir.Undefined), places)
        return builder.bitcast(builder.icmp_unsigned("==", found, all_), ir.IntType(64))

    return types.uint64(codes, types.intp, types.int64), generate


_equal: Any = intrinsic(_emit_equal)
_count_ones: Any = intrinsic(_emit_ctpop)
_count_trailing_zeros: Any = intrinsic(_emit_cttz)


@overload(popcount, strict=False)
def _compiled_popcount(word: Any) -> Any:
    return lambda word: _count_ones(word)


@overload(lowest, strict=False)
def _compiled_lowest(word: Any) -> Any:
    return lambda word: _count_trailing_zeros(word)


@overload(which_equal, strict=False)
def _compiled_which_equal(codes: Any, at: Any, code: Any) -> Any:
    return lambda codes, at, code: _equal(codes, at, code)
