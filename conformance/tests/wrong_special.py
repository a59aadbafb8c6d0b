"""Backends with one mistake in NaN, overflow, division by zero, subnormal numbers or signed zeros, and allowed ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any

import numpy as np
from wrong_ties import Array, Compute, OneMistake, operands

from lite_conformance.judge.tolerances import smallest_normal
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph

_ACTIVATIONS = ("Relu", "LeakyRelu", "PRelu", "ThresholdedRelu", "Shrink", "HardSigmoid", "HardSwish", "Elu", "Selu")
_EXTREMES = ("MaxPool", "GlobalMaxPool", "ReduceMax", "ArgMax", "ReduceLogSumExp", "ScatterElements", "Hardmax", "TopK")
_SUMS = ("ReduceSum", "ReduceMean", "ReduceL1", "CumSum", "AveragePool", "GlobalAveragePool", "Add", "Mul")
_OVERFLOWING = ("Add", "Sub", "Mul", "Neg", "Abs", "Pow", "MatMul", "Gemm", "ReduceSum", "ReduceProd", "CumSum")
_MOVES = ("Transpose", "Reshape", "Concat", "Split", "Gather", "Slice", "Pad", "Where", "Identity", "ScatterND", "Tile")
_SMOOTH = ("Add", "Sub", "Mul", "Div", "Exp", "Sqrt", "Log", "Reciprocal", "Relu", "Max", "Equal", "MatMul", "Softmax")

# **** NaN ****


def _without_nan(graph: Graph, inputs: list[Array], instead: float) -> list[Array]:
    return evaluate_graph(graph, [np.where(np.isnan(x), x.dtype.type(instead), x) if _real(x) else x for x in inputs])


def _real(x: Array) -> bool:
    return DType.of(x.dtype).is_floating


def passes_over_nan(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the larger or smaller number, like fmax and fmin of C."""
    first, *rest = [a for a in operands(graph, inputs) if a is not None]
    for other in rest:
        first = np.fmax(first, other) if graph.nodes[0].op == "Max" else np.fmin(first, other)
    return [first]


def returns_the_second_operand(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the second operand where one is NaN, like x86's maxps: a NaN of the first is lost."""
    first, *rest = [a for a in operands(graph, inputs) if a is not None]
    for other in rest:
        first = np.where(first > other if graph.nodes[0].op == "Max" else first < other, first, other)
    return [first]


def clips_nan_to_a_bound(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return a bound for NaN, and ignore bounds that are NaN."""
    x, *bounds = operands(graph, inputs)
    assert x is not None
    for bound, limit in zip(bounds, (np.fmax, np.fmin)):
        x = x if bound is None else limit(x, bound.reshape(()))
    return [np.asarray(x)]


def ignores_bounds_that_are_nan(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return NaN for NaN, but ignore bounds that are NaN."""
    x = inputs[0]
    return [np.asarray(np.where(np.isnan(x), x, clips_nan_to_a_bound(graph, inputs)[0]))]


def activates_nan(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return 0 for NaN, like a comparison that sends NaN to the other branch."""
    x = inputs[0]
    (y,) = evaluate_graph(graph, inputs)
    return [np.where(np.isnan(x), y.dtype.type(0), y)] if _real(x) else [y]


def reduces_past_nan(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the largest number, like a loop with the comparison >."""
    return _without_nan(graph, inputs, -inf)


def adds_zero_for_nan(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return sums and products without NaN."""
    return _without_nan(graph, inputs, 0.0)


def spreads_nan(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return NaN in every element if any input is NaN."""
    results = evaluate_graph(graph, inputs)
    spoilt = any(np.isnan(x).any() for x in inputs if _real(x))
    return [np.full_like(y, nan) if spoilt and _real(y) else y for y in results]


# **** integers ****


def saturates(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the nearest integer of the type, computed in float64."""
    node, known = graph.nodes[0], operands(graph, inputs)
    dtype = graph.outputs[0].dtype
    if not dtype.is_integer:
        return evaluate_graph(graph, inputs)
    builder = GraphBuilder("wide")
    arrays = [a if a is None or (i and node.op.startswith(("Reduce", "CumSum"))) else a.astype(np.float64)
              for i, a in enumerate(known)]  # fmt: skip
    values = [None if a is None else builder.constant(a) for a in arrays]
    builder.output(builder.add_node(node.op, values, dict(node.attributes), outputs=1)[0])
    (wide,) = evaluate_graph(builder.build(), [])
    info = np.iinfo(dtype.numpy)
    inside = (wide > info.min) & (wide < info.max)
    limits = np.where(wide < 0, info.min, np.uint64(info.max).astype(dtype.numpy)).astype(dtype.numpy)
    return [np.where(inside, np.where(inside, wide, 0).astype(dtype.numpy), limits)]


def _dividing(graph: Graph, inputs: list[Array]) -> tuple[Array, Array, Array]:
    """Return the dividends and divisors, broadcast, and the right quotients."""
    a, b = operands(graph, inputs)
    assert a is not None
    assert b is not None
    (quotient,) = evaluate_graph(graph, inputs)
    return (*np.broadcast_arrays(a, b), quotient)


def refuses_to_divide_by_zero(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Raise an error for a divisor of 0."""
    _, divisor, quotient = _dividing(graph, inputs)
    if not divisor.all():
        raise ExecutionError("division by zero")
    return [quotient]


def loses_the_rest(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return only zeros if a divisor is 0."""
    _, divisor, quotient = _dividing(graph, inputs)
    return [quotient if divisor.all() else np.zeros_like(quotient)]


def saturates_the_quotient(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the highest integer for the lowest one divided by -1."""
    dividend, divisor, quotient = _dividing(graph, inputs)
    info = np.iinfo(quotient.dtype)
    return [np.where((dividend == info.min) & (divisor == -1) & (info.min < 0), info.max, quotient)]


def divides_by_zero_to_anything(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return a number that depends on the position for a divisor of 0, as is allowed."""
    _, divisor, quotient = _dividing(graph, inputs)
    anything = np.arange(quotient.size).reshape(quotient.shape).astype(quotient.dtype)
    return [np.where(divisor == 0, anything, quotient) if DType.of(quotient.dtype).is_integer else quotient]


# **** subnormal numbers and zeros ****


def _flushed(x: Array) -> Array:
    if not _real(x):
        return x
    return np.where(np.abs(x) < smallest_normal(DType.of(x.dtype)), np.copysign(x.dtype.type(0), x), x)


def flushes(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return the results with subnormal inputs, constants and results flushed to zero."""
    copy = graph.copy()
    for value, array in graph.constants.items():
        copy.constants[value] = _flushed(array)
    return [_flushed(y) for y in evaluate_graph(copy, [_flushed(x) for x in inputs])]


def moves_and_flushes(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Flush subnormal numbers of operators that only move elements, where this is not allowed."""
    return flushes(graph, inputs)


def adds_zero(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return 0 for -0."""
    return [y + y.dtype.type(0) if _real(y) else y for y in evaluate_graph(graph, inputs)]


def computes_other_zeros(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return zeros of the other sign from operators that compute, as is allowed."""
    return [np.where(y == 0, -y, y) if _real(y) else y for y in evaluate_graph(graph, inputs)]


def changes_the_payload(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Return a NaN with another sign for NaN, as is allowed even where elements only move."""
    return [np.where(np.isnan(y), y.dtype.type(-nan), y) if _real(y) else y for y in evaluate_graph(graph, inputs)]


def _backend(ops: Sequence[str], compute: Compute) -> tuple[str, Any]:
    return compute.__name__, OneMistake(ops, compute)


#: All backends by name.
BACKENDS: dict[str, OneMistake] = dict(
    [
        _backend(("Max", "Min"), passes_over_nan),
        _backend(("Max", "Min"), returns_the_second_operand),
        _backend(("Clip",), clips_nan_to_a_bound),
        _backend(("Clip",), ignores_bounds_that_are_nan),
        _backend(_ACTIVATIONS, activates_nan),
        _backend(_EXTREMES, reduces_past_nan),
        _backend(_SUMS, adds_zero_for_nan),
        _backend((*_SUMS, *_ACTIVATIONS, "MaxPool", "ReduceMax", "Max"), spreads_nan),
        _backend(_OVERFLOWING, saturates),
        _backend(("Div", "Mod"), refuses_to_divide_by_zero),
        _backend(("Div", "Mod"), loses_the_rest),
        _backend(("Div",), saturates_the_quotient),
        _backend(("Div", "Mod"), divides_by_zero_to_anything),
        _backend(_SMOOTH, flushes),
        _backend(_MOVES, moves_and_flushes),
        _backend(_MOVES, adds_zero),
        _backend(("Add", "Mul", "Max", "Min", "Relu", "ReduceMax", "Neg", "Clip"), computes_other_zeros),
        _backend(_MOVES, changes_the_payload),
    ]
)
