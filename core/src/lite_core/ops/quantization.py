"""Quantization: real numbers as small integers with a scale and a zero point, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape, TensorType
from lite_core.ops.dtypes import NARROW
from lite_core.ops.inference import Inference, fail, normalize_axis
from lite_core.ops.narrow_types import to_narrow
from lite_core.ops.registry import op, optional
from lite_core.ops.rounding import round_to
from lite_core.ops.shape_checks import differ, format_shape
from lite_core.ops.spatial import after

Array = np.ndarray[Any, Any]

_QUANTIZED = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, *NARROW)
_REAL = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


# **** the granularity: one scale for the tensor, per element of an axis, or per block ****


def _check_granularity(inference: Inference, scale_name: str, zero_point_name: str) -> None:
    """Check the shapes of scale and zero point against the input's, the axis and the block size.

    Raises:
        GraphError: the scale's shape fits none of the three granularities, or the zero point has another shape.
    """
    x, scale = inference.shape(0), inference.shape(1)
    axis, block_size = inference.attributes["axis"], inference.attributes["block_size"]
    if inference.has(2):
        zero_point = inference.shape(2)
        if (
            scale is not None
            and zero_point is not None
            and (len(scale) != len(zero_point) or any(differ(a, b) for a, b in zip(scale, zero_point)))
            and not (_is_single(scale) and _is_single(zero_point))
        ):
            raise fail(
                f"{zero_point_name} {format_shape(zero_point)} must have the shape of "
                f"{scale_name} {format_shape(scale)}"
            )
    if block_size < 0:
        raise fail(f"block_size must be at least 0, is {block_size}")
    if x is None or scale is None or _is_single(scale):
        return
    expected = _scale_shape(x, axis, block_size)
    if len(scale) != len(expected) or any(differ(a, b) for a, b in zip(scale, expected)):
        raise fail(
            f"{scale_name} must be a scalar or {format_shape(expected)} for an input {format_shape(x)}, axis "
            f"{axis} and block_size {block_size}; it is {format_shape(scale)}"
        )


def _is_single(shape: Shape) -> bool:
    return shape in ((), (1,))


def _scale_shape(x: Shape, axis: int, block_size: int) -> Shape:
    axis = _quantized_axis(axis, len(x))
    if not block_size:
        return (x[axis],)
    blocks: Dim = (x[axis] + block_size - 1) // block_size
    return (*x[:axis], blocks, *x[axis + 1 :])


def _quantized_axis(axis: int, rank: int) -> int:
    # A vector has only axis 0, so the default axis 1 does not apply to it.
    return 0 if rank == 1 and axis == 1 else normalize_axis(axis, rank)


def _spread(parameter: Array, x: Array, axis: int, block_size: int) -> Array:
    """Reshape a scale or zero point to broadcast against ``x``."""
    if parameter.ndim < 2 and parameter.size == 1:
        return parameter.reshape(())
    axis = _quantized_axis(axis, x.ndim)
    if not block_size:
        return parameter.reshape(-1, *(1 for _ in range(x.ndim - axis - 1)))
    repeated = np.repeat(parameter, block_size, axis=axis)
    return np.asarray(repeated[after(axis, slice(x.shape[axis]))])


# **** QuantizeLinear ****


def _infer_quantize(inference: Inference) -> list[TensorType]:
    _check_granularity(inference, "y_scale", "y_zero_point")
    wanted: DType | None = inference.attributes["output_dtype"]
    if inference.has(2):
        found = inference.dtype(2)
        if wanted is not None and wanted is not found:
            raise fail(f"output_dtype is {wanted}, but y_zero_point is {found}: they must be the same")
        wanted = found
    if wanted is not None and wanted not in _QUANTIZED:
        raise fail(f"output_dtype must be one of {', '.join(_QUANTIZED)}, is {wanted}")
    return [inference.type(0).with_dtype(wanted or DType.UINT8)]


@op(
    "QuantizeLinear",
    "x: T1, y_scale: TS, y_zero_point: T2? -> y: T2",
    types={"T1": (*_REAL, DType.INT32), "TS": (*_REAL, DType.INT32), "T2": _QUANTIZED},
    attributes={"axis": 1, "block_size": 0, "output_dtype": optional("dtype"), "saturate": 1},
    infer=_infer_quantize,
)
def quantize_linear(
    x: Array,
    scale: Array,
    zero_point: Array | None,
    *,
    axis: int,
    block_size: int,
    output_dtype: DType | None,
    saturate: int,
) -> Array:
    """``saturate(round(x / y_scale) + y_zero_point)``; halves are rounded to the even neighbour.

    There is one scale for the tensor (a scalar), one for each element of ``axis`` (a vector), or, with
    ``block_size``, one for each block of elements along ``axis``. The result has the element type of the
    zero point, else ``output_dtype``, else uint8. ``saturate`` applies to float8 only.
    """
    dtype = zero_point.dtype if zero_point is not None else (output_dtype or DType.UINT8).numpy
    if zero_point is None:
        zero_point = np.zeros((), dtype=dtype)
    else:
        zero_point = _spread(zero_point, x, axis, block_size)
    scaled = x / _spread(scale, x, axis, block_size)
    kind = DType.of(dtype)
    if kind.is_narrow and kind.is_floating:  # the zero points of 8-bit floats are 0
        return to_narrow(scaled, kind, bool(saturate))
    return round_to(scaled, zero_point, dtype)


# **** DequantizeLinear ****


def _infer_dequantize(inference: Inference) -> list[TensorType]:
    _check_granularity(inference, "x_scale", "x_zero_point")
    return [inference.type(0).with_dtype(inference.dtype(1))]


@op(
    "DequantizeLinear",
    "x: T1, x_scale: T2, x_zero_point: T1? -> y: T2",
    types={"T1": (*_QUANTIZED, DType.INT32), "T2": _REAL},
    attributes={"axis": 1, "block_size": 0},
    infer=_infer_dequantize,
)
def dequantize_linear(x: Array, scale: Array, zero_point: Array | None, *, axis: int, block_size: int) -> Array:
    """``(x - x_zero_point) * x_scale``, with the granularities of QuantizeLinear."""
    if DType.of(x.dtype).is_floating:  # the zero points of 8-bit floats are 0
        zero_point = None
    wide = x.astype(np.int64) if zero_point is not None else x
    difference = wide if zero_point is None else wide - _spread(zero_point, x, axis, block_size).astype(np.int64)
    return difference.astype(scale.dtype) * _spread(scale, x, axis, block_size)


# **** DynamicQuantizeLinear ****


@op(
    "DynamicQuantizeLinear",
    "x: float32 -> y: uint8, y_scale: float32, y_zero_point: uint8",
    infer=lambda inference: [inference.shape(0), (), ()][: inference.n_outputs],
)
def dynamic_quantize_linear(x: Array) -> tuple[Array, Array, Array]:
    """Quantize to uint8 by the range of the data, extended to include 0.

    ``y_scale = (max - min) / 255``, ``y_zero_point = round(-min / y_scale)``. For a tensor of zeros, for
    which ONNX's formula would divide by zero, the scale is 1.
    """
    low, high = np.minimum.reduce(x, axis=None, initial=0), np.maximum.reduce(x, axis=None, initial=0)
    scale = np.asarray((high - low) / x.dtype.type(255))
    if scale == 0:
        scale = np.ones_like(scale)
    zero_point = round_to(-low / scale, np.zeros((), dtype=np.uint8), np.dtype(np.uint8))
    return round_to(x / scale, zero_point, np.dtype(np.uint8)), scale, zero_point
