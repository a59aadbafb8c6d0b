"""Adapters for Upsample and Resize from before they had modes for coordinates and rounding."""

from __future__ import annotations

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_string
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import Unlowerable

#: The rounding modes of ``x - 0.5``, half_pixel's coordinate, that equal ``floor(x)`` and ``round(x)``.
_OF_HALF_PIXEL = {"floor": "round_prefer_ceil", "round_prefer_floor": "ceil"}


@adapts("Upsample", until=9)
def upsample_as_resize(node: SourceNode, context: Context) -> None:
    """Convert Upsample to Resize."""
    node.op = "Resize"


@adapts("Resize", until=10)
def asymmetric_coordinates(node: SourceNode, context: Context) -> list[Item] | None:
    """Set asymmetric coordinates, which are divided by the scales.

    The mode ``nearest`` rounds down along axes that grow, and up along axes that shrink. The specification leaves the
    rounding open; ONNX's own tests of that version and ONNX Runtime round like this.
    """
    data, scales = context.value(node, 0), context.value(node, 1)
    mode = take_string(node, "mode", "nearest")
    if mode == "nearest":
        return [_nearest(data, scales, context)]
    node.attributes["mode"] = "linear" if mode in ("bilinear", "trilinear") else mode
    node.attributes["coordinate_transformation_mode"] = "asymmetric"
    node.inputs = [data, None, scales]
    return None


def _nearest(data: Value, scales: Value, context: Context) -> Value:
    """Resize growing axes first, then shrinking ones: in the mode ``nearest``, axes are independent of each other."""
    one, known = context.scalar_like(1.0, scales), context.known(scales)
    if known is not None and (known >= 1).all():
        return _resized(data, scales, "floor", context)
    if known is not None and (known <= 1).all():
        return _resized(data, scales, "ceil", context)
    grown = _resized(data, context.add("Max", [scales, one]), "floor", context)
    return _resized(grown, context.add("Min", [scales, one]), "ceil", context)


def _resized(data: Value, scales: Value, rounding: str, context: Context) -> Value:
    modes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
    return context.add("Resize", [data, None, scales], modes)


@adapts("Resize", until=12)
def half_pixel_for_nearest(node: SourceNode, context: Context) -> None:
    """Convert ``tf_half_pixel_for_nn``, whose coordinates are half an element larger than those of half_pixel."""
    if node.attributes.get("coordinate_transformation_mode") != "tf_half_pixel_for_nn":
        return
    rounding = _OF_HALF_PIXEL.get(take_string(node, "nearest_mode", "round_prefer_floor"))
    if rounding is None or node.attributes.get("mode", "nearest") != "nearest":
        raise Unlowerable("tf_half_pixel_for_nn is for the nearest element, by floor or round_prefer_floor")
    node.attributes.update(coordinate_transformation_mode="half_pixel", nearest_mode=rounding)
