"""Runs of element-wise nodes, as one kernel each."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import Node
from lite_opencl import scalar_ops
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.tensors import Tensor, anywhere

__all__ = ["is_elementwise", "pass_view", "refuse_elementwise"]

#: Operators that change nothing; the second output of Dropout is a mask of ones.
_SAME = ("Identity", "Dropout")


def refuse_elementwise(node: Node) -> str | None:
    """Why a node cannot be run as a part of a chain, or None."""
    if node.outputs[0] is None or (len(node.outputs) != 1 and node.op not in _SAME):
        return "more than one output"
    inputs = [None if v is None else v.dtype for v in node.inputs]
    return scalar_ops.supports(node.qualified_op, inputs, node.attributes)


def is_elementwise(node: Node) -> bool:
    """Whether a node can be part of a chain."""
    return len(node.outputs) == 1 and node.qualified_op in scalar_ops.OPERATORS and refuse_elementwise(node) is None


@lowers(*scalar_ops.OPERATORS, refuse=refuse_elementwise)
def elementwise(lowering: Lowering, group: Group) -> None:
    """One kernel for all of the group."""
    if all(n.op in _SAME for n in group.nodes):
        _pass_on(lowering, group)
        return
    first = next(v for v in group.head.inputs if v is not None)
    chain, operands = lowering.chain(first, group.nodes)
    lowering.elementwise(chain, lowering.tensor(first), operands, lowering.target(group.output, fits=anywhere))


def pass_view(lowering: Lowering, group: Group, view: Tensor) -> None:
    """The result of a group's head is a view: the group's result is that, or one kernel's for the tail."""
    if not group.tail:
        lowering.bind(group.output, view)
        return
    start = group.head.outputs[0]
    assert start is not None
    chain, operands = lowering.chain(start, group.tail)
    lowering.elementwise(chain, view, operands, lowering.target(group.output, fits=anywhere))


def _pass_on(lowering: Lowering, group: Group) -> None:
    """The result is the input, under another name."""
    lowering.bind(group.output, lowering.tensor(group.input(0)))
    for mask in group.head.outputs[1:]:
        if mask is not None:
            lowering.know(mask, np.ones(mask.shape, bool))
