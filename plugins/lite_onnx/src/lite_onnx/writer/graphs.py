"""Conversion of graphs, bodies and functions to messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, OperatorSetIdProto, TensorProto

from lite_core import ops
from lite_core.ir import Graph, Node, Value
from lite_onnx.reader.element_types import onnx_number
from lite_onnx.writer.attributes import attribute_protos
from lite_onnx.writer.constants import Constants, tensor_proto
from lite_onnx.writer.expansions import expand
from lite_onnx.writer.priors import is_prior, prior_constants
from lite_onnx.writer.problems import Problems, Unwritable
from lite_onnx.writer.schemas import parameter, schema_of, widened_types
from lite_onnx.writer.types import DimNames, value_info

__all__ = ["LITE_DOMAIN", "GraphWriter"]

LITE_DOMAIN = "lite"
#: Operators of the opset that are newer than the newest opset that is written; they become functions as well.
_NEWER = frozenset({"Attention", "RMSNormalization", "RotaryEmbedding", "TensorScatter"})


class GraphWriter:
    """Converter of one model's graph, its bodies and the functions that they call to messages.

    Args:
        graph: the model's graph; names of values are unique in it.
        constants: stores constants.
        opset: the version of ONNX's operator set.

    Attributes:
        functions: the functions for operators of Lite's own.
        problems: the nodes that cannot be written.
    """

    def __init__(self, graph: Graph, constants: Constants, opset: int) -> None:
        values = [value for part in graph.walk() for value in part.defined()]
        self.functions: list[FunctionProto] = []
        self.problems = Problems(graph.name)
        self._constants = constants
        self._opset = opset
        self._dims = DimNames({symbol for value in values for symbol in value.type.symbols})
        self._names = {value.name for value in values}
        # The name of each function, by its operator and serialized content.
        self._function_names: dict[bytes, str] = {}

    def graph(self, graph: Graph) -> GraphProto:
        """Convert the model's graph, with type and shape of every value."""
        proto = self._graph(graph)
        declared = {value.name for value in (*proto.input, *proto.output)}
        for node in graph.nodes:
            for value in node.outputs:
                if value is not None and value.name not in declared:
                    proto.value_info.append(value_info(value.name, value.type, self._dims))
        return proto

    def _body(self, graph: Graph) -> GraphProto:
        """Convert a graph attribute. Types inside a body differ from call to call: only the interface is declared."""
        return self._graph(graph, is_body=True)

    def _graph(self, graph: Graph, is_body: bool = False) -> GraphProto:
        proto = GraphProto(name=graph.name or "graph")
        proto.input.extend(value_info(value.name, value.type, self._dims) for value in graph.inputs)
        proto.initializer.extend(self._constants.tensor(v.name, array) for v, array in graph.constants.items())
        for node in graph.nodes:
            try:
                self._add(node, proto)
            except Unwritable as problem:
                self.problems.add(node, problem)
        computed = {value for node in graph.nodes for value in node.outputs}
        listed: set[Value] = set()
        for value in graph.outputs:
            name = value.name
            # NOTE: a body may only return values that its nodes compute, and none twice; a model may return inputs.
            if value in listed or (is_body and value not in computed):
                name = self._fresh(f"{value.name}_output")
                proto.node.append(_node("Identity", [value.name], [name]))
            listed.add(value)
            proto.output.append(value_info(name, value.type, self._dims))
        return proto

    def _add(self, node: Node, proto: GraphProto) -> None:
        if node.domain == LITE_DOMAIN and is_prior(node):
            for value, array in prior_constants(node):
                proto.initializer.append(self._constants.tensor(value.name, array))
        else:
            proto.node.extend(self._messages(node))

    def _messages(self, node: Node) -> Iterator[NodeProto]:
        """Yield the nodes for a node of Lite, usually one."""
        if node.domain == LITE_DOMAIN or node.op in _NEWER:
            name = self._function(node)
            inputs_ = [value for value in node.inputs if value is not None]
            yield _described(_node(name, _names(inputs_), _names(node.outputs), LITE_DOMAIN), node)
            return
        if node.domain:
            raise Unwritable(f"the domain {node.domain!r} belongs to a plugin and is unknown in ONNX")
        schema = schema_of(node, self._opset)
        inputs, outputs = _names(node.inputs), _names(node.outputs)
        after: list[NodeProto] = []
        for type_name in widened_types(node, schema):
            for index, value in enumerate(node.inputs):
                if value is not None and parameter(schema.inputs, index).type_str == type_name:
                    inputs[index] = self._fresh(f"{value.name}_float32")
                    yield _cast(value.name, inputs[index], TensorProto.FLOAT)
            for index, value in enumerate(node.outputs):
                if value is not None and parameter(schema.outputs, index).type_str == type_name:
                    outputs[index] = self._fresh(f"{value.name}_float32")
                    after.append(_cast(outputs[index], value.name, onnx_number(value.dtype)))
        message = _node(node.op, inputs, outputs)
        message.attribute.extend(attribute_protos(node, self._opset, self._body))
        yield _described(message, node)
        yield from after

    def _function(self, node: Node) -> str:
        """Return the name of the function for an operator of Lite's own; equal functions are created once."""
        body = expand(node)
        function = FunctionProto(domain=LITE_DOMAIN, opset_import=[OperatorSetIdProto(version=self._opset)])
        function.doc_string = ops.get(node).documentation
        function.input.extend(_names(body.inputs))
        function.output.extend(_names(body.outputs[: len(node.outputs)]))
        used = {value for inner in body.nodes for value in inner.inputs}
        for value, array in body.constants.items():
            if value in used:
                function.node.append(_constant(value.name, array))
        for inner in body.nodes:
            function.node.extend(self._messages(inner))
        key = f"{node.op} ".encode() + function.SerializeToString(deterministic=True)
        if key not in self._function_names:
            variants = sum(name.partition("_")[0] == node.op for name in self._function_names.values())
            function.name = f"{node.op}_{variants + 1}" if variants else node.op
            self._function_names[key] = function.name
            self.functions.append(function)
        return self._function_names[key]

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self._names:
            name, number = f"{wanted}_{number}", number + 1
        self._names.add(name)
        return name


def _names(values: Iterable[Value | None]) -> list[str]:
    """Return the names of values, without omitted ones at the end."""
    names = ["" if value is None else value.name for value in values]
    while names and not names[-1]:
        names.pop()
    return names


def _node(op: str, inputs: Iterable[str], outputs: Iterable[str], domain: str = "") -> NodeProto:
    return NodeProto(op_type=op, domain=domain, input=inputs, output=outputs)


def _cast(source: str, result: str, number: int) -> NodeProto:
    cast = _node("Cast", [source], [result])
    cast.attribute.append(AttributeProto(name="to", type=AttributeProto.INT, i=number))
    return cast


def _constant(name: str, array: np.ndarray[Any, Any]) -> NodeProto:
    constant = _node("Constant", [], [name])
    constant.attribute.append(AttributeProto(name="value", type=AttributeProto.TENSOR, t=tensor_proto("", array)))
    return constant


def _described(message: NodeProto, node: Node) -> NodeProto:
    message.name = node.name
    if node.origin is not None:
        message.doc_string = f"from {node.origin}"
    return message
