"""Det: the determinant of square matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]


def _infer_det(inference: Inference) -> list[Shape | None]:
    shape = inference.shape(0)
    if shape is None:
        return [None]
    if len(shape) < 2 or differ(shape[-2], shape[-1]):
        raise fail(f"X must be square matrices, [..., n, n]; it is {format_shape(shape)}")
    return [shape[:-2]]


@op("Det", "X: T -> Y: T", types={"T": FLOATS}, infer=_infer_det)
def det(x: Array) -> Array:
    """The determinant of each matrix in the last two dimensions; 1 for a matrix without elements."""
    return np.asarray(np.linalg.det(x.astype(np.float64)))
