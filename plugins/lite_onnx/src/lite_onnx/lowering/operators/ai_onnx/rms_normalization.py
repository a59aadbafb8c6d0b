"""RMS normalization: layer normalization that divides by the root mean square and subtracts no mean."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.registry import lowers

__all__ = ["rms_normalize", "rms_normalize_with_root", "simplified_layer_normalization"]


@lowers("SimplifiedLayerNormalization")
def simplified_layer_normalization(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``x / sqrt(mean(x^2) + epsilon) * scale``. ONNX Runtime writes it in ONNX's own domain, too."""
    x, scale = context.value(node, 0), context.value(node, 1)
    axis, epsilon = int(number(node, "axis", -1)), number(node, "epsilon", 1e-5)
    if len(node.outputs) == 1:
        return [rms_normalize(x, scale, epsilon, context, axis)]
    return rms_normalize_with_root(x, scale, axis, epsilon, context)


def rms_normalize(x: Value, scale: Value, epsilon: float, context: Context, axis: int = -1) -> Value:
    """Return ``x / sqrt(mean(x^2) + epsilon) * scale`` over the axes from ``axis`` on."""
    return context.add("RMSNormalization", [x, scale], {"axis": axis, "epsilon": epsilon})


def rms_normalize_with_root(x: Value, scale: Value, axis: int, epsilon: float, context: Context) -> tuple[Value, Value]:
    """Return ``x / sqrt(mean(x^2) + epsilon) * scale`` over the axes from ``axis`` on, and the inverse root.

    Half-precision numbers are squared and summed in float32.
    """
    rank = context.rank(x)
    axes = context.ints(*range(axis + rank if axis < 0 else axis, rank))
    wide = context.add("Cast", [x], {"to": DType.FLOAT32}) if x.dtype.is_half else x
    mean = context.add("ReduceMean", [context.add("Mul", [wide, wide]), axes])
    root = context.add("Sqrt", [context.add("Add", [mean, context.scalar_like(epsilon, mean)])])
    inverse = context.add("Reciprocal", [root])
    scaled = context.add("Mul", [wide, inverse])
    if x.dtype.is_half:
        scaled = context.add("Cast", [scaled], {"to": x.dtype})
    return context.add("Mul", [scaled, scale]), inverse
