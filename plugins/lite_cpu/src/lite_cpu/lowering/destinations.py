"""Copy elision for Concat and views: values are written directly into their final destination."""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import prod

from lite_compiler import destinations
from lite_core.ir import Node, Value
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.tensors import Tensor

__all__ = ["reserve_destinations"]

#: Operators whose kernels write images channels last.
_CHANNELS_LAST = frozenset({"AveragePool", "Conv", "ConvTranspose", "DepthToSpace", "LpPool", "MaxPool", "Resize"})

#: Operators that keep the layout of their input, as element-wise ones do.
_ANY_LAYOUT = frozenset({"BatchNormalization", "Concat", "Pad", "Slice", "Softmax", "Split"})

#: Operators that cannot write into a destination because they emit no step: the result is a view or a known value.
_WITHOUT_STEP = frozenset({"ConstantOfShape", "Expand", "EyeLike", "Shape", "Size", "Slice", "Split"})


def reserve_destinations(lowering: Lowering, elementwise: Set[Node]) -> None:
    """Reserve destinations before the graph is lowered; see :func:`lite_compiler.destinations.reserve_destinations`.

    The result of a Concat is channels last if at least half of its elements come from operators that write this layout.
    """
    nodes = lowering.graph.nodes
    producers = {value: node.op for node in nodes for value in node.outputs if value is not None}
    images = _images(nodes, elementwise) if any(n.qualified_op == "Concat" for n in nodes) else frozenset()

    def result_of(node: Node) -> Tensor | None:
        value = node.outputs[0]
        assert value is not None
        if value in lowering.caches or all(lowering.known(v) is not None for v in node.used()):
            return None
        result = lowering.target(value, channels_last_order(len(value.shape)) if _is_image(node, images) else None)
        lowering.reserve(value, result)
        return result

    def reserve(value: Value, destination: Tensor) -> bool:
        producer = producers.get(value)
        if producer is None or producer in _WITHOUT_STEP or lowering.is_reserved(value):
            return False
        lowering.reserve(value, destination)
        return True

    destinations.reserve_destinations(lowering.graph, lowering.outputs, result_of=result_of, reserve=reserve)


def _images(nodes: Sequence[Node], elementwise: Set[Node]) -> Set[Value | None]:
    """Return the values that are written channels last."""
    images: set[Value | None] = set()
    for node in nodes:
        keeps_layout = node.op in _ANY_LAYOUT or node in elementwise
        if node.op in _CHANNELS_LAST or (keeps_layout and not images.isdisjoint(node.inputs)):
            images.update(v for v in node.outputs if v is not None)
    return images


def _is_image(node: Node, images: Set[Value | None]) -> bool:
    """Return True if at least half of a Concat's elements are written channels last."""
    elements = {v: prod(v.shape) for v in node.used()}
    value = node.outputs[0]
    is_large = 2 * sum(n for v, n in elements.items() if v in images) >= sum(elements.values())
    return value is not None and len(value.shape) >= 3 and is_large
