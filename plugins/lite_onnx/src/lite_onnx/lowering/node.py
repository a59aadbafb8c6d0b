"""What lowerings see of a node: its operator and version, attributes as Python has them, inputs as Lite has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np
from onnx import GraphProto, TypeProto

from lite_core.ir import Value

__all__ = ["Absent", "Attribute", "Item", "SourceNode", "TensorList"]

#: Numbers, texts and lists of them; a TensorProto is its array; graphs and types stay messages.
Attribute = Union[
    int, float, str, list[int], list[float], list[str], "np.ndarray[Any, Any]", GraphProto, TypeProto, list[GraphProto]
]


class TensorList(tuple[Value, ...]):
    """A sequence whose length is known when the model is read: one value for each tensor."""

    __slots__ = ()


class Absent:
    """An optional that is empty."""

    __slots__ = ()


#: What a name of the model stands for.
Item = Value | TensorList | Absent


@dataclass(eq=False)
class SourceNode:
    """A node of the model.

    Attributes:
        op: its operator.
        domain: the operator's; ``""`` for ONNX's own.
        version: of the domain's operator set that the model, or the function around the node, is written for.
        inputs: what they stand for; None where one is left out.
        outputs: the model's names of them; empty where one is left out, and none of those at the end where
            their number does not matter.
        attributes: those that are given.
        name: for messages: the node's, or that of its first output.
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
        """``Conv``, or ``com.microsoft.FusedConv``."""
        return f"{self.domain}.{self.op}" if self.domain else self.op

    def has(self, position: int) -> bool:
        """Whether an input is given."""
        return position < len(self.inputs) and self.inputs[position] is not None
