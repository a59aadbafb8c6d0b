"""Choosing a reader for a model file by its content."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from lite_core.checks import is_there, path_of, require
from lite_core.container import LITE_FORMAT
from lite_core.errors import InputError, LiteError, ModelFormatError
from lite_core.formats.contract import Format
from lite_core.formats.hints import describe_file, folder_listing, reader_hint
from lite_core.ir import Graph
from lite_core.plugins import PluginManager, PluginRecord, default_plugins
from lite_core.plugins.contracts import fault_text
from lite_core.plugins.known import known_distributions
from lite_core.version import __version__

__all__ = ["FoundModel", "find_model", "read_model"]

logger = logging.getLogger("lite.formats")

# The record of the built-in reader of .lite files, for messages.
_BUILTIN = PluginRecord("lite", "lite-core", __version__, "lite_core.container", state="ready")


class FoundModel(NamedTuple):
    """A model file or folder, and the reader that recognises it.

    Attributes:
        path: path of the file; the requested path may be a stem of it.
        reader: its format.
        record: the plugin that provides the reader.
        others: finds further readers that recognise it, for the case that this one fails.
    """

    path: Path
    reader: Format
    record: PluginRecord
    others: Iterable[FoundModel] = ()

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
        try:
            return self._read(options)
        except ModelFormatError as error:
            named = f" (read as {self.reader.name!r} by plugin {self.record.label})"
            error.args = (f"{error}{named * (self.record.label not in str(error))}",)
            for other in self.others:
                logger.warning("%s; the reader %r recognises it, too", error, other.reader.name)
                with suppress(LiteError):
                    return other.read(options)
            raise

    def _read(self, options: Mapping[str, Any]) -> Graph:
        who = f"the reader {self.reader.name!r} of plugin {self.record.label}"
        try:
            graph: object = self.reader.read(self.path, **options)
        except LiteError:
            raise
        except BaseException as error:
            raise ModelFormatError(f"model {str(self.path)!r}: {who} failed with {fault_text(error)}") from error
        if not isinstance(graph, Graph):
            raise ModelFormatError(f"model {str(self.path)!r}: {who} returned {type(graph).__name__}, not a Graph")
        if self.record.distribution not in (_BUILTIN.distribution, *known_distributions("formats").values()):
            from lite_core.ops import verify_result  # not at the top: prepared plans need no operators

            verify_result(graph, f"model {str(self.path)!r}: {who} returned", ModelFormatError)
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
        InputError: there is no such file or folder, or the reader has no such option.
        ModelFormatError: no installed plugin recognises the file, or it is damaged.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
    """
    return find_model(path, plugins).read(options)


def find_model(path: str | os.PathLike[str], plugins: PluginManager | None = None) -> FoundModel:
    """Find a model file or folder, and choose its reader by its content.

    Raises:
        InputError: there is no such file or folder.
        ModelFormatError: no installed plugin recognises the file.
    """
    file = path_of("model", path)
    require(plugins is None or isinstance(plugins, PluginManager), "plugins", "a PluginManager", plugins)
    if (exists := is_there(file)) and LITE_FORMAT.sniff(file):  # readers open only what is_there has checked
        return FoundModel(file, LITE_FORMAT, _BUILTIN)  # first, to avoid loading plugins, which takes time
    plugins = plugins or default_plugins()
    offered: list[tuple[PluginRecord, Format]] = [*plugins.ask("lite_formats"), (_BUILTIN, LITE_FORMAT)]
    readers = [reader for _, reader in offered]
    # A stem such as "inference" stands for the file "inference.SUFFIX".
    candidates = [file] if exists else [file.with_name(file.name + s) for r in readers for s in r.suffixes]
    candidates = [c for c in candidates if is_there(c)]
    if not candidates:
        raise InputError(f"model {str(path)!r:.300}: no such file or folder, or no access; {folder_listing(file)}")
    found = (model for candidate in candidates for model in _recognised(plugins, offered, candidate))
    for model in found:
        return model._replace(others=found)
    raise ModelFormatError(
        f"model {str(path)!r} is {describe_file(candidates[0])}; {reader_hint(candidates[0], plugins, readers)}"
    )


def _recognised(
    plugins: PluginManager, offered: Iterable[tuple[PluginRecord, Format]], path: Path
) -> Iterator[FoundModel]:
    """Yield a model for each reader that recognises it; readers with a fitting suffix come first."""
    for record, reader in sorted(offered, key=lambda offer: not path.name.endswith((*offer[1].suffixes,))):
        try:
            found = [FoundModel(path, reader, record)] if reader.sniff(path) else []
        except BaseException as error:  # the contract forbids exceptions; another reader may recognise the file
            plugins.reject(record, "sniff", f"format {reader.name!r} failed with {fault_text(error)}", cause=error)
        else:
            yield from found
