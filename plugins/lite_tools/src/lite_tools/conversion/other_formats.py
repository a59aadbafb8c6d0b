"""Writing a model in a format other than Lite's own, by a plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from lite_core.errors import InputError
from lite_core.formats import Format, WritesModels
from lite_core.plugins import PluginManager, default_plugins
from lite_core.plugins.known import format_distribution

__all__ = ["Writer", "writer_for"]


@runtime_checkable
class Writer(Format, WritesModels, Protocol):
    """A format that models are read from and written in."""


def writer_for(path: Path, *, plugins: PluginManager | None = None) -> Writer | None:
    """The format that a file's name asks for; None for Lite's own, which is that of any name nobody claims.

    Args:
        path: the file to be written.
        plugins: the plugins; the process's own by default.

    Raises:
        InputError: the name is that of a format which is not installed, or which its plugin only reads.
    """
    suffix = path.suffix.lower()
    offered = [
        fmt for _, fmt in (plugins or default_plugins()).ask("lite_formats") if suffix and suffix in fmt.suffixes
    ]
    for fmt in offered:
        if isinstance(fmt, Writer):
            return fmt
    if offered:
        raise InputError(f"{str(path)!r}: the format {offered[0].name!r} is read and not written; name the file *.lite")
    distribution = format_distribution(f"model{suffix}")  # by the name alone: what is there now is overwritten
    if distribution is not None:
        raise InputError(f"{str(path)!r}: no installed plugin writes {suffix}; pip install {distribution}")
    return None
