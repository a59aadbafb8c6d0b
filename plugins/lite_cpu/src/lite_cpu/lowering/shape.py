"""Lowering of operators that only change the shape or the order of elements: views if strides can express them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.views import depth_to_space_views, slice_view, space_to_depth_views, transpose_order
from lite_core.errors import ExecutionError
from lite_core.ir import Node, Value
from lite_core.ops import attributes_of
from lite_core.ops.evaluate import evaluate_node
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.registry import lowers
from lite_cpu.tensors import Tensor

__all__ = [
    "input_of",
    "known_ints",
    "required_input",
    "reshaped",
]


def input_of(node: Node, index: int) -> Value | None:
    """Return an input, or None if it is left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def required_input(node: Node, index: int = 0) -> Value:
    """Return a required input."""
    value = input_of(node, index)
    assert value is not None
    return value


def known_ints(lowering: Lowering, node: Node, index: int) -> list[int] | None:
    """Return the integers of an input that must be known before the run; None if it is left out."""
    value = input_of(node, index)
    if value is None:
        return None
    array = lowering.known(value)
    if array is None:
        raise ExecutionError(f"{node.describe()}: input {index} ({value.name!r}) must be known before the run")
    numbers: list[int] = array.reshape(-1).tolist()
    return numbers


@lowers("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def reshape(lowering: Lowering, group: Group) -> None:
    """Bind the input, reshaped."""
    x, y = required_input(group.head), group.output
    lowering.bind(y, reshaped(lowering, lowering.tensor(x), y.shape))


def reshaped(lowering: Lowering, tensor: Tensor, shape: Sequence[int]) -> Tensor:
    """Return a tensor reshaped: a view, or a copy if strides cannot express it.

    The copy of a channels-last image is channels last.
    """
    view = tensor.reshape(shape)
    if view is not None:
        return view
    rank = len(shape)
    for order in (channels_last_order(rank) if looks_channels_last(tensor) and rank >= 3 else None, None):
        copy = lowering.allocate(shape, tensor.dtype, order)
        destination = copy.reshape(tensor.shape)
        if destination is not None:
            lowering.copy(tensor, destination)
            return copy
    raise AssertionError("a dense tensor has a view of any shape")


def looks_channels_last(tensor: Tensor) -> bool:
    """Return True if the layout is probably channels last: the last dimension does not have the smallest stride."""
    return tensor.rank >= 3 and tensor.shape[-1] > 1 and abs(tensor.strides[-1]) > min(map(abs, tensor.strides[1:]))


@lowers("Transpose")
def transpose(lowering: Lowering, group: Group) -> None:
    """Bind a view with the dimensions in another order."""
    x = required_input(group.head)
    lowering.bind(group.output, lowering.tensor(x).permute(transpose_order(group.head)))


@lowers("Expand")
def expand(lowering: Lowering, group: Group) -> None:
    """Bind a view whose repeated dimensions have stride 0."""
    x = required_input(group.head)
    lowering.bind(group.output, lowering.tensor(x).expand(group.output.shape))


@lowers("Split")
def split(lowering: Lowering, group: Group) -> None:
    """Bind the parts along an axis as views."""
    node = group.head
    x = required_input(node)
    source = lowering.tensor(x)
    axis = attributes_of(node)["axis"] % source.rank
    start = 0
    for value in node.outputs:
        assert value is not None
        size = value.shape[axis]
        lowering.bind(value, source.slice(axis, start, size))
        start += size


@lowers("Slice")
def slice_(lowering: Lowering, group: Group) -> None:
    """Bind a strided view; strides may be negative."""
    node = group.head
    x, y = required_input(node), group.output
    starts = known_ints(lowering, node, 1) or []
    axes = known_ints(lowering, node, 3)
    steps = known_ints(lowering, node, 4)
    lowering.bind(y, slice_view(lowering.tensor(x), y.shape, starts, axes, steps))


@lowers("Shape", "Size", "EyeLike")
def from_type(lowering: Lowering, group: Group) -> None:
    """Compute results that depend only on the type of the input, and are therefore known before the run."""
    node = group.head
    x, y = required_input(node), group.output
    zeros = np.broadcast_to(np.zeros((), x.dtype.numpy), x.shape)
    lowering.set_known(y, evaluate_node(node, [zeros])[0])


@lowers("DepthToSpace")
def depth_to_space(lowering: Lowering, group: Group) -> None:
    """Copy channels to blocks of pixels."""
    block, mode = group.attributes["blocksize"], group.attributes["mode"]
    target = lowering.target(group.output, channels_last_order(4))
    lowering.copy(*depth_to_space_views(lowering.tensor(group.input(0)), target, block, mode))


@lowers("SpaceToDepth")
def space_to_depth(lowering: Lowering, group: Group) -> None:
    """Copy blocks of pixels to channels."""
    target = lowering.target(group.output, channels_last_order(4))
    lowering.copy(*space_to_depth_views(lowering.tensor(group.input(0)), target, group.attributes["blocksize"]))
