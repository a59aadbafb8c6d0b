"""Correlation of two feature maps, as in FlowNet."""

from __future__ import annotations

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import static_dimension
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("correlation")
def correlation(op: SourceOp, context: Context) -> None:
    """Return the mean product of windows of the first map with shifted windows of the second: one channel per shift.

    P. Fischer et al., "FlowNet: Learning Optical Flow with Convolutional Networks" (2015). Shifts are multiples of
    ``stride2`` up to ``max_displacement`` in both directions, those of rows first; windows are ``stride1`` apart.
    """
    names = ("pad_size", "kernel_size", "max_displacement", "stride1", "stride2")
    pad, kernel, most, step, shift_step = (int(op.attrs[name]) for name in names)
    if kernel < 1 or kernel % 2 == 0 or min(step, shift_step) < 1 or int(op.attrs["corr_type_multiply"]) != 1:
        raise Unlowerable(f"it has windows of {kernel}, steps of {step} and {shift_step}; expected an odd size")
    first, second = context.input(op, "Input1"), context.input(op, "Input2")
    height, width = (static_dimension(first, axis, "it cuts windows out of it") + 2 * pad for axis in (2, 3))
    border = most + kernel // 2
    sizes = [-(-(size - 2 * border) // step) for size in (height, width)]
    if min(sizes) < 1:
        raise Unlowerable(f"its windows and shifts do not fit maps of {height} x {width}")
    padded = [_padded(context, x, pad, most) for x in (first, second)]
    # What the windows at multiples of the step cover, from the first that has room for all shifts.
    spans = [(size - 1) * step + kernel for size in sizes]
    base = _cut(context, padded[0], (most + most, most + most), spans)
    shifts = range(-(most // shift_step) * shift_step, most + 1, shift_step)
    channels = []
    for row in shifts:
        for column in shifts:
            moved = _cut(context, padded[1], (2 * most + row, 2 * most + column), spans)
            product = context.node("Mul", [base, moved])
            channels.append(context.node("ReduceMean", [product, context.builder.ints(1)], {"keepdims": 1}))
    joined = context.node("Concat", channels, {"axis": 1})
    if kernel > 1 or step > 1:
        joined = context.node("AveragePool", [joined], {"kernel_shape": (kernel, kernel), "strides": (step, step)})
    context.bind(op, "Output", joined)


def _padded(context: Context, x: Value, pad: int, most: int) -> Value:
    """Pad a map by zeros, and by as many more as shifts reach beyond it."""
    around = pad + most
    return context.node("Pad", [x, context.builder.ints(0, 0, around, around, 0, 0, around, around)])


def _cut(context: Context, x: Value, start: tuple[int, int], spans: list[int]) -> Value:
    ends = (start[0] + spans[0], start[1] + spans[1])
    return context.node("Slice", [x, *(context.builder.ints(*pair) for pair in (start, ends, (2, 3)))])
