"""Fusing layer normalization written out in arithmetic into one node."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lite_core import ops
from lite_core.ir import Array, Node, Value
from lite_core.passes.rewriting import Scope, ScopePass

__all__ = ["LayerNormFusion"]


class _Normalization(NamedTuple):
    """``(x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon)`` and the nodes that compute it."""

    source: Value
    axis: int
    epsilon: float
    nodes: list[Node]


class LayerNormFusion(ScopePass):
    """Pass that recognises layer normalization (https://arxiv.org/abs/1607.06450).

    With ``d = x - ReduceMean(x)`` and ``s = Sqrt(ReduceMean(d^2) + epsilon)`` over the same last axes:

    Rules:
        1. ``d / s`` -> LayerNormalization with a scale of ones, if the sizes of those axes are known. The square may be
           Pow by 2 or Mul by itself, the root Sqrt or Pow by 0.5, the division Div or Mul by Reciprocal.
        2. ``d / s * scale`` includes the constant scale if its shape equals that of the normalized axes or broadcasts
           to it.
        3. ``... + bias`` after rule 1 or 2 includes the constant bias in the same way.

    Intermediate values must have no other users.
    """

    name = "layer_norm_fusion"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.qualified_op in ("Div", "Mul") and (found := _normalization(scope, node)) is not None:
                _fuse(scope, found)


def _normalization(scope: Scope, last: Node) -> _Normalization | None:
    for centered_value, deviation_value, division in _quotients(scope, last):
        centered = scope.producer(centered_value, "Sub")
        root, variance_value = _root(scope, deviation_value)
        shifted = scope.producer(variance_value, "Add")
        if centered is None or root is None or shifted is None:
            continue
        sum_of = scope.tensor_and_scalar(shifted)
        if sum_of is None:
            continue
        variance_output, epsilon = sum_of
        variance = scope.producer(variance_output, "ReduceMean")
        mean = scope.producer(centered.inputs[1], "ReduceMean")
        source = centered.inputs[0]
        if variance is None or mean is None or source is None or mean.inputs[0] is not source:
            continue
        square = scope.producer(variance.inputs[0], "Mul", "Pow")
        axis = _normalized_axis(scope, mean, source)
        if (
            square is None
            or not _is_square(scope, square, centered_value)
            or axis is None
            or axis != _normalized_axis(scope, variance, source)
        ):
            continue
        nodes = [mean, centered, square, variance, shifted, root, *division]
        output = last.outputs[0]
        # NOTE: an epsilon with more dimensions than x would widen the result.
        if output is not None and output.type.shape == source.type.shape and scope.are_private(nodes):
            return _Normalization(source, axis, epsilon, nodes)
    return None


def _quotients(scope: Scope, node: Node) -> list[tuple[Value | None, Value | None, list[Node]]]:
    """Return the possible numerators and denominators of a quotient, and the nodes that divide."""
    a, b = node.inputs
    if node.op == "Div":
        return [(a, b, [node])]
    factors = ((numerator, scope.producer(factor, "Reciprocal")) for numerator, factor in ((a, b), (b, a)))
    return [(numerator, inverse.inputs[0], [inverse, node]) for numerator, inverse in factors if inverse is not None]


def _root(scope: Scope, value: Value | None) -> tuple[Node | None, Value | None]:
    node = scope.producer(value, "Sqrt", "Pow")
    if node is None or (node.op == "Pow" and scope.scalar(node.inputs[1]) != 0.5):
        return None, None
    return node, node.inputs[0]


def _is_square(scope: Scope, node: Node, of: Value | None) -> bool:
    first, second = node.inputs
    return first is of and (second is of if node.op == "Mul" else scope.scalar(second) == 2)


def _normalized_axis(scope: Scope, mean: Node, source: Value) -> int | None:
    """Return the first of the trailing axes that a ReduceMean reduces, counted from the end; None for other axes."""
    axes = scope.integers(mean.inputs[1]) if len(mean.inputs) > 1 else None
    rank = source.type.rank
    if not axes or rank is None or not ops.attributes_of(mean)["keepdims"]:
        return None
    counted = sorted(a if a < 0 else a - rank for a in axes)
    return counted[0] if counted == list(range(-len(counted), 0)) else None


# **** scale and bias ****


def _fuse(scope: Scope, found: _Normalization) -> None:
    shape = found.source.type.shape
    assert shape is not None
    sizes = tuple(d for d in shape[found.axis :] if isinstance(d, int))
    if len(sizes) < -found.axis:
        return  # some of these sizes are unknown
    scale = _absorb(scope, found, "Mul", sizes)
    # The bias comes after the scale; without a scale an Add may follow directly.
    bias = _absorb(scope, found, "Add", sizes)
    output = found.nodes[-1].outputs[0]
    assert output is not None
    ones = np.ones(sizes, dtype=output.dtype.numpy)
    inputs = [found.source, _parameter(scope, scale, ones, f"{output.name}.scale")]
    if bias is not None:
        inputs.append(_parameter(scope, bias, ones, f"{output.name}.bias"))
    scope.substitute(found.nodes, "LayerNormalization", inputs, {"axis": found.axis, "epsilon": found.epsilon})


def _absorb(scope: Scope, found: _Normalization, op: str, sizes: tuple[int, ...]) -> Value | None:
    """Extend the pattern by the next node if it is ``op`` with a suitable constant; return the constant, or None."""
    value = found.nodes[-1].outputs[0]
    user = None if value is None else scope.sole_consumer(value)
    if user is None or user.qualified_op != op or user.inputs[0] is user.inputs[1]:
        return None
    parameter = next(v for v in user.inputs if v is not value)
    array = scope.constant(parameter)
    rank = found.source.type.rank
    if array is None or rank is None or array.ndim > rank or not _broadcasts(array.shape, sizes):
        return None
    found.nodes.append(user)
    return parameter


def _broadcasts(shape: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    """Return True if an array of this shape, without leading ones, broadcasts to the normalized axes."""
    core = shape[-len(sizes) :]
    leading = shape[: -len(sizes)]
    return all(n == 1 for n in leading) and all(a in (1, b) for a, b in zip(core[::-1], sizes[::-1]))


def _parameter(scope: Scope, value: Value | None, ones: Array, name: str) -> Value:
    """Return a constant broadcast to exactly the shape of the normalized axes."""
    if value is None:
        return scope.new_constant(name, ones)
    array = scope.constant(value)
    assert array is not None
    if array.shape == ones.shape:
        return value
    core = array.reshape(array.shape[-ones.ndim :])
    return scope.new_constant(name, np.ascontiguousarray(np.broadcast_to(core, ones.shape)))
