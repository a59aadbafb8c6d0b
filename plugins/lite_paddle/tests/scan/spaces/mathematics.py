"""Spaces of linear algebra and quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from scan.drawing import Array, Case, Draw, space


def _regular(draw: Draw, size: int, *batch: int) -> Array:
    """Return matrices that are far from singular."""
    return (draw.floats([*batch, size, size], -1, 1) + 3 * np.eye(size)).astype("float32")


@space("inverse", "determinant", "slogdeterminant", "matrix_power")
def of_matrix(draw: Draw) -> Case:
    slot, out = {"inverse": ("Input", "Output"), "matrix_power": ("X", "Out")}.get(draw.op, ("Input", "Out"))
    attrs = {"n": draw.integer(-2, 3)} if draw.op == "matrix_power" else {}
    return draw.case({slot: _regular(draw, draw.integer(1, 3), *draw.one([], [2]))}, attrs, [out])


@space("solve", "triangular_solve", "cholesky_solve")
def solve(draw: Draw) -> Case:
    size, columns = draw.integer(1, 3), draw.integer(1, 3)
    matrix, right = _regular(draw, size), draw.floats([size, columns])
    if draw.op == "solve":
        return draw.case({"X": matrix, "Y": right})
    upper = draw.chance()
    matrix = np.triu(matrix) if upper else np.tril(matrix)
    if draw.op == "cholesky_solve":
        return draw.case({"X": right, "Y": matrix}, {"upper": upper})
    attrs = {"upper": upper, "transpose": draw.chance(), "unitriangular": draw.chance(0.3)}
    return draw.case({"X": matrix, "Y": right}, attrs)


@space("fake_quantize_abs_max", "fake_quantize_dequantize_abs_max")
def fake_quantize(draw: Draw) -> Case:
    attrs = {"bit_length": 8, "round_type": draw.integer(0, 1)}
    return draw.case({"X": draw.floats(draw.shape(1, 3))}, attrs, ["Out", "OutScale"])


@space("fake_channel_wise_quantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max")
def fake_quantize_channels(draw: Draw) -> Case:
    # In a test, Paddle takes the output for the scale, which nothing has written.
    attrs = {"bit_length": 8, "round_type": draw.integer(0, 1), "quant_axis": draw.integer(0, 1), "is_test": False}
    return draw.case({"X": draw.floats(draw.shape(4, 4, 3))}, attrs, ["Out", "OutScale"])


@space(
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
    "fake_quantize_range_abs_max",
)
def fake_quantize_stored(draw: Draw) -> Case:
    attrs: dict[str, Any] = {"bit_length": 8, "round_type": draw.integer(0, 1), "is_test": True}
    inputs = {"X": draw.floats(draw.shape(1, 3)), "InScale": draw.floats([1], 0.5, 2)}
    return draw.case(inputs, attrs, parameters=draw.one((), ("InScale",)))


@space("fake_dequantize_max_abs", "dequantize_abs_max")
def dequantize(draw: Draw) -> Case:
    inputs = {"X": draw.integers(draw.shape(1, 3), -127, 127, "float32"), "Scale": draw.floats([1], 1, 2)}
    if draw.op == "dequantize_abs_max":
        inputs["X"] = inputs["X"].astype("int8")
    return draw.case(inputs, {"max_range": 127.0})


@space("dequantize_log")
def dequantize_log(draw: Draw) -> Case:
    return draw.case(
        {"X": draw.integers(draw.shape(1, 3), -127, 127, "int8"), "Dict": draw.floats([128])}, parameters=("Dict",)
    )


@space("fake_channel_wise_dequantize_max_abs")
def dequantize_channels(draw: Draw) -> Case:
    shape, axis = draw.shape(2, 4, 3), draw.integer(0, 1)
    inputs = {"X": draw.integers(shape, -127, 127, "float32"), "Scales": [draw.floats([shape[axis]], 1, 2)]}
    return draw.case(inputs, {"quant_bits": [8], "quant_axis": axis, "x_num_col_dims": 1})


@space("quantize_linear", "dequantize_linear")
def linear(draw: Draw) -> Case:
    axis = draw.one(-1, 0, 1)
    shape = draw.shape(2, 4, 3)
    count = 1 if axis == -1 else shape[axis]
    x = draw.floats(shape) if draw.op == "quantize_linear" else draw.integers(shape, -127, 127, "float32")
    inputs = {"X": x, "Scale": draw.floats([count], 1, 2), "ZeroPoint": np.zeros([count], "float32")}
    attrs = {
        "quant_axis": axis,
        "bit_length": 8,
        "qmin": -128,
        "qmax": 127,
        "round_type": draw.integer(0, 1),
        "is_test": True,
    }
    return draw.case(inputs, attrs, ["Y"], parameters=("Scale", "ZeroPoint"))


@space("moving_average_abs_max_scale")
def moving_average_scale(draw: Draw) -> Case:
    return draw.case({"X": draw.floats(draw.shape(1, 3))}, {"is_test": True})


@space("swiglu", "linear_v2")
def fused(draw: Draw) -> Case:
    if draw.op == "swiglu":
        shape = draw.shape(1, 3)
        return draw.case({"x": draw.floats(shape), "y": draw.floats(shape)}, outputs=["out"])
    inputs = {"input": draw.floats([2, 3]), "weight": draw.floats([3, 4]), "bias": draw.floats([4])}
    return draw.case(inputs, {"transpose_weight": False}, ["out"], parameters=("weight", "bias"))
