"""Cumulative products, extremes and log-sum-exps, lowered to Scan: ONNX has only cumulative sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_core.ir import Attribute, DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension
from lite_paddle.lowering.integers import element_type, normalized
from lite_paddle.lowering.limits import lowest_finite
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

_Combine = Callable[[Context, Value, Value], Value]


def _scan_cumulative(
    context: Context,
    x: Value,
    axis: int,
    start: float,
    combine: _Combine,
    *,
    exclusive: bool = False,
    reverse: bool = False,
) -> Value:
    """Combine all elements up to each index along an axis, beginning with ``start``."""
    rank = context.rank(x, "its elements are combined along an axis")
    others = [a for a in range(rank) if a != axis]
    sizes = context.node("Gather", [context.node("Shape", [x]), context.builder.ints(*others)])
    first = context.node("Expand", [context.scalar(start, x), sizes])
    inner = context.inner("running")
    shape = tuple(x.shape[a] for a in others)
    before = inner.block_input("before", x.dtype, shape)
    element = inner.block_input("element", x.dtype, shape)
    following = combine(inner, before, element)
    inner.builder.output(following)
    inner.builder.output(inner.node("Identity", [before if exclusive else following]))
    backwards = [int(reverse)]
    attributes: dict[str, Attribute | list[Any]] = {
        "body": inner.builder.build(),
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_input_directions": backwards,
        "scan_output_axes": [axis],
        "scan_output_directions": backwards,
    }
    return context.nodes("Scan", [first, x], attributes, outputs=2)[1]


def _node(type_: str) -> _Combine:
    return lambda context, a, b: context.node(type_, [a, b])


def _log_sum_exp(context: Context, a: Value, b: Value) -> Value:
    """Compute ``log(exp(a) + exp(b)) = max(a, b) + log(1 + exp(-|a - b|))``; equal infinities differ by 0."""
    distance = context.node("Abs", [context.node("Sub", [a, b])])
    distance = context.node("Where", [context.node("Equal", [a, b]), context.scalar(0, a), distance])
    grown = context.node("Add", [context.scalar(1, a), context.node("Exp", [context.node("Neg", [distance])])])
    return context.node("Add", [context.node("Max", [a, b]), context.node("Log", [grown])])


@lowers("cumprod", "logcumsumexp")
def cumulative_total(op: SourceOp, context: Context) -> None:
    x, attrs = context.input(op, "X"), op.attrs
    if attrs.get("flatten") and x.type.rank != 1:
        x = context.reshape(x, [-1])
    rank = context.rank(x, "elements are combined along an axis of it")
    exclusive, reverse = bool(attrs.get("exclusive")), bool(attrs.get("reverse"))
    if rank == 0:
        if exclusive:
            raise Unlowerable("an exclusive total of a scalar has no elements")
        context.bind(op, "Out", x)
        return
    product = op.type == "cumprod"
    (axis,) = normalized([int(context.attribute(op, "dim") if product else attrs.get("axis", -1))], rank)
    # NOTE: Paddle starts sums at the lowest finite number, which is the result if all elements are -inf.
    start, combine = (1.0, _node("Mul")) if product else (lowest_finite(x.dtype), _log_sum_exp)
    context.bind(op, "Out", _scan_cumulative(context, x, axis, start, combine, exclusive=exclusive, reverse=reverse))


@lowers("cummax", "cummin")
def cumulative_extreme(op: SourceOp, context: Context) -> None:
    """Return the extreme so far and its index, the last one among equals."""
    x = context.any_input(op, "x", "X", "0")
    rank = context.rank(x, "extremes run along an axis of it")
    dtype = element_type(op.attrs.get("dtype"), DType.INT64)
    if rank == 0:
        values, indices = x, context.scalar(0, dtype)
    else:
        (axis,) = normalized([int(op.attrs.get("axis", -1))], rank)
        type_ = "Max" if op.type == "cummax" else "Min"
        values = _scan_cumulative(context, x, axis, _neutral_element(type_, x.dtype), _node(type_))
        is_new = context.node("Equal", [x, values])
        found = context.node("Where", [is_new, _axis_indices(context, x, axis), context.scalar(-1, DType.INT64)])
        indices = context.cast(_scan_cumulative(context, found, axis, -1, _node("Max")), dtype)
    for slot, value in (("out", values), ("Out", values), ("indices", indices), ("Indices", indices)):
        context.bind(op, slot, value)


def _axis_indices(context: Context, x: Value, axis: int) -> Value:
    """Return the index along an axis, int64, in a shape that broadcasts with x."""
    size = dimension(context, x, axis)
    end = context.scalar(size, DType.INT64) if isinstance(size, int) else context.reshape(size, [])
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    return context.reshape(context.node("Range", [zero, end, one]), [-1, *[1] * (len(x.shape) - 1 - axis)])


def _neutral_element(type_: str, dtype: DType) -> float:
    if dtype.is_floating:
        return -np.inf if type_ == "Max" else np.inf
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if type_ == "Max" else limits.max)
