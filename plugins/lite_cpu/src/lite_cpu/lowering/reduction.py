"""Lowering of reductions over axes, and of global pooling."""

from __future__ import annotations

from collections.abc import Collection

from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Node, Value
from lite_core.ops import attributes_of
from lite_cpu.kernels.reduction import REDUCTIONS, Reduction
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.rows import along_axes, plan_rows
from lite_cpu.lowering.shape import required_input

__all__ = ["reduce_to"]

_NARROW_FLOATS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)
_LOGARITHMS = ("ReduceLogSum", "ReduceLogSumExp")


def refuse_reduction(node: Node) -> str | None:
    x = required_input(node)
    if node.op in _LOGARITHMS and x.dtype not in _NARROW_FLOATS:
        return f"{node.op} of {x.dtype}: the CPU kernels compute logarithms in float32"
    return None


@lowers(*REDUCTIONS, refuse=refuse_reduction)
def reduction(lowering: Lowering, group: Group) -> None:
    """Emit a reduction over the node's axes."""
    node, y = group.head, group.output
    x = required_input(node)
    axes = _axes(lowering, node, len(x.shape), attributes_of(node)["noop_with_empty_axes"])
    if axes is None:
        lowering.bind(y, lowering.tensor(x))
        return
    reduce_to(lowering, node.op, x, y, axes)


def _axes(lowering: Lowering, node: Node, rank: int, noop_with_empty_axes: int) -> tuple[int, ...] | None:
    """Return the axes to reduce, or None if the node does nothing."""
    axes_input = node.inputs[1] if len(node.inputs) > 1 else None
    known = lowering.known(axes_input)
    if axes_input is None or known is not None:
        axes = () if known is None else tuple(sorted(a % rank for a in known.reshape(-1).tolist()))
    else:
        axes = _axes_by_shapes(node, axes_input)
    return axes or (None if noop_with_empty_axes else tuple(range(rank)))


def _axes_by_shapes(node: Node, axes_input: Value) -> tuple[int, ...]:
    """Return axes that the model computes, inferred from shapes; for axes of size 1 the choice does not matter."""
    x, y = required_input(node), node.outputs[0]
    assert y is not None
    rank = len(x.shape)
    if axes_input.shape in ((0,), (rank,)):
        return tuple(range(rank)) if axes_input.shape[0] else ()
    if len(y.shape) == rank:
        return tuple(a for a, n in enumerate(y.shape) if n == 1)
    raise ExecutionError(
        f"{node.describe()}: the axes are computed by the model, and the shapes do not tell which they are; "
        "make them a constant, or keep the dimensions (keepdims=1)"
    )


def reduce_to(lowering: Lowering, op: str, x: Value, y: Value, axes: Collection[int]) -> None:
    """Emit a reduction of ``x`` over ``axes``; in ``y`` these have size 1 or are missing."""
    source = lowering.tensor(x)
    order = memory_order(source)
    if len(y.shape) != source.rank:
        left = [a for a in range(source.rank) if a not in axes]
        order = [left.index(a) for a in order if a in left]
    target = lowering.target(y, order)
    with_axes = target.reshape([1 if a in axes else n for a, n in enumerate(source.shape)])
    if with_axes is None:
        raise ExecutionError(f"{y!r} has a layout to which dimensions of size 1 cannot be added")
    tensors = [source, along_axes(with_axes, source.shape, axes)]
    plan = plan_rows(lowering, tensors, axes)
    lowering.step(
        Reduction(op, plan.layout), tensors, plan.params, plan.tasks, plan.grain,
        flops=source.size, label=op, streams=True,
    )  # fmt: skip


#: The reductions that global pooling operators are lowered to.
_GLOBAL_POOLS = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}
_GLOBAL_NORMS = {1: "ReduceL1", 2: "ReduceL2"}


def refuse_global_norm(node: Node) -> str | None:
    order = node.attributes.get("p", 2)
    return None if order in _GLOBAL_NORMS else f"{node.op} of order p={order}: the CPU kernels have orders 1 and 2"


@lowers(*_GLOBAL_POOLS)
def global_pool(lowering: Lowering, group: Group) -> None:
    """Emit the mean or the maximum over all spatial axes."""
    x = required_input(group.head)
    reduce_to(lowering, _GLOBAL_POOLS[group.head.op], x, group.output, range(2, len(x.shape)))


@lowers("GlobalLpPool", refuse=refuse_global_norm)
def global_norm(lowering: Lowering, group: Group) -> None:
    """Emit the norm over all spatial axes."""
    x = required_input(group.head)
    reduce_to(lowering, _GLOBAL_NORMS[attributes_of(group.head)["p"]], x, group.output, range(2, len(x.shape)))
