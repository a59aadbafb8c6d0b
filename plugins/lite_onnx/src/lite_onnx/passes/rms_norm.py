"""Fusing RMS normalization written out in arithmetic into one node."""

from __future__ import annotations

from lite_core import ops
from lite_core.ir import Node, Value
from lite_core.passes.rewriting import Scope

__all__ = ["fuse_rms_norm"]


def fuse_rms_norm(scope: Scope, node: Node) -> None:
    """Fuse the multiplication of a normalized value by a constant scale of the last axis."""
    for normal, scale in (node.inputs, node.inputs[::-1]):
        found = _normal(scope, normal)
        array = scope.constant(scale)
        if found is None or array is None or array.ndim != 1:
            continue
        source, epsilon, nodes = found
        output = node.outputs[0]
        if output is None or source.type.shape is None or source.type.shape[-1] != array.shape[0]:
            continue
        if source.dtype is output.dtype and scope.are_private([*nodes, node]):
            attributes = {"axis": -1, "epsilon": epsilon}
            scope.substitute([*nodes, node], "RMSNormalization", [source, scale], attributes)
            return


def _normal(scope: Scope, value: Value | None) -> tuple[Value, float, list[Node]] | None:
    """Return the source, the epsilon and the nodes of ``source / Sqrt(ReduceMean(source^2) + epsilon)``."""
    last = scope.producer(value, "Mul", "Div")
    if last is None:
        return None
    candidates = [(last.inputs[0], last.inputs[1])]
    if last.op == "Mul":
        candidates.append((last.inputs[1], last.inputs[0]))
    for source, factor in candidates:
        divides = [] if last.op == "Div" else _reciprocal(scope, factor)
        root = scope.producer(factor if last.op == "Div" else divides[0].inputs[-1] if divides else None, "Sqrt")
        shifted = scope.producer(None if root is None else root.inputs[0], "Add")
        terms = None if shifted is None else scope.tensor_and_scalar(shifted)
        mean = scope.producer(None if terms is None else terms[0], "ReduceMean")
        if root is None or shifted is None or terms is None or mean is None or source is None:
            continue
        square = scope.producer(mean.inputs[0], "Mul", "Pow")
        if square is not None and _is_square(scope, square, source) and _is_over_last_axis(scope, mean, source):
            return source, terms[1], [square, mean, shifted, root, *divides, last]
    return None


def _reciprocal(scope: Scope, value: Value | None) -> list[Node]:
    """Return the node that computes a reciprocal, of its last input; none if the value is no reciprocal."""
    node = scope.producer(value, "Div", "Reciprocal")
    if node is None or (node.op == "Div" and scope.scalar(node.inputs[0]) != 1):
        return []
    return [node]


def _is_square(scope: Scope, node: Node, of: Value) -> bool:
    if node.op == "Mul":
        return node.inputs[0] is of and node.inputs[1] is of
    return node.inputs[0] is of and scope.scalar(node.inputs[1]) == 2


def _is_over_last_axis(scope: Scope, mean: Node, source: Value) -> bool:
    axes = scope.integers(mean.inputs[1]) if len(mean.inputs) > 1 else None
    rank = source.type.rank
    return rank is not None and axes in ((-1,), (rank - 1,)) and bool(ops.attributes_of(mean)["keepdims"])
