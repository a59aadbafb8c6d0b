"""Building graphs: names, constants and inferred types taken care of.

Example::

    b = GraphBuilder("classifier")
    x = b.input("x", "float32", ["batch", 3, 224, 224])
    y = b.add("Conv", [x, b.constant(weights)], {"strides": (2, 2)})
    b.output(b.add("Relu", [y]), "scores")
    graph = b.build()
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.errors import GraphError
from lite_core.ir import Attribute, Dim, DType, Graph, Node, Origin, SymbolicDim, TensorType, Value, fresh_dim
from lite_core.ops.infer import GraphInference

__all__ = ["GraphBuilder"]

Array = np.ndarray[Any, Any]
DimLike = Dim | str | None


class GraphBuilder:
    """Builds a graph node by node; each node is checked and inferred when it is added.

    Args:
        name: the graph's name.
        outer: the builder of the enclosing graph, for the bodies of If and Loop: names are kept
            unique across both and values of the outer graph can be used directly.
    """

    def __init__(self, name: str = "graph", *, outer: GraphBuilder | None = None) -> None:
        self.graph = Graph(name)
        self._outer = outer
        self._names: set[str] = outer._names if outer else set()
        self._node_names: set[str] = outer._node_names if outer else set()
        self._inference: GraphInference = GraphInference(outer._inference if outer else None)
        self._unnamed: set[Value] = set()
        self._constant_cache: dict[tuple[str, tuple[int, ...], bytes], Value] = {}
        #: Given to every node that is added without an origin of its own.
        self.origin: Origin | None = outer.origin if outer else None

    # **** values ****

    def input(self, name: str, dtype: Any, shape: Iterable[DimLike] | None) -> Value:
        """A graph input. A dimension is a size, a symbol's name, or None for one nobody knows."""
        dims = None if shape is None else tuple(_dim(d) for d in shape)
        value = Value(self.unique_name(name, exact=True), TensorType(DType.of(dtype), dims))
        self.graph.inputs.append(value)
        self._inference.set_type(value, value.type)
        return value

    def constant(self, array: Any, name: str = "", dtype: Any = None) -> Value:
        """A constant. Small unnamed ones with equal contents are the same value."""
        array = np.asarray(array, dtype=None if dtype is None else DType.of(dtype).numpy)
        key = None
        if not name and array.size <= 64:
            key = (DType.of(array.dtype).value, array.shape, array.tobytes())
            if key in self._constant_cache:
                return self._constant_cache[key]
        value = self.graph.add_constant(self.unique_name(name or "const"), array)
        self._inference.set_type(value, value.type)
        self._inference.set_value(value, array)
        if key is not None:
            self._constant_cache[key] = value
        return value

    def ints(self, *elements: int) -> Value:
        """An int64 vector constant: axes, shapes, pads."""
        return self.constant(np.array(elements, dtype=np.int64))

    def known(self, value: Value) -> Array | None:
        """The elements of a value where inference knows them: constants and what follows from shapes."""
        return self._inference.value_of(value)

    # **** nodes ****

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        domain: str = "",
        name: str = "",
        output: str = "",
        origin: Origin | None = None,
    ) -> Value:
        """Add a node and return its first (usually only) output. See :meth:`add_node`."""
        (first,) = self.add_node(op, inputs, attributes, domain=domain, name=name, outputs=[output], origin=origin)
        return first

    def add_node(
        self,
        op: str,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        outputs: int | Sequence[str] = 1,
        domain: str = "",
        name: str = "",
        origin: Origin | None = None,
    ) -> list[Value]:
        """Add a node; check it against its operator's signature and infer its outputs.

        Args:
            op: the operator.
            inputs: values, None for an optional input left out (at the end: simply shorter).
            attributes: only what differs from the defaults; lists are taken as tuples.
            outputs: how many outputs, or a name for each (an empty name is made up).
            domain: ``""`` or ``"lite"``.
            name: the node's name; made from the operator's otherwise.
            origin: where the node comes from in the user's model.

        Raises:
            GraphError: the node does not fit its operator's signature.
        """
        names = [""] * outputs if isinstance(outputs, int) else list(outputs)
        label = self.unique_name(name or op.lower(), nodes=True)
        placeholder = TensorType(DType.FLOAT32, None)
        values = [
            Value(self.unique_name(n or (label if i == 0 else f"{label}_{i}")), placeholder)
            for i, n in enumerate(names)
        ]
        self._unnamed.update(v for v, n in zip(values, names) if not n)
        node = Node(
            op,
            inputs,
            values,
            {k: _attribute(a) for k, a in (attributes or {}).items()},
            domain=domain,
            name=label,
            origin=origin or self.origin,
        )
        problems = list(ops.get(node).check(node))
        if problems:
            raise GraphError(f"{node.describe()}: {'; '.join(problems)}")
        for value, type in zip(values, self._inference.infer(node)):
            value.type = type
        self.graph.nodes.append(node)
        return values

    def rename(self, value: Value, name: str) -> bool:
        """Give the output of a node a better name than the one made up for it, where the name is free."""
        if value not in self._unnamed or name in self._names:
            return False
        self._unnamed.discard(value)
        self._names.add(name)
        value.name = name
        return True

    def output(self, value: Value, name: str = "") -> None:
        """Make a value a graph output. A name of its own is given through an Identity node where need be."""
        if name and value.name != name and not self.rename(value, name):
            value = self.add("Identity", [value], output=name)
        self._unnamed.discard(value)
        self.graph.outputs.append(value)

    def build(self) -> Graph:
        """The finished graph, verified."""
        if self._outer is None:
            ops.verify(self.graph)
        return self.graph

    def unique_name(self, wanted: str, *, exact: bool = False, nodes: bool = False) -> str:
        """``wanted``, or with a number behind it where the name is taken.

        Raises:
            GraphError: ``exact`` and the name is taken.
        """
        taken = self._node_names if nodes else self._names
        name, number = wanted, 1
        while name in taken:
            if exact:
                raise GraphError(f"the name {wanted!r} is already taken in graph {self.graph.name!r}")
            name, number = f"{wanted}_{number}", number + 1
        taken.add(name)
        return name


def _dim(dim: DimLike) -> Dim:
    if dim is None:
        return fresh_dim()
    return SymbolicDim.named(dim) if isinstance(dim, str) else dim


def _attribute(attribute: Any) -> Attribute:
    if isinstance(attribute, list):
        return tuple(attribute)
    if isinstance(attribute, np.integer):
        return int(attribute)
    return float(attribute) if isinstance(attribute, np.floating) else attribute
