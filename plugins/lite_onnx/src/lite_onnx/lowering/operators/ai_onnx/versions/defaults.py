"""Defaults that changed, and numbers and names that were written differently."""

from __future__ import annotations

from onnx import TensorProto

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx.versions.taking import take_float, take_text
from lite_onnx.lowering.registry import adapts


@adapts("Cast", until=5)
def element_type_by_number(node: SourceNode, context: Context) -> None:
    """The element type was a text: the name that its number has."""
    node.attributes["to"] = TensorProto.DataType.Value(take_text(node, "to", "").upper())


@adapts("Concat", until=3)
def axis_one(node: SourceNode, context: Context) -> None:
    """The axis was 1 where it was left out."""
    node.attributes.setdefault("axis", 1)


@adapts("Selu", until=5)
def constants_of_selu(node: SourceNode, context: Context) -> None:
    """They had fewer digits."""
    node.attributes.setdefault("alpha", 1.6732)
    node.attributes.setdefault("gamma", 1.0507)


@adapts("LpPool", "GlobalLpPool", until=1)
def norm_of_any_order(node: SourceNode, context: Context) -> list[Item] | None:
    """The order of the norm could have a fraction: ``(sum |x| ** p) ** (1 / p)``."""
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
def names_of_interpolations(node: SourceNode, context: Context) -> None:
    """They were those of images."""
    mode = take_text(node, "mode", "bilinear")
    node.attributes["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)


@adapts("RoiAlign", until=15)
def regions_not_shifted(node: SourceNode, context: Context) -> None:
    """Coordinates of regions were not moved by half a pixel."""
    node.attributes["coordinate_transformation_mode"] = "output_half_pixel"


@adapts("Scatter", until=10)
def scatter_by_elements(node: SourceNode, context: Context) -> None:
    """ScatterElements was called so."""
    node.op = "ScatterElements"
