"""Lowering of runs of element-wise nodes."""

from __future__ import annotations

from lite_compiler.chains import can_chain, is_identity, lower_identity, refuse_results
from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_core.ir import Node
from lite_cpu import scalar_ops
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers

__all__ = ["elementwise", "is_elementwise"]


def is_elementwise(node: Node) -> bool:
    """Return True if a node can be part of a chain."""
    return can_chain(node, scalar_ops.OPERATORS, _refuse_types)


def _refuse(node: Node) -> str | None:
    return refuse_results(node) or _refuse_types(node)


def _refuse_types(node: Node) -> str | None:
    output = node.outputs[0]
    assert output is not None
    inputs = [None if v is None else v.dtype for v in node.inputs]
    return scalar_ops.supports(node.qualified_op, inputs, output.dtype, node.attributes)


@lowers(*scalar_ops.OPERATORS, refuse=_refuse)
def elementwise(lowering: Lowering, group: Group) -> None:
    """Emit one kernel for the whole group; the result has the layout of an operand of the same shape."""
    nodes = group.nodes
    if is_identity(group):
        lower_identity(lowering, group)
        return
    first = next(v for v in nodes[0].inputs if v is not None)
    chain, reads = lowering.chain(first, nodes)
    sources = [lowering.tensor(v) for v in (first, *reads)]
    shape = tuple(group.output.shape)
    like = next((s for s in sources if s.shape == shape), None)
    order = None if like is None else memory_order(like)
    lowering.elementwise(chain, sources, lowering.target(group.output, order))
