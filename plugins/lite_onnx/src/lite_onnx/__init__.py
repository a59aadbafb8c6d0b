"""ONNX models for Lite: :func:`read` gives a graph, :func:`write` gives one back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_onnx.reader import read
    from lite_onnx.writer import write

__all__ = ["read", "write"]

#: Where the public names are. They are imported when they are first used: importing onnx takes time.
_HOMES = {"read": "reader", "write": "writer"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
