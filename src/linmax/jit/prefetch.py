"""Prefetching array elements for compiled functions."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from numba import int64, types
from numba.core.base import BaseContext
from numba.core.typing.templates import Signature
from numba.extending import intrinsic

from linmax.jit.compiling import JIT
from linmax.jit.vectors import data_pointer, prefetch_pointer

__all__ = ["fetch"]

if JIT:

    @intrinsic
    def fetch(_, array, place):  # type: ignore[no-untyped-def]
        """Prefetch the element at a flat index of a contiguous array into the second-level cache.

        Not into the first: it is small, and many prefetches at once would evict each other.
        """

        def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
            prefetch_pointer(builder, data_pointer(context, builder, sig.args[0], *args), locality=2)
            return context.get_dummy_value()

        return types.void(array, int64), codegen

else:

    def fetch(array: ir.Value, place: int) -> None:
        """Do nothing: interpreted code gains nothing from a prefetch."""
