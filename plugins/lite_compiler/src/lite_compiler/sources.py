"""Which code this is: what has been compiled and saved by other code is not used."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from functools import cache

__all__ = ["version_of_sources"]

_OWN_FOLDER = os.path.dirname(__file__)


@cache
def version_of_sources(folder: str, *, endings: tuple[str, ...] = (".py",)) -> str:
    """A checksum and the size of the sources of a package and of this one, whose code is part of what it compiles.

    The sources rather than the package's version: an edited kernel must never meet its former self. CRC-32 rather than
    a cryptographic hash: every process that loads a saved model waits for it.

    Args:
        folder: of the package.
        endings: what the names of its sources end with.
    """
    checksum = size = 0
    for path in (*sorted(_sources(folder, endings)), *sorted(_sources(_OWN_FOLDER, (".py",)))):
        with open(path, "rb", buffering=0) as file:
            source = file.read()
        checksum = zlib.crc32(source, checksum)
        size += len(source)
    return f"{checksum:08x}-{size}"


def _sources(folder: str, endings: tuple[str, ...]) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(endings):
                yield entry.path
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _sources(entry.path, endings)
