"""Size-limited caches on disk of what a compiler made or measured: kernels, programs, tunings.

A cache failure never fails a run: an entry that cannot be read is regenerated, an entry that cannot be written is
dropped, and the log reports it. Above the size limit, the least recently used entries are evicted. The folder and the
limit are the user's choice, see :mod:`lite_core.storage`.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
import time
from pathlib import Path

from lite_core.forking import new_lock
from lite_core.private_files import open_private, unsafe_reason, write_private
from lite_core.storage import cache_limit

__all__ = ["DiskCache"]

#: A full folder is reduced to the first share of its limit; its size is checked again after writing the second share.
_KEPT_SHARE, _UNCHECKED_SHARE = 3 / 4, 1 / 8

#: Resolution of the last-use time, which is the file's modification time: most reads then write nothing.
_USE_SECONDS = 3600.0

#: Temporary files and locks live for seconds; an older one was left by a process that died.
#: NOTE: process ids cannot be compared instead: containers that share the folder have separate ids.
_ABANDONED_SECONDS, _TEMPORARY_SUFFIXES = 3600.0, (".tmp", ".lock")

_warned: set[Path | None] = set()  # folders


class DiskCache:
    """Named entries in a folder, one file each. Any number of threads and processes of a user may share it.

    A folder that other users can change is not used; neither is an entry that they can change, or a file of another
    kind at its place.

    Args:
        folder: created when the first entry is written; None disables the cache.
        suffix: of the entries' files, including the dot. Other files in the folder are left alone.
        logger: receives one warning per process if the folder, or an entry, cannot be used.
    """

    def __init__(self, folder: Path | None, suffix: str, logger: logging.Logger) -> None:
        self.folder = folder and folder.absolute()  # a relative folder would move with the working folder
        self._suffix = suffix
        self._logger = logger
        self._lock = new_lock()
        self._unchecked_bytes = 0.0  # may still be written before the folder's size is checked

    def path(self, name: str) -> Path:
        """Return the path of an entry's file, which need not exist. Requires a folder."""
        assert self.folder is not None
        return self.folder / f"{name}{self._suffix}"

    def read(self, name: str) -> bytes | None:
        """Return the content of an entry, or None if it is missing or cannot be read."""
        if self.folder is None:
            return None
        path = self.path(name)
        try:
            with open(open_private(path), "rb", buffering=0) as file:
                content = file.read()
                last_used = os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            self.warn_once(error)
            return None
        if time.time() - last_used > _USE_SECONDS:
            with contextlib.suppress(OSError):  # the folder may belong to root
                os.utime(path)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Store an entry atomically: a concurrent reader finds all of it or nothing."""
        if self.folder is None:
            return
        try:
            write_private(self.path(name), content)
            with self._lock:
                self._unchecked_bytes -= len(content)
                if self._unchecked_bytes < 0:
                    self._evict(self.folder)
        except OSError as error:
            self.warn_once(error)

    def describe(self) -> str:
        """Return a one-line summary: the folder, the number of entries and their size."""
        if self.folder is None:
            return "kept in memory only (LITE_CACHE_DIR is off)"
        if reason := unsafe_reason(self.folder):
            return f"{self.folder}, which is not used: {reason}"
        try:
            sizes = [path.lstat().st_size for path in self.folder.glob(f"*{self._suffix}")]
        except OSError as error:
            return f"{self.folder}, which cannot be read: {error}"
        limit = cache_limit()
        most = "" if math.isinf(limit) else f" of at most {limit / 2**20:.0f} MiB"
        return f"{len(sizes)} with {sum(sizes) / 2**20:.1f} MiB{most} in {self.folder}"

    def warn_once(self, error: OSError) -> None:
        """Log once per process that the folder, or an entry, cannot be used, so that entries have to be regenerated."""
        if self.folder not in _warned:
            _warned.add(self.folder)
            self._logger.warning(
                "%s cannot be used (%s): what is made stays in memory. Set LITE_CACHE_DIR to another folder",
                self.folder,
                error,
            )

    def _evict(self, folder: Path) -> None:
        """Remove files that dead processes left and, above the limit, the least recently used entries.

        Processes that do this at the same time choose the same entries. A file that another process removed first
        counts as removed; a file that cannot be removed stays.
        """
        limit, now = cache_limit(), time.time()
        entries: list[tuple[float, int, str]] = []
        with os.scandir(folder) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    status = file.stat(follow_symlinks=False)
                    if file.name.endswith(self._suffix):
                        entries.append((status.st_mtime, status.st_size, file.path))
                    elif file.name.endswith(_TEMPORARY_SUFFIXES) and now - status.st_mtime > _ABANDONED_SECONDS:
                        _remove(file.path)
        held = sum(size for _, size, _ in entries)
        if held > limit:
            for _, size, path in sorted(entries):
                if held <= _KEPT_SHARE * limit:
                    break
                held -= size * _remove(path)
            self._logger.info(
                "%s was over its limit of %.0f MiB: %.1f MiB are left", folder, limit / 2**20, held / 2**20
            )
        self._unchecked_bytes = _UNCHECKED_SHARE * limit


def _remove(path: str) -> bool:
    """Remove a file; return True if it no longer exists. On Windows, files in use cannot be removed yet."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True
