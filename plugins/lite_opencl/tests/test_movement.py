"""Operators that move elements: transpositions in tiles, compositions of views, and padding by several periods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moving import agree, drawn, lowered, single_node
from opencl_agreement import run_for, steps_of
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ops.evaluate import evaluate_graph


@pytest.mark.full("opencl")
@pytest.mark.parametrize(
    ("shape", "order", "dtype"),
    [
        ((1, 33, 17, 19), (0, 2, 3, 1), "float32"),
        ((2, 40, 32, 64), (0, 3, 1, 2), "float32"),
        ((2, 9, 40, 33), (1, 3, 0, 2), "float32"),
        ((2, 9, 40, 33), (1, 3, 0, 2), "uint8"),
        ((2, 9, 40, 33), (1, 3, 0, 2), "float16"),
        ((2, 9, 40, 33), (1, 3, 0, 2), "int64"),
        ((64, 64), (1, 0), "float32"),
    ],
)
def test_tiles_are_bit_identical(shape: tuple[int, ...], order: tuple[int, ...], dtype: str) -> None:
    array = drawn(shape, dtype)
    graph = single_node("Transpose", [array], {"perm": order})
    assert steps_of("GPU", graph) == ["transpose"]
    assert run_for("GPU", graph, [array])[0].tobytes() == array.transpose(order).tobytes()


def test_only_gpus_transpose_in_tiles() -> None:
    graph = single_node("Transpose", [drawn((1, 32, 20, 20))], {"perm": (0, 2, 3, 1)})
    assert steps_of("GPU", graph) == ["transpose"]
    assert steps_of("CPU", graph) == ["elementwise"]


@pytest.mark.full("opencl")
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_slices_of_slices(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))
    builder = GraphBuilder("slices")
    x = builder.input("x", "int32", shape)
    value = x
    for _ in range(2):
        axis = data.draw(st.integers(-len(shape), len(shape) - 1))
        start, end = data.draw(st.integers(-12, 12)), data.draw(st.integers(-12, 12))
        step = data.draw(st.sampled_from([-3, -2, -1, 1, 2, 4]))
        numbers = [builder.constant(np.array([n])) for n in (start, end, axis, step)]
        value = builder.add("Slice", [value, *numbers])
    builder.output(builder.add("Neg", [value]), "y")
    graph, array = builder.build(), drawn(shape, "int32")
    np.testing.assert_array_equal(run(graph, [array])[0], evaluate_graph(graph, [array])[0])


def test_views_before_an_element_wise_step_need_no_copies() -> None:
    builder = GraphBuilder("views")
    x = builder.input("x", "float32", (4, 6, 8))
    left, right = builder.add_node("Split", [x, builder.constant(np.array([2, 4]))], {"axis": 1}, outputs=2)
    last = builder.add("Slice", [right, *(builder.constant(np.array([n])) for n in (3, -9, 1, -2))])
    turned = builder.add("Transpose", [builder.add("Add", [left, last])], {"perm": (2, 0, 1)})
    builder.output(builder.add("Relu", [turned]), "y")
    graph, array = builder.build(), np.random.default_rng(0).standard_normal((4, 6, 8)).astype(np.float32)
    assert lowered(graph) == ["elementwise", "elementwise"]
    np.testing.assert_array_equal(run(graph, [array])[0], evaluate_graph(graph, [array])[0])


@pytest.mark.full("opencl")
@pytest.mark.parametrize("mode", ["reflect", "wrap"])
@pytest.mark.parametrize(("shape", "pads"), [((4,), (9, 11)), ((3, 4), (-1, 7, -1, 5)), ((1, 1), (3, 3, 3, 3))])
def test_padding_by_several_periods(mode: str, shape: tuple[int, ...], pads: tuple[int, ...]) -> None:
    agree("Pad", [drawn(shape), np.array(pads)], {"mode": mode}, constants=1)
