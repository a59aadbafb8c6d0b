"""Shortening chains of Transpose and of Reshape."""

from __future__ import annotations

import numpy as np

from lite_core import ops
from lite_core.ir import Node, TensorType, Value
from lite_core.passes.rewriting import Scope, ScopePass
from lite_core.passes.shape_folding import reshape_target
from lite_core.passes.transpose_sinking import sink_transposes, transpose_order

__all__ = ["TransposeReshapeCleaning"]

# Operators that keep the order of elements: the result depends only on the new shape.
_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


class TransposeReshapeCleaning(ScopePass):
    """Pass that composes, cancels and moves layout changes.

    Rules:
        1. Transpose of a Transpose becomes one Transpose of the composed order, or is removed.
        2. Reshape, Flatten, Squeeze or Unsqueeze of one of these is removed if the result has the first input's shape;
           Squeeze and Unsqueeze by equal axes always cancel.
        3. Reshape of one of these reads the first input directly if its target is a constant whose zeros copy the same
           dimensions from there.
        4. Flatten, Squeeze or Unsqueeze of one of these becomes one Reshape of the first input if at most one dimension
           of the result is unknown.
        5. A Transpose below element-wise nodes cancels the inverse Transposes above them: see
           ``transpose_sinking``.
    """

    name = "transpose_reshape_cleaning"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.qualified_op == "Transpose":
                if not _compose_transposes(scope, node):
                    sink_transposes(scope, node)
            elif node.qualified_op in _RESHAPES:
                _shorten_reshapes(scope, node)


def _compose_transposes(scope: Scope, node: Node) -> bool:
    inner = scope.producer(node.inputs[0], "Transpose")
    if inner is None or inner.inputs[0] is None:
        return False
    source = inner.inputs[0]
    first, second = transpose_order(inner), transpose_order(node)
    if first is None or second is None:
        return False
    order = tuple(first[axis] for axis in second)
    if order == tuple(range(len(order))) and scope.bypass(node, source):
        return True
    scope.substitute([node], "Transpose", [source], {"perm": order})
    return True


def _shorten_reshapes(scope: Scope, node: Node) -> None:
    middle, output = node.inputs[0], node.outputs[0]
    inner = scope.producer(middle, *_RESHAPES)
    if inner is None or middle is None or output is None or inner.inputs[0] is None:
        return
    source = inner.inputs[0]
    returns = source.type.shape is not None and source.type.shape == output.type.shape
    if (returns or _inverse_axes(scope, inner, node)) and scope.bypass(node, source):
        return
    if node.op == "Reshape":
        if (target := _retargeted(scope, node, source.type, middle.type)) is not None:
            scope.substitute([node], "Reshape", [source, target], node.attributes)
        return
    if (vector := reshape_target(None, output.type.shape)) is not None:
        target = scope.new_constant(f"{output.name}.shape", np.array(vector, dtype=np.int64))
        scope.substitute([node], "Reshape", [source, target])


def _inverse_axes(scope: Scope, inner: Node, node: Node) -> bool:
    """Return True for Squeeze of Unsqueeze, or the reverse, by equal axes, which both refer to the longer shape."""
    if {inner.op, node.op} != {"Squeeze", "Unsqueeze"} or min(len(inner.inputs), len(node.inputs)) < 2:
        return False
    axes = scope.integers(inner.inputs[1])
    return axes is not None and axes == scope.integers(node.inputs[1])


def _retargeted(scope: Scope, node: Node, source: TensorType, middle: TensorType) -> Value | None:
    """Return the target for reading ``source`` instead of ``middle``; None if zeros would copy other dimensions."""
    value, output = node.inputs[1], node.outputs[0]
    target = scope.integers(value)
    if target is None or output is None:
        return None
    if ops.attributes_of(node)["allowzero"] or 0 not in target:
        return value
    if middle.shape is None:
        return None
    new = list(target)
    for axis in (a for a, size in enumerate(target) if size == 0):
        dim = middle.shape[axis]
        if source.shape is not None and axis < len(source.shape) and source.shape[axis] == dim:
            continue
        if not isinstance(dim, int) or dim == 0:
            return None
        new[axis] = dim
    same = tuple(new) == target
    return value if same else scope.new_constant(f"{output.name}.shape", np.array(new, dtype=np.int64))
