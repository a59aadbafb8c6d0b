"""The machine, the software and the model of a measurement, by which two measurements are compared."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.plugins import backend_sources
from lite_core.processors import useful_threads
from lite_core.version import __version__

__all__ = ["environment", "model_digest"]

_BLOCK = 1 << 20
#: Suffixes of tables and pages.
_WRITTEN = (".csv", ".html")


def environment(backends: Iterable[str]) -> dict[str, Any]:
    """Return facts about the machine and the software.

    Args:
        backends: names of the backends whose packages count.
    """
    sources = backend_sources()
    packages = dict.fromkeys([f"lite-core {__version__}", *(sources[name] for name in backends if name in sources)])
    return {
        "processor": _processor(),
        "cores_of_use": useful_threads(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "packages": list(packages),
    }


def model_digest(model: str, reader_options: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a model's files, as hexadecimal digits; empty if they cannot be read.

    The files are those of a folder; or the file, those beside it of the same name, which contain its weights in many
    formats, and those that the reader's options name. Files that `lite bench` writes do not count.
    """
    path = Path(model)
    try:
        if path.is_dir():
            files = {file for file in path.iterdir() if file.suffix not in _WRITTEN}
        else:
            beside = {file for file in path.parent.iterdir() if _belongs(file, path)}
            files = {path, *beside, *(Path(o) for o in reader_options.values() if isinstance(o, str))}
        found = hashlib.sha256()
        for file in sorted(file for file in files if file.is_file()):
            found.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as stream:
                while block := stream.read(_BLOCK):
                    found.update(block)
    except OSError:
        return ""
    return found.hexdigest()


def _belongs(file: Path, model: Path) -> bool:
    """Return True if a file beside a model has the model's name and another suffix."""
    is_named = file.name.startswith((f"{model.stem}.", f"{model.name}_"))
    return is_named and file.suffix not in (*_WRITTEN, ".json")


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or os.name
