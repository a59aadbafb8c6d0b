"""Inputs and outputs of a model: tensors, and sequences and optionals as the tensors in them.

A sequence ``x`` of three tensors is three inputs or outputs ``x[0]``, ``x[1]``, ``x[2]``. How many there are in an
input must be said when the model is read; an optional input that is empty is no input at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import TypeProto

from lite_core.builder import GraphBuilder
from lite_core.ir import Dim, SymbolicDim, TensorType, Value, fresh_dim
from lite_onnx.lowering.node import Absent, Item, TensorList
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import NotANumber, element_type

__all__ = ["Given", "add_outputs", "declare_input", "element_name", "tensor_type"]


Array = np.ndarray[Any, Any]


def element_name(name: str, index: int) -> str:
    """What the input or output for one tensor of a sequence is called."""
    return f"{name}[{index}]"


class Given(NamedTuple):
    """What whoever reads a model says of its inputs, by their names.

    Attributes:
        lengths: how many tensors are in each that is a sequence; None for an optional that is empty.
        constants: elements of those that are to be constants: lengths, positions, how often a loop runs.
        shapes: sizes of dimensions that the model leaves open.
    """

    lengths: Mapping[str, int | None] = {}
    constants: Mapping[str, Array] = {}
    shapes: Mapping[str, Sequence[int]] = {}


def declare_input(name: str, type_: TypeProto, given: Given, builder: GraphBuilder) -> Item:
    """The inputs of the graph for an input of the model.

    Args:
        name: the input's.
        type_: what the model says it is.
        given: what is known beside that.
        builder: of the model's graph.

    Raises:
        Unlowerable: its element type is not Lite's, or its length is not said.
    """
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        if name in given.lengths and given.lengths[name] is None:
            return Absent()
        return declare_input(name, type_.optional_type.elem_type, given, builder)
    if kind == "sequence_type":
        length = given.lengths.get(name)
        if length is None:
            raise Unlowerable(
                f"the input {name!r} is a sequence, whose length must be known",
                f"say how many tensors are in it: lite.load(..., reader_options={{'lengths': {{{name!r}: 3}}}})",
            )
        inner = type_.sequence_type.elem_type
        type = tensor_type(f"the input {name!r}, a sequence,", inner)
        # NOTE: a symbol is another size in each tensor of a sequence.
        shape = None if type.shape is None else [d if isinstance(d, int) else None for d in type.shape]
        names = [element_name(name, i) for i in range(length)]
        return TensorList(builder.input(n, type.dtype, given.shapes.get(n, shape)) for n in names)
    type = tensor_type(f"the input {name!r}", type_)
    return builder.input(name, type.dtype, given.shapes.get(name, type.shape))


def tensor_type(who: str, type_: TypeProto) -> TensorType:
    """A tensor's type; dimensions that nobody names are symbols of their own.

    Raises:
        Unlowerable: it is no tensor, or its element type is not Lite's.
    """
    if type_.WhichOneof("value") != "tensor_type":
        raise Unlowerable(f"{who} is of the kind {type_.WhichOneof('value')}, not a tensor")
    try:
        dtype = element_type(type_.tensor_type.elem_type)
    except NotANumber as error:
        raise Unlowerable(f"{who}: {error}") from None
    if not type_.tensor_type.HasField("shape"):
        return TensorType(dtype, None)
    given = type_.tensor_type.shape.dim
    dims = [_dim(d.dim_value if d.HasField("dim_value") else d.dim_param) for d in given]
    return TensorType(dtype, tuple(dims))


def add_outputs(name: str, item: Item, builder: GraphBuilder) -> None:
    """The outputs of the graph for an output of the model; those without a name keep what they are called."""
    if isinstance(item, TensorList):
        for index, value in enumerate(item):
            add_outputs(element_name(name, index), value, builder)
    elif isinstance(item, Value) and not name:
        builder.output(item)
    elif isinstance(item, Value):
        is_free = item.name == name or not builder.is_taken(name)
        builder.output(item, name if is_free else builder.unique_name(name))


def _dim(dim: int | str) -> Dim:
    """A dimension: unknown where it is negative, or a text that names nothing."""
    if isinstance(dim, str):
        return SymbolicDim.named(dim) if dim.strip() and "?" not in dim else fresh_dim()
    return dim if dim >= 0 else fresh_dim()
