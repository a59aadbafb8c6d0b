"""Encoding of the header, the table and the JSON of a model file; :mod:`lite_core.container.layout` describes them."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from lite_core.container.layout import CHECKSUM, HEADER, MAGIC, OPSET, Header, Table

__all__ = ["encode_header", "encode_table", "pack_nibbles", "to_json"]


def encode_header(header: Header) -> bytes:
    """Return a header as the first 128 bytes of a file."""
    version, table_checksum, file_size, table_offset, table_size, producer = header
    numbers = (version, table_checksum, file_size, table_offset, table_size)
    packed = HEADER.pack(MAGIC, *numbers, producer.encode())
    return packed + CHECKSUM.pack(zlib.crc32(packed))


def encode_table(table: Table) -> bytes:
    """Return a table as JSON."""
    rows = [list(section) for section in table.sections.values()]
    header = {"opset": OPSET, "optimized": table.optimized, "metadata": dict(table.metadata), "seal": table.seal}
    return to_json({**header, "sections": rows})


def pack_nibbles(array: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the bytes of 4-bit integers in pairs, see :class:`lite_core.ir.Nibbles`."""
    codes = array.reshape(-1).view(np.uint8) & 15
    pairs: np.ndarray[Any, np.dtype[np.uint8]] = codes[0::2].copy()
    pairs[: codes.size // 2] |= codes[1::2] << 4
    return pairs


def to_json(document: Any) -> bytes:
    """Encode compact JSON; equal documents give equal bytes."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
