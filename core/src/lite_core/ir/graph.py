"""The graph: values in SSA form, nodes in topological order, constants, sub-graphs.

NOTE: a node's inputs may be values of an enclosing graph (the bodies of ``If`` and ``Loop`` capture values), so code
that follows uses must also visit sub-graphs: see :meth:`Graph.walk`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np

from lite_core.ir.attributes import PlainAttribute, format_attribute, format_constant
from lite_core.ir.pages import aligned_empty, release_pages, spill
from lite_core.ir.types import Array, DType, TensorType
from lite_core.notebooks import Shown, signature_text

__all__ = ["Attribute", "Graph", "Node", "Origin", "Value", "format_graph"]

Attribute = Union[PlainAttribute, "Graph"]


class Origin(NamedTuple):
    """The origin of a node: its operator type and name in the model that was read."""

    op: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.op} {self.name!r}" if self.name else self.op


class Value:
    """A tensor in a graph, written once: a graph input, a constant, or an output of one node.

    Values are compared by identity. ``name`` is unique in its graph and the enclosing graphs.
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: TensorType) -> None:
        self.name = name
        self.type = type

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> Any:
        return self.type.shape

    def __repr__(self) -> str:
        return f"%{self.name}: {self.type}"


class Node:
    """One application of an operator.

    ``inputs`` and ``outputs`` are positional as in the operator's signature; ``None`` stands for an omitted optional
    one. ``attributes`` holds only explicit values; ``ops.get(node).attributes_of(node)`` adds the operator's defaults.
    """

    __slots__ = ("attributes", "domain", "inputs", "name", "op", "origin", "outputs")

    def __init__(
        self,
        op: str,
        inputs: Iterable[Value | None],
        outputs: Iterable[Value | None],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        domain: str = "",
        name: str = "",
        origin: Origin | None = None,
    ) -> None:
        self.op = op
        self.inputs: tuple[Value | None, ...] = tuple(inputs)
        self.outputs: tuple[Value | None, ...] = tuple(outputs)
        self.attributes: dict[str, Attribute] = dict(attributes or {})
        self.domain = domain
        self.name = name
        self.origin = origin

    @property
    def qualified_op(self) -> str:
        """The operator with its domain: ``lite.YoloBox``; without it for the default domain: ``Conv``."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    @property
    def subgraphs(self) -> list[Graph]:
        """Graphs held by attributes (the branches of If, the body of Loop)."""
        return [a for a in self.attributes.values() if isinstance(a, Graph)]

    def captured(self) -> list[Value]:
        """Return the values of enclosing graphs that the sub-graphs of this node use."""
        return [v for a in self.attributes.values() if isinstance(a, Graph) for v in a.captured()]

    def used(self) -> list[Value]:
        """Return every value that this node reads: its inputs and the captured values of its sub-graphs."""
        used = [v for v in self.inputs if v is not None]
        for attribute in self.attributes.values():  # not by captured(): called for every node of every plan
            if isinstance(attribute, Graph):
                used.extend(attribute.captured())
        return used

    def copy_with(
        self, inputs: Iterable[Value | None], outputs: Iterable[Value | None], attributes: Mapping[str, Attribute]
    ) -> Node:
        """Return a node with the same operator, name and origin that reads and writes other values."""
        return Node(self.op, inputs, outputs, attributes, domain=self.domain, name=self.name, origin=self.origin)

    def describe(self) -> str:
        """Return one line for messages: name, operator, origin and input types."""
        types = ", ".join("-" if v is None else str(v.type) for v in self.inputs)
        origin = f", from {self.origin}" if self.origin else ""
        return f"node {self.name!r} ({self.qualified_op}{origin}) on ({types})"

    def __repr__(self) -> str:
        return f"<Node {self.name} {self.qualified_op}>"


class Graph(Shown):
    """Inputs, outputs, constants, and nodes in topological order.

    Constants are values that no node writes: ``constants[value]`` is a NumPy array, read-only by convention and
    possibly memory-mapped, unaligned or strided; sessions copy unaligned and strided ones before backends see them.
    Passes edit graphs in place; make a :meth:`copy` first if the old graph is still needed.
    """

    def __init__(
        self,
        name: str = "graph",
        *,
        inputs: Iterable[Value] = (),
        outputs: Iterable[Value] = (),
        nodes: Iterable[Node] = (),
        constants: Mapping[Value, Array] | None = None,
    ) -> None:
        self.name = name
        self.inputs: list[Value] = list(inputs)
        self.outputs: list[Value] = list(outputs)
        self.nodes: list[Node] = list(nodes)
        self.constants: dict[Value, Array] = dict(constants or {})
        #: Information from the reader about the model: producer, format version, file. Plain strings.
        self.metadata: dict[str, str] = {}

    # **** queries ****

    def producers(self) -> dict[Value, Node]:
        """Return the node of this graph that writes each value."""
        return {v: node for node in self.nodes for v in node.outputs if v is not None}

    def consumers(self) -> dict[Value, list[Node]]:
        """Return the nodes of this graph that read each value; a use in a sub-graph counts for its node."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(node.used()):
                found.setdefault(value, []).append(node)
        return found

    def defined(self) -> Iterator[Value]:
        """Yield the values that this graph itself defines: inputs, constants, node outputs."""
        yield from self.inputs
        yield from self.constants
        for node in self.nodes:
            for value in node.outputs:
                if value is not None:
                    yield value

    def captured(self) -> Iterator[Value]:
        """Return the values used here and defined in an enclosing graph, each once, in order of use."""
        own = set(self.defined())
        used = [v for node in self.nodes for v in node.used()]
        return (v for v in dict.fromkeys([*used, *self.outputs]) if v not in own)

    def walk(self) -> Iterator[Graph]:
        """Yield this graph and every sub-graph inside it, outermost first."""
        yield self
        for node in self.nodes:
            for subgraph in node.subgraphs:
                yield from subgraph.walk()

    def every_constant(self) -> Iterator[Array]:
        """Yield the constant arrays of this graph and of every sub-graph inside it."""
        for graph in self.walk():
            yield from graph.constants.values()

    def op_counts(self) -> dict[str, int]:
        """Return the number of nodes of each operator, including sub-graphs, most frequent first."""
        counts = Counter(node.qualified_op for graph in self.walk() for node in graph.nodes)
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    # **** editing ****

    def replace_uses(self, replacements: Mapping[Value, Value]) -> None:
        """Replace each key by its value in all uses, including sub-graphs and graph outputs."""
        if not replacements:
            return

        def resolve(value: Value) -> Value:
            while value in replacements:
                value = replacements[value]
            return value

        for graph in self.walk():
            for node in graph.nodes:
                if any(v in replacements for v in node.inputs if v is not None):
                    node.inputs = tuple(None if v is None else resolve(v) for v in node.inputs)
            graph.outputs = [resolve(v) for v in graph.outputs]

    def add_constant(self, name: str, array: Array) -> Value:
        """Add a constant to this graph, and return its value."""
        value = Value(name, TensorType.of_array(array))
        self.constants[value] = array
        return value

    def align_constants(self, folder: Path | None = None, in_memory: Iterable[Array] = ()) -> None:
        """Copy constants that are not aligned or not contiguous, so that backends need not handle strides.

        NumPy is slow on unaligned arrays, and BLAS rejects them.

        Args:
            folder: a folder for the file that large constants move to, see :func:`lite_core.ir.spill`: most backends
                pack weights, and read no more of them. By default, they stay in memory.
            in_memory: arrays that stay in memory, because others keep them there.
        """
        kept = set(map(id, in_memory))
        moved = spill([array for array in self.every_constant() if id(array) not in kept], folder) if folder else {}
        for graph in self.walk():
            for value, array in graph.constants.items():
                if id(array) in moved:
                    graph.constants[value] = moved[id(array)]
                elif not (array.flags.aligned and array.flags.c_contiguous):
                    graph.constants[value] = aligned = aligned_empty(array.shape, array.dtype)
                    np.copyto(aligned, array)
                    aligned.flags.writeable = False
                    release_pages(array)

    def copy(self) -> Graph:
        """Return a copy with new values and nodes; constant arrays are shared."""
        return self._copy({})

    def _copy(self, mapping: dict[Value, Value]) -> Graph:
        for value in self.defined():
            mapping[value] = Value(value.name, value.type)
        # A value captured from outside the copy is not in the mapping, and stays the same.
        result = Graph(
            self.name,
            inputs=[mapping[v] for v in self.inputs],
            constants={mapping[v]: array for v, array in self.constants.items()},
            nodes=[
                node.copy_with(
                    [None if v is None else mapping.get(v, v) for v in node.inputs],
                    [None if v is None else mapping[v] for v in node.outputs],
                    {k: a._copy(mapping) if isinstance(a, Graph) else a for k, a in node.attributes.items()},
                )
                for node in self.nodes
            ],
        )
        result.outputs = [mapping.get(v, v) for v in self.outputs]
        result.metadata = dict(self.metadata)
        return result

    def __str__(self) -> str:
        return format_graph(self)

    def __repr__(self) -> str:
        inputs, outputs = ({v.name: v.type for v in values} for values in (self.inputs, self.outputs))
        counts = f"{len(self.nodes)} nodes, {len(self.constants)} constants"
        return f"<Graph {self.name}: {counts}; {signature_text(inputs, outputs)}>"


def format_graph(graph: Graph, *, origins: bool = False) -> str:
    """Return the graph as text, one line per node.

    Args:
        graph: the graph; its sub-graphs are indented below their node.
        origins: add the name of each node, and its origin in the model that was read.
    """
    return "\n".join(_lines(graph, "", origins))


def _lines(graph: Graph, indent: str, origins: bool) -> list[str]:
    inputs = ", ".join(repr(v) for v in graph.inputs)
    lines = [f"{indent}graph {graph.name}({inputs}) {{"]
    lines += [f"{indent}  const %{v.name}: {format_constant(v.type, array)}" for v, array in graph.constants.items()]
    for node in graph.nodes:
        lines += _node_lines(node, indent + "  ", origins)
    lines.append(f"{indent}  return {', '.join(repr(v) for v in graph.outputs)}")
    return [*lines, f"{indent}}}"]


def _node_lines(node: Node, indent: str, origins: bool) -> list[str]:
    results = ", ".join("_" if v is None else repr(v) for v in node.outputs)
    arguments = ", ".join("_" if v is None else f"%{v.name}" for v in node.inputs)
    plain = {k: a for k, a in node.attributes.items() if not isinstance(a, Graph)}
    attributes = ", ".join(f"{k}={format_attribute(a)}" for k, a in plain.items())
    line = f"{indent}{results} = {node.qualified_op}({arguments})"
    if attributes:
        line += f" {{{attributes}}}"
    if origins:
        line += f"  # {node.name}, from {node.origin}" if node.origin else f"  # {node.name}"
    lines = [line]
    for key, attribute in node.attributes.items():
        if isinstance(attribute, Graph):
            lines.append(f"{indent}  {key} =")
            lines += _lines(attribute, indent + "    ", origins)
    return lines
