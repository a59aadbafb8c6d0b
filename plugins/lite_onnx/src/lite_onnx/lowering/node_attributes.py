"""Access to the attributes of a node, with defaults."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lite_onnx.lowering.node import SourceNode

__all__ = ["number", "numbers", "present_attributes"]


def present_attributes(node: SourceNode, names: Iterable[str]) -> dict[str, Any]:
    """Return the named attributes that the node has, converted for a node of Lite."""
    found = {name: node.attributes[name] for name in names if name in node.attributes}
    return {name: tuple(a) if isinstance(a, list) else a for name, a in found.items()}


def number(node: SourceNode, name: str, default: Any) -> Any:
    """Return an attribute that is one number or string, or its default."""
    return node.attributes.get(name, default)


def numbers(node: SourceNode, name: str) -> list[Any]:
    """Return an attribute that is a list; empty if the node does not have it."""
    found = node.attributes.get(name, [])
    return list(found) if isinstance(found, list) else [found]
