"""Operators that only Paddle-Lite's optimiser makes: element-wise operators with an activation, and conversions."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.operators.elementwise import aligned, floor_modulo
from lite_paddle.lowering.paddle_lite_fusions import activated, dequantized, kernel_alias, quantized
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_FUNCTIONS = {"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow"}
# The names of element types in the aliases of conversions.
_TYPES = {"fp32": DType.FLOAT32, "int32": DType.INT32, "int64": DType.INT64, "fp64": DType.FLOAT64}


@lowers(*(f"fusion_elementwise_{name}_activation" for name in (*_FUNCTIONS, "mod")))
def fused_elementwise(op: SourceOp, context: Context) -> None:
    """Compute an activation of a sum, difference ... of two tensors."""
    name = op.type.split("_")[2]
    x, y = aligned(op, context)
    result = floor_modulo(context, x, y) if name == "mod" else context.node(_FUNCTIONS[name], [x, y])
    activation = str(op.attrs.get("act_type", ""))
    if op.attrs.get("fuse_scale"):
        raise Unlowerable(
            f"it has both the activation {activation!r} and fuse_scale, in an order that no document states",
            "convert the model again without lite_elementwise_scale_fuse_pass",
        )
    context.bind(op, "Out", activated(op, context, result, activation, {}))


@lowers("io_copy", "io_copy_once", "layout", "layout_once")
def moved(op: SourceOp, context: Context) -> None:
    """Pass on a tensor or a list of tensors: copies between devices and layouts do not change the numbers."""
    if not op.inputs.get("Input") and op.inputs.get("InputArray"):
        array = context.array(op.inputs["InputArray"][0])
        if array is None:
            raise Unlowerable(f"its input {op.inputs['InputArray'][0].name!r} is no list of tensors")
        for source in op.outputs.get("OutArray", ()):
            context.bind_array(source, array)
        return
    context.bind(op, "Out", context.input(op, "Input"))


@lowers("calib", "calib_once", "calib_inplace")
def converted(op: SourceOp, context: Context) -> None:
    """Convert between element types as the name of the kernel says.

    NOTE: float16 between kernels becomes float32: a session that may compute in float16 chooses it itself.
    """
    x, alias = context.input(op, "Input"), kernel_alias(op)
    source, _, target = alias.partition("_to_")
    scale = op.attrs.get("scale")
    if "int8" in (source, target):
        if not isinstance(scale, float | int) or not scale > 0:
            raise Unlowerable(f"it converts {source} to {target}, but its attribute scale is {scale}")
        scales = np.array([scale], np.float32)
        if target == "int8":
            result = x if x.dtype is DType.INT8 else quantized(context, x, scales)
        else:
            result = dequantized(context, x, scales) if x.dtype is DType.INT8 else x
    else:
        result = _cast(context, x, source, target)
    context.bind(op, "Out", result)


def _cast(context: Context, x: Value, source: str, target: str) -> Value:
    if "fp16" in (source, target):
        target = {"fp16": "fp32"}.get(target, target)
    if target not in _TYPES:
        raise Unlowerable(
            f"its kernel is {source}_to_{target}, expected one that converts between fp32, fp16, int8, int32 and int64"
            if target
            else "it records no kernel, which says what it converts to"
        )
    return context.cast(x, _TYPES[target])
