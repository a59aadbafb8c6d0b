"""Operators that only move elements: views if strides can express them, else copies into views of the result."""

from __future__ import annotations

from lite_compiler.destinations import concat_parts
from lite_compiler.fusion import Group
from lite_compiler.tensors import split_dimensions
from lite_compiler.views import depth_to_space_views, slice_view, space_to_depth_views, tile_view, transpose_order
from lite_core.ir import Value
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.tensors import accepts_any

__all__ = ["concat", "depth_to_space", "expand", "slice_", "space_to_depth", "split", "tile", "transpose"]


@lowers("Transpose")
def transpose(lowering: Lowering, group: Group) -> None:
    """Lower Transpose to a view."""
    lowering.bind(group.output, lowering.tensor(group.input(0)).permute(transpose_order(group.head)))


@lowers("Expand", needs_numbers=True)
def expand(lowering: Lowering, group: Group) -> None:
    """Lower Expand to a view; repeated elements have stride 0."""
    lowering.bind(group.output, lowering.tensor(group.input(0)).expand(tuple(group.output.shape)))


@lowers("Split", needs_numbers=True)
def split(lowering: Lowering, group: Group) -> None:
    """Lower Split to views of the parts along an axis."""
    source, values, wanted = lowering.tensor(group.input(0)), group.head.outputs, group.optional(1)
    axis = group.attributes["axis"] % source.rank
    size, equal = source.shape[axis], -(-source.shape[axis] // len(values))
    sizes = [equal] * len(values) if wanted is None else integers(lowering, wanted)
    start = 0
    for value, part in zip(values, sizes):
        if value is not None:
            lowering.bind(value, source.slice(axis, start, min(part, size - start)))
        start += part


@lowers("Slice", needs_numbers=True)
def slice_(lowering: Lowering, group: Group) -> None:
    """Lower Slice to a view, whose strides may be negative."""
    starts, axes, steps = (group.optional(i) for i in (1, 3, 4))
    first, along, every = (None if v is None else integers(lowering, v) for v in (starts, axes, steps))
    lowering.bind(
        group.output, slice_view(lowering.tensor(group.input(0)), group.output.shape, first or [], along, every)
    )


def integers(lowering: Lowering, value: Value) -> list[int]:
    """Return the elements of an input that the operator is registered to need known."""
    numbers: list[int] = lowering.always_known(value).reshape(-1).tolist()
    return numbers


@lowers("Concat")
def concat(lowering: Lowering, group: Group) -> None:
    """Lower Concat: copy each input that was not written to its part of the result; see :mod:`.destinations`."""
    result = lowering.target(group.output, fits=accepts_any)
    for value, part in concat_parts(group.head, result):
        source = lowering.tensor(value)
        if not source.occupies_same_memory(part):
            lowering.copy(source, part)


@lowers("Tile", needs_numbers=True)
def tile(lowering: Lowering, group: Group) -> None:
    """Lower Tile to one copy from a view that repeats each axis by a stride of 0."""
    source = lowering.tensor(group.input(0))
    repeats = integers(lowering, group.input(1))
    target = lowering.target(group.output, fits=accepts_any)
    lowering.copy(tile_view(source, repeats), split_dimensions(target, list(zip(repeats, source.shape))))


@lowers("DepthToSpace")
def depth_to_space(lowering: Lowering, group: Group) -> None:
    """Lower DepthToSpace: channels become blocks of pixels."""
    block, mode = group.attributes["blocksize"], group.attributes["mode"]
    target = lowering.target(group.output, fits=accepts_any)
    lowering.copy(*depth_to_space_views(lowering.tensor(group.input(0)), target, block, mode))


@lowers("SpaceToDepth")
def space_to_depth(lowering: Lowering, group: Group) -> None:
    """Lower SpaceToDepth: blocks of pixels become channels."""
    target = lowering.target(group.output, fits=accepts_any)
    lowering.copy(*space_to_depth_views(lowering.tensor(group.input(0)), target, group.attributes["blocksize"]))
