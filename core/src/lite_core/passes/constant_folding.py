"""Nodes whose result is known before the model runs become constants."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.errors import LiteError
from lite_core.ir import DType, Graph, Node, TensorType
from lite_core.ops.evaluate import evaluate_node
from lite_core.ops.infer import GraphInference
from lite_core.passes.base import PassResult
from lite_core.passes.rewriting import IMPURE_OPS, Scope, ScopePass

__all__ = ["ConstantFolding"]

Array = np.ndarray[Any, Any]

logger = logging.getLogger("lite.passes")

# Weights stored in 16 bits: below this they are not worth a node.
_FEWEST_STORED = 1024
# All results together, beside those in proportion to the graph's constants: a short graph can double a constant again
# and again, or make many of one.
_MOST_BYTES, _MOST_TIMES = 64 << 20, 8


class ConstantFolding(ScopePass):
    """Computes nodes of constants once, by the operators' references.

    Rules:
        1. A pure node all of whose inputs are constants (of this graph or an enclosing one) is
           evaluated; its outputs become constants.
        2. Shape and Size of a tensor whose sizes are all known become constants.
        3. A result larger than ``size_limit`` bytes and than twice the node's constants is not
           stored (Expand, Tile, ConstantOfShape would blow up the file), and all results together take no more than
           a few times the graph's constants.
        4. What widens stored weights stays (:mod:`lite_tools.quantization` puts it there): DequantizeLinear, and a Cast
           of 1,024 or more 16-bit floats to wider ones. The file and a loaded model stay small, and a backend can
           use what is stored as it is.
        5. A node whose reference fails stays, so that the failure is reported when the model runs.
    """

    name = "constant_folding"

    def __init__(self, size_limit: int = 256 * 1024) -> None:
        self.size_limit = size_limit
        self._bytes_left: int | None = None

    def __call__(self, graph: Graph) -> PassResult:
        if self._bytes_left is None:  # NOTE: kept from round to round, for each makes more constants
            stored = sum(array.nbytes for scope in graph.walk() for array in scope.constants.values())
            self._bytes_left = _MOST_BYTES + _MOST_TIMES * stored
        return super().__call__(graph)

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            arrays = self._fold(scope, node)
            if arrays is not None:
                scope.make_constant(node, arrays)

    def _fold(self, scope: Scope, node: Node) -> list[Array] | None:
        first = node.inputs[0] if node.inputs else None
        if node.qualified_op in ("Shape", "Size") and first is not None and first.type.is_static:
            # An array of these sizes that takes no memory.
            stand_in = np.broadcast_to(np.zeros((), first.dtype.numpy), first.shape)
            return evaluate_node(node, [stand_in])
        if node.qualified_op in IMPURE_OPS or any(node.subgraphs):
            return None
        inputs = [scope.constant(v) for v in node.inputs]
        if any(a is None and v is not None for a, v in zip(inputs, node.inputs)) or _widens_weights(node, inputs):
            return None
        limit = max(self.size_limit, 2 * sum(a.nbytes for a in inputs if a is not None))
        limit = limit if self._bytes_left is None else min(limit, self._bytes_left)
        try:
            if not self._fits(node, inputs, limit):
                return None
            results = evaluate_node(node, inputs)
        except LiteError as error:
            logger.debug("constant folding leaves a node that fails: %s", error)
            return None
        size = sum(a.nbytes for a in results)
        if size > limit:
            return None
        self._bytes_left = None if self._bytes_left is None else self._bytes_left - size
        return results

    @staticmethod
    def _fits(node: Node, inputs: list[Array | None], limit: int) -> bool:
        """Whether the results, as far as inference knows their sizes, stay within the limit."""
        inference = GraphInference()
        for value, array in zip(node.inputs, inputs):
            if value is not None and array is not None:
                inference.set_type(value, TensorType.of_array(array))
                inference.set_value(value, array)
        sizes = [(t.size, t.dtype.itemsize) for t in inference.infer(node)]
        return sum(size * itemsize for size, itemsize in sizes if isinstance(size, int)) <= limit


def _widens_weights(node: Node, inputs: list[Array | None]) -> bool:
    """Rule 4: whether a node of constants makes of stored weights what the model computes with."""
    if node.qualified_op == "DequantizeLinear":
        return True
    stored = inputs[0] if inputs else None
    if node.qualified_op != "Cast" or stored is None or stored.size < _FEWEST_STORED:
        return False
    to = ops.get(node).attributes_of(node)["to"]
    return DType.of(stored).is_half and to in (DType.FLOAT32, DType.FLOAT64)
