"""Tensors in parameter files, memory-mapped: combined files and one file per variable.

Layout of one tensor (little endian, no padding): uint32 0; uint64 number of LoD levels, each a
uint64 byte size and that many bytes; uint32 0; int32 size of a TensorDesc message; the message (element
type and dims); the elements in C order. A combined file is such tensors one after another, without
names, in the byte order of the variables' names.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from lite_core.errors import ModelFormatError

from ..source import SourceType
from .element_types import FLOATING, legacy_element_type, numpy_dtype
from .program_proto import parse_message

_MAXIMUM_RANK = 32  # supported by every NumPy version
_MAXIMUM_DESCRIPTION = 4096  # a TensorDesc of 32 dims has at most 360 bytes
_SMALLEST_TENSOR = 22  # the header of a tensor without elements, whose description has two bytes
_MAXIMUM_ELEMENTS = 2**60


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """One tensor of a parameter file: its type, and the location of its elements."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    byte_size: int


class ParameterFile:
    """A memory-mapped file of tensors.

    Args:
        path: The file.

    Raises:
        ModelFormatError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        """Map the file; arrays made from it keep the mapping alive."""
        self.path = path
        try:
            with path.open("rb") as file:
                self.size = path.stat().st_size
                # An empty file cannot be mapped.
                self._data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else b""
        except OSError as error:
            raise ModelFormatError(f"cannot read the parameter file {path}: {error}") from error

    def read_record(self, offset: int) -> TensorRecord:
        """Parse the tensor header at an offset and check that all its elements are in the file.

        Raises:
            ModelFormatError: There is no complete tensor at that offset.
        """
        position = offset
        version, levels = struct.unpack("<IQ", self._take(position, 12, offset, "header"))
        position += 12
        if version != 0:
            raise self._damaged(offset, f"the tensor starts with {version:#010x}, expected 0")
        if levels > (self.size - position) // 8:
            raise self._damaged(offset, f"{levels} LoD levels do not fit in the file")
        for _ in range(levels):
            (byte_size,) = struct.unpack("<Q", self._take(position, 8, offset, "LoD level"))
            position += 8
            if byte_size > self.size - position:
                raise self._damaged(offset, f"a LoD level of {byte_size} bytes does not fit in the file")
            position += byte_size
        version, length = struct.unpack("<Ii", self._take(position, 8, offset, "description"))
        position += 8
        if version != 0 or not 0 < length <= _MAXIMUM_DESCRIPTION:
            raise self._damaged(offset, f"tensor version {version}, description of {length} bytes")
        data = self._take(position, length, offset, "description")
        position += length
        description = parse_message("TensorDesc", data, f"{self.path}, tensor at byte {offset}")
        if not description.HasField("data_type"):
            raise self._damaged(offset, "the description has no element type")
        try:
            dtype = legacy_element_type(description.data_type)
        except ModelFormatError as error:
            raise self._damaged(offset, str(error)) from error
        shape = tuple(description.dims)
        if len(shape) > _MAXIMUM_RANK or any(dim < 0 for dim in shape):
            raise self._damaged(offset, f"impossible dimensions {list(shape)[: _MAXIMUM_RANK + 1]}")
        if math.prod(dim for dim in shape if dim) > _MAXIMUM_ELEMENTS:
            raise self._damaged(offset, f"impossible dimensions {list(shape)}")
        byte_size = math.prod(shape) * numpy_dtype(dtype).itemsize
        if byte_size > self.size - position:
            raise self._damaged(
                offset,
                f"{dtype}{list(shape)} needs {byte_size} bytes, {self.size - position} are left: the file is "
                "truncated or damaged",
            )
        return TensorRecord(dtype, shape, position, byte_size)

    def read_all(self) -> list[TensorRecord]:
        """Return every tensor, in file order.

        Raises:
            ModelFormatError: The file is not a sequence of complete tensors up to its exact end.
        """
        records: list[TensorRecord] = []
        position = 0
        while position < self.size:
            left = self.size - position
            if records and left < _SMALLEST_TENSOR:
                raise ModelFormatError(
                    f"{self.path}: {left} bytes are left over after the last tensor ({len(records)} tensors, "
                    f"{self.size} bytes): the file is damaged. Copy or export it again"
                )
            records.append(self.read_record(position))
            position = records[-1].offset + records[-1].byte_size
        return records

    def array(self, record: TensorRecord) -> np.ndarray[Any, Any]:
        """Return the elements of a tensor: a read-only view of the mapping, not necessarily aligned."""
        dtype = numpy_dtype(record.dtype)
        if record.byte_size == 0:
            empty = np.empty(record.shape, dtype)
            empty.flags.writeable = False
            return empty
        count = record.byte_size // dtype.itemsize
        return np.frombuffer(self._data, dtype, count, record.offset).reshape(record.shape)

    def _take(self, position: int, count: int, start: int, what: str) -> bytes:
        if count > self.size - position:
            raise self._damaged(start, f"the file ends inside the tensor's {what}")
        return bytes(self._data[position : position + count])

    def _damaged(self, offset: int, reason: str) -> ModelFormatError:
        found = f"{self.path}: no tensor at byte {offset} of {self.size}: {reason}."
        if offset == 0:
            found += f" The file starts with {bytes(self._data[:8])!r}"
            if self._data[:1] == b"\x80":
                found += ": a Python pickle (.pdparams), which can run code and is never loaded"
            found += ". Expected the .pdiparams file that was saved together with the program."
        return ModelFormatError(found)


def load_combined(
    path: Path,
    types: Mapping[str, SourceType],
    name_lists: Iterable[Sequence[str]],
    quantized: Container[str] = (),
) -> dict[str, np.ndarray[Any, Any]]:
    """Read a combined file and give its tensors their names.

    Args:
        path: The file.
        types: Name -> type that the program declares.
        name_lists: Candidate lists of names in file order, at least one; the first that fits is used. The first
            list is the order that Paddle writes, the others are for files of other tools.
        quantized: Names of weights that may be int8 in the file where the program declares a floating type.

    Returns:
        Name -> read-only array. If the program declares another floating type than the file has, the type of
        the file is used (Paddle can convert while saving). A tensor that is a vector but for dimensions of size 1
        gets the vector's shape that the program declares: Paddle's quantization stores scales of shape [1] with
        rank 0, and scales of channels as [1, channels].

    Raises:
        ModelFormatError: The file is damaged, or fits none of the lists.
    """
    file = ParameterFile(path)
    records = file.read_all()
    mismatches = []
    for names in name_lists:
        mismatch = _first_mismatch(names, records, types, quantized)
        if mismatch is None:
            return {name: _declared(file.array(record), types[name]) for name, record in zip(names, records)}
        mismatches.append(mismatch)
    raise ModelFormatError(
        f"{path} does not belong to this program: {mismatches[0]}. Use the parameter file that was saved "
        "together with the program (params=...)."
    )


def load_separate(
    directory: Path, types: Mapping[str, SourceType], quantized: Container[str] = ()
) -> dict[str, np.ndarray[Any, Any]]:
    """Read one file per variable, each named like its variable; see :func:`load_combined`.

    Raises:
        ModelFormatError: A file is missing, damaged, longer than its tensor, or has another type.
    """
    missing = [name for name in types if not separate_file(directory, name).is_file()]
    if missing:
        raise ModelFormatError(
            f"{directory} lacks the files of {len(missing)} of {len(types)} parameters, among them {missing[:5]}"
        )
    arrays = {}
    for name, declared in types.items():
        file = ParameterFile(separate_file(directory, name))
        records = file.read_all()
        reason = _first_mismatch([name], records, {name: declared}, quantized)
        if reason is not None:
            raise ModelFormatError(f"{file.path} does not belong to this program: {reason}")
        arrays[name] = _declared(file.array(records[0]), declared)
    return arrays


def separate_file(directory: Path, name: str) -> Path:
    """Return the path of one variable's file; ``/`` in a name makes sub-directories.

    Raises:
        ModelFormatError: The name leads out of the directory.
    """
    relative = PurePosixPath(name)
    if not name or "\0" in name or "\\" in name or relative.is_absolute() or ".." in relative.parts:
        raise ModelFormatError(f"the variable name {name!r} is not the name of a file inside {directory}")
    return directory / relative


def _is_same_vector(declared: tuple[int, ...] | None, found: tuple[int, ...]) -> bool:
    """Return True if the program declares a vector, and the file has it with other dimensions of size 1, or none."""
    return (
        declared is not None and len(declared) == 1 and [n for n in found if n != 1] == [n for n in declared if n != 1]
    )


def _declared(array: np.ndarray[Any, Any], declared: SourceType) -> np.ndarray[Any, Any]:
    return array.reshape(declared.shape) if _is_same_vector(declared.shape, array.shape) else array


def _first_mismatch(
    names: Sequence[str],
    records: Sequence[TensorRecord],
    types: Mapping[str, SourceType],
    quantized: Container[str],
) -> str | None:
    """Explain why the records are not the named tensors, or return None if they fit."""
    if len(names) != len(records):
        return f"the program has {len(names)} parameters, the file {len(records)} tensors"
    for position, (name, record) in enumerate(zip(names, records)):
        declared = types[name]
        both_floating = declared.dtype in FLOATING and record.dtype in FLOATING
        is_quantized = name in quantized and declared.dtype in FLOATING and record.dtype == "int8"
        same_dtype = declared.dtype in (record.dtype, "undefined") or both_floating or is_quantized
        same_shape = (
            declared.shape is None
            or _is_same_vector(declared.shape, record.shape)
            or (
                len(declared.shape) == len(record.shape)
                and all(want in (-1, found) for want, found in zip(declared.shape, record.shape))
            )
        )
        if not (same_dtype and same_shape):
            shape = None if declared.shape is None else list(declared.shape)
            return (
                f"parameter {name!r} is {declared.dtype}{shape} in the program, but tensor {position} "
                f"of the file is {record.dtype}{list(record.shape)}"
            )
    return None
