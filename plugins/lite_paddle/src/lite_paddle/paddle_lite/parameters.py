"""Parameters of Paddle-Lite model files as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable

from lite_core.errors import ModelFormatError

from .program import Array
from .type_numbers import parameter_dtype

__all__ = ["collect", "parameter_array"]

_HIGHEST_RANK = 32  # supported by every NumPy version


def parameter_array(name: str, number: int, shape: tuple[int, ...], elements: Array) -> Array:
    """Return a view of a parameter's bytes.

    Args:
        name: its name, for messages.
        number: number of its element type.
        shape: its dimensions.
        elements: its bytes.

    Raises:
        ModelFormatError: the bytes do not fit the shape, or the type cannot be stored.
    """
    dtype = parameter_dtype(number, name)
    if len(shape) > _HIGHEST_RANK or any(size < 0 for size in shape):
        raise ModelFormatError(f"the parameter {name!r} has the impossible shape {list(shape[:_HIGHEST_RANK])}")
    expected = math.prod(shape) * dtype.itemsize
    if elements.size != expected:
        raise ModelFormatError(
            f"the parameter {name!r} is {dtype.name}{list(shape)}, {expected} bytes, but the file has {elements.size} "
            "bytes for it; copy or convert the model again"
        )
    return elements.view(dtype).reshape(shape) if expected else elements[:0].view(dtype).reshape(shape)


def collect(found: Iterable[tuple[str, Array]]) -> dict[str, Array]:
    """Return the parameters by name.

    Raises:
        ModelFormatError: a name occurs twice.
    """
    result: dict[str, Array] = {}
    for name, array in found:
        if name in result:
            raise ModelFormatError(f"the parameter {name!r} occurs twice; the file is damaged")
        result[name] = array
    return result
