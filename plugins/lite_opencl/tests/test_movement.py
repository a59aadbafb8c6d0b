"""Operators that move elements: which are views, which copies, and that all give what the reference does."""

from __future__ import annotations

import numpy as np
import opencl_agreement
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from moving import agree, drawn, lowered, single_node
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ops.evaluate import evaluate_graph


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "int64"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((2, 3, 5, 7), (0, 2, 3, 1)),
        ((1, 33, 17, 19), (0, 2, 3, 1)),
        ((2, 40, 32, 64), (0, 3, 1, 2)),
        ((2, 9, 40, 33), (1, 3, 0, 2)),
        ((64, 64), (1, 0)),
        ((1000, 3), (1, 0)),
        ((0, 3, 4), (2, 1, 0)),
    ],
)
def test_transposed_copies_have_the_same_bits(dtype: str, shape: tuple[int, ...], order: tuple[int, ...]) -> None:
    agree("Transpose", [drawn(shape, dtype)], {"perm": order})
    numbers = np.random.default_rng(0).integers(0, 99, shape).astype(dtype)
    opencl_agreement.agree("GPU", "Transpose", [numbers], {"perm": order})


def test_a_change_of_layout_goes_through_tiles_on_a_gpu() -> None:
    graph = single_node("Transpose", [drawn((1, 32, 20, 20))], {"perm": (0, 2, 3, 1)})
    assert opencl_agreement.steps_of("GPU", graph) == ["transpose"]
    assert opencl_agreement.steps_of("CPU", graph) == ["elementwise"]


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


def test_views_cost_nothing_before_an_elementwise_step() -> None:
    builder = GraphBuilder("views")
    x = builder.input("x", "float32", (4, 6, 8))
    left, right = builder.add_node("Split", [x, builder.constant(np.array([2, 4]))], {"axis": 1}, outputs=2)
    last = builder.add("Slice", [right, *(builder.constant(np.array([n])) for n in (3, -9, 1, -2))])
    turned = builder.add("Transpose", [builder.add("Add", [left, last])], {"perm": (2, 0, 1)})
    builder.output(builder.add("Relu", [turned]), "y")
    graph, array = builder.build(), np.random.default_rng(0).standard_normal((4, 6, 8)).astype(np.float32)
    assert lowered(graph) == ["elementwise", "elementwise"]
    np.testing.assert_array_equal(run(graph, [array])[0], evaluate_graph(graph, [array])[0])


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["bool", "float16", "int64"])
def test_concat_and_split(axis: int, dtype: str) -> None:
    parts = [drawn([n if a == axis % 3 else 4 for a in range(3)], "uint8", n) for n in (1, 0, 35)]
    parts = [(p % 2).astype(bool) if dtype == "bool" else p.astype(dtype) for p in parts]
    agree("Concat", parts, {"axis": axis})
    whole = np.concatenate(parts, axis)
    agree("Split", [whole, np.array([1, 0, 35])], {"axis": axis}, constants=1, outputs=3)
    agree("Split", [whole], {"axis": axis, "num_outputs": 2}, outputs=2)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_of_pixels(mode: str) -> None:
    agree("DepthToSpace", [drawn((2, 12, 3, 5))], {"blocksize": 2, "mode": mode})
    agree("SpaceToDepth", [drawn((2, 3, 6, 9))], {"blocksize": 3})


def test_repetition() -> None:
    agree("Tile", [drawn((2, 1, 3)), np.array([2, 5, 3])], constants=1)
    agree("Tile", [drawn((2, 3)), np.array([0, 3])], constants=1)
    agree("Expand", [drawn((2, 1, 3), "float64"), np.array([4, 1, 7, 1])], constants=1)


PADS = [
    ((1, 2, 5, 6), (0, 0, 1, 2, 0, 0, 3, 4)),
    ((2, 3), (0, -1, 2, 0)),
    ((4,), (9, 11)),
    ((3, 4), (-1, 7, -1, 5)),
    ((1, 1), (3, 3, 3, 3)),
    ((3, 100), (2, -1, 0, 70)),
]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize(("shape", "pads"), PADS)
def test_pad(mode: str, shape: tuple[int, ...], pads: tuple[int, ...]) -> None:
    agree("Pad", [drawn(shape), np.array(pads)], {"mode": mode}, constants=1)


def test_a_filler_that_is_data_and_axes() -> None:
    builder = GraphBuilder("pad")
    x, filler = builder.input("x", "int64", (3, 4)), builder.input("filler", "int64", ())
    pads, axes = builder.constant(np.array([2, 1])), builder.constant(np.array([-1]))
    builder.output(builder.add("Pad", [x, pads, filler, axes]), "y")
    graph, arrays = builder.build(), [drawn((3, 4), "int64"), np.array(2**62 + 1)]
    np.testing.assert_array_equal(run(graph, arrays)[0], evaluate_graph(graph, arrays)[0])


@pytest.mark.parametrize("shape", [(5, 2), (2, 9), (4, 4), (0, 3), (3, 0)])
def test_center_crop_pad(shape: tuple[int, int]) -> None:
    agree("CenterCropPad", [drawn((4, 5), "int16"), np.array(shape)], constants=1)


def test_generated() -> None:
    agree("Trilu", [drawn((3, 5, 7))], {"upper": 0})
    agree("Trilu", [drawn((5, 7), "int64"), np.array(2**63 - 1)], {"upper": 1})
    agree("OneHot", [np.array([[1, -1], [5, 0]]), np.array(4), np.array([2**60, -1])], {"axis": 1}, constants=2)
    agree("EyeLike", [drawn((3, 4))], {"k": 1})
