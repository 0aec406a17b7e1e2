"""Compilation of a module's kernels by numba: one object file, with functions that Python calls without numba.

`loading` imports this module where no object file fits. numba compiles each function to LLVM's intermediate code alone;
that of all is optimised and becomes machine code once, together. The object file calls libc, libm and Python's C API,
and nothing of numba: kernels allocate nothing, so that they need no reference counts.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.core.sigutils import normalize_signature
from numba.core.types.containers import BaseTuple
from numba.core.types.misc import unliteral
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from dpgm_core.inference.kernels.loading import PREFIX, TABLE, Kernel

__all__ = [
    "compile_entries",
    "compile_for_python",
    "dispatcher_of",
    "multiply",
    "power_of_two",
    "read_bits",
    "type_of",
    "type_of_intrinsic",
]

#: Places in the table of addresses that the process writes into the object, as `loading` does.
_ARRAY_TYPE, _GEMM, _TYPE_ERROR, _SYSTEM_ERROR, _NONE = range(5)

_BYTE, _I32, _I64, _DOUBLE, _VOID = ir.IntType(8), ir.IntType(32), ir.IntType(64), ir.DoubleType(), ir.VoidType()
_POINTER = _BYTE.as_pointer()
#: Where numpy's C structures have their fields; numpy's ABI, which every extension module has compiled in.
_HEAD = object.__basicsize__
_DATA, _DIMENSIONS, _SHAPE, _DESCRIPTION, _FLAGS = _HEAD, _HEAD + 8, _HEAD + 16, _HEAD + 40, _HEAD + 48
_BYTE_ORDER, _NUMBER = _HEAD + 10, _HEAD + 12
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
#: What LLVM may call on its own.
_LIBRARY = ("memcpy", "memmove", "memset")


# --- Functions to intermediate code ---------------------------------------------------------------


def _options(kernel: Kernel) -> dict[str, Any]:
    # A division by zero gives what numpy gives: raising would keep loops from becoming vectors.
    return {"nogil": True, "fastmath": set(kernel.fastmath), "error_model": "numpy"}


def compile_for_python(kernel: Kernel) -> Callable[..., Any]:
    """Return numba's dispatcher of a kernel without a signature, for tests."""
    dispatcher: Callable[..., Any] = numba.njit(**_options(kernel))(kernel.function)
    return dispatcher


def type_of(kernel: Kernel) -> Any:
    """Return numba's type of a kernel that another one calls."""
    return types.Dispatcher(kernel.dispatcher)  # which it refers to weakly


#: Passes of numba for what kernels do not have: closures, context managers, expressions of arrays, mixed tuples.
_SKIPPED = {
    "DeadBranchPrune",
    "InlineClosureLikes",
    "InlineInlinables",
    "InlineOverloads",
    "IterLoopCanonicalization",
    "LiteralPropagation",
    "LiteralUnroll",
    "MakeFunctionToJitFunction",
    "MixedContainerUnroller",
    "NopythonRewrites",
    "RewriteDynamicRaises",
    "RewriteSemanticConstants",
    "WithLift",
}


class _Pipeline(CompilerBase):  # type: ignore[misc]
    """numba's usual one with fewer passes, which saves a fifth of the time."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [one for one in manager.passes if one[0].__name__ not in _SKIPPED]
        manager.finalize()
        return [manager]


def dispatcher_of(kernel: Kernel) -> Any:
    """Return a dispatcher whose overloads stay intermediate code, for linking into one module."""
    options = _options(kernel) | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}
    dispatcher = numba.njit(pipeline_class=_Pipeline, **options)(kernel.function)
    resolve = dispatcher.get_call_template

    def without_machine_code(flags: Any) -> Any:
        flags.no_compile = True
        return flags

    def add_overload(result: Any) -> None:
        library, key = result.library, object()
        library._optimize_final_module = lambda: None  # once, together with its callers
        library._finalize_final_module = lambda: setattr(library, "_finalized", True)
        dispatcher.overloads[tuple(result.signature.args)] = result._replace(entry_point=key)
        dispatcher.targetctx.insert_user_function(key, result.fndesc, [library])

    def resolve_without_literals(arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """A call with 0 in place of a number would be compiled anew."""
        return resolve([unliteral(one) for one in arguments], keywords)

    dispatcher._compiler._customize_flags = without_machine_code
    dispatcher.add_overload = add_overload
    dispatcher.get_call_template = resolve_without_literals
    return dispatcher


class _Library(JITCodeLibrary):  # type: ignore[misc]
    """numba's library without passes over single functions, and for counts of references, before all are optimised."""

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        manager, builder = self._codegen._module_pass_manager()
        manager.run(self._final_module, builder)


@contextmanager
def _libraries(codegen: Any) -> Iterator[None]:
    """What numba compiles inside becomes a `_Library`."""
    usual, codegen._library_class = codegen._library_class, _Library
    try:
        yield
    finally:
        codegen._library_class = usual


# --- Object files ---------------------------------------------------------------------------------


def compile_entries(name: str, kernels: Mapping[str, Kernel]) -> tuple[bytes, list[str]]:
    """Compile all functions of a module that Python calls: the object file, and the symbols that it needs."""
    context = cpu_target.target_context
    codegen = context.codegen()
    with global_compiler_lock, _without_collection(), _libraries(codegen):
        library = codegen.create_library(name)
        module = library.create_ir_module(name)
        _table(module).initializer = ir.Constant(_table(module).value_type, None)
        for entry, kernel in kernels.items():
            kernel.dispatcher.compile(kernel.signature)
            result = kernel.dispatcher.overloads[normalize_signature(kernel.signature)[0]]
            library.add_linking_library(result.library)
            _write_entry(context, module, entry, result)
        library.add_ir_module(module)
        library._finalize_final_module = lambda: None
        library.finalize()
        final = library._final_module
        needed = {one.name for one in (*final.functions, *final.global_variables) if one.is_declaration}
        needed = {one for one in needed if not one.startswith("llvm.")} | {*_LIBRARY, *_math(final)}
        foreign = sorted(one for one in needed if one.startswith(("NRT_", "numba_", "_ZN")))
        if foreign:
            raise RuntimeError(f"kernels need {', '.join(foreign)} of numba")
        return codegen._tm.emit_object(final), sorted(needed)


def _math(module: Any) -> Iterator[str]:
    """Functions of libm that intrinsics may become."""
    for function in module.functions:
        if function.is_declaration and function.name.endswith(".f64"):
            name = function.name.split(".")[1]
            if name in ("exp", "log", "pow", "log2", "exp2"):
                yield name


@contextmanager
def _without_collection() -> Iterator[None]:
    """numba makes many objects that stay; looking through them again and again takes a tenth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


# --- Functions that Python calls ------------------------------------------------------------------


def _table(module: ir.Module) -> ir.GlobalVariable:
    known: ir.GlobalVariable | None = module.globals.get(TABLE)
    return known or ir.GlobalVariable(module, ir.ArrayType(_POINTER, 5), TABLE)


def _address(builder: ir.IRBuilder, which: int) -> Any:
    zero = ir.Constant(_I32, 0)
    return builder.load(builder.gep(_table(builder.module), [zero, ir.Constant(_I32, which)]))


def _field(builder: ir.IRBuilder, one: Any, offset: int, kind: ir.Type) -> Any:
    place = builder.gep(one, [ir.Constant(_I64, offset)])
    return builder.load(builder.bitcast(place, kind.as_pointer()))


def _call(builder: ir.IRBuilder, name: str, returns: ir.Type, *arguments: Any) -> Any:
    kind = ir.FunctionType(returns, [one.type for one in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _write_entry(context: Any, module: ir.Module, name: str, result: Any) -> None:
    """Write `PyObject *name(PyObject *self, PyObject **arguments, Py_ssize_t count)`: METH_FASTCALL of Python's C API.

    It reads arrays' places and sizes, and runs the kernel without the GIL. Whatever is not of the signature raises
    TypeError.
    """
    signature = result.signature
    kind = ir.FunctionType(_POINTER, [_POINTER, _POINTER.as_pointer(), _I64])
    function = ir.Function(module, kind, PREFIX + name)
    builder = ir.IRBuilder(function.append_basic_block())
    mistyped, failed = function.append_basic_block(), function.append_basic_block()
    _, arguments, count = function.args

    def require(condition: Any, otherwise: Any = mistyped) -> None:
        following = function.append_basic_block()
        builder.cbranch(condition, following, otherwise)
        builder.position_at_end(following)

    def require_no_error(doubtful: Any) -> None:
        error = builder.ptrtoint(_call(builder, "PyErr_Occurred", _POINTER), _I64)
        require(builder.or_(builder.not_(doubtful), builder.icmp_signed("==", error, ir.Constant(_I64, 0))), failed)

    require(builder.icmp_signed("==", count, ir.Constant(_I64, len(signature.args))))
    values = []
    for place, one in enumerate(signature.args):
        argument = builder.load(builder.gep(arguments, [ir.Constant(_I64, place)]))
        if isinstance(one, types.Array):
            values.append(_read_array(context, builder, require, one, argument))
        elif one == types.float64:
            values.append(_call(builder, "PyFloat_AsDouble", _DOUBLE, argument))
            require_no_error(builder.fcmp_ordered("==", values[-1], ir.Constant(_DOUBLE, -1.0)))
        elif one == types.boolean:
            truth = _call(builder, "PyObject_IsTrue", _I32, argument)
            require(builder.icmp_signed(">=", truth, ir.Constant(_I32, 0)), failed)
            values.append(builder.icmp_signed("!=", truth, ir.Constant(_I32, 0)))
        else:
            values.append(_call(builder, "PyLong_AsLongLong", _I64, argument))
            require_no_error(builder.icmp_signed("==", values[-1], ir.Constant(_I64, -1)))
    state = _call(builder, "PyEval_SaveThread", _POINTER)
    kernel = context.declare_function(module, result.fndesc)
    status, value = context.call_conv.call_function(builder, kernel, signature.return_type, signature.args, values)
    _call(builder, "PyEval_RestoreThread", _VOID, state)
    with builder.if_then(status.is_error, likely=False):
        _raise(builder, _SYSTEM_ERROR, f"the kernel {name} failed")
    builder.ret(_as_object(builder, signature.return_type, value))
    builder.position_at_end(mistyped)
    _raise(builder, _TYPE_ERROR, f"No matching definition: {name} takes {signature.args}")
    builder.position_at_end(failed)
    builder.ret(ir.Constant(_POINTER, None))


def _raise(builder: ir.IRBuilder, error: int, text: str) -> None:
    message = cgutils.global_constant(builder, "message", cgutils.make_bytearray(text.encode() + b"\0"))
    _call(builder, "PyErr_SetString", _VOID, _address(builder, error), builder.bitcast(message, _POINTER))
    builder.ret(ir.Constant(_POINTER, None))


def _read_array(context: Any, builder: ir.IRBuilder, require: Callable[[Any], None], kind: Any, argument: Any) -> Any:
    """numba's value of an array, whose memory stays the caller's."""

    def equal(one: Any, number: int) -> Any:
        return builder.icmp_signed("==", one, ir.Constant(one.type, number))

    of = builder.ptrtoint(_field(builder, argument, _HEAD - 8, _POINTER), _I64)
    require(builder.icmp_signed("==", of, builder.ptrtoint(_address(builder, _ARRAY_TYPE), _I64)))
    dtype = np.dtype(str(kind.dtype))
    flags = _CONTIGUOUS | _ALIGNED | (_WRITEABLE if kind.mutable else 0)
    description = _field(builder, argument, _DESCRIPTION, _POINTER)
    require(equal(builder.and_(_field(builder, argument, _FLAGS, _I32), ir.Constant(_I32, flags)), flags))
    require(equal(_field(builder, argument, _DIMENSIONS, _I32), kind.ndim))
    require(equal(_field(builder, description, _NUMBER, _I32), dtype.num))
    require(equal(_field(builder, description, _BYTE_ORDER, _BYTE), ord(dtype.byteorder)))
    sizes = _field(builder, argument, _SHAPE, _POINTER)
    shape = [_field(builder, sizes, 8 * axis, _I64) for axis in range(kind.ndim)]
    strides = [ir.Constant(_I64, dtype.itemsize)]
    for size in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], size))
    array = context.make_array(kind)(context, builder)
    data = builder.bitcast(_field(builder, argument, _DATA, _POINTER), context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=dtype.itemsize, meminfo=None)
    return array._getvalue()


def _as_object(builder: ir.IRBuilder, kind: Any, value: Any) -> Any:
    """What a kernel returns as a new reference: a number, numbers in a tuple, or None."""
    if isinstance(kind, BaseTuple):
        members = zip(kind, cgutils.unpack_tuple(builder, value), strict=True)
        made = _call(builder, "PyTuple_New", _POINTER, ir.Constant(_I64, len(kind)))
        for place, (one, number) in enumerate(members):
            _call(builder, "PyTuple_SetItem", _I32, made, ir.Constant(_I64, place), _as_object(builder, one, number))
        return made
    if kind == types.float64:
        return _call(builder, "PyFloat_FromDouble", _POINTER, value)
    if kind == types.none:
        none = _address(builder, _NONE)
        _call(builder, "Py_IncRef", _VOID, none)
        return none
    return _call(builder, "PyLong_FromLongLong", _POINTER, value)


# --- Intrinsics -----------------------------------------------------------------------------------


@intrinsic  # type: ignore[untyped-decorator]
def power_of_two(_: Any, near: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        exponent = builder.add(builder.bitcast(values[0], _I64), ir.Constant(_I64, 1023))
        return builder.bitcast(builder.shl(exponent, ir.Constant(_I64, 52)), _DOUBLE)

    return types.float64(near), generate


@intrinsic  # type: ignore[untyped-decorator]
def read_bits(_: Any, array: Any, start: Any) -> Any:
    other = types.Array(types.int64 if array.dtype == types.float64 else types.float64, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        one = context.make_array(signature.args[0])(context, builder, values[0])
        size = cgutils.unpack_tuple(builder, one.shape)[0]
        made = context.make_array(other)(context, builder)
        data = builder.bitcast(builder.gep(one.data, [values[1]]), context.get_data_type(other.dtype).as_pointer())
        shape, strides = [builder.sub(size, values[1])], [ir.Constant(_I64, 8)]
        populate_array(made, data=data, shape=shape, strides=strides, itemsize=8, meminfo=None)
        return made._getvalue()

    return other(array, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def multiply(
    _: Any, memory: Any, r: Any, p: Any, q: Any, rows: Any, columns: Any, terms: Any, turned_p: Any, turned_q: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        r, p, q = (builder.bitcast(builder.gep(data, [place]), _POINTER) for place in values[1:4])
        rows, columns, terms, turned_p, turned_q = values[4:]

        def refer(value: Any) -> Any:
            slot = cgutils.alloca_once_value(builder, value)
            return builder.bitcast(slot, _POINTER)

        def flag(turned: Any) -> Any:
            return refer(builder.select(turned, ir.Constant(_BYTE, ord("t")), ir.Constant(_BYTE, ord("n"))))

        m, n, k = (refer(builder.trunc(one, _I32)) for one in (columns, rows, terms))
        # BLAS has columns one after another, numpy rows: the transposed of all three.
        lead_q, lead_p = builder.select(turned_q, k, m), builder.select(turned_p, n, k)
        one, zero = refer(ir.Constant(_DOUBLE, 1.0)), refer(ir.Constant(_DOUBLE, 0.0))
        arguments = [flag(turned_q), flag(turned_p), m, n, k, one, q, lead_q, p, lead_p, zero, r, m]
        kind = ir.FunctionType(_VOID, [_POINTER] * 13)
        builder.call(builder.bitcast(_address(builder, _GEMM), kind.as_pointer()), arguments)
        return context.get_dummy_value()

    return types.void(memory, *[types.int64] * 6, types.boolean, types.boolean), generate


def type_of_intrinsic(one: Any) -> Any:
    """Return numba's type of an intrinsic."""
    cpu_target.typing_context.refresh()  # the module may have been imported just now
    return cpu_target.typing_context.resolve_value_type(one)
