"""The ``.lite`` file as one of the formats that :func:`lite_core.read_model` knows."""

from __future__ import annotations

from pathlib import Path

from lite_core.container.layout import MAGIC
from lite_core.container.reader import ModelFile
from lite_core.container.writer import write_model
from lite_core.ir import Graph

__all__ = ["LITE_FORMAT", "LiteFormat"]


class LiteFormat:
    """Reads the graph of a model file; see :class:`lite_core.formats.Format`."""

    name = "lite"
    suffixes: tuple[str, ...] = (".lite",)

    def sniff(self, path: Path) -> bool:
        """Whether the file begins as model files do."""
        try:
            with path.open("rb") as file:
                return file.read(len(MAGIC)) == MAGIC
        except OSError:
            return False

    def read(self, path: Path) -> Graph:
        """The graph of the file. Raises ModelFormatError."""
        return ModelFile.open(path).graph()

    def write(self, graph: Graph, path: Path) -> None:
        """Write the graph, for no target. Raises GraphError, ModelFormatError."""
        write_model(path, graph)


LITE_FORMAT = LiteFormat()
