"""Padding around a tensor: pad, pad2d, pad3d, pad_constant_like."""

from __future__ import annotations

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, shape_vector, size_vector
from lite_paddle.lowering.integers import Element, int_vector
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_MODES = {
    "constant": "constant",
    "reflect": "reflect",
    "edge": "edge",
    "replicate": "edge",
    "circular": "wrap",
}


@lowers("pad")
def pad(op: SourceOp, context: Context) -> None:
    pairs = [int(p) for p in context.attribute(op, "paddings")]
    pads = context.builder.ints(*pairs[::2], *pairs[1::2])
    x = context.input(op, "X")
    context.emit(op, "Pad", [x, pads, _pad_value(op, context, x, "pad_value")])


@lowers("pad2d")
def pad2d(op: SourceOp, context: Context) -> None:
    """Pad by (top, bottom, left, right)."""
    _pad_spatial(op, context, (0, 2, 1, 3), "pad_value")


@lowers("pad3d")
def pad3d(op: SourceOp, context: Context) -> None:
    """Pad by (left, right, top, bottom, front, back)."""
    _pad_spatial(op, context, (4, 2, 0, 5, 3, 1), "value")


def _pad_spatial(op: SourceOp, context: Context, order: tuple[int, ...], value_name: str) -> None:
    """Pad the spatial axes; ``order``: the indices in Paddle's list that give ONNX's begins, then its ends."""
    x, mode = context.input(op, "X"), op.attrs["mode"]
    if mode not in _MODES:
        raise Unlowerable(f"padding mode {mode!r} is not one of {', '.join(_MODES)}")
    given = int_vector(op, context, "paddings", "Paddings")
    known = context.known_ints(given)
    if known is None:
        pads = context.node("Gather", [given, context.builder.ints(*order)])
    elif len(known) != len(order):
        raise Unlowerable(f"paddings must have {len(order)} entries, has {len(known)}")
    else:
        pads = context.builder.ints(*(known[i] for i in order))
    first = 1 if str(op.attrs["data_format"]).endswith("C") else 2
    axes = context.builder.ints(*range(first, first + len(order) // 2))
    pad_value = _pad_value(op, context, x, value_name) if mode == "constant" else None
    context.emit(op, "Pad", [x, pads, pad_value, axes], {"mode": _MODES[mode]})


def _pad_value(op: SourceOp, context: Context, x: Value, attribute: str) -> Value:
    tensor = context.optional(op, "PadValueTensor")
    if tensor is not None:
        return context.reshape(context.cast(tensor, x.dtype), [])
    return context.scalar(op.attrs[attribute], x)


@lowers("pad_constant_like")
def pad_constant_like(op: SourceOp, context: Context) -> None:
    """Pad Y at the ends to the shape of X."""
    x, y = context.input(op, "X"), context.input(op, "Y")
    rank = context.rank(x, "another tensor is padded to its shape")
    ends: list[Element] = []
    for axis in range(rank):
        big, small = dimension(context, x, axis), dimension(context, y, axis)
        if isinstance(big, int) and isinstance(small, int):
            ends.append(big - small)
        else:
            ends.append(context.node("Sub", [size_vector(context, d) for d in (big, small)]))
    pads = shape_vector(context, [*[0] * rank, *ends])
    context.emit(op, "Pad", [y, pads, context.scalar(op.attrs["pad_value"], y)])
