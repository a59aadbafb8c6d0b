"""Deformable convolutions: samples of the images, then an ordinary convolution with one tap.

DeformConv becomes the internal operator ``lite_cpu.DeformSample``, whose results are images with a channel for each
group, tap and channel of the convolution, and a Conv with the taps of the weights as channels.
"""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.rewriting import Rewriter
from lite_core import ops
from lite_core.ir import DType, Graph, Node, Value
from lite_core.ops.spatial import WindowAttributes
from lite_cpu.kernels.deform_sample import DeformSample, SampleSizes
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.movement import zero_like
from lite_cpu.lowering.registry import lowers, register_rewritten
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.lowering.weights import WeightCache

__all__ = ["deform_sample", "rewrite_deformable"]

Array = np.ndarray[Any, Any]


def rewrite_deformable(graph: Graph, weights: WeightCache) -> None:
    """Replace every DeformConv; the graph, whose shapes are all known, is changed in place."""
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if node.qualified_op == "DeformConv":
            rewriter.begin(node)
            _rewrite(rewriter, node, weights)
    rewriter.finish()


def _rewrite(r: Rewriter, node: Node, weights: WeightCache) -> None:
    attributes = ops.attributes_of(node)
    x, w, y = required_input(node), required_input(node, 1), node.outputs[0]
    assert y is not None
    images, channels, (taps_y, taps_x) = x.shape[0], x.shape[1], w.shape[2:]
    shape = (images, channels * taps_y * taps_x, *y.shape[2:])
    model = Node(
        "DeformSample",
        node.inputs,
        [Value(f"{node.name}/columns", x.type.with_shape(shape))],
        {**node.attributes, "kernel_shape": (taps_y, taps_x)},
        domain="lite_cpu",
        name=node.name,
        origin=node.origin,
    )
    (columns,) = r.add_node(model, [x, required_input(node, 2), input_of(node, 4)])
    kernels = _taps_first(r, w, weights)
    one_tap = {"group": attributes["group"], "kernel_shape": (1, 1)}
    r.replace([r.add("Conv", [columns, kernels, input_of(node, 3)], y.dtype, y.shape, one_tap)])


def _taps_first(r: Rewriter, w: Value, weights: WeightCache) -> Value:
    """Return weights [outputs, channels, taps, taps] as [outputs, taps * taps * channels, 1, 1]."""
    outputs, channels, taps_y, taps_x = w.shape
    shape = (outputs, taps_y * taps_x * channels, 1, 1)
    array = r.scope.constant(w)
    if array is None:
        moved = r.add("Transpose", [w], w.dtype, (outputs, taps_y, taps_x, channels), {"perm": (0, 2, 3, 1)})
        return r.reshape(moved, shape)

    def move(array: Array) -> Array:
        return np.ascontiguousarray(array.transpose(0, 2, 3, 1)).reshape(shape)

    return r.constant(weights.derived("taps first", array, move))


def _refuse(node: Node) -> str | None:
    x, w = required_input(node), required_input(node, 1)
    if x.dtype is DType.FLOAT64:
        return f"{node.op} has kernels for float32 only, not for {x.dtype}"
    ranks = {len(v.type.shape) for v in (x, w) if v.type.shape is not None}
    return None if ranks == {4} else f"{node.op} has kernels for images of known rank 4 only"


register_rewritten(__name__, "DeformConv", refuse=_refuse)


@lowers("lite_cpu.DeformSample")
def deform_sample(lowering: Lowering, group: Group) -> None:
    """Emit the gathering of all windows."""
    node = group.head
    x, offset, mask = required_input(node), required_input(node, 1), input_of(node, 2)
    target = lowering.target(group.output, channels_last_order(4))
    if not target.size:
        return
    source = lowering.channels_last(lowering.tensor(x))
    batch, channels, height, width = source.shape
    if not source.size:
        lowering.copy(zero_like(lowering, group.output).expand(target.shape), target)
        return
    own = ops.find("DeformConv", "")
    assert own is not None
    attributes = {name: node.attributes.get(name, spec.default) for name, spec in own.attributes.items()}
    window = WindowAttributes.read(attributes, 2)
    taps_y, taps_x = attributes["kernel_shape"]
    shared, grouped = channels // attributes["offset_group"], channels // attributes["group"]
    part = gcd(shared, grouped)
    rows, columns = target.shape[2:]
    (stride_y, stride_x), (dilation_y, dilation_x) = window.strides, window.dilations
    (begin_y, _), (begin_x, _) = window.pads
    sizes = SampleSizes(
        height, width, rows, columns, taps_y, taps_x, stride_y, stride_x, dilation_y, dilation_x, begin_y, begin_x,
        channels // part, part, shared, grouped,
    )  # fmt: skip
    strides = [tensor.strides[axis] for tensor in (source, target) for axis in (0, 2, 3)]
    masks = [] if mask is None else [lowering.dense(lowering.tensor(mask))]
    lowering.step(
        DeformSample(mask is not None),
        [
            source,
            lowering.dense(lowering.tensor(offset)),
            target,
            lowering.constant(np.zeros(part, np.float32)),
            *masks,
        ],
        [*sizes, *strides],
        batch * rows,
        flops=8 * target.size,
    )
