"""Conversion of operators on 16-bit floats to float32, for operators whose kernels compute only in float32.

Element-wise operators load and store 16-bit floats directly. The inserted conversions are element-wise too, so they are
fused into the kernels before and after if these take epilogues.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lite_compiler.rewriting import Rewriter
from lite_core.ir import DType, Graph, Node, Value
from lite_cpu.lowering.weights import WeightCache

__all__ = ["as_float32", "has_halves", "widen_halves"]

F32 = DType.FLOAT32


def has_halves(node: Node) -> bool:
    """Return True if a node reads or writes 16-bit floats."""
    for value in (*node.inputs, *node.outputs):  # noqa: SIM110 - called for all nodes, and any() is slower
        if value is not None and value.type.dtype.is_half:
            return True
    return False


def as_float32(node: Node) -> Node:
    """Return a copy of a node that reads and writes float32 instead of 16-bit floats."""

    def wide(value: Value | None) -> Value | None:
        return value if value is None or not value.dtype.is_half else Value(value.name, value.type.with_dtype(F32))

    return Node(
        node.op, map(wide, node.inputs), map(wide, node.outputs), node.attributes, domain=node.domain, name=node.name,
        origin=node.origin,
    )  # fmt: skip


def widen_halves(graph: Graph, weights: WeightCache, needs_widening: Callable[[Node], bool]) -> None:
    """Make nodes on 16-bit floats compute in float32; the graph is changed in place.

    Args:
        graph: a graph whose shapes are all known.
        weights: the cache of converted constants.
        needs_widening: returns True for nodes that have no kernel for 16-bit floats.
    """
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if has_halves(node) and needs_widening(node):
            rewriter.begin(node)
            _widen(rewriter, node, weights)
    rewriter.finish()


def _is_packed(node: Node, graph: Graph) -> bool:
    """Return True for a product whose second input is a constant: packing widens it, one weight after another."""
    return not node.domain and node.op in ("Gemm", "MatMul") and node.inputs[1] in graph.constants


def _widen(r: Rewriter, node: Node, weights: WeightCache) -> None:
    def wide(value: Value | None) -> Value | None:
        if value is None or not value.dtype.is_half:
            return value
        array = r.scope.constant(value)
        if array is not None:
            return r.constant(weights.derived("float32", array, lambda a: a.astype(np.float32)))
        return r.add("Cast", [value], F32, value.shape, {"to": F32})

    def narrow(result: Value | None, value: Value | None) -> Value | None:
        if result is None or value is None or not value.dtype.is_half:
            return result
        return r.add("Cast", [result], value.dtype, value.shape, {"to": value.dtype})

    inputs = [wide(v) if i != 1 or not _is_packed(node, r.scope.graph) else v for i, v in enumerate(node.inputs)]
    outputs = r.add_node(as_float32(node), inputs)
    r.replace([narrow(result, value) for result, value in zip(outputs, node.outputs)])
