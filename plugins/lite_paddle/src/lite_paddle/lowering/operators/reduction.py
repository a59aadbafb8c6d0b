"""Reductions: reduce_*, mean, logsumexp, norms and cumulative sums."""

from __future__ import annotations

import math

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import (
    FIRST_WITH_0D,
    element_type,
    known_int,
    known_ints,
    scalar_result,
)
from lite_paddle.lowering.registry import lowers
from lite_paddle.source import SourceOp

__all__ = ["reduced"]

_REDUCTIONS = {
    "reduce_sum": "ReduceSum",
    "reduce_mean": "ReduceMean",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
    "reduce_prod": "ReduceProd",
    "reduce_amax": "ReduceMax",
    "reduce_amin": "ReduceMin",
    "frobenius_norm": "ReduceL2",
}

# Since then, the sum of int32 is int64.
_FIRST_WITH_WIDE_SUMS = 2_003_000


def reduced(context: Context, type_: str, x: Value, axes: list[int], keep: bool) -> Value:
    """Reduce over axes; over all of them if ``axes`` is empty."""
    if x.type.rank == 0:
        axes = []
    chosen = context.builder.ints(*axes) if axes else None
    result = context.node(type_, [x, chosen] if axes else [x], {"keepdims": int(keep)})
    return scalar_result(context, result)


def _axes(op: SourceOp, context: Context) -> list[int]:
    """Return the axes to reduce; an empty list means all of them."""
    if op.inputs.get("AxisTensor") or op.inputs.get("AxisTensorList"):
        return known_ints(op, context, "dim", "AxisTensor", "AxisTensorList")
    if op.attrs.get("reduce_all"):
        return []
    found = op.attrs.get("dim")
    if found is None:
        found = [0]
    return [int(a) for a in found] if isinstance(found, (list, tuple)) else [int(found)]


@lowers(*_REDUCTIONS)
def reduce(op: SourceOp, context: Context) -> None:
    x, axes = context.input(op, "X"), _axes(op, context)
    keep, wanted = bool(op.attrs.get("keep_dim", False)), op.attrs.get("out_dtype")
    if op.type in ("reduce_sum", "reduce_prod"):
        sums_widely = context.program.kind == "pir" or context.version >= _FIRST_WITH_WIDE_SUMS
        widens = sums_widely and op.type == "reduce_sum"
        promoted = x.dtype is DType.BOOL or (widens and x.dtype is DType.INT32)
        x = context.cast(x, element_type(wanted, DType.INT64 if promoted else x.dtype))
    context.bind(op, "Out", reduced(context, _REDUCTIONS[op.type], x, axes, keep))


@lowers("amax", "amin")
def extreme(op: SourceOp, context: Context) -> None:
    """Lower like reduce_max and reduce_min, from which these operators differ only in their gradients."""
    axes = [int(a) for a in op.attrs.get("axis") or ()]
    type_ = "ReduceMax" if op.type == "amax" else "ReduceMin"
    found = reduced(context, type_, context.any_input(op, "0", "X"), axes, bool(op.attrs.get("keepdim", False)))
    context.bind(op, "0" if "0" in op.outputs else "Out", found)


@lowers("reduce_all", "reduce_any")
def reduce_truth(op: SourceOp, context: Context) -> None:
    x = context.cast(context.input(op, "X"), DType.BOOL)
    type_ = "ReduceMin" if op.type == "reduce_all" else "ReduceMax"
    context.bind(op, "Out", reduced(context, type_, x, _axes(op, context), bool(op.attrs.get("keep_dim", False))))


@lowers("mean")
def mean(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", reduced(context, "ReduceMean", context.input(op, "X"), [], False))


@lowers("logsumexp")
def logsumexp(op: SourceOp, context: Context) -> None:
    axes = [] if op.attrs["reduce_all"] else [int(a) for a in op.attrs["axis"]]
    keep = bool(op.attrs["keepdim"])
    context.bind(op, "Out", reduced(context, "ReduceLogSumExp", context.input(op, "X"), axes, keep))


# **** norms ****


@lowers("p_norm")
def p_norm(op: SourceOp, context: Context) -> None:
    """Compute ``(sum |x|^p)^(1/p)``; for +-inf the greatest or smallest magnitude, for 0 the count of non-zeros."""
    x, order = context.input(op, "X"), float(op.attrs["porder"])
    axes = [] if op.attrs["asvector"] else [int(op.attrs["axis"])]
    keep = bool(op.attrs["keepdim"])
    if order in (1.0, 2.0):
        found = reduced(context, "ReduceL1" if order == 1 else "ReduceL2", x, axes, keep)
    elif math.isinf(order):
        found = reduced(context, "ReduceMax" if order > 0 else "ReduceMin", context.node("Abs", [x]), axes, keep)
    elif order == 0:
        zero = context.node("Equal", [x, context.scalar(0, x)])
        other = context.cast(context.node("Not", [zero]), x.dtype)
        found = reduced(context, "ReduceSum", other, axes, keep)
    else:
        powers = context.node("Pow", [context.node("Abs", [x]), context.scalar(order, x)])
        total = reduced(context, "ReduceSum", powers, axes, keep)
        found = context.node("Pow", [total, context.scalar(1 / order, x)])
    context.bind(op, "Out", found)


# **** cumulative sums ****


@lowers("cumsum")
def cumsum(op: SourceOp, context: Context) -> None:
    x = context.input(op, "X")
    if x.type.rank == 0:
        x = context.reshape(x, [1]) if op.attrs["flatten"] or context.version < FIRST_WITH_0D else x
    if x.type.rank == 0:
        result = context.node("Sub", [x, x]) if op.attrs["exclusive"] else x
    else:
        if op.attrs["flatten"]:
            x = context.reshape(x, [-1])
        axis = 0 if op.attrs["flatten"] else known_int(op, context, "axis", "AxisTensor")
        flags = {k: int(bool(op.attrs[k])) for k in ("exclusive", "reverse")}
        result = context.node("CumSum", [x, context.scalar(axis, DType.INT64)], flags)
    context.bind(op, "Out", result)
