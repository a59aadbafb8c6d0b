"""Opening a model: a graph, a .lite file, or a file or folder that a plugin reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from lite_core.checks import require
from lite_core.container import ModelFile
from lite_core.formats import find_model
from lite_core.ir import Graph
from lite_core.plugins import PluginManager

__all__ = ["OpenedModel", "open_model"]


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
    model: str | os.PathLike[str] | Graph,
    *,
    plugins: PluginManager | None = None,
    reader_options: Mapping[str, Any] | None = None,
) -> OpenedModel:
    """Open a model.

    Args:
        model: a .lite file, a file or folder that an installed plugin reads, or a graph.
        plugins: the plugins to use instead of the installed ones.
        reader_options: options of the format's reader, such as the path of a parameter file.

    Raises:
        ModelFormatError: no installed reader recognises the file, or it is damaged.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
        InputError: ``model`` is neither a graph nor the path of a file or folder, or its reader has no such option.
    """
    is_named = isinstance(reader_options, Mapping) and all(isinstance(name, str) for name in reader_options)
    require(is_named or reader_options is None, "reader_options", "a mapping of option names to values", reader_options)
    options = dict(reader_options or {})
    if isinstance(model, Graph):
        require(not options, "reader_options", "empty for a graph", options)
        return OpenedModel(model, is_callers=True)
    found = find_model(model, plugins)
    if found.is_lite_file:
        found.check_options(options)
        file = ModelFile.open(found.path)
        return OpenedModel(file.graph(verify=False), file)
    return OpenedModel(found.read(options))
