"""Output formats other than Lite's own, which plugins write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from lite_core.errors import InputError, LiteError, ModelFormatError
from lite_core.formats import Format, WritesModels
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, default_plugins
from lite_core.plugins.contracts import fault_text
from lite_core.plugins.known import format_distribution
from lite_tools.commands.errors import is_disk_full

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
    """Write a graph in another format; an existing file is replaced when the writer has finished.

    The writer writes into a temporary folder beside the file. What it has written there, one file or several, is moved
    to its place afterwards, the file that was asked for last.

    Args:
        writer: the format.
        graph: the graph.
        path: the file to write.
        plugins: the plugins; by default those of the process.

    Raises:
        ModelFormatError: the writer failed or wrote no file, and the message names its plugin; or the file cannot be
            written.
        LiteError: the writer refuses the graph.
        OSError: the disk is full.
    """
    offered = (plugins or default_plugins()).ask("lite_formats")
    record = next((record for record, fmt in offered if fmt is writer), None)
    who = f"the writer {writer.name!r}" + (f" of plugin {record.label}" if record else "")
    with _folder_beside(path) as folder:
        made, fault = folder / path.name, None
        try:
            writer.write(graph, made)
        except (LiteError, MemoryError):
            raise
        except BaseException as error:
            if is_disk_full(error):
                raise
            # The user knows nothing of the temporary folder.
            fault = ModelFormatError(f"{who} failed with {fault_text(error).replace(str(made), str(path))}")
            fault.__cause__ = error
        if fault is None and not made.exists():
            fault = ModelFormatError(f"{who} wrote no file")
        if fault is not None:
            fault.source = f"{record.distribution} {record.version}" if record else ""
            raise fault
        _move(folder, path)


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Make a temporary folder beside a file, so that files can be renamed from one to the other.

    Raises:
        ModelFormatError: the file's folder cannot be written.
    """
    try:
        temporary = tempfile.TemporaryDirectory(prefix=f".{path.name[:32]}.", dir=path.parent)
    except OSError as error:
        if is_disk_full(error):
            raise
        raise _not_writable(path, error) from error
    with temporary as folder:
        yield Path(folder)


def _move(folder: Path, path: Path) -> None:
    """Move everything in a folder beside ``path``, and ``path`` itself last: it may refer to the others."""
    try:
        for made in sorted(folder.iterdir(), key=lambda entry: entry.name == path.name):
            place = path.with_name(made.name)
            if place.is_dir() and not place.is_symlink():  # only an empty folder could be replaced
                os.replace(place, Path(tempfile.mkdtemp(dir=folder)) / made.name)
            os.replace(made, place)
    except OSError as error:
        if is_disk_full(error):
            raise
        raise _not_writable(path, error) from error


def _not_writable(path: Path, error: OSError) -> ModelFormatError:
    return ModelFormatError(f"{str(path)!r} cannot be written: {error.strerror or error}")
