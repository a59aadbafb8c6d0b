"""Conversion of tensor types to messages, and names for symbolic dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from onnx import TypeProto, ValueInfoProto

from lite_core.ir import SymbolicDim, TensorType
from lite_onnx.reader.element_types import onnx_number

__all__ = ["DimNames", "value_info"]

_OPERATOR_NAMES = {"//": "_over_", "%": "_modulo_", "*": "_times_", "+": "_plus_", "-": "_minus_"}
_MAX_CHARACTERS = 60


class DimNames:
    """Names for symbolic dimensions: ONNX has no expressions.

    A symbol keeps its name. ``(height + 1)//2`` becomes ``height_plus_1_over_2`` wherever it occurs; equal names mean
    equal sizes.

    Args:
        symbols: every symbol of the model.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        self._names: dict[SymbolicDim, str] = {}
        self._taken = set(symbols)

    def name(self, dim: SymbolicDim) -> str:
        """Return the ``dim_param`` of a dimension."""
        if dim.name is not None and "?" not in dim.name:
            return dim.name
        if dim not in self._names:
            text = re.sub(r"\?\d+", "", str(dim))  # the number of an unnamed size differs from run to run
            for sign, word in _OPERATOR_NAMES.items():
                text = text.replace(sign, word)
            wanted = re.sub(r"[\W_]+", "_", text).strip("_")
            wanted = wanted if len(wanted) <= _MAX_CHARACTERS else "computed"
            name, number = wanted, 1
            while name in self._taken:
                name, number = f"{wanted}_{number}", number + 1
            self._taken.add(name)
            self._names[dim] = name
        return self._names[dim]


def value_info(name: str, type: TensorType, dims: DimNames) -> ValueInfoProto:
    """Return the declaration of a value."""
    tensor = TypeProto.Tensor(elem_type=onnx_number(type.dtype))
    if type.shape is not None:
        tensor.shape.SetInParent()  # a scalar has an empty shape, not a missing one
        for dim in type.shape:
            if isinstance(dim, SymbolicDim):
                tensor.shape.dim.add(dim_param=dims.name(dim))
            else:
                tensor.shape.dim.add(dim_value=dim)
    return ValueInfoProto(name=name, type=TypeProto(tensor_type=tensor))
