"""Rewriting of operators to other operators before a graph is lowered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.ir import Attribute, DType, Graph, Node, TensorType, Value
from lite_core.passes.rewriting import Scope, first_origin

__all__ = ["Rewriter"]

Array = np.ndarray[Any, Any]


class Rewriter:
    """Replacement of nodes in a graph whose shapes are all known.

    For each node to replace, call :meth:`begin`, then :meth:`add` for the new nodes, then :meth:`replace`. After the
    last node, call :meth:`finish`.
    """

    def __init__(self, graph: Graph) -> None:
        self.scope = Scope(graph)
        self._graph = graph
        self._added: list[Node] = []
        self._node: Node | None = None

    def begin(self, node: Node) -> None:
        """Start the replacement of a node."""
        self._node, self._added = node, []

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        dtype: DType,
        shape: Sequence[int],
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Value:
        """Add a node and return its output."""
        assert self._node is not None
        value = self.scope.new_value(f"{self._node.name or self._node.op}/{op}", TensorType(dtype, tuple(shape)))
        node = Node(op, inputs, [value], attributes, name=self._node.name, origin=first_origin([self._node]))
        self._added.append(node)
        return value

    def add_node(self, model: Node, inputs: Sequence[Value | None]) -> list[Value | None]:
        """Add a copy of the node ``model`` with other inputs, and return its outputs."""
        outputs = [None if v is None else self.scope.new_value(v.name, v.type) for v in model.outputs]
        copy = Node(
            model.op, inputs, outputs, model.attributes, domain=model.domain, name=model.name, origin=model.origin
        )
        self._added.append(copy)
        return outputs

    def like(self, op: str, inputs: Sequence[Value | None], attributes: Mapping[str, Attribute] | None = None) -> Value:
        """Add a node whose output has the type of its first input, and return the output."""
        first = inputs[0]
        assert first is not None
        return self.add(op, inputs, first.dtype, first.shape, attributes)

    def constant(self, array: Array) -> Value:
        return self.scope.new_constant("constant", array)

    def reshape(self, value: Value, shape: Sequence[int]) -> Value:
        """Return a value reshaped; for a constant, another constant."""
        if tuple(value.shape) == tuple(shape):
            return value
        array = self.scope.constant(value)
        if array is not None:
            return self.constant(array.reshape(shape))
        return self.add("Reshape", [value, self.constant(np.array(shape, np.int64))], value.dtype, shape)

    def replace(self, results: Sequence[Value | None]) -> None:
        """Replace the node by the added nodes, and its outputs by ``results``."""
        assert self._node is not None
        renamed = {new: old for new, old in zip(results, self._node.outputs) if new is not None and old is not None}
        for node in self._added:
            node.outputs = tuple(renamed.get(v, v) if v is not None else None for v in node.outputs)
            node.inputs = tuple(renamed.get(v, v) if v is not None else None for v in node.inputs)
        self.scope.replace([self._node], self._added)

    def finish(self) -> None:
        """Write the replacements into the graph, and remove nodes whose results are not used."""
        self.scope.commit()
        needed = set(self._graph.outputs)
        nodes = []
        for node in reversed(self._graph.nodes):
            if any(v in needed for v in node.outputs):
                needed.update(node.used())
                nodes.append(node)
        self._graph.nodes = nodes[::-1]
