"""Conversion of attributes of Lite's nodes to ``AttributeProto``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import AttributeProto, GraphProto

from lite_core import ops
from lite_core.ir import Attribute, Graph, Node
from lite_onnx.reader.element_types import onnx_number
from lite_onnx.writer.constants import tensor_proto

__all__ = ["attribute_proto", "attribute_protos"]

_A = AttributeProto

_SPLIT_WITH_NUM_OUTPUTS = 18  # since this opset a Split without sizes has the attribute num_outputs


def attribute_protos(node: Node, opset: int, body: Callable[[Graph], GraphProto]) -> list[AttributeProto]:
    """Convert the attributes of a node to messages, sorted by name.

    Args:
        node: a node of an operator of ONNX.
        opset: the opset that it is written for.
        body: converts a graph.
    """
    attributes: dict[str, Attribute] = dict(node.attributes)
    specs = ops.get(node).attributes
    if node.op == "Split" and opset >= _SPLIT_WITH_NUM_OUTPUTS and (len(node.inputs) < 2 or node.inputs[1] is None):
        attributes["num_outputs"] = len(node.outputs)
    if node.op == "MeanVarianceNormalization":
        # NOTE: onnx's function body for this operator lacks the attribute's default.
        attributes.setdefault("axes", specs["axes"].default)
    return [attribute_proto(name, specs[name].kind, attributes[name], body) for name in sorted(attributes)]


def attribute_proto(name: str, kind: str, attribute: Any, body: Callable[[Graph], GraphProto]) -> AttributeProto:
    """Convert an attribute to a message.

    Args:
        name: its name.
        kind: its kind by the operator's definition. The value does not determine it: an integer may be the value of a
            float, and an empty list may be of any kind.
        attribute: its value.
        body: converts a graph.
    """
    if kind == "int":
        return _A(name=name, type=_A.INT, i=attribute)
    if kind == "float":
        return _A(name=name, type=_A.FLOAT, f=attribute)
    if kind == "str":
        return _A(name=name, type=_A.STRING, s=attribute.encode())
    if kind == "dtype":
        return _A(name=name, type=_A.INT, i=onnx_number(attribute))
    if kind == "ints":
        return _A(name=name, type=_A.INTS, ints=attribute)
    if kind == "floats":
        return _A(name=name, type=_A.FLOATS, floats=attribute)
    if kind == "strs":
        return _A(name=name, type=_A.STRINGS, strings=[text.encode() for text in attribute])
    if kind == "tensor":
        return _A(name=name, type=_A.TENSOR, t=tensor_proto("", attribute))
    return _A(name=name, type=_A.GRAPH, g=body(attribute))
