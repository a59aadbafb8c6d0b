"""Spaces of operators that change shapes, cut, join and repeat tensors, and of constants."""

from __future__ import annotations

from typing import Any

import numpy as np

from scan.drawing import Array, Case, Draw, space

_TYPES = ("float32", "float32", "int32", "int64", "bool", "float64")


def _tensor(draw: Draw, low: int, high: int, largest: int = 4) -> Array:
    return draw.numbers(draw.shape(low, high, largest), draw.one(*_TYPES))


def _one_element(values: list[int], dtype: str = "int32") -> list[Array]:
    return [np.array([value], dtype) for value in values]


@space("reshape", "reshape2")
def reshape(draw: Draw) -> Case:
    parts = draw.shape(2, 4)
    array = draw.numbers(parts, draw.one(*_TYPES))
    target = [parts[0] * parts[1], *parts[2:]]
    target = [parts[i] for i in draw.order(len(parts))] if draw.chance(0.3) else target
    if draw.chance(0.3):
        target[draw.integer(0, len(target) - 1)] = -1
    elif draw.chance(0.3) and target[0] == parts[0]:
        target[0] = 0
    inputs: dict[str, Any] = {"X": array}
    how = draw.one("", "", "Shape", "ShapeTensor")
    if how:
        inputs[how] = np.array(target, "int32") if how == "Shape" else _one_element(target)
    return draw.case(inputs, {"shape": target})


@space("flatten", "flatten2")
def flatten(draw: Draw) -> Case:
    array = _tensor(draw, 1, 4)
    return draw.case({"X": array}, {"axis": draw.integer(0, array.ndim)}, paddle_op="flatten2")


@space("flatten_contiguous_range")
def flatten_range(draw: Draw) -> Case:
    array = _tensor(draw, 1, 4)
    start = draw.integer(0, array.ndim - 1)
    stop = draw.integer(start, array.ndim - 1)
    negative = draw.chance(0.3)
    return draw.case({"X": array}, {"start_axis": start, "stop_axis": stop - array.ndim if negative else stop})


@space("squeeze", "squeeze2")
def squeeze(draw: Draw) -> Case:
    shape = [1 if draw.chance() else size for size in draw.shape(1, 4)]
    ones = [axis - len(shape) if draw.chance(0.3) else axis for axis, size in enumerate(shape) if size == 1]
    return draw.case({"X": draw.numbers(shape, draw.one(*_TYPES))}, {"axes": draw.one(ones, [])}, paddle_op="squeeze2")


@space("unsqueeze", "unsqueeze2")
def unsqueeze(draw: Draw) -> Case:
    array = _tensor(draw, 1, 3)
    axes = draw.one([draw.integer(0, array.ndim)], [-1], [0, 1], [0, array.ndim + 1])
    inputs: dict[str, Any] = {"X": array}
    if draw.op == "unsqueeze2" and draw.chance(0.3):
        inputs["AxesTensor"] = np.array(axes, "int32")
    return draw.case(inputs, {"axes": axes}, parameters=tuple({"AxesTensor"} & {*inputs}), paddle_op="unsqueeze2")


@space("transpose", "transpose2")
def transpose(draw: Draw) -> Case:
    array = _tensor(draw, 1, 5, 3)
    order = draw.order(array.ndim)
    return draw.case({"X": array}, {"axis": [a - array.ndim if draw.chance(0.1) else a for a in order]})


@space("concat")
def concat(draw: Draw) -> Case:
    shape, dtype = draw.shape(1, 4), draw.one(*_TYPES, "bool")
    axis = draw.integer(-len(shape), len(shape) - 1)
    arrays = []
    for _ in range(draw.integer(1, 3)):
        shape[axis] = draw.integer(1, 3)
        arrays.append(draw.numbers(shape, dtype))
    inputs: dict[str, Any] = {"X": arrays}
    if draw.chance(0.2):
        inputs["AxisTensor"] = np.array([axis], "int32")
    return draw.case(inputs, {"axis": axis}, parameters=("AxisTensor",) if "AxisTensor" in inputs else ())


@space("partial_concat", "partial_sum")
def partial(draw: Draw) -> Case:
    rows, start, length = draw.integer(1, 3), draw.integer(0, 2), draw.one(1, 2, -1)
    arrays = [draw.floats([rows, 4]) for _ in range(draw.integer(1, 3))]
    return draw.case({"X": arrays}, {"start_index": start, "length": length})


@space("stack")
def stack(draw: Draw) -> Case:
    shape, dtype = draw.shape(1, 3), draw.one(*_TYPES)
    arrays = [draw.numbers(shape, dtype) for _ in range(draw.integer(1, 3))]
    return draw.case({"X": arrays}, {"axis": draw.integer(-len(shape) - 1, len(shape))}, ["Y"])


@space("unstack", "unbind")
def unstack(draw: Draw) -> Case:
    array = _tensor(draw, 2, 4)
    axis = draw.integer(-array.ndim, array.ndim - 1)
    count = array.shape[axis]
    attrs = {"axis": axis, "num": count} if draw.op == "unstack" else {"axis": axis}
    return draw.case({"X": array}, attrs, {"Y" if draw.op == "unstack" else "Out": count})


@space("split")
def split(draw: Draw) -> Case:
    shape, dtype = draw.shape(1, 4), draw.one(*_TYPES)
    axis = draw.integer(0, len(shape) - 1)
    sections = draw.integers_of(draw.integer(1, 3), 1, 3)
    if draw.chance(0.4):
        sections = [sections[0]] * len(sections)
        attrs: dict[str, Any] = {"num": len(sections), "sections": []}
    else:
        attrs = {"num": 0, "sections": list(sections)}
        if draw.chance(0.3):
            attrs["sections"][draw.integer(0, len(sections) - 1)] = -1
    shape[axis] = sum(sections)
    return draw.case({"X": draw.numbers(shape, dtype)}, {**attrs, "axis": axis}, {"Out": len(sections)})


def _bounds(draw: Draw, size: int) -> tuple[int, int]:
    start = draw.integer(0, size - 1)
    end = draw.integer(start + 1, size)
    return (start - size if draw.chance(0.2) else start), draw.one(end, end if end < size else 2**31 - 1)


@space("slice")
def slicing(draw: Draw) -> Case:
    array = _tensor(draw, 1, 4)
    axes = draw.subset(range(array.ndim), 1)
    pairs = [_bounds(draw, array.shape[axis]) for axis in axes]
    starts, ends = [p[0] for p in pairs], [p[1] for p in pairs]
    inputs: dict[str, Any] = {"Input": array}
    attrs: dict[str, Any] = {"axes": axes, "starts": starts, "ends": ends, "infer_flags": [1] * len(axes)}
    if draw.chance(0.3):
        axis = draw.integer(0, len(axes) - 1)
        index = draw.integer(0, array.shape[axes[axis]] - 1)
        starts[axis], ends[axis] = index, index + 1
        attrs["decrease_axis"] = [axes[axis]]
    elif draw.chance(0.3):
        inputs |= {"StartsTensor": np.array(starts, "int32"), "EndsTensor": np.array(ends, "int32")}
        attrs["infer_flags"] = [-1] * len(axes)
    elif draw.chance(0.3):
        inputs |= {"StartsTensorList": _one_element(starts), "EndsTensorList": _one_element(ends)}
        attrs["infer_flags"] = [-1] * len(axes)
    return draw.case(inputs, attrs)


@space("strided_slice")
def strided_slice(draw: Draw) -> Case:
    array = _tensor(draw, 1, 4, 5)
    axes = draw.subset(range(array.ndim), 1)
    starts, ends, strides = [], [], []
    for axis in axes:
        size = array.shape[axis]
        start = draw.integer(0, size - 1)
        backwards = draw.chance(0.3)
        starts.append(start)
        ends.append(draw.integer(-size - 1, start - size - 1) if backwards else draw.integer(start + 1, size + 1))
        strides.append(draw.integer(1, 2) * (-1 if backwards else 1))
    attrs = {"axes": axes, "starts": starts, "ends": ends, "strides": strides, "infer_flags": [1] * len(axes)}
    return draw.case({"Input": array}, attrs)


@space("set_value")
def set_value(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    axis = draw.integer(0, len(shape) - 1)
    start = draw.integer(0, shape[axis] - 1)
    end = draw.integer(start + 1, shape[axis])
    attrs = {"axes": [axis], "starts": [start], "ends": [end], "steps": [1], "dtype": "float32", "shape": [1]}
    inputs = {"Input": draw.floats(shape)}
    if draw.chance():
        shape[axis] = end - start
        inputs["ValueTensor"] = draw.floats(shape)
    else:
        attrs["values"] = [draw.real(-3, 3)]
    return draw.case(inputs, attrs)


@space("crop", "crop_tensor")
def crop(draw: Draw) -> Case:
    shape = draw.shape(1, 4)
    array = draw.numbers(shape, draw.one("float32", "float32", "int32") if draw.op == "crop_tensor" else "float32")
    pairs = [_bounds(draw, size) for size in shape]
    starts = [start % size for (start, _), size in zip(pairs, shape)]
    sizes = [min(end, size) - start for (_, end), start, size in zip(pairs, starts, shape)]
    inputs: dict[str, Any] = {"X": array}
    if draw.chance(0.3):
        inputs["Offsets"] = np.array(starts, "int32")
    return draw.case(inputs, {"offsets": [] if "Offsets" in inputs else starts, "shape": sizes})


@space("expand")
def expand(draw: Draw) -> Case:
    array = _tensor(draw, 1, 4, 3)
    return draw.case({"X": array}, {"expand_times": draw.integers_of(array.ndim, 1, 3)})


@space("expand_v2")
def expand_v2(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    target = [*draw.one([], [], [2]), *shape]
    source = [1 if draw.chance(0.4) else size for size in shape]
    lead = len(target) - len(source)
    asked = [
        -1 if axis >= lead and source[axis - lead] == size and draw.chance(0.3) else size
        for axis, size in enumerate(target)
    ]
    inputs: dict[str, Any] = {"X": draw.numbers(source, draw.one(*_TYPES))}
    if draw.chance(0.3):
        inputs["Shape"] = np.array(asked, "int32")
    return draw.case(inputs, {"shape": asked})


@space("expand_as_v2")
def expand_as(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    source = [1 if draw.chance(0.4) else size for size in shape]
    return draw.case({"X": draw.floats(source), "Y": draw.floats(shape)}, {"target_shape": shape})


@space("tile")
def tile(draw: Draw) -> Case:
    array = _tensor(draw, 1, 3, 3)
    times = draw.integers_of(draw.integer(1, 4), 1, 3)
    inputs: dict[str, Any] = {"X": array}
    if draw.chance(0.3):
        inputs["RepeatTimes"] = np.array(times, "int32")
    return draw.case(inputs, {"repeat_times": times})


@space("broadcast_tensors")
def broadcast_tensors(draw: Draw) -> Case:
    shape = draw.shape(1, 3)
    arrays = [draw.floats([1 if draw.chance(0.4) else s for s in shape]) for _ in range(draw.integer(2, 3))]
    return draw.case({"X": arrays}, outputs={"Out": len(arrays)})


@space("meshgrid")
def meshgrid(draw: Draw) -> Case:
    count, dtype = draw.integer(2, 3), draw.one("float32", "int64")
    return draw.case({"X": [draw.numbers([draw.integer(1, 4)], dtype) for _ in range(count)]}, outputs={"Out": count})


@space("flip", "reverse")
def flip(draw: Draw) -> Case:
    array = _tensor(draw, 1, 4)
    return draw.case({"X": array}, {"axis": draw.subset(range(array.ndim), 1)})


@space("roll")
def roll(draw: Draw) -> Case:
    array = _tensor(draw, 1, 3)
    axes = draw.subset(range(array.ndim), 1)
    if draw.chance(0.2):
        return draw.case({"X": array}, {"shifts": [draw.integer(-3, 3)], "axis": []})
    return draw.case({"X": array}, {"shifts": draw.integers_of(len(axes), -5, 5), "axis": axes})


@space("tril_triu")
def tril_triu(draw: Draw) -> Case:
    return draw.case({"X": _tensor(draw, 2, 4)}, {"diagonal": draw.integer(-2, 2), "lower": draw.chance()})


@space("diag", "diag_v2", "diag_embed", "diagonal", "trace", "fill_diagonal", "fill_diagonal_tensor")
def diagonals(draw: Draw) -> Case:
    offset = draw.integer(-1, 1)
    if draw.op == "diag":
        array = _tensor(draw, 1, 1)
        return draw.case({"Diagonal": array}, paddle_op="diag_v2", paddle_slots={"Diagonal": "X"})
    if draw.op == "diag_v2":
        return draw.case({"X": _tensor(draw, 1, 2)}, {"offset": offset, "padding_value": draw.one(0.0, 2.0)})
    if draw.op == "diag_embed":
        return draw.case({"Input": draw.floats(draw.shape(1, 3))}, {"offset": offset, "dim1": -2, "dim2": -1})
    if draw.op == "fill_diagonal":
        return draw.case(
            {"X": draw.floats([draw.integer(3, 7), 3])}, {"value": 1.5, "offset": offset, "wrap": draw.chance()}
        )
    if draw.op == "fill_diagonal_tensor":
        size = draw.integer(2, 4)
        return draw.case(
            {"X": draw.floats([size, size, 2]), "Y": draw.floats([2, size])}, {"offset": 0, "dim1": 0, "dim2": 1}
        )
    array = draw.floats([draw.integer(2, 4) for _ in range(draw.integer(2, 3))])
    return draw.case({"Input": array}, {"offset": offset, "axis1": 0, "axis2": draw.one(1, -1)})


@space("fill_constant")
def fill_constant(draw: Draw) -> Case:
    dtype = draw.one("float32", "int32", "int64", "bool", "float64")
    shape = draw.shape(1, 3)
    value = float(draw.integer(0, 1)) if dtype == "bool" else float(draw.integer(-5, 5))
    inputs: dict[str, Any] = {}
    if draw.chance(0.3):
        inputs["ShapeTensor"] = np.array(shape, draw.one("int32", "int64"))
    elif draw.chance(0.3):
        inputs["ShapeTensorList"] = _one_element(shape)
    return draw.case(inputs, {"shape": shape, "dtype": dtype, "value": value, "str_value": draw.one("", str(value))})


@space("fill_any_like")
def fill_any_like(draw: Draw) -> Case:
    dtype = draw.one(None, "float32", "int64", "int32", "bool")
    array = _tensor(draw, 1, 3)
    largest = 1 if (dtype or array.dtype.name) == "bool" else 3
    return draw.case({"X": array}, {"value": float(draw.integer(0, largest)), "dtype": dtype})


@space("fill_zeros_like", "fill_zeros_like2")
def zeros_like(draw: Draw) -> Case:
    array = _tensor(draw, 1, 3)
    attrs = {"dtype": array.dtype.name} if draw.op.endswith("2") else {}
    return draw.case({"X": array}, attrs)


@space("fill_constant_batch_size_like")
def batch_size_like(draw: Draw) -> Case:
    shape, array = draw.shape(2, 3), draw.floats(draw.shape(1, 3))
    attrs = {
        "shape": shape, "input_dim_idx": draw.integer(0, array.ndim - 1), "output_dim_idx": draw.integer(0, 1),
        "dtype": draw.one("float32", "int64", "int32"), "value": float(draw.integer(-3, 3)),
    }  # fmt: skip
    return draw.case({"Input": array}, attrs)


@space("assign_value")
def assign_value(draw: Draw) -> Case:
    shape, dtype = draw.shape(1, 3), draw.one("float32", "int32", "int64", "bool")
    array = draw.numbers(shape, dtype)
    names = {"float32": "fp32_values", "int32": "int32_values", "int64": "int64_values", "bool": "bool_values"}
    values = array.reshape(-1).astype("int32" if dtype == "bool" else dtype).tolist()
    # The second name is that of Paddle 3.
    return draw.case({}, {"shape": shape, "dtype": dtype, names[dtype]: values, "values": values})


@space("range")
def arange(draw: Draw) -> Case:
    dtype, step = draw.one("float32", "int32", "int64"), draw.one(1, 2, -1)
    start = draw.integer(-3, 3)
    end = start + step * draw.integer(1, 4)
    values = {"Start": start, "End": end, "Step": step}
    return draw.case({slot: np.array([value], dtype) for slot, value in values.items()})


@space("linspace", "logspace")
def linspace(draw: Draw) -> Case:
    values: dict[str, Any] = {"Start": draw.floats([1]), "Stop": draw.floats([1], 3, 5)}
    values["Num"] = np.array([draw.integer(1, 7)], "int32")
    if draw.op == "logspace":
        values["Base"] = np.array([draw.one(2.0, 10.0)], "float32")
    # Lite makes a constant of powers.
    return draw.case(values, {"dtype": "float32"}, parameters=tuple(values) if draw.op == "logspace" else ())


@space("eye", "tril_indices", "triu_indices")
def without_inputs(draw: Draw) -> Case:
    rows, columns, offset = draw.integer(1, 4), draw.integer(1, 4), draw.integer(-1, 1)
    if draw.op == "eye":
        return draw.case({}, {"num_rows": rows, "num_columns": columns, "dtype": draw.one("float32", "int64")})
    names = ("rows", "cols") if draw.op == "tril_indices" else ("row", "col")
    return draw.case({}, {**dict(zip(names, (rows, columns))), "offset": offset, "dtype": "int64"}, ["out"])


@space("reduce_as")
def reduce_as(draw: Draw) -> Case:
    return draw.case(
        {"x": draw.floats([2, 3, 4]), "target": draw.floats(draw.one([4], [3, 1], [1, 3, 4]))}, {}, ["out"]
    )


@space("frame", "overlap_add")
def frames(draw: Draw) -> Case:
    hop = draw.integer(1, 3)
    if draw.op == "frame":
        return draw.case(
            {"X": draw.floats([2, 9])}, {"frame_length": draw.integer(2, 4), "hop_length": hop, "axis": -1}
        )
    return draw.case({"X": draw.floats([2, 3, 4])}, {"hop_length": hop, "axis": -1})


@space("repeat_interleave")
def repeat_interleave(draw: Draw) -> Case:
    array = draw.floats(draw.shape(1, 3))
    return draw.case({"X": array}, {"Repeats": draw.integer(1, 3), "dim": draw.integer(0, array.ndim - 1)})
