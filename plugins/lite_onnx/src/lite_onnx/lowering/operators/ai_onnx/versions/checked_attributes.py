"""Removal of attributes from a node, with a check of their kind."""

from __future__ import annotations

from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["take_float", "take_int", "take_ints", "take_string"]


def take_int(node: SourceNode, name: str, default: int | None = None) -> int:
    """Remove and return an integer attribute.

    Raises:
        Unlowerable: it is of another kind (like all functions here), or missing and without a default.
    """
    number = node.attributes.pop(name, default)
    if not isinstance(number, int):
        raise _wrong(name, "an integer", number)
    return number


def take_float(node: SourceNode, name: str, default: float | None = None) -> float:
    """Remove and return an attribute that is a number."""
    number = node.attributes.pop(name, default)
    if not isinstance(number, (int, float)):
        raise _wrong(name, "a number", number)
    return float(number)


def take_ints(node: SourceNode, name: str) -> list[int] | None:
    """Remove and return a list of integers; None if the node does not have the attribute."""
    numbers = node.attributes.pop(name, None)
    if numbers is None:
        return None
    if not isinstance(numbers, list):
        raise _wrong(name, "a list of integers", numbers)
    integers = [n for n in numbers if isinstance(n, int)]
    if len(integers) < len(numbers):
        raise _wrong(name, "a list of integers", numbers)
    return integers


def take_string(node: SourceNode, name: str, default: str) -> str:
    """Remove and return a string attribute."""
    text = node.attributes.pop(name, default)
    if not isinstance(text, str):
        raise _wrong(name, "a string", text)
    return text


def _wrong(name: str, kind: str, found: object) -> Unlowerable:
    return Unlowerable(f"its attribute {name!r} " + ("is missing" if found is None else f"must be {kind}, is {found}"))
