"""Changing shapes, joining and splitting: reshape, transpose, flatten, squeeze, concat, split, stack."""

from __future__ import annotations

import math

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, dimensions, reshape_to, shape_vector, size_vector
from lite_paddle.lowering.integers import (
    Element,
    elements_of,
    int_vector,
    known_int,
    known_ints,
    normalized,
    scalar_result,
)
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

# **** reshape, transpose, flatten ****


@lowers("reshape", "reshape2")
def reshape(op: SourceOp, context: Context) -> None:
    shape = int_vector(op, context, "shape", "Shape", "ShapeTensor")
    context.emit(op, "Reshape", [context.input(op, "X"), shape])


@lowers("transpose", "transpose2")
def transpose(op: SourceOp, context: Context) -> None:
    x, order = context.input(op, "X"), [int(a) for a in context.attribute(op, "axis")]
    order = normalized(order, len(order))
    context.bind(op, "Out", context.transpose(x, order))


@lowers("flatten", "flatten2")
def flatten_to_matrix(op: SourceOp, context: Context) -> None:
    context.emit(op, "Flatten", [context.input(op, "X")], {"axis": int(op.attrs["axis"])})


@lowers("flatten_contiguous_range")
def flatten_contiguous_range(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    rank = context.rank(x, "flatten counts its axes from the end")
    if rank == 0:
        context.bind(op, "Out", context.reshape(x, [1]))
        return
    start, stop = normalized([op.attrs["start_axis"], op.attrs["stop_axis"]], rank)
    if start > stop:
        raise Unlowerable(f"start_axis {start} is behind stop_axis {stop}")
    if start == stop:
        context.bind(op, "Out", x)
        return
    merged = x.shape[start : stop + 1]
    # NOTE: -1 cannot be inferred beside a size of 0, so it is only used where necessary.
    middle = math.prod(merged) if all(isinstance(d, int) for d in merged) else -1
    before: list[Element] = [d if isinstance(d, int) and d > 0 else 0 for d in x.shape[:start]]
    after = dimensions(context, x, stop + 1, rank)
    context.bind(op, "Out", reshape_to(context, x, [*before, middle, *after]))


# **** squeeze, unsqueeze ****


@lowers("squeeze", "squeeze2")
def squeeze(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    axes = known_ints(op, context, "axes", "AxesTensor", "AxesTensorList")
    rank = context.rank(x, "squeeze keeps the axes whose size is not 1")
    if rank == 0:
        context.bind(op, "Out", x)
        return
    if axes:
        # A listed axis that is not of size 1 is kept; an axis of unknown size is assumed to have size 1.
        chosen = [a for a in sorted(set(normalized(axes, rank))) if not _certainly_not_one(x, a)]
    elif all(isinstance(d, int) for d in x.shape):
        chosen = [axis for axis, d in enumerate(x.shape) if d == 1]
    else:
        raise Unlowerable(
            "squeeze without axes drops every axis of size 1, and some sizes are not known before the model runs",
            "give squeeze its axes, or export the model with fixed sizes",
        )
    result = context.node("Squeeze", [x, context.builder.ints(*chosen)]) if chosen else x
    context.bind(op, "Out", scalar_result(context, result))


def _certainly_not_one(x: Value, axis: int) -> bool:
    return isinstance(x.shape[axis], int) and x.shape[axis] != 1


@lowers("unsqueeze", "unsqueeze2")
def unsqueeze(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    axes = known_ints(op, context, "axes", "AxesTensor", "AxesTensorList")
    rank = context.rank(x, "unsqueeze inserts its axes one after another")
    axis_sources: list[int | None] = list(range(rank))
    for axis in axes:
        size = len(axis_sources) + 1
        (axis,) = normalized([axis], size)
        axis_sources.insert(axis, None)
    added = [i for i, source in enumerate(axis_sources) if source is None]
    context.bind(op, "Out", context.node("Unsqueeze", [x, context.builder.ints(*added)]) if added else x)


# **** concat, split, stack, unstack ****


@lowers("concat")
def concat(op: SourceOp, context: Context) -> None:
    values = context.inputs(op, "X")
    if not values:
        raise Unlowerable("its input X is missing")
    axis = known_int(op, context, "axis", "AxisTensor")
    context.bind(op, "Out", values[0] if len(values) == 1 else context.node("Concat", values, {"axis": axis}))


@lowers("split")
def split(op: SourceOp, context: Context) -> None:
    x, axis = context.input(op, "X"), known_int(op, context, "axis", "AxisTensor")
    count = len(op.outputs.get("Out", ()))
    number = int(op.attrs.get("num") or 0)
    if number:
        if number != count:
            raise Unlowerable(f"num is {number}, but it has {count} outputs")
        attributes = {"axis": axis, "num_outputs": count}
        context.bind(op, "Out", *context.nodes("Split", [x], attributes, outputs=count))
        return
    vector = int_vector(op, context, "sections", "SectionsTensor", "SectionsTensorList")
    sections = elements_of(context, vector)
    if len(sections) != count:
        raise Unlowerable(f"sections has {len(sections)} entries, but it has {count} outputs")
    if -1 in [s for s in sections if isinstance(s, int)]:
        vector = _complete_sections(context, sections, dimension(context, x, axis))
    context.bind(op, "Out", *context.nodes("Split", [x, vector], {"axis": axis}, outputs=count))


def _complete_sections(context: Context, sections: list[Element], size: Element) -> Value:
    """Return the sections as a vector, with -1 replaced by the rest of the axis."""
    others = [s for s in sections if s != -1]
    rest: Element = size
    for part in others:
        if isinstance(rest, int) and isinstance(part, int):
            rest -= part
        else:
            rest = context.node("Sub", [size_vector(context, rest), size_vector(context, part)])
    return shape_vector(context, [rest if isinstance(s, int) and s == -1 else s for s in sections])


@lowers("stack")
def stack(op: SourceOp, context: Context) -> None:
    axis = int(op.attrs["axis"])
    context.bind(op, "Y", stacked(context, context.inputs(op, "X"), axis))


def stacked(context: Context, values: list[Value], axis: int) -> Value:
    """Stack tensors of one shape along a new axis, which may be negative (counted in the result)."""
    if not values:
        raise Unlowerable("it has no tensors to stack")
    lifted = [context.node("Unsqueeze", [v, context.builder.ints(axis)]) for v in values]
    return lifted[0] if len(lifted) == 1 else context.node("Concat", lifted, {"axis": axis})


@lowers("unstack", "unbind")
def unstack(op: SourceOp, context: Context) -> None:
    x, axis = context.input(op, "X"), int(op.attrs["axis"])
    slot = "Y" if op.type == "unstack" else "Out"
    count = len(op.outputs.get(slot, ()))
    size = x.shape[axis] if x.type.rank is not None else None
    if isinstance(size, int) and size != count:
        raise Unlowerable(f"axis {axis} has size {size}, but it has {count} outputs")
    parts = [x]
    if count > 1:
        parts = context.nodes("Split", [x], {"axis": axis, "num_outputs": count}, outputs=count)
    axes = context.builder.ints(axis)
    context.bind(op, slot, *(context.node("Squeeze", [part, axes]) for part in parts))


# **** properties of shapes ****


@lowers("shape")
def shape(op: SourceOp, context: Context) -> None:
    found = context.node("Shape", [context.input(op, "Input")])
    context.bind(op, "Out", context.cast(found, op.attrs.get("dtype") or DType.INT32))


@lowers("size")
def size(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", scalar_result(context, context.node("Size", [context.input(op, "Input")])))


@lowers("is_empty")
def is_empty(op: SourceOp, context: Context) -> None:
    number = context.node("Size", [context.input(op, "X")])
    empty = context.node("Equal", [number, context.scalar(0, DType.INT64)])
    context.bind(op, "Out", scalar_result(context, empty))
