"""Nodes with known inputs that a recipe computes for each size."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core import ops
from lite_core.ir import DType, Node
from lite_core.ops.evaluate import evaluate_node

__all__ = ["Evaluation"]

Array = np.ndarray[Any, Any]

_HALVES = (DType.FLOAT16, DType.BFLOAT16)


class Evaluation:
    """A function of arrays: the reference of a node. Types are inferred once, which takes five times as long.

    What the inference decides by shapes is recorded with the types of the graph.

    Args:
        node: the node; its types are known.
    """

    def __init__(self, node: Node) -> None:
        definition = ops.get(node)
        self._node, self._reference = node, definition.reference
        self._attributes = definition.attributes_of(node)
        self._left_out = [None] * (definition.fixed_inputs - len(node.inputs))
        values = [value for value in (*node.inputs, *node.outputs) if value is not None]
        # References of half-precision values need wider inputs.
        is_wide = not any(value.dtype in _HALVES for value in values)
        self._is_plain = is_wide and not definition.extra_keywords and None not in node.outputs
        self._types = [value.dtype.numpy for value in node.outputs if value is not None]

    def __call__(self, *arrays: Array | None) -> tuple[Array, ...]:
        """Return the results: a tuple, whose parts can be recorded one by one."""
        if not self._is_plain:
            return tuple(evaluate_node(self._node, arrays))
        with np.errstate(all="ignore"):
            results = self._reference(*arrays, *self._left_out, **self._attributes)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        return tuple([np.asarray(r).astype(type, copy=False) for r, type in zip(results, self._types)])
