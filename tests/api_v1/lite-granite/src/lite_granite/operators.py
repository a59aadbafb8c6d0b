"""The operator Shrinkage in the domain granite."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_core.ops import choice, define
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail, same_as_first

Array = np.ndarray[Any, Any]


def shrinkage(x: Array, *, slope: float, mode: str) -> Array:
    """``y = x / (1 + |slope x|)``; with the mode ``square``, ``y = x / (1 + (slope x)^2)``."""
    scaled = slope * x
    return x / (1 + (np.square(scaled) if mode == "square" else np.abs(scaled)))


def infer(inference: Inference) -> list[Any]:
    """Return the shape of the output, that of the input."""
    if inference.dtype(0).value == "float16" and inference.attributes["mode"] == "square":
        raise fail("Shrinkage of squares overflows in float16")
    return same_as_first(inference)


SHRINKAGE = define(
    shrinkage,
    "Shrinkage",
    "X: T -> Y: T",
    types={"T": FLOATS},
    attributes={"slope": 1.0, "mode": choice("absolute", "square")},
    infer=infer,
    domain="granite",
)
