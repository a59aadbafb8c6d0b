"""Types of tensors as messages, and names for their dimensions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from onnx import TypeProto, ValueInfoProto

from lite_core.ir import SymbolicDim, TensorType
from lite_onnx.reader.element_types import onnx_number

__all__ = ["DimNames", "value_info"]

_WORDS = {"//": "_over_", "%": "_modulo_", "*": "_times_", "+": "_plus_", "-": "_minus_"}
_MOST_LETTERS = 60


class DimNames:
    """Names for dimensions that are not numbers: ONNX has no expressions.

    A symbol keeps its name. ``(height + 1)//2`` becomes ``height_plus_1_over_2``, the same wherever it occurs, and
    equal names are equal sizes.

    Args:
        symbols: every symbol of the model.
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        self._names: dict[SymbolicDim, str] = {}
        self._taken = set(symbols)

    def name(self, dim: SymbolicDim) -> str:
        """The ``dim_param`` of a dimension."""
        if dim.name is not None and "?" not in dim.name:
            return dim.name
        if dim not in self._names:
            text = re.sub(r"\?\d+", "", str(dim))  # the number of a size that nobody named differs from run to run
            for sign, word in _WORDS.items():
                text = text.replace(sign, word)
            wanted = re.sub(r"[\W_]+", "_", text).strip("_")
            wanted = wanted if len(wanted) <= _MOST_LETTERS else "computed"
            name, number = wanted, 1
            while name in self._taken:
                name, number = f"{wanted}_{number}", number + 1
            self._taken.add(name)
            self._names[dim] = name
        return self._names[dim]


def value_info(name: str, type: TensorType, dims: DimNames) -> ValueInfoProto:
    """The declaration of a value."""
    tensor = TypeProto.Tensor(elem_type=onnx_number(type.dtype))
    if type.shape is not None:
        tensor.shape.SetInParent()  # a scalar has a shape without dimensions, not none
        for dim in type.shape:
            if isinstance(dim, SymbolicDim):
                tensor.shape.dim.add(dim_param=dims.name(dim))
            else:
                tensor.shape.dim.add(dim_value=dim)
    return ValueInfoProto(name=name, type=TypeProto(tensor_type=tensor))
