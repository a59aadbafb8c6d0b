"""RMS normalization: division by the root mean square, which decoders use instead of layer normalization."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, broadcast_shapes, fail, normalize_axis
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]


def _infer_rms_normalization(inference: Inference) -> list[Shape | None]:
    x, scale = inference.shape(0), inference.shape(1)
    if inference.attributes["stash_type"] != 1:
        raise fail(f"stash_type must be 1 (float32), is {inference.attributes['stash_type']}")
    if x is not None:
        normalize_axis(inference.attributes["axis"], len(x))
        wide = broadcast_shapes(scale, x)
        if wide is not None and (len(wide) != len(x) or any(differ(a, b) for a, b in zip(wide, x))):
            raise fail(f"scale {format_shape(scale)} must broadcast to the input's shape {format_shape(x)}")
    return [x]


@op(
    "RMSNormalization",
    "X: T, scale: V -> Y: V",
    types={"T": FLOATS, "V": FLOATS},
    attributes={"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    infer=_infer_rms_normalization,
)
def rms_normalization(x: Array, scale: Array, *, axis: int, epsilon: float, stash_type: int) -> Array:
    """``X / sqrt(mean(X ** 2) + epsilon) * scale``, with the mean over ``axis`` and all later axes.

    It is an operator of ONNX's opset 23 (https://arxiv.org/abs/1910.07467), computed in at least float32.
    """
    axes = tuple(range(axis % x.ndim, x.ndim))
    count = np.prod([x.shape[a] for a in axes], dtype=x.dtype)
    mean = np.add.reduce(np.square(x), axis=axes, keepdims=True) / count
    return np.asarray(x / np.sqrt(mean + x.dtype.type(epsilon)) * scale)
