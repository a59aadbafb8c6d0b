"""Reading and writing elements at indices: gather, scatter, embeddings, one-hot vectors, masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Attribute, DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import element_type, known_int, normalized
from lite_paddle.lowering.operators.shape import stacked
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

#: Longer vectors of indices are computed when the model runs.
_LARGEST_STORED = 65536

# **** reading ****


def _indices(context: Context, value: Value) -> Value:
    return value if value.dtype in (DType.INT32, DType.INT64) else context.cast(value, DType.INT64)


@lowers("gather")
def gather(op: SourceOp, context: Context) -> None:
    x, index = context.input(op, "X"), _indices(context, context.input(op, "Index"))
    axis = known_int(op, context, "axis", "Axis")
    if context.rank(index, "Gather needs its indices as a vector") > 1:
        index = context.reshape(index, [-1])
    context.emit(op, "Gather", [x, index], {"axis": axis})


@lowers("gather_nd")
def gather_nd(op: SourceOp, context: Context) -> None:
    context.emit(op, "GatherND", [context.input(op, "X"), context.cast(context.input(op, "Index"), DType.INT64)])


@lowers("index_select")
def index_select(op: SourceOp, context: Context) -> None:
    index = _indices(context, context.input(op, "Index"))
    context.emit(op, "Gather", [context.input(op, "X"), index], {"axis": int(op.attrs["dim"])})


@lowers("index_sample")
def index_sample(op: SourceOp, context: Context) -> None:
    index = _indices(context, context.input(op, "Index"))
    context.emit(op, "GatherElements", [context.input(op, "X"), index], {"axis": 1})


@lowers("take_along_axis")
def take_along_axis(op: SourceOp, context: Context) -> None:
    index = _indices(context, context.input(op, "Index"))
    attributes = {"axis": int(context.attribute(op, "Axis"))}
    context.emit(op, "GatherElements", [context.input(op, "Input"), index], attributes, slot="Result")


@lowers("lookup_table", "lookup_table_v2")
def lookup_table(op: SourceOp, context: Context) -> None:
    """Gather rows of a table; the row ``padding_idx`` reads as zeros, regardless of its contents."""
    ids, table = _indices(context, context.input(op, "Ids")), context.input(op, "W")
    if op.type == "lookup_table":
        ids = context.node("Squeeze", [ids, context.builder.ints(-1)])
    rows = context.node("Gather", [table, ids], {"axis": 0})
    padding = int(op.attrs["padding_idx"])
    if padding != -1:
        column = context.node("Unsqueeze", [ids, context.builder.ints(-1)])
        padded = context.node("Equal", [column, context.scalar(padding, ids)])
        rows = context.node("Where", [padded, context.scalar(0, rows), rows])
    context.bind(op, "Out", rows)


@lowers("one_hot", "one_hot_v2")
def one_hot(op: SourceOp, context: Context) -> None:
    """Compare with 0, 1, 2 ...: unlike in ONNX's OneHot, a negative index selects nothing."""
    ids, depth = context.input(op, "X"), context.optional(op, "depth_tensor")
    known = context.known_ints(depth) if depth is not None else [int(op.attrs["depth"])]
    if known and known[0] < 0:
        raise Unlowerable(f"its depth is {known[0]}, expected 0 or more")
    if known and known[0] <= _LARGEST_STORED:
        positions = context.builder.constant(np.arange(known[0]).astype(ids.dtype.numpy))
    else:
        end = context.scalar(known[0], DType.INT64) if known else context.input(op, "depth_tensor")
        end = context.reshape(context.cast(end, ids.dtype), [])
        positions = context.node("Range", [context.scalar(0, ids), end, context.scalar(1, ids)])
    if op.type == "one_hot_v2":
        ids = context.node("Unsqueeze", [ids, context.builder.ints(-1)])
    hot = context.node("Equal", [ids, positions])
    context.bind(op, "Out", context.cast(hot, element_type(op.attrs.get("dtype"), DType.FLOAT32)))


@lowers("where")
def where(op: SourceOp, context: Context) -> None:
    context.emit(op, "Where", [context.input(op, slot) for slot in ("Condition", "X", "Y")])


@lowers("masked_select")
def masked_select(op: SourceOp, context: Context) -> None:
    x, mask = context.input(op, "X"), context.input(op, "Mask")
    if x.type.rank is None or x.shape != mask.shape:
        shapes = [context.node("Shape", [v]) for v in (mask, x)]
        x, mask = (context.node("Expand", [v, s]) for v, s in zip((x, mask), shapes))
    context.emit(op, "Compress", [context.reshape(x, [-1]), context.reshape(mask, [-1])], {"axis": 0}, slot="Y")


@lowers("masked_fill")
def masked_fill(op: SourceOp, context: Context) -> None:
    x, mask, value = (context.any_input(op, slot, slot.lower()) for slot in ("X", "Mask", "Value"))
    result = context.node("Where", [mask, context.cast(value, x.dtype), x])
    for slot in ("Out", "out"):
        context.bind(op, slot, result)


# **** writing ****

_REDUCTIONS = {"add": "add", "sum": "add", "mul": "mul", "multiply": "mul", "amax": "max", "amin": "min"}


@lowers("put_along_axis")
def put_along_axis(op: SourceOp, context: Context) -> None:
    x, index = context.input(op, "Input"), _indices(context, context.input(op, "Index"))
    values = context.cast(context.input(op, "Value"), x.dtype)
    axis = {"axis": int(context.attribute(op, "Axis"))}
    if values.type.rank is None or values.shape != index.shape:
        values = context.node("Expand", [values, context.node("Shape", [index])])
    mode = str(op.attrs["Reduce"])
    if mode == "assign":
        result = context.node("ScatterElements", [x, index, values], axis)
    elif mode == "mean":
        result = _put_mean(op, context, x, index, values, axis)
    elif mode in _REDUCTIONS:
        reduction = _REDUCTIONS[mode]
        if not op.attrs["Include_self"]:
            x = _put_constant(context, x, index, _neutral_element(reduction, x.dtype), axis)
        result = context.node("ScatterElements", [x, index, values], {**axis, "reduction": reduction})
    else:
        raise Unlowerable(f"Reduce is {mode!r}, expected assign, mean or one of {', '.join(_REDUCTIONS)}")
    context.bind(op, "Result", result)


def _neutral_element(reduction: str, dtype: DType) -> float | int:
    """Return the neutral element of a reduction."""
    if reduction in ("add", "mul"):
        return 0 if reduction == "add" else 1
    if dtype.is_floating:
        return -np.inf if reduction == "max" else np.inf
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if reduction == "max" else limits.max)


def _put_constant(context: Context, x: Value, index: Value, number: float | int, axis: dict[str, int]) -> Value:
    filled = context.node("Expand", [context.scalar(number, x), context.node("Shape", [index])])
    return context.node("ScatterElements", [x, index, filled], axis)


def _put_mean(op: SourceOp, context: Context, x: Value, index: Value, values: Value, axis: dict[str, int]) -> Value:
    if not x.dtype.is_floating:
        raise Unlowerable(f"Reduce 'mean' of {x.dtype} rounds in a way that is not defined")
    counts = context.node("Expand", [context.scalar(1, x), context.node("Shape", [x])])
    ones = context.node("Expand", [context.scalar(1, x), context.node("Shape", [index])])
    adding: dict[str, Attribute | list[Any]] = {**axis, "reduction": "add"}
    kept = x
    if not op.attrs["Include_self"]:
        kept = _put_constant(context, x, index, 0, axis)
        counts = _put_constant(context, counts, index, 0, axis)
    total = context.node("ScatterElements", [kept, index, values], adding)
    number = context.node("ScatterElements", [counts, index, ones], adding)
    return context.node("Div", [total, number])


@lowers("scatter")
def scatter(op: SourceOp, context: Context) -> None:
    """Replace rows, or (``overwrite`` false) clear them once and then add the updates."""
    x, updates = context.input(op, "X"), context.input(op, "Updates")
    ids = context.cast(context.input(op, "Ids"), DType.INT64)
    if ids.type.rank == 0 and updates.type.rank is not None and updates.type.rank < (x.type.rank or 0):
        updates = context.node("Unsqueeze", [updates, context.builder.ints(0)])
    ids = context.reshape(ids, [-1, 1])
    if op.attrs["overwrite"]:
        context.emit(op, "ScatterND", [x, ids, updates])
        return
    zeros = context.node("Expand", [context.scalar(0, updates), context.node("Shape", [updates])])
    cleared = context.node("ScatterND", [x, ids, zeros])
    context.emit(op, "ScatterND", [cleared, ids, updates], {"reduction": "add"})


@lowers("scatter_nd_add")
def scatter_nd_add(op: SourceOp, context: Context) -> None:
    index = context.cast(context.input(op, "Index"), DType.INT64)
    inputs = [context.input(op, "X"), index, context.input(op, "Updates")]
    context.emit(op, "ScatterND", inputs, {"reduction": "add"})


@lowers("index_put")
def index_put(op: SourceOp, context: Context) -> None:
    """Assign ``x[indices] = value`` along the first axes of ``x``; with ``accumulate``, add."""
    x, value = context.any_input(op, "x", "0"), context.any_input(op, "value", "2")
    indices = context.inputs(op, "indices" if "indices" in op.inputs else "1")
    if not indices:
        raise Unlowerable("it has no indices")
    if any(index.dtype is DType.BOOL for index in indices):
        if len(indices) > 1:
            raise Unlowerable("masks together with other indices are not supported")
        positions = context.node("Transpose", [context.node("NonZero", indices)], {"perm": [1, 0]})
        depth = context.rank(indices[0], "it is a mask over the first axes")
    else:
        positions, depth = _index_tuples(context, indices), len(indices)
    wanted = [
        context.node("Shape", [positions], {"end": -1}),
        context.node("Shape", [x], {"start": depth}),
    ]
    shape = context.node("Concat", wanted, {"axis": 0})
    updates = context.node("Expand", [context.cast(value, x.dtype), shape])
    reduction = {"reduction": "add"} if op.attrs.get("accumulate") else {}
    result = context.node("ScatterND", [x, positions, updates], reduction)
    for slot in ("out", "0"):
        context.bind(op, slot, result)


def _index_tuples(context: Context, indices: list[Value]) -> Value:
    """Broadcast indices against each other and stack them along a new last axis."""
    indices = [context.cast(index, DType.INT64) for index in indices]
    if any(index.shape != indices[0].shape for index in indices) or indices[0].type.rank is None:
        total = indices[0]
        for index in indices[1:]:
            total = context.node("Add", [total, index])
        shape = context.node("Shape", [total])
        indices = [context.node("Expand", [index, shape]) for index in indices]
    return stacked(context, indices, -1)


@lowers("index_add")
def index_add(op: SourceOp, context: Context) -> None:
    """Add slices at indices along an axis."""
    x, added = context.input(op, "X"), context.input(op, "AddValue")
    rank = context.rank(x, "slices along an axis of it are added to")
    (axis,) = normalized([int(op.attrs.get("axis", 0))], rank)
    order = [axis, *(a for a in range(rank) if a != axis)]
    index = context.reshape(context.cast(context.input(op, "Index"), DType.INT64), [-1, 1])
    inputs = [context.transpose(x, order), index, context.transpose(added, order)]
    total = context.node("ScatterND", inputs, {"reduction": "add"})
    context.bind(op, "Out", context.transpose(total, [order.index(a) for a in range(rank)]))
