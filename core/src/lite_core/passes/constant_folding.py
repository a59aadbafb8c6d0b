"""Constant folding: nodes whose results are known before the model runs become constants."""

from __future__ import annotations

import logging

import numpy as np

from lite_core import ops
from lite_core.errors import LiteError
from lite_core.ir import Array, DType, Graph, Node
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import GraphInference
from lite_core.passes.base import PassResult
from lite_core.passes.rewriting import Scope, ScopePass

__all__ = ["ConstantFolding"]

logger = logging.getLogger("lite.passes")

# Fewer elements of 16-bit weights are folded: they are not worth a Cast at run time.
_FEWEST_STORED = 1024
# Limit of all results together: bytes, plus a multiple of the graph's constants. A short graph can double a constant
# repeatedly, or make many from one.
_MOST_BYTES, _MOST_TIMES = 64 << 20, 8


class ConstantFolding(ScopePass):
    """Pass that evaluates nodes whose inputs are constants, by the operators' references.

    Rules:
        1. A pure node whose inputs are all constants (of this graph or an enclosing one) is evaluated; its outputs
           become constants, unless they are strings.
        2. Shape and Size of a tensor whose sizes are all known become constants.
        3. A result larger than ``size_limit`` bytes and larger than twice the node's constants is not folded (Expand,
           Tile and ConstantOfShape would inflate the file). All results together are limited to 64 MiB plus eight
           times the graph's constants.
        4. Nodes that widen stored weights are not folded (:mod:`lite_tools.quantization` adds them): DequantizeLinear,
           and a Cast of 1,024 or more 16-bit floats to wider ones. The file and a loaded model stay small, and a
           backend can use the stored weights directly.
        5. A node whose reference fails is not folded, so that the failure is reported when the model runs.
    """

    name = "constant_folding"

    def __init__(self, size_limit: int = 256 * 1024) -> None:
        self.size_limit = size_limit
        self._bytes_left = -1  # before the first graph

    def __call__(self, graph: Graph) -> PassResult:
        if self._bytes_left < 0:  # NOTE: not reset between rounds, because each round adds constants
            stored = sum(array.nbytes for scope in graph.walk() for array in scope.constants.values())
            self._bytes_left = _MOST_BYTES + _MOST_TIMES * stored
        return super().__call__(graph)

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if (arrays := self._fold(scope, node)) is not None:
                scope.make_constant(node, arrays)

    def _fold(self, scope: Scope, node: Node) -> list[Array] | None:
        first = node.inputs[0] if node.inputs else None
        if node.qualified_op in ("Shape", "Size") and first is not None and first.type.is_static:
            # A broadcast array of this shape takes no memory.
            stand_in = np.broadcast_to(np.zeros((), first.dtype.numpy), first.shape)
            return evaluate_node(node, [stand_in])
        if node.qualified_op in ops.IMPURE_OPS or any(node.subgraphs):
            return None
        inputs = [scope.constant(v) for v in node.inputs]
        if any(a is None and v is not None for a, v in zip(inputs, node.inputs)) or _widens_weights(node, inputs):
            return None
        limit = min(self._bytes_left, max(self.size_limit, 2 * sum(a.nbytes for a in inputs if a is not None)))
        try:
            if not self._fits(node, inputs, limit):
                return None
            results = evaluate_node(node, inputs)
        except LiteError as error:
            logger.debug("constant folding leaves a node that fails: %s", error)
            return None
        size = sum(a.nbytes for a in results)
        if size > limit or any(a.dtype.hasobject for a in results):
            return None
        self._bytes_left -= size
        return results

    @staticmethod
    def _fits(node: Node, inputs: list[Array | None], limit: int) -> bool:
        """Return True if the results, as far as inference knows their sizes, stay within the limit."""
        inference = GraphInference()
        inference.add_arrays(zip(node.inputs, inputs))
        sizes = [(t.size, t.dtype.itemsize) for t in inference.infer(node)]
        return sum(size * itemsize for size, itemsize in sizes if isinstance(size, int)) <= limit


def _widens_weights(node: Node, inputs: list[Array | None]) -> bool:
    """Return True if a node widens stored weights to the type that the model computes with (rule 4)."""
    if node.qualified_op == "DequantizeLinear":
        return True
    stored = inputs[0] if inputs else None
    if node.qualified_op != "Cast" or stored is None or stored.size < _FEWEST_STORED:
        return False
    to = ops.attributes_of(node)["to"]
    return DType.of(stored).is_half and to in (DType.FLOAT32, DType.FLOAT64)
