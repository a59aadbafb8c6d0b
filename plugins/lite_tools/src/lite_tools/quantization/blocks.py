"""Matrices as int4 with a scale for each block of the depth, the form that products read directly."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_tools.quantization.schemes import Stored, Unsuitable, relative_rms_error

__all__ = ["BLOCK", "store_int4"]

Array = np.ndarray[Any, Any]

#: Elements of a block if nothing else is asked for. With blocks of 128 a file is a fifth smaller, and the error of
#: normally distributed weights is a fifth larger.
BLOCK = 32
_LOWEST, _HIGHEST = -8, 7
#: The element of the largest magnitude of a block becomes one of these numbers; the first may be the lowest of int4.
_LARGEST = (-8.0, -8.8, -9.6, 7.0)
#: Normally distributed weights have an error of 8 % in blocks of 32.
_MAX_ERROR = 0.25
#: Elements that are quantized at a time, so that temporary arrays stay small.
_AT_ONCE = 1 << 20


def store_int4(weight: Array, axis: int, block: int) -> Stored | Unsuitable:
    """Quantize a matrix to int4, without zero points.

    Each block has the scale with the smallest sum of squared errors of a few candidates, in which its largest element
    is exact, or limited to make the others more exact. Scales are rounded to float16 where it can hold them, because
    kernels then read half as many bytes for them.

    Args:
        weight: a matrix.
        axis: the axis of the depth.
        block: elements of a block; the last one may have fewer.
    """
    dtype = DType.of(weight)
    if dtype is DType.FLOAT64:
        return Unsuitable("DequantizeLinear does not support float64")
    if not np.isfinite(weight).all():
        return Unsuitable("some elements are not finite")
    columns = np.moveaxis(weight, axis, 1)
    count, depth = columns.shape
    codes = np.empty((count, depth), np.int8)
    scales = np.empty((count, -(-depth // block)), np.float32)
    restored = np.empty((count, depth), np.float32)
    step = max(1, _AT_ONCE // depth)
    for start in range(0, count, step):
        part = slice(start, start + step)
        blocks = np.zeros((*scales[part].shape, block), np.float32)
        blocks.reshape(len(blocks), -1)[:, :depth] = columns[part]
        found, factors = _quantized(blocks, dtype)
        codes[part] = found.reshape(len(blocks), -1)[:, :depth]
        restored[part] = (found * factors).reshape(len(blocks), -1)[:, :depth]
        scales[part] = factors[..., 0]
    error = relative_rms_error(columns, restored)
    if not error <= _MAX_ERROR:
        return Unsuitable(f"int4 would have an error of {error:.1%}: a few elements are far larger than the others")

    def in_order(array: Array, dtype: DType) -> Array:
        return np.ascontiguousarray(np.moveaxis(array, 1, axis).astype(dtype.numpy))

    return Stored(in_order(codes, DType.INT4), in_order(scales, dtype), in_order(restored, dtype), axis, block)


def _quantized(blocks: Array, dtype: DType) -> tuple[Array, Array]:
    """Return the integers of blocks [..., n], and the scales [..., 1]."""
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1)[..., None], -1)
    best = np.full(largest.shape, np.inf, np.float32)
    scales, codes = np.ones_like(largest), np.zeros_like(blocks)
    for number in _LARGEST:
        candidate = _rounded(largest / np.float32(number), dtype)
        found = np.clip(np.rint(blocks / candidate), _LOWEST, _HIGHEST)
        error = np.square(found * candidate - blocks).sum(-1, keepdims=True)
        is_better = error < best
        best, scales = np.where(is_better, error, best), np.where(is_better, candidate, scales)
        codes = np.where(is_better, found, codes)
    return codes, scales


def _rounded(scales: Array, dtype: DType) -> Array:
    """Return scales as numbers of float16, or of the weight's type where it is less exact or holds more; never 0."""
    with np.errstate(over="ignore", under="ignore"):
        halves = scales.astype(np.float16).astype(np.float32)
    fits = np.isfinite(halves) & (np.abs(halves) >= np.finfo(np.float16).tiny)
    chosen = np.where(fits, halves, scales).astype(dtype.numpy).astype(np.float32)
    return np.where(chosen == 0, np.float32(1), chosen)
