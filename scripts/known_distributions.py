"""The table of all backends, commands and formats, with which the core names distributions that are not installed.

Each distribution declares them in its pyproject.toml::

    [tool.lite]
    backends = ["x86"]
    commands = ["opt"]

    [tool.lite.formats.onnx]
    suffixes = [".onnx"]                       # ends of file names, each sufficient to recognise the format
    beginnings = ["08[0-7].(12|1a|3a|42)"]     # regular expressions of the first bytes, as hexadecimal digits

``make docs`` writes the file; a test fails when it is stale.
"""

from __future__ import annotations

import json
import re
from typing import Any

from workspace import ROOT, distributions

__all__ = ["FILE", "text"]

FILE = ROOT / "core/src/lite_core/plugins/known_distributions.json"


def text() -> str:
    """Return the content of the file.

    Raises:
        ValueError: two distributions claim one name, or a table is malformed.
    """
    known: dict[str, dict[str, Any]] = {"backends": {}, "commands": {}, "formats": {}}
    for distribution in distributions():
        table = distribution.about_lite
        unknown = table.keys() - known.keys()
        if unknown:
            raise ValueError(f"{distribution.name}: [tool.lite] has {sorted(unknown)}, which nothing reads")
        for kind in ("backends", "commands"):
            for name in table.get(kind, ()):
                _claim(known[kind], name, distribution.name, distribution.name)
        for name, format in table.get("formats", {}).items():
            for pattern in format.get("beginnings", ()):
                re.compile(pattern)
            details = {key: format.get(key, []) for key in ("suffixes", "beginnings")}
            _claim(known["formats"], name, {"distribution": distribution.name, **details}, distribution.name)
    return json.dumps(known, indent=2, sort_keys=True) + "\n"


def _claim(names: dict[str, Any], name: str, what: Any, owner: str) -> None:
    if name in names:
        raise ValueError(f"{owner} claims {name!r}, which another distribution has: {names[name]}")
    names[name] = what
