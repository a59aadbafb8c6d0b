"""Operators that put borders around a tensor, or crop it."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import Value
from lite_opencl.lowering.axis_gather import OUTSIDE, pick
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.copying import same_bits
from lite_opencl.lowering.movement import integers
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.tables import upload_table
from lite_opencl.tensors import Tensor

__all__ = ["center_crop_pad", "pad"]

Array = np.ndarray[Any, Any]


@lowers("Pad", known=(1, 3))
def pad(lowering: Lowering, group: Group) -> None:
    """Every element is one of the input's, or the filler."""
    source, fill_value, axes = lowering.tensor(group.input(0)), group.optional(2), group.optional(3)
    pads = integers(lowering, group.input(1))
    places = list(range(source.rank)) if axes is None else [a % source.rank for a in integers(lowering, axes)]
    begins, ends = [0] * source.rank, [0] * source.rank
    for i, axis in enumerate(places):
        begins[axis], ends[axis] = pads[i], pads[i + len(places)]
    mode = group.attributes["mode"]
    indices = [_padded(*sizes, mode) for sizes in zip(source.shape, begins, ends)]
    filler = _zero(lowering, group.input(0)) if fill_value is None else lowering.tensor(fill_value)
    _pick(lowering, group, source, indices, filler)


@lowers("CenterCropPad", known=(1,))
def center_crop_pad(lowering: Lowering, group: Group) -> None:
    """The middle of the input, or the input in the middle of zeros."""
    source = lowering.tensor(group.input(0))
    indices = []
    for old, new in zip(source.shape, group.output.shape):
        # NOTE: an odd rest goes to the end both ways: cropped (a negative begin is rounded towards 0) and padded.
        begin = (new - old) // 2 if new >= old else -((old - new) // 2)
        indices.append(_padded(old, begin, new - old - begin, "constant"))
    _pick(lowering, group, source, indices, _zero(lowering, group.input(0)))


def _pick(lowering: Lowering, group: Group, source: Tensor, indices: list[Array], filler: Tensor) -> None:
    result, source, filler = same_bits(lowering.target(group.output), source, filler)
    pick(lowering, source, result, indices, filler)


def _padded(size: int, begin: int, end: int, mode: str) -> Array:
    """Which element of an axis stands at each place of the padded one; cropping comes first."""
    if mode == "constant":
        places = np.arange(-begin, size + end)
        return np.where((places >= 0) & (places < size), places, OUTSIDE)
    first, kept = max(-begin, 0), size + min(begin, 0) + min(end, 0)
    places = np.arange(-max(begin, 0), kept + max(end, 0))
    if mode == "edge":
        places = np.clip(places, 0, kept - 1)
    elif mode == "wrap":
        places = places % kept if kept else places
    else:
        period = max(2 * (kept - 1), 1)  # there and back, without standing twice on either end
        places = places % period
        places = np.where(places < kept, places, period - places)
    return first + places


def _zero(lowering: Lowering, value: Value) -> Tensor:
    """One zero of a value's element type."""
    return upload_table(lowering, np.zeros(1, value.dtype.numpy))
