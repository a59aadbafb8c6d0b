"""Element-wise arithmetic on the known elements of small tensors: shapes and values computed from shapes.

If all elements are numbers, the operator's reference computes the result. If some are symbolic
dimensions, a function on single dimensions computes it; the function returns None if the result depends
on the values of the symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType
from lite_core.ir.dims import maximum, never_negative
from lite_core.ops.inference import Inference

Array = np.ndarray[Any, Any]
Known = Dim | bool
#: One result element from one element of each input (None for an input left out); attributes as keywords.
DimFunction = Callable[..., Known | None]


def propagate_elementwise(
    reference: Callable[..., Any], on_dims: DimFunction | None = None
) -> Callable[[Inference], Array | None]:
    """Return a function that does the shape arithmetic of an element-wise operator.

    Args:
        reference: computes the result if every element is a number.
        on_dims: computes one element if some elements are symbolic; without it the result is unknown then.
    """

    def propagate(inference: Inference) -> Array | None:
        values = [inference.value(i) for i in range(len(inference.types))]
        if any(v is None and t is not None for v, t in zip(values, inference.types)):
            return None
        if any(t is not None and (t.dtype.is_half or t.dtype is DType.STRING) for t in inference.types):
            return None  # references need half types as float32; shapes are computed in neither
        if any(v is not None and v.dtype == object for v in values):
            return None if on_dims is None else map_dims(on_dims, values, **inference.attributes)
        with np.errstate(all="ignore"):
            return np.asarray(reference(*values, **inference.attributes))

    return propagate


def map_dims(function: DimFunction, values: Iterable[Array | None], **attributes: Any) -> Array | None:
    """Apply ``function`` to the elements of arrays broadcast together; None if any result is unknown."""
    arrays = [np.array(None, dtype=object) if v is None else v for v in values]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    columns = [np.broadcast_to(a, shape).reshape(-1).tolist() for a in arrays]
    elements = [function(*row, **attributes) for row in zip(*columns)]
    if any(e is None for e in elements):
        return None
    return object_array(elements, shape)


def object_array(elements: Iterable[Any], shape: tuple[int, ...]) -> Array:
    """Return an object array of the given shape, with elements in row-major order."""
    result = np.empty(shape, dtype=object)
    result.reshape(-1)[:] = list(elements)
    return result


# **** comparisons: known if they hold for all values of the symbols ****


def less(a: Dim, b: Dim) -> bool | None:
    """Return ``a < b``, or None if it depends on the symbols."""
    if never_negative(b - a - 1):
        return True
    return False if never_negative(a - b) else None


def equal(a: Dim, b: Dim) -> bool | None:
    """Return ``a == b``, or None if it depends on the symbols."""
    if a == b:
        return True
    return False if less(a, b) or less(b, a) else None


# **** arithmetic beyond the operators of Dim ****


def minimum_dims(*dims: Dim) -> Dim:
    """Return the smallest dimension."""
    # Dim has no expression for a minimum; the minimum of two dimensions is their sum minus their maximum.
    return reduce(lambda a, b: a + b - maximum(a, b), dims)


def maximum_dims(*dims: Dim) -> Dim:
    """Return the largest dimension."""
    return reduce(maximum, dims)


def divide_dims(a: Dim, b: Dim) -> Dim | None:
    """Return the quotient rounded towards zero, 0 for a division by zero; None if the sign of ``b`` is unknown.

    NOTE: ``//`` of dimensions rounds down, and intermediate results of shape arithmetic may be negative, as in
    ``(n - 3) / 2 + 1``. The positive and the negative part are then divided separately.
    """
    if isinstance(b, int) and b < 0:
        a, b = -a, -b
    if not never_negative(b):
        return None
    if never_negative(a):
        return a // b
    return maximum(a, 0) // b - maximum(-a, 0) // b


def modulo_dims(a: Dim, b: Dim, *, fmod: int) -> Dim | None:
    """Return the remainder, 0 for a division by zero; None if C's remainder (``fmod``) depends on unknown signs."""
    if isinstance(b, int) and b == 0:
        return 0
    if not fmod or (never_negative(a) and never_negative(b)):
        return a % b
    whole = divide_dims(a, b) if isinstance(b, int) else None
    return None if whole is None else a - b * whole


def absolute_dim(a: Dim) -> Dim | None:
    """Return the absolute value, or None if the sign is unknown."""
    if never_negative(a):
        return a
    return -a if never_negative(-a) else None
