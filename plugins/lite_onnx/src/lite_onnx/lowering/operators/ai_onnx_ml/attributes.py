"""The domain's name, and its attributes as NumPy's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["MACHINE_LEARNING", "Array", "array", "as_real", "rows", "shaped", "text"]

MACHINE_LEARNING = "ai.onnx.ml"

Array = np.ndarray[Any, Any]


def array(node: SourceNode, name: str, dtype: Any) -> Array:
    """A list, or a tensor, of numbers; empty when it is left out."""
    return np.asarray(node.attributes.get(name, []), dtype).reshape(-1)


def shaped(node: SourceNode, name: str, dtype: Any, *shape: int) -> Array:
    """As :func:`array`, of a shape that its other attributes ask for.

    Raises:
        Unlowerable: it has another number of elements.
    """
    found = array(node, name, dtype)
    if found.size != np.prod(shape):
        raise Unlowerable(f"its attribute {name!r} has {found.size} elements, not {' * '.join(map(str, shape))}")
    return found.reshape(shape)


def text(node: SourceNode, name: str, default: str, *choices: str) -> str:
    """One of some words.

    Raises:
        Unlowerable: it is another.
    """
    found = str(node.attributes.get(name, default))
    if found not in (default, *choices):
        raise Unlowerable(f"its attribute {name!r} is {found!r}, not one of {', '.join((default, *choices))}")
    return found


def as_real(x: Value, context: Context) -> Value:
    """Numbers of any type as float32, which the domain's results are; float64 stays for trees alone."""
    return x if x.dtype is DType.FLOAT32 else context.add("Cast", [x], {"to": DType.FLOAT32})


def rows(x: Value, context: Context) -> Value:
    """[N, features]; a vector is one row."""
    rank = context.rank(x)
    if rank not in (1, 2):
        raise Unlowerable(f"its input has {rank} dimensions, not 2")
    return x if rank == 2 else context.add("Unsqueeze", [x, context.ints(0)])
