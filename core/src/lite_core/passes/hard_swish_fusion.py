"""Fusing HardSigmoid and HardSwish written out in arithmetic into one node."""

from __future__ import annotations

from math import inf, isfinite
from typing import NamedTuple

from lite_core import ops
from lite_core.ir import DType, Node, Value
from lite_core.passes.polynomial import Polynomial, is_close, match_polynomial
from lite_core.passes.rewriting import Scope, ScopePass

__all__ = ["HardSwishFusion"]


class _Clamp(NamedTuple):
    """``t = min(max(scale * argument + offset, low), high)`` as one or two nodes."""

    nodes: tuple[Node, ...]
    argument: Value
    low: float
    high: float
    scale: float = 1.0
    offset: float = 0.0


class HardSwishFusion(ScopePass):
    """Pass that recognises the piecewise linear activations of MobileNetV3 (https://arxiv.org/abs/1905.02244).

    Rules:
        1. ``x HardSigmoid(x, alpha=1/6, beta=1/2)`` -> HardSwish.
        2. ``x clip(x + 3, 0, 6) / 6`` -> HardSwish.
        3. ``clip(x + 3, 0, 6) / 6`` -> HardSigmoid. Any other slope and offset match, too, if the clipped and scaled
           result is between 0 and 1.

    The clip may be a Clip, Min of Relu, Min of Max or Max of Min; factors and terms may be grouped and
    ordered in any way. Intermediate values must have no other users.
    """

    name = "hard_swish_fusion"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if (clamp := _clamp(scope, node)) is not None:
                _fuse(scope, clamp)


def _fuse(scope: Scope, clamp: _Clamp) -> None:
    def line(inner: Polynomial, factor: float) -> Polynomial:
        """Return the factor times the clamped argument, as a polynomial in x."""
        scaled = {key: factor * clamp.scale * c for key, c in inner.items()}
        scaled[0, 0] = scaled.get((0, 0), 0.0) + factor * clamp.offset
        return scaled

    def between_0_and_1(factor: float, dtype: DType) -> bool:
        limits = {(0, 0): factor * clamp.low, (1, 0): factor * clamp.high}
        return factor > 0 and is_close(limits, {(1, 0): 1.0}, dtype)

    def is_hard_swish(inner: Polynomial, result: Polynomial, dtype: DType) -> bool:
        factor = result.get((1, 1), 0.0)
        return (
            is_close(result, {(1, 1): factor}, dtype)
            and between_0_and_1(factor, dtype)
            and is_close(line(inner, factor), {(1, 0): 1 / 6, (0, 0): 0.5}, dtype)
        )

    def is_hard_sigmoid(inner: Polynomial, result: Polynomial, dtype: DType) -> bool:
        factor = result.get((0, 1), 0.0)
        linear = all(c == 0 for key, c in inner.items() if sum(key) > 1) and inner.get((1, 0), 0.0) != 0
        return linear and is_close(result, {(0, 1): factor}, dtype) and between_0_and_1(factor, dtype)

    if (match := match_polynomial(scope, clamp.nodes, clamp.argument, is_hard_swish)) is not None:
        scope.substitute(match.nodes, "HardSwish", [match.source])
    elif clamp.nodes[-1].op != "HardSigmoid":
        match = match_polynomial(scope, clamp.nodes, clamp.argument, is_hard_sigmoid, farthest=True)
        if match is not None:
            slope = line(match.argument, match.result[0, 1])
            attributes = {"alpha": slope[1, 0], "beta": slope[0, 0]}
            scope.substitute(match.nodes, "HardSigmoid", [match.source], attributes)


# **** clamps ****


def _clamp(scope: Scope, node: Node) -> _Clamp | None:
    """Return a node, possibly with the node before it, as a clamp, or None."""
    first = node.inputs[0] if node.inputs else None
    if node.qualified_op == "HardSigmoid" and first is not None:
        attributes = ops.attributes_of(node)
        return _Clamp((node,), first, 0.0, 1.0, attributes["alpha"], attributes["beta"])
    if node.qualified_op == "Clip" and first is not None:
        low, high = (scope.scalar(v) for v in (*node.inputs[1:], None, None)[:2])
        return None if low is None or high is None else _Clamp((node,), first, low, high)
    outer = _limits(scope, node) if node.qualified_op in ("Min", "Max") else None
    inner_node = None if outer is None else scope.producer(outer[0], "Relu", "Min", "Max")
    inner = None if inner_node is None else _limits(scope, inner_node)
    if outer is None or inner_node is None or inner is None:
        return None
    low, high = max(outer[1], inner[1]), min(outer[2], inner[2])
    return _Clamp((inner_node, node), inner[0], low, high) if isfinite(low) and isfinite(high) and low <= high else None


def _limits(scope: Scope, node: Node) -> tuple[Value, float, float] | None:
    """Return the tensor that a Relu, Min or Max limits by a number, and its least and greatest result."""
    if node.op == "Relu":
        return None if node.inputs[0] is None else (node.inputs[0], 0.0, inf)
    found = scope.tensor_and_scalar(node)
    if found is None:
        return None
    value, limit = found
    return (value, -inf, limit) if node.op == "Min" else (value, limit, inf)
