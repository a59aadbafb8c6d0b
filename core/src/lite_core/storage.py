"""The user's files on disk: the size-limited cache folder and the configuration file.

The cache holds files that can be regenerated, such as compiled kernels. A cache failure never fails a run: an entry
that cannot be read is regenerated, an entry that cannot be written is dropped, and the log reports it. The size of the
cache is limited: the least recently used entries are evicted.

The configuration is the JSON object in ``config.json`` in the user's configuration folder::

    {"cache_folder": "/data/me/lite", "cache_limit_mib": 4096}

Environment variables override it. Each plugin keeps its settings under a separate name.

Cache and configuration are used only where no other user can change them (:mod:`lite_core.private_files`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lite_core.forking import new_lock
from lite_core.private_files import make_private_folder, open_private, read_private, unsafe_reason, write_private

__all__ = [
    "DiskCache",
    "cache_folder",
    "cache_limit",
    "configuration",
    "configuration_folder",
    "make_private_folder",
    "open_private",
    "read_private",
    "remove_abandoned",
    "unsafe_reason",
    "write_private",
]

logger = logging.getLogger("lite.storage")

#: Size limit of one folder unless ``LITE_CACHE_LIMIT`` or the configuration sets another.
_DEFAULT_LIMIT_MIB = 1024

#: A full folder is reduced to the first share of its limit; its size is checked again after writing the second share.
_KEPT_SHARE, _UNCHECKED_SHARE = 3 / 4, 1 / 8

#: Resolution of the last-use time, which is the file's modification time: most reads then write nothing.
_USE_SECONDS = 3600.0

#: Temporary files and locks live for seconds; an older one was left by a process that died.
#: NOTE: process ids cannot be compared instead: containers that share the folder have separate ids.
_ABANDONED_SECONDS, _TEMPORARY_SUFFIXES = 3600.0, (".tmp", ".lock")

_warned: set[Path | None] = set()  # folders


# **** configuration ****


def configuration_folder() -> Path:
    """Return the folder of the configuration file: ``LITE_CONFIG_DIR`` if set, else the user's configuration folder."""
    return Path(os.environ.get("LITE_CONFIG_DIR") or _user_folder("config"))


def _user_folder(kind: str) -> str:
    """Return a folder in the user's home; one that cannot exist for a user without a home, as in some containers."""
    folder, home = "", os.environ.get("HOME", "")
    if sys.platform == "linux" and os.path.isabs(home):  # as platformdirs does; its import takes 3 ms of every start
        named = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
        folder = os.path.join(named if os.path.isabs(named) else os.path.join(home, f".{kind}"), "lite")
    else:
        import platformdirs

        with contextlib.suppress(RuntimeError):
            folder = getattr(platformdirs, f"user_{kind}_dir")("lite", appauthor=False)
    return folder if os.path.isabs(folder) else os.path.join(os.devnull, "lite")  # older versions return "~" as it is


def configuration() -> Mapping[str, Any]:
    """Return the settings in ``config.json``, read once per process; empty if the file does not exist.

    A file that is unreadable, or that other users can change, is logged and counts as empty, so that no run fails
    because of it.
    """
    return _read_configuration(configuration_folder() / "config.json")


@functools.cache
def _read_configuration(path: Path) -> Mapping[str, Any]:
    try:
        return MappingProxyType(_parse(path) if os.path.lexists(path) else {})
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("the configuration %s is ignored: %s", path, error)
        return MappingProxyType({})


def _parse(path: Path) -> dict[str, Any]:
    settings = json.loads(read_private(path, most=2**20))
    if not isinstance(settings, dict):
        raise ValueError(f"it must be a JSON object, is {type(settings).__name__}")
    return settings


# **** the cache ****


def cache_folder(kind: str) -> Path | None:
    """Return the folder for one kind of cache entries, or None if the disk cache is disabled.

    It is a subfolder of ``LITE_CACHE_DIR`` if that is set, else of ``cache_folder`` in the configuration, else of the
    user's cache folder. An empty value or ``off`` disables the disk cache.
    """
    chosen = os.environ.get("LITE_CACHE_DIR")
    if chosen is None:
        chosen = configuration().get("cache_folder")
        if chosen is not None and not isinstance(chosen, str):
            logger.warning("cache_folder in the configuration must be text, is %r: it is ignored", chosen)
            chosen = None
    if chosen is None:
        chosen = _user_folder("cache")
    return Path(chosen) / kind if chosen not in ("", "off") else None


def cache_limit() -> float:
    """Return the size limit of one folder in bytes; infinity if the setting is ``off``.

    The setting, in MiB, is ``LITE_CACHE_LIMIT``, else ``cache_limit_mib`` of the configuration.
    """
    setting = os.environ.get("LITE_CACHE_LIMIT")
    if setting:
        return 2**20 * _limit_in_mib("LITE_CACHE_LIMIT", setting)
    configured = configuration().get("cache_limit_mib", _DEFAULT_LIMIT_MIB)
    return 2**20 * _limit_in_mib("cache_limit_mib in the configuration", str(configured))


@functools.cache
def _limit_in_mib(name: str, setting: str) -> float:
    if setting == "off":
        return math.inf
    if not setting.isdecimal():
        logger.warning("%s=%s is neither a number of MiB nor off: %d MiB are kept", name, setting, _DEFAULT_LIMIT_MIB)
    return float(setting) if setting.isdecimal() else _DEFAULT_LIMIT_MIB


def remove_abandoned(temporaries: Iterable[Path]) -> None:
    """Remove temporary files that were not written to within the last hour: their writers died."""
    for path in temporaries:
        with contextlib.suppress(OSError):
            if time.time() - path.lstat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()


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
