"""Variants of ONNX's operators, and RelativePositionBias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import DType
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number, present_attributes
from lite_onnx.lowering.operators.ai_onnx.heads import int_scalar, position_range
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers


@lowers("Trilu", "GatherND", domain=MICROSOFT)
def same_as_onnx(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to the operator of the same name, which ONNX adopted unchanged."""
    return context.add_node(
        node.op, context.values(node), present_attributes(node, node.attributes), outputs=len(node.outputs)
    )


@lowers("Range", domain=MICROSOFT)
def range_(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to Range; here the step is optional."""
    start, limit, step = context.value(node, 0), context.value(node, 1), context.optional(node, 2)
    return [context.add("Range", [start, limit, step or context.scalar_like(1, start)])]


@lowers("Unique", domain=MICROSOFT)
def unique(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to Unique, unsorted, with the outputs elements, inverse indices and counts."""
    found = context.add_node("Unique", [context.value(node, 0)], {"sorted": 0}, outputs=4)
    return [found[0], found[2], found[3]][: len(node.outputs)]


@lowers("Pad", domain=MICROSOFT)
def pad(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to Pad; here the pads may be a row [1, n]."""
    pads = context.add("Reshape", [context.value(node, 1), context.ints(-1)])
    inputs = [context.value(node, 0), pads, context.optional(node, 2)]
    return [context.add("Pad", inputs, {"mode": number(node, "mode", "constant")})]


@lowers("ExpandDims", domain=MICROSOFT)
def expand_dims(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to Unsqueeze."""
    axis = context.add("Cast", [context.add("Reshape", [context.value(node, 1), context.ints(1)])], {"to": DType.INT64})
    return [context.add("Unsqueeze", [context.value(node, 0), axis])]


@lowers("GridSample", domain=MICROSOFT)
def grid_sample(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to GridSample, whose modes were renamed in opset 20."""
    names = {"bilinear": "linear", "bicubic": "cubic"}
    mode = number(node, "mode", "bilinear")
    attributes = {
        **{k: node.attributes.get(k) for k in ("align_corners", "padding_mode")},
        "mode": names.get(mode, mode),
    }
    return [context.add("GridSample", context.values(node), attributes)]


@lowers("RelativePositionBias", domain=MICROSOFT)
def relative_position_bias(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower T5's bias [1, heads, queries, keys], looked up by distance in a table [buckets, heads]."""
    table, queries, keys = (context.value(node, i) for i in range(3))
    is_bidirectional, limit = bool(number(node, "is_bidirectional", 0)), int(number(node, "max_distance", 0))
    buckets = context.size(table, 0) // (2 if is_bidirectional else 1)
    sizes = [
        context.add("Cast", [context.add("Reshape", [x, context.ints()])], {"to": DType.INT64}) for x in (queries, keys)
    ]
    rows, columns = (position_range(size, context) for size in sizes)
    ahead = context.add("Sub", [columns, context.add("Unsqueeze", [rows, context.ints(1)])])
    zero, exact = int_scalar(0, context), buckets // 2
    behind = context.add("Neg", [ahead])
    distance = context.add("Abs", [ahead]) if is_bidirectional else context.add("Max", [behind, zero])
    # NOTE: far positions have logarithmic buckets. The logarithm is in float32: rounding decides at bucket edges.
    real = context.add("Cast", [context.add("Max", [distance, int_scalar(1, context)])], {"to": DType.FLOAT32})
    log = context.add("Log", [context.add("Div", [real, context.scalar_like(exact, real)])])
    steps = context.add("Div", [log, context.scalar_like(float(np.log(np.float32(limit / exact))), log)])
    far = context.add(
        "Cast", [context.add("Mul", [steps, context.scalar_like(buckets - exact, steps)])], {"to": DType.INT64}
    )
    far = context.add("Min", [context.add("Add", [far, int_scalar(exact, context)]), int_scalar(buckets - 1, context)])
    found = context.add("Where", [context.add("Less", [distance, int_scalar(exact, context)]), distance, far])
    if is_bidirectional:
        side = context.add("Where", [context.add("Greater", [ahead, zero]), int_scalar(buckets, context), zero])
        found = context.add("Add", [found, side])
    spread = context.add("Transpose", [context.add("Gather", [table, found])], {"perm": (2, 0, 1)})
    return [context.add("Unsqueeze", [spread, context.ints(0)])]
