"""Files of Granite: a line with the version, and a line for each layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_core import Graph, GraphBuilder, ModelFormatError
from lite_core.formats import WritesModels

MAGIC = b"granite 1\n"
MOST_BYTES = 100_000


class GraniteFormat(WritesModels):
    """A chain of Shrinkage: the slope of each layer on a line of its own."""

    name = "granite"
    suffixes = (".granite",)

    def sniff(self, path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC

    def read(self, path: Path, /, *args: Any, width: int = 3, **options: Any) -> Graph:
        """Read a model; ``width`` is the number of columns of its input."""
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if not content.startswith(MAGIC) or not content.endswith(b"\nend\n") or len(content) > MOST_BYTES:
            raise ModelFormatError(f"model {path.name!r} is damaged or too large; export it again")
        builder = GraphBuilder("granite")
        x = builder.input("x", "float32", ["n", width])
        for number, line in enumerate(content[len(MAGIC) : -len(b"end\n")].splitlines()):
            try:
                slope = float(line)
            except ValueError:
                raise ModelFormatError(f"model {path.name!r}: layer {number} has no slope; export it again") from None
            if not abs(slope) < 1e6:
                raise ModelFormatError(f"model {path.name!r}: layer {number} has the slope {slope}; export it again")
            x = builder.add("Shrinkage", [x], {"slope": slope}, domain="granite", name=f"layer_{number}")
        builder.output(x, "y")
        return builder.build()

    def write(self, graph: Graph, path: Path, /, *args: Any, **options: Any) -> None:
        """Write a chain of Shrinkage."""
        other = [node.describe() for node in graph.nodes if node.qualified_op != "granite.Shrinkage"]
        if other:
            raise ModelFormatError(f"a file of Granite has only Shrinkage, the model has {other[0]}")
        slopes = [f"{node.attributes.get('slope', 1.0)}\n" for node in graph.nodes]
        path.write_bytes(MAGIC + "".join([*slopes, "end\n"]).encode())
