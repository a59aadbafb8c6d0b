"""Rarer operators on shapes and indices: parts of columns, shards of indices, repeated elements, diagonals."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import static_dimension
from lite_paddle.lowering.integers import element_type
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

I64 = DType.INT64


@lowers("partial_concat", "partial_sum")
def parts_of_columns(op: SourceOp, context: Context) -> None:
    """Join or add the columns from ``start_index`` on, ``length`` of them (-1: all), of several matrices."""
    start, length = int(op.attrs["start_index"]), int(op.attrs["length"])
    end = 2**31 - 1 if length < 0 or (start < 0 and start + length == 0) else start + length
    ints = context.builder.ints
    parts = [context.node("Slice", [x, ints(start), ints(end), ints(1)]) for x in context.inputs(op, "X")]
    if op.type == "partial_concat":
        context.emit(op, "Concat", parts, {"axis": 1})
    else:
        context.emit(op, "Sum", parts)


@lowers("shard_index")
def shard_index(op: SourceOp, context: Context) -> None:
    """Return indices within one of ``nshards`` parts of a table, and ``ignore_value`` for those of others."""
    x, count, shards = context.input(op, "X"), int(op.attrs["index_num"]), int(op.attrs["nshards"])
    size = -(-count // shards)
    first = int(op.attrs["shard_id"]) * size
    local = context.node("Sub", [x, context.scalar(first, x)])
    above = context.node("GreaterOrEqual", [local, context.scalar(0, x)])
    inside = context.node("And", [above, context.node("Less", [local, context.scalar(size, x)])])
    context.emit(op, "Where", [inside, local, context.scalar(int(op.attrs["ignore_value"]), x)])


@lowers("unique_consecutive")
def unique_consecutive(op: SourceOp, context: Context) -> None:
    """Return the elements that differ from the one before, the place of each in that result, and the runs' lengths."""
    x, ints = context.input(op, "X"), context.builder.ints
    if op.attrs.get("axis") and x.type.rank != 1:
        raise Unlowerable("it compares slices along an axis", "export the model with axis=None")
    flat = context.reshape(x, [-1])
    before = context.node("Slice", [flat, ints(0), ints(-1), ints(0)])
    after = context.node("Slice", [flat, ints(1), ints(2**31 - 1), ints(0)])
    first = context.node("Slice", [flat, ints(0), ints(1), ints(0)])
    changed = context.node("Not", [context.node("Equal", [before, after])])
    # The first element begins a run; an empty tensor has none.
    starts = context.node("Expand", [context.scalar(True, DType.BOOL), context.node("Shape", [first])])
    keep = context.node("Concat", [starts, changed], {"axis": 0})
    dtype = element_type(op.attrs.get("dtype"), I64)
    one = context.scalar(1, I64)
    context.bind(op, "Out", context.node("Compress", [flat, keep], {"axis": 0}))
    positions = context.node("CumSum", [context.cast(keep, I64), context.scalar(0, I64)])
    context.bind(op, "Index", context.cast(context.node("Sub", [positions, one]), dtype))
    begins = context.reshape(context.node("NonZero", [keep]), [-1])
    ends = context.node("Slice", [begins, ints(1), ints(2**31 - 1), ints(0)])
    ends = context.node("Concat", [ends, context.node("Shape", [flat])], {"axis": 0})
    context.bind(op, "Counts", context.cast(context.node("Sub", [ends, begins]), dtype))


@lowers("fill_diagonal")
def fill_diagonal(op: SourceOp, context: Context) -> None:
    """Write a number to a diagonal of a matrix; with ``wrap`` it begins again after a row behind its end.

    An offset moves each written element within its row, and does not add rows.
    """
    x = context.input(op, "X")
    if context.rank(x, "its diagonal is written") != 2:
        raise Unlowerable(f"its input has {x.type.rank} dimensions, expected a matrix")
    offset = int(op.attrs["offset"])
    zero, one = (context.scalar(n, I64) for n in (0, 1))
    height, width = (context.reshape(context.node("Shape", [x], {"start": a, "end": a + 1}), []) for a in (0, 1))
    rows = context.reshape(context.node("Range", [zero, height, one]), [-1, 1])
    columns = context.node("Range", [zero, width, one])
    if op.attrs["wrap"]:
        # The diagonal begins again every width + 1 rows.
        rows = context.node("Mod", [rows, context.node("Add", [width, one])])
    on_diagonal = context.node("Equal", [context.node("Sub", [columns, rows]), context.scalar(offset, I64)])
    is_written = context.node("And", [on_diagonal, context.node("Less", [rows, width])])
    context.emit(op, "Where", [is_written, context.scalar(float(op.attrs["value"]), x), x])


@lowers("fill_diagonal_tensor")
def fill_diagonal_tensor(op: SourceOp, context: Context) -> None:
    """Write the last axis of Y to a diagonal of the axes ``dim1`` (rows) and ``dim2`` (columns) of X."""
    x, y, offset = context.input(op, "X"), context.input(op, "Y"), int(op.attrs["offset"])
    rank = context.rank(x, "its axes are counted from the end")
    if rank == 2:  # Paddle writes a diagonal of a matrix as [1, length].
        y = context.reshape(y, [-1])
    pair = [int(op.attrs[name]) % rank for name in ("dim1", "dim2")]
    order = [*(a for a in range(rank) if a not in pair), *pair]
    moved = context.transpose(x, order)
    zero, one = (context.scalar(n, I64) for n in (0, 1))
    height, width = (context.reshape(context.node("Shape", [x], {"start": a, "end": a + 1}), []) for a in pair)
    rows, columns = (context.node("Range", [zero, size, one]) for size in (height, width))
    distance = context.node("Sub", [columns, context.reshape(rows, [-1, 1])])
    # Element i of the diagonal is in row i, or in column i if the diagonal begins below the corner.
    last = context.node("Sub", [context.node("Shape", [y], {"start": -1}), context.builder.ints(1)])
    positions = context.node("Min", [rows if offset >= 0 else columns, last])
    found = context.node("Gather", [y, positions], {"axis": -1})
    values = context.node("Unsqueeze", [found, context.builder.ints(-1 if offset >= 0 else -2)])
    is_written = context.node("Equal", [distance, context.scalar(offset, I64)])
    result = context.node("Where", [is_written, values, moved])
    context.bind(op, "Out", context.transpose(result, [order.index(a) for a in range(rank)]))


@lowers("logspace")
def logspace(op: SourceOp, context: Context) -> None:
    """Return powers of a base, whose exponents are evenly spaced from ``Start`` to ``Stop``."""
    start, stop, base = (_float64(context, context.input(op, slot)) for slot in ("Start", "Stop", "Base"))
    known = context.known_ints(context.input(op, "Num"))
    if known is None or known[0] < 1:
        raise Unlowerable("the number of its elements is not known before the model runs")
    parts = context.builder.constant(np.linspace(0, 1, known[0]))
    exponents = context.node("Add", [start, context.node("Mul", [parts, context.node("Sub", [stop, start])])])
    result = context.node("Pow", [base, exponents])
    context.bind(op, "Out", context.cast(result, element_type(op.attrs.get("dtype"), DType.FLOAT32)))


def _float64(context: Context, value: Value) -> Value:
    return context.reshape(context.cast(value, DType.FLOAT64), [])


@lowers("view_shape")
def view_shape(op: SourceOp, context: Context) -> None:
    result = context.reshape(context.any_input(op, "input", "0"), [int(d) for d in op.attrs["dims"]])
    context.bind(op, "out", result)
    context.bind(op, "0", result)


@lowers("as_strided")
def as_strided(op: SourceOp, context: Context) -> None:
    """Take elements by their positions in memory: ``offset`` plus the sum of indices times strides."""
    dims, strides = ([int(n) for n in op.attrs[name]] for name in ("dims", "stride"))
    positions = np.full(dims, int(op.attrs["offset"]), np.int64)
    for axis, (size, stride) in enumerate(zip(dims, strides)):
        positions += (np.arange(size) * stride).reshape([-1 if a == axis else 1 for a in range(len(dims))])
    flat = context.reshape(context.any_input(op, "input", "0"), [-1])
    result = context.node("Gather", [flat, context.builder.constant(positions)], {"axis": 0})
    context.bind(op, "out", result)
    context.bind(op, "0", result)


@lowers("tensor_unfold")
def tensor_unfold(op: SourceOp, context: Context) -> None:
    """Take windows of ``size`` elements, ``step`` apart, along an axis; their elements become a new last axis."""
    x = context.any_input(op, "input", "0")
    rank = context.rank(x, "its axis is counted from the end")
    axis, size, step = int(op.attrs["axis"]) % rank, int(op.attrs["size"]), int(op.attrs["step"])
    length = static_dimension(x, axis, "its windows are counted when the model is read")
    starts = np.arange(0, length - size + 1, step)
    positions = context.builder.constant(starts[:, None] + np.arange(size))
    windows = context.node("Gather", [x, positions], {"axis": axis})
    order = [a for a in range(rank + 1) if a != axis + 1]
    result = context.transpose(windows, [*order, axis + 1])
    context.bind(op, "out", result)
    context.bind(op, "0", result)


@lowers("reduce_as")
def reduce_as(op: SourceOp, context: Context) -> None:
    """Add up the axes along which the target has size 1, or which it does not have."""
    x, target = context.any_input(op, "x", "0"), context.any_input(op, "target", "1")
    extra = context.rank(x, "its axes are added") - context.rank(target, "it says which axes are added")
    sizes = [static_dimension(target, a, "only axes of size 1 are added") for a in range(len(target.shape))]
    own = [static_dimension(x, a, "only axes of other sizes are added") for a in range(len(x.shape))]
    axes = [a + extra for a, size in enumerate(sizes) if size == 1 and own[a + extra] != 1]
    result = x
    if axes:
        result = context.node("ReduceSum", [result, context.builder.ints(*axes)], {"keepdims": 1})
    if extra:
        result = context.node("ReduceSum", [result, context.builder.ints(*range(extra))], {"keepdims": 0})
    context.bind(op, "out", result)
    context.bind(op, "0", result)


@lowers("bitwise_left_shift", "bitwise_right_shift")
def shift_bits(op: SourceOp, context: Context) -> None:
    """Multiply by a power of two, or divide by it and round down."""
    x, y = context.any_input(op, "x", "0"), context.any_input(op, "y", "1")
    if not op.attrs.get("is_arithmetic", True) and x.dtype.name.startswith("INT"):
        raise Unlowerable("it moves the bits of signed integers with their signs (is_arithmetic is false)")
    factor = context.cast(context.node("Pow", [context.scalar(2, I64), context.cast(y, I64)]), x.dtype)
    if op.type == "bitwise_left_shift":
        result = context.node("Mul", [x, factor])
    else:
        rest = context.node("Mod", [x, factor])
        result = context.node("Div", [context.node("Sub", [x, rest]), factor])
    context.bind(op, "out", result)
    context.bind(op, "0", result)
