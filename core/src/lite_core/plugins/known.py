"""Which distribution brings a backend, a command or a format, so that a message can name what is not installed.

The names are in a file that is generated from the ``[tool.lite]`` tables of the distributions; nothing here knows them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["backend_distribution", "command_distribution", "format_distribution", "format_distributions"]

_FILE = Path(__file__).with_name("known_distributions.json")
_BEGINNING = 256  # bytes of a file that are looked at
_MOST_FILES = 100  # of a folder


def backend_distribution(name: str) -> str | None:
    """The distribution that brings a backend: ``"lite-x86"`` for ``"x86"``. None for an unknown one."""
    found: str | None = _known()["backends"].get(name)
    return found


def command_distribution(name: str) -> str | None:
    """The distribution that adds a command to ``lite``. None for an unknown one."""
    found: str | None = _known()["commands"].get(name)
    return found


def format_distribution(path: str | Path) -> str | None:
    """The distribution that reads a model: by its suffix, or by its first bytes. None for an unknown one.

    Args:
        path: a file, which need not exist, or a folder, whose files are looked at.
    """
    path = Path(path)
    formats = _known()["formats"].values()
    files = _files_in(path) if path.is_dir() else [path]
    by_name = (f["distribution"] for f in formats if any(file.name.endswith(tuple(f["suffixes"])) for file in files))
    found: str | None = next(by_name, None) or _by_content(formats, filter(Path.is_file, files))
    return found


def format_distributions() -> dict[str, str]:
    """The distribution that reads each known format, by the format's name."""
    return {name: entry["distribution"] for name, entry in _known()["formats"].items()}


def _files_in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:_MOST_FILES]
    except OSError:
        return []


def _by_content(formats: Iterable[dict[str, Any]], files: Iterable[Path]) -> str | None:
    for file in files:
        try:
            with file.open("rb") as stream:
                beginning = stream.read(_BEGINNING).hex()
        except OSError:  # who reports that the file cannot be read says more than this could
            continue
        for format in formats:
            if any(re.match(pattern, beginning) for pattern in format["beginnings"]):
                distribution: str = format["distribution"]
                return distribution
    return None


@cache
def _known() -> dict[str, dict[str, Any]]:
    import json  # only where something is missing

    known: dict[str, dict[str, Any]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return known
