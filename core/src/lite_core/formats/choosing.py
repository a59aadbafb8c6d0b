"""Choosing a reader for a model file by its content."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lite_core.container import LITE_FORMAT
from lite_core.errors import InputError, LiteError, ModelFormatError
from lite_core.formats.contract import Format
from lite_core.formats.hints import describe_file, folder_listing, reader_hint
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, PluginRecord, default_plugins
from lite_core.version import __version__

__all__ = ["FoundModel", "find_model", "read_model"]

# The record of the built-in reader of .lite files, for messages.
_BUILTIN = PluginRecord("lite", "lite-core", __version__, "lite_core.container", phase="ready")


class FoundModel(NamedTuple):
    """A model file or folder, and the reader that recognises it.

    Attributes:
        path: path of the file; the requested path may be a stem of it.
        reader: its format.
        record: the plugin that provides the reader.
    """

    path: Path
    reader: Format
    record: PluginRecord

    @property
    def is_lite_file(self) -> bool:
        """True for a ``.lite`` file."""
        return self.record is _BUILTIN

    def read(self, options: Mapping[str, Any]) -> Graph:
        """Read the graph, with options of the reader.

        Raises:
            ModelFormatError: the file is damaged.
            UnsupportedOperatorError: operators cannot be lowered; all are listed.
            InputError: the reader has no such option.
        """
        self.check_options(options)
        who = f"model {str(self.path)!r}: the reader {self.reader.name!r} of plugin {self.record.label}"
        try:
            graph: object = self.reader.read(self.path, **options)
        except LiteError:
            raise
        except Exception as error:
            raise ModelFormatError(f"{who} failed with {type(error).__name__}: {error}") from error
        if not isinstance(graph, Graph):
            raise ModelFormatError(f"{who} returned {type(graph).__name__}, not a Graph")
        return graph

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise an InputError for options that the reader does not have; it lists the valid options."""
        parameters = inspect.signature(self.reader.read).parameters
        named = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
        unknown = [n for n in options if n not in named]
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            raise InputError(
                f"reading {str(self.path)!r}: format {self.reader.name!r} has no option {', '.join(unknown)} "
                f"(it has: {', '.join(named) or 'none'})"
            )


def read_model(path: str | os.PathLike[str], *, plugins: PluginManager | None = None, **options: Any) -> Graph:
    """Read a model: a ``.lite`` file, or any format that an installed plugin reads.

    Args:
        path: a file, or a folder that contains a model.
        plugins: the plugins; those of the process by default.
        options: passed to the reader, for example ``params=`` for a separate parameter file.

    Raises:
        ModelFormatError: the file does not exist, or no installed plugin recognises it.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
        InputError: the reader has no such option.
    """
    return find_model(path, plugins).read(options)


def find_model(path: str | os.PathLike[str], plugins: PluginManager | None = None) -> FoundModel:
    """Find a model file or folder, and choose its reader by its content.

    Raises:
        ModelFormatError: the file does not exist, or no installed plugin recognises it.
    """
    file = Path(path)
    if LITE_FORMAT.sniff(file):
        return FoundModel(file, LITE_FORMAT, _BUILTIN)  # first, to avoid loading plugins, which takes time
    plugins = plugins or default_plugins()
    offered: list[tuple[PluginRecord, Format]] = [*plugins.ask("lite_formats"), (_BUILTIN, LITE_FORMAT)]
    readers = [reader for _, reader in offered]
    # A stem such as "inference" stands for the file "inference.SUFFIX".
    candidates = [file] if file.exists() else [file.with_name(file.name + s) for r in readers for s in r.suffixes]
    candidates = [c for c in candidates if c.exists()]
    if not candidates:
        raise ModelFormatError(f"model {str(path)!r}: there is no such file or folder; {folder_listing(file)}")
    for candidate in candidates:
        for record, reader in offered:
            if _recognises(plugins, record, reader, candidate):
                return FoundModel(candidate, reader, record)
    raise ModelFormatError(
        f"model {str(path)!r} is {describe_file(candidates[0])}; {reader_hint(candidates[0], plugins, readers)}"
    )


def _recognises(plugins: PluginManager, record: PluginRecord, reader: Format, path: Path) -> bool:
    try:
        return reader.sniff(path)
    except Exception as error:  # the contract forbids exceptions; another reader may recognise the file
        plugins.reject(record, "sniff", f"format {reader.name!r} failed with {type(error).__name__}: {error}")
        return False
