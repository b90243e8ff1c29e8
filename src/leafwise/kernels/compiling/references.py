"""Named tuples of arrays, handed to compiled functions as one address instead of hundreds of arguments.

A *reference* has the fields of its tuple; a field that is a named tuple again is a reference, too. Compiled code makes
one by `refer`: it lives as long as the function that made it, and so must the arrays: refer to arguments. Python makes
one by `Packed`, which holds the arrays. Without a compiler both are the tuple itself.
"""

from ctypes import addressof, c_char
from hashlib import sha256
from struct import Struct, calcsize
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import _dispatcher, extending, types
from numba.core import cgutils, imputils
from numba.core.registry import cpu_target
from numba.core.typing import templates

_extending: Any = extending  # numba's published types are for its users, and leave most of this out
_cgutils: Any = cgutils
_imputils: Any = imputils
_templates: Any = templates
_config: Any = numba.config
_typeof: Any = numba.typeof
_fingerprint: Any = _dispatcher.compute_fingerprint
_ADDRESS = ir.IntType(8).as_pointer()
_OFFSET = ir.IntType(64)


class Reference(types.Type):
    """The type of references to named tuples of some type."""

    def __init__(self, of: Any) -> None:
        self.of = of
        digest = sha256(str(of).encode()).hexdigest()  # the name is part of that of every function that takes one
        super().__init__(f"Reference({digest[:16]})")


@_extending.register_model(Reference)
class _Model(_extending.models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, type_: Any) -> None:
        super().__init__(manager, type_, _ADDRESS)


@_extending.infer_getattr
class _Fields(_templates.AttributeTemplate):  # type: ignore[misc]
    key = Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        if name not in reference.of.fields:
            return None
        field = reference.of.types[reference.of.fields.index(name)]
        return Reference(field) if isinstance(field, types.BaseNamedTuple) else field


_offsets: dict[tuple[str, int], int] = {}


def _offset(context: Any, reference: Any, index: int) -> int:
    """Where a field is, in bytes: the type of the tuple, written out wherever a field is asked for, takes long."""
    key = (reference.name, index)
    if key not in _offsets:
        kind, layout = context.get_value_type(reference.of), context.target_data
        if isinstance(kind, ir.ArrayType):  # all fields have the same type
            _offsets[key] = index * kind.element.get_abi_size(layout)
        else:
            _offsets[key] = kind.get_element_offset(layout, index)
    return _offsets[key]


def _field(context: Any, builder: Any, reference: Any, address: Any, name: str) -> Any:
    index = reference.of.fields.index(name)
    kind = reference.of.types[index]
    place = builder.gep(address, [_OFFSET(_offset(context, reference, index))])
    if isinstance(kind, types.BaseNamedTuple):
        return place
    place = builder.bitcast(place, context.get_value_type(kind).as_pointer())
    return _imputils.impl_ret_borrowed(context, builder, kind, builder.load(place))


_extending.lower_getattr_generic(Reference)(_field)


def _emit_refer(_context: Any, fields: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(_cgutils.alloca_once_value(builder, arguments[0]), _ADDRESS)

    def generate_nothing(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
        return arguments[0]

    if isinstance(fields, Reference):
        return fields(fields), generate_nothing
    return Reference(fields)(fields), generate


refer: Any = (lambda fields: fields) if _config.DISABLE_JIT else _extending.intrinsic(_emit_refer)
"""Make a reference to a named tuple."""


class _Packed:
    """A named tuple, laid out in memory as compiled code expects it behind a reference."""

    def __init__(self, fields: Any) -> None:
        self.fields = fields  # so that the arrays live
        self.kind, plan = _plan(fields)
        self._memory = bytearray(plan.size)
        plan.pack_into(self._memory, 0, *_words(fields))
        self.address = addressof((c_char * plan.size).from_buffer(self._memory))


Packed: Any = (lambda fields: fields) if _config.DISABLE_JIT else _Packed
"""A named tuple for compiled functions that take a reference."""

_plans: dict[bytes, tuple[Reference, Struct]] = {}


def _plan(fields: Any) -> tuple[Reference, Struct]:
    """The type of references to such a tuple, and how its words lie in memory."""
    key = _fingerprint(fields)  # of its type: it takes far longer to make the type itself
    if key not in _plans:
        kind = Reference(_typeof(fields))
        context, places = cpu_target.target_context, list[tuple[int, str]]()
        _lay_out(context, kind, 0, places)
        size = context.get_value_type(kind.of).get_abi_size(context.target_data)
        form, end = "=", 0
        for at, what in [*places, (size, "")]:
            form += f"{at - end}x{what}"
            end = at + calcsize("=" + what)
        _plans[key] = kind, Struct(form)
    return _plans[key]


def _lay_out(context: Any, reference: Any, at: int, places: list[tuple[int, str]]) -> None:
    """Where each field is, in the order of fields, and the format of its words."""
    for index, kind in enumerate(reference.of.types):
        place = at + _offset(context, reference, index)
        if isinstance(kind, types.BaseNamedTuple):
            _lay_out(context, Reference(kind), place, places)
        elif isinstance(kind, types.Array):
            places.append((place, f"{5 + 2 * kind.ndim}q"))
        else:
            places.append((place, {types.boolean: "?", types.int64: "q", types.float64: "d"}[kind]))


def _words(fields: Any) -> list[Any]:
    """All numbers that compiled code knows a tuple by; of an array: where it is, and its shape."""
    words: list[Any] = []
    for value in fields:
        if isinstance(value, np.ndarray):
            data = value.__array_interface__["data"][0]
            words += (0, 0, value.size, value.itemsize, data, *value.shape, *value.strides)
        elif isinstance(value, tuple):
            words += _words(value)
        else:
            words.append(value)
    return words


def _unbox(_kind: Any, packed: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(packed, "address")
    address = c.builder.inttoptr(c.pyapi.long_as_longlong(number), _ADDRESS)
    c.pyapi.decref(number)
    return _extending.NativeValue(address)


_extending.typeof_impl.register(_Packed)(lambda packed, _context: packed.kind)
_extending.unbox(Reference)(_unbox)
