"""ONNX as a model format of Lite's. The package onnx is loaded when a model is read or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from lite_core.formats import WritesModels
from lite_core.ir import Graph
from lite_onnx.reader import read
from lite_onnx.sniffing import sniff

__all__ = ["OnnxFormat"]


class OnnxFormat(WritesModels):
    """ONNX models of all opsets; see :mod:`lite_onnx.reader`."""

    name = "onnx"
    suffixes = (".onnx",)

    def sniff(self, path: Path) -> bool:
        """Whether the file begins as an ONNX model does."""
        return sniff(path)

    def read(
        self,
        path: Path,
        *,
        lengths: Mapping[str, int | None] | None = None,
        constants: Mapping[str, ArrayLike] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
    ) -> Graph:
        """Read a model.

        Args:
            path: the file.
            lengths: how many tensors are in each input that is a sequence; None for an optional that is empty.
            constants: elements of inputs that are to be constants.
            shapes: sizes of dimensions that the model leaves open.

        Raises:
            ModelFormatError: the file is damaged, or tensors that it keeps in other files cannot be had.
            UnsupportedOperatorError: operators that cannot be lowered; all are listed.
        """
        return read(path, lengths=lengths, constants=constants, shapes=shapes)

    def write(self, graph: Graph, path: Path, **options: Any) -> None:
        """Write a graph of any origin as an ONNX model; the options are those of :func:`lite_onnx.write`.

        Raises:
            UnsupportedOperatorError: nodes that cannot be said in ONNX; all are listed.
            GraphError: the graph is not valid, or ``onnx.checker`` refuses what was written.
            ModelFormatError: the file cannot be written.
        """
        from lite_onnx.writer import write  # needs onnx, which takes time to import, and few need it

        write(graph, path, **options)

    def serialize(self, graph: Graph) -> bytes:
        """The bytes of a graph's ONNX model, constants in them; the same ones for the same graph. They are not checked.

        Raises:
            UnsupportedOperatorError: nodes that cannot be said in ONNX; all are listed.
            GraphError: the graph is not valid.
        """
        from lite_onnx.writer import to_model

        content: bytes = to_model(graph).SerializeToString(deterministic=True)
        return content
