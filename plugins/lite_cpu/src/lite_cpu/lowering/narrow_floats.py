"""Rewriting of a partition's graph to 16-bit floats, on processors that multiply them, if the session allows it.

Values between products become bfloat16, or float16: those that a product computes, directly or through other operators,
and that another product reads, directly or through other operators. What comes before the first product and after the
last one stays float32: the arithmetic of shapes, coordinates and scores would lose too many digits, and is cheap. So do
values that only normalizations and additions read, such as the residual stream of a transformer: a normalization
amplifies what rounding loses, and its own result is what the next product reads.

Operators compute in float32 in either case. An element-wise operator reads any mixture of both types, so an epilogue
rounds only what it stores. So do normalizations and depthwise convolutions; most other operators read and write one
type, and conversions are inserted around them. The smaller range of float16 has rules of its own: :mod:`.half_range`.
"""

from __future__ import annotations

from collections.abc import Set
from math import prod

import numpy as np

from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_cpu.lowering.depthwise import is_depthwise_node
from lite_cpu.lowering.elementwise import is_elementwise
from lite_cpu.lowering.half_products import is_product_of_halves
from lite_cpu.lowering.half_range import LARGEST, clipped_values, enlarges, only_passes
from lite_cpu.lowering.pairs import is_product_of_pairs
from lite_cpu.machine import Machine
from lite_cpu.precisions import MAX_ROWS

__all__ = ["narrow_floats", "narrow_type"]

F16, F32, BF16 = DType.FLOAT16, DType.FLOAT32, DType.BFLOAT16

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


def narrow_type(machine: Machine, precision: str) -> DType | None:
    """Return the 16-bit float that a machine multiplies if a session has a precision; None if there is none."""
    if precision == BF16 and machine.bf16_dot:
        return BF16
    return F16 if precision == F16 and machine.half_products else None


def narrow_floats(graph: Graph, machine: Machine, narrow: DType = BF16) -> Graph:
    """Return a copy of a graph in which products compute in 16-bit floats; the same graph if it has no such products.

    Args:
        graph: a graph whose shapes are all known.
        machine: a processor that multiplies the floats.
        narrow: bfloat16 or float16.
    """
    if not any(_reads_floats(machine, node, graph, narrow) for node in graph.nodes):
        return graph
    graph = graph.copy()
    products = {node for node in graph.nodes if _reads_floats(machine, node, graph, narrow)}
    between = _values_between(graph, products)
    clipped: Set[Value] = frozenset()
    if narrow is F16:
        between = _stored_values(graph, between, products)
        clipped = clipped_values(graph, between)
    for value in between:
        value.type = value.type.with_dtype(narrow)
    _Conversions(graph, products, narrow, clipped).insert()
    return graph


def _reads_floats(machine: Machine, node: Node, graph: Graph, narrow: DType) -> bool:
    """Return True if a node is a product of float32 that the machine can compute in narrow floats."""
    x = node.inputs[0] if node.inputs else None
    is_product = is_product_of_halves if narrow is F16 else is_product_of_pairs
    if x is None or x.dtype is not F32 or not is_product(machine, node, graph.constants):
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


def _stored_values(graph: Graph, between: Set[Value], products: Set[Node]) -> set[Value]:
    """Return the values that become float16.

    They are stored, computed by operators that do not enlarge them, and read by no convolution of float32.
    """
    readers: dict[Value, list[Node]] = {}
    for node in graph.nodes:
        for read in node.used():
            readers.setdefault(read, []).append(node)
    stored: set[Value] = set()
    for node in graph.nodes:
        for value in node.outputs:
            if value is None or value not in between or enlarges(node):
                continue
            reading = readers.get(value, [])
            if len(reading) == 1 and only_passes(value, reading[0], graph):
                continue
            if all(n.op != "Conv" or n in products or is_depthwise_node(n, graph.constants) for n in reading):
                stored.add(value)
    return stored


class _Conversions:
    """Conversions around the nodes of a graph that do not read or write the types that its values have.

    Args:
        graph: the graph.
        products: the nodes whose operands become narrow floats.
        narrow: the type of narrow floats.
        clipped: values that are clipped to the range of float16 before they are rounded.
    """

    def __init__(self, graph: Graph, products: Set[Node], narrow: DType, clipped: Set[Value]) -> None:
        self._graph, self._products, self._narrow, self._clipped = graph, products, narrow, clipped
        self._nodes: list[Node] = []
        self._converted: dict[Value, Value] = {}
        self._bounds: list[Value] = []
        self._names = {value.name for scope in graph.walk() for value in scope.defined()}

    def insert(self) -> None:
        """Insert the conversions into the graph."""
        for node in self._graph.nodes:
            clips = self._clips(node)
            if node in self._products:
                self._convert_operands(node)
                self._nodes.append(node)
            elif self._reads_any_floats(node) or not self._mixes_types(node):
                self._nodes.append(node)
            else:
                self._compute_in_float32(node)
            self._nodes += clips
        self._graph.nodes = self._nodes

    def _reads_any_floats(self, node: Node) -> bool:
        """Return True if the kernel of a node reads and writes any mixture of floats."""
        is_depthwise = is_depthwise_node(node, self._graph.constants)
        return is_elementwise(node) or node.op in _OF_ANY_FLOATS or is_depthwise

    def _mixes_types(self, node: Node) -> bool:
        values = [*node.inputs, *node.outputs]
        found = {v.dtype for v in values if v is not None and v not in self._graph.constants}
        return found >= {F32, self._narrow}

    def _convert_operands(self, product: Node) -> None:
        operands = _operands(product, self._graph)
        product.inputs = tuple([self._as(self._narrow, v) if v in operands else v for v in product.inputs])

    def _compute_in_float32(self, node: Node) -> None:
        node.inputs = tuple([v if v is None or v.dtype is not self._narrow else self._as(F32, v) for v in node.inputs])
        narrow = [v for v in node.outputs if v is not None and v.dtype is self._narrow]
        wide = {v: self._new(v, F32) for v in narrow}
        node.outputs = tuple([wide.get(v, v) if v is not None else None for v in node.outputs])
        self._nodes.append(node)
        self._nodes += [self._cast(wide[v], v) for v in narrow]

    def _clips(self, node: Node) -> list[Node]:
        """Return nodes that clip the results of a node, which become float32."""
        clipped = [value for value in node.outputs if value is not None and value in self._clipped]
        wide = {value: self._new(value, F32) for value in clipped}
        node.outputs = tuple([v if v is None else wide.get(v, v) for v in node.outputs])
        return [Node("Clip", [wide[v], *self._range()], [v], {}, name=v.name) for v in clipped]

    def _range(self) -> list[Value]:
        """Return the least and the largest float16 as constants of float32."""
        for name, bound in (("lowest", -LARGEST), ("largest", LARGEST))[len(self._bounds) :]:
            value = self._new(Value(name, TensorType(F32, ())), F32)
            self._graph.constants[value] = np.array(bound, np.float32)
            self._bounds.append(value)
        return self._bounds

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
