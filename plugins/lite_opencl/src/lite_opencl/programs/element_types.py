"""Element types in OpenCL C: the type of an element in memory, and the type that it is computed in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import DType

__all__ = ["CType", "c_type", "literal", "scalar"]


class CType(NamedTuple):
    """An element type in OpenCL C.

    Attributes:
        storage: type of an element in memory.
        compute: type of an element in registers. 16-bit floats are computed in ``float``: every device can load and
            store them, few can compute with them.
        suffix: the suffix of the LOAD and STORE macros of ``common.cl`` for this type.
    """

    storage: str
    compute: str
    suffix: str

    @property
    def is_double(self) -> bool:
        return self.storage == "double"


_PLAIN: Mapping[DType, str] = {
    DType.BOOL: "uchar",
    DType.INT8: "char",
    DType.INT16: "short",
    DType.INT32: "int",
    DType.INT64: "long",
    DType.UINT8: "uchar",
    DType.UINT16: "ushort",
    DType.UINT32: "uint",
    DType.UINT64: "ulong",
    DType.FLOAT32: "float",
    DType.FLOAT64: "double",
}
_TYPES = {dtype: CType(name, name, "plain") for dtype, name in _PLAIN.items()} | {
    DType.FLOAT16: CType("half", "float", "half"),
    DType.BFLOAT16: CType("ushort", "float", "bfloat16"),
}


def c_type(dtype: DType) -> CType:
    """Return the types that elements of ``dtype`` are stored and computed in."""
    return _TYPES[dtype]


def scalar(number: Any, dtype: DType) -> np.generic:
    """Return a number as a by-value argument of a kernel, in the type that ``dtype`` is computed in."""
    value: np.generic
    if dtype.is_half:
        value = np.float32(number)
    elif dtype is DType.BOOL:
        value = np.uint8(bool(number))
    else:
        value = dtype.numpy.type(number)
    return value


def literal(number: float, compute: str) -> str:
    """Return a number as a literal of a floating-point compute type."""
    if np.isnan(number) or np.isinf(number):
        special = "NAN" if np.isnan(number) else "INFINITY" if number > 0 else "-INFINITY"
        return f"(({compute}){special})"
    text = repr(float(number))
    return f"({text}f)" if compute == "float" else f"({text})"
