"""Groups of element types that operator signatures use."""

from __future__ import annotations

from lite_core.ir import DType

__all__ = [
    "ALL",
    "FLOATS",
    "INDICES",
    "INTEGERS",
    "MOVED",
    "NARROW",
    "NUMERIC",
    "SIGNED",
    "SIGNED_INTEGERS",
    "UNSIGNED",
]

#: The element types that most operators accept: all numbers except the narrow types, which are only stored.
ALL: tuple[DType, ...] = tuple(d for d in DType if not d.is_narrow and d is not DType.STRING)
#: The element types of operators that move elements without computing with them.
MOVED = (*ALL, DType.STRING)
NARROW = tuple(d for d in DType if d.is_narrow)
FLOATS = tuple(d for d in ALL if d.is_floating)
INTEGERS = tuple(d for d in ALL if d.is_integer)
UNSIGNED = tuple(d for d in INTEGERS if not d.is_signed)
SIGNED_INTEGERS = tuple(d for d in INTEGERS if d.is_signed)
SIGNED = SIGNED_INTEGERS + FLOATS
NUMERIC = INTEGERS + FLOATS
INDICES = (DType.INT32, DType.INT64)
