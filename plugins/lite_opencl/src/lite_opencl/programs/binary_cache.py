"""A cache of compiled programs on disk, so that no kernel is compiled twice on a machine.

:mod:`lite_core.storage` decides about the folder, :mod:`lite_compiler.disk_cache` keeps its size limit. The log is
``lite.opencl.cache``.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from pathlib import Path

from lite_compiler.disk_cache import DiskCache
from lite_core import storage

__all__ = ["BinaryCache", "cache_folder"]

logger = logging.getLogger("lite.opencl.cache")

_MAGIC = b"LITEOCL2"
_HEADER = struct.Struct("<8s32s")  # magic, SHA-256 of the binary that follows


def cache_folder() -> Path | None:
    """Return the folder of cached binaries, or None to keep them in memory only."""
    return storage.cache_folder("opencl")


class BinaryCache:
    """Binaries in a folder, one file each. Safe to use from many threads and processes at once.

    Args:
        folder: created when the first entry is written; None disables the cache.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._files = DiskCache(folder, ".bin", logger)

    def read(self, key: str) -> tuple[bytes | None, bool]:
        """Return the binary under a key, or None, and True if the entry exists but is damaged."""
        entry = self._files.read(key)
        if entry is None:
            return None, False
        binary = entry[_HEADER.size :]
        if entry[: _HEADER.size] == _HEADER.pack(_MAGIC, hashlib.sha256(binary).digest()):
            return binary, False
        logger.warning("%s is damaged; the kernel is built again", self._files.path(key))
        return None, True

    def write(self, key: str, binary: bytes) -> None:
        """Store a binary. A concurrent reader finds a complete entry or none."""
        self._files.write(key, _HEADER.pack(_MAGIC, hashlib.sha256(binary).digest()) + binary)

    def describe(self) -> str:
        """Return a description of the folder and its content."""
        return self._files.describe()
