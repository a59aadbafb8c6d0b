"""Versions of source code, so that programs compiled and saved by other code are not used."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from functools import cache

__all__ = ["version_of_sources"]

_OWN_FOLDER = os.path.dirname(__file__)


@cache
def version_of_sources(folder: str, *, endings: tuple[str, ...] = (".py",)) -> str:
    """Return the checksum and the size of the source files of a package and of lite_compiler.

    The sources of lite_compiler count because its code decides what a backend compiles. A checksum is used instead of
    the package's version because a kernel may be edited without a new version. It is CRC-32, not a cryptographic hash,
    because every process that loads a saved model waits for it.

    Args:
        folder: the folder of the package.
        endings: the suffixes of its source files.
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
