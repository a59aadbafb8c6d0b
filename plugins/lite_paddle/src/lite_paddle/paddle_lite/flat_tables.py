"""Checked access to FlatBuffers: every offset and length of the file is compared with the buffer before it is used.

Layout of a FlatBuffer, little endian: the first uint32 is the position of the root table. A table begins with an int32,
the distance back to its vtable. A vtable is a list of uint16: its own size, the table's size, and the offset of each
field in the table, 0 for a field with its default. Strings, vectors and tables are uint32 distances forward. A string
or vector begins with its uint32 length. Source: https://flatbuffers.dev/internals/
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from lite_core.errors import ModelFormatError

__all__ = ["FlatBuffer", "FlatTable"]

_UINT16, _UINT32, _INT32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")
_SCALARS = {code: struct.Struct(f"<{code}") for code in "?bBiqfd"}
# Tables of a file; the limit of FlatBuffers' own verifier.
_MOST_TABLES = 1_000_000
# Several offsets may lead to one string. A file that is damaged on purpose can name a long one very often: the bytes
# that are decoded may exceed those of the file only by this factor.
_MOST_REUSE = 64


class FlatBuffer:
    """A buffer with one root table.

    Args:
        data: exactly its bytes.
        what: description for messages, such as ``the topology``.
    """

    def __init__(self, data: memoryview, what: str) -> None:
        self.data = data
        self.what = what
        self._tables = 0
        self._allowed = _MOST_REUSE * (len(data) + 64)

    def root(self) -> FlatTable:
        """Return the root table.

        Raises:
            ModelFormatError: the buffer has none.
        """
        return self.table_at(0)

    def table_at(self, position: int) -> FlatTable:
        """Return the table that the offset at ``position`` leads to."""
        self._tables += 1
        if self._tables > _MOST_TABLES:
            raise self.damaged(f"it has more than {_MOST_TABLES} tables")
        return FlatTable(self, self.follow(position))

    def damaged(self, why: str) -> ModelFormatError:
        """Return the error for a buffer that cannot be read."""
        return ModelFormatError(
            f"{self.what} ({len(self.data)} bytes) is damaged or truncated: {why}; copy or convert the model again"
        )

    def check(self, start: int, size: int) -> int:
        """Return ``start`` if ``size`` bytes from there are inside of the buffer, and count them as decoded.

        Raises:
            ModelFormatError: they are not, or far more bytes were decoded than the buffer has.
        """
        if not 0 <= start <= len(self.data) - size:
            raise self.damaged(f"it needs {size} bytes at {start}")
        self._allowed -= size
        if self._allowed < 0:
            raise self.damaged("its parts overlap")
        return start

    def follow(self, position: int) -> int:
        """Return the target of the offset at ``position``."""
        distance: int = _UINT32.unpack_from(self.data, self.check(position, 4))[0]
        return position + distance

    def vector_at(self, position: int, item_size: int) -> tuple[int, int]:
        """Return (start, length) of the vector that the offset at ``position`` leads to."""
        start = self.check(self.follow(position), 4)
        length: int = _UINT32.unpack_from(self.data, start)[0]
        return self.check(start + 4, length * item_size), length

    def string_at(self, position: int) -> bytes:
        """Return the bytes of the string that the offset at ``position`` leads to."""
        start, length = self.vector_at(position, 1)
        return bytes(self.data[start : start + length])


class FlatTable:
    """A table of a :class:`FlatBuffer`; fields are named by their slots."""

    __slots__ = ("_buffer", "_fields", "_position", "_vtable")

    def __init__(self, buffer: FlatBuffer, position: int) -> None:
        self._buffer = buffer
        self._position = buffer.check(position, 4)
        vtable = position - _INT32.unpack_from(buffer.data, position)[0]
        size: int = _UINT16.unpack_from(buffer.data, buffer.check(vtable, 4))[0]
        if size < 4 or size % 2:
            raise buffer.damaged(f"the table at {position} has a description of {size} bytes")
        self._vtable = buffer.check(vtable, size)
        self._fields = size // 2 - 2

    def _field(self, slot: int) -> int:
        """Return the position of a field, 0 if it is absent."""
        if slot >= self._fields:
            return 0
        offset: int = _UINT16.unpack_from(self._buffer.data, self._vtable + 4 + 2 * slot)[0]
        return self._position + offset if offset else 0

    def scalar(self, slot: int, code: str, default: Any = 0) -> Any:
        """Return a number; ``code`` is the character of its type in :mod:`struct`."""
        position = self._field(slot)
        if not position:
            return default
        kind = _SCALARS[code]
        return kind.unpack_from(self._buffer.data, self._buffer.check(position, kind.size))[0]

    def table(self, slot: int) -> FlatTable | None:
        """Return a table, or None if it is absent."""
        position = self._field(slot)
        return self._buffer.table_at(position) if position else None

    def tables(self, slot: int) -> list[FlatTable]:
        """Return the tables of a vector; an absent one is empty."""
        return [self._buffer.table_at(position) for position in self._items(slot)]

    def text(self, slot: int) -> str:
        """Return a string; an absent one is empty. Bytes that are not UTF-8 are surrogates."""
        position = self._field(slot)
        return self._buffer.string_at(position).decode("utf-8", "surrogateescape") if position else ""

    def name(self, slot: int, what: str) -> str:
        """Return a string that must be there, and UTF-8.

        Raises:
            ModelFormatError: it is not.
        """
        position = self._field(slot)
        if not position:
            raise self._buffer.damaged(f"{what} is missing")
        return _utf8(self._buffer.string_at(position), what, self._buffer)

    def texts(self, slot: int) -> tuple[str, ...]:
        """Return the strings of a vector. Bytes that are not UTF-8 are surrogates."""
        items = self._items(slot)
        return tuple(self._buffer.string_at(position).decode("utf-8", "surrogateescape") for position in items)

    def names(self, slot: int, what: str) -> tuple[str, ...]:
        """Return the strings of a vector, which must be UTF-8."""
        return tuple(_utf8(self._buffer.string_at(position), what, self._buffer) for position in self._items(slot))

    def numbers(self, slot: int, dtype: str) -> np.ndarray[Any, Any]:
        """Return a read-only view of a vector of numbers; an absent one is empty."""
        position = self._field(slot)
        kind = np.dtype(dtype)
        if not position:
            return np.empty(0, kind)
        start, length = self._buffer.vector_at(position, kind.itemsize)
        return np.frombuffer(self._buffer.data, kind, length, start) if length else np.empty(0, kind)

    def _items(self, slot: int) -> range:
        """Return the positions of the offsets in a vector."""
        position = self._field(slot)
        if not position:
            return range(0)
        start, length = self._buffer.vector_at(position, 4)
        return range(start, start + 4 * length, 4)


def _utf8(content: bytes, what: str, buffer: FlatBuffer) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise buffer.damaged(f"{what} is {content[:40]!r}, which is not UTF-8") from None
