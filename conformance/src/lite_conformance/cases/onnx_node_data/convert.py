"""Conversion of ONNX's test models and tensors to Lite's: for the node test data, not an importer for users.

NOTE: this module imports the optional package ``onnx``; other modules import it only when they read data.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
import onnx.helper
from google.protobuf.message import DecodeError
from onnx import numpy_helper

from lite_conformance.cases.tensors import Array
from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import LiteError
from lite_core.ir import DType, Graph, TensorType, Value

__all__ = ["NotConvertible", "read_graph", "read_tensors"]

_Message = TypeVar("_Message", onnx.ModelProto, onnx.TensorProto)


class NotConvertible(LiteError):
    """The model uses features that are not in Lite's opset; the message is the reason for excluding the case."""


def read_graph(folder: Path, *, symbolic: bool = False) -> Graph:
    """Read the model of a case. With ``symbolic`` every dimension of its inputs becomes a separate symbol.

    Raises:
        NotConvertible: the model uses features that are not in Lite's opset, or the file is not a model.
        GraphError: a node does not fit its operator.
    """
    return _to_graph(_parsed(folder / "model.onnx", onnx.ModelProto()), symbolic)


def read_tensors(folder: Path, kind: str) -> list[Array]:
    """Read the tensors ``input_0.pb``, ``input_1.pb`` ... (or ``output``) of a data set.

    Raises:
        NotConvertible: an element type is not one of Lite's, or a file is not a tensor.
    """
    files = sorted(folder.glob(f"{kind}_*.pb"), key=lambda f: int(f.stem.split("_")[1]))
    return [_tensor(_parsed(file, onnx.TensorProto())) for file in files]


def _parsed(file: Path, proto: _Message) -> _Message:
    try:
        proto.ParseFromString(file.read_bytes())
    except DecodeError as error:
        raise NotConvertible(f"{file.name} is not a {type(proto).__name__}: {error}") from error
    return proto


def _dtype_of(number: int) -> DType:
    name = onnx.TensorProto.DataType.Name(number).lower()
    try:
        return DType({"float": "float32", "double": "float64"}.get(name, name))
    except ValueError:
        raise NotConvertible(f"element type {name} is not one of Lite's") from None


def _tensor(proto: onnx.TensorProto) -> Array:
    dtype = _dtype_of(proto.data_type)
    if dtype is DType.BFLOAT16:
        bits = proto.raw_data or np.array(proto.int32_data, dtype=np.uint16).tobytes()
        return np.frombuffer(bits, dtype=dtype.numpy).reshape(tuple(proto.dims))
    return numpy_helper.to_array(proto)


def _to_graph(model: onnx.ModelProto, symbolic: bool) -> Graph:
    if model.functions:
        raise NotConvertible("model-local functions are not part of the operator set")
    builder = GraphBuilder(model.graph.name or "graph")
    scope: dict[str, Value] = {}
    for value in model.graph.input:
        scope[value.name] = _input(builder, value, symbolic)
    _add_graph(builder, model.graph, scope)
    return builder.build()


def _input(
    builder: GraphBuilder, value: onnx.ValueInfoProto, symbolic: bool, default: TensorType | None = None
) -> Value:
    kind = value.type.WhichOneof("value")
    if kind is None and default is not None:  # the body of a Loop may omit types that the Loop implies
        return builder.input(builder.unique_name(value.name), default.dtype, default.shape)
    if kind != "tensor_type":
        raise NotConvertible(f"inputs of type {kind} (sequences, optionals) are not tensors")
    type_ = value.type.tensor_type
    dims: list[Any] | None = None
    if type_.HasField("shape"):
        dims = [d.dim_value if d.HasField("dim_value") else (d.dim_param or None) for d in type_.shape.dim]
        if symbolic:
            dims = [f"{value.name}_{i}" for i in range(len(dims))]
    return builder.input(builder.unique_name(value.name), _dtype_of(type_.elem_type), dims)


def _add_graph(builder: GraphBuilder, graph: onnx.GraphProto, scope: dict[str, Value]) -> None:
    for initializer in graph.initializer:
        scope[initializer.name] = builder.constant(_tensor(initializer), builder.unique_name(initializer.name + "_"))
    for node in graph.node:
        _node(builder, node, scope)
    for value in graph.output:
        if value.type.WhichOneof("value") not in ("tensor_type", None):
            raise NotConvertible("outputs that are sequences or optionals are not tensors")
        builder.output(scope[value.name])


def _node(builder: GraphBuilder, node: onnx.NodeProto, scope: dict[str, Value]) -> None:
    if node.op_type == "Constant" and not node.domain:
        scope[node.output[0]] = builder.constant(_constant(node))
        return
    definition = ops.find(node.op_type, node.domain)
    if definition is None:
        raise NotConvertible(
            f"operator {node.domain + '.' if node.domain else ''}{node.op_type} is not in Lite's opset"
        )
    carried = [scope[name].type if name else None for name in node.input[2:]] if node.op_type == "Loop" else []
    attributes = {a.name: _attribute(builder, definition, a, scope, carried) for a in node.attribute}
    inputs = [scope[name] if name else None for name in node.input]
    if "axes" in attributes and (node.op_type.startswith("Reduce") or node.op_type.endswith("queeze")):
        # Before opset 13 (18 for most reductions) the axes were an attribute with the same meaning.
        inputs.append(builder.ints(*attributes.pop("axes")))
    results = builder.add_node(node.op_type, inputs, attributes, outputs=len(node.output), name=node.name)
    for name, value in zip(node.output, results):
        if name:
            scope[name] = value


def _constant(node: onnx.NodeProto) -> Array:
    attribute = node.attribute[0]
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return _tensor(value)
    if attribute.name in ("value_int", "value_ints"):
        return np.array(value, dtype=np.int64)
    if attribute.name in ("value_float", "value_floats"):
        return np.array(value, dtype=np.float32)
    raise NotConvertible(f"Constant with {attribute.name} (strings, sparse) is not a tensor of Lite's")


def _attribute(
    builder: GraphBuilder,
    definition: ops.OpDef,
    attribute: onnx.AttributeProto,
    scope: dict[str, Value],
    carried: list[TensorType | None],
) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    spec = definition.attributes.get(attribute.name)
    if spec is not None and spec.kind == "dtype":
        return _dtype_of(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto):
        return _tensor(value)
    if isinstance(value, onnx.GraphProto):
        inner = GraphBuilder(value.name or "body", outer=builder)
        inner_scope = dict(scope)
        scalars = [TensorType(DType.INT64, ()), TensorType(DType.BOOL, ())]
        for graph_input, known in itertools.zip_longest(value.input, [*scalars, *carried][: len(value.input)]):
            inner_scope[graph_input.name] = _input(inner, graph_input, symbolic=False, default=known)
        _add_graph(inner, value, inner_scope)
        return inner.graph
    if isinstance(value, list):
        return tuple(v.decode() if isinstance(v, bytes) else v for v in value)
    return value
