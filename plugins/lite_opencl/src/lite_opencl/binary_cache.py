"""Compiled programs on disk, so that no kernel is compiled twice on a machine.

The cache never fails a run: what cannot be read is built again, what cannot be written stays in memory, and the log
(``lite.opencl.cache``) says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import struct
import threading
from pathlib import Path

__all__ = ["BinaryCache", "cache_folder"]

logger = logging.getLogger("lite.opencl.cache")

_MAGIC = b"LITEOCL2"
_HEADER = struct.Struct("<8s32s")  # magic, SHA-256 of the binary that follows


def cache_folder() -> Path | None:
    """The folder that binaries are kept in, or None for memory only.

    It is below ``LITE_CACHE_DIR`` where that is set, else below the user's cache folder. ``LITE_CACHE_DIR`` set to
    nothing or to ``off`` keeps programs in memory only.
    """
    chosen = os.environ.get("LITE_CACHE_DIR")
    if chosen is None:
        import platformdirs

        chosen = platformdirs.user_cache_dir("lite", appauthor=False)
    return Path(chosen) / "opencl" if chosen not in ("", "off") else None


class BinaryCache:
    """Binaries in a folder, one file each. May be used by many threads and processes at once.

    Args:
        folder: made when the first entry is written; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._complained = False

    def read(self, key: str) -> tuple[bytes | None, bool]:
        """The binary under a key, or None; and whether there is an entry, but a damaged one."""
        if self.folder is None:
            return None, False
        path = self._path(self.folder, key)
        try:
            entry = path.read_bytes()
        except FileNotFoundError:
            return None, False
        except OSError as error:
            self._complain(error)
            return None, False
        binary = entry[_HEADER.size :]
        if entry[: _HEADER.size] == _HEADER.pack(_MAGIC, hashlib.sha256(binary).digest()):
            return binary, False
        logger.warning("%s is damaged: the kernel is built again", path)
        return None, True

    def write(self, key: str, binary: bytes) -> None:
        """Keep a binary. Who reads at the same time finds a whole entry or none."""
        if self.folder is None:
            return
        path = self._path(self.folder, key)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.tmp")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(_HEADER.pack(_MAGIC, hashlib.sha256(binary).digest()) + binary)
            os.replace(temporary, path)
        except OSError as error:
            self._complain(error)
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def describe(self) -> str:
        """Where it is and what it holds, in words."""
        if self.folder is None:
            return "kept in memory only (LITE_CACHE_DIR is off)"
        try:
            sizes = [path.stat().st_size for path in self.folder.glob("*.bin")]
        except OSError as error:
            return f"{self.folder}, which cannot be read: {error}"
        return f"{len(sizes)} with {sum(sizes) / 2**20:.1f} MiB in {self.folder}"

    @staticmethod
    def _path(folder: Path, key: str) -> Path:
        return folder / f"{key}.bin"

    def _complain(self, error: OSError) -> None:
        """Say once that the folder is of no use; kernels are then built by every process that needs them."""
        if not self._complained:
            self._complained = True
            logger.warning(
                "%s cannot be used (%s); kernels stay in memory. Set LITE_CACHE_DIR to another folder",
                self.folder,
                error,
            )
