"""Softmax, LogSoftmax and Hardmax: operators that turn the elements along an axis into a distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import Shape
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, normalize_axis, same_as_first
from lite_core.ops.registry import op

Array = np.ndarray[Any, Any]
Reference = Callable[..., Array]


def _infer_along_axis(inference: Inference) -> list[Shape | None]:
    shape = inference.shape(0)
    if shape is not None:
        normalize_axis(inference.attributes["axis"], len(shape))
    return same_as_first(inference)


def _along_axis(name: str) -> Callable[[Reference], Reference]:
    return op(
        name,
        "input: T -> output: T",
        types={"T": FLOATS},
        attributes={"axis": -1},
        infer=_infer_along_axis,
    )


def _below_maximum(x: Array, axis: int) -> Array:
    """Return ``x`` minus its largest element along the axis, in float64, so that exp cannot overflow."""
    wide = x.astype(np.float64)
    return np.asarray(wide - np.max(wide, axis=axis, keepdims=True, initial=-np.inf))


@_along_axis("Softmax")
def softmax(x: Array, *, axis: int) -> Array:
    """``exp(x) / sum(exp(x))`` along ``axis``."""
    powers = np.exp(_below_maximum(x, axis))
    return np.asarray(powers / np.sum(powers, axis=axis, keepdims=True))


@_along_axis("LogSoftmax")
def log_softmax(x: Array, *, axis: int) -> Array:
    """``log(softmax(x))`` along ``axis``."""
    shifted = _below_maximum(x, axis)
    return np.asarray(shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True)))


@_along_axis("Hardmax")
def hardmax(x: Array, *, axis: int) -> Array:
    """1 for the first of the largest elements along ``axis``, 0 for the others."""
    result = np.zeros(x.shape, x.dtype)
    if x.size:
        np.put_along_axis(result, np.expand_dims(np.argmax(x, axis=axis), axis), 1, axis)
    return result
