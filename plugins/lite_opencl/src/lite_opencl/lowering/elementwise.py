"""Lowering of element-wise operators; a sequence of them becomes one kernel."""

from __future__ import annotations

from lite_compiler.chains import can_chain, is_identity, lower_identity, refuse_results
from lite_compiler.fusion import Group
from lite_core.ir import Node
from lite_opencl import scalar_ops
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.tensors import Tensor, accepts_any

__all__ = ["elementwise", "is_elementwise", "pass_view"]


def is_elementwise(node: Node) -> bool:
    """Return True if a node can be part of a chain."""
    return can_chain(node, scalar_ops.OPERATORS, _refuse_types)


def _refuse(node: Node) -> str | None:
    return refuse_results(node) or _refuse_types(node)


def _refuse_types(node: Node) -> str | None:
    inputs = [None if v is None else v.dtype for v in node.inputs]
    return scalar_ops.supports(node.qualified_op, inputs, node.attributes)


@lowers(*scalar_ops.OPERATORS, refuse=_refuse)
def elementwise(lowering: Lowering, group: Group) -> None:
    """Lower a group of element-wise nodes to one kernel."""
    if is_identity(group):
        lower_identity(lowering, group)
        return
    first = next(v for v in group.head.inputs if v is not None)
    chain, operands = lowering.chain(first, group.nodes)
    lowering.elementwise(chain, lowering.tensor(first), operands, lowering.target(group.output, fits=accepts_any))


def pass_view(lowering: Lowering, group: Group, view: Tensor) -> None:
    """Lower a group whose head returns a view: bind the view, or emit one kernel for the tail."""
    if not group.tail:
        lowering.bind(group.output, view)
        return
    start = group.head.outputs[0]
    assert start is not None
    chain, operands = lowering.chain(start, group.tail)
    lowering.elementwise(chain, view, operands, lowering.target(group.output, fits=accepts_any))
