"""Window functions of signal processing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import DType, SymbolicDim, TensorType, fresh_dim
from lite_core.ops.dtypes import INDICES, NUMERIC
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op
from lite_core.ops.shape_checks import format_shape

Array = np.ndarray[Any, Any]
#: Computes the values of a window from angles in [0, 2 pi].
WindowFunction = Callable[[Array], Array]


def _infer_window(inference: Inference) -> list[TensorType]:
    size, shape = inference.dims(0), inference.shape(0)
    if shape is not None and (len(shape) > 1 or (size is not None and len(size) != 1)):
        raise fail(f"size must be a scalar, has shape {format_shape(shape)}")
    if size is not None and not isinstance(size[0], SymbolicDim) and size[0] < 0:
        raise fail(f"size must not be negative, is {size[0]}")
    length = fresh_dim("window") if size is None else size[0]
    return [TensorType(inference.attributes["output_datatype"], (length,))]


def _window(name: str) -> Callable[[WindowFunction], WindowFunction]:
    def declare(window: WindowFunction) -> WindowFunction:
        def reference(size: Array, *, output_datatype: DType, periodic: int) -> Array:
            length = int(size.reshape(-1)[0])
            # The formula of a symmetric window divides by zero for one element; that element is the window's peak.
            if length == 1 and not periodic:
                return np.ones(1)
            angles = 2 * np.pi * np.arange(length) / (length if periodic else length - 1)
            return window(angles)

        reference.__doc__ = window.__doc__
        op(
            name,
            "size: T1 -> output: T2",
            types={"T1": INDICES, "T2": NUMERIC},
            attributes={"output_datatype": DType.FLOAT32, "periodic": 1},
            infer=_infer_window,
            numbers=("size",),
        )(reference)
        return window

    return declare


# Coefficients as in ONNX; F. J. Harris, "On the Use of Windows for Harmonic Analysis with the Discrete
# Fourier Transform", Proceedings of the IEEE 66 (1978), describes the three windows.


@_window("HannWindow")
def hann_window(angles: Array) -> Array:
    """``0.5 - 0.5 cos(2 pi n / N)``, N being ``size``, or ``size - 1`` when not ``periodic``."""
    return np.asarray(0.5 - 0.5 * np.cos(angles))


@_window("HammingWindow")
def hamming_window(angles: Array) -> Array:
    """``25/46 - 21/46 cos(2 pi n / N)``, N being ``size``, or ``size - 1`` when not ``periodic``."""
    return np.asarray(25 / 46 - 21 / 46 * np.cos(angles))


@_window("BlackmanWindow")
def blackman_window(angles: Array) -> Array:
    """``0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N)``.

    N is ``size``, or ``size - 1`` when not ``periodic``.
    """
    return np.asarray(0.42 - 0.5 * np.cos(angles) + 0.08 * np.cos(2 * angles))
