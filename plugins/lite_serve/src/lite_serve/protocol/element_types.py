"""The element types of the protocol, and the types of NumPy and of Lite for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_serve.protocol.errors import InvalidRequestError, UnsupportedError

__all__ = ["DATATYPES", "datatype_of", "dtype_of"]

#: Lite's element type for each element type of the protocol. BF16 is an addition of Triton, and widely used.
DATATYPES: dict[str, DType] = {
    "BOOL": DType.BOOL,
    "UINT8": DType.UINT8,
    "UINT16": DType.UINT16,
    "UINT32": DType.UINT32,
    "UINT64": DType.UINT64,
    "INT8": DType.INT8,
    "INT16": DType.INT16,
    "INT32": DType.INT32,
    "INT64": DType.INT64,
    "FP16": DType.FLOAT16,
    "FP32": DType.FLOAT32,
    "FP64": DType.FLOAT64,
    "BF16": DType.BFLOAT16,
    "BYTES": DType.STRING,
}

_NAMES: dict[DType, str] = {dtype: name for name, dtype in DATATYPES.items()}
_DTYPES: dict[str, np.dtype[Any]] = {name: dtype.numpy for name, dtype in DATATYPES.items()}


def datatype_of(dtype: DType | np.dtype[Any]) -> str:
    """Return the protocol's name of an element type: ``FP32`` for float32.

    Raises:
        UnsupportedError: the protocol has no such type (8-bit floats, 4-bit integers).
    """
    if isinstance(dtype, np.dtype):
        dtype = DType.STRING if dtype.hasobject else DType.of(dtype)
    if dtype not in _NAMES:
        raise UnsupportedError(f"the protocol has no element type for {dtype}; it has {', '.join(DATATYPES)}")
    return _NAMES[dtype]


def dtype_of(datatype: str) -> np.dtype[Any]:
    """Return the NumPy type for one of the protocol's: ``object`` for BYTES, that of ml_dtypes for BF16.

    Raises:
        InvalidRequestError: the protocol has no such type.
    """
    found = _DTYPES.get(datatype)
    if found is None:
        raise InvalidRequestError(f"datatype {datatype[:40]!r} is not one of {', '.join(DATATYPES)}")
    return found
