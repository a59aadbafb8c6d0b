"""Convolutions, plain and deformable. The transposed ones are in a separate module."""

from __future__ import annotations

from typing import Any

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.layout import channels_first, in_channels_first, is_channels_last
from lite_paddle.lowering.operators.activation import activate
from lite_paddle.lowering.operators.quantization import integral_weights
from lite_paddle.lowering.paddle_lite_fusions import convolution_ending, int8_factors, int8_result
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.lowering.windows import explicit_pads, onnx_pads, per_axis
from lite_paddle.source import SourceOp

__all__ = ["fused_activation"]


def _attributes(op: SourceOp, filter_: Value, axes: int) -> dict[str, Any]:
    """Return the attributes of Conv.

    NOTE: SAME ignores ``paddings`` and also resets the dilation to 1, regardless of the attribute.
    """
    attributes: dict[str, Any] = {
        "strides": tuple(per_axis(op.attrs.get("strides", 1), axes, "strides")),
        "group": int(op.attrs.get("groups", 1)),
    }
    dilations = tuple(per_axis(op.attrs.get("dilations", 1), axes, "dilations"))
    algorithm = op.attrs.get("padding_algorithm", "EXPLICIT")
    if algorithm == "SAME":
        attributes["auto_pad"] = "SAME_UPPER"
        dilations = (1,) * axes
    elif algorithm == "VALID":
        attributes["pads"] = (0,) * (2 * axes)
    elif algorithm == "EXPLICIT":
        attributes["pads"] = onnx_pads(explicit_pads(op.attrs.get("paddings", [0]), axes))
    else:
        raise Unlowerable(f"its padding_algorithm is {algorithm!r}, expected EXPLICIT, SAME or VALID")
    attributes["dilations"] = dilations
    if filter_.type.rank == axes + 2 and all(isinstance(d, int) for d in filter_.shape[2:]):
        attributes["kernel_shape"] = tuple(filter_.shape[2:])
    return attributes


def fused_activation(op: SourceOp, context: Context, x: Value) -> Value:
    """Apply the activation that Paddle's optimiser fused into another operator, if any."""
    attrs = op.attrs
    name = str(attrs.get("fuse_activation") or attrs.get("activation") or "")
    if not name and attrs.get("fuse_relu"):
        name = "relu"
    if not name and attrs.get("fuse_brelu"):
        return activate(context, x, "brelu", {"t_min": 0.0, "t_max": attrs.get("fuse_brelu_threshold", 6.0)})
    parameters: dict[str, Any] = {}
    if name == "leaky_relu":
        parameters["alpha"] = attrs.get("fuse_alpha", 0.02)
    elif name in ("clip", "brelu"):
        name, parameters = "brelu", {"t_min": attrs.get("fuse_alpha", 0.0), "t_max": attrs.get("fuse_beta", 24.0)}
    elif name == "hard_sigmoid":
        parameters = {"slope": attrs.get("fuse_alpha", 0.2), "offset": attrs.get("fuse_beta", 0.5)}
    return activate(context, x, name, parameters)


@lowers("conv2d", "depthwise_conv2d", "conv3d", "fused_conv2d", "conv2d_fusion", "fused_conv2d_add_act")
def convolution(op: SourceOp, context: Context) -> None:
    axes = 3 if op.type == "conv3d" else 2
    filter_, bias = context.input(op, "Filter"), context.optional(op, "Bias")
    residual = context.optional(op, "ResidualData")
    layout = str(op.attrs.get("data_format", "NCHW"))
    if op.attrs.get("split_channels"):
        raise Unlowerable("it splits its output channels", "export the model without Paddle's GPU fusions")
    if bias is not None and bias.type.rank != 1:
        bias = context.reshape(bias, [-1])

    def compute(x: Value) -> Value:
        narrow = int8_factors(op, context, x, filter_, ("Input", "Filter"), axis=0)
        x, weights = narrow or (x, integral_weights(context, x, filter_))
        result = context.node("Conv", [x, weights, bias], _attributes(op, filter_, axes))
        if residual is not None:
            other = channels_first(context, residual) if is_channels_last(layout) else residual
            result = context.node("Add", [result, other])
        result = convolution_ending(op, context, fused_activation(op, context, result))
        return int8_result(op, context, result)

    context.bind(op, "Output", in_channels_first(context, context.input(op, "Input"), layout, compute))


@lowers("deformable_conv", "deformable_conv_v1")
def deformable_convolution(op: SourceOp, context: Context) -> None:
    """Lower with the offsets unchanged: (y, x) per tap within each deformable group, in Paddle as in ONNX."""
    filter_ = context.input(op, "Filter")
    attributes = _attributes(op, filter_, 2)
    attributes["offset_group"] = int(op.attrs.get("deformable_groups", 1))
    inputs = [context.input(op, "Input"), filter_, context.input(op, "Offset"), None, context.optional(op, "Mask")]
    if inputs[-1] is None:
        del inputs[-2:]
    context.emit(op, "DeformConv", inputs, attributes, slot="Output")
