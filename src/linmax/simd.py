"""Scores of a linear machine: scores[c] += sum_j value_j * weights[base + row_j * stride + c], with explicit vectors.

LLVM does not vectorise across a run-time number of classes (plain loops are three to five times slower at 20), so one
intrinsic writes the vectors out. Each pass covers a block of 16, 8, 4, 2 or 1 classes, keeps four accumulators to
hide the latency of the addition, and fetches the rows of coming attributes early. `plain_add_rows` and
`plain_add_dense` are the same in plain words: the reference, and what runs when the compiler is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numba import float32, float64, int8, int32, int64, types
from numba.core import cgutils
from numba.extending import intrinsic

from linmax.contract import JIT

__all__ = ["add_dense", "add_lanes", "add_rows", "next_lane", "plain_add_dense", "plain_add_rows", "sum_codes"]

_WIDTHS = (16, 8, 4, 2, 1)
_ACCUMULATORS = 4
_AHEAD = 12  # rows fetched early; more gains nothing, fewer leaves misses


def plain_add_rows(
    scores: np.ndarray,
    weights: np.ndarray,
    base: int,
    stride: int,
    rows: np.ndarray,
    values: np.ndarray,
    lo: int,
    hi: int,
) -> None:
    """``scores += sum over j in lo..hi of values[j] * weights[base + rows[j] * stride :][:stride]``."""
    for j in range(lo, hi):
        start = base + rows[j] * stride
        for c in range(stride):
            scores[c] += values[j] * weights[start + c]


def plain_add_dense(scores: np.ndarray, weights: np.ndarray, base: int, stride: int, values: np.ndarray) -> None:
    """The same for a dense row: attribute j sits at row j."""
    for j in range(values.size):
        start = base + j * stride
        for c in range(stride):
            scores[c] += values[j] * weights[start + c]


I64, I32, DOUBLE = ir.IntType(64), ir.IntType(32), ir.DoubleType()


def _emit(
    builder: Any,
    scores: Any,
    weights: Any,
    stride: Any,
    rows: Any,
    values: Any,
    count: Any,
    widths: Sequence[int] = _WIDTHS,
    number: Any = DOUBLE,
    within: Any = None,
) -> None:
    """Write the passes. ``rows`` is a pointer to int32, or None when attribute j sits at row j.

    ``within`` is how many rows may be looked at ahead: those of coming instances too, whose first misses would stall.
    """
    function, module = builder.function, builder.module
    prefetch = cgutils.get_or_insert_function(
        module, ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), I32, I32, I32]), "llvm.prefetch.p0"
    )
    done = cgutils.alloca_once_value(builder, ir.Constant(I64, 0))  # classes finished

    def offset(j: Any) -> Any:
        row = builder.sext(builder.load(builder.gep(rows, [j])), I64) if rows is not None else j
        return builder.mul(row, stride)

    for width in widths:
        vector = ir.VectorType(number, width)

        def term(j: Any, first: Any, vector: Any = vector, width: int = width) -> Any:
            at = builder.gep(weights, [builder.add(offset(j), first)])
            row = builder.load(builder.bitcast(at, vector.as_pointer()), align=4)
            value = builder.load(builder.gep(values, [j]))
            lanes = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(I32, 0))
            mask = ir.Constant(ir.VectorType(I32, width), [0] * width)
            return builder.fmul(builder.shuffle_vector(lanes, lanes, mask), row, flags=("contract",))

        def loop(
            name: str, start: Any, step: int, stop: Any, sums: list[Any], first: Any, vector: Any, term: Any
        ) -> list[Any]:
            """``for j = start; j + step <= stop; j += step: sums[a] += term(j + a)``; returns j and the sums."""
            before = builder.block
            head = function.append_basic_block(f"{name}.head")
            body = function.append_basic_block(f"{name}.body")
            after = function.append_basic_block(f"{name}.after")
            builder.branch(head)
            builder.position_at_end(head)
            j = builder.phi(I64)
            j.add_incoming(start, before)
            carried = []
            for value in sums:
                phi = builder.phi(vector)
                phi.add_incoming(value, before)
                carried.append(phi)
            following = builder.add(j, ir.Constant(I64, step))
            builder.cbranch(builder.icmp_signed("<=", following, stop), body, after)
            builder.position_at_end(body)
            if rows is not None and step > 1:
                coming = builder.add(j, ir.Constant(I64, _AHEAD))
                with builder.if_then(builder.icmp_signed("<=", builder.add(coming, ir.Constant(I64, step)), within)):
                    for a in range(step):
                        at = builder.add(offset(builder.add(coming, ir.Constant(I64, a))), first)
                        pointer = builder.bitcast(builder.gep(weights, [at]), ir.IntType(8).as_pointer())
                        for line in range(max(1, vector.count // 8)):
                            ahead = builder.gep(pointer, [ir.Constant(I64, 64 * line)])
                            builder.call(
                                prefetch, [ahead, ir.Constant(I32, 0), ir.Constant(I32, 3), ir.Constant(I32, 1)]
                            )
            updated = [
                builder.fadd(total, term(builder.add(j, ir.Constant(I64, a)), first), flags=("contract",))
                for a, total in enumerate(carried)
            ]
            j.add_incoming(following, builder.block)
            for phi, value in zip(carried, updated, strict=True):
                phi.add_incoming(value, builder.block)
            builder.branch(head)
            builder.position_at_end(after)
            return [j, *carried]

        def one_pass(first: Any, vector: Any = vector, term: Any = term, loop: Any = loop, width: int = width) -> None:
            zero = ir.Constant(vector, None)
            target = builder.bitcast(builder.gep(scores, [first]), vector.as_pointer())
            sums = [builder.load(target, align=4)] + [zero] * (_ACCUMULATORS - 1)
            j, *sums = loop(f"wide{width}", ir.Constant(I64, 0), _ACCUMULATORS, count, sums, first, vector, term)
            total = builder.fadd(builder.fadd(sums[0], sums[1]), builder.fadd(sums[2], sums[3]))
            _, total = loop(f"rest{width}", j, 1, count, [total], first, vector, term)
            builder.store(total, target, align=4)

        check = function.append_basic_block(f"block{width}.check")
        work = function.append_basic_block(f"block{width}.work")
        leave = function.append_basic_block(f"block{width}.leave")
        builder.branch(check)
        builder.position_at_end(check)
        first = builder.load(done)
        following = builder.add(first, ir.Constant(I64, width))
        builder.cbranch(builder.icmp_signed("<=", following, stride), work, leave)
        builder.position_at_end(work)
        one_pass(first)
        builder.store(following, done)
        builder.branch(check)
        builder.position_at_end(leave)


def _emit_codes(builder: Any, scores: Any, rows: Any, codes: Any, values: Any, count: Any) -> None:
    """Passes over the voters, eight classes at a time or as many as are left, each in a vector of sixteen sums."""
    function = builder.function
    done = cgutils.alloca_once_value(builder, ir.Constant(I64, 0))
    floats, bytes_ = ir.VectorType(ir.FloatType(), 16), ir.VectorType(ir.IntType(8), 16)
    splat = ir.Constant(ir.VectorType(I32, 16), [0] * 16)

    def spread(value: Any, kind: Any) -> Any:
        one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(I32, 0))
        return builder.shuffle_vector(one, one, splat)

    for width in (8, 5, 4, 3, 2, 1):
        check = function.append_basic_block(f"codes{width}.check")
        work = function.append_basic_block(f"codes{width}.work")
        head = function.append_basic_block(f"codes{width}.head")
        body = function.append_basic_block(f"codes{width}.body")
        after = function.append_basic_block(f"codes{width}.after")
        leave = function.append_basic_block(f"codes{width}.leave")
        builder.branch(check)
        builder.position_at_end(check)
        first = builder.load(done)
        following = builder.add(first, ir.Constant(I64, width))
        builder.cbranch(builder.icmp_signed("<=", following, rows), work, leave)
        builder.position_at_end(work)
        targets, wanted, sums = [], [], []
        for a in range(width):
            row = builder.add(first, ir.Constant(I64, a))
            at = builder.gep(scores, [builder.mul(row, ir.Constant(I64, 16))])
            targets.append(builder.bitcast(at, floats.as_pointer()))
            wanted.append(spread(builder.trunc(row, ir.IntType(8)), bytes_))
            sums.append(ir.Constant(floats, None))
        builder.branch(head)
        builder.position_at_end(head)
        j = builder.phi(I64)
        j.add_incoming(ir.Constant(I64, 0), work)
        carried = []
        for total in sums:
            phi = builder.phi(floats)
            phi.add_incoming(total, work)
            carried.append(phi)
        builder.cbranch(builder.icmp_signed("<", j, count), body, after)
        builder.position_at_end(body)
        at = builder.gep(codes, [builder.mul(j, ir.Constant(I64, 16))])
        votes = builder.load(builder.bitcast(at, bytes_.as_pointer()), align=1)
        value = spread(builder.load(builder.gep(values, [j])), floats)
        for phi, cls in zip(carried, wanted, strict=True):
            more = builder.fadd(phi, value)
            phi.add_incoming(builder.select(builder.icmp_signed("==", votes, cls), more, phi), body)
        j.add_incoming(builder.add(j, ir.Constant(I64, 1)), body)
        builder.branch(head)
        builder.position_at_end(after)
        for target, phi in zip(targets, carried, strict=True):
            builder.store(phi, target, align=4)
        builder.store(following, done)
        builder.branch(check)
        builder.position_at_end(leave)


def _emit_next_lane(builder: Any, scores: Any, rows: Any, slack: Any, start: Any) -> Any:
    """The rows in a loop, the lanes in one vector, whose comparison becomes sixteen bits."""
    function = builder.function
    floats = ir.VectorType(ir.FloatType(), 16)
    bits = ir.IntType(32)

    def load(row: Any) -> Any:
        at = builder.gep(scores, [builder.mul(row, ir.Constant(I64, 16))])
        return builder.load(builder.bitcast(at, floats.as_pointer()), align=4)

    label, second, before = load(ir.Constant(I64, 0)), load(ir.Constant(I64, 1)), builder.block
    head = function.append_basic_block("lane.head")
    body = function.append_basic_block("lane.body")
    after = function.append_basic_block("lane.after")
    builder.branch(head)
    builder.position_at_end(head)
    row, best = builder.phi(I64), builder.phi(floats)
    row.add_incoming(ir.Constant(I64, 2), before)
    best.add_incoming(second, before)
    builder.cbranch(builder.icmp_signed("<", row, rows), body, after)
    builder.position_at_end(body)
    other = load(row)
    best.add_incoming(builder.select(builder.fcmp_ordered(">", other, best), other, best), body)
    row.add_incoming(builder.add(row, ir.Constant(I64, 1)), body)
    builder.branch(head)
    builder.position_at_end(after)
    one = builder.insert_element(
        ir.Constant(floats, ir.Undefined), builder.fptrunc(slack, ir.FloatType()), ir.Constant(I32, 0)
    )
    limit = builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, 16), [0] * 16))
    close = builder.fcmp_unordered("<=", builder.fsub(label, best), limit)
    found = builder.zext(builder.bitcast(close, ir.IntType(16)), bits)
    passed = builder.shl(ir.Constant(bits, 0xFFFF), builder.trunc(start, bits))
    found = builder.or_(builder.and_(found, passed), ir.Constant(bits, 1 << 16))  # none: lane 16
    return builder.zext(builder.cttz(found, ir.Constant(ir.IntType(1), 1)), I64)


def _data(context: Any, builder: Any, kind: Any, value: Any, start: Any = None) -> Any:
    data = cgutils.create_struct_proxy(kind)(context, builder, value).data
    return data if start is None else builder.gep(data, [start])


if JIT:

    @intrinsic
    def add_rows(_, scores, weights, base, stride, rows, values, lo, hi):  # type: ignore[no-untyped-def]
        """``scores[:stride] += sum over j in lo..hi of values[j] * weights[base + rows[j] * stride :]``."""
        signature = types.void(scores, weights, int64, int64, int32[::1], float64[::1], int64, int64)

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            s, w, base_, stride_, r, v, lo_, hi_ = args
            _emit(
                builder,
                _data(context, builder, sig.args[0], s),
                _data(context, builder, sig.args[1], w, base_),
                stride_,
                _data(context, builder, sig.args[4], r, lo_),
                _data(context, builder, sig.args[5], v, lo_),
                builder.sub(hi_, lo_),
                within=builder.sub(cgutils.create_struct_proxy(sig.args[4])(context, builder, r).nitems, lo_),
            )
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def add_dense(_, scores, weights, base, stride, values):  # type: ignore[no-untyped-def]
        """``scores[:stride] += sum over j of values[j] * weights[base + j * stride :]``."""
        signature = types.void(scores, weights, int64, int64, float64[::1])

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            s, w, base_, stride_, v = args
            row = cgutils.create_struct_proxy(sig.args[4])(context, builder, v)
            _emit(
                builder,
                _data(context, builder, sig.args[0], s),
                _data(context, builder, sig.args[1], w, base_),
                stride_,
                None,
                row.data,
                row.nitems,
            )
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def add_lanes(_, scores, panel, base, values):  # type: ignore[no-untyped-def]
        """`add_dense` in single precision, stride 16: ``scores += sum of values[j] * panel[base + 16 j :]``."""
        signature = types.void(scores, float32[::1], int64, float32[::1])

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            s, p, base_, v = args
            row = cgutils.create_struct_proxy(sig.args[3])(context, builder, v)
            _emit(
                builder,
                _data(context, builder, sig.args[0], s),
                _data(context, builder, sig.args[1], p, base_),
                ir.Constant(I64, 16),
                None,
                row.data,
                row.nitems,
                (16,),
                ir.FloatType(),
            )
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def sum_codes(_, scores, codes, base, values):  # type: ignore[no-untyped-def]
        """Sixteen instances of voters: ``scores[c, lane]`` = sum of values[j] with codes[base + 16 j + lane] = c."""
        signature = types.void(float32[:, ::1], int8[::1], int64, float32[::1])

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            s, c, base_, v = args
            table = cgutils.create_struct_proxy(sig.args[0])(context, builder, s)
            row = cgutils.create_struct_proxy(sig.args[3])(context, builder, v)
            rows = builder.extract_value(table.shape, 0)
            _emit_codes(builder, table.data, rows, _data(context, builder, sig.args[1], c, base_), row.data, row.nitems)
            return context.get_dummy_value()

        return signature, codegen

    @intrinsic
    def next_lane(_, scores, slack, start):  # type: ignore[no-untyped-def]
        """The first lane from ``start`` on in which row 0 leads all others by at most slack; 16 when there is none."""
        signature = int64(float32[:, ::1], float64, int64)

        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            table = cgutils.create_struct_proxy(sig.args[0])(context, builder, args[0])
            rows = builder.extract_value(table.shape, 0)
            return _emit_next_lane(builder, table.data, rows, args[1], args[2])

        return signature, codegen

else:
    add_rows = plain_add_rows
    add_dense = plain_add_dense

    def add_lanes(scores: np.ndarray, panel: np.ndarray, base: int, values: np.ndarray) -> None:
        plain_add_dense(scores, panel, base, 16, values)

    def sum_codes(scores: np.ndarray, codes: np.ndarray, base: int, values: np.ndarray) -> None:
        scores[:] = 0.0
        for j in range(values.size):
            for lane in range(16):
                if codes[base + 16 * j + lane] >= 0:
                    scores[codes[base + 16 * j + lane], lane] += values[j]

    def next_lane(scores: np.ndarray, slack: float, start: int) -> int:
        for lane in range(start, 16):
            if not scores[0, lane] - scores[1:, lane].max() > slack:
                return lane
        return 16
