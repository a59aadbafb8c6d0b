"""The format object of ``.lite`` files, used by :func:`lite_core.read_model`."""

from __future__ import annotations

from pathlib import Path

from lite_core.container.layout import MAGIC
from lite_core.container.reader import ModelFile
from lite_core.ir import Graph

__all__ = ["LITE_FORMAT", "LiteFormat"]


class LiteFormat:
    """Reader of the graph of a model file; see :class:`lite_core.formats.Format`."""

    name = "lite"
    suffixes: tuple[str, ...] = (".lite",)

    def sniff(self, path: Path) -> bool:
        """Return True if the file begins with the magic bytes of model files."""
        try:
            with path.open("rb") as file:
                return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False

    def read(self, path: Path) -> Graph:
        """Return the graph of the file. Raises ModelFormatError."""
        return ModelFile.open(path).graph()


LITE_FORMAT = LiteFormat()
