"""Instructions on 64-bit words: population count, lowest set bit, comparison of 64 codes, bit-sliced sums; and a no-op.

Rows of bits are added in 512 positions at once, as bit-sliced sums: bit k of the sum at position b of word w is bit b
of sums[8 k + w]. Sums have eight bits, so after at most MOST_ROWS rows they must be added to wider counts (`add_sums`).

Without a compiler, plain Python.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

MOST_ROWS = 248  # a multiple of eight


def popcount(word: Any) -> int:
    """Return the number of ones in a word."""
    return int(word).bit_count()


def lowest(word: Any) -> int:
    """Return the position of the lowest one in a word; 64 if there is none."""
    return (int(word) & -int(word) or 1 << 64).bit_length() - 1


def without_lowest(word: Any) -> Any:
    """Return the word without its lowest one, if it has any."""
    return np.uint64(int(word) & max(int(word) - 1, 0))


def which_equal(codes: Any, at: int, code: int) -> Any:
    """Return a word of bits: which of the 64 codes from `at` on equal `code`."""
    return np.packbits(codes[at : at + 64] == code, bitorder="little").view(np.uint64)[0]


def add_eight(data: Any, rows: Any, at: int, width: int, word: int, sums: Any) -> None:
    """Add eight rows of `data`, of `width` words each, to the sums: words `word` to word + 7 of rows[at:at + 8]."""
    for row in rows[at : at + 8].tolist():
        carry = data[row * width + word : row * width + word + 8].copy()
        for k in range(0, 64, 8):
            sums[k : k + 8], carry = sums[k : k + 8] ^ carry, sums[k : k + 8] & carry


def add_sums(sums: Any, counts: Any, at: int) -> None:
    """Add the sums to the 512 counts from `at` on, and reset them to zero."""
    for k in range(8):
        ones = np.unpackbits(sums[8 * k : 8 * k + 8].view(np.uint8), bitorder="little")
        counts[at : at + 512] += ones.astype(np.int32) << k
    sums[:] = 0


def one_by_one() -> None:
    """In a loop that looks values up: look up one after the other.

    There are instructions for several at once, which compilers like; most processors take several times as long.
    """


def _emit_nothing(_context: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, _arguments: Any) -> Any:
        builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)  # no loop with this in it is made a wide one
        return context.get_dummy_value()

    return types.none(), generate


def _emit_ctpop(_context: Any, _word: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


def _emit_cttz(_context: Any, _word: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return types.int64(types.uint64), generate


def _emit_equal(_context: Any, codes: Any, _at: Any, _code: Any) -> Any:
    if codes.layout != "C":
        return None  # the codes are not contiguous

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


_WORD = ir.IntType(64)
_WORDS = ir.VectorType(_WORD, 8)


def _start_of(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    return context.make_array(kind)(context, builder, array).data


def _place(builder: Any, start: Any, at: Any, kind: Any) -> Any:
    """Return a pointer of this type to an array's entry; `at` is a constant or an LLVM value."""
    return builder.bitcast(builder.gep(start, [_WORD(at) if isinstance(at, int) else at]), kind.as_pointer())


def _carry(builder: Any, a: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """Add three bits in all positions; return the carry and the sum."""
    either = builder.xor(a, b)
    return builder.or_(builder.and_(a, b), builder.and_(either, c)), builder.xor(either, c)


def _emit_add_eight(_context: Any, data: Any, rows: Any, _at: Any, _width: Any, _word: Any, sums: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        words, listed, at, width, word, totals = arguments
        words, totals = _start_of(context, builder, data, words), _start_of(context, builder, sums, totals)
        listed, row = _start_of(context, builder, rows, listed), []
        for k in range(8):
            number = builder.load(builder.gep(listed, [builder.add(at, _WORD(k))]))
            begin = builder.add(builder.mul(builder.sext(number, _WORD), width), word)
            row.append(builder.load(_place(builder, words, begin, _WORDS), align=8))
        places = [_place(builder, totals, 8 * k, _WORDS) for k in range(8)]
        ones, twos, fours, *more = (builder.load(place, align=8) for place in places)
        by_four = []
        for k in (0, 4):
            first, ones = _carry(builder, ones, row[k], row[k + 1])
            second, ones = _carry(builder, ones, row[k + 2], row[k + 3])
            four, twos = _carry(builder, twos, first, second)
            by_four.append(four)
        carry, fours = _carry(builder, fours, *by_four)
        new = [ones, twos, fours]
        for total in more:
            new.append(builder.xor(total, carry))
            carry = builder.and_(total, carry)
        for place, total in zip(places, new, strict=True):
            builder.store(total, place, align=8)
        return context.get_dummy_value()

    return types.void(data, rows, types.int64, types.int64, types.int64, sums), generate


def _emit_add_sums(_context: Any, sums: Any, counts: Any, _at: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        totals, out = (_start_of(context, builder, *pair) for pair in zip((sums, counts), arguments[:2], strict=True))
        bits, bytes_, numbers = (ir.VectorType(ir.IntType(n), 64) for n in (1, 8, 32))
        for word in range(8):
            total = ir.Constant(bytes_, [0] * 64)
            for k in range(8):
                ones = builder.bitcast(builder.load(builder.gep(totals, [_WORD(8 * k + word)])), bits)
                total = builder.add(total, builder.select(ones, bytes_([1 << k] * 64), bytes_([0] * 64)))
            place = _place(builder, out, builder.add(arguments[2], _WORD(64 * word)), numbers)
            builder.store(builder.add(builder.load(place, align=4), builder.zext(total, numbers)), place, align=4)
        for k in range(8):
            builder.store(_WORDS([0] * 8), _place(builder, totals, 8 * k, _WORDS), align=8)
        return context.get_dummy_value()

    return types.void(sums, counts, types.int64), generate


_equal: Any = intrinsic(_emit_equal)
_add_eight: Any = intrinsic(_emit_add_eight)
_add_sums: Any = intrinsic(_emit_add_sums)
_nothing: Any = intrinsic(_emit_nothing)
_count_ones: Any = intrinsic(_emit_ctpop)
_count_trailing_zeros: Any = intrinsic(_emit_cttz)


@overload(popcount, strict=False)
def _compiled_popcount(word: Any) -> Any:
    return lambda word: _count_ones(word)


@overload(lowest, strict=False)
def _compiled_lowest(word: Any) -> Any:
    return lambda word: _count_trailing_zeros(word)


@overload(without_lowest, strict=False)
def _compiled_without_lowest(word: Any) -> Any:
    return lambda word: word & (word - np.uint64(1))


@overload(which_equal, strict=False)
def _compiled_which_equal(codes: Any, at: Any, code: Any) -> Any:
    return lambda codes, at, code: _equal(codes, at, code)


@overload(add_eight, strict=False)
def _compiled_add_eight(data: Any, rows: Any, at: Any, width: Any, word: Any, sums: Any) -> Any:
    return lambda data, rows, at, width, word, sums: _add_eight(data, rows, at, width, word, sums)


@overload(add_sums, strict=False)
def _compiled_add_sums(sums: Any, counts: Any, at: Any) -> Any:
    return lambda sums, counts, at: _add_sums(sums, counts, at)


@overload(one_by_one, strict=False)
def _compiled_one_by_one() -> Any:
    return lambda: _nothing()
