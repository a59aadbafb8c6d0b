"""Arrays aligned to a cache line, so that no vector of them crosses two lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import aligned_empty

__all__ = ["LINE_BYTES", "aligned_empty", "is_aligned"]

Array = np.ndarray[Any, Any]

#: Size of a cache line and of the widest vector, in bytes.
LINE_BYTES = 64


def is_aligned(array: Array) -> bool:
    """Return True if the array is contiguous and begins at a cache line."""
    return array.flags.c_contiguous and array.ctypes.data % LINE_BYTES == 0
