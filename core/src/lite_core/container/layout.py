"""The bytes of a model file: header, sections, table.

All numbers are little-endian. The header, 128 bytes, is the same in every version of the format::

    offset  size  field
         0     8  magic, 89 4C 49 54 45 0D 0A 1A
         8     4  format version
        12     4  checksum of the table
        16     8  size of the file in bytes
        24     8  offset of the table
        32     8  size of the table
        40    84  producer, UTF-8, filled up with zeros
       124     4  checksum of the 124 bytes before

Sections follow, each at a multiple of 64, then the table, which is JSON::

    {"opset": 22, "optimized": true, "metadata": {"key": "value", ...},
     "sections": [[name, offset, size, [checksum, ...]], ...]}

Checksums are CRC-32 as in zlib; a section has one for each 4 MiB, so that threads can share it out. The sections of
every file are ``graph`` (JSON, see :mod:`lite_core.container.graph_codec`), ``constants/0``, ``constants/1``, ... (the
elements of one array each, row by row) and ``targets`` (JSON, see :mod:`lite_core.container.targets_codec`); what
backends saved is in others: ``saved/0``, ``saved/1``, ...
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from lite_core.container.records import Section
from lite_core.container.upgrades import UPGRADES, upgraded
from lite_core.errors import ModelFormatError
from lite_core.version import __version__

__all__ = [
    "ALIGNMENT",
    "BLOCK",
    "FORMAT_VERSION",
    "HEADER_SIZE",
    "MAGIC",
    "OPSET",
    "Header",
    "Table",
    "constant_section",
    "from_json",
    "to_json",
]

FORMAT_VERSION = 1
#: The version of ONNX's operator set that graphs are written in.
OPSET = 22
#: As PNG's: no text file begins so, and a transfer that changes line ends shows.
MAGIC = b"\x89LITE\r\n\x1a"
#: Sections begin at multiples of this, so that vectors of any machine can be loaded from a mapped file.
ALIGNMENT = 64
#: So many bytes of a section have a checksum of their own.
BLOCK = 4 << 20

_HEADER = struct.Struct("<8sIIQQQ84s")
_CHECKSUM = struct.Struct("<I")
HEADER_SIZE = _HEADER.size + _CHECKSUM.size

PRODUCER = f"lite-core {__version__}"


def to_json(document: Any) -> bytes:
    """Compact JSON, the same for the same document."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode()


def from_json(data: bytes | memoryview) -> Any:
    """What JSON says.

    Raises:
        ValueError: it is not JSON in UTF-8, has NaN for a number, or is nested too deep.
    """

    def refuse(text: str) -> Any:
        raise ValueError(f"{text} is not a number of JSON")

    try:
        return json.loads(str(data, "utf-8"), parse_constant=refuse)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def constant_section(number: int) -> str:
    """The name of the section with array ``number``."""
    return f"constants/{number}"


class Header(NamedTuple):
    """The first 128 bytes of a file."""

    version: int
    table_checksum: int
    file_size: int
    table_offset: int
    table_size: int
    producer: str = PRODUCER

    def pack(self) -> bytes:
        """The bytes."""
        numbers = (self.version, self.table_checksum, self.file_size, self.table_offset, self.table_size)
        packed = _HEADER.pack(MAGIC, *numbers, self.producer.encode())
        return packed + _CHECKSUM.pack(zlib.crc32(packed))

    @staticmethod
    def parse(data: bytes) -> Header:
        """The header at the beginning of a file, checked by itself.

        Raises:
            ModelFormatError: it is no ``.lite`` file, damaged, or of a version that cannot be read here.
        """
        if not data.startswith(MAGIC):
            raise ModelFormatError(f"it is not a .lite file: it begins with {data[:8]!r}")
        if len(data) < HEADER_SIZE:
            raise ModelFormatError(f"it is cut off after {len(data)} bytes, within the header; copy it again")
        if _CHECKSUM.unpack_from(data, _HEADER.size)[0] != zlib.crc32(data[: _HEADER.size]):
            raise ModelFormatError("its header is damaged (the checksum does not fit); copy it again")
        _, version, checksum, file_size, offset, size, producer = _HEADER.unpack_from(data)
        header = Header(version, checksum, file_size, offset, size, producer.rstrip(b"\0").decode("utf-8", "replace"))
        if header.version > FORMAT_VERSION:
            raise ModelFormatError(header._newer(f"format {header.version}", f"up to {FORMAT_VERSION}"))
        if not all(version in UPGRADES for version in range(header.version, FORMAT_VERSION)):
            raise ModelFormatError(
                f"it is of format {header.version}, written by {header.producer}; {PRODUCER} cannot read that any "
                "more: convert the model again"
            )
        return header

    def _newer(self, found: str, known: str) -> str:
        writer = f"it was written by {self.producer}, {found}"
        return f"{writer}; this is {PRODUCER}, which reads {known}: pip install -U lite-core"

    def check_size(self, size: int) -> None:
        """Raises ModelFormatError where a file of ``size`` bytes is not all there, or the table lies outside it."""
        if size != self.file_size:
            state = "cut off" if size < self.file_size else "too long"
            raise ModelFormatError(f"it is {state}: it has {size} bytes, {self.file_size} expected; copy it again")
        if self.table_offset < HEADER_SIZE or self.table_offset + self.table_size > size:
            raise ModelFormatError("its table lies outside the file; it was not written by Lite: convert it again")


class Table(NamedTuple):
    """What a file holds, by name of the section, and what it says about itself."""

    sections: Mapping[str, Section]
    metadata: Mapping[str, str]
    optimized: bool

    def pack(self) -> bytes:
        """The JSON."""
        rows = [[s.name, s.offset, s.size, s.checksums] for s in self.sections.values()]
        header = {"opset": OPSET, "optimized": self.optimized, "metadata": dict(self.metadata)}
        return to_json({**header, "sections": rows})

    @staticmethod
    def parse(data: memoryview, header: Header) -> Table:
        """The table of a file.

        Raises:
            ModelFormatError: it is damaged, names sections that cannot be, or an operator set that is newer.
        """
        if zlib.crc32(data) != header.table_checksum:
            raise ModelFormatError("its table is damaged (the checksum does not fit); copy it again")
        try:
            document = upgraded("table", from_json(data), header.version, FORMAT_VERSION)
            opset, optimized, metadata = document["opset"], document["optimized"], document["metadata"]
            if type(opset) is not int or type(optimized) is not bool:
                raise ValueError("'opset' must be a number, 'optimized' true or false")
            if not all(type(value) is str for value in metadata.values()):
                raise ValueError("'metadata' must hold texts only")
            sections = _sections(document["sections"], header)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ModelFormatError(f"its table is not valid ({type(error).__name__}: {error})") from error
        if opset > OPSET:
            raise ModelFormatError(header._newer(f"operator set {opset}", f"operator sets up to {OPSET}"))
        return Table(sections, metadata, optimized)


def _sections(rows: Any, header: Header) -> dict[str, Section]:
    """Sections by name: in the file, aligned, apart from one another, from the header and from the table."""
    sections: dict[str, Section] = {}
    for name, offset, size, checksums in rows:
        if type(name) is not str or name in sections:
            raise ValueError(f"a section's name must be a text and unique, is {name!r}")
        if not all(type(n) is int and n >= 0 for n in (offset, size, *checksums)) or offset % ALIGNMENT:
            raise ValueError(f"section {name!r}: offset (a multiple of {ALIGNMENT}), size are {offset}, {size}")
        if len(checksums) != -(-size // BLOCK):
            raise ValueError(
                f"section {name!r} has {len(checksums)} checksums, there must be one for each {BLOCK} bytes"
            )
        sections[name] = Section(name, offset, size, tuple(checksums))
    end = HEADER_SIZE
    table = Section("table", header.table_offset, header.table_size, ())
    for section in sorted([*sections.values(), table], key=lambda s: (s.offset, s.size)):
        if section.offset < end:
            raise ValueError(f"section {section.name!r} overlaps what is before it")
        end = section.offset + section.size
    if end > header.file_size:
        raise ValueError(f"a section ends at {end}, the file at {header.file_size}")
    return sections
