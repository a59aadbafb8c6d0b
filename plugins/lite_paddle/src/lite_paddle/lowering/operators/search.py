"""Finding and ordering elements: arg_max, argsort, top_k, kthvalue, unique, where_index."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, integer_vector, size_vector
from lite_paddle.lowering.integers import element_type, known_int, scalar_result
from lite_paddle.lowering.registry import lowers
from lite_paddle.source import SourceOp

#: Halvings of a sequence whose length is not known at load: it has fewer than 2 ** 31 elements.
_MOST_STEPS = 31


@lowers("arg_max", "arg_min")
def arg_extreme(op: SourceOp, context: Context) -> None:
    x, keep = context.input(op, "X"), bool(op.attrs["keepdims"])
    type_ = "ArgMax" if op.type == "arg_max" else "ArgMin"
    if op.attrs["flatten"] or x.type.rank == 0:
        rank = context.rank(x, "its axes are kept") if keep else 0
        found = context.node(type_, [context.reshape(x, [-1])], {"axis": 0, "keepdims": 0})
        found = context.reshape(found, [1] * rank) if rank else scalar_result(context, found)
    else:
        axis = known_int(op, context, "axis", "AxisTensor")
        found = scalar_result(context, context.node(type_, [x], {"axis": axis, "keepdims": int(keep)}))
    context.bind(op, "Out", context.cast(found, element_type(op.attrs.get("dtype"), DType.INT64)))


def _sorted_part(context: Context, x: Value, count: Value, axis: int, **flags: bool) -> list[Value]:
    """Return the first elements in sorted order, and their indices."""
    attributes = {"axis": axis, **{k: int(v) for k, v in flags.items()}}
    return context.nodes("TopK", [x, count], attributes, outputs=2)


def _bind_sorted_scalar(op: SourceOp, context: Context, x: Value) -> bool:
    """Bind the outputs of sorting a scalar: itself and the index 0; return False if x is not a scalar."""
    if x.type.rank != 0:
        return False
    context.bind(op, "Out", x)
    context.bind(op, "Indices", context.scalar(0, DType.INT64))
    return True


@lowers("argsort")
def argsort(op: SourceOp, context: Context) -> None:
    x, axis = context.input(op, "X"), int(op.attrs["axis"])
    if _bind_sorted_scalar(op, context, x):
        return
    count = size_vector(context, dimension(context, x, axis))
    values, indices = _sorted_part(context, x, count, axis, largest=bool(op.attrs["descending"]))
    context.bind(op, "Out", values)
    context.bind(op, "Indices", indices)


@lowers("top_k", "top_k_v2")
def top_k(op: SourceOp, context: Context) -> None:
    x, given = context.input(op, "X"), context.optional(op, "K")
    if _bind_sorted_scalar(op, context, x):
        return
    count = context.builder.ints(int(op.attrs["k"])) if given is None else integer_vector(context, given)
    values, indices = _sorted_part(
        context,
        x,
        count,
        int(op.attrs.get("axis", -1)),
        largest=bool(op.attrs.get("largest", True)),
        sorted=bool(op.attrs.get("sorted", True)),
    )
    context.bind(op, "Out", values)
    context.bind(op, "Indices", indices)


@lowers("kthvalue")
def kthvalue(op: SourceOp, context: Context) -> None:
    x, k, axis = context.input(op, "X"), int(op.attrs["k"]), int(op.attrs["axis"])
    if _bind_sorted_scalar(op, context, x):
        return
    parts = _sorted_part(context, x, context.builder.ints(k), axis, largest=False)
    last = context.builder.ints(-1) if op.attrs["keepdim"] else context.scalar(-1, DType.INT64)
    for slot, part in zip(("Out", "Indices"), parts):
        context.bind(op, slot, scalar_result(context, context.node("Gather", [part, last], {"axis": axis})))


@lowers("unique")
def unique(op: SourceOp, context: Context) -> None:
    axes = [int(a) for a in op.attrs["axis"] or ()]
    attributes: dict[str, int] = {"sorted": int(bool(op.attrs["is_sorted"]))}
    if axes:
        attributes["axis"] = axes[0]
    values, first, inverse, counts = context.nodes("Unique", [context.input(op, "X")], attributes, outputs=4)
    context.bind(op, "Out", values)
    dtype = element_type(op.attrs.get("dtype"), DType.INT64)
    for slot, found in (("Indices", first), ("Index", inverse), ("Counts", counts)):
        if op.outputs.get(slot):
            context.bind(op, slot, context.cast(found, dtype))


@lowers("where_index")
def where_index(op: SourceOp, context: Context) -> None:
    indices = context.node("NonZero", [context.input(op, "Condition")])
    context.emit(op, "Transpose", [indices], {"perm": [1, 0]})


@lowers("searchsorted")
def searchsorted(op: SourceOp, context: Context) -> None:
    """Count the elements of the sorted last axis that are less than each value (``right``: or equal to it).

    NOTE: Paddle gives the size of the axis for values that are not finite. In a sequence with NaN, the result depends
    on the elements that the bisection meets, so its steps are those of Paddle.
    """
    ordered, values = context.input(op, "SortedSequence"), context.input(op, "Values")
    context.rank(ordered, "a sequence of rank 1 is shared by all values")
    size = context.node("Squeeze", [context.node("Shape", [ordered], {"start": -1})])
    count = _bisected(context, ordered, values, size, bool(op.attrs["right"]))
    if values.dtype.is_floating:
        is_finite = context.node("Less", [context.node("Abs", [values]), context.scalar(np.inf, values)])
        count = context.node("Where", [is_finite, count, size])
    context.bind(op, "Out", context.cast(count, DType.INT32 if op.attrs["out_int32"] else DType.INT64))


def _bisected(context: Context, ordered: Value, values: Value, size: Value, right: bool) -> Value:
    """Return the number of elements before each value: a range is halved as often as the size needs."""
    rank, length = len(ordered.shape), ordered.shape[-1]
    steps = length.bit_length() if isinstance(length, int) else _MOST_STEPS
    # A range that is empty reads the element behind the last one.
    ordered = context.node("Pad", [ordered, context.builder.ints(*([0] * (2 * rank - 1)), 1)])
    one, two = (context.scalar(n, DType.INT64) for n in (1, 2))
    shape = context.node("Shape", [values])
    start, end = (context.node("Expand", [n, shape]) for n in (context.scalar(0, DType.INT64), size))
    for _ in range(steps):
        middle = context.node("Div", [context.node("Add", [start, end]), two])
        if rank == 1:
            found = context.node("Gather", [ordered, middle])
        else:
            found = context.node("GatherElements", [ordered, middle], {"axis": -1})
        if right:
            is_before = context.node("Not", [context.node("Greater", [found, values])])
        else:
            is_before = context.node("Less", [found, values])
        is_open = context.node("Less", [start, end])
        moves_end = context.node("And", [is_open, context.node("Not", [is_before])])
        moves_start = context.node("And", [is_open, is_before])
        start = context.node("Where", [moves_start, context.node("Add", [middle, one]), start])
        end = context.node("Where", [moves_end, middle, end])
    return start
