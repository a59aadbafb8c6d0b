"""Writing a model in a format other than Lite's own, by a plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_core.errors import InputError
from lite_core.plugins import PluginHost, default_host

__all__ = ["writer_for"]

#: What writes a format that no installed plugin knows.
_DISTRIBUTIONS = {".onnx": "lite-onnx"}


def writer_for(path: Path, *, host: PluginHost | None = None) -> Any:
    """The format that a file's name asks for; None for Lite's own, which is that of any name nobody claims.

    Args:
        path: the file to be written.
        host: the plugins; the process's own by default.

    Raises:
        InputError: the name is that of a format which is not installed, or which its plugin only reads.
    """
    suffix = path.suffix.lower()
    offered = [fmt for _, fmt in (host or default_host()).ask("lite_formats") if suffix and suffix in fmt.suffixes]
    for fmt in offered:
        if callable(getattr(fmt, "write", None)):
            return fmt
    if offered:
        raise InputError(f"{str(path)!r}: the format {offered[0].name!r} is read and not written; name the file *.lite")
    if suffix in _DISTRIBUTIONS:
        raise InputError(f"{str(path)!r}: no installed plugin writes {suffix}; pip install {_DISTRIBUTIONS[suffix]}")
    return None
