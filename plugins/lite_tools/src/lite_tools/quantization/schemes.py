"""How the elements of one weight are stored in fewer bits, and when they had better not be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from lite_core.ir import DType

__all__ = ["SCHEMES", "Store", "Stored", "Unsuitable"]

Array = np.ndarray[Any, Any]

_LARGEST_INT8 = 127
# Rounding a normal number to float16 costs at most 2^-11 of it; more comes from numbers below 2^-14.
_MOST_ERROR_OF_FLOAT16 = 1e-3
# Weights of a bell curve lose 1 %. Far more means that a few large ones leave no steps for the others.
_MOST_ERROR_OF_INT8 = 0.1


@dataclass(frozen=True, slots=True)
class Stored:
    """A weight in fewer bits.

    Attributes:
        array: the stored elements.
        scales: what int8 elements are multiplied by, one for each index of the channel axis or a single one.
        restored: the elements as the graph will compute them, in the weight's element type.
    """

    array: Array
    scales: Array | None
    restored: Array


@dataclass(frozen=True, slots=True)
class Unsuitable:
    """Why a weight stays as it is."""

    reason: str


#: Stores a weight, given the axis of its output channels (None where it has no channels).
Store = Callable[[Array, "int | None"], "Stored | Unsuitable"]


def _store_int8(weight: Array, axis: int | None) -> Stored | Unsuitable:
    """Symmetric, ``scale = max |w| / 127`` for each channel; a channel of zeros has the scale 1."""
    dtype = DType.of(weight)
    if dtype is DType.FLOAT64:
        return Unsuitable("DequantizeLinear gives no float64")
    wide = weight.astype(np.float32)
    if not np.isfinite(wide).all():
        return Unsuitable("some elements are not finite")
    others = None if axis is None else tuple(d for d in range(weight.ndim) if d != axis)
    largest = np.abs(wide).max(axis=others, keepdims=True)
    # The scales are rounded to the weight's element type first: elements are divided by what they'll be multiplied by.
    scales = (largest / np.float32(_LARGEST_INT8)).astype(dtype.numpy)
    scales[scales == 0] = 1
    stored = np.clip(np.rint(wide / scales.astype(np.float32)), -_LARGEST_INT8, _LARGEST_INT8).astype(np.int8)
    restored = stored.astype(dtype.numpy) * scales
    error = relative_rms_error(weight, restored)
    if not error <= _MOST_ERROR_OF_INT8:
        return Unsuitable(f"int8 would change it by {error:.1%}: a few elements are far larger than the others")
    return Stored(stored, scales.reshape(() if axis is None else -1), restored)


def _store_float16(weight: Array, axis: int | None) -> Stored | Unsuitable:
    """Rounded to float16; infinite and NaN elements stay what they are."""
    with np.errstate(over="ignore"):
        stored = weight.astype(np.float16)
    if (np.isinf(stored) & np.isfinite(weight)).any():
        largest = float(np.abs(weight[np.isfinite(weight)]).max())
        return Unsuitable(f"elements up to {largest:.3g} are beyond float16, which ends at {np.finfo(np.float16).max}")
    restored = stored.astype(weight.dtype)
    error = relative_rms_error(weight, restored)
    if not error <= _MOST_ERROR_OF_FLOAT16:
        return Unsuitable(f"float16 would change it by {error:.1%}: its elements are too close to zero")
    return Stored(stored, None, restored)


def relative_rms_error(weight: Array, restored: Array) -> float:
    """``sqrt(sum (w' - w)^2 / sum w^2)`` over the elements that are finite, 0 for a weight of zeros."""
    finite = np.isfinite(weight)
    before = weight[finite].astype(np.float64)
    power = float(np.square(before).sum())
    return float(np.sqrt(np.square(restored[finite] - before).sum() / power)) if power else 0.0


#: What ``scheme`` may be: ``float16``, half precision; ``int8``, a byte and a scale for each output channel.
SCHEMES: Mapping[str, Store] = MappingProxyType({"float16": _store_float16, "int8": _store_int8})
