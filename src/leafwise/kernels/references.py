"""Named tuples of arrays, handed to compiled functions as one address instead of hundreds of arguments.

A *reference* has the fields of its tuple; a field that is a named tuple again is a reference, too. It lives as long as
the function that made it, and so must the arrays: refer to what came as an argument. Without a compiler it is the tuple
itself.
"""

from typing import Any

import numba
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils, imputils
from numba.core.typing import templates

_extending: Any = extending  # numba's published types are for its users, and leave most of this out
_cgutils: Any = cgutils
_imputils: Any = imputils
_templates: Any = templates
_config: Any = numba.config
_ADDRESS = ir.IntType(8).as_pointer()


class Reference(types.Type):
    """The type of references to named tuples of some type."""

    def __init__(self, of: Any) -> None:
        self.of = of
        super().__init__(f"Reference({of})")


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


def _field(context: Any, builder: Any, reference: Any, address: Any, name: str) -> Any:
    of, index = reference.of, reference.of.fields.index(name)
    place = builder.bitcast(address, context.get_value_type(of).as_pointer())
    place = _cgutils.gep_inbounds(builder, place, 0, index)
    if isinstance(of.types[index], types.BaseNamedTuple):
        return builder.bitcast(place, _ADDRESS)
    return _imputils.impl_ret_borrowed(context, builder, of.types[index], builder.load(place))


_extending.lower_getattr_generic(Reference)(_field)


def _emit_refer(_context: Any, fields: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(_cgutils.alloca_once_value(builder, arguments[0]), _ADDRESS)

    return Reference(fields)(fields), generate


refer: Any = (lambda fields: fields) if _config.DISABLE_JIT else _extending.intrinsic(_emit_refer)
"""Make a reference to a named tuple."""
