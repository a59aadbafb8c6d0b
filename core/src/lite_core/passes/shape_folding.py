"""Folding shape arithmetic symbolically, instead of computing it in each run."""

from __future__ import annotations

import numpy as np

from lite_core import ops
from lite_core.ir import Array, Graph, Node, Shape, TensorType
from lite_core.ops.infer import GraphInference, KnownInference
from lite_core.passes.base import PassResult
from lite_core.passes.identity_elimination import passed_through
from lite_core.passes.rewriting import Scope

__all__ = ["ShapeFolding", "decided_branch", "fold_to_constant", "reshape_target"]

_SHAPE_NO_OPS = frozenset({"Expand", "Reshape", "Slice"})


class ShapeFolding:
    """Pass that replaces shape arithmetic by the elements and types that shape inference knows.

    Rules:
        1. A value whose elements are all known (``Shape`` of known sizes and arithmetic on it) becomes a constant.
        2. The target of a Reshape becomes a constant if the output has at most one dimension that is neither known nor
           copied: known sizes are used directly, 0 copies the input's dimension at the same index, -1 is the unknown
           one.
        3. Expand, Reshape and Slice to the input's shape are removed.
        4. Types of values inside the graph are refined to the inferred types; in sub-graphs also those of inputs and
           outputs. This alone does not count as a change.

    Args:
        known: stores the inferred types, for the next round and for later inference.
    """

    name = "shape_folding"

    def __init__(self, known: KnownInference | None = None) -> None:
        self._known = known or KnownInference()

    def __call__(self, graph: Graph) -> PassResult:
        return PassResult(graph, _fold_scope(graph, None, GraphInference(known=self._known)))


def _fold_scope(graph: Graph, outer: Scope | None, inference: GraphInference) -> bool:
    scope = Scope(graph, outer)
    inference.add_constants(graph)
    for value in graph.inputs:
        # NOTE: inference of Loop has found types for a body's inputs that hold in every iteration.
        inference.set_type(value, inference.type_of(value))
    for node in scope.nodes():
        types = inference.infer(node)
        if outer is None:
            _keep_declared(node, types, inference)
        if fold_to_constant(scope, node, inference):
            continue
        if node.qualified_op in _SHAPE_NO_OPS:
            source = passed_through(scope, node, inference.type_of)
            if source is not None and scope.bypass(node, source):
                continue
        if node.qualified_op == "Reshape":
            _simplify_reshape(scope, node, inference)
    changed = scope.commit()
    interface = set() if outer is not None else {*graph.inputs, *graph.outputs}
    for value in graph.defined():
        if value not in interface:
            value.type = inference.type_of(value)
    for node in graph.nodes:
        for subgraph in _reachable_subgraphs(node, inference):
            changed |= _fold_scope(subgraph, scope, GraphInference(inference))
    return changed


def _reachable_subgraphs(node: Node, inference: GraphInference) -> list[Graph]:
    """Return a node's sub-graphs, without a branch of an If that is never taken: its types may be inconsistent."""
    condition = inference.value_of(node.inputs[0]) if node.op == "If" and node.inputs[0] is not None else None
    taken = decided_branch(node, condition)
    return node.subgraphs if taken is None else [taken]


def decided_branch(node: Node, condition: Array | None) -> Graph | None:
    """Return the branch of an If that a condition selects; None if the condition is not known."""
    if condition is None or condition.size != 1 or condition.dtype == object:
        return None
    taken = node.attributes["then_branch" if condition.reshape(-1)[0] else "else_branch"]
    assert isinstance(taken, Graph)
    return taken


def _keep_declared(node: Node, types: list[TensorType], inference: GraphInference) -> None:
    for value, type in zip(node.outputs, types):
        if value is not None and _is_more_precise(value.type, type):
            inference.set_type(value, value.type)


def _is_more_precise(declared: TensorType, inferred: TensorType) -> bool:
    """Return True if a value's declared type, for example from a reader, is more precise than the inferred one."""
    if declared.shape is None or declared.dtype != inferred.dtype:
        return False
    if inferred.shape is None:
        return True
    known, found = (sum(isinstance(d, int) for d in t) for t in (declared.shape, inferred.shape))
    return len(declared.shape) == len(inferred.shape) and known > found


def fold_to_constant(scope: Scope, node: Node, inference: GraphInference) -> bool:
    """Replace a node by a constant if inference knows all elements of its output; return True if replaced."""
    output = node.outputs[0]
    if output is None or len(node.outputs) > 1 or node.qualified_op in ops.IMPURE_OPS or any(node.subgraphs):
        return False
    elements = inference.value_of(output)
    type = inference.type_of(output)
    if elements is None or elements.dtype != type.dtype.numpy:  # symbolic elements are objects
        return False
    scope.make_constant(node, [elements])
    return True


def _simplify_reshape(scope: Scope, node: Node, inference: GraphInference) -> None:
    data, target = node.inputs
    output = node.outputs[0]
    if data is None or target is None or output is None or scope.constant(target) is not None:
        return
    vector = reshape_target(inference.type_of(data).shape, inference.type_of(output).shape)
    if vector is None or inference.value_of(target) is None:  # of no value, every size depends on data
        return
    constant = scope.new_constant(f"{output.name}.shape", np.array(vector, dtype=np.int64))
    inference.set_type(constant, constant.type)
    inference.set_value(constant, scope.graph.constants[constant])
    scope.substitute([node], "Reshape", [data, constant])


def reshape_target(old: Shape | None, new: Shape | None) -> list[int] | None:
    """Return the constant target of a Reshape to the shape ``new``; None if more than one of its sizes is unknown.

    Args:
        old: the shape before; an unknown size that it has at the same index is copied (0). None copies nothing.
        new: the shape after; None if the rank is unknown.
    """
    if new is None or 0 in new:
        return None  # a size of 0 would mean a copied dimension
    vector: list[int] = []
    for axis, dim in enumerate(new):
        is_copied = old is not None and old[axis : axis + 1] == (dim,)
        vector.append(dim if isinstance(dim, int) else 0 if is_copied else -1)
    return vector if vector.count(-1) <= 1 else None
