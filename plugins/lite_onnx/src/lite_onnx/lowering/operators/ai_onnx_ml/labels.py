"""LabelEncoder, CategoryMapper, ZipMap, and the labels of classes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import DType, TensorType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import MACHINE_LEARNING, Array, array
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["class_labels", "labels_at", "looked_up"]

_TYPES: dict[str, Any] = {"int64s": np.int64, "floats": np.float32, "strings": object}
_DEFAULTS = {"int64s": ("default_int64", -1), "floats": ("default_float", -0.0)}
_DEFAULT_STRING = "_Unused"


def class_labels(node: SourceNode, context: Context) -> Array:
    """Return the labels of classes, numbers or strings."""
    names = node.attributes.get("classlabels_strings")
    if not names:
        return array(
            node, "classlabels_int64s" if "classlabels_int64s" in node.attributes else "classlabels_ints", np.int64
        )
    # Programs that count classes need the names in order; the outputs contain only those that were found.
    context.builder.graph.metadata[f"labels.{node.outputs[0]}"] = json.dumps(names)
    return np.array(names, object)


def labels_at(indices: Value, labels: Array, context: Context) -> Value:
    """Return the labels at indices."""
    if np.array_equal(labels, np.arange(len(labels))):
        return indices
    return context.add("Gather", [context.constant(labels), indices])


def looked_up(x: Value, keys: Array, values: Array, default: Any, context: Context, *, finds_nan: bool = True) -> Value:
    """Return the value of each element's key, or the default where no key is equal.

    Args:
        x: the elements.
        keys: a vector of different keys, of the type of x.
        values: as many values, numbers or strings.
        default: the value of all other elements.
        context: the node's context.
        finds_nan: True if the key NaN is equal to NaN.

    Raises:
        Unlowerable: there are no keys, or not as many values, or one of x and the keys is strings and the other not.
    """
    if len(keys) != len(values) or not len(keys):
        raise Unlowerable(f"it has {len(keys)} keys and {len(values)} values")
    if (x.dtype is DType.STRING) is not (keys.dtype == object):
        raise Unlowerable(f"its input is {x.dtype}, and its keys are {TensorType.of_array(keys).dtype}")
    if x.dtype is DType.STRING:
        position = context.add("StringPosition", [x], {"strings": tuple(keys.tolist())}, domain="lite")
        table = np.concatenate([values, np.array([default], values.dtype)])
        return context.add("Gather", [context.constant(table), position])
    column = context.add("Unsqueeze", [x, context.ints(-1)])
    same = context.add("Equal", [column, context.constant(keys.astype(x.dtype.numpy))])
    if finds_nan and keys.dtype.kind == "f" and np.isnan(keys).any():
        both = context.add("And", [context.add("IsNaN", [column]), context.constant(np.isnan(keys))])
        same = context.add("Or", [same, both])
    hits = context.add("Cast", [same], {"to": DType.INT32})
    index = context.add("ArgMax", [hits], {"axis": -1, "keepdims": 0})
    is_known = context.add(
        "Cast", [context.add("ReduceMax", [hits, context.ints(-1)], {"keepdims": 0})], {"to": DType.BOOL}
    )
    found = context.add("Gather", [context.constant(values), index])
    return context.add("Where", [is_known, found, context.constant(np.array(default, values.dtype))])


@lowers("LabelEncoder", domain=MACHINE_LEARNING)
def label_encoder(node: SourceNode, context: Context) -> Sequence[Item]:
    """Map numbers or strings by a table of keys and values, with a default for all others."""
    keys, values = _listed(node, "keys"), _listed(node, "values")
    default = _default(node, values)
    return [looked_up(context.value(node, 0), keys, values, default, context, finds_nan=node.version >= 4)]


@lowers("CategoryMapper", domain=MACHINE_LEARNING)
def category_mapper(node: SourceNode, context: Context) -> Sequence[Item]:
    """Map strings to integers, or integers to strings, by two lists of the same length."""
    x = context.value(node, 0)
    texts, numbers = array(node, "cats_strings", object), array(node, "cats_int64s", np.int64)
    if x.dtype is DType.STRING:
        return [looked_up(x, texts, numbers, number(node, "default_int64", -1), context)]
    return [looked_up(x, numbers, texts, node.attributes.get("default_string", _DEFAULT_STRING), context)]


def _listed(node: SourceNode, kind: str) -> Array:
    """Return the keys or the values as a vector."""
    tensor = node.attributes.get(f"{kind}_tensor")
    if isinstance(tensor, np.ndarray):
        return tensor.reshape(-1)
    for name, dtype in _TYPES.items():
        if f"{kind}_{name}" in node.attributes:
            return array(node, f"{kind}_{name}", dtype)
    raise Unlowerable(f"it has no {kind}")


def _default(node: SourceNode, values: Array) -> Any:
    tensor = node.attributes.get("default_tensor")
    if isinstance(tensor, np.ndarray):
        return tensor.reshape(()).item()
    if values.dtype == object:
        return node.attributes.get("default_string", _DEFAULT_STRING)
    name, number_ = _DEFAULTS["floats" if values.dtype.kind == "f" else "int64s"]
    return number(node, name, number_)


@lowers("ZipMap", domain=MACHINE_LEARNING)
def zip_map(node: SourceNode, context: Context) -> Sequence[Item]:
    """Return the tensor of probabilities, with a column for each class in order, instead of a list of maps."""
    x = context.value(node, 0)
    class_labels(node, context)
    return [context.add("Identity", [x])]
