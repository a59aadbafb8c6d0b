"""Attributes of a node, or what holds where it leaves them out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lite_onnx.lowering.node import SourceNode

__all__ = ["given", "number", "numbers"]


def given(node: SourceNode, names: Iterable[str]) -> dict[str, Any]:
    """The attributes with some names that the node has, as a node of Lite's takes them."""
    found = {name: node.attributes[name] for name in names if name in node.attributes}
    return {name: tuple(a) if isinstance(a, list) else a for name, a in found.items()}


def number(node: SourceNode, name: str, default: Any) -> Any:
    """An attribute that is one number or text, or its default."""
    return node.attributes.get(name, default)


def numbers(node: SourceNode, name: str) -> list[Any]:
    """An attribute that is a list; empty when it is left out."""
    found = node.attributes.get(name, [])
    return list(found) if isinstance(found, list) else [found]
