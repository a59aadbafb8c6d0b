"""CumSum: cumulative sums along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape
from lite_core.ops.dtypes import FLOATS, INDICES
from lite_core.ops.inference import Inference, fail, normalize_axis, same_as_first
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import format_shape

Array = np.ndarray[Any, Any]


def _infer_cum_sum(inference: Inference) -> list[Shape | None]:
    shape, axis = inference.shape(0), inference.ints(1)
    if axis is not None:
        if len(axis) != 1:
            raise fail(f"axis must be a scalar, has shape {format_shape(inference.shape(1))}")
        if shape is not None:
            normalize_axis(axis[0], len(shape))
    return same_as_first(inference)


def _propagate_cum_sum(inference: Inference) -> Array | None:
    x, axis = inference.value(0), inference.ints(1)
    if x is None or axis is None or inference.dtype(0).is_half:
        return None
    return np.asarray(cum_sum(x, np.array(axis[0]), **inference.attributes))


@op(
    "CumSum",
    "x: T, axis: T2 -> y: T",
    types={"T": (DType.INT32, DType.INT64, DType.UINT32, DType.UINT64, *FLOATS), "T2": INDICES},
    attributes={"exclusive": 0, "reverse": 0},
    infer=_infer_cum_sum,
    numbers=("axis",),
    propagate=_propagate_cum_sum,
)
def cum_sum(x: Array, axis: Array, *, exclusive: int, reverse: int) -> Array:
    """The sum of the elements along ``axis`` up to each position; with ``reverse``, from each position to the end.

    With ``exclusive`` the element at the position itself is not included. Integers wrap around.
    """
    along = int(axis.reshape(-1)[0])
    ordered = np.flip(x, along) if reverse else x
    if exclusive:
        # NOTE: subtracting the element afterwards instead would lose digits, and turn Inf into NaN.
        ordered = np.roll(ordered, 1, along)
        np.moveaxis(ordered, along, 0)[:1] = 0
    # float32 is summed in float64, so that rounding errors do not accumulate
    sums = np.cumsum(ordered, along, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
    return (np.flip(sums, along) if reverse else sums).astype(x.dtype)
