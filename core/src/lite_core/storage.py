"""The user's files on disk: the cache folder with its size limit, and the configuration file.

The cache holds files that can be regenerated, such as compiled kernels. A cache failure never fails a run.

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
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from lite_core.private_files import read_private

__all__ = ["cache_folder", "cache_limit", "configuration", "configuration_folder"]

logger = logging.getLogger("lite.storage")

#: Size limit of one folder unless ``LITE_CACHE_LIMIT`` or the configuration sets another.
_DEFAULT_LIMIT_MIB = 1024

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
        settings = json.loads(read_private(path, most=2**20)) if os.path.lexists(path) else {}
        if not isinstance(settings, dict):
            raise ValueError(f"it must be a JSON object, is {type(settings).__name__}")
        return MappingProxyType(settings)
    except (OSError, ValueError, RecursionError) as error:
        logger.warning("the configuration %s is ignored: %s", path, error)
        return MappingProxyType({})


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
    if setting := os.environ.get("LITE_CACHE_LIMIT"):
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
