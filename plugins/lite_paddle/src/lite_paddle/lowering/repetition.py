"""Tensors repeated or broadcast to a shape: expand, expand_v2, expand_as, tile, meshgrid."""

from __future__ import annotations

from lite_core.ir import Value
from lite_paddle.lowering.context import Context, Unlowerable, lowers
from lite_paddle.lowering.dynamic import dimension, shape_vector
from lite_paddle.lowering.integers import Element, int_elements, int_vector
from lite_paddle.source import SourceOp


@lowers("expand")
def expand(op: SourceOp, context: Context) -> None:
    """Paddle 1: how often each axis is repeated."""
    times = int_elements(op, context, "expand_times", "ExpandTimes", "expand_times_tensor")
    context.bind(op, "Out", _repeated(context, context.input(op, "X"), times))


@lowers("tile")
def tile(op: SourceOp, context: Context) -> None:
    times = int_elements(op, context, "repeat_times", "RepeatTimes", "repeat_times_tensor")
    context.bind(op, "Out", _repeated(context, context.input(op, "X"), times))


@lowers("expand_as")
def expand_as(op: SourceOp, context: Context) -> None:
    """Paddle 1: repeated to the shape of another tensor, of whose sizes its own are factors."""
    x, target = context.input(op, "X"), context.any_input(op, "target_tensor", "Y")
    rank = context.rank(x, "it is repeated axis by axis")
    times = [_quotient(context, dimension(context, target, a), dimension(context, x, a)) for a in range(rank)]
    context.bind(op, "Out", _repeated(context, x, times))


def _quotient(context: Context, a: Element, b: Element) -> Element:
    if isinstance(a, int) and isinstance(b, int) and b:
        return a // b
    return context.node("Div", [context.builder.ints(e) if isinstance(e, int) else e for e in (a, b)])


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
    """Broadcast to a shape in which -1 keeps the size; 1 does so in ONNX."""
    known = context.known(shape)
    if known is None:
        shape = context.node("Abs", [shape])
    elif context.known_ints(shape) is not None:
        shape = context.builder.ints(*(1 if d < 0 else d for d in known.reshape(-1).tolist()))
    elif any(isinstance(d, int) and d < 0 for d in known.tolist()):
        places = [context.builder.ints(i) for i in range(len(known))]
        shape = shape_vector(
            context,
            [
                (1 if d < 0 else d) if isinstance(d, int) else context.node("Gather", [shape, i])
                for i, d in zip(places, known.tolist())
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
    for place, vector in enumerate(vectors):
        ones = [1] * len(vectors)
        ones[place] = -1
        grids.append(context.node("Expand", [context.reshape(vector, ones), shape]))
    context.bind(op, "Out", *grids)
