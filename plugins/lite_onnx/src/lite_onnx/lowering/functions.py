"""Functions: operators that a model, or ONNX itself, defines by other operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx.defs
from onnx import AttributeProto, FunctionProto, NodeProto, helper, numpy_helper

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.scope import Scope
from lite_onnx.lowering.unlowerable import AlreadyReported, Unlowerable
from lite_onnx.reader.element_types import onnx_number

__all__ = ["LowerNodes", "call", "schema_function"]

#: Lowers the nodes that the given names depend on.
LowerNodes = Callable[[Sequence[NodeProto], Iterable[str], Context], None]


def call(
    function: FunctionProto,
    node: NodeProto | SourceNode,
    inputs: Sequence[Item | None],
    node_name: str,
    context: Context,
    lower_nodes: LowerNodes,
) -> list[Item | None]:
    """Replace a node by the nodes of the function that it calls; return the function's outputs.

    Args:
        function: the function.
        node: the node that calls it.
        inputs: the node's inputs.
        node_name: the node's name in messages.
        context: the node's context.
        lower_nodes: lowers the function's nodes.

    Raises:
        Unlowerable: it calls itself, gets too many inputs, or one of its nodes cannot be lowered.
    """
    key = (function.domain, function.name, function.overload)
    if key in context.scope.functions:
        raise Unlowerable(f"the function {function.name!r} calls itself")
    if len(inputs) > len(function.input):
        raise Unlowerable(f"the function {function.name!r} takes {len(function.input)} inputs, has {len(inputs)}")
    outputs = node.outputs if isinstance(node, SourceNode) else node.output
    if len(outputs) > len(function.output):
        raise Unlowerable(f"the function {function.name!r} has {len(function.output)} outputs, the node {len(outputs)}")
    opsets = {**context.scope.opsets, **{_domain(o.domain): o.version for o in function.opset_import}}
    attributes = {a.name: a for a in function.attribute_proto}
    attributes.update(_node_attributes(node, context))
    scope = Scope(opsets, None, attributes, caller=context.scope, function=key, name_prefix=f"{node_name}/")
    for name, item in zip(function.input, inputs):
        if item is not None:
            scope.bind(name, item)
    omitted = {name for name, item in zip(function.input, [*inputs, *[None] * len(function.input)]) if item is None}
    wanted = [name for name, output in zip(function.output, outputs) if output]
    lower_nodes([_without_inputs(n, omitted) for n in function.node], wanted, context.with_scope(scope))
    if any(scope.has_failed(name) for name in wanted):
        raise AlreadyReported(f"nodes of the function {function.name!r} cannot be lowered")
    found = {name: scope.find(name) for name in wanted}
    missing = [name for name, item in found.items() if item is None]
    if missing:
        raise Unlowerable(f"the function {function.name!r} does not compute its output {missing[0]!r}")
    return [found.get(name) for name in function.output]


def schema_function(node: SourceNode) -> FunctionProto | None:
    """Return ONNX's definition of an operator as a function, or None if it has none."""
    try:
        schema: Any = onnx.defs.get_schema(node.op, node.version, node.domain)
    except onnx.defs.SchemaError:
        return None
    if schema.has_function:
        body: FunctionProto = schema.function_body
        return body
    if not schema.has_context_dependent_function:
        return None
    types = [_type_of(item) for item in node.inputs]
    message = _as_message(node)
    # NOTE: for other versions ONNX returns nothing if operators of the function have changed since.
    version = max(v for v in schema.context_dependent_function_opset_versions if v <= node.version)
    content = schema.get_context_dependent_function_with_opset_version(version, message.SerializeToString(), types)
    return FunctionProto.FromString(content) if content else None


def _node_attributes(node: NodeProto | SourceNode, context: Context) -> dict[str, AttributeProto]:
    if isinstance(node, SourceNode):
        return {a.name: a for a in _as_message(node).attribute}
    outer = context.scope.attributes
    named = {a.name: outer.get(a.ref_attr_name) if a.ref_attr_name else a for a in node.attribute}
    return {name: attribute for name, attribute in named.items() if attribute is not None}


def _without_inputs(node: NodeProto, omitted: set[str]) -> NodeProto:
    """Return a function's node without the inputs that the call omits."""
    if not omitted.intersection(node.input):
        return node
    copy = NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = ["" if name in omitted else name for name in node.input]
    return copy


def _as_message(node: SourceNode) -> NodeProto:
    names = ["" if item is None else f"input_{i}" for i, item in enumerate(node.inputs)]
    outputs = [name or f"unused_{i}" for i, name in enumerate(node.outputs)]
    attributes: dict[str, Any] = {
        name: numpy_helper.from_array(a) if isinstance(a, np.ndarray) else a for name, a in node.attributes.items()
    }
    return helper.make_node(node.op, names, outputs, node.name, domain=node.domain, **attributes)


def _type_of(item: Item | None) -> bytes:
    if not isinstance(item, Value):
        return b""
    shape = None if item.shape is None else [d if isinstance(d, int) else str(d) for d in item.shape]
    type_: bytes = helper.make_tensor_type_proto(onnx_number(item.dtype), shape).SerializeToString()
    return type_


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
