"""The operator Constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

_KINDS: dict[str, Any] = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_string": object,
    "value_strings": object,
}


@lowers("Constant")
def constant(node: SourceNode, context: Context) -> list[Item]:
    """Lower a constant tensor, dense or sparse, or constant numbers or strings."""
    ((name, content),) = node.attributes.items()
    if name in ("value", "sparse_value"):
        return [context.constant(content)]
    if name not in _KINDS:
        raise Unlowerable(f"its attribute {name!r} is not a tensor")
    return [context.constant(np.array(content, _KINDS[name]))]
