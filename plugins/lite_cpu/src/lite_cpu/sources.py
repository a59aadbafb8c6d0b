"""Which code this is: what has been compiled and saved by other code is not used."""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Iterator

__all__ = ["sources_version"]


@functools.cache
def sources_version() -> str:
    """A checksum and the size of this package's sources.

    The sources rather than the package's version: an edited kernel must never meet its former self. CRC-32 rather than
    a cryptographic hash: every process that loads a saved model waits for it.
    """
    checksum = size = 0
    for path in sorted(_sources(os.path.dirname(__file__))):
        with open(path, "rb", buffering=0) as file:
            source = file.read()
        checksum = zlib.crc32(source, checksum)
        size += len(source)
    return f"{checksum:08x}-{size}"


def _sources(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path)
