"""Rearranging elements: flip, roll, tril_triu, and patches of images (unfold, fold, im2sequence)."""

from __future__ import annotations

import math

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, reshape_to, size_vector
from lite_paddle.lowering.integers import FAR, Element, int_elements
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

# **** flip, roll, tril_triu ****


@lowers("flip", "reverse")
def flip(op: SourceOp, context: Context) -> None:
    x, axes = context.input(op, "X"), [int(a) for a in context.attribute(op, "axis")]
    context.bind(op, "Out", flipped(context, x, axes))


def flipped(context: Context, x: Value, axes: list[int]) -> Value:
    """Reverse a value along axes."""
    if not axes:
        return x
    ints, count = context.builder.ints, len(axes)
    inputs = [x, ints(*[-1] * count), ints(*[-FAR] * count), ints(*axes), ints(*[-1] * count)]
    return context.node("Slice", inputs)


@lowers("roll")
def roll(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    shifts = int_elements(op, context, "shifts", "ShiftsTensor", "ShiftsTensorList")
    axes = [int(a) for a in op.attrs.get("axis") or ()]
    rolled = x if axes else context.reshape(x, [-1])
    for shift, axis in zip(shifts, axes or [0]):
        rolled = _rolled(context, rolled, shift, axis)
    if not axes:
        shape = x.shape if x.type.rank is not None and all(isinstance(d, int) for d in x.shape) else None
        target = context.node("Shape", [x]) if shape is None else context.builder.ints(*shape)
        rolled = context.node("Reshape", [rolled, target])
    context.bind(op, "Out", rolled)


def _rolled(context: Context, x: Value, shift: Element, axis: int) -> Value:
    """Move the last ``shift`` elements of an axis to its front."""
    size, ints = dimension(context, x, axis), context.builder.ints
    if isinstance(size, int) and isinstance(shift, int):
        if size == 0 or shift % size == 0:
            return x
        cut: Value = ints(size - shift % size)
    else:
        vectors = [size_vector(context, e) for e in (shift, size)]
        cut = context.node("Sub", [vectors[1], context.node("Mod", vectors)])
    back = context.node("Slice", [x, cut, ints(FAR), ints(axis)])
    front = context.node("Slice", [x, ints(0), cut, ints(axis)])
    return context.node("Concat", [back, front], {"axis": axis})


@lowers("tril_triu")
def tril_triu(op: SourceOp, context: Context) -> None:
    x, diagonal = context.input(op, "X"), context.scalar(op.attrs["diagonal"], DType.INT64)
    context.emit(op, "Trilu", [x, diagonal], {"upper": 0 if op.attrs["lower"] else 1})


# **** patches ****

#: Limit of a window's height and width: each row and each column takes one node.
_LARGEST_KERNEL = 1024


def _pair(op: SourceOp, context: Context, name: str) -> tuple[int, int]:
    found = [int(i) for i in context.attribute(op, name)]
    if len(found) not in (1, 2):
        raise Unlowerable(f"{name} must have 2 entries, has {len(found)}")
    return found[0], found[-1]


def _sides(op: SourceOp, context: Context) -> list[int]:
    """Return the paddings as (top, left, bottom, right)."""
    found = [int(i) for i in context.attribute(op, "paddings")]
    sides = {1: found * 4, 2: found * 2, 4: found}.get(len(found))
    if sides is None:
        raise Unlowerable(f"paddings must have 1, 2 or 4 entries, has {len(found)}")
    return sides


def _patches(
    context: Context,
    x: Value,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    sides: list[int],
    dilations: tuple[int, int],
) -> Value:
    """Return the window at each output position: [N, C, kernel height, kernel width, rows, columns].

    Uses strided slices instead of indices, because the size of the image may be unknown.
    """
    if not all(1 <= k <= _LARGEST_KERNEL for k in kernel):
        raise Unlowerable(f"its windows are {list(kernel)}, expected sizes from 1 to {_LARGEST_KERNEL}")
    if any(sides):
        top, left, bottom, right = sides
        pads = context.builder.ints(0, 0, top, left, 0, 0, bottom, right)
        x = context.node("Pad", [x, pads, context.scalar(0, x)])
    for i in (0, 1):
        x = _windows(context, x, 2 + 2 * i, 2 + i, kernel[i], strides[i], dilations[i])
    return x


def _windows(context: Context, x: Value, axis: int, new_axis: int, kernel: int, stride: int, dilation: int) -> Value:
    ints = context.builder.ints
    parts = []
    for tap in range(kernel):
        remaining = (kernel - 1 - tap) * dilation
        ends = [ints(tap * dilation), ints(-remaining if remaining else FAR), ints(axis), ints(stride)]
        parts.append(context.node("Unsqueeze", [context.node("Slice", [x, *ends]), ints(new_axis)]))
    return parts[0] if kernel == 1 else context.node("Concat", parts, {"axis": new_axis})


@lowers("unfold")
def unfold(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    if context.rank(x, "unfold needs an image") != 4:
        raise Unlowerable(f"unfold needs [N, C, H, W], has rank {x.type.rank}")
    kernel = _pair(op, context, "kernel_sizes")
    strides, dilations = _pair(op, context, "strides"), _pair(op, context, "dilations")
    patches = _patches(context, x, kernel, strides, _sides(op, context), dilations)
    channels, taps = dimension(context, x, 1), math.prod(kernel)
    rows: Element
    if isinstance(channels, int):
        rows = channels * taps
    else:
        rows = context.node("Mul", [channels, context.builder.ints(taps)])
    context.bind(op, "Y", reshape_to(context, patches, [0, rows, -1]))


@lowers("fold")
def fold(op: SourceOp, context: Context) -> None:
    image, kernel = _pair(op, context, "output_sizes"), _pair(op, context, "kernel_sizes")
    ints = context.builder.ints
    attributes = {
        "strides": list(_pair(op, context, "strides")),
        "dilations": list(_pair(op, context, "dilations")),
        "pads": _sides(op, context),
    }
    context.emit(op, "Col2Im", [context.input(op, "X"), ints(*image), ints(*kernel)], attributes, slot="Y")


@lowers("im2sequence")
def im2sequence(op: SourceOp, context: Context) -> None:
    """Return the windows as rows: [N * rows * columns, C * kernel]; paddings are (up, left, down, right).

    The windows of each image are one sequence.
    """
    if op.inputs.get("Y"):
        raise Unlowerable("images of different sizes in one batch (input Y) need sequence information")
    x, kernel = context.input(op, "X"), _pair(op, context, "kernels")
    strides = _pair(op, context, "strides")
    patches = _patches(context, x, kernel, strides, _sides(op, context), (1, 1))
    rows = context.transpose(patches, [0, 4, 5, 1, 2, 3])
    channels = dimension(context, x, 1)
    if not isinstance(channels, int):
        raise Unlowerable("the number of channels must be known")
    context.bind(op, "Out", context.reshape(rows, [-1, channels * math.prod(kernel)]))
    context.bind_sequences(op.outputs["Out"][0], Sequences(dimension(context, x, 0)))
