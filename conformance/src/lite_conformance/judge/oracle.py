"""The oracle: expected outputs by the references of lite_core, in float64 where that is meaningful."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lite_conformance.judge.compare import Array, Expected
from lite_conformance.judge.tolerances import Numerics
from lite_core import ops
from lite_core.errors import LiteError
from lite_core.ir import Attribute, DType, Graph, Node, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph

__all__ = ["expect", "in_float64"]


def expect(graph: Graph, inputs: Sequence[Array], numerics: Numerics) -> list[Expected]:
    """Return the expected outputs of a graph, with the magnitudes that tolerances are relative to.

    Where an operator does not exist in float64 (it rounds to a smaller type by definition), the reference
    in the graph's own types is the truth.
    """
    arrays = _evaluate(graph, inputs, numerics)
    if numerics.magnitude == "terms":
        terms = _evaluate(_absolute(graph), [np.abs(a) if _is_floating(a) else a for a in inputs], numerics)
        magnitudes: list[float | Array] = [np.abs(a) if _is_floating(a) else 0.0 for a in terms]
    elif numerics.magnitude == "tensor":
        magnitudes = [_largest_finite(a) for a in arrays]
    else:
        magnitudes = [1.0 if numerics.magnitude == "one" else 0.0 for _ in arrays]
    return [
        Expected(v.name, v.dtype, a, _finite(m), numerics.every_bit, or_zero=numerics.or_zero)
        for v, a, m in zip(graph.outputs, arrays, magnitudes)
    ]


def _evaluate(graph: Graph, inputs: Sequence[Array], numerics: Numerics) -> list[Array]:
    if numerics.truth == "float64":
        try:
            wide = in_float64(graph)
            given = [a.astype(v.dtype.numpy) for v, a in zip(wide.inputs, inputs)]
            results = evaluate_graph(wide, given)
        except LiteError:
            results = evaluate_graph(graph, inputs)
    else:
        results = evaluate_graph(graph, inputs)
    return [_widest(a) if v.dtype.is_floating else a for v, a in zip(graph.outputs, results)]


def in_float64(graph: Graph) -> Graph:
    """Return a copy with float64 for all floating tensors, in sub-graphs too, except inputs of fixed type.

    Raises:
        GraphError: an operator does not support float64.
    """
    wide = graph.copy()
    _widen(wide)
    infer_graph(wide)
    return wide


def _widen(graph: Graph) -> None:
    fixed = set(_of_fixed_type(graph))
    for value in graph.inputs:
        if value not in fixed:
            _widen_value(value)
    for value, array in list(graph.constants.items()):
        if value.dtype.is_floating and value not in fixed:
            graph.constants[value] = array.astype(np.float64)
            _widen_value(value)
    for node in graph.nodes:
        _widen_attributes(node)
        for output in node.outputs:
            if output is not None:
                _widen_value(output)


def _of_fixed_type(graph: Graph) -> Iterator[Value]:
    """Yield the operands for inputs that accept only one element type, such as the scales of Resize."""
    for node in graph.nodes:
        definition = ops.get(node)
        for index, value in enumerate(node.inputs):
            parameter = definition.parameter(index)
            if value is not None and parameter is not None and parameter.type not in definition.types:
                yield value


def _widen_attributes(node: Node) -> None:
    for key, attribute in node.attributes.items():
        node.attributes[key] = _widened(attribute)


def _widened(attribute: Attribute) -> Attribute:
    if isinstance(attribute, DType):
        return DType.FLOAT64 if attribute.is_floating else attribute
    if isinstance(attribute, np.ndarray):
        return _widest(attribute)
    if isinstance(attribute, Graph):
        _widen(attribute)
    return attribute


def _widen_value(value: Value) -> None:
    if value.dtype.is_floating:
        value.type = value.type.with_dtype(DType.FLOAT64)


def _absolute(graph: Graph) -> Graph:
    copy = graph.copy()
    for value, array in list(copy.constants.items()):
        if value.dtype.is_floating:
            copy.constants[value] = np.abs(array)
    return copy


def _is_floating(array: Array) -> bool:
    return DType.of(array.dtype).is_floating


def _widest(array: Array) -> Array:
    return array.astype(np.float64) if _is_floating(array) else array


def _largest_finite(array: Array) -> float:
    if not _is_floating(array):
        return 0.0
    finite = np.abs(array[np.isfinite(array)])
    return float(finite.max()) if finite.size else 0.0


def _finite(magnitude: float | Array) -> float | Array:
    return np.nan_to_num(magnitude, nan=0.0, posinf=0.0) if isinstance(magnitude, np.ndarray) else magnitude
