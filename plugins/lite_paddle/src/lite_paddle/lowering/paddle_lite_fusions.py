"""Additions of Paddle-Lite's optimiser to operators of Paddle: activations, scales, further inputs, 8-bit kernels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.operators.activation import activate, slopes
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.paddle_lite.program import KERNEL_ATTRIBUTE
from lite_paddle.source import SourceOp

__all__ = [
    "INT8_OPERATORS",
    "activated",
    "convolution_ending",
    "dequantized",
    "int8_factors",
    "int8_result",
    "kernel_alias",
    "quantized",
    "refuse_int8",
    "scaled",
]

#: Operators whose 8-bit kernels can be lowered.
INT8_OPERATORS = frozenset(
    ("conv2d", "depthwise_conv2d", "conv2d_transpose", "depthwise_conv2d_transpose", "fc", "mul", "matmul", "matmul_v2")
)
# The attributes with the parameters of an activation that is fused into a convolution.
_PARAMETERS = {
    "leaky_relu": {"alpha": "leaky_relu_alpha"},
    "hard_swish": {"threshold": "hard_swish_threshold", "scale": "hard_swish_scale", "offset": "hard_swish_offset"},
    "hard_sigmoid": {"slope": "slope", "offset": "offset"},
    "swish": {"beta": "swish_scale"},
}
_INT8_RESULTS = ("int8_out", "int8out")


def kernel_alias(op: SourceOp) -> str:
    """Return the alias of the kernel that Paddle-Lite chose, such as ``int8_out``; empty if none is recorded."""
    parts = str(op.attrs.get(KERNEL_ATTRIBUTE, "")).split("/")
    return parts[1] if len(parts) == 5 else ""


def activated(
    op: SourceOp, context: Context, x: Value, name: str, parameters: Mapping[str, Any], *, slope_slot: str = ""
) -> Value:
    """Apply a fused activation.

    Args:
        op: the operator that it is fused into.
        context: the graph builder.
        x: the value.
        name: Paddle-Lite's name of the activation, empty for none.
        parameters: its parameters under the names that Paddle's own operator has. ``relu6`` has ``threshold``.
        slope_slot: the input of the operator with the slopes of ``prelu``.
    """
    if name == "abs":
        return context.node("Abs", [x])
    if name == "relu6":
        return context.node("Clip", [x, context.scalar(0, x), context.scalar(float(parameters.get("threshold", 6)), x)])
    if name == "prelu":
        alpha = context.input(op, slope_slot)
        return context.node("PRelu", [x, slopes(context, x, alpha, str(op.attrs.get("prelu_mode", "channel")), "NCHW")])
    return activate(context, x, name, parameters)


def convolution_ending(op: SourceOp, context: Context, x: Value) -> Value:
    """Apply what is fused behind a convolution: an activation, that of a following scale, and a sum.

    The factors of a fused scale are in the weights already, so that only its activation remains.
    """
    attrs = op.attrs
    if attrs.get("with_act"):
        name = str(attrs.get("act_type", ""))
        parameters = {own: attrs[theirs] for own, theirs in _PARAMETERS.get(name, {}).items() if theirs in attrs}
        if name == "relu6":
            parameters["threshold"] = attrs.get("fuse_brelu_threshold", 6.0)
        x = activated(op, context, x, name, parameters, slope_slot="Prelu_alpha")
    x = activated(op, context, x, str(attrs.get("scale_activation_type", "")), {})
    second = str(attrs.get("fuse_elementwise_op_type", ""))
    if second not in ("", "elementwise_add", "fusion_elementwise_add_activation"):
        raise Unlowerable(
            f"its attribute fuse_elementwise_op_type is {second!r}, expected elementwise_add or "
            "fusion_elementwise_add_activation"
        )
    if second:
        x = context.node("Add", [x, context.input(op, "SecondInput")])
    return context.node("Relu", [x]) if second.startswith("fusion") else x


def scaled(op: SourceOp, context: Context, x: Value) -> Value:
    """Apply the scale that is fused behind an element-wise operator."""
    if not op.attrs.get("fuse_scale"):
        return x
    product = context.node("Mul", [x, context.scalar(float(op.attrs.get("scale", 1.0)), x)])
    return context.node("Add", [product, context.scalar(float(op.attrs.get("bias", 0.0)), x)])


# **** 8-bit kernels ****


def int8_factors(
    op: SourceOp, context: Context, x: Value, weights: Value, slots: tuple[str, str], *, axis: int
) -> tuple[Value, Value] | None:
    """Return the factors of an operator with an 8-bit kernel as dequantized values; None if its kernel is another.

    Args:
        op: the operator. Its attributes ``SLOT0_scale`` have the scales: one, or one for each output channel.
        context: the graph builder.
        x: the input, quantized or not.
        weights: the weights, as int8 or as whole numbers in float32.
        slots: the slots of input and weights.
        axis: the axis of the weights' output channels.
    """
    if not op.attrs.get("enable_int8"):
        return None
    x_scale, weight_scale = (_scales(op, slot) for slot in slots)
    if x.dtype is not DType.INT8:
        x = quantized(context, x, x_scale)
    content = context.known(weights)
    if content is not None and weights.dtype is not DType.INT8:
        weights = context.builder.constant(np.clip(np.rint(content), -128, 127).astype(np.int8))
    if weights.dtype is not DType.INT8:
        raise Unlowerable("its attribute enable_int8 is set, but its weights are neither int8 nor constant")
    return dequantized(context, x, x_scale), dequantized(context, weights, weight_scale, axis)


def int8_result(op: SourceOp, context: Context, x: Value) -> Value:
    """Return the result of an operator in the element type of its kernel: quantized if that has 8-bit results."""
    if not op.attrs.get("enable_int8") or kernel_alias(op) not in _INT8_RESULTS:
        return x
    return quantized(context, x, _scales(op, "Output" if "Output" in op.outputs else "Out"))


def refuse_int8(op: SourceOp, context: Context) -> None:
    """Raise Unlowerable if an operator that reads int8 tensors has an 8-bit kernel without a lowering."""
    values = (context.find(source) for group in op.inputs.values() for source in group)
    read = [value.name for value in values if value is not None and value.dtype is DType.INT8]
    if read:
        raise Unlowerable(
            f"its attribute enable_int8 is set and it reads {read[0]!r} as int8; Lite reads 8-bit kernels of "
            f"{', '.join(sorted(INT8_OPERATORS))}",
            "convert the model without quantization of this operator",
        )


def quantized(context: Context, x: Value, scales: np.ndarray[Any, Any]) -> Value:
    """Return ``round(x / scale)`` as int8.

    NOTE: halves are rounded to even and the range begins at -128. Paddle-Lite rounds them away from zero and begins at
    -127, so that a result may differ by one step where it is a half, or saturates.
    """
    return context.node("QuantizeLinear", [x, *_steps(context, scales[:1].reshape(()))])


def dequantized(context: Context, x: Value, scales: np.ndarray[Any, Any], axis: int = 0) -> Value:
    """Return ``x * scale``, with one scale or one for each item of an axis."""
    single = scales.size == 1
    if not single and x.type.rank is not None and x.shape[axis] != scales.size:
        raise Unlowerable(f"it has {scales.size} scales for the {x.shape[axis]} channels of its weights")
    steps = _steps(context, scales.reshape(()) if single else scales)
    return context.node("DequantizeLinear", [x, *steps], {} if single else {"axis": axis})


def _steps(context: Context, scales: np.ndarray[Any, Any]) -> list[Value]:
    return [context.builder.constant(scales), context.builder.constant(np.zeros(scales.shape, np.int8))]


def _scales(op: SourceOp, slot: str) -> np.ndarray[Any, Any]:
    name = f"{slot}0_scale"
    scales = np.array(op.attrs.get(name, ()), np.float32).reshape(-1)
    if not scales.size or not np.all(np.isfinite(scales)) or np.any(scales <= 0):
        raise Unlowerable(f"its kernel computes with 8 bits, but its attribute {name} is {op.attrs.get(name)}")
    return scales
