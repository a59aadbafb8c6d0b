"""Complex numbers. A tensor of them is a value [..., 2] with the real and the imaginary part.

Such values are in :attr:`Context.complex`. An operator that reads one needs a lowering registered by
:func:`~lite_paddle.lowering.registry.lowers_complex`; its axes do not count the last axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import element_type, normalized
from lite_paddle.lowering.operators.elementwise import angle_of
from lite_paddle.lowering.operators.padding import pad
from lite_paddle.lowering.operators.shape import concat, reshape, squeeze, stack, transpose, unsqueeze
from lite_paddle.lowering.operators.slicing import slice_
from lite_paddle.lowering.registry import LoweringFunction, lowers, lowers_complex
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.reader.element_types import LEGACY_ELEMENT_TYPES
from lite_paddle.source import SourceOp

__all__ = ["bind_complex", "imaginary_part", "join_parts", "real_part", "split_parts"]


def bind_complex(op: SourceOp, context: Context, value: Value) -> None:
    """Bind a value [..., 2] to the operator's output, as complex numbers."""
    context.complex.add(value)
    context.bind(op, "Out", value)


def join_parts(context: Context, real: Value, imaginary: Value) -> Value:
    """Return [..., 2] of two values of the same shape."""
    last = context.builder.ints(-1)
    return context.node("Concat", [context.node("Unsqueeze", [part, last]) for part in (real, imaginary)], {"axis": -1})


def real_part(context: Context, pairs: Value) -> Value:
    """Return the real parts [...] of complex numbers [..., 2]."""
    return _part(context, pairs, 0)


def imaginary_part(context: Context, pairs: Value) -> Value:
    """Return the imaginary parts [...] of complex numbers [..., 2]."""
    return _part(context, pairs, 1)


def _part(context: Context, pairs: Value, index: int) -> Value:
    return context.node("Gather", [pairs, context.builder.constant(np.array(index, np.int64))], {"axis": -1})


def split_parts(context: Context, value: Value) -> tuple[Value, Value | None]:
    """Return the real and the imaginary part of a value; None for the imaginary part of real numbers."""
    if value not in context.complex:
        return value, None
    return real_part(context, value), imaginary_part(context, value)


# **** parts ****


@lowers("complex")
def complex_(op: SourceOp, context: Context) -> None:
    """Join a real and an imaginary part, which broadcast."""
    real, imaginary = context.any_input(op, "X", "real"), context.any_input(op, "Y", "imag")
    if real.type.shape != imaginary.type.shape or real.type.shape is None:
        real, imaginary = (
            context.node("Add", [a, context.node("Mul", [b, context.scalar(0, b)])])
            for a, b in ((real, imaginary), (imaginary, real))
        )
    bind_complex(op, context, join_parts(context, real, imaginary))


@lowers("as_complex")
def as_complex(op: SourceOp, context: Context) -> None:
    bind_complex(op, context, context.node("Identity", [context.input(op, "X")]))


@lowers_complex("as_real")
@lowers("as_real")
def as_real(op: SourceOp, context: Context) -> None:
    context.emit(op, "Identity", [context.input(op, "X")])


@lowers_complex("real", "imag")
@lowers("real", "imag")
def part(op: SourceOp, context: Context) -> None:
    """Return a part; real numbers have an imaginary part of 0."""
    real, imaginary = split_parts(context, context.input(op, "X"))
    if op.type == "real":
        context.emit(op, "Identity", [real])
    elif imaginary is None:
        context.emit(op, "Mul", [real, context.scalar(0, real)])
    else:
        context.bind(op, "Out", imaginary)


@lowers_complex("abs")
def absolute(op: SourceOp, context: Context) -> None:
    axes = context.builder.ints(-1)
    context.emit(op, "ReduceL2", [context.input(op, "X"), axes], {"keepdims": 0})


@lowers_complex("angle")
@lowers("angle")
def angle(op: SourceOp, context: Context) -> None:
    """Return the angle in radians; 0 or pi for real numbers."""
    x = context.input(op, "X")
    real, imaginary = split_parts(context, x)
    if imaginary is None:
        is_negative = context.node("Less", [real, context.scalar(0, real)])
        context.emit(op, "Where", [is_negative, context.scalar(np.pi, real), context.scalar(0, real)])
        return
    context.bind(op, "Out", angle_of(context, imaginary, real))


@lowers_complex("assign", "cast", "share_data")
def keep(op: SourceOp, context: Context) -> None:
    """Pass complex numbers through; a cast to real numbers keeps the real part."""
    x = context.any_input(op, "X", "In", "0")
    if op.type != "cast":
        bind_complex(op, context, context.node("Identity", [x]))
        return
    name = context.attribute(op, "out_dtype")
    wanted = LEGACY_ELEMENT_TYPES.get(name, str(name))
    if wanted.startswith("complex"):
        pairs = context.cast(x, "float64" if wanted == "complex128" else "float32")
        bind_complex(op, context, context.node("Identity", [pairs]))
    else:
        context.bind(op, "Out", context.cast(real_part(context, x), element_type(name, x.dtype)))


@lowers_complex("conj")
@lowers("conj")
def conjugate(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    if x not in context.complex:
        context.emit(op, "Identity", [x])
        return
    signs = context.builder.constant(np.array([1, -1], x.dtype.numpy))
    bind_complex(op, context, context.node("Mul", [x, signs]))


# **** arithmetic ****


@lowers_complex("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div")
def arithmetic(op: SourceOp, context: Context) -> None:
    """Add, subtract, multiply or divide complex numbers, or complex and real ones."""
    if int(op.attrs.get("axis", -1)) != -1:
        raise Unlowerable(f"its attribute axis is {op.attrs['axis']}, expected -1 for complex numbers")
    (a, b), (c, d) = (split_parts(context, context.input(op, slot)) for slot in ("X", "Y"))

    def combine(type_: str, left: Value | None, right: Value | None) -> Value | None:
        if left is None or right is None:
            if type_ == "Mul" or (left is None and right is None):
                return None
            return left if right is None else right if type_ == "Add" else context.node("Neg", [right])
        return context.node(type_, [left, right])

    if op.type == "elementwise_div":
        norm = combine("Add", combine("Mul", c, c), combine("Mul", d, d))
        c = context.node("Div", [c, norm])
        d = None if d is None else context.node("Neg", [context.node("Div", [d, norm])])
    if op.type in ("elementwise_mul", "elementwise_div"):
        real = combine("Sub", combine("Mul", a, c), combine("Mul", b, d))
        imaginary = combine("Add", combine("Mul", a, d), combine("Mul", b, c))
    else:
        type_ = "Add" if op.type == "elementwise_add" else "Sub"
        real, imaginary = combine(type_, a, c), combine(type_, b, d)
    assert real is not None
    assert imaginary is not None, "one operand is complex"
    if imaginary.type.shape != real.type.shape:  # a real operand broadcasts the other part alone
        imaginary = context.node("Add", [imaginary, context.node("Mul", [real, context.scalar(0, real)])])
    bind_complex(op, context, join_parts(context, real, imaginary))


@lowers_complex("scale")
def scale(op: SourceOp, context: Context) -> None:
    """Compute ``x * scale``, with ``bias`` in the real part."""
    if op.inputs.get("ScaleTensor") or not op.attrs.get("bias_after_scale", True):
        raise Unlowerable("it scales complex numbers by a tensor, or adds its bias before")
    x = context.input(op, "X")
    scaled = context.node("Mul", [x, context.scalar(float(op.attrs["scale"]), x)])
    if op.attrs.get("bias"):
        bias = context.builder.constant(np.array([op.attrs["bias"], 0], x.dtype.numpy))
        scaled = context.node("Add", [scaled, bias])
    bind_complex(op, context, scaled)


# **** shapes ****


def _axis(op: SourceOp, rank: int) -> dict[str, Any]:
    return {"axis": normalized([int(op.attrs["axis"])], rank)[0]}


def _axes(op: SourceOp, rank: int) -> dict[str, Any]:
    return {"axes": normalized([int(axis) for axis in op.attrs["axes"]], rank)}


def _inserted_axes(op: SourceOp, rank: int) -> dict[str, Any]:
    axes: Sequence[int] = [int(axis) for axis in op.attrs["axes"]]
    return {"axes": [normalized([axis], rank + number + 1)[0] for number, axis in enumerate(axes)]}


def _order(op: SourceOp, rank: int) -> dict[str, Any]:
    return {"axis": [*normalized([int(axis) for axis in op.attrs["axis"]], rank), rank]}


def _paddings(op: SourceOp, rank: int) -> dict[str, Any]:
    if op.attrs.get("pad_value"):
        raise Unlowerable(f"it pads complex numbers by {op.attrs['pad_value']}, expected 0")
    return {"paddings": [*op.attrs["paddings"], 0, 0]}


def _shape(op: SourceOp, rank: int) -> dict[str, Any]:
    return {"shape": [*op.attrs["shape"], 2]}


#: For each operator: the lowering for real numbers, and the attributes with which it keeps the last axis.
_MOVES: dict[str, tuple[LoweringFunction, Callable[[SourceOp, int], dict[str, Any]]]] = {
    "concat": (concat, _axis),
    "pad": (pad, _paddings),
    "reshape": (reshape, _shape),
    "reshape2": (reshape, _shape),
    "slice": (slice_, _axes),
    "squeeze": (squeeze, _axes),
    "squeeze2": (squeeze, _axes),
    "stack": (stack, lambda op, rank: _axis(op, rank + 1)),
    "transpose": (transpose, _order),
    "transpose2": (transpose, _order),
    "unsqueeze": (unsqueeze, _inserted_axes),
    "unsqueeze2": (unsqueeze, _inserted_axes),
}


@lowers_complex(*_MOVES)
def move(op: SourceOp, context: Context) -> None:
    """Lower an operator that only moves numbers, with the parts of each as one more axis."""
    values = context.inputs(op, "X") or context.inputs(op, "Input")
    if not all(value in context.complex for value in values):
        raise Unlowerable("it joins complex and real numbers")
    tensors = [slot for slot in op.inputs if slot not in ("X", "Input") and op.inputs[slot]]
    if tensors:
        raise Unlowerable(f"its {tensors[0]} is a tensor, which complex numbers need as a constant")
    function, attributes = _MOVES[op.type]
    rank = context.rank(values[0], "complex numbers have their parts in the last axis") - 1
    function(replace(op, attrs={**op.attrs, **attributes(op, rank)}), context)
    slot = "Out" if "Out" in op.outputs else "Y"
    context.complex.update(context.value(source) for source in op.outputs[slot])
