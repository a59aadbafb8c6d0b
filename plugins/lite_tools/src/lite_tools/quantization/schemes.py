"""Quantization schemes: storage of a weight in fewer bits, and reasons not to do it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from lite_core.ir import DType

__all__ = ["SCHEMES", "Store", "Stored", "Unsuitable", "relative_rms_error", "stored_bytes"]

Array = np.ndarray[Any, Any]

_LARGEST_INT8 = 127
# Rounding normal numbers to float16 has a relative error of at most 2^-11; numbers below 2^-14 have larger errors.
_MAX_ERROR_FLOAT16 = 1e-3
# Normally distributed weights have an error of 1 %. A far larger error means that outliers make the steps too coarse.
_MAX_ERROR_INT8 = 0.1


@dataclass(frozen=True, slots=True)
class Stored:
    """A weight in fewer bits.

    Attributes:
        array: the stored elements.
        scales: the scales of integers, one for each index of the channel axis or a single one, unless there are blocks.
        restored: the elements that the graph will compute, in the weight's element type.
        axis: the axis that blocks are along.
        block: elements of a block, each of which has a scale for each index of the other axes; 0 without blocks.
    """

    array: Array
    scales: Array | None
    restored: Array
    axis: int = 0
    block: int = 0

    @property
    def bytes(self) -> int:
        """The size in a file."""
        return stored_bytes(self.array) + (0 if self.scales is None else self.scales.nbytes)


@dataclass(frozen=True, slots=True)
class Unsuitable:
    """The reason why a weight is not quantized."""

    reason: str


#: A function that stores a weight, given the axis of its output channels (None if it has no channels).
Store = Callable[[Array, "int | None"], "Stored | Unsuitable"]


def _store_int8(weight: Array, axis: int | None) -> Stored | Unsuitable:
    """Quantize symmetrically to int8, with ``scale = max |w| / 127`` for each channel, or 1 for a channel of zeros."""
    dtype = DType.of(weight)
    if dtype is DType.FLOAT64:
        return Unsuitable("DequantizeLinear does not support float64")
    wide = weight.astype(np.float32)
    if not np.isfinite(wide).all():
        return Unsuitable("some elements are not finite")
    others = None if axis is None else tuple(d for d in range(weight.ndim) if d != axis)
    largest = np.abs(wide).max(axis=others, keepdims=True)
    # Scales are rounded to the weight's element type first, so that division and multiplication use the same scale.
    scales = (largest / np.float32(_LARGEST_INT8)).astype(dtype.numpy)
    scales[scales == 0] = 1
    stored = np.clip(np.rint(wide / scales.astype(np.float32)), -_LARGEST_INT8, _LARGEST_INT8).astype(np.int8)
    restored = stored.astype(dtype.numpy) * scales
    error = relative_rms_error(weight, restored)
    if not error <= _MAX_ERROR_INT8:
        return Unsuitable(f"int8 would have an error of {error:.1%}: a few elements are far larger than the others")
    return Stored(stored, scales.reshape(() if axis is None else -1), restored)


def _store_float16(weight: Array, axis: int | None) -> Stored | Unsuitable:
    """Round to float16; infinite and NaN elements are kept."""
    with np.errstate(over="ignore"):
        stored = weight.astype(np.float16)
    if (np.isinf(stored) & np.isfinite(weight)).any():
        largest = float(np.abs(weight[np.isfinite(weight)]).max())
        return Unsuitable(f"elements up to {largest:.3g} exceed the largest float16 number, {np.finfo(np.float16).max}")
    restored = stored.astype(weight.dtype)
    error = relative_rms_error(weight, restored)
    if not error <= _MAX_ERROR_FLOAT16:
        return Unsuitable(f"float16 would have an error of {error:.1%}: its elements are too close to zero")
    return Stored(stored, None, restored)


def stored_bytes(array: Array) -> int:
    """Return the size of an array in a model file, which holds two 4-bit integers in a byte."""
    return -(-array.size // 2) if DType.of(array) in (DType.INT4, DType.UINT4) else array.nbytes


def relative_rms_error(weight: Array, restored: Array) -> float:
    """Return ``sqrt(sum (w' - w)^2 / sum w^2)`` over the finite elements; 0 for a weight of zeros."""
    finite = np.isfinite(weight)
    before = weight[finite].astype(np.float64)
    power = float(np.square(before).sum())
    return float(np.sqrt(np.square(restored[finite] - before).sum() / power)) if power else 0.0


#: The schemes: ``float16``, half precision; ``int8``, a byte for each element and a scale for each output channel;
#: ``int4``, the same for all weights but the matrices of products, see :mod:`lite_tools.quantization.blocks`.
SCHEMES: Mapping[str, Store] = MappingProxyType({"float16": _store_float16, "int8": _store_int8, "int4": _store_int8})
