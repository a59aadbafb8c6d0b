"""Precision levels: what a backend may round when it computes a float32 model in fewer bits on request.

A level says which numbers may be rounded once to which grid. Everything else is computed in float32:

=================== ==================== ======= ======================================== ===============
level               operands of products sums    tensors between the nodes of a partition other operators
=================== ==================== ======= ======================================== ===============
float32             float32              float32 float32                                  float32
float16             float16              float32 may be stored in float16                 float32
bfloat16            bfloat16             float32 may be stored in bfloat16                float32
float16-sums        float16              float16 may be stored in float16                 float32
float16-everywhere  float16              float32 may be stored in float16                 float16
bfloat16-everywhere bfloat16             float32 may be stored in bfloat16                bfloat16
int8                int8, see below      exact   float32                                  float32
int8-per-tensor     int8, see below      exact   float32                                  float32
=================== ==================== ======= ======================================== ===============

``int8``: a scale for each run-time operand, found from its largest magnitude when it is used, and one for each output
channel of constant weights; ``int8-per-tensor``: one scale for all weights of an operator. A grid with a zero point
over the operand's range is finer than the symmetric one, so both are right.

Rounding is to nearest: the error of an element is at most half the distance of its two neighbours on the grid, its
*half step*. Flushing subnormal numbers to zero is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lite_conformance.judge.compare import Array
from lite_conformance.judge.tolerances import epsilon, smallest_normal
from lite_core.errors import InputError
from lite_core.ir import DType

__all__ = ["FLOAT32", "LEVELS", "Precision", "find_precision", "half_steps", "round_at_random", "round_to_nearest"]

_LARGEST = {DType.FLOAT16: 65504.0, DType.BFLOAT16: 3.3895313892515355e38}
#: Largest integer of a symmetric grid of 8 bits.
_LARGEST_BYTE = 127


@dataclass(frozen=True, slots=True)
class Precision:
    """A precision level.

    Attributes:
        name: its name, for ``--precision``.
        operands: the type that operands of products may be rounded to.
        sums: the type of sums of products; exact integers for int8.
        everywhere: True if operators other than products may compute in the type as well.
        per_channel: True if int8 weights have a scale for each output channel.
    """

    name: str
    operands: DType = DType.FLOAT32
    sums: DType = DType.FLOAT32
    everywhere: bool = False
    per_channel: bool = True

    @property
    def is_low(self) -> bool:
        """True for every level but float32."""
        return self.operands is not DType.FLOAT32

    @property
    def stores(self) -> bool:
        """True if tensors between nodes may be stored in the type of the operands."""
        return self.operands.is_half


FLOAT32 = Precision("float32")
LEVELS = {
    level.name: level
    for level in (
        FLOAT32,
        Precision("float16", DType.FLOAT16),
        Precision("bfloat16", DType.BFLOAT16),
        Precision("int8", DType.INT8),
        Precision("int8-per-tensor", DType.INT8, per_channel=False),
        Precision("float16-sums", DType.FLOAT16, DType.FLOAT16),
        Precision("float16-everywhere", DType.FLOAT16, everywhere=True),
        Precision("bfloat16-everywhere", DType.BFLOAT16, everywhere=True),
    )
}


def find_precision(name: str) -> Precision:
    """Return the level of a name.

    Raises:
        InputError: there is no such level.
    """
    if name not in LEVELS:
        raise InputError(f"precision must be one of {', '.join(LEVELS)}, is {name!r}")
    return LEVELS[name]


def half_steps(array: Array, dtype: DType, axis: int | None = None) -> Array:
    """Return the largest error of rounding each element to nearest: half the distance of its neighbours on the grid.

    Args:
        array: the elements, float64.
        dtype: float16, bfloat16 or int8.
        axis: for int8, the axis whose positions have separate scales; None for one scale.

    Returns:
        An array of the same shape. Infinity where the grid does not reach: beyond the range of float16, and in int8
        for all elements that share a scale with an infinity or a NaN.
    """
    size = np.abs(array)
    if dtype is DType.INT8:
        return np.broadcast_to(_int8_scale(array, axis) / 2, array.shape)
    steps = np.ldexp(epsilon(dtype) / 2, np.frexp(np.where(np.isfinite(size), size, 1.0))[1] - 1)
    steps = np.where(size < smallest_normal(dtype), size, steps)  # flushed to zero
    beyond = np.isfinite(size) & ~np.isfinite(_nearest(size, dtype))
    return np.where(beyond, np.inf, np.where(np.isfinite(size), steps, 0.0))


def round_to_nearest(array: Array, dtype: DType, axis: int | None = None) -> Array:
    """Round elements to nearest on the grid of a type; see :func:`half_steps` for the arguments."""
    if dtype is not DType.INT8:
        return _nearest(array, dtype)
    scale = _int8_scale(array, axis)
    with np.errstate(invalid="ignore"):
        rounded: Array = np.rint(array / np.where(scale > 0, scale, 1.0)) * scale
    return rounded


def round_at_random(array: Array, dtype: DType, random: np.random.Generator, axis: int | None = None) -> Array:
    """Round each element to one of its two neighbours on the grid, the nearer one with the higher probability.

    The expected error is zero, elements on the grid keep their value, and the mean square of the error is twice that
    of rounding to nearest. See :func:`half_steps` for the arguments.
    """
    with np.errstate(all="ignore"):
        step = 2 * half_steps(array, dtype, axis)
        if dtype.is_half:  # gradual underflow, the finest that backends have
            step = np.where(np.abs(array) < smallest_normal(dtype), smallest_normal(dtype) * epsilon(dtype), step)
        scaled = array / np.where(step > 0, step, 1.0)
        rounded = np.floor(scaled + random.random(array.shape, np.float32)) * step
    return np.where(np.isfinite(step) & (step > 0), rounded, np.where(step > 0, _nearest(array, dtype), array))


def _nearest(array: Array, dtype: DType) -> Array:
    if dtype is DType.INT8:
        return np.full(array.shape, np.nan)
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(dtype.numpy).astype(array.dtype)


def _int8_scale(array: Array, axis: int | None) -> Array:
    """Return the scale of each element's grid, as an array that broadcasts; infinity where an element is not finite."""
    size = np.abs(np.asarray(array, np.float64))
    if not size.size:
        return np.zeros((1,) * size.ndim)
    others = None if axis is None else tuple(i for i in range(size.ndim) if i != axis % size.ndim)
    largest = size.max(axis=others, keepdims=True)
    return np.where(np.isfinite(largest), largest, np.inf) / _LARGEST_BYTE
