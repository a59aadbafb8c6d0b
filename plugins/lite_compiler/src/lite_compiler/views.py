"""Operators that only move elements, expressed by strides: the view that they return, or the views to copy between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from lite_compiler.tensors import StridedTensor, split_dimensions
from lite_core import ops
from lite_core.ir import Node

__all__ = [
    "depth_to_space_views",
    "even_spacing",
    "gather_view",
    "slice_view",
    "space_to_depth_views",
    "tile_view",
    "transpose_order",
]

Array = np.ndarray[Any, Any]
T = TypeVar("T", bound=StridedTensor[Any])


def transpose_order(node: Node) -> list[int]:
    """Return the permutation of a Transpose: for each dimension of the result, the dimension of the input."""
    x = node.inputs[0]
    assert x is not None
    rank = len(x.shape)
    order = ops.attributes_of(node)["perm"]
    return list(reversed(range(rank))) if order is None else [a % rank for a in order]


def slice_view(
    tensor: T, shape: Sequence[int], starts: Sequence[int], axes: Iterable[int] | None, steps: Sequence[int] | None
) -> T:
    """Return the result of a Slice as a view.

    Args:
        tensor: the input.
        shape: the shape of the result.
        starts: the first element along each of the axes; counted from the end if negative, and possibly out of range.
        axes: the sliced axes; the first ones if None.
        steps: the step along each of the axes, possibly negative; 1 if None.
    """
    for axis, start, step in zip(range(len(starts)) if axes is None else axes, starts, steps or [1] * len(starts)):
        axis %= tensor.rank
        size = tensor.shape[axis]
        first = start + size if start < 0 else start
        first = min(max(first, 0), size if step > 0 else size - 1)
        tensor = tensor.slice(axis, first, shape[axis], step)
    return tensor


def gather_view(tensor: T, axis: int, indices: Array) -> T | None:
    """Return the result of a Gather as a view if its indices are evenly spaced, else None."""
    spaced = even_spacing(indices, tensor.shape[axis])
    if spaced is None:
        return None
    first, step = spaced
    stride = tensor.strides[axis]
    shape = (*tensor.shape[:axis], *indices.shape, *tensor.shape[axis + 1 :])
    spread = [step * stride * prod(indices.shape[i + 1 :]) for i in range(indices.ndim)]
    strides = (*tensor.strides[:axis], *spread, *tensor.strides[axis + 1 :])
    return tensor.view(shape, strides, tensor.offset + first * stride)


def even_spacing(indices: Array, size: int) -> tuple[int, int] | None:
    """Return the first index and the step if the indices are evenly spaced, else None.

    Args:
        indices: indices along an axis; negative ones count from the end.
        size: the size of the axis.
    """
    if not indices.size:
        return None
    flat = indices.reshape(-1).astype(np.int64)
    flat = np.where(flat < 0, flat + size, flat)
    steps = np.diff(flat)
    if steps.size and (steps != steps[0]).any():
        return None
    return int(flat[0]), int(steps[0]) if steps.size else 1


def tile_view(tensor: T, repeats: Sequence[int]) -> T:
    """Return the view that a Tile copies: each dimension is preceded by one of stride 0 that repeats it."""
    shape = [n for pair in zip(repeats, tensor.shape) for n in pair]
    return tensor.view(shape, [s for stride in tensor.strides for s in (0, stride)])


def depth_to_space_views(source: T, target: T, block: int, mode: str) -> tuple[T, T]:
    """Return two views of one shape; a DepthToSpace copies the first to the second.

    Args:
        source: the input images.
        target: the output images, with fewer channels and more pixels.
        block: the block size: one input pixel becomes ``block`` x ``block`` output pixels.
        mode: ``DCR`` (depth, column, row) or ``CRD``, the order in which channels are distributed over the block.
    """
    n, channels, h, w = source.shape
    depth = channels // (block * block)
    if mode == "DCR":
        blocks = split_dimensions(source, [(n,), (block, block, depth), (h,), (w,)]).permute((0, 3, 4, 1, 5, 2))
    else:
        blocks = split_dimensions(source, [(n,), (depth, block, block), (h,), (w,)]).permute((0, 1, 4, 2, 5, 3))
    return blocks, split_dimensions(target, [(n,), (depth,), (h, block), (w, block)])


def space_to_depth_views(source: T, target: T, block: int) -> tuple[T, T]:
    """Return two views of one shape; a SpaceToDepth copies the first to the second. Compare depth_to_space_views."""
    n, channels, height, width = source.shape
    h, w = height // block, width // block
    blocks = split_dimensions(source, [(n,), (channels,), (h, block), (w, block)]).permute((0, 3, 5, 1, 2, 4))
    return blocks, split_dimensions(target, [(n,), (block, block, channels), (h,), (w,)])
