"""Paddle 1's operators that compute along each sequence of a batch; see :mod:`lite_paddle.lowering.sequences`."""

from __future__ import annotations

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension
from lite_paddle.lowering.limits import check_parts, lowest_finite
from lite_paddle.lowering.operators.rearrangement import flipped
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import Rows, rows_of
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("sequence_pool")
def sequence_pool(op: SourceOp, context: Context) -> None:
    """Reduce each sequence to a row; a sequence without rows becomes ``pad_value``."""
    rows, pooling = rows_of(op, context, "X"), str(op.attrs["pooltype"]).upper()
    number = float(op.attrs.get("pad_value", 0.0))
    if pooling in ("FIRST", "LAST"):
        result = rows.ends(number, last=pooling == "LAST")
    elif pooling in ("AVERAGE", "SUM", "MAX", "SQRT"):
        result = _reduced(rows, pooling, number)
    else:
        raise Unlowerable(f"pooltype is {pooling!r}, expected AVERAGE, SUM, SQRT, MAX, FIRST or LAST")
    context.bind(op, "Out", result)
    context.bind_sequences(op.outputs["Out"][0], rows.sequences.without_last_level)


def _reduced(rows: Rows, pooling: str, number: float) -> Value:
    context, x = rows.context, rows.value
    of_one = rows.sequences.offsets is None
    lowest = lowest_finite(x.dtype) if pooling == "MAX" else 0
    type_ = "ReduceMax" if pooling == "MAX" else "ReduceMean" if pooling == "AVERAGE" and of_one else "ReduceSum"
    padded = rows.padded(lowest)
    result = context.node(type_, [padded, context.builder.ints(1)], {"keepdims": 0})
    if type_ != "ReduceSum" and of_one:
        return result
    if of_one:
        lengths = context.node("Shape", [padded], {"start": 1, "end": 2})
    else:
        rank = context.rank(x, "its rows are sequences")
        lengths = context.reshape(rows.lengths(), [-1, *[1] * (rank - 1)])
    if pooling in ("AVERAGE", "SQRT"):
        divisor = context.cast(lengths, x.dtype)
        if not of_one:
            divisor = context.node("Max", [divisor, context.scalar(1, x)])
        result = context.node("Div", [result, context.node("Sqrt", [divisor]) if pooling == "SQRT" else divisor])
    if of_one:
        return result
    empty = context.node("Equal", [lengths, context.builder.ints(0)])
    return context.node("Where", [empty, context.scalar(number, x), result])


@lowers("sequence_softmax")
def sequence_softmax(op: SourceOp, context: Context) -> None:
    rows = rows_of(op, context, "X")
    padded = rows.padded(lowest_finite(rows.value.dtype))
    context.bind(op, "Out", rows.joined(context.node("Softmax", [padded], {"axis": 1})))
    context.bind_sequences(op.outputs["Out"][0], rows.sequences)


@lowers("sequence_reverse")
def sequence_reverse(op: SourceOp, context: Context) -> None:
    rows = rows_of(op, context, "X")
    if rows.sequences.offsets is None:
        result = rows.joined(flipped(context, rows.padded(), [1]))
    else:
        order = rows.joined(rows.tables(reverse=True).indices)
        result = context.node("Gather", [rows.value, order], {"axis": 0})
    context.bind(op, "Y", result)
    context.bind_sequences(op.outputs["Y"][0], rows.sequences)


@lowers("sequence_conv")
def sequence_conv(op: SourceOp, context: Context) -> None:
    """Multiply each step, joined with its neighbours (zeros outside the sequence), by the filter."""
    rows, filter_ = rows_of(op, context, "X"), context.input(op, "Filter")
    if op.attrs["paddingTrainable"] or int(op.attrs["contextStride"]) != 1:
        raise Unlowerable("trained padding and context strides other than 1 are not supported")
    length, start = int(context.attribute(op, "contextLength")), int(op.attrs["contextStart"])
    windows = _windows(rows, length, start, 0)
    table = windows[0] if length == 1 else context.node("Concat", windows, {"axis": 2})
    context.emit(op, "MatMul", [rows.joined(table), filter_])
    context.bind_sequences(op.outputs["Out"][0], rows.sequences)


@lowers("sequence_enumerate")
def sequence_enumerate(op: SourceOp, context: Context) -> None:
    """Join each step with those that follow it in its sequence, and ``pad_value`` behind the end."""
    rows, size = rows_of(op, context, "X"), int(context.attribute(op, "win_size"))
    windows = _windows(rows, size, 0, int(op.attrs.get("pad_value", 0)))
    table = windows[0] if size == 1 else context.node("Concat", windows, {"axis": 2})
    context.bind(op, "Out", rows.joined(table))
    context.bind_sequences(op.outputs["Out"][0], rows.sequences)


@lowers("row_conv")
def row_conv(op: SourceOp, context: Context) -> None:
    """Add up each step and the next ones, multiplied by the rows of the filter [steps, W]."""
    x, filter_ = context.input(op, "X"), context.input(op, "Filter")
    rows = None if context.rank(x, "its steps are needed") == 3 else rows_of(op, context, "X")
    steps = filter_.shape[0] if filter_.type.rank else None
    if not isinstance(steps, int):
        raise Unlowerable("the number of rows of its filter is not known")
    total: Value | None = None
    for tap, window in enumerate(_windows_of(context, x if rows is None else rows.padded(), steps, 0, 0)):
        weights = context.node("Gather", [filter_, context.builder.ints(tap)], {"axis": 0})
        part = context.node("Mul", [window, weights])
        total = part if total is None else context.node("Add", [total, part])
    assert total is not None, "a filter without rows was refused by check_parts"
    context.bind(op, "Out", total if rows is None else rows.joined(total))


def _windows(rows: Rows, length: int, start: int, number: float) -> list[Value]:
    if rows.context.rank(rows.value, "it must be [R, W]") != 2:
        raise Unlowerable(f"its input has rank {rows.value.type.rank}, expected 2")
    return _windows_of(rows.context, rows.padded(number), length, start, number)


def _windows_of(context: Context, padded: Value, length: int, start: int, number: float) -> list[Value]:
    """Return the steps [N, L, W] moved by ``start``, ``start + 1`` and so on, ``length`` in all."""
    if length < 1:
        raise Unlowerable(f"its windows have {length} steps, expected at least 1")
    check_parts(length)
    before, after = max(-start, 0), max(start + length - 1, 0)
    ints = context.builder.ints
    wider = context.node("Pad", [padded, ints(0, before, 0, 0, after, 0), context.scalar(number, padded)])
    steps = dimension(context, padded, 1)
    windows = []
    for tap in range(length):
        first = before + start + tap
        end = ints(first + steps) if isinstance(steps, int) else context.node("Add", [steps, ints(first)])
        windows.append(context.node("Slice", [wider, ints(first), end, ints(1)]))
    return windows
