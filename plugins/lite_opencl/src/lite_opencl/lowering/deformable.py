"""Deformable convolutions: samples of the images, then an ordinary convolution with one tap.

DeformConv becomes the internal operator ``lite_opencl.DeformSample``, whose results are images with a channel for each
channel and tap, and a Conv with the taps of the weights as channels.
"""

from __future__ import annotations

from math import prod

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.rewriting import Rewriter
from lite_core import ops
from lite_core.ir import Graph, Node, Value
from lite_core.ops.spatial import WindowAttributes
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers, register_rewritten
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import types_of

__all__ = ["deform_sample", "without_deformable"]

_LOCAL = (64, 1, 1)


def _refuse(node: Node) -> str | None:
    x, w = node.inputs[:2]
    ranks = {len(v.type.shape) for v in (x, w) if v is not None and v.type.shape is not None}
    return None if ranks == {4} else "DeformConv has kernels for images of known rank 4 only"


register_rewritten(__name__, "DeformConv", refuse=_refuse)


def without_deformable(graph: Graph) -> Graph:
    """Return a graph whose shapes are known without DeformConv, as a copy if it has any."""
    if not any(node.qualified_op == "DeformConv" for node in graph.nodes):
        return graph
    graph = graph.copy()
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if node.qualified_op == "DeformConv":
            rewriter.begin(node)
            _rewrite(rewriter, node)
    rewriter.finish()
    return graph


def _rewrite(r: Rewriter, node: Node) -> None:
    x, w, offset, bias, mask = (*node.inputs, None, None)[:5]
    y = node.outputs[0]
    assert x is not None
    assert w is not None
    assert y is not None
    taps = tuple(w.shape[2:])
    columns = Value(f"{node.name}/columns", x.type.with_shape((x.shape[0], x.shape[1] * prod(taps), *y.shape[2:])))
    attributes = ops.attributes_of(node)
    sample = Node(
        "DeformSample", [x, offset, mask], [columns], {**node.attributes, "kernel_shape": taps},
        domain="lite_opencl", name=node.name, origin=node.origin,
    )  # fmt: skip
    (sampled,) = r.add_node(sample, sample.inputs)
    kernels = r.reshape(w, (w.shape[0], w.shape[1] * prod(taps), 1, 1))
    one_tap = {"group": attributes["group"], "kernel_shape": (1, 1)}
    r.replace([r.add("Conv", [sampled, kernels, bias], y.dtype, y.shape, one_tap)])


@lowers("lite_opencl.DeformSample")
def deform_sample(lowering: Lowering, group: Group) -> None:
    """Lower the samples to one kernel with a work item for each window, tap and channel."""
    inputs = [v for v in group.head.inputs if v is not None]
    x, offset, *masks = (lowering.dense(lowering.tensor(v)) for v in inputs)
    result, own = lowering.target(group.output), ops.find("DeformConv", "")
    assert own is not None
    attributes = {name: group.head.attributes.get(name, spec.default) for name, spec in own.attributes.items()}
    window = WindowAttributes.read(attributes, 2)
    taps_y, taps_x = attributes["kernel_shape"]
    defines = (("TAPS_Y", taps_y), ("TAPS_X", taps_x), *(("MASKED", 1) for _ in masks))
    rows, columns = result.shape[2:]
    begins = (begin for begin, _ in window.pads)
    sizes = (*x.shape, rows, columns, attributes["offset_group"], *window.strides, *window.dilations, *begins)
    lowering.step(
        KernelSource("deform_sample", "deform_sample", _LOCAL, defines, types_of(X=x, O=offset, Y=result)),
        [result, x, offset, *masks, *map(np.int32, sizes)],
        (rows * columns, result.shape[1], x.shape[0]),
        flops=8 * result.size,
    )
