"""Sequences and optionals of known length: lists of values during lowering, which leave no nodes in the graph.

Inference models build short lists (the pieces of a split, the outputs of a few layers) and take them apart again:
their lengths are known when the model is read. Lists that grow with the data are not lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Absent, Item, SourceNode, TensorList
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

Array = np.ndarray[Any, Any]

#: Longer lists are a sign of a damaged model; every element becomes at least one node.
_MAX_ELEMENTS = 4096


# **** building lists ****


@lowers("SequenceConstruct")
def sequence_construct(node: SourceNode, context: Context) -> list[Item]:
    """Return a list of the inputs."""
    return [TensorList(context.value(node, i) for i in range(len(node.inputs)))]


@lowers("SequenceEmpty")
def sequence_empty(node: SourceNode, context: Context) -> list[Item]:
    """Return an empty list."""
    return [TensorList()]


@lowers("SequenceInsert")
def sequence_insert(node: SourceNode, context: Context) -> list[Item]:
    """Insert a tensor before a position; at the end if no position is given."""
    elements = list(_sequence(node, 0))
    count = len(elements)
    position = context.must_know(node, 2, "position").item() if node.has(2) else count
    if not -count <= position <= count:
        raise Unlowerable(f"the position {position} is not in or at the end of a sequence of {count} tensors")
    elements.insert(position, context.value(node, 1))
    return [TensorList(elements)]


@lowers("SequenceErase")
def sequence_erase(node: SourceNode, context: Context) -> list[Item]:
    """Remove the tensor at a position; the last one if no position is given."""
    elements = list(_sequence(node, 0))
    if not elements:
        raise Unlowerable("it removes a tensor from an empty sequence")
    del elements[_position(node, 1, len(elements), context) if node.has(1) else len(elements) - 1]
    return [TensorList(elements)]


@lowers("SplitToSequence")
def split_to_sequence(node: SourceNode, context: Context) -> list[Item]:
    """Split along an axis into pieces of given lengths, of one length (the last may be shorter), or of length 1."""
    x, axis = context.value(node, 0), int(_number(node, "axis", 0))
    size = context.size(x, axis)
    split = context.must_know(node, 1, "split") if node.has(1) else np.array(1)
    if split.ndim == 0 and split < 1:
        raise Unlowerable(f"its pieces have the length {split}")
    count = split.size if split.ndim else -(-size // int(split))
    if count > _MAX_ELEMENTS:
        raise Unlowerable(f"it returns a sequence of {count} tensors; Lite supports at most {_MAX_ELEMENTS}")
    lengths = split.tolist() if split.ndim else [min(int(split), size - start) for start in range(0, size, int(split))]
    if not lengths:
        return [TensorList()]
    pieces = context.add_node("Split", [x, context.ints(*lengths)], {"axis": axis}, outputs=len(lengths))
    if not node.has(1) and not _number(node, "keepdims", 1):
        pieces = [context.add("Squeeze", [piece, context.ints(axis)]) for piece in pieces]
    return [TensorList(pieces)]


# **** taking lists apart ****


@lowers("SequenceAt")
def sequence_at(node: SourceNode, context: Context) -> list[Item]:
    """Return the tensor at a position. A position that depends on data needs tensors that have one shape."""
    elements = _sequence(node, 0)
    if context.known(context.value(node, 1)) is not None:
        return [elements[_position(node, 1, len(elements), context)]]
    if not elements or any(v.type != elements[0].type or not v.type.is_static for v in elements):
        raise Unlowerable("its position depends on data, and its tensors are not all of one known shape")
    return [context.add("Gather", [_stacked(elements, 0, context), context.value(node, 1)], {"axis": 0})]


@lowers("SequenceLength")
def sequence_length(node: SourceNode, context: Context) -> list[Item]:
    """Return the number of tensors."""
    return [context.constant(np.array(len(_sequence(node, 0)), np.int64))]


@lowers("ConcatFromSequence")
def concat_from_sequence(node: SourceNode, context: Context) -> list[Item]:
    """Concatenate the tensors along an axis, or stack them along a new one."""
    elements, axis = _sequence(node, 0), int(_number(node, "axis", 0))
    if not elements:
        raise Unlowerable("it concatenates the tensors of an empty sequence")
    if _number(node, "new_axis", 0):
        return [_stacked(elements, axis, context)]
    return [context.add("Concat", elements, {"axis": axis})]


@lowers("SequenceMap")
def sequence_map(node: SourceNode, context: Context) -> list[Item]:
    """Inline a graph for each element of a list, with the elements of further lists at the same position."""
    body = node.attributes["body"]
    assert isinstance(body, GraphProto)
    count = len(_sequence(node, 0))
    rows: list[list[Item]] = []
    for index in range(count):
        arguments = []
        for position, item in enumerate(node.inputs):
            if isinstance(item, TensorList) and len(item) != count:
                raise Unlowerable(f"its input {position} has {len(item)} tensors, the first one {count}")
            arguments.append(item[index] if isinstance(item, TensorList) else context.value(node, position))
        rows.append(context.inline(body, arguments))
    results = [[_tensor(row[i]) for row in rows] for i in range(len(body.output))]
    return [TensorList(column) for column in results]


# **** optionals ****


@lowers("Optional")
def optional(node: SourceNode, context: Context) -> list[Item]:
    """Return the input, or an empty optional."""
    return [node.inputs[0] if node.has(0) else Absent()]  # type: ignore[list-item]


@lowers("OptionalHasElement")
def optional_has_element(node: SourceNode, context: Context) -> list[Item]:
    """Return a constant: True if the optional is not empty."""
    has_element = node.has(0) and not isinstance(node.inputs[0], Absent)
    return [context.constant(np.array(has_element))]


@lowers("OptionalGetElement")
def optional_get_element(node: SourceNode, context: Context) -> list[Item]:
    """Return the element of an optional."""
    item = node.inputs[0] if node.has(0) else None
    if item is None or isinstance(item, Absent):
        raise Unlowerable("it reads the element of an empty optional")
    return [item]


# **** helpers ****


def _sequence(node: SourceNode, position: int) -> TensorList:
    item = node.inputs[position] if position < len(node.inputs) else None
    if not isinstance(item, TensorList):
        raise Unlowerable(f"its input {position} is not a sequence")
    return item


def _position(node: SourceNode, position: int, count: int, context: Context) -> int:
    index = int(context.must_know(node, position, "position").item())
    if not -count <= index < count:
        raise Unlowerable(f"the position {index} is not in a sequence of {count} tensors")
    return index % count


def _number(node: SourceNode, name: str, default: int) -> int:
    value = node.attributes.get(name, default)
    return value if isinstance(value, int) else default


def _stacked(elements: Sequence[Value], axis: int, context: Context) -> Value:
    spread = [context.add("Unsqueeze", [v, context.ints(axis)]) for v in elements]
    return context.add("Concat", spread, {"axis": axis})


def _tensor(item: Item) -> Value:
    if not isinstance(item, Value):
        raise Unlowerable("its graph returns sequences of sequences")
    return item
