"""The known distributions with their backends, commands and formats, so that messages can name what to install.

The names are in a file generated from the ``[tool.lite]`` tables of the distributions; the code contains none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal

__all__ = ["format_distribution", "known_distributions"]

_FILE = Path(__file__).with_name("known_distributions.json")
_BEGINNING = 256  # first bytes of a file that are compared
_MOST_FILES = 100  # files of a folder that are examined


def known_distributions(kind: Literal["backends", "commands", "formats"]) -> dict[str, str]:
    """Return the distribution that contains each known backend, command of ``lite`` or format, by its name."""
    return {name: entry["distribution"] if kind == "formats" else entry for name, entry in _known()[kind].items()}


def format_distribution(path: str | Path) -> str | None:
    """Return the distribution that reads a model, by its suffix or its first bytes. None for an unknown format.

    Args:
        path: a file, which need not exist, or a folder, whose files are examined.
    """
    path = Path(path)
    formats = _known()["formats"].values()
    files = _files_in(path) if path.is_dir() else [path]
    by_name = (f["distribution"] for f in formats if any(file.name.endswith(tuple(f["suffixes"])) for file in files))
    return next(by_name, None) or _by_content(formats, filter(Path.is_file, files))


def _files_in(folder: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(folder.iterdir())[:_MOST_FILES]
    return []


def _by_content(formats: Iterable[dict[str, Any]], files: Iterable[Path]) -> str | None:
    for file in files:
        with suppress(OSError), file.open("rb") as stream:  # an error is reported in detail by the caller
            beginning = stream.read(_BEGINNING).hex()
            for format in formats:
                if any(re.match(pattern, beginning) for pattern in format["beginnings"]):
                    return str(format["distribution"])
    return None


@cache
def _known() -> dict[str, dict[str, Any]]:
    import json  # not at the top: needed only if something is not installed

    return dict(json.loads(_FILE.read_text(encoding="utf-8")))
