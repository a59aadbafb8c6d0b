"""Operators that put elements elsewhere: views where strides can say it, copies into views of the result where not."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from lite_compiler.fusion import Group
from lite_core.ir import Value
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.places import part_of
from lite_opencl.lowering.registry import lowers
from lite_opencl.tensors import Tensor, anywhere

__all__ = ["concat", "depth_to_space", "expand", "slice_", "space_to_depth", "split", "tile", "transpose"]


@lowers("Transpose")
def transpose(lowering: Lowering, group: Group) -> None:
    """Dimensions in another order: only the strides change."""
    source = lowering.tensor(group.input(0))
    order = group.attributes["perm"]
    axes = reversed(range(source.rank)) if order is None else (a % source.rank for a in order)
    lowering.bind(group.output, source.permute(tuple(axes)))


@lowers("Expand", known=(1,))
def expand(lowering: Lowering, group: Group) -> None:
    """Repeated elements have stride 0."""
    lowering.bind(group.output, lowering.tensor(group.input(0)).expand(tuple(group.output.shape)))


@lowers("Split", known=(1,))
def split(lowering: Lowering, group: Group) -> None:
    """The parts along an axis."""
    source, values, wanted = lowering.tensor(group.input(0)), group.head.outputs, group.optional(1)
    axis = group.attributes["axis"] % source.rank
    size, equal = source.shape[axis], -(-source.shape[axis] // len(values))
    sizes = [equal] * len(values) if wanted is None else integers(lowering, wanted)
    start = 0
    for value, part in zip(values, sizes):
        if value is not None:
            lowering.bind(value, source.slice(axis, start, min(part, size - start)))
        start += part


@lowers("Slice", known=(1, 2, 3, 4))
def slice_(lowering: Lowering, group: Group) -> None:
    """Every so many elements of some axes, maybe backwards: a stride, maybe negative."""
    view, shape = lowering.tensor(group.input(0)), tuple(group.output.shape)
    starts = integers(lowering, group.input(1))
    axes, steps = group.optional(3), group.optional(4)
    places = range(len(starts)) if axes is None else integers(lowering, axes)
    strides = [1] * len(starts) if steps is None else integers(lowering, steps)
    for place, start, step in zip(places, starts, strides):
        axis = place % view.rank
        size = view.shape[axis]
        first = start + size if start < 0 else start
        first = min(max(first, 0), size if step > 0 else size - 1)
        view = view.slice(axis, first, shape[axis], step)
    lowering.bind(group.output, view)


def integers(lowering: Lowering, value: Value) -> list[int]:
    """The elements of an input that is registered to be known."""
    numbers: list[int] = lowering.number(value).reshape(-1).tolist()
    return numbers


@lowers("Concat")
def concat(lowering: Lowering, group: Group) -> None:
    """A copy of each input into its part of the result, unless it was made there; see :mod:`.places`."""
    result = lowering.target(group.output, fits=anywhere)
    axis = group.attributes["axis"] % len(group.output.shape)
    start = 0
    for value in group.head.used():
        made, part = lowering.tensor(value), part_of(result, tuple(value.shape), axis, start)
        if not made.is_same_place(part):
            lowering.copy(made, part)
        start += value.shape[axis]


@lowers("Tile", known=(1,))
def tile(lowering: Lowering, group: Group) -> None:
    """One copy from a view in which each axis is repeated by a stride of 0."""
    source = lowering.tensor(group.input(0))
    repeats = integers(lowering, group.input(1))
    shape = [n for pair in zip(repeats, source.shape) for n in pair]
    strides = [s for stride in source.strides for s in (0, stride)]
    target = lowering.target(group.output, fits=anywhere)
    result = split_dimensions(target, list(zip(repeats, source.shape)))
    lowering.copy(source.view(shape, strides), result)


@lowers("DepthToSpace")
def depth_to_space(lowering: Lowering, group: Group) -> None:
    """Channels to blocks of pixels."""
    source, attributes = lowering.tensor(group.input(0)), group.attributes
    n, c, h, w = source.shape
    b = attributes["blocksize"]
    depth = c // (b * b)
    if attributes["mode"] == "DCR":
        parts, order = [(n,), (b, b, depth), (h,), (w,)], (0, 3, 4, 1, 5, 2)
    else:
        parts, order = [(n,), (depth, b, b), (h,), (w,)], (0, 1, 4, 2, 5, 3)
    target = lowering.target(group.output, fits=anywhere)
    result = split_dimensions(target, [(n,), (depth,), (h, b), (w, b)])
    lowering.copy(split_dimensions(source, parts).permute(order), result)


@lowers("SpaceToDepth")
def space_to_depth(lowering: Lowering, group: Group) -> None:
    """Blocks of pixels to channels."""
    source = lowering.tensor(group.input(0))
    n, c, height, width = source.shape
    b = group.attributes["blocksize"]
    h, w = height // b, width // b
    blocks = split_dimensions(source, [(n,), (c,), (h, b), (w, b)]).permute((0, 3, 5, 1, 2, 4))
    target = lowering.target(group.output, fits=anywhere)
    lowering.copy(blocks, split_dimensions(target, [(n,), (b, b, c), (h,), (w,)]))


def split_dimensions(tensor: Tensor, parts: Sequence[Sequence[int]]) -> Tensor:
    """A view with each dimension split into some, whose product it is."""
    shape = [n for part in parts for n in part]
    strides = [stride * prod(part[i + 1 :]) for part, stride in zip(parts, tensor.strides) for i in range(len(part))]
    return tensor.view(shape, strides)
