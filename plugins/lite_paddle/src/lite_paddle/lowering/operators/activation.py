"""Activation functions, softmax, and dropout (which inference reduces to a factor)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, reshape_to
from lite_paddle.lowering.layout import is_channels_last
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.reader.attributes import complete_attributes
from lite_paddle.source import SourceOp

__all__ = ["activate", "slopes"]

Attributes = Mapping[str, Any]
Function = Callable[[Context, Value, Attributes], Value]

# Paddle's kernels ignore the parameters of relu6, hard_swish and swish from this version on.
_FIXED_PARAMETERS_SINCE = 2_005_000


def _onnx(type_: str, **attributes: str) -> Function:
    """Map to an ONNX operator; ``attributes`` gives the Paddle attribute for each attribute of ONNX."""

    def function(context: Context, x: Value, attrs: Attributes) -> Value:
        return context.node(type_, [x], {name: float(attrs[source]) for name, source in attributes.items()})

    return function


def _relu6(context: Context, x: Value, attrs: Attributes) -> Value:
    threshold = attrs.get("threshold", 6.0) if context.version < _FIXED_PARAMETERS_SINCE else 6.0
    return context.node("Clip", [x, context.scalar(0, x), context.scalar(threshold, x)])


def _hard_swish(context: Context, x: Value, attrs: Attributes) -> Value:
    threshold, scale, offset = (float(attrs.get(k, d)) for k, d in (("threshold", 6), ("scale", 6), ("offset", 3)))
    if (threshold, scale, offset) == (6, 6, 3) or context.version >= _FIXED_PARAMETERS_SINCE:
        return context.node("HardSwish", [x])
    shifted = context.node("Add", [x, context.scalar(offset, x)])
    gate = context.node("Clip", [shifted, context.scalar(0, x), context.scalar(threshold, x)])
    return context.node("Div", [context.node("Mul", [x, gate]), context.scalar(scale, x)])


def _swish(context: Context, x: Value, attrs: Attributes) -> Value:
    beta = float(attrs.get("beta", 1.0)) if context.version < _FIXED_PARAMETERS_SINCE else 1.0
    return context.node("Swish", [x], {"beta": beta}, domain="lite")


def _softplus(context: Context, x: Value, attrs: Attributes) -> Value:
    """``x`` if ``beta * x > threshold``, else ``log(1 + exp(beta * x)) / beta``."""
    beta, threshold = float(attrs.get("beta", 1.0)), float(attrs.get("threshold", 20.0))
    scaled = x if beta == 1 else context.node("Mul", [x, context.scalar(beta, x)])
    result = context.node("Softplus", [scaled])
    if beta != 1:
        result = context.node("Div", [result, context.scalar(beta, x)])
    # Above 18 both forms round to the same float32 number; in float64 they differ up to 37.
    if threshold >= (37 if x.dtype is DType.FLOAT64 else 18):
        return result
    above = context.node("Greater", [scaled, context.scalar(threshold, x)])
    return context.node("Where", [above, x, result])


def _soft_relu(context: Context, x: Value, attrs: Attributes) -> Value:
    """``log(1 + exp(clip(x, -threshold, threshold)))``."""
    threshold = float(attrs.get("threshold", 40.0))
    return context.node("Softplus", [_clip(context, x, -threshold, threshold)])


def _clip(context: Context, x: Value, low: float, high: float) -> Value:
    return context.node("Clip", [x, context.scalar(low, x), context.scalar(high, x)])


def _brelu(context: Context, x: Value, attrs: Attributes) -> Value:
    return _clip(context, x, float(attrs.get("t_min", 0.0)), float(attrs.get("t_max", 24.0)))


def _shrink(parameter: str, biased: bool) -> Function:
    def function(context: Context, x: Value, attrs: Attributes) -> Value:
        bound = float(attrs.get(parameter, 0.5))
        return context.node("Shrink", [x], {"lambd": bound, "bias": bound if biased else 0.0})

    return function


def _thresholded_relu(context: Context, x: Value, attrs: Attributes) -> Value:
    threshold, value = float(attrs.get("threshold", 1.0)), float(attrs.get("value", 0.0))
    if value == 0:
        return context.node("ThresholdedRelu", [x], {"alpha": threshold})
    above = context.node("Greater", [x, context.scalar(threshold, x)])
    return context.node("Where", [above, x, context.scalar(value, x)])


def _stanh(context: Context, x: Value, attrs: Attributes) -> Value:
    inner = context.node("Mul", [x, context.scalar(attrs.get("scale_a", 0.67), x)])
    return context.node("Mul", [context.node("Tanh", [inner]), context.scalar(attrs.get("scale_b", 1.7159), x)])


def _log_sigmoid(context: Context, x: Value, attrs: Attributes) -> Value:
    """``-softplus(-x)``, which neither overflows nor takes the logarithm of 0."""
    return context.node("Neg", [context.node("Softplus", [context.node("Neg", [x])])])


def _tanh_shrink(context: Context, x: Value, attrs: Attributes) -> Value:
    return context.node("Sub", [x, context.node("Tanh", [x])])


def _gelu(context: Context, x: Value, attrs: Attributes) -> Value:
    return context.node("Gelu", [x], {"approximate": "tanh" if attrs.get("approximate") else "none"})


def _celu(context: Context, x: Value, attrs: Attributes) -> Value:
    """Use ONNX's Celu, which is float32 only; other types compute ``alpha * elu(x / alpha)``."""
    alpha = float(attrs.get("alpha", 1.0))
    if x.dtype is DType.FLOAT32:
        return context.node("Celu", [x], {"alpha": alpha})
    factor = context.scalar(alpha, x)
    return context.node("Mul", [context.node("Elu", [context.node("Div", [x, factor])]), factor])


def _rrelu(context: Context, x: Value, attrs: Attributes) -> Value:
    """Use the mean of both bounds as the slope, as inference does."""
    slope = (float(attrs.get("lower", 1 / 8)) + float(attrs.get("upper", 1 / 3))) / 2
    return context.node("LeakyRelu", [x], {"alpha": slope})


_FUNCTIONS: dict[str, Function] = {
    "relu": _onnx("Relu"),
    "relu6": _relu6,
    "hard_swish": _hard_swish,
    "hard_sigmoid": _onnx("HardSigmoid", alpha="slope", beta="offset"),
    "sigmoid": _onnx("Sigmoid"),
    "swish": _swish,
    "silu": _swish,
    "mish": _onnx("Mish"),
    "leaky_relu": _onnx("LeakyRelu", alpha="alpha"),
    "elu": _onnx("Elu", alpha="alpha"),
    "selu": _onnx("Selu", alpha="alpha", gamma="scale"),
    "celu": _celu,
    "gelu": _gelu,
    "brelu": _brelu,
    "hard_shrink": _shrink("threshold", biased=False),
    "softshrink": _shrink("lambda", biased=True),
    "softplus": _softplus,
    "soft_relu": _soft_relu,
    "softsign": _onnx("Softsign"),
    "tanh": _onnx("Tanh"),
    "tanh_shrink": _tanh_shrink,
    "thresholded_relu": _thresholded_relu,
    "stanh": _stanh,
    "logsigmoid": _log_sigmoid,
    "rrelu": _rrelu,
}


@lowers(*_FUNCTIONS)
def activation(op: SourceOp, context: Context) -> None:
    result = _FUNCTIONS[op.type](context, context.any_input(op, "X", "0"), op.attrs)
    context.bind(op, "Out", result)
    context.bind(op, "0", result)


def activate(context: Context, x: Value, name: str, attributes: Attributes | None = None) -> Value:
    """Apply the activation that another operator names in an attribute; ``""`` and ``"identity"`` name none.

    Raises:
        Unlowerable: the name is unknown.
    """
    if name in ("", "identity", "linear"):
        return x
    function = _FUNCTIONS.get(name)
    if function is None:
        raise Unlowerable(f"its activation {name!r} is not one of {', '.join(sorted(_FUNCTIONS))}")
    return function(context, x, complete_attributes(name, dict(attributes or {})))


# **** activations with more than one tensor, or an axis ****


@lowers("prelu")
def prelu(op: SourceOp, context: Context) -> None:
    x, alpha = context.input(op, "X"), context.input(op, "Alpha")
    context.emit(op, "PRelu", [x, slopes(context, x, alpha, op.attrs["mode"], op.attrs["data_format"])])


def slopes(context: Context, x: Value, alpha: Value, mode: str, layout: str) -> Value:
    """Return the slopes of prelu in a shape that broadcasts to ``x``."""
    if mode == "all":
        return context.reshape(alpha, [1])
    if mode == "channel":
        rank = context.rank(x, "prelu has one slope per channel")
        return context.reshape(alpha, [-1] if is_channels_last(layout) else [-1] + [1] * (rank - 2))
    if mode != "element":
        raise Unlowerable(f"its mode is {mode!r}, expected all, channel or element")
    return alpha


@lowers("softmax", "log_softmax")
def softmax(op: SourceOp, context: Context) -> None:
    x, axis = context.input(op, "X"), int(op.attrs["axis"])
    if x.type.rank == 0:  # one element, which softmax treats as an axis of length 1
        row = context.reshape(x, [1])
        result = context.node("Softmax" if op.type == "softmax" else "LogSoftmax", [row])
        context.bind(op, "Out", context.reshape(result, []))
        return
    context.emit(op, "Softmax" if op.type == "softmax" else "LogSoftmax", [x], {"axis": axis})


@lowers("maxout")
def maxout(op: SourceOp, context: Context) -> None:
    """Output the maximum of the input channels from ``c * groups`` up to ``(c + 1) * groups`` as channel c."""
    x, groups = context.input(op, "X"), int(context.attribute(op, "groups"))
    rank = context.rank(x, "maxout splits one of its axes")
    axis = int(op.attrs["axis"]) % rank
    channels = x.shape[axis]
    outer: int | Value = -1
    if isinstance(channels, int):
        outer = channels // groups
    parts = [dimension(context, x, a) for a in range(rank)]
    split = reshape_to(context, x, [*parts[:axis], outer, groups, *parts[axis + 1 :]])
    context.emit(op, "ReduceMax", [split, context.builder.ints(axis + 1)], {"keepdims": 0})


@lowers("swiglu")
def swiglu(op: SourceOp, context: Context) -> None:
    """Compute ``silu(x) * y``; without ``y`` the two are the halves of ``x`` along the last axis."""
    x, y = context.any_input(op, "x", "X", "0"), context.any_optional(op, "y", "Y", "1")
    if y is None:
        x, y = context.nodes("Split", [x], {"axis": -1, "num_outputs": 2}, outputs=2)
    result = context.node("Mul", [_swish(context, x, {}), y])
    for slot in ("out", "Out", "0"):
        context.bind(op, slot, result)


@lowers("dropout")
def dropout(op: SourceOp, context: Context) -> None:
    """Keep all elements; the mode ``downgrade_in_infer`` (the default) then scales them by ``1 - p``."""
    x = context.input(op, "X")
    if op.attrs["dropout_implementation"] == "upscale_in_train":
        context.bind(op, "Out", x)
        return
    probability = context.optional(op, "DropoutProbTensor")
    if probability is None:
        keep = context.scalar(1 - float(op.attrs["dropout_prob"]), x)
    else:
        keep = context.node("Sub", [context.scalar(1, x), context.reshape(context.cast(probability, x.dtype), [])])
    context.emit(op, "Mul", [x, keep])
