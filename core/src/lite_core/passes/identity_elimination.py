"""Removing nodes whose output equals an input."""

from __future__ import annotations

from collections.abc import Callable

from lite_core.ir import Node, Shape, TensorType, Value
from lite_core.passes.rewriting import Scope, ScopePass
from lite_core.passes.transpose_sinking import transpose_order

__all__ = ["IdentityElimination", "passed_through"]

_RESHAPES = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand"})
_ONE_OF_MANY = frozenset({"Concat", "Sum", "Max", "Min", "Mean"})
# Neutral elements of the second operand; for commutative operators also of the first.
_NEUTRAL = {"Add": 0.0, "Sub": 0.0, "Mul": 1.0, "Div": 1.0, "Pow": 1.0}
_COMMUTATIVE = frozenset({"Add", "Mul"})


class IdentityElimination(ScopePass):
    """Pass that removes nodes whose output equals one of their inputs.

    Rules:
        1. Identity; Dropout outside of training whose mask is unused.
        2. Reshape, Squeeze, Unsqueeze, Flatten, Expand to the input's shape.
        3. Transpose that keeps the shape and the order of all axes longer than 1.
        4. Cast and CastLike to the input's element type.
        5. Pad by zeros; Slice of everything with step 1; Tile by ones.
        6. Concat, Sum, Max, Min, Mean of one input.
        7. x + 0, x - 0, x * 1, x / 1, x ** 1, if the constant does not widen the shape by broadcasting.

    A node that writes a graph output is removed only if its input can be renamed to the output.
    """

    name = "identity_elimination"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if (source := passed_through(scope, node)) is not None:
                scope.bypass(node, source)


def passed_through(
    scope: Scope, node: Node, type_of: Callable[[Value], TensorType] = lambda value: value.type
) -> Value | None:
    """Return the input that the node's first output equals, or None.

    Args:
        scope: the node's scope.
        node: the node.
        type_of: returns the type of a value, if more precise types are known than those of the values.
    """
    first = node.inputs[0] if node.inputs else None
    output = node.outputs[0] if node.outputs else None
    if first is None or output is None or node.domain:
        return None
    if node.op in _NEUTRAL:
        return _without_neutral(scope, node, output, type_of)
    if node.op == "Dropout":
        return first if _is_inference_dropout(scope, node) else None
    same_shape = _equal_shapes(type_of(first), type_of(output))
    if node.op in _RESHAPES:
        unchanged = same_shape
    elif node.op in _ONE_OF_MANY:
        unchanged = len(node.inputs) == 1
    elif node.op in ("Cast", "CastLike"):
        unchanged = type_of(first).dtype == type_of(output).dtype
    elif node.op == "Transpose":
        unchanged = same_shape and _keeps_axis_order(node, type_of(first).shape)
    elif node.op == "Pad":
        unchanged = _holds_only(0, scope, node, 1)
    elif node.op == "Tile":
        unchanged = _holds_only(1, scope, node, 1)
    elif node.op == "Slice":
        # A step of -1 reverses the elements and keeps the shape.
        unchanged = same_shape and (not any(node.inputs[4:]) or _holds_only(1, scope, node, 4))
    else:
        unchanged = node.op == "Identity"
    return first if unchanged else None


def _equal_shapes(a: TensorType, b: TensorType) -> bool:
    return a.shape is not None and a.shape == b.shape


def _is_inference_dropout(scope: Scope, node: Node) -> bool:
    mask = node.outputs[1] if len(node.outputs) > 1 else None
    if mask is not None and (scope.consumers(mask) or scope.is_output(mask)):
        return False
    training = node.inputs[2] if len(node.inputs) > 2 else None
    return training is None or scope.scalar(training) == 0


def _keeps_axis_order(node: Node, shape: Shape | None) -> bool:
    order = transpose_order(node)
    if order is None or shape is None:
        return False
    long = [axis for axis in order if shape[axis] != 1]
    return long == sorted(long)


def _holds_only(number: int, scope: Scope, node: Node, index: int) -> bool:
    """Return True if an input is a constant whose elements are all a number."""
    elements = scope.integers(node.inputs[index]) if len(node.inputs) > index else None
    return elements is not None and {*elements} <= {number}


def _without_neutral(scope: Scope, node: Node, output: Value, type_of: Callable[[Value], TensorType]) -> Value | None:
    a, b = node.inputs
    pairs = [(a, b), (b, a)] if node.op in _COMMUTATIVE else [(a, b)]
    for kept, dropped in pairs:
        array = scope.constant(dropped)
        if kept is None or array is None or scope.constant(kept) is not None:
            continue
        neutral = array.size > 0 and array.flat[0] == _NEUTRAL[node.op] and bool((array == _NEUTRAL[node.op]).all())
        # NOTE: a scalar never widens the shape; a constant with dimensions may add some to the result.
        if neutral and (array.ndim == 0 or _equal_shapes(type_of(kept), type_of(output))):
            return kept
    return None
