"""Conversion of graphs to ONNX models by the format of another plugin, which is found by a hook, not imported."""

from __future__ import annotations

from functools import cache
from typing import Protocol, runtime_checkable

from lite_core.errors import BackendUnavailableError
from lite_core.ir import Graph
from lite_core.plugins import default_plugins

__all__ = ["SerializesModels", "onnx_model"]


@runtime_checkable
class SerializesModels(Protocol):
    """The interface of a format that serializes a model to bytes, without a file."""

    name: str

    def serialize(self, graph: Graph) -> bytes:
        """Return a graph's model as bytes, which are equal for equal graphs."""
        ...


def onnx_model(graph: Graph) -> bytes:
    """Convert a graph to the bytes of an ONNX model.

    Raises:
        BackendUnavailableError: no plugin writes ONNX.
        UnsupportedOperatorError: nodes cannot be expressed in ONNX; all are listed.
    """
    return _onnx_format().serialize(graph)


@cache
def _onnx_format() -> SerializesModels:
    for _, format_ in default_plugins().ask("lite_formats"):
        if format_.name == "onnx" and isinstance(format_, SerializesModels):
            return format_
    raise BackendUnavailableError("backend 'onnxruntime' needs a plugin that writes ONNX: pip install lite-onnx")
