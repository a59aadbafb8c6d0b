"""The domain's name, and access to attributes as NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import SourceNode
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["MACHINE_LEARNING", "Array", "array", "as_float32", "as_rows", "empty_weights", "shaped_array", "string"]

MACHINE_LEARNING = "ai.onnx.ml"

Array = np.ndarray[Any, Any]

#: Limits of a table of weights: elements, and elements for each weight that the file lists. A short file can state any
#: number of targets.
_MOST_ELEMENTS, _MOST_PER_WEIGHT = 1 << 23, 128


def array(node: SourceNode, name: str, dtype: Any) -> Array:
    """Return a list or tensor of numbers as a vector; empty if the node does not have the attribute."""
    return np.asarray(node.attributes.get(name, []), dtype).reshape(-1)


def shaped_array(node: SourceNode, name: str, dtype: Any, *shape: int) -> Array:
    """Return a list or tensor of numbers in the shape that other attributes require.

    Raises:
        Unlowerable: the number of elements does not fit the shape.
    """
    found = array(node, name, dtype)
    if found.size != np.prod(shape):
        raise Unlowerable(f"its attribute {name!r} has {found.size} elements, not {' * '.join(map(str, shape))}")
    return found.reshape(shape)


def empty_weights(leaves: int, targets: int, listed: int) -> Array:
    """Return a table [leaves, targets] of NaN, for ``listed`` weights.

    Raises:
        Unlowerable: it would be large, and almost all of it empty.
    """
    if targets < 0 or leaves * targets > max(_MOST_ELEMENTS, _MOST_PER_WEIGHT * listed):
        raise Unlowerable(f"it has {targets} targets, too many for its {listed} weights")
    return np.full((leaves, targets), np.nan)


def string(node: SourceNode, name: str, default: str, *choices: str) -> str:
    """Return a string attribute that must be its default or one of some choices.

    Raises:
        Unlowerable: it is another string.
    """
    found = str(node.attributes.get(name, default))
    if found not in (default, *choices):
        raise Unlowerable(f"its attribute {name!r} is {found!r}, not one of {', '.join((default, *choices))}")
    return found


def as_float32(x: Value, context: Context) -> Value:
    """Cast to float32, the type of the domain's results; only trees compute in float64, too."""
    return x if x.dtype is DType.FLOAT32 else context.add("Cast", [x], {"to": DType.FLOAT32})


def as_rows(x: Value, context: Context) -> Value:
    """Return [N, features]; a vector becomes one row."""
    rank = context.rank(x)
    if rank not in (1, 2):
        raise Unlowerable(f"its input has {rank} dimensions, not 2")
    return x if rank == 2 else context.add("Unsqueeze", [x, context.ints(0)])
