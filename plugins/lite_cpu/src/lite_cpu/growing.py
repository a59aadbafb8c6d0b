"""Values of a Loop that grow by a piece in each iteration, collected as stacked outputs."""

from __future__ import annotations

import numpy as np

from lite_core import ops
from lite_core.ir import Graph, Node, SymbolicDim, TensorType, Value, fresh_dim
from lite_core.passes.rewriting import Scope, ScopePass

__all__ = ["GrowingOutputs"]


class GrowingOutputs(ScopePass):
    """Pass that collects what a Loop appends to a value, so that no size changes from one iteration to the next.

    Rules:
        1. A carried value that the body only extends, by Concat with pieces of one size behind it, is not carried. The
           pieces become an output of each iteration, and a Concat after the loop appends all of them to the initial
           value.

    A backend can then run the loop natively, and the cost of an iteration does not grow with the value.
    """

    name = "growing_outputs"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.qualified_op == "Loop":
                for number in range(len(node.inputs) - 2):
                    replaced = _collected(scope, node, number)
                    if replaced is not None:
                        scope.replace([node], replaced)
                        break  # the next round of passes finds the next value


def _collected(scope: Scope, node: Node, number: int) -> list[Node] | None:
    """Return the nodes that replace a Loop whose carried value ``number`` grows; None if it does not."""
    body, initial, result = node.attributes["body"], node.inputs[2 + number], node.outputs[number]
    assert isinstance(body, Graph)
    carried, after = body.inputs[2 + number], body.outputs[1 + number]
    concat = body.producers().get(after)
    if initial is None or concat is None or concat.qualified_op != "Concat" or concat.inputs[0] is not carried:
        return None
    inside = Scope(body, scope)
    others = [*body.outputs[: 1 + number], *body.outputs[2 + number :]]
    if inside.consumers(carried) != [concat] or concat.inputs.count(carried) > 1 or inside.consumers(after):
        return None
    if carried in others or after in others or initial.type.shape is None:
        return None
    axis = ops.attributes_of(concat)["axis"] % len(initial.type.shape)
    pieces = [value for value in concat.inputs[1:] if value is not None]
    shape = _shape_of_pieces(node, pieces, axis)
    if shape is None or not all(isinstance(dim, int) for dim in shape[axis + 1 :]):
        return None
    piece = inside.new_value(f"{after.name}.piece", TensorType(after.dtype, shape))
    joined = Node("Concat", pieces, [piece], {"axis": axis}, name=concat.name, origin=concat.origin)
    slim = Graph(
        body.name,
        inputs=[value for value in body.inputs if value is not carried],
        outputs=[*others, piece],
        nodes=[joined if each is concat else each for each in body.nodes],
        constants=body.constants,
    )
    return _with_collection(scope, node, number, slim, initial, result, shape, axis)


def _with_collection(
    scope: Scope,
    node: Node,
    number: int,
    body: Graph,
    initial: Value,
    result: Value | None,
    shape: tuple[int | SymbolicDim, ...],
    axis: int,
) -> list[Node]:
    """Return the Loop with a slimmer body, and the nodes that append the stacked pieces to the initial value."""
    dtype, name = initial.dtype, node.name
    length = fresh_dim("trips")
    stacked = scope.new_value(f"{name}.pieces", TensorType(dtype, (length, *shape)))
    outputs = [*node.outputs[:number], *node.outputs[number + 1 :], stacked]
    inputs = [*node.inputs[: 2 + number], *node.inputs[3 + number :]]
    loop = node.copy_with(inputs, outputs, {**node.attributes, "body": body})
    if result is None:
        return [loop]
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
    turned = scope.new_value(f"{name}.turned", TensorType(dtype, (*shape[:axis], length, *shape[axis:])))
    sizes = np.array([*[0] * axis, -1, *shape[axis + 1 :]], np.int64)  # 0: as in the input
    target = scope.new_constant(f"{name}.sizes", sizes)
    flat = scope.new_value(f"{name}.appended", TensorType(dtype, (*shape[:axis], fresh_dim(), *shape[axis + 1 :])))
    return [
        loop,
        Node("Transpose", [stacked], [turned], {"perm": tuple(order)}, name=turned.name, origin=node.origin),
        Node("Reshape", [turned, target], [flat], name=flat.name, origin=node.origin),
        Node("Concat", [initial, flat], [result], {"axis": axis}, name=result.name, origin=node.origin),
    ]


def _shape_of_pieces(node: Node, pieces: list[Value], axis: int) -> tuple[int | SymbolicDim, ...] | None:
    """Return the shape of the pieces of an iteration together; None if it may differ between iterations."""
    outside = {name for value in node.used() for dim in value.type.shape or () for name in _symbols(dim)}
    total: int | SymbolicDim = 0
    for piece in pieces:
        if piece.type.shape is None or any(not _symbols(dim) <= outside for dim in piece.type.shape):
            return None
        total = total + piece.type.shape[axis]
    first = pieces[0].type.shape if pieces else None
    return None if first is None else (*first[:axis], total, *first[axis + 1 :])


def _symbols(dim: int | SymbolicDim) -> frozenset[str]:
    return dim.symbols if isinstance(dim, SymbolicDim) else frozenset()
