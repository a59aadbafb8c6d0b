"""Files that can be made again, in the user's cache folder: compiled kernels, which take long to make.

A cache never fails a run: what cannot be read is made again, what cannot be written is not kept, and the log says so.
It does not grow without bound either: entries that were not used for longest make room for new ones.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import threading
import time
from pathlib import Path

__all__ = ["DiskCache", "cache_folder", "cache_limit"]

#: What one folder may hold where ``LITE_CACHE_LIMIT`` does not say otherwise.
_USUAL_LIMIT_MIB = 1024

#: When a folder is full it is emptied to this share of its limit, and looked at again when that much was written.
_KEPT_SHARE, _UNCHECKED_SHARE = 3 / 4, 1 / 8

#: The time of an entry's file says when it was last used, that exactly: most reads then write nothing.
_USE_SECONDS = 3600.0

#: A temporary file or a lock that is older was left by a process that died: both are needed for seconds.
#: NOTE: not by the number of the process, which means nothing in another container that has the same folder.
_ABANDONED_SECONDS, _PASSING = 3600.0, (".tmp", ".lock")


def cache_folder(kind: str) -> Path | None:
    """The folder for one kind of entries, or None where nothing is kept on disk.

    It is below ``LITE_CACHE_DIR`` where that is set, else below the user's cache folder. ``LITE_CACHE_DIR`` set to
    nothing or to ``off`` keeps nothing on disk.
    """
    chosen = os.environ.get("LITE_CACHE_DIR")
    if chosen is None:
        import platformdirs

        chosen = platformdirs.user_cache_dir("lite", appauthor=False)
    return Path(chosen) / kind if chosen not in ("", "off") else None


def cache_limit() -> float:
    """Bytes that one folder may hold: ``LITE_CACHE_LIMIT`` in MiB, infinity where that is ``off``."""
    return 2**20 * _limit_in_mib(os.environ.get("LITE_CACHE_LIMIT", ""))


@functools.cache
def _limit_in_mib(setting: str) -> float:
    if setting == "off":
        return math.inf
    if setting and not setting.isdecimal():
        logging.getLogger("lite.cache").warning(
            "LITE_CACHE_LIMIT=%s is neither a number of MiB nor off: %d MiB are kept", setting, _USUAL_LIMIT_MIB
        )
    return float(setting) if setting.isdecimal() else _USUAL_LIMIT_MIB


class DiskCache:
    """Entries by name in a folder, one file each. Any number of threads and processes may share it.

    Args:
        folder: made when the first entry is written; None keeps nothing.
        suffix: of the entries' files, with its dot. Other files in the folder are left alone.
        logger: told once when the folder is of no use.
    """

    def __init__(self, folder: Path | None, suffix: str, logger: logging.Logger) -> None:
        self.folder = folder
        self._suffix = suffix
        self._logger = logger
        self._complained = False
        self._lock = threading.Lock()
        self._unchecked_bytes = 0.0  # that may be written before the folder's size is looked at

    def path(self, name: str) -> Path:
        """The file of an entry, whether it is there or not; only where there is a folder."""
        assert self.folder is not None
        return self.folder / f"{name}{self._suffix}"

    def read(self, name: str) -> bytes | None:
        """An entry, or None where it is not there or cannot be read."""
        if self.folder is None:
            return None
        path = self.path(name)
        try:
            with open(path, "rb") as file:
                content = file.read()
                last_used = os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return None
        except OSError as error:
            self.complain(error)
            return None
        if time.time() - last_used > _USE_SECONDS:
            with contextlib.suppress(OSError):  # the folder may be another user's
                os.utime(path)
        return content

    def write(self, name: str, content: bytes) -> None:
        """Keep an entry. Who reads at the same time finds the whole of it or nothing."""
        if self.folder is None:
            return
        path = self.path(name)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.tmp")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary.write_bytes(content)
            os.replace(temporary, path)
            with self._lock:
                self._unchecked_bytes -= len(content)
                if self._unchecked_bytes < 0:
                    self._tidy(self.folder)
        except OSError as error:
            self.complain(error)
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)

    def describe(self) -> str:
        """Where it is and what it holds, in words."""
        if self.folder is None:
            return "kept in memory only (LITE_CACHE_DIR is off)"
        try:
            sizes = [path.stat().st_size for path in self.folder.glob(f"*{self._suffix}")]
        except OSError as error:
            return f"{self.folder}, which cannot be read: {error}"
        limit = cache_limit()
        most = "" if math.isinf(limit) else f" of at most {limit / 2**20:.0f} MiB"
        return f"{len(sizes)} with {sum(sizes) / 2**20:.1f} MiB{most} in {self.folder}"

    def complain(self, error: OSError) -> None:
        """Say once that the folder is of no use: every process then makes for itself what it needs."""
        if not self._complained:
            self._complained = True
            self._logger.warning(
                "%s cannot be used (%s): what is compiled stays in memory. Set LITE_CACHE_DIR to another folder",
                self.folder,
                error,
            )

    def _tidy(self, folder: Path) -> None:
        """Remove what dead processes left and, where there is too much, the entries not used for longest.

        Processes that do this at the same time choose the same ones. What another one removes first is as good as
        removed; what cannot be removed stays.
        """
        limit, now = cache_limit(), time.time()
        entries: list[tuple[float, int, str]] = []
        with os.scandir(folder) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    status = file.stat()
                    if file.name.endswith(self._suffix):
                        entries.append((status.st_mtime, status.st_size, file.path))
                    elif file.name.endswith(_PASSING) and now - status.st_mtime > _ABANDONED_SECONDS:
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
    """Whether a file is gone. Where files in use cannot be removed (Windows), they go another time."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True
