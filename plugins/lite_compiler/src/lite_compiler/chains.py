"""Chains: element-wise operators that are computed one after another in registers, read from the graph.

Each backend generates the code of a chain and defines its operands itself.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import Attribute, DType, Node, Value

__all__ = ["Apply", "can_chain", "default_attributes", "is_identity", "lower_identity", "read_chain", "refuse_results"]

Array = np.ndarray[Any, Any]
T = TypeVar("T")

#: Operators that return their input unchanged; the second output of Dropout is a mask of ones.
_IDENTITIES = ("Identity", "Dropout")


class Apply(NamedTuple):
    """One operator of a chain; part of the key of the compiled kernel.

    Values are numbered: 0 is the chain's start, then follow its operands, then the result of each operator.

    Attributes:
        op: the qualified name of the operator.
        inputs: value numbers; None stands for an optional input that is left out.
        output: element type of the result.
        attributes: the attributes that the node sets, as (name, value) pairs sorted by name.
    """

    op: str
    inputs: tuple[int | None, ...]
    output: DType
    attributes: tuple[tuple[str, Attribute], ...] = ()


def read_chain(start: Value, nodes: Sequence[Node]) -> tuple[list[Value], tuple[Apply, ...]]:
    """Describe a run of element-wise nodes as a chain.

    Args:
        start: the value that the first node reads.
        nodes: each reads the result of the one before.

    Returns:
        The values that the chain reads besides ``start``, in the order of their numbers, and the operators.
    """
    results = {node.outputs[0] for node in nodes}
    numbers: dict[Value, int] = {start: 0}
    for node in nodes:
        for value in _operands(node):
            if value is not None and value not in numbers and value not in results:
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
    """Return the inputs whose elements an element-wise node reads.

    NOTE: CastLike uses only the element type of its second input, whose shape need not be broadcastable.
    """
    return node.inputs[:1] if node.qualified_op == "CastLike" else node.inputs


@cache
def default_attributes(op: str) -> Mapping[str, Any]:
    """Return the defaults of an operator's optional attributes by attribute name; ``op`` is its qualified name."""
    domain, _, name = op.rpartition(".")
    definition = ops.find(name, domain)
    if definition is None:
        raise KeyError(str(ops.why_missing(name, domain)))
    return {name: spec.default for name, spec in definition.attributes.items() if not spec.required}


# **** nodes that can be part of a chain ****


def can_chain(node: Node, operators: Container[str], refuse: Callable[[Node], str | None]) -> bool:
    """Return True if a node can be part of a chain: it has a single result, which is computed element by element.

    Args:
        node: the node.
        operators: qualified names of the element-wise operators that the backend has.
        refuse: returns the reason why the backend cannot emit a node of these operators, or None.
    """
    has_single_result = len(node.outputs) == 1 and node.outputs[0] is not None
    return has_single_result and node.qualified_op in operators and refuse(node) is None


def refuse_results(node: Node) -> str | None:
    """Return the reason why the outputs of an element-wise node cannot be computed, or None. Types do not matter."""
    is_complete = node.outputs[0] is not None
    is_single = len(node.outputs) == 1 or node.op in _IDENTITIES
    return None if is_complete and is_single else "more than one output"


# **** identity nodes ****


class ValueTable(Protocol[T]):
    """The tensors and the known elements of the values of a graph that is being lowered."""

    def tensor(self, value: Value) -> T:
        """Return the tensor that holds a value."""
        ...

    def bind(self, value: Value, tensor: T) -> None:
        """Record the tensor that holds a value."""
        ...

    def set_known(self, value: Value, array: Array) -> None:
        """Record the elements of a value that are known before the run."""
        ...


def is_identity(group: Group) -> bool:
    """Return True if the result of a group equals its input."""
    return all(node.op in _IDENTITIES for node in group.nodes)


def lower_identity(lowering: ValueTable[Any], group: Group) -> None:
    """Lower a group of identity nodes: the output is bound to the input's tensor, and no step is emitted."""
    lowering.bind(group.output, lowering.tensor(group.input(0)))
    for mask in group.head.outputs[1:]:
        if mask is not None:
            lowering.set_known(mask, np.ones(mask.shape, bool))
