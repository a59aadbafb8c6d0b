"""Opening what a caller names as a model: a graph, a .lite file, or what a plugin reads."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from lite_core.container import ModelFile
from lite_core.errors import InputError
from lite_core.formats import find_model
from lite_core.ir import Graph
from lite_core.plugins import PluginManager

__all__ = ["OpenedModel", "open_model"]


class OpenedModel(NamedTuple):
    """A model that was opened.

    Attributes:
        graph: as it was read. Of a .lite file its constants are not verified yet: what the file has prepared may not
            need them, see :meth:`lite_core.container.ModelFile.verify_constants`.
        file: the .lite file that it is from; None for anything else.
        is_callers: whether the graph is the caller's own, so that a session must not edit it.
    """

    graph: Graph
    file: ModelFile | None = None
    is_callers: bool = False

    @property
    def optimized(self) -> bool:
        """Whether the passes have seen the graph already."""
        return self.file is not None and self.file.optimized


def open_model(
    model: str | os.PathLike[str] | Graph,
    *,
    plugins: PluginManager | None = None,
    reader_options: Mapping[str, Any] | None = None,
) -> OpenedModel:
    """Open a model; the file is looked at once.

    Args:
        model: a .lite file, a file or folder that an installed plugin reads, or a graph.
        plugins: the plugins to use instead of the installed ones.
        reader_options: options of the format's reader, such as the place of a parameter file.

    Raises:
        ModelFormatError: the file is not a model that can be read here, or is damaged.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
        InputError: this is no model, or its reader has no such option.
    """
    options = dict(reader_options or {})
    if isinstance(model, Graph):
        if options:
            raise InputError(f"a graph takes no reader_options, given: {', '.join(options)}")
        return OpenedModel(model, is_callers=True)
    if not isinstance(model, (str, os.PathLike)):
        raise InputError(f"model must be a path or a Graph, is {type(model).__name__}")
    found = find_model(model, plugins)
    if found.is_lite_file:
        found.check_options(options)
        file = ModelFile.open(found.path)
        return OpenedModel(file.graph(verify=False), file)
    return OpenedModel(found.read(options))
