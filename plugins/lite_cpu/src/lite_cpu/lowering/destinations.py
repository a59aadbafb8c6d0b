"""Concat and views without copies: values are written where they will lie in the end."""

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

#: Operators that keep the layout of what they read, as element-wise ones do.
_ANY_LAYOUT = frozenset({"BatchNormalization", "Concat", "Pad", "Slice", "Softmax", "Split"})

#: Operators without a step that could write elsewhere: their result is a view, or known before the run.
_WITHOUT_STEP = frozenset({"ConstantOfShape", "Expand", "EyeLike", "Shape", "Size", "Slice", "Split"})


def reserve_destinations(lowering: Lowering, elementwise: Set[Node]) -> None:
    """Decide before anything is lowered where steps write; see :func:`lite_compiler.destinations.reserve_destinations`.

    The result of a Concat is laid out channels last where at least half of it comes from operators that write so.
    """
    nodes = lowering.graph.nodes
    makers = {value: node.op for node in nodes for value in node.outputs if value is not None}
    images = _images(nodes, elementwise) if any(n.qualified_op == "Concat" for n in nodes) else frozenset()

    def result_of(node: Node) -> Tensor | None:
        value = node.outputs[0]
        assert value is not None
        if all(lowering.known(v) is not None for v in node.used()):
            return None
        result = lowering.target(value, channels_last_order(len(value.shape)) if _is_image(node, images) else None)
        lowering.reserve(value, result)
        return result

    def reserve(value: Value, place: Tensor) -> bool:
        maker = makers.get(value)
        if maker is None or maker in _WITHOUT_STEP or lowering.is_reserved(value):
            return False
        lowering.reserve(value, place)
        return True

    destinations.reserve_destinations(lowering.graph, lowering.outputs, result_of=result_of, reserve=reserve)


def _images(nodes: Sequence[Node], elementwise: Set[Node]) -> Set[Value | None]:
    """The values that are written channels last."""
    images: set[Value | None] = set()
    for node in nodes:
        keeps = node.op in _ANY_LAYOUT or node in elementwise
        if node.op in _CHANNELS_LAST or (keeps and not images.isdisjoint(node.inputs)):
            images.update(v for v in node.outputs if v is not None)
    return images


def _is_image(node: Node, images: Set[Value | None]) -> bool:
    """Whether at least half of what a Concat joins is."""
    elements = {v: prod(v.shape) for v in node.used()}
    value = node.outputs[0]
    is_large = 2 * sum(n for v, n in elements.items() if v in images) >= sum(elements.values())
    return value is not None and len(value.shape) >= 3 and is_large
