"""Repeating and broadcasting tensors: expand, expand_v2, expand_as, tile, meshgrid."""

from __future__ import annotations

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, shape_vector, size_vector
from lite_paddle.lowering.integers import Element, int_elements, int_vector, normalized
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("expand")
def expand(op: SourceOp, context: Context) -> None:
    """Repeat each axis ``expand_times`` times (Paddle 1)."""
    times = int_elements(op, context, "expand_times", "ExpandTimes", "expand_times_tensor")
    context.bind(op, "Out", _repeated(context, context.input(op, "X"), times))


@lowers("tile")
def tile(op: SourceOp, context: Context) -> None:
    times = int_elements(op, context, "repeat_times", "RepeatTimes", "repeat_times_tensor")
    context.bind(op, "Out", _repeated(context, context.input(op, "X"), times))


@lowers("expand_as")
def expand_as(op: SourceOp, context: Context) -> None:
    """Repeat to the shape of another tensor, whose sizes are multiples of the input's (Paddle 1)."""
    x, target = context.input(op, "X"), context.any_input(op, "target_tensor", "Y")
    rank = context.rank(x, "it is repeated axis by axis")
    times = [_quotient(context, dimension(context, target, a), dimension(context, x, a)) for a in range(rank)]
    context.bind(op, "Out", _repeated(context, x, times))


def _quotient(context: Context, a: Element, b: Element) -> Element:
    if isinstance(a, int) and isinstance(b, int) and b:
        return a // b
    return context.node("Div", [size_vector(context, e) for e in (a, b)])


def _repeated(context: Context, x: Value, times: list[Element]) -> Value:
    rank = context.rank(x, "it is repeated axis by axis")
    if len(times) > rank:
        x = context.node("Unsqueeze", [x, context.builder.ints(*range(len(times) - rank))])
    times = [*[1] * (rank - len(times)), *times]
    if all(isinstance(t, int) and t == 1 for t in times):
        return x
    return context.node("Tile", [x, shape_vector(context, times)])


@lowers("expand_v2")
def expand_v2(op: SourceOp, context: Context) -> None:
    shape = int_vector(op, context, "shape", "Shape", "expand_shapes_tensor")
    context.bind(op, "Out", _expanded(context, context.input(op, "X"), shape))


@lowers("expand_as_v2")
def expand_as_v2(op: SourceOp, context: Context) -> None:
    like = context.optional(op, "Y")
    shape = int_vector(op, context, "target_shape") if like is None else context.node("Shape", [like])
    context.bind(op, "Out", _expanded(context, context.input(op, "X"), shape))


def _expanded(context: Context, x: Value, shape: Value) -> Value:
    """Broadcast to a shape in which -1 keeps the size, as 1 does in ONNX."""
    known = context.known(shape)
    if known is None:
        shape = context.node("Abs", [shape])
    elif context.known_ints(shape) is not None:
        shape = context.builder.ints(*(1 if d < 0 else d for d in known.reshape(-1).tolist()))
    elif any(isinstance(d, int) and d < 0 for d in known.tolist()):
        indices = [context.builder.ints(i) for i in range(len(known))]
        shape = shape_vector(
            context,
            [
                (1 if d < 0 else d) if isinstance(d, int) else context.node("Gather", [shape, i])
                for i, d in zip(indices, known.tolist())
            ],
        )
    if context.known_ints(shape) == list(x.shape or ()):
        return x
    return context.node("Expand", [x, shape])


@lowers("meshgrid")
def meshgrid(op: SourceOp, context: Context) -> None:
    vectors = [context.reshape(v, [-1]) if v.type.rank != 1 else v for v in context.inputs(op, "X")]
    if not vectors:
        raise Unlowerable("its input X is missing")
    shape = shape_vector(context, [dimension(context, v, 0) for v in vectors])
    grids = []
    for index, vector in enumerate(vectors):
        ones = [1] * len(vectors)
        ones[index] = -1
        grids.append(context.node("Expand", [context.reshape(vector, ones), shape]))
    context.bind(op, "Out", *grids)


@lowers("repeat_interleave", "repeat_interleave_with_tensor_index")
def repeat_interleave(op: SourceOp, context: Context) -> None:
    """Repeat each slice along an axis consecutively: ``Repeats`` times, or by the counts in a tensor."""
    x, counts = context.input(op, "X"), context.optional(op, "RepeatsTensor")
    rank = context.rank(x, "slices along an axis of it are repeated")
    (axis,) = normalized([int(context.attribute(op, "dim"))], rank)
    size = dimension(context, x, axis)
    if counts is None:
        indices = _indices_repeated(context, size, int(context.attribute(op, "Repeats")))
    else:
        indices = _indices_by_count(context, size, context.cast(counts, DType.INT64))
    context.emit(op, "Gather", [x, indices], {"axis": axis})


def _indices_repeated(context: Context, size: Element, times: int) -> Value:
    """Return 0 ... size - 1, each ``times`` times in a row."""
    if times < 1:
        raise Unlowerable(f"it repeats {times} times, expected 1 or more")
    factor, zero, one = (context.scalar(n, DType.INT64) for n in (times, 0, 1))
    length = context.scalar(size, DType.INT64) if isinstance(size, int) else context.reshape(size, [])
    indices = context.node("Range", [zero, context.node("Mul", [length, factor]), one])
    return context.node("Div", [indices, factor])


def _indices_by_count(context: Context, size: Element, counts: Value) -> Value:
    """Return 0 ... size - 1, each repeated by its count: each element is the number of runs that end before it."""
    length = size_vector(context, size)
    counts = context.node("Expand", [counts, length])
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    total = context.node("ReduceSum", [counts], {"keepdims": 0})
    column = context.node("Unsqueeze", [context.node("Range", [zero, total, one]), context.builder.ints(1)])
    behind = context.node("GreaterOrEqual", [column, context.node("CumSum", [counts, zero])])
    behind = context.cast(behind, DType.INT64)
    return context.node("ReduceSum", [behind, context.builder.ints(1)], {"keepdims": 0})
