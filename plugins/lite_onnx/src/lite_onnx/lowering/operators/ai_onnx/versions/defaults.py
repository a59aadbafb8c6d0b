"""Adapters for changed defaults, and for attributes that were written differently."""

from __future__ import annotations

from onnx import TensorProto

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.checked_attributes import take_float, take_string
from lite_onnx.lowering.registry import adapts


@adapts("Cast", until=5)
def element_type_from_name(node: SourceNode, context: Context) -> None:
    """Convert the element type from its name to its number."""
    node.attributes["to"] = TensorProto.DataType.Value(take_string(node, "to", "").upper())


@adapts("Concat", until=3)
def default_axis_one(node: SourceNode, context: Context) -> None:
    """Set the old default of the axis, 1."""
    node.attributes.setdefault("axis", 1)


@adapts("Selu", until=5)
def default_constants_of_selu(node: SourceNode, context: Context) -> None:
    """Set the old defaults, which had fewer digits."""
    node.attributes.setdefault("alpha", 1.6732)
    node.attributes.setdefault("gamma", 1.0507)


@adapts("LpPool", "GlobalLpPool", until=1)
def fractional_norm_order(node: SourceNode, context: Context) -> list[Item] | None:
    """Lower norms of fractional order: ``(sum |x| ** p) ** (1 / p)``."""
    order = take_float(node, "p", 2.0)
    if order.is_integer():
        node.attributes["p"] = int(order)
        return None
    data = context.value(node, 0)
    powers = context.add("Pow", [context.add("Abs", [data]), context.scalar_like(order, data)])
    settings = {k: tuple(v) if isinstance(v, list) else v for k, v in node.attributes.items()}
    sums = context.add(node.op, [powers], {**settings, "p": 1})
    return [context.add("Pow", [sums, context.scalar_like(1 / order, data)])]


@adapts("GridSample", until=19)
def rename_interpolation_modes(node: SourceNode, context: Context) -> None:
    """Rename the modes for images to the modes for any number of dimensions."""
    mode = take_string(node, "mode", "bilinear")
    node.attributes["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)


@adapts("RoiAlign", until=15)
def regions_without_half_pixel_shift(node: SourceNode, context: Context) -> None:
    """Set the old coordinate mode, which does not shift regions by half a pixel."""
    node.attributes["coordinate_transformation_mode"] = "output_half_pixel"


@adapts("Scatter", until=10)
def rename_to_scatter_elements(node: SourceNode, context: Context) -> None:
    """Rename the operator to ScatterElements."""
    node.op = "ScatterElements"
