"""Copies of model files with other metadata."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from pathlib import Path

from lite_core.container import ModelFile
from lite_core.container.layout import FORMAT_VERSION, HEADER_SIZE, Header, Table
from lite_core.errors import ModelFormatError
from lite_tools.writing.layout_encoder import encode_header, encode_table
from lite_tools.writing.model_file import new_file

__all__ = ["write_with_metadata"]


def write_with_metadata(path: str | os.PathLike[str], file: ModelFile, changes: Mapping[str, str]) -> None:
    """Write a copy of a model file with entries added to its metadata.

    Everything else is copied byte by byte: prepared plans stay valid, and trusted code stays trusted.

    Args:
        path: path of the copy, which may be that of the file itself.
        file: the file.
        changes: the entries, which replace those of the same names.

    Raises:
        ModelFormatError: the file is damaged or of an older format, or the copy cannot be written.
    """
    if file.format_version != FORMAT_VERSION:
        raise ModelFormatError(
            f"{str(file.path)!r} is of format {file.format_version}, and only files of format {FORMAT_VERSION} can be "
            "copied with other metadata: convert the model again"
        )
    content = file.path.read_bytes()
    header = Header.parse(content[:HEADER_SIZE])
    header.check_size(len(content))
    begin, size = header.table_offset, header.table_size
    table = Table.parse(memoryview(content)[begin : begin + size], header)
    packed = encode_table(table._replace(metadata={**table.metadata, **changes}))
    # The table is the last part of a file.
    changed = header._replace(table_checksum=zlib.crc32(packed), file_size=begin + len(packed), table_size=len(packed))
    with new_file(Path(path)) as stream:
        stream.write(encode_header(changed))
        stream.write(memoryview(content)[HEADER_SIZE:begin])
        stream.write(packed)
