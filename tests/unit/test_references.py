"""References to named tuples: the same fields, compiled or not, and what is written through them is there."""

import gc
from copy import copy
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from leafwise.data.table import Table, Variable
from leafwise.kernels.compiling import internals, jit, plain
from leafwise.kernels.compiling.references import refer
from leafwise.kernels.counting import sets


class Inner(NamedTuple):
    first: Any
    second: Any


class Outer(NamedTuple):
    inner: Inner
    table: Any
    share: float
    is_on: bool
    is_off: bool


@jit.bare
def total(outer, k):
    n = outer.share + outer.inner.first[k] + outer.inner.second[k] + outer.table[k, 1]
    outer.inner.first[k] += 1
    return n + 100.0 * outer.is_on + 1000.0 * outer.is_off


@numba.njit
def totals(outer, out):
    reference = refer(outer)
    for k in range(len(out)):
        out[k] = total(reference, k)


@pytest.mark.parametrize("dtype", [np.int64, np.float64])  # of fields that are all of one type, or not
def test_fields_of_fields_and_what_is_written(dtype):
    first = np.arange(4)
    outer = Outer(Inner(first, np.full(4, 10, dtype)), np.arange(8).reshape(4, 2) * 0.5, 0.25, True, False)
    out = np.zeros(4)
    totals(outer, out)
    assert out.tolist() == [0.25 + k + 10 + (2 * k + 1) * 0.5 + 100 for k in range(4)]
    assert first.tolist() == [1, 2, 3, 4]


@pytest.mark.skipif(jit.chosen is not internals, reason="nothing is compiled, or by plain numba")
def test_parts_are_not_compiled_on_their_own():
    """Else each would be optimised again in every caller; numba's way to do that has no name that it promises."""
    from leafwise.counters.cpu import CpuCounter
    from leafwise.workers import Workers

    table = Table((Variable("a", ("0", "1")),), np.zeros((1, 70), np.uint8))
    counter = CpuCounter(table, Workers(1))
    counter.cut_sets(np.array([0]), np.array([0]), np.array([2]), np.array([0, 1]))
    libraries = [compiled.library for compiled in sets.takes_mask.overloads.values()]
    assert all(isinstance(library, internals._Draft) for library in libraries)
    assert all(library._compiled_object is None for library in libraries if library._object_caching_enabled)


@pytest.mark.skipif(jit.chosen is not internals, reason="nothing is compiled, or by plain numba")
def test_compiling_leaves_python_and_numba_as_they_were():
    """What it changes for a while would change how others' functions are compiled, and the collection of garbage."""

    def fails(k):
        return k + "a text"

    usual = gc.get_threshold()
    gc.set_threshold(701, 11, 12)
    try:
        assert internals._as_kernel(lambda k: k + 1)(1) == 2
        with pytest.raises(numba.TypingError):
            internals._as_kernel(fails)(1)
        assert gc.get_threshold() == (701, 11, 12)
    finally:
        gc.set_threshold(*usual)
    assert not [name for owner, name, value in internals._changes if getattr(owner, name) is value]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_what_is_like_another_is_laid_out_as_if_it_were_not():
    outer = Outer(Inner(np.arange(4), np.ones(4)), np.ones((4, 2)), 0.25, True, False)
    before, read_only, none = internals.Packed(outer), np.arange(5.0), np.zeros(0)
    read_only.flags.writeable = False
    others = (
        outer._replace(share=0.5, is_off=True),
        outer._replace(inner=Inner(np.arange(9), none)),
        outer._replace(table=np.ones((3, 3))),
        outer._replace(table=np.ones((6, 4))[::2, 1:3]),  # not in one piece
        outer._replace(inner=Inner(np.arange(4.0), read_only)),  # of other types
    )
    for fields in others:
        alone, like = internals.Packed(fields), internals.Packed(fields, before)
        assert (alone.kind, alone._memory) == (like.kind, like._memory)


@pytest.mark.parametrize("how", [plain, jit.chosen])
def test_another_has_arrays_of_its_own(how):
    first = np.arange(4)
    packed = how.Packed(Outer(Inner(first, np.zeros(4)), np.zeros((4, 2)), 0.25, False, False))
    one, other = how.another(packed), how.another(packed)
    out = np.zeros(4)
    for due, own in enumerate((one, one, other, packed)):
        totals(own, out)  # which adds one to all
        assert out.tolist() == [0.25 + k + (due == 1) for k in range(4)]
    assert first.tolist() == [1, 2, 3, 4]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_functions_that_are_compiled_later_can_be_copied():
    later = internals.part(lambda x: x + 1)
    assert copy(later).__wrapped__ is later.__wrapped__
    assert "dispatcher" not in vars(later)  # nobody has needed it


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_fields_are_where_llvm_has_them():
    class Flags(NamedTuple):
        is_on: bool
        is_off: bool

    class Mixed(NamedTuple):
        is_first: bool
        n: int
        flags: Flags
        pairs: Any
        outer: Outer
        is_last: bool

    outer = Outer(Inner(np.arange(4), np.ones(4)), np.ones((4, 2)), 0.25, True, False)
    mixed = Mixed(True, 1, Flags(True, False), np.ones((2, 2, 2)), outer, False)
    context = numba.core.registry.cpu_target.target_context
    for fields in (mixed, outer, outer.inner):
        kind = context.get_value_type(numba.typeof(fields))
        place = internals._place(internals.Reference(numba.typeof(fields)))
        assert place.size == kind.get_abi_size(context.target_data)
        offsets = [kind.get_element_offset(context.target_data, k) for k in range(len(fields))]
        assert place.offsets == tuple(offsets)
