"""Damaged programs that the reader cannot recognise as such: lowering raises nothing but a LiteError."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, program_of, run_single

from lite_core.errors import LiteError, ModelFormatError, UnsupportedOperatorError
from lite_core.ir import DType
from lite_paddle.lowering import lower
from lite_paddle.reader.attributes import complete_attributes

X = np.ones((2, 3), np.float32)
IMAGE = np.ones((1, 2, 5, 5), np.float32)
DAMAGE = [None, "zz", -3, 2**62, [], {}, 1.5, True, [[1]], [None], ["zz"], float("nan"), float("inf")]

OPERATORS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("softmax", {"X": X}, ["axis"]),
    ("scale", {"X": X}, ["scale", "bias"]),
    ("transpose2", {"X": X}, ["axis"]),
    ("reshape2", {"X": X}, ["shape"]),
    ("slice", {"Input": X}, ["axes", "starts", "ends", "decrease_axis"]),
    ("reduce_sum", {"X": X}, ["dim", "keep_dim", "out_dtype"]),
    ("p_norm", {"X": X}, ["porder", "axis"]),
    ("pool2d", {"X": IMAGE}, ["ksize", "strides", "paddings", "pooling_type"]),
    ("conv2d", {"Input": IMAGE, "Filter": np.ones((2, 2, 3, 3), np.float32)}, ["strides", "paddings", "groups"]),
    ("bilinear_interp_v2", {"X": IMAGE}, ["out_h", "out_w", "scale"]),
    ("unfold", {"X": IMAGE}, ["kernel_sizes", "strides", "paddings", "dilations"]),
    ("fill_constant", {}, ["shape", "dtype", "value"]),
    ("assign_value", {}, ["shape", "dtype", "values"]),
    ("top_k_v2", {"X": X}, ["k", "axis"]),
    ("one_hot_v2", {"X": np.array([1, 2])}, ["depth", "dtype"]),
    ("cast", {"X": X}, ["out_dtype"]),
]


@pytest.mark.parametrize(("op_type", "inputs", "names"), OPERATORS, ids=[op for op, *_ in OPERATORS])
def test_damaged_attributes_raise_only_lite_errors(op_type: str, inputs: dict[str, Any], names: list[str]) -> None:
    refused = 0
    for name in names:
        for value in DAMAGE:
            try:
                graph_of(op_type, inputs, {name: value})
            except LiteError:
                refused += 1
    assert refused


def test_exception_in_a_lowering_becomes_an_operator_problem(caplog: pytest.LogCaptureFixture) -> None:
    program, _ = program_of("softmax", {"X": X})
    program.block.ops[0].attrs["axis"] = "zz"
    caplog.set_level(logging.DEBUG, "lite.paddle")
    with pytest.raises(UnsupportedOperatorError, match=r"softmax.*Out_0.*inputs are damaged \(ValueError: .*'zz'"):
        lower(program)
    assert any(record.exc_info for record in caplog.records)


@pytest.mark.parametrize(
    ("op_type", "attrs", "message"),
    [
        ("softmax", {"axis": "zz"}, "softmax has axis 'zz', expected the kind of -1"),
        ("softmax", {"axis": None}, "softmax has axis None"),
        ("conv2d", {"strides": [1, {}]}, "conv2d has strides"),
        ("conv2d", {"data_format": 3}, "conv2d has data_format 3"),
    ],
)
def test_attributes_of_a_wrong_type(op_type: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFormatError, match=message):
        complete_attributes(op_type, attrs)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("parameters", [(), ("X",)])
def test_unsupported_element_types(dtype: Any, parameters: tuple[str, ...]) -> None:
    what, name = "parameter" if parameters else "input", np.dtype(dtype).name
    with pytest.raises(
        ModelFormatError, match=f"the {what} 'X_0' has the element type {name}; Lite has bool, int8.*Exp"
    ):
        graph_of("relu", {"X": X.astype(dtype)}, parameters=parameters)


def test_a_huge_depth_is_not_allocated() -> None:
    graph = graph_of("one_hot_v2", {"X": np.array([1, 2])}, {"depth": 2**40})
    assert any(node.op == "Range" for node in graph.nodes)
    assert graph.outputs[0].type.dtype is DType.FLOAT32
    with pytest.raises(UnsupportedOperatorError, match="depth is -1"):
        graph_of("one_hot_v2", {"X": np.array([1, 2])})
    found = run_single("one_hot_v2", {"X": np.array([1, 70000])}, {"depth": 70001})
    assert found.sum() == found[0, 1] + found[1, 70000] == 2


@pytest.mark.parametrize("size", [2**62, 0, -3])
def test_windows_of_impossible_sizes(size: int) -> None:
    attrs = {"kernel_sizes": [size, 3], "strides": [1, 1], "paddings": [0, 0], "dilations": [1, 1]}
    with pytest.raises(UnsupportedOperatorError, match="expected sizes from 1 to 1024"):
        graph_of("unfold", {"X": IMAGE}, attrs, outputs=("Y",))


def test_a_crop_to_a_shape_of_many_dimensions() -> None:
    with pytest.raises(UnsupportedOperatorError, match="expected one for each axis"):
        graph_of("crop_tensor", {"X": X, "Shape": np.zeros(10**6, np.int32)})
