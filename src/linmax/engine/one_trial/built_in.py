"""Built-in functions of Python made of compiled code, with the arguments of kernels kept in memory.

Taking apart the tuples of arrays that a kernel works on costs Python several microseconds, more than a trial. So they
are taken apart once and kept in memory as compiled code holds them. The arrays must not move meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import cfunc, int64, njit, types
from numba.extending import intrinsic

from linmax.jit.compiling import CHECKED, OPTIONS, cache_folder, caching_in, caller

__all__ = ["SPACE", "built_in", "calling", "keep", "keeper", "word_at"]

SPACE = 2**14  # bytes for the arguments of a kernel, which take about half of it


@intrinsic
def keep(_, address, arguments):  # type: ignore[no-untyped-def]
    """Write the arguments to memory as they are: at most SPACE bytes at an address."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        size = context.get_abi_sizeof(args[1].type)
        if size > SPACE:
            raise ValueError(f"SPACE must be at least {size}, got {SPACE}")
        builder.store(args[1], builder.inttoptr(args[0], args[1].type.as_pointer()))
        return context.get_dummy_value()

    return types.void(int64, arguments), codegen


def keeper(kind: Any) -> Any:
    """A function that reads arguments of a type back."""

    @intrinsic
    def kept(_, address):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            whole = context.get_value_type(kind)
            return _load(builder, builder.inttoptr(args[0], whole.as_pointer()), whole)

        return kind(int64), codegen

    return kept


def _load(builder: Any, pointer: Any, kind: Any) -> Any:
    """Load number by number, so that the compiler can leave out what is not used."""
    parts = getattr(kind, "elements", None) or ([kind.element] * kind.count if hasattr(kind, "count") else None)
    if parts is None:
        return builder.load(pointer)
    found = ir.Constant(kind, ir.Undefined)
    for place, part in enumerate(parts):
        at = builder.gep(pointer, [ir.IntType(32)(0), ir.IntType(32)(place)], inbounds=True)
        found = builder.insert_value(found, _load(builder, at, part), place)
    return found


@intrinsic
def word_at(_, address):  # type: ignore[no-untyped-def]
    """The word in memory at an address."""

    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.load(builder.inttoptr(args[0], ir.IntType(64).as_pointer()))

    return int64(int64), codegen


def calling(kind: Any) -> Any:
    """A function that calls another of this signature by its address, so that the callee is not compiled again."""

    @intrinsic
    def call(_, address, arguments):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            parts = [builder.extract_value(args[1], place) for place in range(len(kind.args))]
            found = caller(kind)(context, builder, signature, [args[0], *parts])
            return context.get_dummy_value() if kind.return_type == types.void else found

        return kind.return_type(int64, arguments), codegen

    return call


class MethodDefinition(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


METH_FASTCALL = 0x80


@cache
def definition_of(function: Callable[[int, int, int], int]) -> MethodDefinition:
    """Compile a function of (self, address of the arguments, their number) that returns a new reference."""
    options = OPTIONS | {"_nrt": False, "nogil": False}
    with caching_in(cache_folder(function.__code__.co_filename)):
        compiled = cfunc(int64(int64, int64, int64), cache=True, **options)(function)
    definition = MethodDefinition(function.__name__.encode(), compiled.address, METH_FASTCALL, None)
    definition.kept = compiled  # keeps the code alive
    return definition


@cache
def compiled_for_python(function: Callable[[int, int, int], int]) -> Any:
    """The same function, compiled so that exceptions reach Python; a C function would swallow them."""
    with caching_in(cache_folder(function.__code__.co_filename)):
        return njit(int64(int64, int64, int64), cache=True, **OPTIONS | {"_nrt": False, "nogil": False})(function)


def checked(function: Callable[[int, int, int], int], address: int) -> Callable[..., Any]:
    """A Python function instead of the built-in one, for when bounds are checked."""

    def call(*arguments: Any) -> Any:
        objects = np.array([id(argument) for argument in arguments], np.int64)
        found = compiled_for_python(function)(id(address), objects.ctypes.data, len(arguments))
        held = ctypes.cast(found, ctypes.py_object)
        value = held.value
        ctypes.pythonapi.Py_DecRef(held)  # one reference came from the function, another is ours
        return value

    return call


def built_in(function: Callable[[int, int, int], int], address: int) -> Callable[..., Any]:
    """A built-in function whose self is the number ``address``."""
    if CHECKED:
        return checked(function, address)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p), ctypes.py_object
    made: Callable[..., Any] = make(ctypes.byref(definition_of(function)), address, None)
    return made
