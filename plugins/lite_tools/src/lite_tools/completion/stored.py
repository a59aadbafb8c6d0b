"""The description of all commands in the cache folder, made again when other packages are installed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from lite_core.storage import cache_folder

__all__ = ["known_description"]

_VERSION = 1


def known_description() -> dict[str, Any]:
    """Return the description of all commands: that in the cache folder, or a new one, which is stored."""
    folder, key = cache_folder("completion"), _key()
    file = folder / "commands.json" if folder is not None else None
    if file is not None and (found := _read(file, key)) is not None:
        return found
    from lite_tools.cli.group import lite  # imports every plugin with commands
    from lite_tools.completion.description import describe

    made = describe(lite)
    if file is not None:
        from lite_core.private_files import write_private

        with suppress(OSError):  # the folder cannot be written: the next answer takes as long as this one
            write_private(file, json.dumps({"key": key, **made}).encode())
    return made


def _read(file: Path, key: list[Any]) -> dict[str, Any] | None:
    from lite_core.private_files import read_private

    try:
        stored: dict[str, Any] = json.loads(read_private(file))
        return stored if stored["key"] == key else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _key() -> list[Any]:
    """Return what the description depends on: the installed packages, and the files of the commands here."""
    choices = [os.environ.get(name, "") for name in ("LITE_PLUGINS", "LITE_BACKENDS")]
    return [_VERSION, sys.version, choices, *map(list, _packages()), *map(list, _own_files())]


def _packages() -> Iterator[tuple[str, int]]:
    """Yield the metadata folders with entry points, and when they were changed."""
    for folder in sys.path:
        with suppress(OSError), os.scandir(folder or ".") as entries:
            for entry in entries:
                if entry.name.endswith((".dist-info", ".egg-info")):
                    file = os.path.join(entry.path, "entry_points.txt")
                    with suppress(OSError):
                        yield entry.path, os.stat(file).st_mtime_ns


def _own_files() -> Iterator[tuple[str, int]]:
    folder = Path(__file__).parent.parent
    for name in ("cli", "commands", "completion"):
        with os.scandir(folder / name) as entries:
            yield from sorted((entry.name, entry.stat().st_mtime_ns) for entry in entries if entry.is_file())
