"""Structs that kernels take by address: named numbers, arrays and other structs in one block of memory.

A kernel that takes arrays by value is handed each as several machine words; a struct is one word, so calls are cheap,
from Python and between kernels, and a kernel can be called by its address (`act`). Python sets and reads the same
fields by name. When nothing is compiled a struct is a Python object with attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn
from weakref import WeakValueDictionary
from zlib import crc32

import numpy as np
from llvmlite import ir
from numba import float64, int64, types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.datamodel.manager import DataModelManager
from numba.core.pythonapi import _UnboxContext as UnboxContext
from numba.core.typing.templates import AttributeTemplate, Signature
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.numpy_support import as_dtype

from linmax.jit.compiling import JIT, address_of, caller, function_at
from linmax.jit.vectors import I64

__all__ = ["Struct", "StructType", "act", "entry"]

ACTION = int64(int64, int64, int64)

_OBJECTS: WeakValueDictionary[int, Struct] = WeakValueDictionary()  # by address, when nothing is compiled


class StructType(types.Type):  # type: ignore[misc]
    """The type of a struct in kernels: its fields by name, each with the place of its first word.

    Its name has a checksum of the fields, so that a cached kernel never meets a struct of another layout.
    """

    def __init__(self, name: str, fields: dict[str, types.Type]) -> None:
        super().__init__(name=f"Struct({name}-{crc32(str(fields).encode()):x})")
        self.fields: dict[str, tuple[types.Type, int]] = {}
        self.size = 0
        for field, kind in fields.items():
            self.fields[field] = kind, self.size
            self.size += 1 + kind.ndim if isinstance(kind, types.Array) else 1


@register_model(StructType)
class _StructModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: DataModelManager, kind: StructType) -> None:
        super().__init__(manager, kind, I64)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, kind: StructType, name: str) -> types.Type | None:
        return kind.fields[name][0] if name in kind.fields else None


def _pointer(builder: ir.IRBuilder, address: ir.Value, place: int) -> ir.Value:
    return builder.inttoptr(builder.add(address, I64(8 * place)), I64.as_pointer())


@lower_getattr_generic(StructType)  # type: ignore[untyped-decorator]
def _load(context: BaseContext, builder: ir.IRBuilder, struct: StructType, address: ir.Value, name: str) -> ir.Value:
    kind, place = struct.fields[name]
    pointer = _pointer(builder, address, place)
    if not isinstance(kind, types.Array):
        return builder.load(builder.bitcast(pointer, context.get_value_type(kind).as_pointer()))
    array = cgutils.create_struct_proxy(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [builder.load(builder.gep(pointer, [I64(1 + axis)])) for axis in range(kind.ndim)]
    strides: list[ir.Value] = []
    stride = I64(size)
    for length in reversed(shape):
        strides.insert(0, stride)
        stride = builder.mul(stride, length, flags=("nsw",))
    array.data = builder.inttoptr(builder.load(pointer), array.data.type)
    array.itemsize, array.nitems = I64(size), builder.sdiv(stride, I64(size), flags=("exact",))
    array.shape, array.strides = cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides)
    return array._getvalue()


@lower_setattr_generic(StructType)  # type: ignore[untyped-decorator]
def _store(
    context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: Sequence[ir.Value], name: str
) -> None:
    kind, place = signature.args[0].fields[name]
    if kind not in (int64, float64):
        raise TypeError(f"kernels may set numbers of a struct only, not {name}")
    pointer = builder.bitcast(_pointer(builder, args[0], place), context.get_value_type(kind).as_pointer())
    builder.store(args[1], pointer)


@unbox(StructType)  # type: ignore[untyped-decorator]
def _unbox(_: StructType, value: ir.Value, c: UnboxContext) -> NativeValue:
    address = c.pyapi.object_getattr_string(value, "address")
    word = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    return NativeValue(word)


class _Number:
    """An integer or float of a struct, stored in its memory."""

    def __init__(self, view: str, place: int) -> None:
        self.view, self.place = view, place

    def __get__(self, struct: Struct | None, owner: type) -> Any:
        return self if struct is None else getattr(struct, self.view)[self.place]

    def __set__(self, struct: Struct, value: float) -> None:
        getattr(struct, self.view)[self.place] = value


class _Reference:
    """An array or struct of a struct: the object is kept, its address stored in memory."""

    def __init__(self, name: str, kind: types.Type, place: int) -> None:
        self.name, self.kind, self.place = name, kind, place
        if isinstance(kind, types.Array):
            self.dtype = as_dtype(kind.dtype)

    def __get__(self, struct: Struct | None, owner: type) -> Any:
        return self if struct is None else struct.objects[self.name]

    def __set__(self, struct: Struct, value: Any) -> None:
        if isinstance(self.kind, types.Array):
            fits = value.dtype == self.dtype and value.ndim == self.kind.ndim and value.flags.c_contiguous
            if not fits:
                raise TypeError(
                    f"{self.name} must be a contiguous array of type {self.dtype} with {self.kind.ndim} axes, got "
                    f"type {value.dtype} with {value.ndim} axes"
                )
            words, place = struct.integers, self.place
            words[place] = value.__array_interface__["data"][0]
            for axis, length in enumerate(value.shape, place + 1):
                words[axis] = length
        else:
            struct.integers[self.place] = value.address
        struct.objects[self.name] = value


class Struct:
    """Base of structs: a subclass declares fields as ``name: type = numba_type``, and a struct as ``name.numba_type``.

    Numbers start at 0. Arrays must be set before a kernel reads them, and stay where they are meanwhile.
    """

    numba_type: ClassVar[StructType]
    address: int

    def __init_subclass__(cls) -> None:
        fields = {name: vars(cls)[name] for name in cls.__annotations__ if name in vars(cls)}
        cls.numba_type = StructType(cls.__name__, fields)
        for name, (kind, place) in cls.numba_type.fields.items():
            if not JIT:
                setattr(cls, name, 0 if kind == int64 else 0.0 if kind == float64 else None)
            elif kind in (int64, float64):
                setattr(cls, name, _Number("integers" if kind == int64 else "floats", place))
            else:
                setattr(cls, name, _Reference(name, kind, place))

    def __init__(self, **values: object) -> None:
        if JIT:
            memory = np.zeros(self.numba_type.size, np.int64)
            self.address = int(memory.ctypes.data)
            self.integers, self.floats = memory.data, memory.view(np.float64).data  # quicker to set than arrays
            self.objects: dict[str, np.ndarray | Struct] = {}
        else:
            self.address = id(self)
            _OBJECTS[self.address] = self
        self.bind(**values)

    def bind(self, **values: object) -> None:
        """Set fields by name."""
        for name, value in values.items():
            setattr(self, name, value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a struct holds addresses of this process; make it again instead of copying it")

    @classmethod
    def from_address(cls) -> Any:
        """Return a function for kernels: the struct at an address."""
        if not JIT:
            return _OBJECTS.__getitem__

        @intrinsic
        def struct_at(_, address):  # type: ignore[no-untyped-def]
            return cls.numba_type(int64), lambda _context, _builder, _signature, args: args[0]

        return struct_at


@typeof_impl.register(Struct)  # type: ignore[untyped-decorator]
def _type_of_struct(struct: Struct, _: object) -> StructType:
    return struct.numba_type


def entry(function: Any) -> int:
    """Return the address of a kernel over a struct, for `act`."""
    return address_of(function, getattr(function, "signature", None))


if JIT:

    @intrinsic
    def act(_, function, struct, begin, end):  # type: ignore[no-untyped-def]
        """Call the kernel at an address with a struct, or the address of one, and two integers; return its integer."""
        return int64(int64, struct, int64, int64), caller(ACTION)

else:

    def act(function: int, struct: Struct | int, begin: int, end: int) -> int:
        return int(function_at(function)(struct if isinstance(struct, Struct) else _OBJECTS[struct], begin, end))
