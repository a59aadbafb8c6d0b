"""ONNX models for Lite: :func:`read` gives a graph, :func:`write` gives one back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lite_onnx.reader import read

if TYPE_CHECKING:
    from lite_onnx.writer import write

__all__ = ["read", "write"]


def __getattr__(name: str) -> Any:
    if name != "write":
        raise AttributeError(f"module 'lite_onnx' has no attribute {name!r}")
    from lite_onnx.writer import write  # needs onnx, which takes time to import, and few need it

    return write
