"""ConvInteger and QLinearConv give the very integers of their references."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from moving import agree, lowered, single_node
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ir import DType
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]

RANDOM = np.random.default_rng(0)

#: Shapes of the input and of the weights, and attributes.
CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 9, 8), (5, 3, 3, 3), {"pads": (1, 1, 1, 1)}),
    ((1, 8, 7, 7), (16, 8, 1, 1), {}),
    ((1, 6, 11, 10), (6, 1, 3, 3), {"group": 6, "strides": (2, 2), "pads": (1, 0, 1, 2)}),
    ((1, 4, 20), (6, 2, 5), {"group": 2, "dilations": (2,), "auto_pad": "SAME_UPPER"}),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 3), {"strides": (2, 1, 2)}),
    ((0, 2, 4, 4), (3, 2, 3, 3), {}),
]


def numbers(dtype: str, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("constants", [0, 2, 3])
@pytest.mark.parametrize("is_per_channel", [False, True])
@pytest.mark.parametrize(("size", "filters", "attributes"), CASES)
def test_conv_integer(
    size: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, Any], is_per_channel: bool, constants: int
) -> None:
    points = [numbers("uint8"), numbers("int8", filters[0]) if is_per_channel else numbers("int8", 1)]
    agree("ConvInteger", [numbers("uint8", *size), numbers("int8", *filters), *points], attributes, constants=constants)
    agree("ConvInteger", [numbers("int8", *size), numbers("uint8", *filters)], attributes, constants=constants // 2)


@pytest.mark.parametrize("constants", [0, 7, 8])
@pytest.mark.parametrize("is_per_channel", [False, True])
@pytest.mark.parametrize(("size", "filters", "attributes"), CASES)
def test_qlinear_conv(
    size: tuple[int, ...], filters: tuple[int, ...], attributes: dict[str, Any], is_per_channel: bool, constants: int
) -> None:
    channels = (filters[0],) if is_per_channel else ()
    scales = [RANDOM.uniform(0.01, 0.03, shape).astype(np.float32) for shape in ((), channels)]
    y_scale = np.asarray(scales[0] * 200, np.float32)
    x, w, bias = numbers("uint8", *size), numbers("int8", *filters), RANDOM.integers(-999, 999, filters[0])
    arrays = [x, scales[0], numbers("uint8"), w, scales[1], numbers("int8", *channels), y_scale, numbers("int8")]
    agree("QLinearConv", [*arrays, bias.astype(np.int32)], attributes, constants=constants)
    agree("QLinearConv", arrays, attributes, constants=constants - 1 if constants else 0)


def test_what_follows_is_part_of_the_kernel() -> None:
    x, w = numbers("uint8", 1, 3, 6, 6), numbers("int8", 4, 3, 3, 3)
    builder = GraphBuilder("tail")
    sums = builder.add("ConvInteger", [builder.input("x", "uint8", x.shape), builder.constant(w)])
    scaled = builder.add("Mul", [builder.add("Cast", [sums], {"to": DType.FLOAT32}), builder.constant(np.float32(0.5))])
    builder.output(builder.add("Relu", [scaled]), "y")
    graph = builder.build()
    assert lowered(graph)[-1] == "convolution_gemm"
    np.testing.assert_array_equal(run(graph, [x])[0], evaluate_graph(graph, [x])[0])


def test_weights_and_zero_points_that_are_data_are_widened_in_the_run() -> None:
    arrays = [numbers("uint8", 1, 3, 6, 6), numbers("int8", 4, 3, 3, 3), numbers("uint8"), numbers("int8", 4)]
    graph = single_node("ConvInteger", arrays)
    other = [numbers(str(a.dtype), *a.shape) for a in arrays]
    for inputs in (arrays, other):
        np.testing.assert_array_equal(run(graph, inputs)[0], evaluate_graph(graph, inputs)[0])
