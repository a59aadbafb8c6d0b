"""Element-wise operators on two or more tensors: arithmetic, comparison, logic."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.paddle_lite_fusions import scaled
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

__all__ = ["aligned", "floor_modulo"]

_BINARY = {
    "elementwise_add": "Add",
    "elementwise_sub": "Sub",
    "elementwise_mul": "Mul",
    "elementwise_div": "Div",
    "elementwise_max": "Max",
    "elementwise_min": "Min",
    "elementwise_pow": "Pow",
    "minus": "Sub",
}


def aligned(op: SourceOp, context: Context) -> tuple[Value, Value]:
    """Return X and Y in one element type, reshaped to broadcast by NumPy's rules.

    ``axis`` is the axis of the tensor of higher rank that corresponds to the first axis of the other; -1 aligns the
    last axes.
    """
    x, y = _one_type(context, context.any_input(op, "X", "0", "x"), context.any_input(op, "Y", "1", "y"))
    axis = int(op.attrs.get("axis", -1))
    if axis == -1:
        return x, y
    x_rank, y_rank = (context.rank(v, f"its operator has axis {axis}") for v in (x, y))
    if (axis == 0 and x_rank == y_rank) or x.shape == y.shape:
        return x, y
    if x_rank >= y_rank:
        return x, _unsqueeze_to_axis(context, y, axis, x_rank)
    return _unsqueeze_to_axis(context, x, axis, y_rank), y


def _unsqueeze_to_axis(context: Context, value: Value, axis: int, rank: int) -> Value:
    """Append axes of size 1 to the tensor of lower rank, so that its first axis becomes ``axis`` of ``rank``."""
    own = list(value.shape)
    axis = axis % rank if axis < 0 else axis
    while axis + len(own) > rank and own and own[-1] == 1:
        own.pop()
    if axis + len(own) > rank:
        raise Unlowerable(
            f"axis {axis} puts {value.name!r} of rank {value.type.rank} beyond the {rank} axes of the other input"
        )
    behind = rank - axis - len(own)
    if len(own) < len(value.shape):
        dropped = range(len(own), len(value.shape))
        value = context.node("Squeeze", [value, context.builder.ints(*dropped)])
    if not behind:
        return value
    return context.node("Unsqueeze", [value, context.builder.ints(*range(len(own), len(own) + behind))])


def _one_type(context: Context, x: Value, y: Value) -> tuple[Value, Value]:
    """Cast both values to the element type that Paddle computes in when their types differ."""
    if x.dtype is y.dtype:
        return x, y
    if x.dtype.is_floating != y.dtype.is_floating:
        common = x.dtype if x.dtype.is_floating else y.dtype
    else:
        common = DType.of(np.promote_types(x.dtype.numpy, y.dtype.numpy))
    return context.cast(x, common), context.cast(y, common)


@lowers(*_BINARY)
def binary(op: SourceOp, context: Context) -> None:
    x, y = aligned(op, context)
    if x.dtype is DType.BOOL:
        logical = {"Add": "Or", "Mul": "And", "Max": "Or", "Min": "And"}.get(_BINARY[op.type])
        if logical is None:
            raise Unlowerable(f"{op.type} of booleans has no meaning", "cast its inputs to a number type")
        context.emit(op, logical, [x, y])
        return
    context.bind(op, "Out", scaled(op, context, context.node(_BINARY[op.type], [x, y])))


def floor_modulo(context: Context, x: Value, y: Value) -> Value:
    """Return the remainder with the sign of the divisor, as Python's ``%``; ONNX has it for integers only."""
    if not x.dtype.is_floating:
        return context.node("Mod", [x, y])
    remainder = context.node("Mod", [x, y], {"fmod": 1})
    zero = context.scalar(0, x)
    negative = [context.node("Less", [v, zero]) for v in (remainder, y)]
    other_sign = context.node("Xor", negative)
    not_zero = context.node("Not", [context.node("Equal", [remainder, zero])])
    adjust = context.node("And", [other_sign, not_zero])
    return context.node("Where", [adjust, context.node("Add", [remainder, y]), remainder])


@lowers("elementwise_mod")
def modulo(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", floor_modulo(context, *aligned(op, context)))


@lowers("elementwise_floordiv")
def floor_divide(op: SourceOp, context: Context) -> None:
    x, y = aligned(op, context)
    if x.dtype.is_floating:
        context.emit(op, "Floor", [context.node("Div", [x, y])])
        return
    # NOTE: ONNX truncates integer quotients towards zero; without the remainder the division is exact.
    exact = x if not x.dtype.is_signed else context.node("Sub", [x, context.node("Mod", [x, y])])
    context.emit(op, "Div", [exact, y])


@lowers("sum")
def add_all(op: SourceOp, context: Context) -> None:
    values = context.inputs(op, "X")
    if not values:
        raise Unlowerable("its input X is empty")
    context.bind(op, "Out", reduce(lambda a, b: context.node("Add", [a, b]), values))


def _bind_result(op: SourceOp, context: Context, result: Value) -> None:
    for slot in ("Out", "out", "0"):
        context.bind(op, slot, result)


@lowers("elementwise_fmax", "elementwise_fmin", "fmax", "fmin")
def extreme_ignoring_nan(op: SourceOp, context: Context) -> None:
    """Take the maximum or minimum, preferring a number to a NaN."""
    x, y = aligned(op, context)
    result = context.node("Max" if op.type.endswith("fmax") else "Min", [x, y])
    if x.dtype.is_floating:
        result = context.node("Where", [context.node("IsNaN", [x]), y, result])
        result = context.node("Where", [context.node("IsNaN", [y]), x, result])
    _bind_result(op, context, result)


@lowers("elementwise_heaviside", "heaviside")
def heaviside(op: SourceOp, context: Context) -> None:
    """Compute 0 for x < 0, y for x = 0, 1 for x > 0."""
    x, y = aligned(op, context)
    zero = context.scalar(0, x)
    step = context.cast(context.node("Greater", [x, zero]), x.dtype)
    _bind_result(op, context, context.node("Where", [context.node("Equal", [x, zero]), y, step]))


@lowers("lerp")
def interpolate_linearly(op: SourceOp, context: Context) -> None:
    """Compute ``x + weight * (y - x)``."""
    x, y, weight = (context.any_input(op, *slots) for slots in (("X", "0"), ("Y", "1"), ("Weight", "2")))
    step = context.node("Mul", [weight, context.node("Sub", [y, x])])
    _bind_result(op, context, context.node("Add", [x, step]))


@lowers("atan2")
def arc_tangent_of_quotient(op: SourceOp, context: Context) -> None:
    """Compute the angle of the point (X2, X1)."""
    context.bind(op, "Out", angle_of(context, context.input(op, "X1"), context.input(op, "X2")))


def angle_of(context: Context, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y) in (-pi, pi]. ONNX has only the arc tangent of one number."""
    zero, pi = context.scalar(0, x), context.scalar(np.pi, x)
    below = context.node("Less", [y, zero])
    half_turn = context.node("Where", [below, context.node("Neg", [pi]), pi])
    # A negative zero would flip the sign of the infinite quotient.
    divisor = context.node("Where", [context.node("Equal", [x, zero]), zero, x])
    angle = context.node("Atan", [context.node("Div", [y, divisor])])
    angle = context.node("Where", [context.node("Less", [x, zero]), context.node("Add", [angle, half_turn]), angle])
    # For x = 0 the quotient is infinite and Atan gives a quarter turn, except for 0 / 0.
    origin = context.node("And", [context.node("Equal", [v, zero]) for v in (x, y)])
    return context.node("Where", [origin, zero, angle])


# **** comparison ****

Comparison = Callable[[Context, Value, Value], Value]


def _compare(type_: str, negated: bool = False) -> Comparison:
    def compare(context: Context, x: Value, y: Value) -> Value:
        if x.dtype is DType.BOOL and type_ != "Equal":
            x, y = context.cast(x, DType.INT32), context.cast(y, DType.INT32)
        result = context.node(type_, [x, y])
        return context.node("Not", [result]) if negated else result

    return compare


_COMPARISONS = {
    "equal": _compare("Equal"),
    "not_equal": _compare("Equal", negated=True),
    "less_than": _compare("Less"),
    "less_equal": _compare("LessOrEqual"),
    "greater_than": _compare("Greater"),
    "greater_equal": _compare("GreaterOrEqual"),
}


@lowers(*_COMPARISONS)
def comparison(op: SourceOp, context: Context) -> None:
    result = _COMPARISONS[op.type](context, *aligned(op, context))
    if op.attrs.get("fuse_greater_than"):  # Paddle-Lite fused the cast behind it
        result = context.cast(result, DType.FLOAT32)
    context.bind(op, "Out", result)


def _all_true(context: Context, value: Value, rank: int) -> Value:
    """Reduce to True if every element is true: of shape [1] for rank 1, a scalar for rank 0."""
    smallest = context.node("ReduceMin", [context.cast(value, DType.INT32)], {"keepdims": 0})
    found = context.cast(smallest, DType.BOOL)
    return found if rank == 0 else context.reshape(found, [1])


def _result_rank(context: Context) -> int:
    """Return the rank of a full reduction's result: shape [1] before Paddle 2.5, a scalar since."""
    return 1 if context.version < 2_005_000 else 0


@lowers("equal_all")
def all_equal(op: SourceOp, context: Context) -> None:
    x, y = _one_type(context, context.any_input(op, "X", "0"), context.any_input(op, "Y", "1"))
    if x.type.rank != y.type.rank:
        raise Unlowerable("its inputs have different or unknown ranks")
    equal = context.node("Equal", [x, y])
    _bind_result(op, context, _all_true(context, equal, _result_rank(context)))


@lowers("isclose", "allclose")
def is_close(op: SourceOp, context: Context) -> None:
    """Compute ``|x - y| <= atol + rtol * |y|``; equal infinities are close, NaNs only with ``equal_nan``."""
    x, y = context.any_input(op, "Input", "0"), context.any_input(op, "Other", "1")
    rtol = _tolerance(op, context, ("Rtol", "2"), "rtol", 1e-5, x)
    atol = _tolerance(op, context, ("Atol", "3"), "atol", 1e-8, x)
    bound = context.node("Add", [atol, context.node("Mul", [rtol, context.node("Abs", [y])])])
    near = context.node("LessOrEqual", [context.node("Abs", [context.node("Sub", [x, y])]), bound])
    result = context.node("Or", [near, context.node("Equal", [x, y])])
    if x.dtype.is_floating:
        # |x - inf| <= inf: an infinite bound must not make everything close.
        infinite = context.node("Or", [context.node("IsInf", [v]) for v in (x, y)])
        different = context.node("And", [infinite, context.node("Not", [context.node("Equal", [x, y])])])
        result = context.node("And", [result, context.node("Not", [different])])
        if op.attrs.get("equal_nan"):
            both = context.node("And", [context.node("IsNaN", [v]) for v in (x, y)])
            result = context.node("Or", [result, both])
    if op.type == "allclose":
        result = _all_true(context, result, _result_rank(context))
    _bind_result(op, context, result)


def _tolerance(
    op: SourceOp, context: Context, slots: tuple[str, ...], attribute: str, default: float, like: Value
) -> Value:
    given = context.any_optional(op, *slots)
    if given is None:
        return context.scalar(float(op.attrs.get(attribute, default)), like)
    return context.reshape(context.cast(given, like.dtype), [])


# **** logic ****

_LOGICAL = {"and": "And", "or": "Or", "xor": "Xor", "not": "Not"}


@lowers("logical_and", "logical_or", "logical_xor", "logical_not")
def logical(op: SourceOp, context: Context) -> None:
    type_ = _LOGICAL[op.type.removeprefix("logical_")]
    values = [context.input(op, "X")] if type_ == "Not" else list(aligned(op, context))
    context.emit(op, type_, [context.cast(v, DType.BOOL) for v in values])


@lowers("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")
def bitwise(op: SourceOp, context: Context) -> None:
    type_ = _LOGICAL[op.type.removeprefix("bitwise_")]
    values = [context.input(op, "X")] if type_ == "Not" else list(aligned(op, context))
    context.emit(op, type_ if values[0].dtype is DType.BOOL else f"Bitwise{type_}", values)


@lowers("copysign")
def copysign(op: SourceOp, context: Context) -> None:
    """Compute the magnitude of x with the sign of y, including that of a negative zero."""
    x, y = context.any_input(op, "x", "X"), context.any_input(op, "y", "Y")
    if not x.dtype.is_floating:
        x, y = context.cast(x, DType.FLOAT32), context.cast(y, DType.FLOAT32)
    zero, magnitude = context.scalar(0, y), context.node("Abs", [x])
    # 1 / -0 is negative; -0 itself compares equal to 0.
    inverse = context.node("Div", [context.scalar(1, y), y])
    signed = context.node("Where", [context.node("Equal", [y, zero]), inverse, y])
    negative = context.node("Less", [signed, zero])
    result = context.node("Where", [negative, context.node("Neg", [magnitude]), magnitude])
    for slot in ("out", "Out"):
        context.bind(op, slot, result)
