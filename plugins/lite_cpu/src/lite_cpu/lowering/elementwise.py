"""Lowering of runs of element-wise nodes."""

from __future__ import annotations

from lite_compiler.chains import can_chain, is_identity, lower_identity, refuse_results
from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_core.ir import Node
from lite_cpu import scalar_ops
from lite_cpu.chains import Chain
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.tensors import Tensor

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
    target = lowering.target(group.output, order)
    if len(nodes) == 1 and nodes[0].qualified_op == "Where" and target.dtype.is_half:
        chain, sources, target = _choice_of_bits(chain, sources, target)
    lowering.elementwise(chain, sources, target)


def _choice_of_bits(chain: Chain, sources: list[Tensor], target: Tensor) -> tuple[Chain, list[Tensor], Tensor]:
    """Return a choice between 16-bit floats as one between integers: it keeps all bits, and converts nothing.

    With numbers of another type among them, the choice is returned unchanged.
    """
    if any(source.dtype is not target.dtype for source in sources[1:]):
        return chain, sources, target
    result = target.as_bits()
    step = chain.steps[0]._replace(output=result.dtype)
    return chain._replace(steps=(step,)), [sources[0], *(source.as_bits() for source in sources[1:])], result
