"""The contract of readers and writers of model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lite_core.ir import Graph

__all__ = ["Format", "WritesModels"]


@runtime_checkable
class Format(Protocol):
    """A model format: Lite's own, or one given by a plugin's ``lite_formats`` hook.

    ``sniff`` looks at the content, reads a few kilobytes at most and never raises. ``read`` raises
    ModelFormatError for a damaged file and UnsupportedOperatorError, once, with every operator that
    cannot be lowered.
    """

    #: Short name, in lower case.
    name: str
    #: Endings of file names, or whole names, that a person would look for.
    suffixes: tuple[str, ...]

    def sniff(self, path: Path) -> bool:
        """Whether the file or folder is of this format."""
        ...

    def read(self, path: Path, /, *args: Any, **options: Any) -> Graph:
        """The model as a new graph, which the caller may edit.

        Options are keyword-only parameters, from ``load(reader_options=...)``.
        """
        ...


@runtime_checkable
class WritesModels(Protocol):
    """Optional part of a format: graphs can be written in it."""

    def write(self, graph: Graph, path: Path, /, *args: Any, **options: Any) -> None: ...
