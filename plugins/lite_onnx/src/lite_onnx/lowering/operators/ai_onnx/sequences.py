"""Sequences and optionals.

Inference models build short lists (the pieces of a split, the outputs of a few layers) and take them apart again: their
lengths are known when the model is read, and they leave no nodes in the graph. Lists whose length depends on data
become two tensors each, and nodes of :mod:`lite_core.ops.tensor_lists`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import GraphProto

from lite_core.ir import DType, Graph, Value
from lite_onnx.lowering.context import LOOP_WEIGHT, Context
from lite_onnx.lowering.lists import ListType, dynamic, empty_list, flattened, grouped, list_input
from lite_onnx.lowering.node import Absent, DynamicList, Item, SourceNode, TensorList
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import element_type

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
    result = TensorList()
    result.empty_dtype = element_type(_number(node, "dtype", 1))
    return [result]


@lowers("SequenceInsert")
def sequence_insert(node: SourceNode, context: Context) -> list[Item]:
    """Insert a tensor before a position; at the end if no position is given."""
    items, tensor = _sequence(node, 0), context.value(node, 1)
    position = _known_position(node, 2, context) if node.has(2) else len(items)
    if isinstance(items, DynamicList) or position is None:
        inputs = [*dynamic(items, context.builder), tensor, *([context.value(node, 2)] if node.has(2) else [])]
        return [DynamicList(*context.add_node("ListInsert", inputs, domain="lite", outputs=2))]
    elements = list(items)
    if not -len(elements) <= position <= len(elements):
        raise Unlowerable(f"the position {position} is not in or at the end of a sequence of {len(elements)} tensors")
    elements.insert(position, tensor)
    return [items.with_tensors(elements)]


@lowers("SequenceErase")
def sequence_erase(node: SourceNode, context: Context) -> list[Item]:
    """Remove the tensor at a position; the last one if no position is given."""
    items = _sequence(node, 0)
    position = _known_position(node, 1, context) if node.has(1) else -1
    if isinstance(items, DynamicList) or position is None:
        inputs = [*dynamic(items, context.builder), *([context.value(node, 1)] if node.has(1) else [])]
        return [DynamicList(*context.add_node("ListErase", inputs, domain="lite", outputs=2))]
    elements = list(items)
    if not elements:
        raise Unlowerable("it removes a tensor from an empty sequence")
    del elements[_checked(position, len(elements))]
    return [items.with_tensors(elements)]


@lowers("SplitToSequence")
def split_to_sequence(node: SourceNode, context: Context) -> list[Item]:
    """Split along an axis into pieces of given lengths, of one length (the last may be shorter), or of length 1."""
    x, axis = context.value(node, 0), _number(node, "axis", 0)
    split = context.known(context.value(node, 1)) if node.has(1) else np.array(1)
    size = x.shape[axis] if x.shape is not None and -len(x.shape) <= axis < len(x.shape) else None
    if not isinstance(size, int) or split is None or split.dtype == object:
        attributes = {"axis": axis, "keepdims": _number(node, "keepdims", 1)}
        inputs = [x, *([context.value(node, 1)] if node.has(1) else [])]
        return [DynamicList(*context.add_node("ListSplit", inputs, attributes, domain="lite", outputs=2))]
    if split.ndim == 0 and split < 1:
        raise Unlowerable(f"its pieces have the length {split}")
    count = split.size if split.ndim else -(-size // int(split))
    if count > _MAX_ELEMENTS:
        raise Unlowerable(f"it returns a sequence of {count} tensors; Lite supports at most {_MAX_ELEMENTS}")
    lengths = split.tolist() if split.ndim else [min(int(split), size - start) for start in range(0, size, int(split))]
    if not lengths:
        result = TensorList()
        result.empty_dtype = x.dtype
        return [result]
    pieces = context.add_node("Split", [x, context.ints(*lengths)], {"axis": axis}, outputs=len(lengths))
    if not node.has(1) and not _number(node, "keepdims", 1):
        pieces = [context.add("Squeeze", [piece, context.ints(axis)]) for piece in pieces]
    return [TensorList(pieces)]


# **** taking lists apart ****


@lowers("SequenceAt")
def sequence_at(node: SourceNode, context: Context) -> list[Item]:
    """Return the tensor at a position. Tensors of one known shape are stacked for a position that depends on data."""
    items, where = _sequence(node, 0), context.value(node, 1)
    position = _known_position(node, 1, context)
    if isinstance(items, TensorList) and position is not None:
        return [items[_checked(position, len(items))]]
    if isinstance(items, TensorList) and items and all(v.type == items[0].type and v.type.is_static for v in items):
        return [context.add("Gather", [_stacked(items, 0, context), where], {"axis": 0})]
    return [context.add("ListAt", [*dynamic(items, context.builder), where], domain="lite")]


@lowers("SequenceLength")
def sequence_length(node: SourceNode, context: Context) -> list[Item]:
    """Return the number of tensors."""
    return [_length(_sequence(node, 0), context)]


@lowers("ConcatFromSequence")
def concat_from_sequence(node: SourceNode, context: Context) -> list[Item]:
    """Concatenate the tensors along an axis, or stack them along a new one."""
    items, axis, is_new = _sequence(node, 0), _number(node, "axis", 0), _number(node, "new_axis", 0)
    if isinstance(items, DynamicList):
        return [context.add("ListConcat", items, {"axis": axis, "new_axis": is_new}, domain="lite")]
    if not items:
        raise Unlowerable("it concatenates the tensors of an empty sequence")
    return [_stacked(items, axis, context) if is_new else context.add("Concat", items, {"axis": axis})]


@lowers("SequenceMap")
def sequence_map(node: SourceNode, context: Context) -> list[Item]:
    """Inline a graph for each element of a list, with the elements of further lists at the same position."""
    body = node.attributes["body"]
    assert isinstance(body, GraphProto)
    first = _sequence(node, 0)
    if any(isinstance(item, DynamicList) for item in node.inputs):
        return _mapped(node, body, context)
    count = len(first)
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


def _mapped(node: SourceNode, body: GraphProto, context: Context) -> list[Item]:
    """Lower SequenceMap to a Loop that appends to one list for each output."""
    given = [dynamic(i, context.builder) if isinstance(i, TensorList) else i for i in node.inputs]
    graph, types = _map_body(body, given, [ListType(DType.FLOAT32)] * len(body.output), context)
    graph, types = _map_body(body, given, types, context)  # now the types of the results are known
    empty = [empty_list(type.dtype, type.rank or 0, context.builder) for type in types]
    inputs = [_length(_sequence(node, 0), context), None, *flattened(empty, context.builder)]
    return grouped(context.add_node("Loop", inputs, {"body": graph}, outputs=2 * len(empty)), empty)


def _map_body(
    body: GraphProto, given: Sequence[Item | None], types: Sequence[ListType], context: Context
) -> tuple[Graph, list[ListType]]:
    """Build the body of the Loop for lists of results of some types; return it with the types that it appends."""
    inner = context.inner("map", weight=LOOP_WEIGHT)
    builder = inner.builder
    index = builder.input(builder.unique_name("index"), DType.INT64, ())
    goes_on = builder.input(builder.unique_name("goes_on"), DType.BOOL, ())
    lists = [list_input(output.name, type, builder) for output, type in zip(body.output, types)]
    arguments = [
        inner.add("ListAt", [*item, index], domain="lite") if isinstance(item, DynamicList) else item for item in given
    ]
    results = [_tensor(item) for item in inner.inline(body, arguments)]
    found = [ListType(value.dtype, value.type.rank) for value in results]
    if [type.dtype for type in found] == [type.dtype for type in types]:
        builder.output(inner.add("Identity", [goes_on]))
        for items, value in zip(lists, results):
            for part in inner.add_node("ListInsert", [*items, value], domain="lite", outputs=2):
                builder.output(part)
    return builder.build(), found


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


def _sequence(node: SourceNode, position: int) -> TensorList | DynamicList:
    item = node.inputs[position] if position < len(node.inputs) else None
    if not isinstance(item, (TensorList, DynamicList)):
        raise Unlowerable(f"its input {position} is not a sequence")
    return item


def _length(items: TensorList | DynamicList, context: Context) -> Value:
    if isinstance(items, TensorList):
        return context.constant(np.array(len(items), np.int64))
    return context.add("Squeeze", [context.add("Shape", [items.shapes], {"start": 0, "end": 1})])


def _known_position(node: SourceNode, position: int, context: Context) -> int | None:
    """Return a position, or None if it depends on data."""
    known = context.known(context.value(node, position))
    return None if known is None or known.dtype == object else int(known.item())


def _checked(position: int, count: int) -> int:
    if not -count <= position < count:
        raise Unlowerable(f"the position {position} is not in a sequence of {count} tensors")
    return position % count


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
