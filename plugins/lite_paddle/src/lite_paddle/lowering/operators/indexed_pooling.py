"""Maximum pools that also return the index of the maximum, and unpooling, their inverse."""

from __future__ import annotations

from math import prod

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.adaptive import bins
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, integer_vector, reshape_to, shape_vector, static_dimension
from lite_paddle.lowering.layout import in_channels_first
from lite_paddle.lowering.limits import check_parts, check_table
from lite_paddle.lowering.operators.pooling import PoolGeometry, pool_maximum, read_geometry
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.lowering.windows import per_axis
from lite_paddle.source import SourceOp


@lowers("max_pool2d_with_index", "max_pool3d_with_index")
def pool_with_index(op: SourceOp, context: Context) -> None:
    """Pool, and convert indices: ``Mask`` counts elements of a channel's plane, ONNX elements of the whole tensor."""
    axes = 3 if op.type.startswith("max_pool3d") else 2
    x = context.input(op, "X")
    context.rank(x, "its pool depends on the size")
    kernel = per_axis(context.attribute(op, "ksize"), axes, "ksize")
    if not context.is_used(op, "Mask"):
        context.bind(op, "Out", pool_maximum(op, context, x, kernel))
        return
    sizes = [dimension(context, x, a) for a in range(2, 2 + axes)]
    if op.attrs.get("global_pooling"):
        out, index = _pool_bins(context, x, [1] * axes)
    elif op.attrs.get("adaptive"):
        known = [s for s in sizes if isinstance(s, int)]
        if len(known) == axes and all(s % k == 0 for s, k in zip(known, kernel)):
            step = tuple(s // k for s, k in zip(known, kernel))
            geometry = PoolGeometry(step, step, [(0, 0)] * axes)
            out, index = _pool(context, x, geometry, sizes)
        else:
            out, index = _pool_bins(context, x, kernel)
    else:
        geometry = read_geometry(op, kernel, x.shape[2:])
        if geometry.window_may_lie_in_padding:
            raise Unlowerable("it has windows wholly in the padding, whose maximum has no index")
        out, index = _pool(context, x, geometry, sizes)
    mask = op.outputs.get("Mask")
    declared = mask[0].type.dtype if mask and mask[0].type else "int32"
    context.bind(op, "Out", out)
    context.bind(op, "Mask", context.cast(index, declared if declared == "int64" else "int32"))


def _pool(context: Context, x: Value, geometry: PoolGeometry, sizes: list[int | Value]) -> tuple[Value, Value]:
    out, index = context.nodes("MaxPool", [x], geometry.attributes(), outputs=2)
    if all(isinstance(s, int) for s in sizes):
        plane = context.builder.ints(prod(s for s in sizes if isinstance(s, int)))
    else:
        plane = context.node("ReduceProd", [shape_vector(context, sizes)], {"keepdims": 1})
    return out, context.node("Mod", [index, plane])


def _pool_bins(context: Context, x: Value, counts: list[int]) -> tuple[Value, Value]:
    """Return maximum and index for each bin separately, for bins of different sizes."""
    why = "its pool also returns indices, over bins that depend on the size"
    sizes = [static_dimension(x, a, why) for a in range(2, 2 + len(counts))]
    parts: list[tuple[Value, Value]] = []
    boxes: list[list[tuple[int, int]]] = [[]]
    check_parts(prod(counts))
    check_table(*sizes)
    for size, count in zip(sizes, counts):
        boxes = [[*box, edges] for box in boxes for edges in bins(size, count)]
    positions = context.builder.constant(np.arange(prod(sizes), dtype=np.int64).reshape(sizes))
    axes = context.builder.ints(*range(2, 2 + len(counts)))
    batch = [dimension(context, x, a) for a in (0, 1)]
    for box in boxes:
        begins, ends = (context.builder.ints(*edge) for edge in zip(*box))
        elements = prod(e - b for b, e in box)
        part = context.node("Slice", [x, begins, ends, axes])
        flat = reshape_to(context, part, [*batch, elements])
        first = context.node("ArgMax", [flat], {"axis": 2, "keepdims": 0})
        inside = context.node("Slice", [positions, begins, ends, context.builder.ints(*range(len(counts)))])
        position = context.node("Gather", [context.reshape(inside, [-1]), first])
        parts.append((context.node("ReduceMax", [flat, context.builder.ints(2)]), _column(context, position)))
    results = []
    for values in zip(*parts):
        joined = values[0] if len(values) == 1 else context.node("Concat", values, {"axis": 2})
        results.append(reshape_to(context, joined, [*batch, *counts]))
    return results[0], results[1]


def _column(context: Context, value: Value) -> Value:
    return context.node("Unsqueeze", [value, context.builder.ints(2)])


@lowers("unpool")
def unpool(op: SourceOp, context: Context) -> None:
    """Write every element to its index in its channel's plane; all others are 0."""
    indices = context.any_input(op, "Indices", "1")

    def compute(x: Value) -> Value:
        context.rank(x, "its unpooling depends on the size")
        batch = [dimension(context, x, a) for a in (0, 1)]
        size = _unpooled_size(op, context, x)
        plane = context.node("ReduceProd", [size], {"keepdims": 1})
        shape = shape_vector(context, [*batch, plane])
        empty = context.node("ConstantOfShape", [shape], {"value": np.zeros(1, x.dtype.numpy)})
        positions = context.cast(reshape_to(context, indices, [*batch, -1]), DType.INT64)
        flat = reshape_to(context, x, [*batch, -1])
        filled = context.node("ScatterElements", [empty, positions, flat], {"axis": 2})
        return context.node("Reshape", [filled, shape_vector(context, [*batch, size])])

    layout = str(op.attrs.get("data_format", "NCHW"))
    result = in_channels_first(context, context.any_input(op, "X", "0"), layout, compute)
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


def _unpooled_size(op: SourceOp, context: Context, x: Value) -> Value:
    """Return height and width of the result, int64 [2]: ``output_size``, or the size a pool would reduce to x."""
    tensor = context.any_optional(op, "OutputSizeTensor", "2")
    if tensor is not None:
        vector = integer_vector(context, tensor)
        known = context.known_ints(vector)
        return vector if known is None else context.builder.ints(*known[-2:])
    given = [int(s) for s in op.attrs.get("output_size") or []][-2:]
    if len(given) == 2 and all(given):
        return context.builder.ints(*given)
    kernel = per_axis(context.attribute(op, "ksize"), 2, "ksize")
    strides = per_axis(op.attrs.get("strides", 1), 2, "strides")
    pads = per_axis(op.attrs.get("paddings", op.attrs.get("padding", 0)), 2, "paddings")
    sizes = [static_dimension(x, a, "its unpooling has no output_size") for a in (2, 3)]
    return context.builder.ints(*((n - 1) * s - 2 * p + k for n, s, p, k in zip(sizes, strides, pads, kernel)))
