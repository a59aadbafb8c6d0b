"""Output formats other than Lite's own, which plugins write."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from lite_core.errors import InputError, LiteError, ModelFormatError
from lite_core.formats import Format, WritesModels
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, default_plugins
from lite_core.plugins.contracts import fault_text
from lite_core.plugins.known import format_distribution

__all__ = ["Writer", "write", "writer_for"]


@runtime_checkable
class Writer(Format, WritesModels, Protocol):
    """A format that can be read and written."""


def writer_for(path: Path, *, plugins: PluginManager | None = None) -> Writer | None:
    """Return the format for a file's suffix, or None for an unknown suffix, which means Lite's own format.

    Args:
        path: the file to be written.
        plugins: the plugins; by default those of the process.

    Raises:
        InputError: the suffix is that of a format which is not installed, or which its plugin can only read.
    """
    suffix = path.suffix.lower()
    offered = [
        fmt for _, fmt in (plugins or default_plugins()).ask("lite_formats") if suffix and suffix in fmt.suffixes
    ]
    for fmt in offered:
        if isinstance(fmt, Writer):
            return fmt
    if offered:
        raise InputError(
            f"{str(path)!r}: the format {offered[0].name!r} can be read but not written; name the file *.lite"
        )
    distribution = format_distribution(f"model{suffix}")  # by suffix alone: an existing file is overwritten
    if distribution is not None:
        raise InputError(f"{str(path)!r}: no installed plugin writes {suffix}; pip install {distribution}")
    return None


def write(writer: Writer, graph: Graph, path: Path, *, plugins: PluginManager | None = None) -> None:
    """Write a graph in another format.

    Args:
        writer: the format.
        graph: the graph.
        path: the file to write.
        plugins: the plugins; by default those of the process.

    Raises:
        ModelFormatError: the writer failed or wrote no file; the message names its plugin.
        LiteError: the writer refuses the graph.
    """
    offered = (plugins or default_plugins()).ask("lite_formats")
    record = next((record for record, fmt in offered if fmt is writer), None)
    who = f"the writer {writer.name!r}" + (f" of plugin {record.label}" if record else "")
    try:
        writer.write(graph, path)
    except (LiteError, OSError, MemoryError):
        raise
    except BaseException as error:
        raise ModelFormatError(f"{who} failed with {fault_text(error)}") from error
    if not path.exists():
        raise ModelFormatError(f"{who} wrote no file")
