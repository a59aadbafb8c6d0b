"""set_value, which replaces a slice of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, shape_vector
from lite_paddle.lowering.integers import Element, int_elements, normalized
from lite_paddle.lowering.operators.slicing import backward_end, take
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_FIRST_WITH_PYTHON_SLICES = 3_000_000


@lowers("set_value")
def set_value(op: SourceOp, context: Context) -> None:
    """Number the elements, slice the numbers like the target, and scatter the new elements to those indices."""
    x = context.input(op, "Input")
    value = _new_elements(op, context, x.dtype)
    rank = context.rank(x, "a slice of it is replaced")
    axes = normalized([int(a) for a in context.attribute(op, "axes")], rank)
    starts = int_elements(op, context, "starts", "StartsTensor", "StartsTensorList")
    ends = int_elements(op, context, "ends", "EndsTensor", "EndsTensorList")
    steps = int_elements(op, context, "steps", "StepsTensor", "StepsTensorList") or [1] * len(axes)
    for i, (axis, end, step) in enumerate(zip(axes, ends, steps)):
        if context.version < _FIRST_WITH_PYTHON_SLICES and not (isinstance(step, int) and step > 0):
            ends[i] = backward_end(context, x, axis, end, step)
    dropped = normalized([int(a) for a in op.attrs.get("decrease_axes") or ()], rank)
    for i, (axis, start) in enumerate(zip(axes, starts)):
        if axis in dropped and isinstance(start, int):  # one element, regardless of the attribute ``ends``
            ends[i], steps[i] = 2**31 - 1 if start == -1 else start + 1, 1
    # An index that is computed when the model runs takes one element, too; the end of a slice would hide that.
    indexed = [i for i, axis in enumerate(axes) if axis in dropped and not isinstance(starts[i], int)]
    sliced = [i for i in range(len(axes)) if i not in indexed]
    some_axes = [axes[i] for i in sliced]
    some_starts, some_ends, some_steps = ([each[i] for i in sliced] for each in (starts, ends, steps))
    positions = take(context, _element_indices(context, x), some_axes, some_starts, some_ends, some_steps)
    for i in indexed:
        index = context.reshape(starts[i], [1])  # type: ignore[arg-type]  # it is no integer
        positions = context.node("Gather", [positions, index], {"axis": axes[i]})
    broadcast = _broadcast_shape(context, positions, dropped, [int(a) for a in op.attrs.get("none_axes") or ()])
    value = _without_leading_ones(context, value, len(broadcast))
    if value.shape != tuple(broadcast):
        value = context.node("Expand", [value, shape_vector(context, broadcast)])
    flat = context.node(
        "ScatterElements",
        [context.reshape(x, [-1]), context.reshape(positions, [-1]), context.reshape(value, [-1])],
    )
    context.bind(op, "Out", context.node("Reshape", [flat, _shape_of(context, x)]))


def _new_elements(op: SourceOp, context: Context, dtype: DType) -> Value:
    tensor = context.optional(op, "ValueTensor")
    if tensor is not None:
        return context.cast(tensor, dtype)
    shape = [int(d) for d in op.attrs.get("shape") or ()]
    values = np.array(op.attrs["values"]).astype(dtype.numpy)
    if values.size != int(np.prod(shape)):
        raise Unlowerable(f"it has {values.size} values for the shape {shape}")
    return context.builder.constant(values.reshape(shape))


def _shape_of(context: Context, x: Value) -> Value:
    if all(isinstance(d, int) for d in x.shape):
        return context.builder.ints(*x.shape)
    return context.node("Shape", [x])


def _element_indices(context: Context, x: Value) -> Value:
    """Return a tensor of the shape of ``x`` that holds the index of each element in memory order."""
    if all(isinstance(d, int) for d in x.shape):
        size: Value = context.scalar(int(np.prod(x.shape)), DType.INT64)
    else:
        size = context.node("Size", [x])
    zero, one = context.scalar(0, DType.INT64), context.scalar(1, DType.INT64)
    return context.node("Reshape", [context.node("Range", [zero, size, one]), _shape_of(context, x)])


def _broadcast_shape(
    context: Context, positions: Value, dropped: Sequence[int], none_axes: Sequence[int]
) -> list[Element]:
    """Return the shape to which the new elements are broadcast: the shape of the slice in Python."""
    result: list[Element] = []
    waiting = sorted(none_axes)
    for axis in range(context.rank(positions, "new elements are broadcast to it")):
        while waiting and waiting[0] <= axis:
            result.append(1)
            waiting.pop(0)
        if axis not in dropped:
            result.append(dimension(context, positions, axis))
    return [*result, *(1 for _ in waiting)]


def _without_leading_ones(context: Context, value: Value, rank: int) -> Value:
    excess = context.rank(value, "it is broadcast") - rank
    if excess <= 0:
        return value
    return context.node("Squeeze", [value, context.builder.ints(*range(excess))])
