"""What Lite keeps on disk for a user: the cache folder, its limits, and one configuration file.

The cache holds files that can be made again, such as compiled kernels. It never fails a run: what cannot be read is
made again, what cannot be written is not kept, and the log says so. It does not grow without bound either: entries that
were not used for longest make room for new ones.

The configuration is ``config.json`` in the user's configuration folder, an object in JSON::

    {"cache_folder": "/var/cache/lite", "cache_limit_mib": 4096}

Environment variables go before it. A plugin keeps its settings under a name of its own.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import math
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lite_core.errors import LiteError

__all__ = [
    "DiskCache",
    "cache_folder",
    "cache_limit",
    "configuration",
    "configuration_folder",
    "update_configuration",
]

logger = logging.getLogger("lite.storage")

#: What one folder may hold where neither ``LITE_CACHE_LIMIT`` nor the configuration says otherwise.
_USUAL_LIMIT_MIB = 1024

#: When a folder is full it is emptied to this share of its limit, and looked at again when that much was written.
_KEPT_SHARE, _UNCHECKED_SHARE = 3 / 4, 1 / 8

#: The time of an entry's file says when it was last used, that exactly: most reads then write nothing.
_USE_SECONDS = 3600.0

#: A temporary file or a lock that is older was left by a process that died: both are needed for seconds.
#: NOTE: not by the number of the process, which means nothing in another container that has the same folder.
_ABANDONED_SECONDS, _PASSING = 3600.0, (".tmp", ".lock")


# **** configuration ****


def configuration_folder() -> Path:
    """The folder of the configuration: ``LITE_CONFIG_DIR`` where that is set, else the user's configuration folder."""
    chosen = os.environ.get("LITE_CONFIG_DIR")
    if not chosen:
        import platformdirs

        chosen = platformdirs.user_config_dir("lite", appauthor=False)
    return Path(chosen)


def configuration() -> Mapping[str, Any]:
    """The settings in ``config.json``, read once for each process; empty where there is none.

    A file that cannot be read is a line in the log, and counts as empty: no run fails because of it.
    """
    return _read_configuration(configuration_folder() / "config.json")


def update_configuration(changes: Mapping[str, Any]) -> None:
    """Write settings into ``config.json``; all others in it stay.

    Args:
        changes: what JSON can say, by name; None removes a setting.

    Raises:
        LiteError: the file cannot be written, or is there and cannot be read: it is left as it is.
    """
    path = configuration_folder() / "config.json"
    try:
        before = _parse(path) if path.exists() else {}
        after = {name: value for name, value in {**before, **changes}.items() if value is not None}
        text = json.dumps(after, indent=2, sort_keys=True) + "\n"
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.tmp")
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        raise LiteError(
            f"the configuration {str(path)!r} cannot be written: {error}; repair or remove it, or set LITE_CONFIG_DIR"
        ) from error
    _read_configuration.cache_clear()


@functools.cache
def _read_configuration(path: Path) -> Mapping[str, Any]:
    try:
        return MappingProxyType(_parse(path))
    except FileNotFoundError:
        return MappingProxyType({})
    except (OSError, ValueError) as error:
        logger.warning("the configuration %s is left out: %s", path, error)
        return MappingProxyType({})


def _parse(path: Path) -> dict[str, Any]:
    settings = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ValueError(f"it must be an object in JSON, is {type(settings).__name__}")
    return settings


# **** the cache ****


def cache_folder(kind: str) -> Path | None:
    """The folder for one kind of entries, or None where nothing is kept on disk.

    It is below ``LITE_CACHE_DIR`` where that is set, else below ``cache_folder`` of the configuration, else below the
    user's cache folder. Set to nothing or to ``off``, nothing is kept on disk.
    """
    chosen = os.environ.get("LITE_CACHE_DIR")
    if chosen is None:
        chosen = configuration().get("cache_folder")
        if chosen is not None and not isinstance(chosen, str):
            logger.warning("cache_folder in the configuration must be text, is %r: it is left out", chosen)
            chosen = None
    if chosen is None:
        import platformdirs

        chosen = platformdirs.user_cache_dir("lite", appauthor=False)
    return Path(chosen) / kind if chosen not in ("", "off") else None


def cache_limit() -> float:
    """Bytes that one folder may hold: ``LITE_CACHE_LIMIT`` in MiB, or ``cache_limit_mib`` of the configuration.

    Infinity where that is ``off``.
    """
    setting = os.environ.get("LITE_CACHE_LIMIT")
    if setting:
        return 2**20 * _limit_in_mib("LITE_CACHE_LIMIT", setting)
    configured = configuration().get("cache_limit_mib", _USUAL_LIMIT_MIB)
    return 2**20 * _limit_in_mib("cache_limit_mib in the configuration", str(configured))


@functools.cache
def _limit_in_mib(name: str, setting: str) -> float:
    if setting == "off":
        return math.inf
    if not setting.isdecimal():
        logger.warning("%s=%s is neither a number of MiB nor off: %d MiB are kept", name, setting, _USUAL_LIMIT_MIB)
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
                "%s cannot be used (%s): what is made stays in memory. Set LITE_CACHE_DIR to another folder",
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
