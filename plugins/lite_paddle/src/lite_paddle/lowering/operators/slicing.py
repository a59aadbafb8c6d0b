"""Slicing: slice, strided_slice, crop."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, integer_vector, shape_vector
from lite_paddle.lowering.integers import (
    FAR,
    Element,
    add_elements,
    elements_of,
    int_elements,
    normalized,
    scalar_result,
)
from lite_paddle.lowering.operators.tensor_arrays import slice_of_array
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

__all__ = ["backward_end", "take"]

_FIRST_WITH_PYTHON_SLICES = 3_000_000
# Earlier versions started a backward slice with steps of more than one at another element.
_FIRST_WITH_ALIGNED_STEPS = 2_002_000


@lowers("slice")
def slice_(op: SourceOp, context: Context) -> None:
    if slice_of_array(op, context):
        return
    x = context.input(op, "Input")
    starts = int_elements(op, context, "starts", "StartsTensor", "StartsTensorList")
    ends = int_elements(op, context, "ends", "EndsTensor", "EndsTensorList")
    axes = [int(a) for a in context.attribute(op, "axes")]
    _emit(op, context, x, axes, starts, ends, [1] * len(axes))


@lowers("strided_slice")
def strided_slice(op: SourceOp, context: Context) -> None:
    x = context.input(op, "Input")
    axes = [int(a) for a in context.attribute(op, "axes")]
    starts = int_elements(op, context, "starts", "StartsTensor", "StartsTensorList")
    ends = int_elements(op, context, "ends", "EndsTensor", "EndsTensorList")
    steps = int_elements(op, context, "strides", "StridesTensor", "StridesTensorList")
    for index, (axis, end, step) in enumerate(zip(axes, ends, steps)):
        if context.version >= _FIRST_WITH_PYTHON_SLICES or (isinstance(step, int) and step > 0):
            continue
        if isinstance(step, int) and step < -1 and context.version < _FIRST_WITH_ALIGNED_STEPS:
            raise Unlowerable(
                f"stride {step}: before Paddle 2.2 backward slices with steps started at another element",
                "export the model again with Paddle 2.2 or newer",
            )
        ends[index] = backward_end(context, x, axis, end, step)
    _emit(op, context, x, axes, starts, ends, steps)


def backward_end(context: Context, x: Value, axis: int, end: Element, step: Element) -> Element:
    """Convert the end of a backward slice from the meaning of Paddle 2 to that of Python.

    NOTE: in Paddle 2, -1 is not the last element but the position before the first one; other negative ends
    count from the back and stop at 0.
    """
    if not isinstance(step, int) or not isinstance(end, int):
        raise Unlowerable(
            "before Paddle 3.0, a backward slice had another meaning, and its end or stride is computed when the model "
            "runs",
            "export the model again with Paddle 3",
        )
    if end == -1:
        return -FAR
    if end >= 0 or end <= -(2**31) + 1:
        return max(end, 0)
    place = add_elements(context, dimension(context, x, axis), end)
    return max(place, 0) if isinstance(place, int) else context.node("Max", [place, context.builder.ints(0)])


def _emit(
    op: SourceOp,
    context: Context,
    x: Value,
    axes: list[int],
    starts: list[Element],
    ends: list[Element],
    steps: Sequence[Element],
) -> None:
    if not len(axes) == len(starts) == len(ends) == len(steps):
        raise Unlowerable(
            f"axes, starts, ends and strides must be equally long, have {len(axes)}, {len(starts)}, {len(ends)} "
            f"and {len(steps)} entries"
        )
    dropped = [int(a) for a in op.attrs.get("decrease_axis") or ()]
    context.bind(op, "Out", scalar_result(context, take(context, x, axes, starts, ends, steps, dropped)))


def take(
    context: Context,
    x: Value,
    axes: list[int],
    starts: list[Element],
    ends: list[Element],
    steps: Sequence[Element],
    dropped: Sequence[int] = (),
) -> Value:
    """Slice axes; axes in ``dropped`` are removed, keeping the one element at their start."""
    if dropped:
        rank = context.rank(x, "an axis of it is dropped")
        axes, dropped = normalized(axes, rank), normalized(dropped, rank)
    sliced = [i for i, axis in enumerate(axes) if axis not in dropped]
    if sliced:
        vectors = [[each[i] for i in sliced] for each in (starts, ends, axes, steps)]
        inputs: list[Value | None] = [shape_vector(context, v) for v in vectors]
        plain = all(isinstance(s, int) and s == 1 for s in vectors[3])
        x = context.node("Slice", [x, *(inputs[:3] if plain else inputs)])
    for i in sorted((i for i, axis in enumerate(axes) if axis in dropped), key=lambda i: -axes[i]):
        start = starts[i]
        index = context.scalar(start, DType.INT64) if isinstance(start, int) else context.reshape(start, [])
        x = context.node("Gather", [x, index], {"axis": axes[i]})
    unsliced = sorted(set(dropped) - set(axes))
    return context.node("Squeeze", [x, context.builder.ints(*unsliced)]) if unsliced else x


# **** crop ****


@lowers("crop_tensor")
def crop_tensor(op: SourceOp, context: Context) -> None:
    shape = int_elements(op, context, "shape", "Shape", "ShapeTensor")
    _crop(op, context, shape, int_elements(op, context, "offsets", "Offsets", "OffsetsTensor"))


@lowers("crop")
def crop(op: SourceOp, context: Context) -> None:
    like = context.optional(op, "Y")
    if like is None:
        shape = int_elements(op, context, "shape")
    else:
        shape = elements_of(context, context.node("Shape", [like]))
    offsets = context.optional(op, "Offsets")
    _crop(
        op,
        context,
        shape,
        int_elements(op, context, "offsets")
        if offsets is None
        else elements_of(context, integer_vector(context, offsets)),
    )


def _crop(op: SourceOp, context: Context, shape: list[Element], offsets: list[Element]) -> None:
    x = context.input(op, "X")
    if not shape:
        raise Unlowerable("it does not specify the shape to crop to")
    offsets = offsets or [0] * len(shape)
    ends = [_crop_end(context, offset, size) for offset, size in zip(offsets, shape)]
    axes = list(range(len(shape)))
    context.bind(op, "Out", take(context, x, axes, offsets, ends, [1] * len(axes)))


def _crop_end(context: Context, offset: Element, size: Element) -> Element:
    """Return the end of a cropped axis; a size of -1 goes to the end of the axis."""
    if isinstance(size, int):
        return FAR if size < 0 else add_elements(context, offset, size)
    known = context.known(size)
    end = add_elements(context, offset, size)
    if known is not None:  # a symbolic size, which is never negative
        return end
    below = context.node("Less", [size, context.builder.ints(0)])
    assert isinstance(end, Value)
    return context.node("Where", [below, context.builder.ints(FAR), end])
