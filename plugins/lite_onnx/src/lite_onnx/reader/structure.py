"""The structure of a model file: the fields of its messages, without what they contain.

Protocol buffers are parsed from memory, so a whole file must be read first. Walking over the fields of the model and
of its graph reads only a few bytes of each: enough to refuse a file that is huge and empty, and to tell where the
damage of a damaged one begins.
"""

from __future__ import annotations

import mmap
from pathlib import Path

__all__ = ["FIXED_BYTES", "LENGTH_DELIMITED", "VARINT", "first_damage", "read_varint"]

#: Field of ModelProto that contains the graph.
_GRAPH = 7
#: Bytes of the fields of fixed size, by wire type.
FIXED_BYTES = {1: 8, 5: 4}
#: Wire types.
VARINT, LENGTH_DELIMITED = 0, 2


def first_damage(path: Path) -> int | None:
    """Return the offset of the first field of the model, or of its graph, that is no field; None if all are intact.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is empty.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _first_damage(data, 0, len(data), is_model=True)


def _first_damage(data: mmap.mmap, offset: int, end: int, *, is_model: bool) -> int | None:
    while offset < end:
        start = offset
        tag, offset = read_varint(data, offset, end)
        number, wire_type = tag >> 3, tag & 7
        length = FIXED_BYTES.get(wire_type, 0)
        if wire_type in (VARINT, LENGTH_DELIMITED):
            value, offset = read_varint(data, offset, end)
            length = value if wire_type == LENGTH_DELIMITED else 0
        elif not length:
            return start
        if not number or not 0 <= offset <= end - length:
            return start
        if is_model and number == _GRAPH and wire_type == LENGTH_DELIMITED:
            damage = _first_damage(data, offset, offset + length, is_model=False)
            if damage is not None:
                return damage
        offset += length
    return None


def read_varint(data: mmap.mmap, offset: int, end: int) -> tuple[int, int]:
    """Return the number at an offset and the offset after it, which is beyond the end if there is no number."""
    value = 0
    for shift in range(0, 70, 7):
        if offset < 0 or offset >= end:
            break
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, offset
    return 0, end + 1
