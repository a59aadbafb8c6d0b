"""Strategies for operators whose windows slide over spatial axes, and scales of quantized operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw
from lite_conformance.cases.tensors import Tensor, values

__all__ = ["channel_groups", "scales", "sliding_window"]


def sliding_window(draw: Draw, rank: int) -> tuple[list[int], dict[str, Any]]:
    """Draw the spatial sizes of an input, and the attributes of windows that all overlap it."""
    kernel = [draw(st.integers(1, 4)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) for _ in range(rank)]
    size = [(k - 1) * d + 1 + draw(st.integers(0, 8)) for k, d in zip(kernel, dilations)]
    window: dict[str, Any] = {
        "kernel_shape": tuple(kernel),
        "dilations": tuple(dilations),
        "strides": tuple(draw(st.integers(1, 3)) for _ in range(rank)),
    }
    auto_pad = draw(st.sampled_from(("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")))
    if auto_pad != "NOTSET":
        # ONNX does not specify how SAME divides the padding of dilated windows, or negative padding.
        strides = tuple(map(min, window["strides"], kernel))
        return size, {**window, "auto_pad": auto_pad, "dilations": (1,) * rank, "strides": strides}
    return size, {**window, "pads": tuple(draw(st.integers(0, k - 1)) for k in (*kernel, *kernel))}


def channel_groups(draw: Draw) -> tuple[int, int, int]:
    """Draw the number of groups, input channels and output channels, depthwise convolutions included."""
    group = draw(st.integers(1, 4))
    return group, group * draw(st.integers(1, 4)), group * draw(st.integers(1, 4))


def scales(*elements: float, shape: tuple[int, ...] | None = None, dtype: str = "float32") -> Tensor:
    """Return constant scales of quantized tensors: a scalar for one element, a vector for several, or ``shape``."""
    wanted = (() if len(elements) == 1 else (len(elements),)) if shape is None else shape
    return values(np.reshape(elements, wanted), dtype, constant=True)
