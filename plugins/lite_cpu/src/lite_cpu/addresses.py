"""Addresses of arrays."""

from __future__ import annotations

import sys
from ctypes import c_size_t
from typing import Any

import numpy as np

__all__ = ["address_of"]

Array = np.ndarray[Any, Any]

_WORD_AT = c_size_t.from_address
#: Position of ``data`` in the struct PyArrayObject of NumPy's C interface: the first field after the object's header.
_DATA_FIELD = object.__basicsize__


def address_of(array: Array) -> int:
    """Return the address of an array's first element, in an eighth of the time of ``array.ctypes.data``."""
    return _WORD_AT(id(array) + _DATA_FIELD).value


def _published_address_of(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


# In other interpreters than CPython, id() is not the address of the object.
_samples = (np.empty(3), np.empty((2, 3))[::-1])
if sys.implementation.name != "cpython" or any(address_of(a) != _published_address_of(a) for a in _samples):
    address_of = _published_address_of
