"""If, Loop and Identity of sequences and optionals.

If the branch taken or the number of iterations is known, the nodes are inlined or unrolled, so that lists of values can
pass. Else Lite's own If and Loop carry the two tensors of dynamic sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto

from lite_core.ir import DType, Graph, TensorType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.lists import ListType, dynamic, flattened, grouped, rank_of
from lite_onnx.lowering.node import DynamicList, Item, SourceNode, TensorList
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import AlreadyReported, Unlowerable

#: The maximum number of iterations that are unrolled.
_MAX_ITERATIONS = 1024


# NOTE: these are adapters, because adapters may leave a node as it is: for tensors, Lite's own operators are used.
_EVERY_VERSION = 10**6


@adapts("Identity", until=_EVERY_VERSION)
def identity(node: SourceNode, context: Context) -> list[Item] | None:
    """Pass a list of values through."""
    item = node.inputs[0]
    return None if item is None or isinstance(item, Value) else [item]


@adapts("If", until=_EVERY_VERSION)
def branch(node: SourceNode, context: Context) -> list[Item] | None:
    """Inline the branch that is taken, if that is known. A sequence that depends on the condition is a dynamic one.

    The other branch is not lowered: it may be for shapes that the model does not have.
    """
    branches = _graph(node, "then_branch"), _graph(node, "else_branch")
    condition = context.known(context.value(node, 0))
    if condition is not None and not _is_symbolic(condition):
        return context.inline(branches[0 if condition.all() else 1], [])
    if all(_is_tensor(output) for graph in branches for output in graph.output):
        return None
    (then, items), (other, other_items) = _bodies(branches, context)
    if [isinstance(i, tuple) for i in items] != [isinstance(i, tuple) for i in other_items]:
        raise Unlowerable("one of its branches returns a sequence where the other one returns a tensor")
    graphs = {"then_branch": then, "else_branch": other}
    results = context.add_node("If", [context.value(node, 0)], graphs, outputs=len(then.outputs))
    return grouped(results, items)


def _bodies(branches: Sequence[GraphProto], context: Context) -> list[tuple[Graph, list[Item]]]:
    """Lower branches. Raises AlreadyReported after all are lowered, so that every problem is found."""
    lowered: list[tuple[Graph, list[Item]]] = []
    reported: AlreadyReported | None = None
    for graph in branches:
        try:
            lowered.append(context.list_body(graph, [], weight=1))
        except AlreadyReported as problem:
            reported = problem
    if reported is not None:
        raise reported
    return lowered


@adapts("Loop", until=_EVERY_VERSION)
def loop(node: SourceNode, context: Context) -> list[Item] | None:
    """Unroll the iterations, if sequences pass through them and their number is known; else carry dynamic sequences."""
    carried: list[Item | None] = node.inputs[2:]
    if all(item is None or isinstance(item, Value) for item in carried):
        return None
    body = _graph(node, "body")
    is_dynamic = any(isinstance(item, DynamicList) for item in carried)
    return (None if is_dynamic else _unrolled(node, body, carried, context)) or _looped(node, body, carried, context)


def _unrolled(node: SourceNode, body: GraphProto, carried: list[Item | None], context: Context) -> list[Item] | None:
    """Return the outputs of a Loop's iterations one after another; None if it depends on data how many there are."""
    limit, goes_on = _MAX_ITERATIONS + 1, True
    for position in range(2):
        known = context.known(context.value(node, position)) if node.has(position) else None
        if node.has(position) and (known is None or _is_symbolic(known)):
            return None
        if known is not None and position == 0:
            limit = int(known.item())
        elif known is not None:
            goes_on = bool(known.all())
    if limit > _MAX_ITERATIONS and node.has(0):
        return None
    scanned: list[list[Value]] = [[] for _ in body.output[1 + len(carried) :]]
    iteration = 0
    while goes_on and iteration < limit:
        if iteration == _MAX_ITERATIONS:
            return None
        counters: list[Item | None] = [context.constant(np.array(iteration)), context.constant(np.array(True))]
        condition, *results = context.inline(body, [*counters, *carried])
        known = context.known(condition) if isinstance(condition, Value) else None
        if known is None or _is_symbolic(known) or any(isinstance(item, DynamicList) for item in results):
            return None  # the nodes of this iteration have no users, and the passes remove them
        goes_on, iteration = bool(known.all()), iteration + 1
        carried = list(results[: len(carried)])
        for column, item in zip(scanned, results[len(carried) :]):
            column.append(context.add("Unsqueeze", [_scanned(item), context.ints(0)]))
    if not all(scanned):
        raise Unlowerable("a sequence passes through it, and it collects outputs but runs no iteration")
    found = [item for item in carried if item is not None]
    return [*found, *(context.add("Concat", column, {"axis": 0}) for column in scanned)]


def _looped(node: SourceNode, body: GraphProto, carried: list[Item | None], context: Context) -> list[Item]:
    """Lower to a Loop of Lite that carries the two tensors of each sequence."""
    ranks = [_declared_rank(value) or rank_of(item) for value, item in zip(body.input[2:], carried) if item is not None]
    graph, items = _loop_body(body, carried, ranks, context)
    inner = [rank_of(item) for item in items[1 : 1 + len(carried)]]
    if any(known is None and found is not None for known, found in zip(ranks, inner)):
        # What is appended to an empty sequence decides its rank, which other nodes of the body may need.
        ranks = [known if known is not None else found for known, found in zip(ranks, inner)]
        graph, items = _loop_body(body, carried, ranks, context)
    initial = [dynamic(i, context.builder, r) if isinstance(i, TensorList) else i for i, r in zip(carried, ranks)]
    counters = [context.value(node, position) if node.has(position) else None for position in range(2)]
    for item in items[1 + len(carried) :]:
        _scanned(item)
    inputs = [*counters, *flattened(initial, context.builder)]
    results = context.add_node("Loop", inputs, {"body": graph}, outputs=len(graph.outputs) - 1)
    return grouped(results, items[1:])


def _loop_body(
    body: GraphProto, carried: list[Item | None], ranks: list[int | None], context: Context
) -> tuple[Graph, list[Item]]:
    types: list[TensorType | ListType | None] = [TensorType(DType.INT64, ()), TensorType(DType.BOOL, ())]
    for item, rank in zip(carried, ranks):
        if isinstance(item, DynamicList):
            types.append(ListType(item.elements.dtype, rank))
        elif isinstance(item, TensorList):
            types.append(ListType(item.dtype, rank))
        else:
            types.append(item.type if isinstance(item, Value) else None)
    return context.list_body(body, types)


def _declared_rank(value: Any) -> int | None:
    """Return the number of dimensions that a body states for the tensors of a sequence."""
    declared = value.type.sequence_type.elem_type.tensor_type
    return len(declared.shape.dim) if declared.HasField("shape") else None


def _scanned(item: Item) -> Value:
    if not isinstance(item, Value):
        raise Unlowerable("it collects sequences, not tensors")
    return item


def _is_symbolic(known: Any) -> bool:
    """Return True if known elements contain sizes that the model's inputs decide."""
    return bool(known.dtype == object)


def _graph(node: SourceNode, name: str) -> GraphProto:
    graph: Any = node.attributes.get(name)
    if not isinstance(graph, GraphProto):
        raise Unlowerable(f"its attribute {name!r} is missing")
    return graph


def _is_tensor(output: Any) -> bool:
    return bool(output.type.WhichOneof("value") == "tensor_type")
