"""Compiled programs on disk, so that no kernel is compiled twice on a machine.

Where they lie, and how they stay few, is :mod:`lite_core.storage`'s. The log is ``lite.opencl.cache``.
"""

from __future__ import annotations

import hashlib
import logging
import struct
from pathlib import Path

from lite_core import storage

__all__ = ["BinaryCache", "cache_folder"]

logger = logging.getLogger("lite.opencl.cache")

_MAGIC = b"LITEOCL2"
_HEADER = struct.Struct("<8s32s")  # magic, SHA-256 of the binary that follows


def cache_folder() -> Path | None:
    """The folder that binaries are kept in, or None for memory only."""
    return storage.cache_folder("opencl")


class BinaryCache:
    """Binaries in a folder, one file each. May be used by many threads and processes at once.

    Args:
        folder: made when the first entry is written; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._files = storage.DiskCache(folder, ".bin", logger)

    def read(self, key: str) -> tuple[bytes | None, bool]:
        """The binary under a key, or None; and whether there is an entry, but a damaged one."""
        entry = self._files.read(key)
        if entry is None:
            return None, False
        binary = entry[_HEADER.size :]
        if entry[: _HEADER.size] == _HEADER.pack(_MAGIC, hashlib.sha256(binary).digest()):
            return binary, False
        logger.warning("%s is damaged: the kernel is built again", self._files.path(key))
        return None, True

    def write(self, key: str, binary: bytes) -> None:
        """Keep a binary. Who reads at the same time finds a whole entry or none."""
        self._files.write(key, _HEADER.pack(_MAGIC, hashlib.sha256(binary).digest()) + binary)

    def describe(self) -> str:
        """Where it is and what it holds, in words."""
        return self._files.describe()
