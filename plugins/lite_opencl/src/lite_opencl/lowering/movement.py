"""Operators that put elements elsewhere: views where strides can say it, copies into views of the result where not."""

from __future__ import annotations

from lite_compiler.destinations import parts_of
from lite_compiler.fusion import Group
from lite_compiler.tensors import split_dimensions
from lite_compiler.views import between_depth_and_space, between_space_and_depth, repeated, sliced, transposition
from lite_core.ir import Value
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.tensors import anywhere

__all__ = ["concat", "depth_to_space", "expand", "slice_", "space_to_depth", "split", "tile", "transpose"]


@lowers("Transpose")
def transpose(lowering: Lowering, group: Group) -> None:
    """Dimensions in another order: only the strides change."""
    lowering.bind(group.output, lowering.tensor(group.input(0)).permute(transposition(group.head)))


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
    starts, axes, steps = (group.optional(i) for i in (1, 3, 4))
    first, along, every = (None if v is None else integers(lowering, v) for v in (starts, axes, steps))
    lowering.bind(group.output, sliced(lowering.tensor(group.input(0)), group.output.shape, first or [], along, every))


def integers(lowering: Lowering, value: Value) -> list[int]:
    """The elements of an input that is registered to be known."""
    numbers: list[int] = lowering.number(value).reshape(-1).tolist()
    return numbers


@lowers("Concat")
def concat(lowering: Lowering, group: Group) -> None:
    """A copy of each input into its part of the result, unless it was made there; see :mod:`.places`."""
    result = lowering.target(group.output, fits=anywhere)
    for value, part in parts_of(group.head, result):
        made = lowering.tensor(value)
        if not made.occupies_same_memory(part):
            lowering.copy(made, part)


@lowers("Tile", known=(1,))
def tile(lowering: Lowering, group: Group) -> None:
    """One copy from a view in which each axis is repeated by a stride of 0."""
    source = lowering.tensor(group.input(0))
    repeats = integers(lowering, group.input(1))
    target = lowering.target(group.output, fits=anywhere)
    lowering.copy(repeated(source, repeats), split_dimensions(target, list(zip(repeats, source.shape))))


@lowers("DepthToSpace")
def depth_to_space(lowering: Lowering, group: Group) -> None:
    """Channels to blocks of pixels."""
    block, mode = group.attributes["blocksize"], group.attributes["mode"]
    target = lowering.target(group.output, fits=anywhere)
    lowering.copy(*between_depth_and_space(lowering.tensor(group.input(0)), target, block, mode))


@lowers("SpaceToDepth")
def space_to_depth(lowering: Lowering, group: Group) -> None:
    """Blocks of pixels to channels."""
    target = lowering.target(group.output, fits=anywhere)
    lowering.copy(*between_space_and_depth(lowering.tensor(group.input(0)), target, group.attributes["blocksize"]))
