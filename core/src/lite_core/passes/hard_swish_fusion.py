"""Fusing HardSigmoid and HardSwish written out in arithmetic into one node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lite_core import ops
from lite_core.ir import Node, Value
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
            for clamp in _clamps(scope, node):
                if _fuse(scope, clamp):
                    break


def _fuse(scope: Scope, clamp: _Clamp) -> bool:
    dtype = clamp.argument.dtype

    def line(inner: Polynomial, factor: float) -> Polynomial:
        """Return the factor times the clamped argument, as a polynomial in x."""
        scaled = {key: factor * clamp.scale * c for key, c in inner.items()}
        scaled[0, 0] = scaled.get((0, 0), 0.0) + factor * clamp.offset
        return scaled

    def between_0_and_1(factor: float) -> bool:
        limits = {(0, 0): factor * clamp.low, (1, 0): factor * clamp.high}
        return factor > 0 and is_close(limits, {(1, 0): 1.0}, dtype)

    def is_hard_swish(inner: Polynomial, result: Polynomial) -> bool:
        factor = result.get((1, 1), 0.0)
        return (
            is_close(result, {(1, 1): factor}, dtype)
            and between_0_and_1(factor)
            and is_close(line(inner, factor), {(1, 0): 1 / 6, (0, 0): 0.5}, dtype)
        )

    def is_hard_sigmoid(inner: Polynomial, result: Polynomial) -> bool:
        factor = result.get((0, 1), 0.0)
        linear = all(c == 0 for key, c in inner.items() if sum(key) > 1) and inner.get((1, 0), 0.0) != 0
        return linear and is_close(result, {(0, 1): factor}, dtype) and between_0_and_1(factor)

    match = match_polynomial(scope, clamp.nodes, clamp.argument, is_hard_swish)
    if match is not None:
        scope.substitute(match.nodes, "HardSwish", [match.source])
        return True
    if clamp.nodes[-1].op == "HardSigmoid":
        return False
    match = match_polynomial(scope, clamp.nodes, clamp.argument, is_hard_sigmoid, farthest=True)
    if match is None:
        return False
    slope = line(match.argument, match.result[0, 1])
    attributes = {"alpha": slope[1, 0], "beta": slope[0, 0]}
    scope.substitute(match.nodes, "HardSigmoid", [match.source], attributes)
    return True


# **** clamps ****


def _clamps(scope: Scope, node: Node) -> Iterator[_Clamp]:
    """Yield the interpretations of a node, possibly with the node before it, as a clamp."""
    if node.qualified_op == "HardSigmoid" and node.inputs[0] is not None:
        attributes = ops.get(node).attributes_of(node)
        yield _Clamp((node,), node.inputs[0], 0.0, 1.0, attributes["alpha"], attributes["beta"])
    elif node.qualified_op == "Clip" and node.inputs[0] is not None:
        low, high = (scope.scalar(v) for v in (*node.inputs[1:], None, None)[:2])
        if low is not None and high is not None:
            yield _Clamp((node,), node.inputs[0], low, high)
    elif node.qualified_op in ("Min", "Max"):
        yield from _min_max(scope, node)


def _min_max(scope: Scope, node: Node) -> Iterator[_Clamp]:
    outer = scope.tensor_and_scalar(node)
    if outer is None:
        return
    value, outer_limit = outer
    inner_node = scope.producer(value, "Relu", "Max" if node.op == "Min" else "Min")
    if inner_node is None:
        return
    if inner_node.op == "Relu":
        inner = None if inner_node.inputs[0] is None else (inner_node.inputs[0], 0.0)
    else:
        inner = scope.tensor_and_scalar(inner_node)
    if inner is None or (inner_node.op == "Relu" and node.op == "Max"):
        return
    low, high = (inner[1], outer_limit) if node.op == "Min" else (outer_limit, inner[1])
    if low <= high:
        yield _Clamp((inner_node, node), inner[0], low, high)
