"""Operators that move elements between channels, space and time."""

from __future__ import annotations

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, reshape_to, static_dimension
from lite_paddle.lowering.layout import in_channels_first
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


def _layout(op: SourceOp) -> str:
    return str(op.attrs.get("data_format", "NCHW"))


def _divided(context: Context, x: Value, axis: int, divisor: int) -> int | Value:
    """Return the size of an axis divided by a number."""
    size = dimension(context, x, axis)
    if isinstance(size, Value):
        return context.node("Div", [size, context.builder.ints(divisor)])
    if size % divisor:
        raise Unlowerable(f"its axis {axis} of {size} elements cannot be split into parts of {divisor}")
    return size // divisor


@lowers("pixel_shuffle")
def pixel_shuffle(op: SourceOp, context: Context) -> None:
    """``out[n, c, h * r + i, w * r + j] = x[n, c * r * r + i * r + j, h, w]``."""
    factor = int(op.attrs["upscale_factor"])

    def compute(x: Value) -> Value:
        return context.node("DepthToSpace", [x], {"blocksize": factor, "mode": "CRD"})

    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), _layout(op), compute))


@lowers("pixel_unshuffle")
def pixel_unshuffle(op: SourceOp, context: Context) -> None:
    """Invert pixel_shuffle. NOTE: ONNX's SpaceToDepth orders the channels differently."""
    r = int(op.attrs["downscale_factor"])

    def compute(x: Value) -> Value:
        context.rank(x, "its axes are split")
        batch, channels = (dimension(context, x, a) for a in (0, 1))
        height, width = _divided(context, x, 2, r), _divided(context, x, 3, r)
        split = reshape_to(context, x, [batch, channels, height, r, width, r])
        moved = context.transpose(split, [0, 1, 3, 5, 2, 4])
        wide: int | Value = channels * r * r if isinstance(channels, int) else -1
        return reshape_to(context, moved, [batch, wide, height, width])

    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), _layout(op), compute))


@lowers("shuffle_channel", "channel_shuffle")
def channel_shuffle(op: SourceOp, context: Context) -> None:
    """Transpose the channels as a matrix [groups, channels / groups]."""
    groups = int(context.attribute(op, "groups", "group"))

    def compute(x: Value) -> Value:
        context.rank(x, "its channels are split")
        batch, channels, height, width = (dimension(context, x, a) for a in range(4))
        split = reshape_to(context, x, [batch, groups, _divided(context, x, 1, groups), height, width])
        return reshape_to(context, context.transpose(split, [0, 2, 1, 3, 4]), [batch, channels, height, width])

    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), _layout(op), compute))


@lowers("space_to_depth")
def space_to_depth(op: SourceOp, context: Context) -> None:
    """Lower Darknet's "reorg" of Paddle 1.x.

    NOTE: despite the name it first moves channels into space, [N, C / b^2, H * b, W * b], and then reads
    those elements in memory order as [N, C * b^2, H / b, W / b]. Models are trained with that order.
    """
    x, block = context.input(op, "X"), int(op.attrs["blocksize"])
    context.rank(x, "its axes are split")
    spread = context.node("DepthToSpace", [x], {"blocksize": block, "mode": "DCR"})
    channels = static_dimension(x, 1, "they are multiplied")
    shape = [
        dimension(context, x, 0),
        channels * block * block,
        _divided(context, x, 2, block),
        _divided(context, x, 3, block),
    ]
    context.bind(op, "Out", reshape_to(context, spread, shape))


@lowers("temporal_shift")
def temporal_shift(op: SourceOp, context: Context) -> None:
    """Take the first channels from the step before and the next ones from the step after; keep the others."""
    steps, ratio = int(context.attribute(op, "seg_num")), float(op.attrs["shift_ratio"])
    ints = context.builder.ints

    def compute(x: Value) -> Value:
        context.rank(x, "its steps are split off")
        channels = static_dimension(x, 1, "parts of them are shifted")
        batch, _, height, width = (dimension(context, x, a) for a in range(4))
        first, second = int(channels * ratio), int(channels * 2 * ratio)
        split = reshape_to(context, x, [_divided(context, x, 0, steps), steps, channels, height, width])

        def part(begin: int, end: int, move: int) -> Value:
            """Return the channels from ``begin`` to ``end``, shifted by ``move`` steps and padded with zeros."""
            found = context.node("Slice", [split, ints(begin), ints(end), ints(2)])
            if not move:
                return found
            pads = [0] * 10
            pads[1 if move > 0 else 6] = 1
            padded = context.node("Pad", [found, ints(*pads)])
            start = 0 if move > 0 else 1
            return context.node("Slice", [padded, ints(start), ints(start + steps), ints(1)])

        edges = ((0, first, 1), (first, second, -1), (second, channels, 0))
        parts = [part(*edge) for edge in edges if edge[0] < edge[1]]
        joined = parts[0] if len(parts) == 1 else context.node("Concat", parts, {"axis": 2})
        return reshape_to(context, joined, [batch, channels, height, width])

    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), _layout(op), compute))
