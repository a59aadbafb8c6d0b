"""Element types: the numbers of legacy files, the names of PIR files, and NumPy's types."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.errors import ModelFormatError
from lite_core.ir import DType

# VarType.Type of a tensor's elements -> name.
LEGACY_ELEMENT_TYPES = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    19: "uint64",  # SIZE_T
    20: "uint8",
    21: "int8",
    22: "bfloat16",
    23: "complex64",
    24: "complex128",
    32: "float8_e4m3fn",
    33: "float8_e5m2",
    36: "uint16",
    37: "uint32",
    38: "uint64",
}

# Type names of the builtin dialect ("0.t_f32", or "builtin.t_f32" in early snapshots) -> name.
PIR_ELEMENT_TYPES = {
    "t_bool": "bool",
    "t_ui8": "uint8",
    "t_i8": "int8",
    "t_i16": "int16",
    "t_i32": "int32",
    "t_i64": "int64",
    "t_index": "int64",
    "t_bf16": "bfloat16",
    "t_f16": "float16",
    "t_f32": "float32",
    "t_f64": "float64",
    "t_c64": "complex64",
    "t_c128": "complex128",
    "t_f8e4m3fn": "float8_e4m3fn",
    "t_f8e5m2": "float8_e5m2",
    "t_undefined": "undefined",
}

# Types that NumPy lacks.
_EXTENDED = frozenset({"bfloat16", "float8_e4m3fn", "float8_e5m2"})

FLOATING = frozenset({"float16", "bfloat16", "float32", "float64"})

KNOWN = frozenset(LEGACY_ELEMENT_TYPES.values())


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the NumPy type of an element type, little endian."""
    if name in _EXTENDED:
        return DType.of(name.replace("_", "")).numpy
    plain: np.dtype[Any] = np.dtype(name).newbyteorder("<")
    return plain


def legacy_element_type(number: int) -> str:
    """Return the name of a VarType.Type number that can be an element type.

    Raises:
        ModelFormatError: The number is not an element type.
    """
    name = LEGACY_ELEMENT_TYPES.get(number)
    if name is None:
        raise ModelFormatError(f"{number} is not the number of an element type that a tensor can have")
    return name


def optional_legacy_element_type(number: int) -> str | None:
    """Return the name of a VarType.Type number, or None for any unknown number (-1: not set)."""
    return LEGACY_ELEMENT_TYPES.get(number)
