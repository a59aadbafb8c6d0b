"""Inputs and outputs of a model. Sequences and optionals become the tensors that they contain.

A sequence ``x`` of three tensors becomes three inputs or outputs ``x[0]``, ``x[1]``, ``x[2]``. The length of an input
sequence must be given when the model is read; an empty optional input becomes no input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TypeProto

from lite_core.builder import GraphBuilder
from lite_core.ir import Dim, SymbolicDim, TensorType, Value, fresh_dim
from lite_onnx.lowering.node import Absent, DynamicList, Item, TensorList
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import UnsupportedElementType, element_type

__all__ = ["InputOptions", "add_outputs", "declare_input", "element_name", "tensor_type"]


Array = np.ndarray[Any, Any]


def element_name(name: str, index: int | str) -> str:
    """Return the name of the input or output for one tensor of a sequence, or a part of a dynamic one."""
    return f"{name}[{index}]"


class InputOptions(NamedTuple):
    """The reader's options for a model's inputs, by their names.

    Attributes:
        lengths: the number of tensors in each sequence; None for an empty optional.
        constants: elements of inputs that become constants: lengths, positions, numbers of iterations.
        shapes: sizes of dimensions that the model leaves open.
        fixed_caches: True if present caches have the length of the past ones.
    """

    lengths: Mapping[str, int | None] = {}
    constants: Mapping[str, Array] = {}
    shapes: Mapping[str, Sequence[int]] = {}
    fixed_caches: bool = False


def declare_input(name: str, type_: TypeProto, options: InputOptions, builder: GraphBuilder) -> Item:
    """Add the graph's inputs for an input of the model.

    Args:
        name: the name of the model's input.
        type_: its type in the model.
        options: the reader's options.
        builder: the builder of the model's graph.

    Raises:
        Unlowerable: its element type is not one of Lite's, or its length is not given.
    """
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        if name in options.lengths and options.lengths[name] is None:
            return Absent()
        return declare_input(name, type_.optional_type.elem_type, options, builder)
    if kind == "sequence_type":
        length = options.lengths.get(name)
        if length is None:
            raise Unlowerable(
                f"the input {name!r} is a sequence, whose length must be known",
                f"give the number of its tensors: lite.load(..., reader_options={{'lengths': {{{name!r}: 3}}}})",
            )
        inner = type_.sequence_type.elem_type
        type = tensor_type(f"the input {name!r}, a sequence,", inner)
        # NOTE: a symbolic dimension may have a different size in each tensor of the sequence.
        shape = None if type.shape is None else [d if isinstance(d, int) else None for d in type.shape]
        names = [element_name(name, i) for i in range(length)]
        return TensorList(builder.input(n, type.dtype, options.shapes.get(n, shape)) for n in names)
    type = tensor_type(f"the input {name!r}", type_)
    return builder.input(name, type.dtype, options.shapes.get(name, type.shape))


def tensor_type(subject: str, type_: TypeProto) -> TensorType:
    """Convert a tensor's type; unnamed dimensions become fresh symbols.

    Args:
        subject: the tensor, in messages.
        type_: the message.

    Raises:
        Unlowerable: it is not a tensor, or its element type is not one of Lite's.
    """
    if type_.WhichOneof("value") != "tensor_type":
        raise Unlowerable(f"{subject} is of the kind {type_.WhichOneof('value')}, not a tensor")
    try:
        dtype = element_type(type_.tensor_type.elem_type)
    except UnsupportedElementType as error:
        raise Unlowerable(f"{subject}: {error}") from None
    if not type_.tensor_type.HasField("shape"):
        return TensorType(dtype, None)
    messages = type_.tensor_type.shape.dim
    dims = [_dim(d.dim_value if d.HasField("dim_value") else d.dim_param) for d in messages]
    return TensorType(dtype, tuple(dims))


def add_outputs(name: str, item: Item, builder: GraphBuilder) -> None:
    """Add the graph's outputs for an output of the model; if ``name`` is empty, values keep their names."""
    if isinstance(item, TensorList):
        for index, value in enumerate(item):
            add_outputs(element_name(name, index), value, builder)
    elif isinstance(item, DynamicList):
        for part, value in zip(DynamicList._fields, item):
            add_outputs(element_name(name, part) if name else "", value, builder)
    elif isinstance(item, Value) and not name:
        builder.output(item)
    elif isinstance(item, Value):
        is_free = item.name == name or not builder.is_taken(name)
        builder.output(item, name if is_free else builder.unique_name(name))


def _dim(dim: int | str | bytes) -> Dim:
    """Convert a dimension. Negative sizes, blank names and names with ``?`` are unknown: they become fresh symbols.

    NOTE: protobuf returns a name that is not UTF-8 as bytes, without an error; it is unknown, too.
    """
    if isinstance(dim, str):
        return SymbolicDim.named(dim) if dim.strip() and "?" not in dim else fresh_dim()
    return dim if isinstance(dim, int) and dim >= 0 else fresh_dim()
