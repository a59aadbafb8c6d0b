"""Normalization by running statistics, or by statistics of the input."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimensions, reshape_to, static_dimension
from lite_paddle.lowering.layout import in_channels_first, per_channel
from lite_paddle.lowering.limits import check_table
from lite_paddle.lowering.operators.activation import activate
from lite_paddle.lowering.paddle_lite_fusions import activated
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


def _layout(op: SourceOp) -> str:
    return str(op.attrs.get("data_layout") or op.attrs.get("data_format") or "NCHW")


def _vector(context: Context, given: Value | None, default: float, like: Value, size: int) -> Value:
    """Return a parameter, or a vector of one repeated number if the model has none."""
    if given is not None:
        return given
    check_table(size)
    return context.builder.constant(np.full(size, default, like.dtype.numpy))


# **** running statistics ****


@lowers("batch_norm", "sync_batch_norm", "fused_batch_norm_act", "inplace_abn")
def batch_norm(op: SourceOp, context: Context) -> None:
    """Normalize by the running statistics. NOTE: files say ``is_test`` false for inference as well."""
    mean, variance = context.input(op, "Mean"), context.input(op, "Variance")
    scale, bias = context.optional(op, "Scale"), context.optional(op, "Bias")
    if scale is None or bias is None:
        size = static_dimension(mean, 0, "its missing scale or bias is created")
        scale, bias = _vector(context, scale, 1, mean, size), _vector(context, bias, 0, mean, size)
    name = str(op.attrs.get("act_type") or op.attrs.get("activation") or "")
    parameters = [scale, bias, mean, variance]
    epsilon = float(op.attrs["epsilon"]) if "epsilon" in op.attrs else 1e-5

    def compute(x: Value) -> Value:
        if x.type.rank == 1:
            raise Unlowerable("its input has no channels")
        result = context.node("BatchNormalization", [x, *parameters], {"epsilon": epsilon})
        return activate(context, result, name, {"alpha": op.attrs["alpha"]} if "alpha" in op.attrs else None)

    context.bind(op, "Y", in_channels_first(context, context.input(op, "X"), _layout(op), compute))


@lowers("data_norm")
def data_norm(op: SourceOp, context: Context) -> None:
    """Compute ``(x - BatchSum / BatchSize) * sqrt(BatchSize / BatchSquareSum)``, per feature."""
    if int(op.attrs.get("slot_dim", -1)) > 0:
        raise Unlowerable("its slot_dim treats empty slots of click models separately")
    x, size = context.input(op, "X"), context.input(op, "BatchSize")
    means = context.node("Div", [context.input(op, "BatchSum"), size])
    scales = context.node("Sqrt", [context.node("Div", [size, context.input(op, "BatchSquareSum")])])

    def compute(x: Value) -> Value:
        rank = context.rank(x, "its statistics are per channel")
        result = context.node("Sub", [x, per_channel(context, means, rank)])
        result = context.node("Mul", [result, per_channel(context, scales, rank)])
        if op.attrs.get("enable_scale_and_shift"):
            weight, bias = (per_channel(context, context.input(op, s), rank) for s in ("scale_w", "bias"))
            result = context.node("Add", [context.node("Mul", [result, weight]), bias])
        return result

    context.bind(op, "Y", in_channels_first(context, x, _layout(op), compute))
    context.bind(op, "Means", means)
    context.bind(op, "Scales", scales)


@lowers("affine_channel")
def affine_channel(op: SourceOp, context: Context) -> None:
    scale, bias = context.input(op, "Scale"), context.input(op, "Bias")

    def compute(x: Value) -> Value:
        rank = context.rank(x, "it has a factor for each channel")
        product = context.node("Mul", [x, per_channel(context, scale, rank)])
        return context.node("Add", [product, per_channel(context, bias, rank)])

    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), _layout(op), compute))


# **** statistics of the input ****


@lowers("layer_norm")
def layer_norm(op: SourceOp, context: Context) -> None:
    """Reshape Scale and Bias, which are flat in Paddle, to the normalized axes, as in ONNX."""
    x = context.input(op, "X")
    rank = context.rank(x, "its layer norm covers a part of the axes")
    axis = int(op.attrs["begin_norm_axis"]) % rank
    normalized = x.shape[axis:]

    def parameter(slot: str, default: float) -> Value | None:
        given = context.optional(op, slot)
        if given is None:
            if slot == "Bias":
                return None
            static = all(isinstance(d, int) for d in normalized)
            shape = tuple(normalized) if static else (1,)
            check_table(*shape)
            return context.builder.constant(np.full(shape, default, x.dtype.numpy))
        given = context.cast(given, x.dtype)
        if given.type.rank == len(normalized):
            return given
        return reshape_to(context, given, dimensions(context, x, axis, rank))

    inputs = [x, parameter("Scale", 1), parameter("Bias", 0)]
    attributes = {"axis": axis, "epsilon": float(op.attrs["epsilon"])}
    context.emit(op, "LayerNormalization", inputs, attributes, slot="Y")


@lowers("instance_norm")
def instance_norm(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    scale, bias = context.optional(op, "Scale"), context.optional(op, "Bias")
    if scale is None or bias is None:
        size = static_dimension(x, 1, "its missing scale or bias is created")
        scale, bias = _vector(context, scale, 1, x, size), _vector(context, bias, 0, x, size)
    parameters = [context.cast(v, x.dtype) for v in (scale, bias)]
    result = context.node("InstanceNormalization", [x, *parameters], {"epsilon": float(op.attrs["epsilon"])})
    name, alpha = str(op.attrs.get("activation_type", "")), float(op.attrs.get("alpha", 6.0))
    context.bind(op, "Y", activated(op, context, result, name, {"threshold": alpha, "alpha": alpha}))


@lowers("group_norm")
def group_norm(op: SourceOp, context: Context) -> None:
    groups = int(op.attrs["groups"])
    if groups < 1:
        raise Unlowerable(f"its attribute groups is {groups}, expected 1 or more")

    def compute(x: Value) -> Value:
        scale, bias = context.optional(op, "Scale"), context.optional(op, "Bias")
        if scale is None or bias is None:
            size = static_dimension(x, 1, "its missing scale or bias is created")
            scale, bias = _vector(context, scale, 1, x, size), _vector(context, bias, 0, x, size)
        attributes = {"epsilon": float(op.attrs["epsilon"]), "num_groups": groups}
        parameters = [context.cast(v, x.dtype) for v in (scale, bias)]
        return context.node("GroupNormalization", [x, *parameters], attributes)

    context.bind(op, "Y", in_channels_first(context, context.input(op, "X"), _layout(op), compute))


@lowers("norm")
def l2_normalize(op: SourceOp, context: Context) -> None:
    """Compute ``x / sqrt(sum(x ** 2) + epsilon)`` along one axis."""
    x = context.input(op, "X")
    axis = context.builder.ints(int(context.attribute(op, "axis")))
    total = context.node("ReduceSum", [context.node("Mul", [x, x]), axis])
    norm = context.node("Sqrt", [context.node("Add", [total, context.scalar(float(op.attrs["epsilon"]), x)])])
    context.emit(op, "Div", [x, norm])
    context.bind(op, "Norm", norm)


@lowers("lrn")
def local_response_norm(op: SourceOp, context: Context) -> None:
    """Lower to LRN. NOTE: Paddle does not divide alpha by the size of the window, ONNX does."""
    size = int(op.attrs["n"])
    attributes = {
        "size": size,
        "alpha": float(op.attrs["alpha"]) * size,
        "beta": float(op.attrs["beta"]),
        "bias": float(op.attrs["k"]),
    }

    def compute(x: Value) -> Value:
        return context.node("LRN", [x], attributes)

    context.bind(op, "Out", in_channels_first(context, context.input(op, "X"), _layout(op), compute))


@lowers("rms_norm")
def rms_norm(op: SourceOp, context: Context) -> None:
    """Compute ``x / sqrt(mean(x ** 2) + epsilon) * scale`` over the last axes.

    Paddle 2.6 adds ``bias`` and ``residual`` to x first and has ``begin_norm_axis``; 3.x has the shape of the axes.
    """
    x = context.any_input(op, "x", "X")
    if float(op.attrs.get("quant_scale", 0.0)) > 0:
        raise Unlowerable("it quantizes its result", "export the model without quantization inside rms_norm")
    for slot in ("residual", "bias"):
        term = context.optional(op, slot)
        if term is not None:
            x = context.node("Add", [x, term])
    context.bind(op, "residual_out", x)
    rank = context.rank(x, "its norm covers the last axes")
    if "begin_norm_axis" in op.attrs:
        axis = int(op.attrs["begin_norm_axis"]) % rank
    else:
        axis = rank - max(len(op.attrs.get("normalized_shape") or []), 1)
    # Half precision is normalized in float32, as in Paddle.
    wide = context.cast(x, DType.FLOAT32) if x.dtype.is_half else x
    axes = context.builder.ints(*range(axis, rank))
    square = context.node("ReduceMean", [context.node("Mul", [wide, wide]), axes])
    shifted = context.node("Add", [square, context.scalar(float(op.attrs["epsilon"]), wide)])
    inverse = context.node("Reciprocal", [context.node("Sqrt", [shifted])])
    result = context.cast(context.node("Mul", [wide, inverse]), x.dtype)
    for slots, type_ in ((("scale", "norm_weight"), "Mul"), (("norm_bias",), "Add")):
        parameter = context.any_optional(op, *slots)
        if parameter is None:
            continue
        if parameter.type.rank != rank - axis:
            parameter = reshape_to(context, parameter, dimensions(context, x, axis, rank))
        result = context.node(type_, [result, context.cast(parameter, x.dtype)])
    context.bind(op, "y", result)
    context.bind(op, "out", result)
    context.bind(op, "invvar", context.node("Squeeze", [inverse, axes]))


@lowers("l1_norm")
def l1_norm(op: SourceOp, context: Context) -> None:
    total = context.node("ReduceL1", [context.input(op, "X")], {"keepdims": 0})
    context.bind(op, "Out", context.reshape(total, [1]) if context.version < 2_005_000 else total)


@lowers("squared_l2_norm")
def squared_l2_norm(op: SourceOp, context: Context) -> None:
    total = context.node("ReduceSumSquare", [context.input(op, "X")], {"keepdims": 0})
    context.bind(op, "Out", context.reshape(total, [1]))


@lowers("label_smooth")
def label_smooth(op: SourceOp, context: Context) -> None:
    """Compute ``(1 - epsilon) * x + epsilon / classes``, or with the prior instead of ``1 / classes``."""
    x, epsilon = context.any_input(op, "X", "0"), float(op.attrs["epsilon"])
    prior = context.any_optional(op, "PriorDist", "1")
    kept = context.node("Mul", [x, context.scalar(1 - epsilon, x)])
    if prior is not None:
        share = context.node("Mul", [prior, context.scalar(epsilon, x)])
    else:
        classes = static_dimension(x, -1, "its smoothing is shared by all classes")
        share = context.scalar(epsilon / classes, x)
    result = context.node("Add", [kept, share])
    context.bind(op, "Out", result)
    context.bind(op, "0", result)
