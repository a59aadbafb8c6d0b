"""Constants, tensors of one repeated number, ranges, casts, and operators that pass their input through."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, shape_vector
from lite_paddle.lowering.integers import Element, element_type, int_elements, int_vector
from lite_paddle.lowering.operators.tensor_arrays import alias_array
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import sequence_count
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.reader.element_types import LEGACY_ELEMENT_TYPES
from lite_paddle.source import SourceOp

# Larger tensors of one number are computed when the model runs instead of being stored in it.
_LARGEST_STORED = 1024


def _number(number: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """Return one number as an array of one element; integer types get NaN and infinities converted as in C."""
    if isinstance(number, (list, tuple)):
        raise Unlowerable(f"its value {number!r} is not one number")
    with np.errstate(invalid="ignore"):
        return np.array([number]).astype(dtype.numpy)


def filled(context: Context, shape: Value, number: np.ndarray[Any, Any]) -> Value:
    """Return a tensor of a shape (int64 vector) whose elements are all one number."""
    sizes = context.known_ints(shape)
    if sizes is not None and any(size < 0 for size in sizes):
        raise Unlowerable(f"the shape {sizes} has a negative size")
    if sizes is not None and math.prod(sizes) <= _LARGEST_STORED:
        return context.builder.constant(np.full(sizes, number[0]))
    return context.node("ConstantOfShape", [shape], {"value": number})


# **** tensors of one repeated number ****


@lowers("fill_constant")
def fill_constant(op: SourceOp, context: Context) -> None:
    shape = int_vector(op, context, "shape", "ShapeTensor", "ShapeTensorList")
    dtype, tensor = element_type(op.attrs.get("dtype"), DType.FLOAT32), context.optional(op, "ValueTensor")
    context.bind(op, "Out", _filled_with(context, shape, tensor, op.attrs["value"], dtype))


def _filled_with(context: Context, shape: Value, tensor: Value | None, number: Any, dtype: DType) -> Value:
    if tensor is None:
        return filled(context, shape, _number(number, dtype))
    return context.node("Expand", [context.reshape(context.cast(tensor, dtype), []), shape])


@lowers("empty")
def empty(op: SourceOp, context: Context) -> None:
    """Return zeros, for a tensor whose elements a program must not read before it writes them."""
    shape = int_vector(op, context, "shape", "ShapeTensor", "ShapeTensorList")
    dtype = element_type(op.attrs.get("dtype"), DType.FLOAT32)
    context.bind(op, "Out", filled(context, shape, _number(0, dtype)))


@lowers("fill_constant_batch_size_like")
def fill_constant_batch_size_like(op: SourceOp, context: Context) -> None:
    like = context.input(op, "Input")
    shape: list[Element] = [int(d) for d in context.attribute(op, "shape")]
    axis = int(op.attrs["input_dim_idx"])
    sequences = context.sequences(op.inputs["Input"][0]) if axis == 0 else None
    # The size of a batch of sequences is their number.
    size = dimension(context, like, axis) if sequences is None else sequence_count(context, sequences)
    shape[int(op.attrs["output_dim_idx"])] = size
    number = _number(op.attrs["value"], element_type(op.attrs.get("dtype"), DType.FLOAT32))
    context.bind(op, "Out", filled(context, shape_vector(context, shape), number))
    context.bind_sequences(op.outputs["Out"][0], None)


@lowers("fill_any_like", "fill_zeros_like", "fill_zeros_like2")
def fill_any_like(op: SourceOp, context: Context) -> None:
    x, tensor = context.input(op, "X"), context.optional(op, "ValueTensor")
    dtype = element_type(op.attrs.get("dtype"), x.dtype)
    fixed = x.type.rank is not None and all(isinstance(d, int) for d in x.shape)
    shape = context.builder.ints(*x.shape) if fixed else context.node("Shape", [x])
    context.bind(op, "Out", _filled_with(context, shape, tensor, op.attrs.get("value", 0), dtype))


@lowers("assign_value")
def assign_value(op: SourceOp, context: Context) -> None:
    shape = [int(d) for d in context.attribute(op, "shape")]
    dtype = element_type(op.attrs.get("dtype"), DType.FLOAT32)
    with np.errstate(invalid="ignore"):
        values = np.array(op.attrs["values"]).astype(dtype.numpy)
    if values.size != math.prod(shape):
        raise Unlowerable(f"it has {values.size} values for the shape {shape}")
    context.bind(op, "Out", context.builder.constant(values.reshape(shape)))


@lowers("eye")
def eye(op: SourceOp, context: Context) -> None:
    (rows,) = int_elements(op, context, "num_rows", "NumRowsTensor")
    (columns,) = int_elements(op, context, "num_columns", "NumColumnsTensor")
    if isinstance(columns, int) and columns < 0:
        columns = rows
    dtype = element_type(op.attrs.get("dtype"), DType.FLOAT32)
    if isinstance(rows, int) and isinstance(columns, int) and rows * columns <= _LARGEST_STORED:
        context.bind(op, "Out", context.builder.constant(np.eye(rows, columns).astype(dtype.numpy)))
        return
    zeros = filled(context, shape_vector(context, [rows, columns]), np.zeros(1, dtype.numpy))
    context.emit(op, "EyeLike", [zeros])


# **** ranges ****

_RANGE_TYPES = (DType.FLOAT32, DType.FLOAT64, DType.INT16, DType.INT32, DType.INT64)


@lowers("range")
def range_(op: SourceOp, context: Context) -> None:
    ends = [context.input(op, slot) for slot in ("Start", "End", "Step")]
    dtype = element_type(op.attrs.get("dtype"), ends[0].dtype)
    working = dtype if dtype in _RANGE_TYPES else DType.FLOAT32 if dtype.is_floating else DType.INT64
    found = context.node("Range", [context.reshape(context.cast(v, working), []) for v in ends])
    context.bind(op, "Out", context.cast(found, dtype))


@lowers("linspace")
def linspace(op: SourceOp, context: Context) -> None:
    """Compute from both ends towards the middle, as Paddle does, so that the last element is exact."""
    start, stop, number = (context.input(op, slot) for slot in ("Start", "Stop", "Num"))
    dtype = element_type(op.attrs.get("dtype"), start.dtype)
    working = dtype if dtype in (DType.FLOAT32, DType.FLOAT64) else DType.FLOAT64
    start, stop = (context.reshape(context.cast(v, working), []) for v in (start, stop))
    count = context.reshape(context.cast(number, DType.INT64), [])
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    positions = context.node("Range", [zero, count, one])
    last = context.node("Max", [context.node("Sub", [count, one]), one])
    step = context.node("Div", [context.node("Sub", [stop, start]), context.cast(last, working)])

    def steps(count: Value) -> Value:
        return context.node("Mul", [context.cast(count, working), step])

    rising = context.node("Add", [start, steps(positions)])
    falling = context.node("Sub", [stop, steps(context.node("Sub", [last, positions]))])
    first_half = context.node("Less", [context.node("Mul", [positions, context.scalar(2, DType.INT64)]), count])
    context.bind(op, "Out", context.cast(context.node("Where", [first_half, rising, falling]), dtype))


@lowers("increment")
def increment(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    step = op.attrs["step"]
    context.emit(op, "Add", [x, context.scalar(int(step) if x.dtype.is_integer else step, x)])


# **** cast, and operators that pass their input through ****


@lowers("cast")
def cast(op: SourceOp, context: Context) -> None:
    x, name = context.input(op, "X"), context.attribute(op, "out_dtype")
    wanted = LEGACY_ELEMENT_TYPES.get(name, str(name))
    if wanted.startswith("complex"):
        # Imported late: few models have complex numbers.
        from lite_paddle.lowering.operators.complex_numbers import bind_complex, join_parts

        real = context.cast(x, "float64" if wanted == "complex128" else "float32")
        bind_complex(op, context, join_parts(context, real, context.node("Mul", [real, context.scalar(0, real)])))
        return
    context.bind(op, "Out", context.cast(x, element_type(name, x.dtype)))


_INPUT_SLOTS = ("X", "In", "0")


@lowers("assign", "share_data", "memcpy", "memcpy_h2d", "memcpy_d2h", "depend", "print")
def pass_through(op: SourceOp, context: Context) -> None:
    if alias_array(op, context):
        return
    x = context.any_input(op, *_INPUT_SLOTS)
    for slot in ("Out", "0"):
        context.bind(op, slot, x)


@lowers("share_buffer")
def share_buffer(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", *context.inputs(op, "X"))


@lowers("nop", "assert")
def no_operation(op: SourceOp, context: Context) -> None:
    """Compute nothing: the outputs of these operators are never read."""
