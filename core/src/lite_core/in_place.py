"""The optional part of an executable that updates inputs in place, as decoders do with their caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from lite_core.ir import Array

__all__ = ["UpdatesInPlace", "is_cache", "is_same_place"]


@runtime_checkable
class UpdatesInPlace(Protocol):
    """Optional part of an executable in main memory: outputs that may be in the memory of inputs.

    ``in_place`` maps the number of each such output to that of its input. Both are [batch, heads, positions, size], and
    the first two dimensions may have any stride. Where both begin at one address with equal strides, the executable
    leaves what they have in common as it is. In all other cases they share no memory.
    """

    @property
    def in_place(self) -> Mapping[int, int]: ...


def is_cache(array: Array) -> bool:
    """Return True if an array is contiguous, or [batch, heads, positions, size] with contiguous heads."""
    heads = array.ndim == 4 and array.strides[2:] == (array.shape[3] * array.itemsize, array.itemsize)
    return heads or array.flags.c_contiguous


def is_same_place(one: Array, other: Array) -> bool:
    """Return True if both arrays begin at one address, and have equal strides."""
    return one.strides == other.strides and one.ctypes.data == other.ctypes.data
