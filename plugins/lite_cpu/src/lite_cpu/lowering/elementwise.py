"""Lowering of runs of element-wise nodes."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import Node
from lite_cpu import scalar_ops
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers

__all__ = ["refuse_elementwise"]


#: Operators that change nothing; the second output of Dropout is a mask of ones.
_SAME = ("Identity", "Dropout")


def refuse_elementwise(node: Node) -> str | None:
    """Why a node cannot be part of a chain, or None."""
    output = node.outputs[0]
    if output is None or (len(node.outputs) != 1 and node.op not in _SAME):
        return "more than one output"
    inputs = [None if v is None else v.dtype for v in node.inputs]
    return scalar_ops.supports(node.qualified_op, inputs, output.dtype, node.attributes)


@lowers(*scalar_ops.OPERATORS, refuse=refuse_elementwise, epilogue=False)
def elementwise(lowering: Lowering, group: Group) -> None:
    """One kernel for all of the group; the result is laid out like its largest operand."""
    nodes = group.nodes
    if all(n.op in _SAME for n in nodes):
        _pass_on(lowering, group)
        return
    first = next(v for v in nodes[0].inputs if v is not None)
    chain, reads = lowering.chain(first, nodes)
    sources = [lowering.tensor(v) for v in (first, *reads)]
    output = group.output
    shape = tuple(output.shape)
    like = next((s for s in sources if s.shape == shape), None)
    order = None
    if like is not None:
        order = sorted(range(len(shape)), key=lambda a: -abs(like.strides[a]))
    lowering.elementwise(chain, sources, lowering.target(output, order))


def _pass_on(lowering: Lowering, group: Group) -> None:
    """The result is the input, under another name."""
    x = group.head.inputs[0]
    assert x is not None
    lowering.bind(group.output, lowering.tensor(x))
    for mask in group.head.outputs[1:]:
        if mask is not None:
            lowering.know(mask, np.ones(mask.shape, bool))
