"""Helpers for writing LLVM IR with explicit vectors: types, loops, loads, prefetches and functions of a module.

The modules `scores`, `sinh`, `panels` and `float_rows` are written with them. The results do not depend on
how the compiler vectorises, because it is not asked to.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.cgutils import _StructProxy as StructProxy

__all__ = [
    "BIT",
    "DOUBLE",
    "EIGHT_DOUBLES",
    "EIGHT_INTS",
    "FLOAT",
    "FUSE",
    "I8",
    "I16",
    "I32",
    "I64",
    "VOID",
    "array_struct",
    "broadcast",
    "call_own",
    "constants",
    "data_pointer",
    "declared",
    "integer",
    "larger",
    "largest_lane",
    "loop",
    "prefetch_pointer",
    "vector_pointer",
]

I64, I32, I16, I8 = (ir.IntType(bits) for bits in (64, 32, 16, 8))
BIT, DOUBLE, FLOAT, VOID = ir.IntType(1), ir.DoubleType(), ir.FloatType(), ir.VoidType()
EIGHT_DOUBLES, EIGHT_INTS = ir.VectorType(DOUBLE, 8), ir.VectorType(I64, 8)
FUSE = ("contract",)  # flags of a product and a sum that may become one fused operation


def integer(number: int) -> ir.Value:
    """A 64-bit integer constant."""
    return ir.Constant(I64, number)


def constants(number: float, lanes: int, kind: ir.Type) -> ir.Value:
    """A vector whose lanes are all the same constant."""
    return ir.Constant(ir.VectorType(kind, lanes), [number] * lanes)


def broadcast(builder: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A vector whose lanes are all the same run-time value."""
    kind = ir.VectorType(value.type, lanes)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, lanes), [0] * lanes))


def vector_pointer(builder: ir.IRBuilder, pointer: ir.Value, offset: ir.Value, lanes: int) -> ir.Value:
    """Pointer to the vector of ``lanes`` elements that starts ``offset`` elements after the pointer."""
    there = builder.gep(pointer, [offset])
    return builder.bitcast(there, ir.VectorType(there.type.pointee, lanes).as_pointer())


def larger(builder: ir.IRBuilder, a: ir.Value, b: ir.Value) -> ir.Value:
    """The larger of two numbers, lane by lane."""
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def largest_lane(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """The largest of eight lanes, in all of them."""
    for half in (4, 2, 1):
        rotated = ir.Constant(ir.VectorType(I32, 8), [(lane + half) % 8 for lane in range(8)])
        vector = larger(builder, vector, builder.shuffle_vector(vector, vector, rotated))
    return vector


def prefetch_pointer(builder: ir.IRBuilder, pointer: ir.Value, locality: int) -> None:
    """Prefetch for reading; ``locality`` 3 is the first-level cache, 2 the second."""
    kind = ir.FunctionType(VOID, [I8.as_pointer(), I32, I32, I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    read, data = 0, 1
    flags = [ir.Constant(I32, number) for number in (read, locality, data)]
    builder.call(function, [builder.bitcast(pointer, I8.as_pointer()), *flags])


def loop(
    builder: ir.IRBuilder,
    start: ir.Value,
    step: int,
    stop: ir.Value,
    carried: list[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """``for j = start; j + step <= stop; j += step: carried = body(j, carried)``; returns j and what was carried."""
    before = builder.block
    head, inside, after = (builder.append_basic_block(f"loop.{name}") for name in ("head", "body", "after"))
    builder.branch(head)
    builder.position_at_end(head)
    j = builder.phi(I64)
    j.add_incoming(start, before)
    phis = []
    for value in carried:
        phi = builder.phi(value.type)
        phi.add_incoming(value, before)
        phis.append(phi)
    following = builder.add(j, integer(step), flags=("nsw",))
    builder.cbranch(builder.icmp_signed("<=", following, stop), inside, after)
    builder.position_at_end(inside)
    updated = body(j, phis)
    j.add_incoming(following, builder.block)
    for phi, value in zip(phis, updated, strict=True):
        phi.add_incoming(value, builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return [j, *phis]


def call_own(
    builder: ir.IRBuilder,
    name: str,
    result: ir.Type,
    write: Callable[..., None],
    *arguments: ir.Value,
    how: str = "noinline",
) -> ir.Value:
    """Call a function of the compiled module, whose body ``write`` generates at the first call.

    A function of its own does not share registers with the loop around the call, and is compiled once however often it
    is called.
    """
    function = builder.module.globals.get(name)
    if function is None:
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = ir.Function(builder.module, kind, name)
        function.linkage = "linkonce_odr"  # modules that are linked together share one copy
        for attribute in (how, "nounwind"):
            function.attributes.add(attribute)
        write(ir.IRBuilder(function.append_basic_block("entry")), *function.args)
    return builder.call(function, arguments)


def declared(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
    """A function that the compiler has by itself, such as an instruction of one kind of processor; by its types."""
    function = builder.module.globals.get(name)
    return ir.Function(builder.module, ir.FunctionType(result, arguments), name) if function is None else function


def array_struct(context: BaseContext, builder: ir.IRBuilder, kind: types.Array, value: ir.Value) -> StructProxy:
    """The fields of a Numba array: ``data``, ``nitems``, ``shape``."""
    return cgutils.create_struct_proxy(kind)(context, builder, value)


def data_pointer(
    context: BaseContext, builder: ir.IRBuilder, kind: types.Array, value: ir.Value, start: ir.Value = None
) -> ir.Value:
    """Pointer to the element of an array at the flat index ``start``, or to its first."""
    data = array_struct(context, builder, kind, value).data
    return data if start is None else builder.gep(data, [start])
