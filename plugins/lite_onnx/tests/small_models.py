"""Builders of small models: nodes, functions and branches on vectors of two elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import lite_core as lite

__all__ = ["OWN", "X", "call", "function", "graph", "load", "make", "node", "run", "value"]

Array = np.ndarray[Any, Any]
Dims = Sequence[int | str | None] | None

OWN = "own"
X = np.array([1, -2], np.float32)

node = helper.make_node


def value(name: str, shape: Dims = (2,), kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    """Declare a tensor that is an input or an output."""
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes: Sequence[onnx.NodeProto], outputs: Sequence[str], inputs: Sequence[Any] = ()) -> onnx.GraphProto:
    """Build the body of a branch or loop."""
    return helper.make_graph(nodes, "body", list(inputs), [onnx.ValueInfoProto(name=name) for name in outputs])


def function(
    name: str, nodes: Sequence[onnx.NodeProto], domain: str = OWN, opset: int = 21, **fields: Any
) -> onnx.FunctionProto:
    """Build a function with the input ``x`` and the output ``y``."""
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(OWN, 1)]
    return helper.make_function(domain, name, ["x"], ["y"], nodes, opsets, **fields)


def call(target: str, x: str = "x", y: str = "y", **fields: Any) -> onnx.NodeProto:
    """Build a node that calls a function of the model."""
    return helper.make_node(target, [x], [y], domain=OWN, **fields)


def make(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[str | onnx.ValueInfoProto] = ("x",),
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Array] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    opset: int = 21,
    ir_version: int = 10,
) -> onnx.ModelProto:
    """Build a model."""
    declared = [value(i) if isinstance(i, str) else i for i in inputs]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    initializers = [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()]
    body = helper.make_graph(nodes, "model", declared, results, initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(OWN, 1)]
    return helper.make_model(body, opset_imports=opsets, functions=list(functions), ir_version=ir_version)


def load(model: onnx.ModelProto, folder: Path, **reader_options: Any) -> lite.Session:
    """Load a model on host."""
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return lite.load(path, backend="host", reader_options=reader_options)


def run(model: onnx.ModelProto, folder: Path, **arrays: Array) -> dict[str, Array]:
    """Run a model on host; ``x`` is [1, -2] by default."""
    session = load(model, folder)
    inputs = {"x": X, **arrays}
    results: dict[str, Array] = session.run({name: inputs[name] for name in session.inputs})
    return results
