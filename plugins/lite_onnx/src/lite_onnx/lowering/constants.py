"""Constants of a model: those of strings are nodes, because constants of a graph are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Value

__all__ = ["add_constant"]


def add_constant(builder: GraphBuilder, elements: Any, name: str = "", dtype: DType | None = None) -> Value:
    """Add a tensor of numbers as a constant, or one of strings as a node ``lite.Strings``.

    Args:
        builder: the builder of the graph.
        elements: anything NumPy converts to an array.
        name: the value's name; generated if empty.
        dtype: element type that numbers are converted to.

    Raises:
        GraphError: the name is taken, or the elements are neither numbers nor strings.
    """
    array = np.asarray(elements)
    if array.dtype.kind not in "OU":
        return builder.constant(elements, name, dtype)
    attributes = {"strings": tuple(str(text) for text in array.flat), "shape": array.shape}
    return builder.add("Strings", [], attributes, domain="lite", output=name)
