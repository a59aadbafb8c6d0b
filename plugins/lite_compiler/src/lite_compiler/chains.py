"""Element-wise operators that run one after another on values in registers, as they are read from the graph.

How a chain becomes code, and what its operands are, each backend says for itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import Attribute, DType, Node, Value

__all__ = ["Apply", "can_chain", "default_attributes", "only_passes_on", "pass_on", "read_chain", "refuse_results"]

Array = np.ndarray[Any, Any]
T = TypeVar("T")

#: Operators that change nothing; the second output of Dropout is a mask of ones.
_SAME = ("Identity", "Dropout")


class Apply(NamedTuple):
    """One operator of a chain, part of the key of the compiled kernel.

    Values are numbered: 0 is what the chain starts from, then come its operands, then the result of each operator.

    Attributes:
        op: its qualified name.
        inputs: value numbers; None stands for an optional input that is left out.
        output: element type of the result.
        attributes: those that the node has, by name.
    """

    op: str
    inputs: tuple[int | None, ...]
    output: DType
    attributes: tuple[tuple[str, Attribute], ...] = ()


def read_chain(start: Value, nodes: Sequence[Node]) -> tuple[list[Value], tuple[Apply, ...]]:
    """What element-wise nodes do to a value, one after another.

    Args:
        start: what the first of them reads.
        nodes: each reads the result of the one before.

    Returns:
        The values that are read beside the start, in the order of their numbers, and the operators.
    """
    made = {node.outputs[0] for node in nodes}
    numbers: dict[Value, int] = {start: 0}
    for node in nodes:
        for value in _operands(node):
            if value is not None and value not in numbers and value not in made:
                numbers[value] = len(numbers)
    reads = list(numbers)[1:]
    steps = []
    for node in nodes:
        output = node.outputs[0]
        assert output is not None
        inputs = tuple([None if v is None else numbers[v] for v in _operands(node)])
        steps.append(Apply(node.qualified_op, inputs, output.dtype, tuple(sorted(node.attributes.items()))))
        numbers[output] = len(numbers)
    return reads, tuple(steps)


def _operands(node: Node) -> Sequence[Value | None]:
    """The inputs whose elements an element-wise node reads.

    NOTE: CastLike takes the element type of its second input alone, whose shape need not fit.
    """
    return node.inputs[:1] if node.qualified_op == "CastLike" else node.inputs


@cache
def default_attributes(op: str) -> Mapping[str, Any]:
    """The attributes of an operator, by its qualified name, that have a default, with it."""
    domain, _, name = op.rpartition(".")
    definition = ops.find(name, domain)
    if definition is None:
        raise KeyError(f"the opset has no operator {op!r}")
    return {name: spec.default for name, spec in definition.attributes.items() if not spec.required}


# **** which nodes can be part of a chain ****


def can_chain(node: Node, operators: Container[str], refuse: Callable[[Node], str | None]) -> bool:
    """Whether a node can be part of a chain: one result, which is computed element by element.

    Args:
        node: of the graph.
        operators: qualified names of those that the backend has.
        refuse: why it cannot emit a node of them, a sentence, or None.
    """
    is_one_of_them = len(node.outputs) == 1 and node.outputs[0] is not None and node.qualified_op in operators
    return is_one_of_them and refuse(node) is None


def refuse_results(node: Node) -> str | None:
    """Why a node of an element-wise operator cannot run by itself whatever its types are; None where it can."""
    return (
        None if node.outputs[0] is not None and (len(node.outputs) == 1 or node.op in _SAME) else "more than one output"
    )


# **** nodes that change nothing ****


class KnowsValues(Protocol[T]):
    """What is known of the values of a graph that is being lowered."""

    def tensor(self, value: Value) -> T:
        """Where a value is."""
        ...

    def bind(self, value: Value, tensor: T) -> None:
        """Say where a value is."""
        ...

    def know(self, value: Value, array: Array) -> None:
        """Record the elements of a value that are known before the run."""
        ...


def only_passes_on(group: Group) -> bool:
    """Whether the result of a group is its input, under another name."""
    return all(node.op in _SAME for node in group.nodes)


def pass_on(lowering: KnowsValues[Any], group: Group) -> None:
    """Lower such a group: nothing runs."""
    lowering.bind(group.output, lowering.tensor(group.input(0)))
    for mask in group.head.outputs[1:]:
        if mask is not None:
            lowering.know(mask, np.ones(mask.shape, bool))
