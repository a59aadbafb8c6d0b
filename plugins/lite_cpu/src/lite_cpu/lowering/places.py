"""Concat and views without copies: values are written where they will lie in the end."""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import prod

from lite_core.ir import Node, Value
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.shape import attributes_of, transposition
from lite_cpu.tensors import Tensor

__all__ = ["reserve_places"]

#: Operators whose kernels write images channels last.
_CHANNELS_LAST = frozenset({"AveragePool", "Conv", "ConvTranspose", "DepthToSpace", "LpPool", "MaxPool", "Resize"})

#: Operators that keep the layout of what they read, as element-wise ones do.
_ANY_LAYOUT = frozenset({"BatchNormalization", "Concat", "Pad", "Slice", "Softmax", "Split"})

#: Operators whose result is all of their input, seen differently: what is reserved for it is so for the input.
_SEEN_DIFFERENTLY = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})

#: Operators without a step that could write elsewhere: their result is a view, or known before the run.
_WITHOUT_STEP = frozenset({"ConstantOfShape", "Expand", "EyeLike", "Shape", "Size", "Slice", "Split"})


def reserve_places(lowering: Lowering, elementwise: Set[Node]) -> None:
    """Decide before anything is lowered where steps write what a Concat joins, or what leaves the graph as a view.

    1. The result of a Concat is laid out channels last where at least half of it comes from operators that write so.
    2. An input of a Concat gets its slice of the result if a step makes it, unless another Concat (or the same one)
       has it already; what has no slice is copied when the Concat runs. Other readers of the input read the slice.
    3. The input may be made by another Concat, which then builds its result in the slice.
    4. What is reserved for a view of a value (Reshape, Transpose) is reserved for the value, where strides can say it;
       so is an output of the graph.
    """
    nodes = lowering.graph.nodes
    producers = {v: n for n in nodes for v in n.outputs if v is not None}
    for value, output in lowering.outputs.items():
        if value in producers and producers[value].op in _SEEN_DIFFERENTLY:
            _reserve(lowering, value, output, producers)
    concats = [node for node in nodes if node.op == "Concat" and not node.domain]
    if concats:
        images = _images(nodes, elementwise)
        # Last first: where a Concat is part of another one, the outer one decides.
        for node in reversed(concats):
            _reserve_inputs(lowering, node, producers, images)


def _images(nodes: Sequence[Node], elementwise: Set[Node]) -> Set[Value | None]:
    """The values that are written channels last."""
    images: set[Value | None] = set()
    for node in nodes:
        keeps = node.op in _ANY_LAYOUT or node in elementwise
        if node.op in _CHANNELS_LAST or (keeps and not images.isdisjoint(node.inputs)):
            images.update(v for v in node.outputs if v is not None)
    return images


def _reserve_inputs(lowering: Lowering, node: Node, producers: dict[Value, Node], images: Set[Value | None]) -> None:
    value = node.outputs[0]
    assert value is not None
    inputs = [v for v in node.inputs if v is not None]
    if all(lowering.known(v) is not None for v in inputs):
        return
    rank = len(value.shape)
    elements = {v: prod(v.shape) for v in inputs}
    is_image = rank >= 3 and 2 * sum(n for v, n in elements.items() if v in images) >= sum(elements.values())
    order = channels_last_order(rank) if is_image else None
    target = lowering.target(value, order)
    lowering.reserve(value, target)
    axis = attributes_of(node)["axis"] % rank
    start = 0
    for part in inputs:
        _reserve(lowering, part, target.slice(axis, start, part.shape[axis]), producers)
        start += part.shape[axis]


def _reserve(lowering: Lowering, value: Value, place: Tensor, producers: dict[Value, Node]) -> None:
    """Have ``value`` written into ``place``, if a step writes it and it has no place yet."""
    node = producers.get(value)
    while node is not None and node.op in _SEEN_DIFFERENTLY and not node.domain:
        source = node.inputs[0]
        assert source is not None
        if node.op == "Transpose":
            order = transposition(node)
            seen: Tensor | None = place.permute([order.index(a) for a in range(len(order))])
        else:
            seen = place.reshape(source.shape)
        if seen is None:
            return
        value, place, node = source, seen, producers.get(source)
    if node is not None and node.op not in _WITHOUT_STEP and not lowering.is_reserved(value):
        lowering.reserve(value, place)
