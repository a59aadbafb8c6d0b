"""Numbers as texts, and texts as numbers: Cast from and to strings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_core.ops.inference import fail

__all__ = ["as_texts", "from_texts"]

Array = np.ndarray[Any, Any]


def as_texts(x: Array) -> Array:
    """Return each element as text: floats of all types with up to 8 digits, as ONNX Runtime writes them."""
    if x.dtype == object:
        return x
    if x.dtype.kind not in "fV":
        return _mapped(x, lambda number: str(int(number)))
    return _mapped(x.astype(np.float64), _float_text)


def from_texts(x: Array, to: DType) -> Array:
    """Return the numbers that texts stand for.

    Raises:
        GraphError: a text is not a number of the type.
    """
    if to is DType.BOOL or to.is_narrow:
        raise fail(f"strings are converted to integers and floats of at least 8 bits, not to {to}")
    try:
        if to.is_floating:
            wide = np.float64 if to is DType.FLOAT64 else np.float32
            floats: Array = np.array([float(text) for text in x.flat], wide).reshape(x.shape)
            return floats.astype(to.numpy)
        integers: Array = np.array([int(text) for text in x.flat], to.numpy).reshape(x.shape)
        return integers
    except (ValueError, OverflowError) as error:
        raise fail(f"a string is not a number of the type {to}: {error}") from None


def _mapped(x: Array, text_of: Callable[[Any], str]) -> Array:
    texts: Array = np.empty(x.size, object)
    texts[:] = [text_of(number) for number in x.reshape(-1).tolist()]
    return np.asarray(texts.reshape(x.shape))


def _float_text(number: float) -> str:
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "INF" if number > 0 else "-INF"
    return f"{number:.8g}"
