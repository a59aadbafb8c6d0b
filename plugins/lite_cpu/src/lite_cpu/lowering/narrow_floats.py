"""Rewriting of a partition's graph to bfloat16, on processors that multiply it, if the session allows it.

Values between products become bfloat16: those that a product computes, directly or through other operators, and that
another product reads, directly or through other operators. What comes before the first product and after the last one
stays float32: the arithmetic of shapes, coordinates and scores would lose too many digits, and is cheap. So do values
that only normalizations and additions read, such as the residual stream of a transformer: a normalization amplifies
what rounding loses, and its own result is what the next product reads.

Operators compute in float32 in either case. An element-wise operator reads any mixture of both types, so an epilogue
rounds only what it stores. So do normalizations; most other operators read and write one type, and conversions are
inserted around them.
"""

from __future__ import annotations

from math import prod

from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_cpu.lowering.elementwise import is_elementwise
from lite_cpu.lowering.pairs import is_product_of_pairs
from lite_cpu.machine import Machine
from lite_cpu.precisions import MAX_ROWS

__all__ = ["narrow_floats"]

F32, BF16 = DType.FLOAT32, DType.BFLOAT16

#: Operators that amplify the rounding of their input: what only they read stays float32.
_NORMALIZATIONS = frozenset(
    {"GroupNormalization", "InstanceNormalization", "LayerNormalization", "LpNormalization", "RMSNormalization"}
)

#: Operators whose kernels read and write any mixture of floats.
_OF_ANY_FLOATS = frozenset(
    {
        "BatchNormalization", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "GroupNormalization",
        "InstanceNormalization", "LayerNormalization", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization",
        "Softmax",
    }
)  # fmt: skip


def narrow_floats(graph: Graph, machine: Machine) -> Graph:
    """Return a copy of a graph in which products compute in bfloat16; the same graph if it has no such products.

    Args:
        graph: a graph whose shapes are all known.
        machine: a processor that multiplies bfloat16.
    """
    if not any(_reads_floats(machine, node, graph) for node in graph.nodes):
        return graph
    graph = graph.copy()
    products = {node for node in graph.nodes if _reads_floats(machine, node, graph)}
    for value in _values_between(graph, products):
        value.type = value.type.with_dtype(BF16)
    _Conversions(graph, products).insert()
    return graph


def _reads_floats(machine: Machine, node: Node, graph: Graph) -> bool:
    """Return True if a node is a product of float32 that the machine can compute in bfloat16."""
    x = node.inputs[0] if node.inputs else None
    if x is None or x.dtype is not F32 or not is_product_of_pairs(machine, node, graph.constants):
        return False
    # With so few rows, only the weights are rounded: see narrow_weights.
    return node.op == "Conv" or node.inputs[1] not in graph.constants or prod(x.shape[:-1]) > MAX_ROWS


def _operands(node: Node, graph: Graph) -> list[Value]:
    """Return the operands of a product that are multiplied, without constants."""
    return [v for v in node.inputs[:2] if v is not None and v not in graph.constants]


def _values_between(graph: Graph, products: set[Node]) -> set[Value]:
    """Return the values of float32 between products, by the rules of this module."""
    after: set[Value] = set()
    for node in graph.nodes:
        if node in products or (not node.subgraphs and any(v in after for v in node.inputs)):
            after.update(v for v in node.outputs if v is not None and v.dtype is F32)
    before: set[Value] = set()
    for node in reversed(graph.nodes):
        if node in products:
            before.update(_operands(node, graph))
        elif node.subgraphs:
            continue
        elif node.op not in _NORMALIZATIONS and any(v in before for v in node.outputs):
            before.update(v for v in node.inputs if v is not None and v.dtype is F32)
    captured = {value for node in graph.nodes if node.subgraphs for value in node.used()}
    return (after & before) - captured - set(graph.outputs)


class _Conversions:
    """Conversions around the nodes of a graph that do not read or write the types that its values have."""

    def __init__(self, graph: Graph, products: set[Node]) -> None:
        self._graph, self._products = graph, products
        self._nodes: list[Node] = []
        self._converted: dict[Value, Value] = {}
        self._names = {value.name for scope in graph.walk() for value in scope.defined()}

    def insert(self) -> None:
        """Insert the conversions into the graph."""
        for node in self._graph.nodes:
            if node in self._products:
                self._convert_operands(node)
                self._nodes.append(node)
            elif is_elementwise(node) or node.op in _OF_ANY_FLOATS or not self._mixes_types(node):
                self._nodes.append(node)
            else:
                self._compute_in_float32(node)
        self._graph.nodes = self._nodes

    def _mixes_types(self, node: Node) -> bool:
        values = [*node.inputs, *node.outputs]
        found = {v.dtype for v in values if v is not None and v not in self._graph.constants}
        return found >= {F32, BF16}

    def _convert_operands(self, product: Node) -> None:
        operands = _operands(product, self._graph)
        product.inputs = tuple([self._as(BF16, v) if v in operands else v for v in product.inputs])

    def _compute_in_float32(self, node: Node) -> None:
        node.inputs = tuple([v if v is None or v.dtype is not BF16 else self._as(F32, v) for v in node.inputs])
        narrow = [v for v in node.outputs if v is not None and v.dtype is BF16]
        wide = {v: self._new(v, F32) for v in narrow}
        node.outputs = tuple([wide.get(v, v) if v is not None else None for v in node.outputs])
        self._nodes.append(node)
        self._nodes += [self._cast(wide[v], v) for v in narrow]

    def _as(self, dtype: DType, value: Value | None) -> Value | None:
        """Return a value in another type, converted once."""
        if value is None or value.dtype is dtype:
            return value
        if value not in self._converted:
            self._converted[value] = self._new(value, dtype)
            self._nodes.append(self._cast(value, self._converted[value]))
        return self._converted[value]

    def _new(self, value: Value, dtype: DType) -> Value:
        name, number = f"{value.name}/{dtype}", 1
        while name in self._names:
            name, number = f"{value.name}/{dtype}_{number}", number + 1
        self._names.add(name)
        return Value(name, TensorType(dtype, value.type.shape))

    @staticmethod
    def _cast(source: Value, target: Value) -> Node:
        return Node("Cast", [source], [target], {"to": target.dtype}, name=target.name)
