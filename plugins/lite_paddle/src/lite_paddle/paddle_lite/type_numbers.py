"""The numbers of element types and kinds of variables in Paddle-Lite's files."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.errors import ModelFormatError

from .program import VariableKind

__all__ = ["ELEMENT_TYPES", "NUMBERS", "STREAM_NUMBERS", "parameter_dtype", "variable_kind"]

#: Numbers of element types in files of the container versions 1 and 2, which are those of Paddle.
ELEMENT_TYPES = {
    0: "bool",
    1: "int16",
    2: "int32",
    3: "int64",
    4: "float16",
    5: "float32",
    6: "float64",
    19: "uint64",
    20: "uint8",
    21: "int8",
}

#: Name of an element type -> its number.
NUMBERS = {name: number for number, name in ELEMENT_TYPES.items()}

# The streams of container version 0 number all types consecutively: number there -> Paddle's number.
_IN_ORDER = [*range(7), 19, 20, 21, *range(7, 16), 17, 18]
STREAM_NUMBERS = dict(enumerate(_IN_ORDER))

# Element types of parameters that Paddle-Lite can store.
_STORED = frozenset({"bool", "int8", "uint8", "int16", "int32", "int64", "float16", "float32"})


def parameter_dtype(number: int, name: str) -> np.dtype[Any]:
    """Return NumPy's type of a parameter's elements.

    Raises:
        ModelFormatError: Paddle-Lite has no parameters of this type.
    """
    element_type = ELEMENT_TYPES.get(number)
    if element_type not in _STORED:
        found = f"{element_type} ({number})" if element_type else str(number)
        raise ModelFormatError(
            f"the parameter {name!r} has the element type {found}, expected one of {', '.join(sorted(_STORED))}"
        )
    plain: np.dtype[Any] = np.dtype(element_type).newbyteorder("<")
    return plain


def variable_kind(number: int, name: str) -> VariableKind:
    """Return the kind of a variable.

    Raises:
        ModelFormatError: The number is not a kind of variable.
    """
    try:
        return VariableKind(number)
    except ValueError:
        raise ModelFormatError(f"the variable {name!r} has the unknown type {number}") from None
