"""Element-wise arithmetic on what inference knows of small tensors: shapes, and what models make of them.

A tensor whose elements are all numbers goes through the operator's own reference. One with symbolic
dimensions among its elements goes through a function on single dimensions, which answers None where the
result depends on what the symbols stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

import numpy as np

from lite_core.ir import Dim, maximum, never_negative
from lite_core.ops.inference import Inference

Array = np.ndarray[Any, Any]
Known = Dim | bool
#: One result element from one element of each input (None for an input left out); attributes as keywords.
DimFunction = Callable[..., Known | None]


def propagate_elementwise(
    reference: Callable[..., Any], on_dims: DimFunction | None = None
) -> Callable[[Inference], Array | None]:
    """Shape arithmetic of an element-wise operator.

    Args:
        reference: computes the result where every element is a number.
        on_dims: computes one element where some are symbolic; without it nothing is known then.
    """

    def propagate(inference: Inference) -> Array | None:
        values = [inference.value(i) for i in range(len(inference.types))]
        if any(v is None and t is not None for v, t in zip(values, inference.types)):
            return None
        if any(t is not None and t.dtype.is_half for t in inference.types):
            return None  # references take half types as float32, and no shape is computed in them
        if any(v is not None and v.dtype == object for v in values):
            return None if on_dims is None else map_dims(on_dims, values, **inference.attributes)
        with np.errstate(all="ignore"):
            return np.asarray(reference(*values, **inference.attributes))

    return propagate


def map_dims(function: DimFunction, values: Iterable[Array | None], **attributes: Any) -> Array | None:
    """``function`` over the elements of arrays broadcast together; None when any result is not known."""
    arrays = [np.array(None, dtype=object) if v is None else v for v in values]
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    columns = [np.broadcast_to(a, shape).reshape(-1).tolist() for a in arrays]
    elements = [function(*row, **attributes) for row in zip(*columns)]
    if any(e is None for e in elements):
        return None
    return object_array(elements, shape)


def object_array(elements: Iterable[Any], shape: tuple[int, ...]) -> Array:
    """An object array of the given shape, elements in row-major order."""
    result = np.empty(shape, dtype=object)
    result.reshape(-1)[:] = list(elements)
    return result


# **** what is certain of a dimension ****


def less(a: Dim, b: Dim) -> bool | None:
    """Whether ``a < b``, or None when that depends on the symbols."""
    if never_negative(b - a - 1):
        return True
    return False if never_negative(a - b) else None


def equal(a: Dim, b: Dim) -> bool | None:
    """Whether ``a == b``, or None when that depends on the symbols."""
    if a == b:
        return True
    return False if less(a, b) or less(b, a) else None


# **** arithmetic that Dim's own operators do not have ****


def minimum_dims(*dims: Dim) -> Dim:
    """The smallest dimension."""
    # There is no expression for a minimum; that of two is their sum without the larger one.
    return reduce(lambda a, b: a + b - maximum(a, b), dims)


def maximum_dims(*dims: Dim) -> Dim:
    """The largest dimension."""
    return reduce(maximum, dims)


def divide_dims(a: Dim, b: Dim) -> Dim | None:
    """Integer division, rounded towards zero, 0 for a division by zero; None where the sign of ``b`` is not certain.

    NOTE: ``//`` of dimensions rounds down, and shape arithmetic may well be negative on its way, as in
    ``(n - 3) / 2 + 1``. There the positive and the negative part are divided one by one.
    """
    if isinstance(b, int) and b < 0:
        a, b = -a, -b
    if not never_negative(b):
        return None
    if never_negative(a):
        return a // b
    return maximum(a, 0) // b - maximum(-a, 0) // b


def modulo_dims(a: Dim, b: Dim, *, fmod: int) -> Dim | None:
    """The remainder, 0 for a division by zero; None for C's remainder where the sign of ``b`` is not certain."""
    if isinstance(b, int) and b == 0:
        return 0
    if not fmod or (never_negative(a) and never_negative(b)):
        return a % b
    whole = divide_dims(a, b) if isinstance(b, int) else None
    return None if whole is None else a - b * whole


def absolute_dim(a: Dim) -> Dim | None:
    """The absolute value, where the sign is certain."""
    if never_negative(a):
        return a
    return -a if never_negative(-a) else None
