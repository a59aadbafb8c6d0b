"""Element-wise maths on one tensor: roots, exponentials, trigonometry, rounding, scale, clip."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.paddle_lite_fusions import activated
from lite_paddle.lowering.registry import lowers
from lite_paddle.source import SourceOp

# Paddle computes these on integers in float32.
_FLOATING = {
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "erf": "Erf",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
}
_ANY_NUMBER = {"abs": "Abs", "sign": "Sign"}
# Not applied to integers, which are whole already.
_WHOLE = {"floor": "Floor", "ceil": "Ceil"}


def _floating(context: Context, x: Value) -> Value:
    return x if x.dtype.is_floating else context.cast(x, DType.FLOAT32)


@lowers(*_FLOATING)
def floating_function(op: SourceOp, context: Context) -> None:
    context.emit(op, _FLOATING[op.type], [_floating(context, context.input(op, "X"))])


@lowers(*_ANY_NUMBER)
def any_number_function(op: SourceOp, context: Context) -> None:
    context.emit(op, _ANY_NUMBER[op.type], [context.input(op, "X")])


@lowers(*_WHOLE)
def rounding_function(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    context.bind(op, "Out", context.node(_WHOLE[op.type], [x]) if x.dtype.is_floating else x)


@lowers("square")
def square(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    context.emit(op, "Mul", [x, x])


@lowers("rsqrt")
def reciprocal_root(op: SourceOp, context: Context) -> None:
    x = _floating(context, context.input(op, "X"))
    context.emit(op, "Reciprocal", [context.node("Sqrt", [x])])


@lowers("log2", "log10")
def logarithm(op: SourceOp, context: Context) -> None:
    x = _floating(context, context.input(op, "X"))
    factor = 1 / np.log(2 if op.type == "log2" else 10)
    context.emit(op, "Mul", [context.node("Log", [x]), context.scalar(factor, x)])


@lowers("log1p")
def log1p(op: SourceOp, context: Context) -> None:
    """Compute ``log(u) * x / (u - 1)`` with ``u = 1 + x``: exact even where the sum loses ``x``.

    Source: D. Goldberg, "What Every Computer Scientist Should Know About Floating-Point Arithmetic", theorem 4.
    """
    x = _floating(context, context.input(op, "X"))
    one = context.scalar(1, x)
    u = context.node("Add", [x, one])
    rounded = context.node("Sub", [u, one])
    log = context.node("Log", [u])
    precise = context.node("Mul", [log, context.node("Div", [x, rounded])])
    # Where the sum loses x, log1p(x) is x; infinities have no quotient.
    small = context.node("Equal", [rounded, context.scalar(0, x)])
    ordinary = context.node("Where", [small, x, precise])
    context.emit(op, "Where", [context.node("IsInf", [x]), log, ordinary])


@lowers("expm1")
def expm1(op: SourceOp, context: Context) -> None:
    """Compute ``exp(x) - 1`` as ``2 sinh(x / 2) exp(x / 2)``, which keeps the digits of a small ``x``."""
    x = _floating(context, context.input(op, "X"))
    half = context.node("Mul", [x, context.scalar(0.5, x)])
    precise = context.node("Mul", [context.node("Sinh", [half]), context.node("Exp", [half])])
    doubled = context.node("Mul", [precise, context.scalar(2, x)])
    plain = context.node("Sub", [context.node("Exp", [x]), context.scalar(1, x)])
    small = context.node("Less", [context.node("Abs", [x]), context.scalar(1, x)])
    context.emit(op, "Where", [small, doubled, plain])


@lowers("trunc")
def truncate(op: SourceOp, context: Context) -> None:
    x = context.any_input(op, "X", "Input", "0")
    result = x
    if x.dtype.is_floating:
        result = context.node("Mul", [context.node("Sign", [x]), context.node("Floor", [context.node("Abs", [x])])])
    context.bind(op, "Out", result)


def round_half_away(context: Context, x: Value) -> Value:
    """Round to the nearest integer, and halves away from zero."""
    up = context.node("Floor", [context.node("Add", [context.node("Abs", [x]), context.scalar(0.5, x)])])
    return context.node("Mul", [context.node("Sign", [x]), up])


@lowers("round")
def round_(op: SourceOp, context: Context) -> None:
    """Round to the nearest integer. NOTE: up to Paddle 2.6, halves go away from zero; from 3.0 on, to even."""
    x = context.input(op, "X")
    if not x.dtype.is_floating:
        context.bind(op, "Out", x)
        return
    factor = 10.0 ** int(op.attrs.get("decimals", 0))
    scaled = x if factor == 1 else context.node("Mul", [x, context.scalar(factor, x)])
    away = context.version < 3_000_000
    result = round_half_away(context, scaled) if away else context.node("Round", [scaled])
    context.bind(op, "Out", result if factor == 1 else context.node("Div", [result, context.scalar(factor, x)]))


@lowers("logit")
def logit(op: SourceOp, context: Context) -> None:
    """Compute ``log(p / (1 - p))``, ``p`` clipped to [eps, 1 - eps]; with ``eps`` 0, NaN outside [0, 1]."""
    x, eps = context.any_input(op, "X", "0"), float(op.attrs.get("eps", 1e-6))
    if eps > 0:
        x = context.node("Clip", [x, context.scalar(eps, x), context.scalar(1 - eps, x)])
    rest = context.node("Sub", [context.scalar(1, x), x])
    result = context.node("Log", [context.node("Div", [x, rest])])
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


# **** scale, pow, clip ****


@lowers("scale")
def scale(op: SourceOp, context: Context) -> None:
    """Compute ``scale * x + bias``, or ``scale * (x + bias)``; integers stay integers."""
    x = context.input(op, "X")
    tensor = context.optional(op, "ScaleTensor")
    known = context.known(tensor)
    factor: Value | float = float(op.attrs.get("scale", 1.0))
    if known is not None and known.dtype != object and known.size == 1:
        factor = float(known.reshape(-1)[0])
    elif tensor is not None:
        factor = context.reshape(context.cast(tensor, x.dtype), [])
    bias = float(op.attrs.get("bias", 0.0))
    result = x
    if not op.attrs.get("bias_after_scale", True):
        result = _plus(context, result, bias)
    if isinstance(factor, Value):
        result = context.node("Mul", [result, factor])
    elif factor != 1:
        result = context.node("Mul", [result, context.scalar(factor, x)])
    if op.attrs.get("bias_after_scale", True):
        result = _plus(context, result, bias)
    context.bind(op, "Out", _fused_behind_scale(op, context, result))


def _fused_behind_scale(op: SourceOp, context: Context, x: Value) -> Value:
    """Apply what Paddle-Lite fuses behind a scale: an activation, and a second scale behind that."""
    name = str(op.attrs.get("activation_type", ""))
    alpha = float(op.attrs.get("alpha", 6.0))
    x = activated(op, context, x, name, {"threshold": alpha, "alpha": alpha}) if name else x
    if op.attrs.get("fuse_scaleact"):
        x = context.node("Mul", [x, context.scalar(float(op.attrs.get("scale1", 1.0)), x)])
        x = _plus(context, x, float(op.attrs.get("bias1", 0.0)))
    return x


def _plus(context: Context, x: Value, number: float) -> Value:
    return x if number == 0 else context.node("Add", [x, context.scalar(number, x)])


@lowers("pow")
def power(op: SourceOp, context: Context) -> None:
    x, tensor = context.input(op, "X"), context.optional(op, "FactorTensor")
    if tensor is None:
        exponent = context.scalar(float(op.attrs["factor"]), x)
    else:
        exponent = context.reshape(context.cast(tensor, x.dtype), [])
    context.emit(op, "Pow", [x, exponent])


@lowers("clip")
def clip(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    context.emit(op, "Clip", [x, _bound(op, context, x, "Min"), _bound(op, context, x, "Max")])


def _bound(op: SourceOp, context: Context, x: Value, slot: str) -> Value | None:
    """Return a bound as a scalar; None if it is outside the range of the element type."""
    tensor = context.optional(op, slot)
    if tensor is not None:
        return context.reshape(context.cast(tensor, x.dtype), [])
    number = op.attrs.get(slot.lower())
    if number is None:
        return None
    if x.dtype.is_integer:
        limits = np.iinfo(x.dtype.numpy)
        lowest, highest = float(limits.min), float(limits.max)
    else:
        highest = 65504.0 if x.dtype is DType.FLOAT16 else float(np.finfo(np.float32).max)
        lowest = -highest
    beyond = number <= lowest if slot == "Min" else number >= highest
    return None if beyond else context.scalar(number, x)


@lowers("clip_by_norm")
def clip_by_norm(op: SourceOp, context: Context) -> None:
    """Compute ``x * max_norm / |x|`` if the Euclidean norm of the whole tensor is above ``max_norm``."""
    x, limit = context.any_input(op, "X", "0"), float(context.attribute(op, "max_norm"))
    norm = context.node("ReduceL2", [x], {"keepdims": 0})
    result = context.node("Mul", [x, context.node("Div", [context.scalar(limit, x), _at_least(context, norm, limit)])])
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


def _at_least(context: Context, x: Value, number: float) -> Value:
    return context.node("Max", [x, context.scalar(number, x)])


# **** NaN and infinity ****

Test = Callable[[Context, Value], Value]


def _is_infinite(context: Context, x: Value) -> Value:
    return context.node("IsInf", [x])


def _is_nan(context: Context, x: Value) -> Value:
    return context.node("IsNaN", [x])


def _is_finite(context: Context, x: Value) -> Value:
    return context.node("Not", [context.node("Or", [_is_infinite(context, x), _is_nan(context, x)])])


_TESTS: dict[str, Test] = {"isnan": _is_nan, "isinf": _is_infinite, "isfinite": _is_finite}


def _tested(op: SourceOp, context: Context, name: str) -> Value:
    # Integers are cast: they are never NaN nor infinite, but the result must have their shape.
    return _TESTS[name](context, _floating(context, context.input(op, "X")))


@lowers("isnan_v2", "isinf_v2", "isfinite_v2")
def test_elements(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", _tested(op, context, op.type.removesuffix("_v2")))


@lowers("isnan", "isinf", "isfinite")
def test_tensor(op: SourceOp, context: Context) -> None:
    """Test a whole tensor (Paddle 1.x): any element is NaN, any is infinite, or all are finite; shape [1]."""
    tested = context.cast(_tested(op, context, op.type), DType.INT32)
    found = context.node("ReduceMin" if op.type == "isfinite" else "ReduceMax", [tested], {"keepdims": 0})
    context.bind(op, "Out", context.reshape(context.cast(found, DType.BOOL), [1]))
