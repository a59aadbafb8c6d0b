"""LabelEncoder, ZipMap, and the labels of classes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import MACHINE_LEARNING, Array, array
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["class_labels", "labels_at"]

_TYPES: dict[str, Any] = {"int64s": np.int64, "floats": np.float32}
_DEFAULTS = {"int64s": ("default_int64", -1), "floats": ("default_float", -0.0)}


def class_labels(node: SourceNode, context: Context) -> Array:
    """Return the labels of classes; the indices of labels that are strings."""
    names = node.attributes.get("classlabels_strings")
    if not names:
        return array(
            node, "classlabels_int64s" if "classlabels_int64s" in node.attributes else "classlabels_ints", np.int64
        )
    assert isinstance(names, list)
    remember_names(node, names, context)
    return np.arange(len(names))


def remember_names(node: SourceNode, names: list[Any], context: Context) -> None:
    """Store the strings that the indices in a node's first output stand for in the graph's metadata."""
    context.builder.graph.metadata[f"labels.{node.outputs[0]}"] = json.dumps(names)


def labels_at(indices: Value, labels: Array, context: Context) -> Value:
    """Return the labels at indices."""
    if np.array_equal(labels, np.arange(len(labels))):
        return indices
    return context.add("Gather", [context.constant(labels), indices])


@lowers("LabelEncoder", domain=MACHINE_LEARNING)
def label_encoder(node: SourceNode, context: Context) -> Sequence[Item]:
    """Map numbers to numbers by a table of keys and values, with a default for all others."""
    x = context.value(node, 0)
    keys, values = _listed(node, "keys"), _listed(node, "values")
    if keys is None:
        raise Unlowerable("it looks up strings", "encode strings before the model, and export it without them")
    if values is None:
        names = node.attributes["values_strings"]
        assert isinstance(names, list)
        remember_names(node, names, context)
        values, default = np.arange(len(names)), np.array(-1)
    else:
        default = _default(node, values)
    if len(keys) != len(values) or not len(keys):
        raise Unlowerable(f"it has {len(keys)} keys and {len(values)} values")
    known = context.constant(keys.astype(x.dtype.numpy))
    column = context.add("Unsqueeze", [x, context.ints(-1)])
    same = context.add("Equal", [column, known])
    if node.version >= 4 and keys.dtype.kind == "f" and np.isnan(keys).any():
        both = context.add("And", [context.add("IsNaN", [column]), context.constant(np.isnan(keys))])
        same = context.add("Or", [same, both])
    hits = context.add("Cast", [same], {"to": DType.INT32})
    index = context.add("ArgMax", [hits], {"axis": -1, "keepdims": 0})
    is_known = context.add(
        "Cast", [context.add("ReduceMax", [hits, context.ints(-1)], {"keepdims": 0})], {"to": DType.BOOL}
    )
    found = context.add("Gather", [context.constant(values), index])
    return [context.add("Where", [is_known, found, context.constant(default.astype(values.dtype))])]


def _listed(node: SourceNode, kind: str) -> Array | None:
    """Return the keys or the values; None if they are strings."""
    tensor = node.attributes.get(f"{kind}_tensor")
    if isinstance(tensor, np.ndarray):
        return tensor.reshape(-1)
    for name, dtype in _TYPES.items():
        if f"{kind}_{name}" in node.attributes:
            return array(node, f"{kind}_{name}", dtype)
    if f"{kind}_strings" in node.attributes:
        return None
    raise Unlowerable(f"it has no {kind}")


def _default(node: SourceNode, values: Array) -> Array:
    tensor = node.attributes.get("default_tensor")
    if isinstance(tensor, np.ndarray):
        return tensor.reshape(())
    name, number_ = _DEFAULTS["floats" if values.dtype.kind == "f" else "int64s"]
    return np.array(number(node, name, number_))


@lowers("ZipMap", domain=MACHINE_LEARNING)
def zip_map(node: SourceNode, context: Context) -> Sequence[Item]:
    """Return the tensor of probabilities, with a column for each class in order, instead of a list of maps."""
    x = context.value(node, 0)
    class_labels(node, context)
    return [context.add("Identity", [x])]
