"""ONNX models for Lite: :func:`read` returns a graph, :func:`write` saves one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_onnx.reader import read
    from lite_onnx.writer import write

__all__ = ["read", "write"]

#: The module that defines each public name. It is imported on first use, because importing onnx takes time.
_MODULES = {"read": "reader", "write": "writer"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
