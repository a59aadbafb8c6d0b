"""Large tensors inside a model file: they are mapped, and the protocol buffer is parsed without them.

A parsed message has copies of its tensors, and making arrays of them copies them again. So the bytes of each large
``raw_data`` are replaced by a short reference before the message is parsed. :meth:`StoredTensors.find` turns a
reference into the mapped bytes, whose pages are read on first use.

The numbers of fields are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np

from lite_onnx.reader.structure import FIXED_BYTES, LENGTH_DELIMITED, VARINT, read_varint

__all__ = ["StoredTensors"]

Array = np.ndarray[Any, Any]

#: Smaller tensors, and messages without a larger one, are parsed.
_LEAST_BYTES = 1 << 14
_RAW_DATA = 9
#: The messages that may contain tensors: by message and field, the message in that field.
_MESSAGES = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {},
}
#: Deeper messages are parsed with their tensors.
_MOST_DEPTH = 64
_Place = Struct("<QQ")


class StoredTensors:
    """The large tensors inside a model file, which stays mapped while one of their arrays is used.

    Args:
        path: the model's file; not empty.

    Raises:
        OSError: it cannot be mapped.
    """

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        # Random, so that no content of a file is mistaken for a reference.
        self._key = os.urandom(16)

    @property
    def total_bytes(self) -> int:
        """The size of the file."""
        return len(self._data)

    def message(self) -> bytes:
        """Return the serialized model with references instead of large tensors; damaged parts stay as they are."""
        return self._shortened("model", 0, len(self._data), 0)

    def find(self, raw_data: bytes) -> Array | None:
        """Return the bytes of a tensor, read-only, if its ``raw_data`` is a reference; else None."""
        if len(raw_data) != len(self._key) + _Place.size or not raw_data.startswith(self._key):
            return None
        offset, length = _Place.unpack_from(raw_data, len(self._key))
        return np.frombuffer(self._data, np.uint8, length, offset)

    def _shortened(self, message: str, offset: int, end: int, depth: int) -> bytes:
        pieces: list[bytes] = []
        children, kept = _MESSAGES[message], offset  # bytes from ``kept`` on are not in ``pieces`` yet
        while offset < end:
            tag, offset = read_varint(self._data, offset, end)
            number, wire_type = tag >> 3, tag & 7
            if wire_type not in (VARINT, LENGTH_DELIMITED, *FIXED_BYTES):
                break
            start, length = offset, FIXED_BYTES.get(wire_type, 0)
            if wire_type in (VARINT, LENGTH_DELIMITED):
                value, offset = read_varint(self._data, offset, end)
                length = value if wire_type == LENGTH_DELIMITED else 0
            if offset + length > end:
                break
            if wire_type == LENGTH_DELIMITED and length >= _LEAST_BYTES:
                shorter = None
                if message == "tensor" and number == _RAW_DATA:
                    shorter = self._key + _Place.pack(offset, length)
                elif number in children and depth < _MOST_DEPTH:
                    shorter = self._shortened(children[number], offset, offset + length, depth + 1)
                if shorter is not None:
                    pieces += [self._data[kept:start], _varint(len(shorter)), shorter]
                    kept = offset + length
            offset += length
        return b"".join([*pieces, self._data[kept:end]])


def _varint(number: int) -> bytes:
    """Return a number as a protocol buffer stores it."""
    groups = []
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*groups, number])
