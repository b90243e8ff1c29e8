"""All uses of numba's private parts. They may change without notice, so `jit.py` can do without this module.

*Parts*: the code of functions that only compiled functions call is linked and optimised once, in the kernel, and
resolved types are reused between functions. *Separate functions* are called through an address that is filled in when
they are ready, so that other processes can compile them meanwhile. *Files*: numba trusts the contents of its cache
files, checks for changes only in the file of the kernel itself, and fails when a disk is full. Here every file ends in
a digest of its contents; and each kernel has a file of its own, written before it is listed in the index, so that two
processes that compile at the same time do not mix up their files. *References*: named tuples of arrays, passed to
compiled functions as one address instead of hundreds of arguments.
"""

import gc
import inspect
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from copy import copy
from ctypes import addressof, c_char, c_void_p
from functools import cached_property, update_wrapper
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from struct import Struct, calcsize
from threading import Lock
from types import FunctionType
from typing import Any, NamedTuple, get_type_hints

import llvmlite.binding
import numba
import numpy as np
from llvmlite import ir
from numba import _dispatcher, extending, types
from numba.core import (
    caching,
    cgutils,
    codegen,
    compiler,
    compiler_machinery,
    errors,
    imputils,
    postproc,
    ssa,
    transforms,
    typed_passes,
    typing,
    untyped_passes,
)
from numba.core import ir as ir_
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.typing import templates

from leafwise.kernels.compiling.beside import helped, taken
from leafwise.kernels.compiling.sources import SOURCES, tell_all, warn_not_kept

_caching: Any = caching  # numba's published types do not cover these modules
_cgutils: Any = cgutils
_codegen: Any = codegen
_compile: Any = numba.njit
_compiler: Any = compiler
_compiler_machinery: Any = compiler_machinery
_extending: Any = extending
_fingerprint: Any = _dispatcher.compute_fingerprint
_imputils: Any = imputils
_postproc: Any = postproc
_ssa: Any = ssa
_transforms: Any = transforms
_templates: Any = templates
_typeof: Any = numba.typeof
_typed_passes: Any = typed_passes
_types: Any = types
_typing: Any = typing
_untyped_passes: Any = untyped_passes
_ADDRESS = ir.IntType(8).as_pointer()
_OFFSET = ir.IntType(64)
_SCALARS = {types.boolean: "?", types.int64: "q", types.float64: "d"}


# Parts


class _Draft(_codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of a part alone, neither linked nor optimised; numba would do both, here and in each caller."""

    def _optimize_functions(self, module: Any) -> None:
        """Do nothing: the kernel is optimised as a whole."""

    def finalize(self) -> None:
        """Do nothing: the kernel is linked as a whole."""
        self._finalized = True

    @property
    def codegen(self) -> "_Draft":
        """Return an object for numba's `get_executable`, which only calls its `set_env`."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing: only entry points from Python need an environment, and a part has none."""


class _Whole(_codegen.JITCodeLibrary):  # type: ignore[misc]
    """The code of a kernel, with that of all its parts."""

    def _optimize_functions(self, module: Any) -> None:
        """Do nothing: the module is optimised after linking."""

    def finalize(self) -> None:
        for library in self._linking_libraries:  # which grows in the loop
            if isinstance(library, _Draft):
                self._linking_libraries += [x for x in library._linking_libraries if x not in self._linking_libraries]
        super().finalize()

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvmlite.binding.Linkage.linkonce_odr:
                function.linkage = "internal"  # not called from elsewhere, so a single call is inlined
        for variable in self._final_module.global_variables:
            if variable.linkage == llvmlite.binding.Linkage.common:  # environments: loading one loads its module
                variable.linkage = "linkonce_any"  # so that unreferenced ones are removed
        managed = self._codegen._module_pass_manager()  # numba 0.61: the passes alone; later: with their options
        passes, *options = managed if isinstance(managed, tuple) else (managed,)
        passes.run(self._final_module, *options)


_resolve: Any = types.Function.get_call_type
_resolved: dict[Any, Any] = {}


def _resolve_once(function: Any, context: Any, arguments: Any, named: Any) -> Any:
    """Return the type of a call of a built-in function, memoized; numba tries dozens of templates for every sum."""
    if named:
        return _resolve(function, context, arguments, named)
    key = function, tuple(arguments)
    if key not in _resolved:
        try:
            _resolved[key] = _resolve(function, context, arguments, named)
        except errors.TypingError as error:
            _resolved[key] = error.with_traceback(None)
    if isinstance(_resolved[key], errors.TypingError):
        raise errors.TypingError(str(_resolved[key]))
    return _resolved[key]


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Temporarily replace an attribute of a class or module."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        delattr(owner, name) if before is None else setattr(owner, name, before)


@_compiler_machinery.register_pass(mutates_CFG=True, analysis_only=False)
class _Inlining(_untyped_passes.InlineInlinables):  # type: ignore[misc]
    """Inline functions where they are called; unmodified, numba copies each twice, and all its variables each time."""

    _name = "leafwise_inlining"

    def run_pass(self, state: Any) -> Any:
        with _replaced(ir_.Block, "__deepcopy__", lambda block, _memo: block):
            return super().run_pass(state)


# The passes of numba that our functions need: they have no closures, no array expressions, nothing to unroll.
_PASSES = (
    _untyped_passes.TranslateByteCode,
    _untyped_passes.FixupArgs,
    _untyped_passes.IRProcessing,
    _untyped_passes.RewriteSemanticConstants,
    _untyped_passes.GenericRewrites,
    _Inlining,
    _untyped_passes.DeadBranchPrune,
    _untyped_passes.ReconstructSSA,
    _typed_passes.NopythonTypeInference,
    _typed_passes.PreLowerStripPhis,
    _typed_passes.IRLegalization,
    _typed_passes.AnnotateTypes,
    _typed_passes.NativeLowering,
    _typed_passes.NoPythonBackend,
)


def _compiler_into(kind: Any) -> Any:
    """Return a compiler class whose code goes into a library of this kind."""

    class Compiler(_compiler.Compiler):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, _library: None, *others: Any) -> None:
            library = kind(target.codegen(), "leafwise")
            library.enable_object_caching()
            super().__init__(typing, target, library, *others)

        def define_pipelines(self) -> Any:
            passes = _compiler_machinery.PassManager("leafwise")
            for kind in _PASSES:
                passes.add_pass(kind, kind.name())
            passes.finalize()
            return [passes]

        def compile_extra(self, function: Any) -> Any:
            if types.Function.get_call_type is _resolve_once:  # a caller is being compiled
                return super().compile_extra(function)
            with ExitStack() as lasts:
                for change in _changes:
                    lasts.enter_context(_replaced(*change))
                lasts.enter_context(_seldom_collecting())
                return _call_with_room(super().compile_extra, function)

    return Compiler


class _Silent:
    """Null logger, in place of one that receives a message for every statement and variable."""

    def debug(self, *_of: object) -> None:
        """Do nothing."""


def _note_lifetimes(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """Compute lifetimes of variables lazily.

    Numba computes them after every pass; before the last pass only generators need them.
    """
    ir, post_process = self.func_ir, _post_process
    if emit_dels or ir.is_generator:
        return post_process(self, emit_dels, extend_lifetimes)
    ir.blocks, ir.generator_info = _transforms.canonicalize_cfg(ir.blocks), None
    ir.variable_lifetime = _postproc.VariableLifetime(ir.blocks)  # computed on access


_post_process: Any = _postproc.PostProcessor.run
_changes = (
    (types.Function, "get_call_type", _resolve_once),
    (_postproc.PostProcessor, "run", _note_lifetimes),
    (_ssa, "_logger", _Silent()),
)


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Raise the thresholds of the garbage collector: nearly all objects that compilation creates live to its end."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], 100_000) if before[0] else 0, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _call(function: Any, argument: Any) -> Any:
    return function(argument)


# Python allocates frames in blocks of 16 KB. Compilation nests deeply, and if a loop runs at the end of a block, each
# of its calls maps and unmaps memory, which takes a seventh of the time. A frame as large as this one makes Python
# allocate a block of megabytes, which has space for everything that it calls.
_call_with_room: Any = FunctionType(_call.__code__.replace(co_stacksize=2**18 + 2**10), globals())


_PART = {
    "nogil": True,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    "pipeline_class": _compiler_into(_Draft),
}
_as_part, _as_bare = _compile(**_PART), _compile(**_PART, _nrt=False)
_as_inlined = _compile(nogil=True, inline="always")
_as_kernel = _compile(nogil=True, no_cfunc_wrapper=True, pipeline_class=_compiler_into(_Whole))


class _Later:
    """A function whose numba dispatcher is created when it is called, or a caller compiled: there are hundreds."""

    def __init__(self, function: Callable[..., Any], prepare: Callable[[Callable[..., Any]], Any]) -> None:
        update_wrapper(self, function)
        self._prepare = prepare

    @cached_property
    def dispatcher(self) -> Any:
        """The numba dispatcher."""
        return self._prepare(self.__wrapped__)

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Python looks up many of these
            raise AttributeError(f"a function that is compiled later has no {name!r}", name=name, obj=self)
        return getattr(self.dispatcher, name)


_extending.typeof_impl.register(_Later)(lambda later, context: _extending.typeof_impl(later.dispatcher, context))


def _kept(function: Callable[..., Any]) -> Any:
    """Compile a function on its own, and keep it on disk."""
    compiled = _as_kernel(function)
    _keep(compiled)
    return compiled


def jit(function: Callable[..., Any]) -> Any:
    """Compile a function for Python to call, and keep it on disk."""
    return _Later(function, _kept)


def part(function: Callable[..., Any]) -> Any:
    """Compile a function into the compiled functions that call it."""
    return _Later(function, _as_part)


def bare(function: Callable[..., Any]) -> Any:
    """Compile a part without reference counts."""
    return _Later(function, _as_bare)


def inlined(function: Callable[..., Any]) -> Any:
    """Inline a function where it is called."""
    return _Later(function, _as_inlined)


# Separate functions

_RESULTS = {type(None): types.none, bool: types.boolean, int: types.int64, float: types.float64}
_separate: dict[Callable[..., Any], "_Separate"] = {}
_addresses: dict[str, c_void_p] = {}
_naming = Lock()  # linking code before its symbols are defined would end the process


def _address(name: str) -> c_void_p:
    """Return the place from which compiled code loads a function's address; it contains null until that is ready."""
    with _naming:
        if name not in _addresses:
            place = c_void_p()
            llvmlite.binding.add_symbol(name, addressof(place))
            _addresses[name] = place
        return _addresses[name]


class _Separate:
    """A function that is compiled on its own; callers load its address from a place that is found by its name."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.dispatcher = _kept(function)

        def resolve(*arguments: Any) -> Any:
            return _typing.signature(_RESULTS[get_type_hints(function)["return"]], *map(_widest, arguments))

        resolve.pysig = inspect.signature(function)  # type: ignore[attr-defined]
        _extending.type_callable(function)(lambda _context: resolve)
        _extending.lower_builtin(function, _types.VarArg(types.Any))(self._emit_call)

    def _emit_call(self, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result, kinds, convention = signature.return_type, signature.args, context.call_conv
        name, known = self._name(kinds), builder.module.globals
        _address(name)
        address = builder.load(known[name] if name in known else ir.GlobalVariable(builder.module, _ADDRESS, name))
        with builder.if_then(_cgutils.is_null(builder, address), likely=False):
            convention.return_user_exc(builder, RuntimeError, (f"{name} is not ready",))
        function = builder.bitcast(address, convention.get_function_type(result, kinds).as_pointer())
        status, value = convention.call_function(builder, function, result, kinds, arguments)
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return _imputils.impl_ret_new_ref(context, builder, result, value)

    def bind(self, kinds: tuple[Any, ...]) -> None:
        """Publish the address of the function, compiled for these arguments."""
        compiled = self.dispatcher.overloads[kinds]
        _address(self._name(kinds)).value = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)

    def _name(self, kinds: tuple[Any, ...]) -> str:
        function = self.dispatcher.py_func
        return f"{function.__module__}.{function.__qualname__}.{sha256(str(kinds).encode()).hexdigest()[:16]}"


def _widest(kind: Any) -> Any:
    """Return the type as which an argument is passed: integers of all kinds are passed as int64."""
    return types.int64 if isinstance(kind, types.Integer) else _types.unliteral(kind)


def separate(function: Callable[..., Any]) -> Any:
    """Compile a function on its own, for compiled functions to call once it is `ready`."""
    _separate[function] = _Separate(function)
    return function


def dispatcher_of(function: Any) -> Any:
    """Return the numba dispatcher of a function, separate or not."""
    return _separate[function].dispatcher if function in _separate else function.dispatcher


def _is_missing(dispatcher: Any, kinds: tuple[Any, ...]) -> bool:
    """Return whether a function must be compiled for such arguments, and can be kept on disk."""
    if kinds in dispatcher.overloads or not isinstance(dispatcher._cache, _Cache):
        return False
    return not dispatcher._cache.holds(kinds)


def ready(*calls: tuple[Any, ...]) -> None:
    """Compile functions for such arguments, several at a time, if they are not on disk, and publish their addresses."""
    wanted = [(function, tuple(_widest(_typeof(x)) for x in arguments)) for function, *arguments in calls]
    missing = deque((function, kinds) for function, kinds in wanted if _is_missing(dispatcher_of(function), kinds))
    with helped(missing) if len(missing) > 1 else nullcontext():
        for function, kinds in taken(missing):
            dispatcher_of(function).compile(kinds)
    for function, kinds in wanted:
        dispatcher_of(function).compile(kinds)
        if function in _separate:
            _separate[function].bind(kinds)


# Files


class _Files(_caching.IndexDataCacheFile):  # type: ignore[misc]
    """The cache files of one kernel: an index, and the code for each combination of argument types."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._base = filename_base
        self._version += SOURCES  # files of other versions are not read

    def save(self, key: Any, data: Any) -> None:
        """Save the code for one combination of argument types."""
        name = f"{self._base}.{sha256(repr(key[:2]).encode()).hexdigest()[:16]}.nbc"  # by arguments and processor
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})

    def _load_index(self) -> Any:
        return super()._load_index() if _is_whole(self._index_path) else {}

    def _save_data(self, name: str, data: Any) -> None:
        super()._save_data(name, (list(_addresses), data))

    def _load_data(self, name: str) -> Any:
        if not _is_whole(self._data_path(name)):
            return None
        names, data = super()._load_data(name)
        for place in names:  # symbols that the code may refer to
            _address(place)
        return data

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[BytesIO]:
        with super()._open_for_write(path) as file:
            content = BytesIO()
            yield content
            file.write(content.getvalue() + _digest(content.getvalue()))


def _is_whole(path: str) -> bool:
    """Return whether a file exists and ends in the digest of what precedes it."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        return False
    return _digest(data[:-32]) == data[-32:]


def _digest(data: bytes) -> bytes:
    return sha256(SOURCES.encode() + data).digest()


class _Cache(_caching.FunctionCache):  # type: ignore[misc]
    """The compiled code of one function on disk."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)  # the runtime for reference counts
        found = None
        with self._guard_against_spurious_io_errors():  # skips a refresh of all registries first
            found = self._load_overload(sig, target_context)
        if found is None:
            target_context.refresh()
            tell_all()
        return found

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            warn_not_kept(str(error))

    def holds(self, sig: Any) -> bool:
        """Return whether the code for such arguments is on disk."""
        index: Any = ()
        with self._guard_against_spurious_io_errors():
            index = self._cache_file._load_index()
        return self._index_key(sig, cpu_target.target_context.codegen()) in index


def _keep(dispatcher: Any) -> None:
    """Have a function loaded from disk instead of compiled, if it is there, and saved otherwise."""
    try:
        dispatcher._cache = _Cache(dispatcher.py_func)
    except RuntimeError:  # numba finds no writable location
        warn_not_kept("there is no folder for them that can be written to")


# References


class Reference(types.Type):
    """The numba type of references to named tuples of some type."""

    def __init__(self, of: Any) -> None:
        self.of = of
        digest = sha256(str(of).encode()).hexdigest()  # it is part of the names of functions that take one
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


class _Place(NamedTuple):
    """Memory layout of the fields of a tuple, in bytes, as in C."""

    offsets: tuple[int, ...]
    size: int
    alignment: int


_places: dict[str, _Place] = {}


def _place(reference: Any) -> _Place:
    """Return the memory layout of a tuple; numba would have LLVM parse the type of the tuple for each of its fields."""
    if reference.name not in _places:
        offsets, end, widest = [], 0, 1
        for kind in reference.of.types:
            size, alignment = _size(kind)
            offsets.append(-(-end // alignment) * alignment)
            end, widest = offsets[-1] + size, max(widest, alignment)
        _places[reference.name] = _Place(tuple(offsets), -(-end // widest) * widest, widest)
    return _places[reference.name]


def _size(kind: Any) -> tuple[int, int]:
    """Return the size of a field and its alignment, in bytes."""
    if isinstance(kind, types.BaseNamedTuple):
        place = _place(Reference(kind))
        return place.size, place.alignment
    size = 8 * _n_words(kind) if isinstance(kind, types.Array) else calcsize(_SCALARS[kind])
    return size, min(size, 8)


def _n_words(array: Any) -> int:
    """Return the number of words of an array: meminfo, parent, size, item size, data; shape and strides."""
    return 5 + 2 * array.ndim


def _field(context: Any, builder: Any, reference: Any, address: Any, name: str) -> Any:
    index = reference.of.fields.index(name)
    kind = reference.of.types[index]
    place = builder.gep(address, [_OFFSET(_place(reference).offsets[index])])
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


refer: Any = _extending.intrinsic(_emit_refer)
"""Create a reference to a named tuple."""


class Packed:
    """A named tuple, laid out in memory as compiled code expects it behind a reference.

    `like` is another such tuple that is mostly the same: only fields that differ are laid out again.
    """

    def __init__(self, fields: Any, like: "Packed | None" = None) -> None:
        self.fields, self._values = fields, _values(fields)  # to keep the arrays alive
        changed = None if like is None else _changed(self._values, like._values)
        if like is None or changed is None:
            self.kind, self._plan = _plan(fields)
            self._memory, changed = bytearray(self._plan.size), list(range(len(self._values)))
        else:
            self.kind, self._plan, self._memory = like.kind, like._plan, bytearray(like._memory)
        for k in changed:
            at, form = self._plan.places[k]
            form.pack_into(self._memory, at, *_words(self._values[k]))
        self.address = addressof((c_char * self._plan.size).from_buffer(self._memory))

    @cached_property
    def pattern(self) -> tuple[bytes, Any, Any]:
        """The arrays' contents, concatenated, and for each array the index of its address in memory, and its offset."""
        content, places, offsets = bytearray(), list[int](), list[int]()
        for (at, _), value in zip(self._plan.places, self._values, strict=True):
            if isinstance(value, np.ndarray):
                places.append(at // 8 + _ADDRESS_WORD)
                offsets.append(len(content))
                content += value.tobytes() + bytes(-value.nbytes % _LINE)
        return bytes(content) + bytes(_LINE), np.array(places), np.array(offsets)


def another(packed: Packed) -> Packed:
    """Return a copy with arrays of its own, in a fraction of the time needed to create and lay them out."""
    content, places, offsets = packed.pattern
    new, block, memory = copy(packed), bytearray(content), bytearray(packed._memory)
    np.frombuffer(memory, np.int64)[places] = offsets + addressof(_from_buffer(block))
    new._memory, new._values, new.address = memory, [block], addressof(_from_buffer(memory))
    return new


class _Plan(NamedTuple):
    """How the values of a tuple are laid out: offset of each, and the format of its words."""

    size: int
    places: list[tuple[int, Struct]]


_ADDRESS_WORD = 4  # index of the address among the `_words` of an array
_LINE = 64  # bytes of a cache line
_from_buffer: Any = c_char.from_buffer
_plans: dict[bytes, tuple[Reference, _Plan]] = {}


def _plan(fields: Any) -> tuple[Reference, _Plan]:
    """Return the type of references to such a tuple, and its layout."""
    key = _fingerprint(fields)  # of its type, which takes far longer to create
    if key not in _plans:
        kind = Reference(_typeof(fields))
        places = list[tuple[int, str]]()
        _lay_out(kind, 0, places)
        _plans[key] = kind, _Plan(_place(kind).size, [(at, Struct("=" + what)) for at, what in places])
    return _plans[key]


def _lay_out(reference: Any, at: int, places: list[tuple[int, str]]) -> None:
    """List the offset of each field, in order, and the format of its words."""
    for kind, offset in zip(reference.of.types, _place(reference).offsets, strict=True):
        if isinstance(kind, types.BaseNamedTuple):
            _lay_out(Reference(kind), at + offset, places)
        else:
            places.append((at + offset, f"{_n_words(kind)}q" if isinstance(kind, types.Array) else _SCALARS[kind]))


def _values(fields: Any) -> list[Any]:
    """Return all fields of a tuple, including those of nested tuples."""
    values: list[Any] = []
    for value in fields:
        if isinstance(value, tuple):
            values += _values(value)
        else:
            values.append(value)
    return values


def _changed(values: list[Any], before: list[Any]) -> list[int] | None:
    """Return the indices of values that are not identical to those before; None if the type of some has changed."""
    if len(values) != len(before):
        return None
    changed = [k for k, (value, old) in enumerate(zip(values, before, strict=True)) if value is not old]
    return changed if all(_are_alike(values[k], before[k]) for k in changed) else None


def _are_alike(value: Any, old: Any) -> bool:
    """Return whether both have the same type in compiled code; False also if that would take a closer look."""
    if isinstance(value, np.ndarray) and isinstance(old, np.ndarray):
        return value.dtype == old.dtype and value.ndim == old.ndim and value.flags.carray and old.flags.carray
    return type(value) is type(old)


def _words(value: Any) -> tuple[Any, ...]:
    """Return the numbers that represent a value in compiled code; for an array: its address, shape and strides."""
    if not isinstance(value, np.ndarray):
        return (value,)
    size = value.size  # an empty array is never read; from_buffer is faster than ctypes.data, but needs a writable one
    data = 0 if not size else addressof(_from_buffer(value)) if value.flags.carray else value.ctypes.data
    return 0, 0, size, value.itemsize, data, *value.shape, *value.strides


def _unbox(_kind: Any, packed: Any, c: Any) -> Any:
    number = c.pyapi.object_getattr_string(packed, "address")
    address = c.builder.inttoptr(c.pyapi.long_as_longlong(number), _ADDRESS)
    c.pyapi.decref(number)
    return _extending.NativeValue(address)


_extending.typeof_impl.register(Packed)(lambda packed, _context: packed.kind)
_extending.unbox(Reference)(_unbox)
