"""ConvInteger and QLinearConv return the same integers as their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from moving import agree, lowered, single_node
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ir import DType
from lite_core.ops.evaluate import evaluate_graph

pytestmark = pytest.mark.full("opencl")

Array = np.ndarray[Any, Any]

RANDOM = np.random.default_rng(0)

ATTRIBUTES = {"group": 2, "dilations": (2,), "auto_pad": "SAME_UPPER"}


def numbers(dtype: str, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("constants", [0, 2, 3])
def test_conv_integer_with_known_zero_points_and_weights(constants: int) -> None:
    arrays = [numbers("uint8", 1, 4, 20), numbers("int8", 6, 2, 5), numbers("uint8"), numbers("int8", 6)]
    agree("ConvInteger", arrays, ATTRIBUTES, constants=constants)


@pytest.mark.parametrize("constants", [0, 7, 8])
def test_qlinear_conv_with_known_scales_and_weights(constants: int) -> None:
    scales = [RANDOM.uniform(0.01, 0.03, shape).astype(np.float32) for shape in ((), 6)]
    y_scale = np.asarray(scales[0] * 200, np.float32)
    x, w, bias = numbers("uint8", 1, 4, 20), numbers("int8", 6, 2, 5), RANDOM.integers(-999, 999, 6)
    arrays = [x, scales[0], numbers("uint8"), w, scales[1], numbers("int8", 6), y_scale, numbers("int8")]
    agree("QLinearConv", [*arrays, bias.astype(np.int32)], ATTRIBUTES, constants=constants)


def test_element_wise_tail_is_fused_into_integer_convolution() -> None:
    x, w = numbers("uint8", 1, 3, 6, 6), numbers("int8", 4, 3, 3, 3)
    builder = GraphBuilder("tail")
    sums = builder.add("ConvInteger", [builder.input("x", "uint8", x.shape), builder.constant(w)])
    scaled = builder.add("Mul", [builder.add("Cast", [sums], {"to": DType.FLOAT32}), builder.constant(np.float32(0.5))])
    builder.output(builder.add("Relu", [scaled]), "y")
    graph = builder.build()
    assert lowered(graph)[-1] == "convolution_gemm"
    np.testing.assert_array_equal(run(graph, [x])[0], evaluate_graph(graph, [x])[0])


def test_weights_and_zero_points_as_data() -> None:
    arrays = [numbers("uint8", 1, 3, 6, 6), numbers("int8", 4, 3, 3, 3), numbers("uint8"), numbers("int8", 4)]
    graph = single_node("ConvInteger", arrays)
    other = [numbers(str(a.dtype), *a.shape) for a in arrays]
    for inputs in (arrays, other):
        np.testing.assert_array_equal(run(graph, inputs)[0], evaluate_graph(graph, inputs)[0])
