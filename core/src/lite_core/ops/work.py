"""The work of operators: arithmetic and memory traffic, estimated from the types of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

from lite_core.ir import Node, Value

__all__ = ["Work", "bytes_of", "work_of"]


class Work(NamedTuple):
    """The work of a node: floating-point operations, two for a multiply-add, and bytes read and written."""

    flops: float
    bytes: float


def work_of(node: Node) -> Work | None:
    """Estimate the work of a node from the types of its inputs and outputs.

    Returns:
        None if it is unknown: a dimension is symbolic, or the node has sub-graphs.
    """
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    if node.subgraphs or not all(v.type.is_static for v in values):
        return None
    count = _FLOPS.get(node.op, _element_wise) if node.domain == "" else _element_wise
    return Work(count(node), _bytes_moved(node))


def bytes_of(value: Value) -> int:
    """Return the size of a tensor in bytes; 0 if a dimension is symbolic."""
    return prod(_dims(value)) * value.dtype.itemsize if value.type.is_static else 0


_VIEWS = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
# These read only the elements that they write.
_SELECTIONS = frozenset({"Gather", "GatherElements", "GatherND", "Shape", "Size", "Slice"})


def _bytes_moved(node: Node) -> int:
    """Count each input read once and each output written once; less for views and selections."""
    if node.op in _VIEWS:
        return 0
    written = sum(bytes_of(v) for v in node.outputs if v is not None)
    if node.op in _SELECTIONS:
        return 2 * written
    return written + sum(bytes_of(v) for v in dict.fromkeys(node.inputs) if v is not None)


def _dims(value: Value | None) -> tuple[int, ...]:
    dims: tuple[int, ...] = () if value is None or value.shape is None else value.shape
    return dims


def _element_wise(node: Node) -> int:
    """Count one operation for each element of the largest tensor, which also fits reductions."""
    if node.op in _VIEWS or node.op in _SELECTIONS:
        return 0
    return max((prod(_dims(v)) for v in (*node.inputs, *node.outputs) if v is not None), default=0)


def _convolution(weights: int) -> Callable[[Node], int]:
    """Return a counter of one sum over a channel's weights ``[M, C / group, ...]`` for each output element."""
    return lambda node: 2 * prod(_dims(node.outputs[0])) * prod(_dims(node.inputs[weights])[1:])


def _transposed_convolution(node: Node) -> int:
    """Count one product of each input element with each of its channel's weights ``[C, M / group, ...]``."""
    return 2 * prod(_dims(node.inputs[0])) * prod(_dims(node.inputs[1])[1:])


def _matrix_product(node: Node) -> int:
    """Count one sum over the last axis of the first input for each element of the output."""
    summed = _dims(node.inputs[0])[0 if node.attributes.get("transA") else -1]
    return 2 * prod(_dims(node.outputs[0])) * summed


def _window(node: Node) -> int:
    """Count one window for each element of the output."""
    kernel: Any = node.attributes["kernel_shape"]
    return prod(_dims(node.outputs[0])) * int(prod(kernel))


def _recurrent(node: Node) -> int:
    """Count all weights for each step ``[sequence, batch, ...]``."""
    steps = prod(_dims(node.inputs[0])[:2])
    return 2 * steps * (prod(_dims(node.inputs[1])) + prod(_dims(node.inputs[2])))


#: Counters of floating-point operations; other operators count as element-wise.
_FLOPS: Mapping[str, Callable[[Node], int]] = {
    **dict.fromkeys(("Conv", "ConvInteger", "DeformConv"), _convolution(1)),
    "QLinearConv": _convolution(3),
    "ConvTranspose": _transposed_convolution,
    **dict.fromkeys(("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul"), _matrix_product),
    **dict.fromkeys(("AveragePool", "LpPool", "MaxPool"), _window),
    **dict.fromkeys(("GRU", "LSTM", "QuantizedLSTM", "RNN"), _recurrent),
}
