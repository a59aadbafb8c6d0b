"""Taking .lite files apart and putting them together again, with checksums that fit.

Independent of the reader, by the layout that :mod:`lite_core.container.layout` documents: the header is the same in
every version, and rows of the table begin with name, offset, size and checksums.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any, NamedTuple

from lite_core.container.layout import ALIGNMENT, BLOCK, HEADER_SIZE

__all__ = ["Parts", "disassembled"]

_HEADER = struct.Struct("<8sIIQQQ84s")


class Parts(NamedTuple):
    """The parts of a file.

    Attributes:
        magic: the first bytes.
        version: the format version.
        producer: the producer, padded.
        table: the decoded table without its sections.
        rows: the row of each section after name, offset, size and checksums.
        contents: the bytes of each section.
    """

    magic: bytes
    version: int
    producer: bytes
    table: dict[str, Any]
    rows: dict[str, list[Any]]
    contents: dict[str, bytes]

    def assembled(self) -> bytes:
        """Return the file."""
        body = bytearray(HEADER_SIZE)
        rows = []
        usual = next(iter(self.rows.values()), [])
        for name, content in self.contents.items():
            body += bytes(-len(body) % ALIGNMENT)
            checksums = [zlib.crc32(content[start : start + BLOCK]) for start in range(0, len(content), BLOCK)]
            rows.append([name, len(body), len(content), checksums, *self.rows.get(name, usual)])
            body += content
        return self.with_table(bytes(body), json.dumps({**self.table, "sections": rows}).encode())

    def with_table(self, body: bytes, table: bytes) -> bytes:
        """Return the file of a body, which begins with room for the header, and any bytes as table."""
        body += bytes(-len(body) % ALIGNMENT)
        numbers = (self.version, zlib.crc32(table), len(body) + len(table), len(body), len(table))
        return sealed_header(_HEADER.pack(self.magic, *numbers, self.producer)) + body[HEADER_SIZE:] + table


def sealed_header(header: bytes) -> bytes:
    """Return a header with its checksum."""
    return header + struct.pack("<I", zlib.crc32(header))


def disassembled(data: bytes) -> Parts:
    """Take a file apart.

    Raises:
        ValueError: it is damaged too much.
    """
    try:
        magic, version, _, _, offset, size, producer = _HEADER.unpack_from(data)
        table = json.loads(data[offset : offset + size])
        rows = table.pop("sections")
        contents = {row[0]: data[row[1] : row[1] + row[2]] for row in rows}
        return Parts(magic, version, producer, table, {row[0]: row[4:] for row in rows}, contents)
    except (struct.error, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error
