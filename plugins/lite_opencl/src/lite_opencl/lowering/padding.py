"""Operators that pad or crop a tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import Value
from lite_opencl.lowering.axis_gather import OUTSIDE, gather_axes
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.copying import same_bits
from lite_opencl.lowering.movement import integers
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.tables import upload_table
from lite_opencl.tensors import Tensor

__all__ = ["center_crop_pad", "pad"]

Array = np.ndarray[Any, Any]


@lowers("Pad", needs_numbers=True)
def pad(lowering: Lowering, group: Group) -> None:
    """Lower Pad: each element is an element of the input, or the fill value."""
    source, given, axes = lowering.tensor(group.input(0)), group.optional(2), group.optional(3)
    pads = integers(lowering, group.input(1))
    padded_axes = list(range(source.rank)) if axes is None else [a % source.rank for a in integers(lowering, axes)]
    begins, ends = [0] * source.rank, [0] * source.rank
    for i, axis in enumerate(padded_axes):
        begins[axis], ends[axis] = pads[i], pads[i + len(padded_axes)]
    mode = group.attributes["mode"]
    indices = [_padded_indices(*sizes, mode) for sizes in zip(source.shape, begins, ends)]
    fill_value = _zero(lowering, group.input(0)) if given is None else lowering.tensor(given)
    _gather(lowering, group, source, indices, fill_value)


@lowers("CenterCropPad", needs_numbers=True)
def center_crop_pad(lowering: Lowering, group: Group) -> None:
    """Lower CenterCropPad: crop to the middle of the input, or pad it with zeros on both sides."""
    source = lowering.tensor(group.input(0))
    indices = []
    for old, new in zip(source.shape, group.output.shape):
        # NOTE: an odd element is cropped from the end (a negative begin is rounded towards 0), or padded there.
        begin = (new - old) // 2 if new >= old else -((old - new) // 2)
        indices.append(_padded_indices(old, begin, new - old - begin, "constant"))
    _gather(lowering, group, source, indices, _zero(lowering, group.input(0)))


def _gather(lowering: Lowering, group: Group, source: Tensor, indices: list[Array], fill_value: Tensor) -> None:
    result, source, fill_value = same_bits(lowering.target(group.output), source, fill_value)
    gather_axes(lowering, source, result, indices, fill_value)


def _padded_indices(size: int, begin: int, end: int, mode: str) -> Array:
    """Return the index in an axis for each element of the padded axis. The axis is cropped before it is padded."""
    if mode == "constant":
        indices = np.arange(-begin, size + end)
        return np.where((indices >= 0) & (indices < size), indices, OUTSIDE)
    first, kept = max(-begin, 0), size + min(begin, 0) + min(end, 0)
    indices = np.arange(-max(begin, 0), kept + max(end, 0))
    if mode == "edge":
        indices = np.clip(indices, 0, kept - 1)
    elif mode == "wrap":
        indices = indices % kept if kept else indices
    else:
        period = max(2 * (kept - 1), 1)  # forward and backward; the first and last element are not repeated
        indices = indices % period
        indices = np.where(indices < kept, indices, period - indices)
    return first + indices


def _zero(lowering: Lowering, value: Value) -> Tensor:
    """Return one zero of a value's element type."""
    return upload_table(lowering, np.zeros(1, value.dtype.numpy))
