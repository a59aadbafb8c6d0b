"""Statistics of elements: counts, histograms, medians and modes."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import element_type, normalized
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

I64 = DType.INT64


def _summed(context: Context, positions: Value, amounts: Value, size: Value) -> Value:
    """Return a vector of ``size`` sums of the amounts with each place."""
    zero = context.node("Expand", [context.scalar(0, amounts), size])
    return context.node("ScatterElements", [zero, positions, amounts], {"axis": 0, "reduction": "add"})


@lowers("bincount")
def bincount(op: SourceOp, context: Context) -> None:
    """Count each number from 0 to the greatest one, or add the weights where it stands."""
    x, weights = context.cast(context.input(op, "X"), I64), context.optional(op, "Weights")
    least = context.any_optional(op, "MinLength")
    least = context.builder.ints(int(op.attrs["minlength"])) if least is None else context.reshape(least, [1])
    lowest = context.node("Sub", [context.cast(least, I64), context.builder.ints(1)])
    greatest = context.node("ReduceMax", [context.node("Concat", [x, lowest], {"axis": 0})], {"keepdims": 1})
    size = context.node("Add", [greatest, context.builder.ints(1)])
    shape = context.node("Shape", [x])
    amounts = context.node("Expand", [context.scalar(1, I64), shape]) if weights is None else weights
    if weights is not None and weights.dtype not in (DType.FLOAT32, DType.FLOAT64):
        amounts = context.cast(weights, DType.FLOAT64)
    context.bind(op, "Out", _summed(context, x, amounts, size))


@lowers("histogram")
def histogram(op: SourceOp, context: Context) -> None:
    """Count the elements in ``bins`` equal parts of [min, max], or of their own range if both are 0."""
    x, weights = context.reshape(context.input(op, "X"), [-1]), context.optional(op, "Weight")
    bins, low, high = int(op.attrs["bins"]), float(op.attrs["min"]), float(op.attrs["max"])
    if bins < 1 or low > high:
        raise Unlowerable(f"it has {bins} bins from {low} to {high}")
    wide = context.cast(x, DType.FLOAT64 if x.dtype in (DType.FLOAT64, I64) else DType.FLOAT32)
    least, most = (context.scalar(n, wide) for n in (low, high))
    if low == high == 0:
        least, most = (context.node(type_, [wide], {"keepdims": 0}) for type_ in ("ReduceMin", "ReduceMax"))
    one = context.scalar(1, wide)
    is_single = context.node("Equal", [least, most])
    least = context.node("Where", [is_single, context.node("Sub", [least, one]), least])
    most = context.node("Where", [is_single, context.node("Add", [most, one]), most])
    width = context.node("Sub", [most, least])
    steps = context.node("Mul", [context.node("Sub", [wide, least]), context.scalar(bins, wide)])
    found = context.cast(context.node("Floor", [context.node("Div", [steps, width])]), I64)
    positions = context.node("Clip", [found, *(context.scalar(n, I64) for n in (0, bins - 1))])
    inside = [context.node("GreaterOrEqual", [wide, least]), context.node("LessOrEqual", [wide, most])]
    is_inside = context.node("And", inside)
    is_density = bool(op.attrs["density"])
    if weights is None:
        amounts = context.cast(is_inside, DType.FLOAT32 if is_density else I64)
    else:
        weights = context.reshape(context.cast(weights, DType.FLOAT32), [-1])
        amounts = context.node("Where", [is_inside, weights, context.scalar(0, weights)])
    counts = _summed(context, positions, amounts, context.builder.ints(bins))
    if is_density:
        total = context.node("ReduceSum", [counts], {"keepdims": 0})
        part = context.cast(context.node("Div", [width, context.scalar(bins, width)]), counts.dtype)
        counts = context.node("Div", [context.node("Div", [counts, total]), part])
    context.bind(op, "Out", counts)


@lowers("median", "nanmedian")
def median(op: SourceOp, context: Context) -> None:
    """Return the middle element in sorted order; with ``mode`` avg, the mean of the two middle ones of an even number.

    A NaN makes the median NaN, and is left out of nanmedian.
    """
    x = context.any_input(op, "X", "x")
    if op.inputs.get("AxisTensor") or op.inputs.get("AxisTensorList"):
        raise Unlowerable("its axis is a tensor", "export the model with a constant axis")
    rank = context.rank(x, "its axes are counted from the end")
    listed = op.attrs["axis"] if isinstance(op.attrs["axis"], list | tuple) else [op.attrs["axis"]]
    axes = sorted(normalized([int(axis) for axis in listed], rank)) or list(range(rank))
    is_mean = str(op.attrs["mode"]) == "avg"
    dtype = x.dtype if x.dtype.is_floating else DType.FLOAT32 if is_mean else x.dtype
    # Infinity stands for NaN in sorted order; sums of integers are exact in float64.
    numbers = x if x.dtype.is_floating else context.cast(x, DType.FLOAT64)
    kept = [axis for axis in range(rank) if axis not in axes]
    numbers = context.reshape(context.transpose(numbers, [*kept, *axes]), [*([0] * len(kept)), -1])
    is_nan = context.node("IsNaN", [numbers])
    infinity, last = context.scalar(np.inf, numbers), context.builder.ints(-1)
    filled = context.node("Where", [is_nan, infinity, numbers])
    size = context.node("Shape", [filled], {"start": -1})
    ordered = context.nodes("TopK", [filled, size], {"axis": -1, "largest": 0}, outputs=2)[0]
    missing = context.node("ReduceSum", [context.cast(is_nan, I64), last], {"keepdims": 1})
    count = context.node("Sub", [size, missing])
    two, one, zero = (context.scalar(n, I64) for n in (2, 1, 0))
    below = context.node("Max", [context.node("Div", [context.node("Sub", [count, one]), two]), zero])
    above = context.node("Min", [context.node("Div", [count, two]), context.node("Sub", [size, one])])
    low, high = (context.node("GatherElements", [ordered, place], {"axis": -1}) for place in (below, above))
    result = low
    if is_mean:
        half = context.scalar(0.5, numbers)
        mean = context.node("Add", [context.node("Mul", [low, half]), context.node("Mul", [high, half])])
        result = context.node("Where", [context.node("Equal", [low, high]), low, mean])
    limit = context.scalar(1, I64) if op.type == "median" else size
    is_lost = context.node("GreaterOrEqual", [missing, limit])
    result = context.node("Where", [is_lost, context.scalar(np.nan, numbers), result])
    result = context.cast(context.node("Squeeze", [result, last]), dtype)
    if op.attrs["keepdim"]:
        result = context.node("Unsqueeze", [result, context.builder.ints(*axes)])
    context.bind(op, "Out", result)
    context.bind(op, "out", result)


@lowers("mode")
def mode(op: SourceOp, context: Context) -> None:
    """Return the most frequent element along an axis, and the last index where it stands."""
    x, axis = context.input(op, "X"), int(op.attrs["axis"])
    results = context.nodes("Mode", [x], {"axis": axis}, outputs=2, domain="lite")
    for slot, result in zip(("Out", "Indices"), results):
        if op.attrs["keepdim"]:
            result = context.node("Unsqueeze", [result, context.builder.ints(axis)])
        context.bind(op, slot, result)


@lowers("unique_with_counts")
def unique_with_counts(op: SourceOp, context: Context) -> None:
    """Return different elements in the order in which they first stand, the place of each element, and the counts."""
    x = context.input(op, "X")
    found, _, inverse, counts = context.nodes("Unique", [x], {"sorted": 0}, outputs=4)
    dtype = element_type(op.attrs.get("dtype"), DType.INT32)
    context.bind(op, "Out", found)
    context.bind(op, "Index", context.cast(inverse, dtype))
    context.bind(op, "Count", context.cast(counts, dtype))


@lowers("multiplex")
def multiplex(op: SourceOp, context: Context) -> None:
    """Take each row from the tensor that its index names."""
    tensors, index = context.inputs(op, "X"), context.input(op, "Ids")
    stacked = context.node(
        "Concat", [context.node("Unsqueeze", [x, context.builder.ints(0)]) for x in tensors], {"axis": 0}
    )
    chosen = context.reshape(context.cast(index, I64), [-1])
    count = context.node("Squeeze", [context.node("Shape", [chosen])])
    rows = context.node("Range", [context.scalar(0, I64), count, context.scalar(1, I64)])
    pairs = [context.node("Unsqueeze", [v, context.builder.ints(-1)]) for v in (chosen, rows)]
    context.bind(op, "Out", context.node("GatherND", [stacked, context.node("Concat", pairs, {"axis": 1})]))


@lowers("broadcast_tensors")
def broadcast_tensors(op: SourceOp, context: Context) -> None:
    """Broadcast all tensors to one shape. Expand broadcasts in both directions."""
    tensors = context.inputs(op, "X")
    results = []
    for x in tensors:
        result = x
        for other in tensors:
            if other is not x and (result.type.shape is None or result.type.shape != other.type.shape):
                result = context.node("Expand", [result, context.node("Shape", [other])])
        results.append(result)
    context.bind(op, "Out", *results)


@lowers("tril_indices", "triu_indices")
def triangle_indices(op: SourceOp, context: Context) -> None:
    """Return [2, count] with the rows and columns of a triangle of a matrix."""
    rows, columns = (int(context.attribute(op, *names)) for names in (("rows", "row"), ("cols", "col")))
    pick = np.tril_indices if op.type == "tril_indices" else np.triu_indices
    indices = np.stack(pick(rows, int(op.attrs["offset"]), columns))
    dtype = DType.INT32 if str(op.attrs.get("dtype")) in ("2", "int32") else I64
    context.bind(op, "out", context.builder.constant(indices.astype(dtype.numpy)))


# **** rows chosen by a mask ****


@lowers("split_lod_tensor")
def split_rows(op: SourceOp, context: Context) -> None:
    """Divide the rows into those where a mask is true, and the others."""
    x, mask = context.input(op, "X"), context.reshape(context.input(op, "Mask"), [-1])
    for slot, condition in (("OutTrue", mask), ("OutFalse", context.node("Not", [mask]))):
        context.emit(op, "Compress", [x, condition], {"axis": 0}, slot=slot)


@lowers("merge_lod_tensor", "merge_lod_tensor_infer")
def merge_rows(op: SourceOp, context: Context) -> None:
    """Join rows that a mask divided, in their old order."""
    mask = context.reshape(context.input(op, "Mask"), [-1])
    both = context.node("Concat", [context.input(op, "InTrue"), context.input(op, "InFalse")], {"axis": 0})
    axis, one = context.scalar(0, I64), context.scalar(1, I64)
    flags = [context.cast(m, I64) for m in (mask, context.node("Not", [mask]))]
    first, second = (context.node("Sub", [context.node("CumSum", [flag, axis]), one]) for flag in flags)
    behind = context.node("Add", [second, context.node("ReduceSum", [flags[0]], {"keepdims": 0})])
    context.emit(op, "Gather", [both, context.node("Where", [mask, first, behind])], {"axis": 0})
