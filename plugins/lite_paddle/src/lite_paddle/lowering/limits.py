"""Limits of element types, and of tables and nodes that a lowering makes from numbers in a file."""

from __future__ import annotations

from math import prod

import numpy as np

from lite_core.ir import DType
from lite_paddle.lowering.unlowerable import Unlowerable

__all__ = ["check_parts", "check_table", "lowest_finite"]

#: float32 has the same exponent range and more fraction bits; NumPy lacks bfloat16.
_LOWEST_BFLOAT16 = -3.3895313892515355e38

#: A file of a few bytes can state any size: tables with more elements, and operators of more parts, are refused.
_MOST_ELEMENTS, _MOST_PARTS = 1 << 24, 1 << 12


def lowest_finite(dtype: DType) -> float:
    """Return the lowest finite number of a floating element type."""
    return _LOWEST_BFLOAT16 if dtype is DType.BFLOAT16 else float(np.finfo(dtype.numpy).min)


def check_table(*sizes: int) -> None:
    """Check the sizes of a table that the graph will contain.

    Raises:
        Unlowerable: it would be too large.
    """
    if prod(sizes) > _MOST_ELEMENTS:
        raise Unlowerable(f"it needs a table of {' x '.join(map(str, sizes))} elements, more than {_MOST_ELEMENTS}")


def check_parts(count: int) -> None:
    """Check the number of parts that each become some nodes.

    Raises:
        Unlowerable: there would be too many.
    """
    if count > _MOST_PARTS:
        raise Unlowerable(f"it has {count} parts, expected at most {_MOST_PARTS}")
