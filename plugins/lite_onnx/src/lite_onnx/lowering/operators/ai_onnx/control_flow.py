"""If, Loop and Identity of sequences and optionals.

Lite's own If and Loop carry only tensors. If the branch taken or the number of iterations is known, the nodes are
inlined or unrolled instead, so that lists of values can pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import GraphProto

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode, TensorList
from lite_onnx.lowering.registry import adapts
from lite_onnx.lowering.unlowerable import Unlowerable

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
    """Inline the branch that is taken, if that is known or not all outputs are tensors.

    The other branch is not lowered: it may be for shapes that the model does not have.
    """
    branches = _graph(node, "then_branch"), _graph(node, "else_branch")
    condition = context.known(context.value(node, 0))
    if condition is None:
        if all(_is_tensor(output) for graph in branches for output in graph.output):
            return None
        condition = context.must_know(node, 0, "cond")
    return context.inline(branches[0 if condition.all() else 1], [])


@adapts("Loop", until=_EVERY_VERSION)
def loop(node: SourceNode, context: Context) -> list[Item] | None:
    """Unroll the iterations, if not all carried values are tensors."""
    carried: list[Item | None] = node.inputs[2:]
    if all(item is None or isinstance(item, Value) for item in carried):
        return None
    body = _graph(node, "body")
    limit = int(context.must_know(node, 0, "M")) if node.has(0) else _MAX_ITERATIONS + 1
    goes_on = bool(context.must_know(node, 1, "cond")) if node.has(1) else True
    scanned: list[list[Value]] = [[] for _ in body.output[1 + len(carried) :]]
    iteration = 0
    while goes_on and iteration < limit:
        if iteration == _MAX_ITERATIONS:
            raise Unlowerable(f"a sequence passes through more than {_MAX_ITERATIONS} iterations of it")
        counters: list[Item | None] = [context.constant(np.array(iteration)), context.constant(np.array(True))]
        condition, *results = context.inline(body, [*counters, *carried])
        known = context.known(condition) if isinstance(condition, Value) else None
        if known is None:
            raise Unlowerable("a sequence passes through it, and its number of iterations depends on data")
        goes_on, iteration = bool(known), iteration + 1
        carried = list(results[: len(carried)])
        for column, item in zip(scanned, results[len(carried) :]):
            if isinstance(item, TensorList) or not isinstance(item, Value):
                raise Unlowerable("it collects sequences, not tensors")
            column.append(context.add("Unsqueeze", [item, context.ints(0)]))
    if not all(scanned):
        raise Unlowerable("a sequence passes through it, and it collects outputs but runs no iteration")
    found = [item for item in carried if item is not None]
    return [*found, *(context.add("Concat", column, {"axis": 0}) for column in scanned)]


def _graph(node: SourceNode, name: str) -> GraphProto:
    graph: Any = node.attributes.get(name)
    if not isinstance(graph, GraphProto):
        raise Unlowerable(f"its attribute {name!r} is missing")
    return graph


def _is_tensor(output: Any) -> bool:
    return output.type.WhichOneof("value") in ("tensor_type", None)
