"""Opening a model: a graph, a .lite file, or a file or folder that a plugin reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, NamedTuple

from lite_core.checks import require
from lite_core.container import ModelFile
from lite_core.errors import LiteError
from lite_core.formats import find_model
from lite_core.ir import Graph
from lite_core.plugins import PluginManager

__all__ = ["Model", "OpenedModel", "open_model"]

#: A path, a graph, or the content of a file: bytes, or a file that is open in binary mode.
Model = str | os.PathLike[str] | Graph | bytes | bytearray | memoryview | IO[bytes]


class OpenedModel(NamedTuple):
    """An opened model.

    Attributes:
        graph: the graph as read. The constants of a .lite file are not verified yet, because prepared plans may not
            read them; see :meth:`lite_core.container.ModelFile.verify_constants`.
        file: the .lite file it was read from, else None.
        is_callers: True if the graph belongs to the caller, so that a session must not edit it.
    """

    graph: Graph
    file: ModelFile | None = None
    is_callers: bool = False

    @property
    def optimized(self) -> bool:
        """True if the passes were already run on the graph."""
        return self.file is not None and self.file.optimized


def open_model(
    model: Model,
    *,
    plugins: PluginManager | None = None,
    reader_options: Mapping[str, Any] | None = None,
) -> OpenedModel:
    """Open a model.

    Args:
        model: a .lite file, a file or folder that an installed plugin reads, a graph, or the content of a file: bytes,
            any object with the buffer protocol, or a file that is open in binary mode.
        plugins: the plugins to use instead of the installed ones.
        reader_options: options of the format's reader, such as the path of a parameter file.

    Raises:
        ModelFormatError: no installed reader recognises the file, or it is damaged.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
        InputError: ``model`` is none of these, or its reader has no such option.
    """
    is_named = isinstance(reader_options, Mapping) and all(isinstance(name, str) for name in reader_options)
    require(is_named or reader_options is None, "reader_options", "a mapping of option names to values", reader_options)
    options = dict(reader_options or {})
    if isinstance(model, Graph):
        require(not options, "reader_options", "empty for a graph", options)
        return OpenedModel(model, is_callers=True)
    if (content := _content_of(model)) is not None:
        return _open_content(content, plugins, options)
    found = find_model(model, plugins)  # type: ignore[arg-type] # it checks any argument
    if found.is_lite_file:
        found.check_options(options)
        file = ModelFile.open(found.path)
        return OpenedModel(file.graph(verify=False), file)
    return OpenedModel(found.read(options))


def _content_of(model: Any) -> memoryview | None:
    """Return the content of a file that was given, or None if a path was."""
    try:
        return memoryview(model.read() if hasattr(model, "read") else model)
    except TypeError:
        return None


def _open_content(content: memoryview, plugins: PluginManager | None, options: Mapping[str, Any]) -> OpenedModel:
    """Open a model by a temporary file: readers open paths, and weights are mapped."""
    named = Path(f"of {content.nbytes} bytes")
    with TemporaryDirectory(prefix="lite-", ignore_cleanup_errors=True) as folder:  # Windows keeps what is mapped
        path = Path(folder, "model")
        path.write_bytes(content)
        try:
            opened = open_model(path, plugins=plugins, reader_options=options)
        except LiteError as error:
            told = str(error).replace(repr(str(path)), str(named))
            several = " (load a model of several files by its path)" if folder in told else ""
            error.args = (told.replace(f"{folder}{os.sep}", "").replace(folder, "its folder") + several,)
            raise
    if opened.file:
        opened.file.path = named
    return opened
