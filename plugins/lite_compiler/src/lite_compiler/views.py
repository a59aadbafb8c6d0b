"""What operators that only move elements are in terms of strides: the views that they are, or are copied between."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from lite_compiler.tensors import StridedTensor, split_dimensions
from lite_core import ops
from lite_core.ir import Node

__all__ = [
    "between_depth_and_space",
    "between_space_and_depth",
    "evenly_spaced",
    "gathered",
    "repeated",
    "sliced",
    "transposition",
]

Array = np.ndarray[Any, Any]
T = TypeVar("T", bound=StridedTensor[Any])


def transposition(node: Node) -> list[int]:
    """Which dimension of its input each dimension of a Transpose's result is."""
    x = node.inputs[0]
    assert x is not None
    rank = len(x.shape)
    order = ops.get(node).attributes_of(node)["perm"]
    return list(reversed(range(rank))) if order is None else [a % rank for a in order]


def sliced(
    tensor: T, shape: Sequence[int], starts: Sequence[int], axes: Iterable[int] | None, steps: Sequence[int] | None
) -> T:
    """The view that a Slice is: every so many elements of some axes, maybe backwards.

    Args:
        tensor: what is sliced.
        shape: of the result.
        starts: the first element along each of the axes; counted from the end if negative, and may be out of range.
        axes: which they are; the first ones if left out.
        steps: how far apart elements are; all are taken if left out.
    """
    for axis, start, step in zip(range(len(starts)) if axes is None else axes, starts, steps or [1] * len(starts)):
        axis %= tensor.rank
        size = tensor.shape[axis]
        first = start + size if start < 0 else start
        first = min(max(first, 0), size if step > 0 else size - 1)
        tensor = tensor.slice(axis, first, shape[axis], step)
    return tensor


def gathered(tensor: T, axis: int, indices: Array) -> T | None:
    """The view that a Gather is, where its indices are evenly spaced; else None."""
    spaced = evenly_spaced(indices, tensor.shape[axis])
    if spaced is None:
        return None
    first, step = spaced
    stride = tensor.strides[axis]
    shape = (*tensor.shape[:axis], *indices.shape, *tensor.shape[axis + 1 :])
    spread = [step * stride * prod(indices.shape[i + 1 :]) for i in range(indices.ndim)]
    strides = (*tensor.strides[:axis], *spread, *tensor.strides[axis + 1 :])
    return tensor.view(shape, strides, tensor.offset + first * stride)


def evenly_spaced(indices: Array, size: int) -> tuple[int, int] | None:
    """First index and step, where the indices of an axis of ``size`` can be written so."""
    if not indices.size:
        return None
    flat = indices.reshape(-1).astype(np.int64)
    flat = np.where(flat < 0, flat + size, flat)
    steps = np.diff(flat)
    if steps.size and (steps != steps[0]).any():
        return None
    return int(flat[0]), int(steps[0]) if steps.size else 1


def repeated(tensor: T, repeats: Sequence[int]) -> T:
    """Before each dimension one that repeats it so many times, by a stride of 0: what a Tile copies."""
    shape = [n for pair in zip(repeats, tensor.shape) for n in pair]
    return tensor.view(shape, [s for stride in tensor.strides for s in (0, stride)])


def between_depth_and_space(source: T, target: T, block: int, mode: str) -> tuple[T, T]:
    """Views of one shape: what a DepthToSpace copies from the first to the second.

    Args:
        source: images with many channels.
        target: images with many pixels.
        block: rows, and columns, of the pixels that become of one.
        mode: ``DCR`` or ``CRD``, the order in which its channels become them.
    """
    n, channels, h, w = source.shape
    depth = channels // (block * block)
    if mode == "DCR":
        blocks = split_dimensions(source, [(n,), (block, block, depth), (h,), (w,)]).permute((0, 3, 4, 1, 5, 2))
    else:
        blocks = split_dimensions(source, [(n,), (depth, block, block), (h,), (w,)]).permute((0, 1, 4, 2, 5, 3))
    return blocks, split_dimensions(target, [(n,), (depth,), (h, block), (w, block)])


def between_space_and_depth(source: T, target: T, block: int) -> tuple[T, T]:
    """Views of one shape: what a SpaceToDepth copies from the first to the second; see the other direction."""
    n, channels, height, width = source.shape
    h, w = height // block, width // block
    blocks = split_dimensions(source, [(n,), (channels,), (h, block), (w, block)]).permute((0, 3, 5, 1, 2, 4))
    return blocks, split_dimensions(target, [(n,), (block, block, channels), (h,), (w,)])
