"""Reading of arrays from .npy and .npz files; each array's header is compared with the file first.

A few bytes can claim to be an array of any size, and compressed zeros expand a thousandfold. What a header claims is
checked before memory is allocated for it.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from lite_core.ir import TensorType

__all__ = ["HeldArray", "held_arrays", "read_array_file", "read_arrays"]

Array = np.ndarray[Any, Any]

#: Compressed arrays may expand to this number of bytes, and larger ones to a multiple of their size in the file. The
#: shapes of larger arrays are compared with the model before they are read.
_MOST_EXPANDED, _MOST_TIMES = 2**28, 100
#: The most bytes of one array in an archive; the arrays of .npy files are mapped, and may have any size.
_MOST_BYTES = 2**31

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class HeldArray(NamedTuple):
    """Element type and shape that the header of an array in an archive claims; None if it cannot be read."""

    dtype: np.dtype[Any] | None
    shape: tuple[int, ...] | None

    def __str__(self) -> str:
        return "" if self.dtype is None else f"{self.dtype.name}{list(self.shape or ())}"


def held_arrays(path: Path) -> dict[str, HeldArray]:
    """Return the arrays in an .npz file by name, without their elements.

    Raises:
        ValueError: the file is damaged.
        OSError: the file cannot be read.
    """
    with zipfile.ZipFile(path) as archive:
        return {name: _claimed(archive, member) for name, member in _members(archive).items()}


def read_array_file(path: Path, name: str, type_: TensorType) -> Array:
    """Return the array for an input from a .npy file, memory-mapped, or from the .npz file that contains its name.

    Raises:
        ValueError: the file is damaged, or the array does not fit the input.
        OSError: the file cannot be read.
    """
    with path.open("rb") as content:
        if content.read(2) != b"PK":
            content.seek(0)
            size = path.stat().st_size
            shape, is_fortran, dtype = _header(content, size, type_)
            if 0 in shape:
                return np.empty(shape, dtype)
            order: Any = "F" if is_fortran else "C"
            return np.asarray(np.memmap(path, dtype, "r", content.tell(), shape, order))
    return read_arrays(path, {name: type_})[name]


def read_arrays(path: Path, types: Mapping[str, TensorType], *, every: bool = False) -> dict[str, Array]:
    """Return the arrays of an .npz file for inputs.

    Args:
        path: the file.
        types: the types of the inputs, by name. All must be in the file, unless ``every`` is True.
        every: True if the file may contain arrays for these inputs only, and need not contain all.

    Raises:
        ValueError: the file is damaged, an array does not fit its input, or arrays are missing or belong to no input.
        OSError: the file cannot be read.
    """
    with zipfile.ZipFile(path) as archive:
        members = _members(archive)
        unknown = sorted(members.keys() - types.keys()) if every else sorted(types.keys() - members.keys())
        if unknown:
            raise ValueError(f"it contains {', '.join(members) or 'nothing'}; expected {', '.join(types)}")
        return {name: _member(archive, members[name], type_) for name, type_ in types.items() if name in members}


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {i.filename.removesuffix(".npy"): i for i in archive.infolist() if i.filename.endswith(".npy")}


def _claimed(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> HeldArray:
    try:
        with archive.open(member) as content:
            shape, _, dtype = _HEADERS[np.lib.format.read_magic(content)](content)
    except Exception:  # many kinds for damaged files; reading the array reports them
        return HeldArray(None, None)
    return HeldArray(dtype, shape)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, type_: TensorType) -> Array:
    size, stored = member.file_size, member.compress_size
    if size > min(_MOST_BYTES, max(_MOST_EXPANDED, _MOST_TIMES * stored)):
        raise ValueError(
            f"{member.filename!r} would expand from {stored} to {size} bytes; save so large an array in a .npy file"
        )
    with archive.open(member) as content:
        shape, is_fortran, dtype = _header(content, size, type_)
        elements = np.frombuffer(content.read(), dtype, math.prod(shape))
    return elements.reshape(shape, order="F" if is_fortran else "C")


def _header(content: IO[bytes], size: int, type_: TensorType) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an array: its shape, True if its first axis is contiguous, and its element type."""
    version = np.lib.format.read_magic(content)
    if version not in _HEADERS:
        raise ValueError(f"it is of version {version[0]}.{version[1]}, in which NumPy saves only structures")
    shape, is_fortran, dtype = _HEADERS[version](content)
    if dtype.hasobject:
        raise ValueError("it contains Python objects (pickles), which can run code and are not read")
    expected, found = math.prod(shape) * dtype.itemsize, size - content.tell()
    if expected != found:
        raise ValueError(f"{dtype}{list(shape)} has {expected} bytes, {found} follow the header")
    if size > _MOST_EXPANDED and not type_.accepts(shape):  # the session compares smaller ones
        raise ValueError(f"it is {dtype}{list(shape)}, the input is {type_}")
    return shape, is_fortran, dtype
