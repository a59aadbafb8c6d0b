"""The binary layout of a model file: header, sections, table.

All numbers are little-endian. The header, 128 bytes, is the same in every version of the format::

    offset  size  field
         0     8  magic, 89 4C 49 54 45 0D 0A 1A
         8     4  format version
        12     4  checksum of the table
        16     8  size of the file in bytes
        24     8  offset of the table
        32     8  size of the table
        40    84  producer, UTF-8, padded with zeros
       124     4  checksum of the preceding 124 bytes

Sections follow, each at a multiple of 64 bytes, then the table, which is JSON::

    {"opset": 22, "optimized": true, "metadata": {"key": "value", ...}, "seal": "4f1d...",
     "sections": [[name, offset, size, [checksum, ...], sealed], ...]}

Checksums are CRC-32 as in zlib; a section has one for each 4 MiB, so that threads can verify it in parallel. Every file
has the sections ``graph`` (JSON, see :mod:`lite_core.container.graph_decoder`), ``constants/0``, ``constants/1``, ...
(the elements of one array each, in row-major order unless the graph lists another, 4-bit integers as
:class:`~lite_core.ir.Nibbles`) and ``targets`` (JSON, see :mod:`lite_core.container.targets_decoder`).
Saved state of backends is in further sections: code and its tables in
``code/0``, ``code/1``, ..., weights in ``weights/0``, ...

The seal, see :mod:`lite_core.container.trust`, covers the sections that are marked as sealed: graph, targets, code, and
the constants that may be sizes or indices, because compiled code may rely on them.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from lite_core.container.records import Section
from lite_core.container.upgrades import UPGRADES, upgrade
from lite_core.errors import ModelFormatError
from lite_core.version import __version__

__all__ = [
    "ALIGNMENT",
    "BLOCK",
    "CHECKSUM",
    "FORMAT_VERSION",
    "HEADER",
    "HEADER_SIZE",
    "MAGIC",
    "OPSET",
    "PRODUCER",
    "WEIGHTS",
    "Header",
    "Table",
    "constant_section",
    "from_json",
]

FORMAT_VERSION = 2
#: The version of the ONNX operator set of the graphs.
OPSET = 22
#: Built like PNG's: no text file begins with it, and a transfer that changes line ends damages it.
MAGIC = b"\x89LITE\r\n\x1a"
#: Alignment of sections, sufficient for vector loads of any machine from a mapped file.
ALIGNMENT = 64
#: Bytes of a section that share one checksum.
BLOCK = 4 << 20

#: Beginning of the names of sections that hold weights, which the seal does not cover.
WEIGHTS = "weights/"

#: Size limit of a JSON document; those of networks with thousands of nodes have megabytes.
_MOST_JSON = 1 << 28

#: The fields of the header, and the checksum after them.
HEADER = struct.Struct("<8sIIQQQ84s")
CHECKSUM = struct.Struct("<I")
HEADER_SIZE = HEADER.size + CHECKSUM.size

PRODUCER = f"lite-core {__version__}"


def from_json(data: bytes | memoryview) -> Any:
    """Decode JSON.

    Raises:
        ValueError: the data are huge, not JSON in UTF-8, contain NaN as a number, or are nested too deep.
    """

    def reject(text: str) -> Any:
        raise ValueError(f"{text} is not a number of JSON")

    try:
        return json.loads(str(data[:_MOST_JSON], "utf-8"), parse_constant=reject)  # cut off, it is no JSON
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def constant_section(number: int) -> str:
    """Return the name of the section with array ``number``."""
    return f"constants/{number}"


class Header(NamedTuple):
    """The first 128 bytes of a file."""

    version: int
    table_checksum: int
    file_size: int
    table_offset: int
    table_size: int
    producer: str = PRODUCER

    @staticmethod
    def parse(data: bytes) -> Header:
        """Parse and check the header at the beginning of a file.

        Raises:
            ModelFormatError: the file is not a ``.lite`` file, is damaged, or is of a version that cannot be read.
        """
        if not data.startswith(MAGIC):
            raise ModelFormatError(f"it is not a .lite file: it begins with {data[:8]!r}")
        if len(data) < HEADER_SIZE:
            raise ModelFormatError(f"it is cut off after {len(data)} bytes, within the header; copy it again")
        if CHECKSUM.unpack_from(data, HEADER.size)[0] != zlib.crc32(data[: HEADER.size]):
            raise ModelFormatError("its header is damaged (the checksum does not fit); copy it again")
        _, version, checksum, file_size, offset, size, producer = HEADER.unpack_from(data)
        header = Header(version, checksum, file_size, offset, size, producer.rstrip(b"\0").decode("utf-8", "replace"))
        if header.version > FORMAT_VERSION:
            raise ModelFormatError(header._newer_than_known(f"format {header.version}", f"up to {FORMAT_VERSION}"))
        if not all(version in UPGRADES for version in range(header.version, FORMAT_VERSION)):
            raise ModelFormatError(
                f"it is of format {header.version}, written by {header.producer}; {PRODUCER} cannot read that any "
                "more: convert the model again"
            )
        return header

    def _newer_than_known(self, found: str, known: str) -> str:
        writer = f"it was written by {self.producer}, {found}"
        return f"{writer}; this is {PRODUCER}, which reads {known}: pip install -U lite-core"

    def check_size(self, size: int) -> None:
        """Raise ModelFormatError if a file of ``size`` bytes is incomplete, or the table is outside it."""
        if size != self.file_size:
            state = "cut off" if size < self.file_size else "too long"
            raise ModelFormatError(f"it is {state}: it has {size} bytes, {self.file_size} expected; copy it again")
        if not HEADER_SIZE <= self.table_offset <= size - self.table_size or self.table_size > _MOST_JSON:
            raise ModelFormatError("its table is outside the file or huge; it is not from Lite: convert it again")


class Table(NamedTuple):
    """The table of a file: sections by name, metadata, a flag that is True if the graph is optimized, and the seal."""

    sections: Mapping[str, Section]
    metadata: Mapping[str, str]
    optimized: bool
    seal: str = ""

    @staticmethod
    def parse(data: memoryview, header: Header) -> Table:
        """Parse and check the table of a file.

        Raises:
            ModelFormatError: it is damaged, has invalid sections, or needs a newer operator set.
        """
        if zlib.crc32(data) != header.table_checksum:
            raise ModelFormatError("its table is damaged (the checksum does not fit); copy it again")
        try:
            document = upgrade("table", from_json(data), header.version, FORMAT_VERSION)
            opset, optimized, metadata = document["opset"], document["optimized"], document["metadata"]
            seal = document["seal"]
            if type(opset) is not int or type(optimized) is not bool:
                raise ValueError("'opset' must be a number, 'optimized' true or false")
            if not all(type(value) is str for value in (seal, *metadata.values())):
                raise ValueError("'metadata' and 'seal' must hold texts only")
            sections = _sections(document["sections"], header)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ModelFormatError(f"its table is not valid ({type(error).__name__}: {error})") from error
        if opset > OPSET:
            raise ModelFormatError(header._newer_than_known(f"operator set {opset}", f"operator sets up to {OPSET}"))
        return Table(sections, metadata, optimized, seal)


def _sections(rows: Any, header: Header) -> dict[str, Section]:
    """Parse and check the sections: inside the file, aligned, not overlapping each other, the header or the table."""
    sections: dict[str, Section] = {}
    for name, offset, size, checksums, sealed in rows:
        if type(name) is not str or name in sections:
            raise ValueError(f"a section's name must be a text and unique, is {name!r}")
        if not all(type(n) is int and n >= 0 for n in (offset, size, *checksums)) or offset % ALIGNMENT:
            raise ValueError(f"section {name!r}: offset (a multiple of {ALIGNMENT}), size are {offset}, {size}")
        if len(checksums) != -(-size // BLOCK):
            raise ValueError(f"section {name!r} has {len(checksums)} checksums, expected one for each {BLOCK} bytes")
        sections[name] = Section(name, offset, size, tuple(checksums), sealed is True)
    end = HEADER_SIZE
    table = Section("table", header.table_offset, header.table_size, ())
    for section in sorted([*sections.values(), table], key=lambda s: (s.offset, s.size)):
        if section.offset < end:
            raise ValueError(f"section {section.name!r} overlaps what is before it")
        end = section.offset + section.size
    if end > header.file_size:
        raise ValueError(f"a section ends at {end}, the file at {header.file_size}")
    return sections
