"""An operator's reference as a function of arrays: for tables of values, and to test kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core import ops
from lite_core.errors import GraphError
from lite_core.ir import Array, DType, Node, TensorType, Value
from lite_core.ops.evaluate import evaluate_node

__all__ = ["reference"]


def reference(op: str, /, domain: str = "", outputs: int = 1, **attributes: Any) -> Callable[..., Any]:
    """Return a function that computes an operator by its reference, which defines the operator's results.

    The function takes the operator's inputs: arrays of any shape, numbers, or None for an input that is left out.
    A float is float64, the type of the most exact results; an int is int64. Arrays keep their element types. It returns
    an array, or a tuple of arrays for several outputs; a number instead of an array if all inputs are numbers::

        gelu = reference("Gelu", approximate="tanh")
        gelu(0.5)                          # 0.34571400982514394
        gelu(np.linspace(-8, 8, 1 << 10))  # a table in float64

    Args:
        op: the operator's name.
        domain: its domain: ``"lite"``, that of a plugin, or ONNX's by default.
        outputs: the number of outputs to compute.
        attributes: attributes that differ from their defaults.

    Raises:
        GraphError: the opset has no such operator; from the function, the inputs or attributes do not fit the operator.
    """
    node = Node(op, (), (), domain=domain)
    definition = ops.get(node)  # raises for an operator that does not exist
    for key, attribute in attributes.items():
        spec = definition.attributes.get(key)
        is_dtype = spec is not None and spec.kind == "dtype"
        node.attributes[key] = DType.of(attribute) if is_dtype else _sequence_as_tuple(attribute)

    def compute(*operands: Any) -> Any:
        arrays = [None if operand is None else _array(operand) for operand in operands]
        inputs = [None if a is None else Value(f"input_{i}", TensorType.of_array(a)) for i, a in enumerate(arrays)]
        results = [Value(f"output_{i}", TensorType(DType.FLOAT64, None)) for i in range(outputs)]
        call = Node(op, inputs, results, node.attributes, domain=domain, name="reference")
        if problems := list(definition.check(call)):
            raise GraphError(f"{call.describe()}: {'; '.join(problems)}")
        found = evaluate_node(call, arrays)
        numbers = all(isinstance(operand, (int, float)) for operand in operands if operand is not None)
        unpacked = [array.item() if numbers and array.ndim == 0 else array for array in found]
        return unpacked[0] if outputs == 1 else tuple(unpacked)

    return compute


def _array(operand: Any) -> Array:
    """Return an operand as an array: a Python number is of the widest type of its kind."""
    if isinstance(operand, int) and not isinstance(operand, bool):
        return np.array(operand, np.int64)
    array = np.asarray(operand)
    return array.astype(object) if array.dtype.kind == "U" else array


def _sequence_as_tuple(attribute: Any) -> Any:
    return tuple(attribute) if isinstance(attribute, list) else attribute
