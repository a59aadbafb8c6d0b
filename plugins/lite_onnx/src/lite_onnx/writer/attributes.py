"""Attributes of Lite's nodes as ``AttributeProto``."""

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

_SPLIT_COUNTS = 18  # since this opset a Split without sizes says how many parts it makes


def attribute_protos(node: Node, opset: int, body: Callable[[Graph], GraphProto]) -> list[AttributeProto]:
    """The attributes of a node of ONNX's as messages, by their names.

    Args:
        node: the node.
        opset: that it is written for.
        body: writes a graph.
    """
    given: dict[str, Attribute] = dict(node.attributes)
    specs = ops.get(node).attributes
    if node.op == "Split" and opset >= _SPLIT_COUNTS and (len(node.inputs) < 2 or node.inputs[1] is None):
        given["num_outputs"] = len(node.outputs)
    if node.op == "MeanVarianceNormalization":
        # NOTE: onnx's own function body for it does not know its default.
        given.setdefault("axes", specs["axes"].default)
    return [attribute_proto(name, specs[name].kind, given[name], body) for name in sorted(given)]


def attribute_proto(name: str, kind: str, attribute: Any, body: Callable[[Graph], GraphProto]) -> AttributeProto:
    """An attribute as a message.

    Args:
        name: its name.
        kind: what the operator says it is: a whole number may be a float's value, and an empty list has no kind.
        attribute: its value.
        body: writes a graph.
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
