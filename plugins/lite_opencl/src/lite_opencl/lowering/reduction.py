"""Reductions over axes, and global pools."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.elementwise import pass_view
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.rows import (
    choose_plan,
    fold,
    rows_first,
    rows_items,
    rows_kernel,
    sizes_of,
    strides_of,
    sum_type,
)
from lite_opencl.programs.element_types import c_type, literal
from lite_opencl.tensors import Tensor

__all__ = ["reduce_to"]

#: Reductions that are defined by real numbers.
_OF_REALS = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp")
_EXTREMES = ("ReduceMax", "ReduceMin")
_REDUCTIONS = (*_OF_REALS, *_EXTREMES, "ReduceL1", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare")

#: Approximate number of floating-point operations for an element, for profiles; 1 for the others.
_COSTS = {"ReduceLogSumExp": 22, "ReduceLp": 60, "ReduceL2": 2, "ReduceSumSquare": 2}


def refuse_reduction(node: Node) -> str | None:
    """Return the reason why a reduction is not supported, or None."""
    x = node.inputs[0]
    if node.op in _OF_REALS and x is not None and x.dtype.is_integer:
        return f"for {x.dtype} it is defined by float64, which not every device has"
    return None


@lowers(*_REDUCTIONS, refuse=refuse_reduction, epilogue=True, needs_numbers=True)
def reduction(lowering: Lowering, group: Group) -> None:
    """Lower a reduction over some axes."""
    x, given = group.input(0), group.optional(1)
    rank = len(x.shape)
    axes = {int(a) % rank for a in lowering.always_known(given).reshape(-1)} if given is not None else set()
    if not axes and group.attributes["noop_with_empty_axes"]:
        pass_view(lowering, group, lowering.tensor(x))
        return
    reduce_to(lowering, group, group.head.op, axes or range(rank))


def reduce_to(lowering: Lowering, group: Group, op: str, axes: Collection[int], power: int = 0) -> None:
    """Emit a reduction of a group's first input over ``axes``, which have size 1 in the result or are removed.

    Args:
        lowering: gets the step.
        group: the group; its tail becomes the epilogue.
        op: a reduction of the opset, or ``ReduceLp``.
        axes: the axes, not negative.
        power: the power of ``ReduceLp``.
    """
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    if not target.size:
        return
    (folded,) = fold(lowering, [rows_first(source, axes)], source.rank - len(axes))
    dtype = source.dtype
    acc = c_type(dtype).compute if op in _EXTREMES else sum_type(dtype)
    wide = acc
    if op == "ReduceMean" and not dtype.is_floating:
        acc, wide = "ulong", "long" if dtype.is_signed else "ulong"
    defines: dict[str, int | str] = {"START": _empty_result(op, dtype, acc), "WIDE": wide}
    if dtype.is_floating:
        defines["FLOATING"] = 1
    if op == "ReduceLp":
        defines["POWER"] = literal(power, acc)
    plan = choose_plan(lowering.device, folded, 8 if acc in ("double", "long", "ulong") else 4)
    epilogue, tensors = lowering.epilogue(group, target.rank), {"X": folded, "Y": _as_row(target)}
    kernel = rows_kernel("rows", "reduce_rows", op, plan, tensors, acc, defines, epilogue.chain)
    lowering.step(
        kernel,
        [target, folded, *sizes_of(folded), *strides_of(folded), *epilogue.arguments],
        rows_items(plan, folded),
        flops=_COSTS.get(op, 1) * source.size + epilogue.chain.cost * target.size,
        label=op,
    )


def _as_row(target: Tensor) -> Tensor:
    """Return a dense result as a folded tensor."""
    return target.view((1, target.size, 1, 1), (target.size, 1, 0, 0))


def _empty_result(op: str, dtype: DType, acc: str) -> str:
    """Return the result of a reduction of no elements, in C."""
    if op == "ReduceProd":
        return "1"
    lowest = op in ("ReduceMax", "ReduceLogSumExp")
    if not lowest and op != "ReduceMin":
        return "0"
    if dtype.is_floating:
        return literal(-np.inf if lowest else np.inf, acc)
    if dtype is DType.BOOL:
        return "0" if lowest else "1"
    limits = np.iinfo(dtype.numpy)
    # NOTE: C has no literal for the lowest number of a signed type: it would be the negation of a literal out of range.
    if lowest:
        return f"({limits.min + 1} - 1)" if limits.min else "0"
    return f"{limits.max}{'u' if not dtype.is_signed else ''}"


#: The reductions that implement global pools.
_GLOBAL_POOLS = {"GlobalAveragePool": "ReduceMean", "GlobalMaxPool": "ReduceMax"}
_GLOBAL_NORMS = {1: "ReduceL1", 2: "ReduceL2"}


@lowers(*_GLOBAL_POOLS, epilogue=True)
def global_pool(lowering: Lowering, group: Group) -> None:
    """Lower global pools: the mean or the maximum over all spatial axes."""
    reduce_to(lowering, group, _GLOBAL_POOLS[group.head.op], range(2, len(group.input(0).shape)))


@lowers("GlobalLpPool", epilogue=True)
def global_norm(lowering: Lowering, group: Group) -> None:
    """Lower GlobalLpPool: the norm over all spatial axes."""
    power, spatial = int(group.attributes["p"]), range(2, len(group.input(0).shape))
    reduce_to(lowering, group, _GLOBAL_NORMS.get(power, "ReduceLp"), spatial, power)
