"""Asking for memory before it is needed, so that nothing waits for it."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.jit.compiling import JIT

__all__ = ["fetch"]

if JIT:

    @intrinsic
    def fetch(_, array, place):  # type: ignore[no-untyped-def]
        """Have an element of a contiguous array, counted through all its dimensions, near by soon.

        That is, in the second-level cache: what many are asked for at once would push each other out of the first.
        """

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            data = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0]).data
            i8, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [i8, i32, i32, i32])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
            read_near_data = [ir.Constant(i32, number) for number in (0, 2, 1)]
            builder.call(function, [builder.bitcast(builder.gep(data, [args[1]]), i8), *read_near_data])
            return context.get_dummy_value()

        return types.void(array, int64), codegen

else:

    def fetch(array: Any, place: int) -> None:
        """Nothing to be done."""
