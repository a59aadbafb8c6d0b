"""A node of the model as lowerings see it: with attributes as Python values, and inputs as values of Lite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Union

import numpy as np
from onnx import GraphProto, TypeProto

from lite_core.ir import DType, Value

__all__ = ["Absent", "Attribute", "DynamicList", "Item", "SourceNode", "TensorList"]

#: Numbers, strings and lists of them. A TensorProto is converted to an array; graphs and types stay messages.
Attribute = Union[
    int, float, str, list[int], list[float], list[str], "np.ndarray[Any, Any]", GraphProto, TypeProto, list[GraphProto]
]


class TensorList(tuple[Value, ...]):
    """A sequence whose length is known when the model is read, with one value for each tensor.

    Attributes:
        empty_dtype: the element type of the tensors that an empty sequence could contain.
    """

    empty_dtype: DType = DType.FLOAT32

    @property
    def dtype(self) -> DType:
        """The element type of its tensors."""
        return self[0].dtype if self else self.empty_dtype

    def with_tensors(self, tensors: Iterable[Value]) -> TensorList:
        """Return a sequence of other tensors of the same element type."""
        result = TensorList(tensors)
        result.empty_dtype = self.dtype
        return result


class DynamicList(NamedTuple):
    """A sequence whose length depends on data, as the two tensors of :mod:`lite_core.ops.tensor_lists`."""

    elements: Value
    shapes: Value


class Absent:
    """An empty optional."""

    __slots__ = ()


#: The meaning of a name of the model.
Item = Value | TensorList | DynamicList | Absent


@dataclass(eq=False)
class SourceNode:
    """A node of the model.

    Attributes:
        op: its operator.
        domain: the operator's domain; ``""`` for ONNX's own.
        version: the version of the domain's operator set that the model, or the enclosing function, is written for.
        inputs: the items of its inputs; None for an omitted one.
        outputs: the names of its outputs in the model; empty for an omitted one. Omitted ones at the end are dropped,
            unless the operator depends on their number.
        attributes: the attributes that the node has.
        name: its name in messages: the node's name, or that of its first output.
    """

    op: str
    domain: str
    version: int
    inputs: list[Item | None]
    outputs: list[str]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    name: str = ""

    @property
    def qualified_op(self) -> str:
        """The operator's name with its domain: ``Conv``, or ``com.microsoft.FusedConv``."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    def has(self, position: int) -> bool:
        """Return True if the node has the input at a position."""
        return position < len(self.inputs) and self.inputs[position] is not None
