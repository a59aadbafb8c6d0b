"""Quantization of dequantized sums without a division: every factor between them becomes one."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_compiler.rewriting import Rewriter
from lite_core.ir import DType, Node, Value
from lite_cpu.lowering.shape import input_of, required_input

__all__ = ["fold_division", "products_are_finite"]

Array = np.ndarray[Any, Any]
F32, I32 = DType.FLOAT32, DType.INT32
_BYTES = (DType.INT8, DType.UINT8)
#: Products of int32 with smaller factors, and their sums, are finite.
_MOST = 1e25


def products_are_finite(factors: Array) -> bool:
    """Return True if products of int32 and these factors, and sums of a few such products, are finite."""
    return bool(np.all(np.abs(factors) < _MOST))


def fold_division(r: Rewriter, node: Node) -> None:
    """Rewrite ``(sums * factor + bias) / scale`` to ``sums * (factor / scale) + bias / scale``.

    Other factors are included, the terms of a sum are multiplied one by one, and limits are kept.
    """
    scale = r.scope.constant(input_of(node, 1))
    y = node.outputs[0]
    assert y is not None
    if scale is None or scale.size != 1 or not np.all(scale > 0) or required_input(node).dtype is not F32:
        return
    value = _multiplied(r, required_input(node), 1 / scale.reshape(()).astype(np.float64))
    if value is not None:
        r.replace([r.add("QuantizeLinear", [value, None, input_of(node, 2)], y.dtype, y.shape)])


def _multiplied(r: Rewriter, value: Value, factor: Array) -> Value | None:
    """Return ``value * factor`` without another multiplication, or None if the value does not end in dequantization.

    Nodes that others read, too, are not repeated, except the dequantization of bytes, which steps do as they read them.
    """
    array = r.scope.constant(value)
    if array is not None:
        return _finite(r, array * factor)
    producer = r.scope.producer(value, "Add", "Clip", "DequantizeLinear", "Max", "Mul", "Relu")
    if producer is None:
        return None
    if producer.op == "DequantizeLinear":
        return _multiplied_scale(r, producer, factor)
    first = required_input(producer)
    if r.scope.sole_consumer(value) is None or first.shape != value.shape:
        return None
    if producer.op == "Mul":
        other = r.scope.constant(required_input(producer, 1))
        # Of a vector at most: a mask of all elements is no factor of a layer.
        is_small = other is not None and other.dtype == np.float32 and other.size <= max(1, *value.shape)
        return _multiplied(r, first, other * factor) if other is not None and is_small else None
    if producer.op != "Add" and not np.all(factor > 0):
        return None
    terms = [None if v is None else _multiplied(r, v, factor) for v in producer.inputs]
    if any(term is None and v is not None for term, v in zip(terms, producer.inputs)):
        return None
    if producer.op != "Clip":
        return r.like(producer.op, terms)
    # A limit of Clip would be part of the code, and here each layer has another one.
    limited, lowest, highest = [*terms, None, None][:3]
    limited = limited if lowest is None else r.like("Max", [limited, lowest])
    return limited if highest is None else r.like("Min", [limited, highest])


def _multiplied_scale(r: Rewriter, node: Node, factor: Array) -> Value | None:
    """Return a dequantized tensor whose scale is multiplied, or None."""
    x, scale, y = required_input(node), r.scope.constant(required_input(node, 1)), node.outputs[0]
    assert y is not None
    if scale is None or scale.dtype != np.float32:
        return None
    if x.dtype in _BYTES:
        if scale.size > 1 and factor.size > 1:  # the scale is along an axis, and the factor broadcasts
            return None
    elif x.dtype is not I32 or input_of(node, 2) is not None or r.scope.sole_consumer(y) is None:
        return None
    steps = _finite(r, scale * factor if scale.size > 1 else scale.reshape(()) * factor)
    if steps is None or len(steps.shape) > len(x.shape):
        return None
    return r.add("DequantizeLinear", [x, steps, *node.inputs[2:]], F32, x.shape, node.attributes)


def _finite(r: Rewriter, array: Array) -> Value | None:
    return r.constant(np.asarray(array, np.float32)) if products_are_finite(array) else None
