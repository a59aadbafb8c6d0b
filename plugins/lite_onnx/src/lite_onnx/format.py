"""The model format ONNX. The package onnx is imported only when a model is read or written."""

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
        """Return True if the file begins like an ONNX model."""
        return sniff(path)

    def read(
        self,
        path: Path,
        *,
        lengths: Mapping[str, int | None] | None = None,
        constants: Mapping[str, ArrayLike] | None = None,
        shapes: Mapping[str, Sequence[int]] | None = None,
        fixed_caches: bool = False,
    ) -> Graph:
        """Read a model.

        Args:
            path: the file.
            lengths: the number of tensors in each input that is a sequence; None for an empty optional.
            constants: elements of inputs that become constants.
            shapes: sizes of dimensions that the model leaves open.
            fixed_caches: True if the present caches of GroupQueryAttention are the past ones, written in place, in a
                model that declares different lengths for them.

        Raises:
            ModelFormatError: the file is damaged, or tensors that it keeps in other files cannot be read.
            UnsupportedOperatorError: operators that cannot be lowered; all are listed.
        """
        return read(path, lengths=lengths, constants=constants, shapes=shapes, fixed_caches=fixed_caches)

    def write(self, graph: Graph, path: Path, **options: Any) -> None:
        """Write a graph read from any format as an ONNX model; the options are those of :func:`lite_onnx.write`.

        Raises:
            UnsupportedOperatorError: nodes cannot be expressed in ONNX; all are listed.
            GraphError: the graph is not valid, or ``onnx.checker`` rejects the model.
            ModelFormatError: the file cannot be written.
        """
        from lite_onnx.writer import write  # imports onnx, which takes time; most sessions only read

        write(graph, path, **options)

    def serialize(self, graph: Graph) -> bytes:
        """Return a graph's ONNX model as bytes, constants included. The bytes are deterministic and not checked.

        Raises:
            UnsupportedOperatorError: nodes cannot be expressed in ONNX; all are listed.
            GraphError: the graph is not valid.
        """
        from lite_onnx.writer import to_model

        content: bytes = to_model(graph).SerializeToString(deterministic=True)
        return content
