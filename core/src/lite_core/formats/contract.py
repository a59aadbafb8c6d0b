"""The contract of readers and writers of model files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lite_core.ir import Graph

__all__ = ["Format", "WritesModels"]


@runtime_checkable
class Format(Protocol):
    """A model format: Lite's own, or one provided by a plugin's ``lite_formats`` hook.

    ``sniff`` examines the content, reads a few kilobytes at most and never raises. ``read`` raises
    ModelFormatError for a damaged file, and one UnsupportedOperatorError with all operators that cannot be lowered.
    """

    #: Short name, in lower case.
    name: str
    #: File name suffixes, or whole file names, of the format.
    suffixes: tuple[str, ...]

    def sniff(self, path: Path) -> bool:
        """Return True if the file or folder is of this format."""
        ...

    def read(self, path: Path, /, *args: Any, **options: Any) -> Graph:
        """Return the model as a new graph, which the caller may edit.

        Options are keyword-only parameters, passed by ``load(reader_options=...)``.
        """
        ...


@runtime_checkable
class WritesModels(Protocol):
    """Optional part of a format: write graphs in this format."""

    def write(self, graph: Graph, path: Path, /, *args: Any, **options: Any) -> None: ...
