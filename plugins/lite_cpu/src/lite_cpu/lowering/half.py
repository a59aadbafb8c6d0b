"""16-bit floats: operators whose kernels compute in float32 get their operands converted, and their results back.

Element-wise operators load and store 16-bit floats themselves, and the conversions are element-wise: they run in the
registers of the kernels before and after, where those take such nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lite_core.ir import DType, Graph, Node, Value
from lite_cpu.lowering.rewriting import Rewriter
from lite_cpu.lowering.weights import WeightCache

__all__ = ["has_halves", "in_float32", "widen_halves"]

F32 = DType.FLOAT32


def has_halves(node: Node) -> bool:
    """Whether a node reads or writes 16-bit floats."""
    for value in (*node.inputs, *node.outputs):  # noqa: SIM110 - asked of all nodes, and any() is slower
        if value is not None and value.type.dtype.is_half:
            return True
    return False


def in_float32(node: Node) -> Node:
    """A node like this one that reads and writes float32 in the place of 16-bit floats."""

    def wide(value: Value | None) -> Value | None:
        return value if value is None or not value.dtype.is_half else Value(value.name, value.type.with_dtype(F32))

    return Node(
        node.op, map(wide, node.inputs), map(wide, node.outputs), node.attributes, domain=node.domain, name=node.name,
        origin=node.origin,
    )  # fmt: skip


def widen_halves(graph: Graph, weights: WeightCache, needs: Callable[[Node], bool]) -> None:
    """Have nodes compute in float32, in place.

    Args:
        graph: whose shapes are all known.
        weights: shares the converted constants.
        needs: which of the nodes with 16-bit floats have no kernel of their own.
    """
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if has_halves(node) and needs(node):
            rewriter.begin(node)
            _widen(rewriter, node, weights)
    rewriter.finish()


def _widen(r: Rewriter, node: Node, weights: WeightCache) -> None:
    def wide(value: Value | None) -> Value | None:
        if value is None or not value.dtype.is_half:
            return value
        array = r.scope.constant(value)
        if array is not None:
            return r.constant(weights.derived("float32", array, lambda a: a.astype(np.float32)))
        return r.add("Cast", [value], F32, value.shape, {"to": F32})

    def narrow(made: Value | None, value: Value | None) -> Value | None:
        if made is None or value is None or not value.dtype.is_half:
            return made
        return r.add("Cast", [made], value.dtype, value.shape, {"to": value.dtype})

    inputs = [wide(v) for v in node.inputs]
    outputs = r.add_node(in_float32(node), inputs)
    r.replace([narrow(made, value) for made, value in zip(outputs, node.outputs)])
